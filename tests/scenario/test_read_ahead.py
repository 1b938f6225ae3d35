"""What is read before the wearer speaks again, so that the reply need not wait for it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
from companion import Companion, Engine

from os1_edge.converse.prompt import ANSWER, Notes, plan
from os1_edge.offload.engine import Message
from os1_edge.offload.sampler import Sampler
from os1_edge.remember.recall import Hit

NOON = datetime(2026, 3, 2, 12)


def test_an_exchange_is_read_as_it_was_heard_before_the_wearer_speaks_again(tmp_path: Path) -> None:
    engine = Engine(lambda _: "How nice for you.")
    told = Companion(tmp_path, engine).say(1.0, "I bought a kite today.").say(9.0, "It is red.").live()
    assert [turn.reply for turn in told.turns] == ["How nice for you."] * 2
    second = engine.prompts[-1]
    assert [*second[:-1], Message("user", f"{ANSWER}\n")] in engine.primed


def test_the_fact_that_answers_is_foreseen_and_no_part_of_the_prompt() -> None:
    hit = Hit("turn", "I parked the car on level three.", NOON, "", 0.9, "")
    asked = plan("Where did I park the car?", Notes(NOON, "", (hit,)))
    assert asked.likely == "You parked the car on level three."
    message = Message("user", asked.message, likely=asked.likely)
    assert message == Message("user", asked.message)
    assert plan("I bought a kite today.", Notes(NOON, "", (hit,))).likely == ""


def test_what_is_in_view_is_read_while_a_short_question_is_asked(tmp_path: Path) -> None:
    engine = Engine(lambda _: "You see a red kite.")
    told = Companion(tmp_path, engine).show(0.5, "A red kite.").say(2.0, "What is this?", 0.5).live()
    assert told.turns[0].reply == "You see a red kite."
    asked = engine.prompts[-1][-1].text
    assert "Fact in view now: You see a red kite." in asked
    assert any(asked.rpartition("The wearer")[0] in primed[-1].text for primed in engine.primed)


def test_between_words_that_are_as_likely_the_fact_s_own_are_said() -> None:
    """Which of the two comes first is rounding: with it, the peanuts stood on the table."""
    with Sampler(None, 4, None) as sampler:
        assert sampler.pick(np.array([19.46, 19.52, 1.0, 0.0], np.float32), 0) == 0
        assert sampler.pick(np.array([19.46, 19.52, 1.0, 0.0], np.float32)) == 1
        assert sampler.pick(np.array([18.9, 19.52, 1.0, 0.0], np.float32), 0) == 1
