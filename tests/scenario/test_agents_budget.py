"""The agents' jobs and the wearer's patience: whatever they take, the reply comes in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from companion import Companion, Engine

from os1_edge.config import Config
from os1_edge.offload.engine import Message

JOBS = {
    "You plan": {"objective": "give comfort", "steps": ["affirm the feeling", "offer a walk"]},
    "You decide": {"done": 1, "outcome": "open", "action": "offer a walk"},
    "You say what": {"history": ["bicycle"], "profile": ["likes"]},
    "You write one": {"report": "The wearer has a bicycle in the cellar."},
    "You summarise": {"summary": "The wearer has a bicycle in the cellar."},
    "You tell where": {"location": "garden", "activity": "resting"},
}

LINES = (
    "My bicycle is in the cellar.", "The tyre is flat again.", "I walked to work today.",
    "It was a long way.", "My feet are sore.", "Tomorrow I take the bus.",
)  # fmt: skip


@dataclass
class Thinker(Engine):
    """Answers the agents' jobs, each after ``job_s`` seconds; from turn ``slow_from`` on after ``slow_s``."""

    job_s: float = 0.01
    slow_from: int = 10_000
    slow_s: float = 5.0
    jobs: list[str] = field(default_factory=list)
    inline: list[str] = field(default_factory=list)

    async def stream(
        self, messages: Sequence[Message], max_tokens: int, **how: Any
    ) -> AsyncGenerator[str, None]:
        if how.get("schema") is None:
            async for text in super().stream(messages, max_tokens):
                yield text
            return
        mark = next(mark for mark in JOBS if messages[0].text.startswith(mark))
        self.jobs.append(mark)
        await asyncio.sleep(self.slow_s if len(self.prompts) >= self.slow_from else self.job_s)
        yield json.dumps(JOBS[mark])


def lived(tmp_path: Path, engine: Thinker) -> Companion:
    config = Config.model_validate({"converse": {"agents": "model"}, "remember": {"written_by_model": False}})
    told = Companion(tmp_path, engine, config=config)
    for number, line in enumerate(LINES):
        told.say(2.0 + 12 * number, line)
    return told.live()


def voice_to_voice(told: Companion) -> list[float]:
    return [turn.spoke_at_s - turn.ended.end / 16_000 for turn in told.turns if turn.spoke_at_s is not None]


BUDGET_S = Config().converse.voice_to_voice_s


@pytest.mark.parametrize(("job_s", "inline"), [(0.01, True), (0.3, None), (2.0, False), (8.0, False)])
def test_two_agents_at_work_never_make_a_reply_late(
    tmp_path: Path, job_s: float, inline: bool | None
) -> None:
    engine = Thinker(lambda heard: "I see.", job_s=job_s)
    told = lived(tmp_path, engine)
    assert len(voice_to_voice(told)) == len(LINES)
    assert max(voice_to_voice(told)) <= BUDGET_S
    done = [t for turn in told.turns for t in turn.inline]
    assert inline is None or bool(done) is inline


def test_agents_that_become_slow_in_the_midst_of_a_turn_are_not_waited_for(tmp_path: Path) -> None:
    quick = lived(tmp_path / "quick", Thinker(lambda heard: "I see."))
    assert any(turn.inline for turn in quick.turns)
    told = lived(tmp_path / "slow", Thinker(lambda heard: "I see.", slow_from=4))
    assert len(voice_to_voice(told)) == len(LINES)
    assert max(voice_to_voice(told)) <= BUDGET_S


def test_a_view_without_a_word_is_placed_by_the_model_and_remembered(tmp_path: Path) -> None:
    config = Config.model_validate({"converse": {"agents": "model"}, "remember": {"written_by_model": False}})
    told = Companion(tmp_path, Thinker(lambda heard: "I see."), config=config)
    told.show(0.5, "A bench under a tree.").say(2.0, "Hello there.").show(8.0, "A bench under a tree.")
    told.live()
    assert told.places == [("garden", "resting")]
