"""The measure of the agents' jobs: its labels can be met, and a wrong answer costs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from os1_edge.bench.agents import Dialogue, Dialogues, Score, judge_strategy, strategy_by_rule
from os1_edge.converse.strategy import planned
from os1_edge.tomlfile import read_toml

FILE = Path(__file__).parents[1] / "grounding/dialogues.toml"


@pytest.fixture(scope="module")
def dialogues() -> tuple[Dialogue, ...]:
    return read_toml(FILE, Dialogues)[0].dialogue


def test_every_label_can_be_met(dialogues: tuple[Dialogue, ...]) -> None:
    assert len(dialogues) >= 12
    for one in dialogues:
        assert one.lines[-1].startswith("Wearer: ")
        assert one.objective or one.action or one.outcome or one.evidence
        for pattern in one.evidence:
            assert any(re.search(pattern, told.text) for told in one.told), one.name


def test_who_wants_comfort_and_gets_advice_is_judged_badly_served(dialogues: tuple[Dialogue, ...]) -> None:
    comfort = next(one for one in dialogues if one.name.startswith("just comfort me"))
    good, bad = Score(), Score()
    by_rule = strategy_by_rule(comfort.heard)
    judge_strategy(good, comfort, by_rule.objective, by_rule)
    advice = planned("help to decide", "a bad planner's")
    judge_strategy(bad, comfort, advice.objective, advice)
    assert good.row("rules", wrong=True) == {"by": "rules", "plan": "1/1", "decide": "1/1", "wrong": []}
    assert bad.row("bad", wrong=False) == {"by": "bad", "plan": "0/1", "decide": "0/1"}
