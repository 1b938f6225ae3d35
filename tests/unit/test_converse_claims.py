"""What was told may be said back: the check for false memories over every grounding case."""

from __future__ import annotations

from pathlib import Path

import pytest

from os1_edge.bench.grounding import Case, load_suite
from os1_edge.converse.address import addressed
from os1_edge.converse.claims import unfounded
from os1_edge.remember.profile import propose

HERE = Path(__file__).parents[1] / "grounding"
FILES = ("cases", "held_back", "held_back_two")
CASES = [case for name in FILES for case in load_suite(HERE / f"{name}.toml").case]


def facts(case: Case) -> list[str]:
    """The lines that a prompt may hold of what was told."""
    texts = [told.text for told in case.told]
    return [addressed(text) for text in [*texts, *(line.text for text in texts for line in propose(text))]]


@pytest.mark.parametrize("case", [case for case in CASES if case.told], ids=lambda case: case.name)
def test_what_was_told_is_no_false_memory(case: Case) -> None:
    evidence = "\n".join([*(f"Fact from Monday 9 March: {fact}" for fact in facts(case)), case.heard])
    for fact in facts(case):
        low = fact[:1].lower() + fact[1:]
        for reply in (fact, f"I remember that {low}", f"You told me that {low}", f"I know that {low}"):
            assert unfounded(reply, evidence, case.heard) is None, reply


@pytest.mark.parametrize("case", [case for case in CASES if case.told], ids=lambda case: case.name)
def test_of_somebody_elses_life_it_is_one(case: Case) -> None:
    """The same lines where nobody told them."""
    reply = f"I remember that {addressed(case.told[0].text)}"
    assert unfounded(reply, case.heard, case.heard) is not None, reply
