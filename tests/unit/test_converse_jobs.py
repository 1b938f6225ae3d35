"""Language jobs as data: what is asked, what counts as an answer, and what becomes of a bad one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from os1_edge.converse.address import addressed
from os1_edge.converse.jobs import (
    EVENT,
    IMPORTANCE,
    KEYS,
    PAGE,
    PROFILE,
    SESSION,
    TRIES,
    MemoryWriter,
    ask,
    prompt_of,
)  # fmt: skip
from os1_edge.offload.engine import EngineError, Message, Preempted
from os1_edge.remember.chores import Busy
from os1_edge.remember.keys import Keys
from os1_edge.remember.profile import Candidate
from os1_edge.remember.revise import Proposal
from os1_edge.remember.rows import StoredContext, StoredEvent, StoredTurn

NOON = datetime(2026, 3, 2, 12)
EVENT_ROW = StoredEvent(1, NOON, NOON, "kitchen", "eating", "12:00-12:00 kitchen, eating", "rule", 1)


@dataclass
class Engine:
    """Gives the answers in turn; an exception is raised."""

    answers: list[str | Exception]
    calls: list[dict[str, Any]] = field(default_factory=list)
    name: str = "fake"

    async def stream(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        schema: Any = None,
        background: bool = False,
        task: str = "reply",
    ) -> AsyncGenerator[str, None]:
        self.calls.append({"messages": list(messages), "schema": schema, "background": background})
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        for i in range(0, len(answer), 7):
            yield answer[i : i + 7]

    async def prime(self, messages: Sequence[Message]) -> None: ...


def turn(heard: str, speaker: str = "wearer") -> StoredTurn:
    return StoredTurn(1, "t1", NOON, heard, "Noted.", "kitchen", speaker=speaker)


def test_a_job_runs_in_the_background_under_the_shape_of_its_answer() -> None:
    engine = Engine(['{"importance": 7}'])
    assert asyncio.run(MemoryWriter(engine).importance("I won the race.")) == 7
    (call,) = engine.calls
    assert call["background"] is True
    assert call["schema"] == IMPORTANCE.answer.model_json_schema()
    assert call["messages"][-1] == Message("user", "I won the race.")
    assert call["messages"][0].role == "system"


@pytest.mark.parametrize("bad", ["", "no", '{"importance": 70}', '{"importance": "7"}', '{"x": 1}', '{"imp'])
def test_a_bad_answer_is_asked_for_once_more_and_then_there_is_none(bad: str) -> None:
    engine = Engine([bad, '{"importance": 4}'])
    assert asyncio.run(MemoryWriter(engine).importance("A day.")) == 4
    engine = Engine([bad] * 5)
    assert asyncio.run(MemoryWriter(engine).importance("A day.")) is None
    assert len(engine.calls) == TRIES


def test_a_job_makes_way_for_whoever_waits() -> None:
    with pytest.raises(Busy):
        asyncio.run(MemoryWriter(Engine([Preempted("needed")])).importance("A day."))


def test_an_engine_that_cannot_answer_is_not_taken_for_an_empty_answer() -> None:
    with pytest.raises(EngineError):
        asyncio.run(MemoryWriter(Engine([EngineError("broken")])).importance("A day."))


@pytest.mark.parametrize("job", [EVENT, SESSION, KEYS, IMPORTANCE, PROFILE])
def test_every_prompts_examples_fit_the_shape_that_they_show(job: Any) -> None:
    slots = dict.fromkeys(("location", "activity", "notes", "conversation", "memory", "said"), "{x} here")
    messages = prompt_of(job, slots)
    assert [m.role for m in messages[1:]] == ["user", "assistant"] * ((len(messages) - 2) // 2) + ["user"]
    for message in messages:
        if message.role == "assistant":
            job.answer.model_validate_json(message.text)
    assert "{x} here" in messages[-1].text  # and what is filled in opens no slot


def test_a_model_that_repeats_the_example_has_not_answered() -> None:
    copied = json.dumps({"summary": "The wearer has to write a paper on river birds by Friday."})
    own = json.dumps({"summary": "The wearer parked the car on level three."})
    said = [turn("I parked the car on level three.")]
    assert asyncio.run(MemoryWriter(Engine([copied, copied])).summarise_session(said)) is None
    found = asyncio.run(MemoryWriter(Engine([copied, own])).summarise_session(said))
    assert found == "The wearer parked the car on level three."


def test_a_long_day_is_read_only_as_far_as_there_is_room() -> None:
    engine = Engine(['{"summary": "The wearer talked at length."}'])
    turns = [turn(f"Sentence number {i} of a very long talk." * 20) for i in range(500)]
    asyncio.run(MemoryWriter(engine).summarise_session(turns))
    assert len(engine.calls[0]["messages"][-1].text) <= PAGE + 10


def test_a_stay_with_nothing_seen_or_said_is_not_asked_about() -> None:
    engine = Engine([])
    silent = StoredContext(1, 0.0, NOON, "", "", "kitchen", "eating")
    assert asyncio.run(MemoryWriter(engine).summarise_event(EVENT_ROW, [silent])) is None


def test_another_persons_words_are_marked_as_theirs() -> None:
    engine = Engine(['{"summary": "Somebody else talked of nuts."}'])
    asyncio.run(MemoryWriter(engine).summarise_session([turn("I am allergic to nuts.", "other:Tom")]))
    asked = engine.calls[0]["messages"][-1].text
    assert "Somebody else: I am allergic to nuts." in asked
    assert "Wearer: I am allergic" not in asked


def test_keys_come_as_keys() -> None:
    engine = Engine(['{"temporal": ["this weekend"], "spatial": [], "semantic": ["have a picnic"]}'])
    found = asyncio.run(MemoryWriter(engine).keys("A picnic this weekend.", NOON, "park"))
    assert found == Keys(("this weekend",), (), ("have a picnic",))


def test_only_what_the_wearer_asserted_of_themselves_is_given_to_the_profile_job() -> None:
    said = ["Crowds make me nervous. Where is my cup?", "If I had a dog, I would walk.", "Tom is nice."]
    answer = {"facts": [{"quote": "Crowds make me nervous.", "kind": "personality",
                         "text": "The wearer finds crowds make them nervous."}]}  # fmt: skip
    engine = Engine([json.dumps(answer)])
    found = asyncio.run(MemoryWriter(engine).profile_candidates(said))
    assert found == [
        Candidate("personality", "The wearer finds crowds make them nervous.", "Crowds make me nervous.")
    ]
    (call,) = engine.calls
    assert call["messages"][-1].text == "- Crowds make me nervous."
    assert call["schema"]["$defs"]["Fact"]["properties"]["quote"] == {"enum": ["Crowds make me nervous."]}


def test_where_nothing_was_asserted_no_model_is_asked() -> None:
    assert (
        asyncio.run(MemoryWriter(Engine([])).profile_candidates(["Where is my cup?", "Good morning."])) == []
    )


def test_asking_twice_does_not_widen_the_shape() -> None:
    engine = Engine(["", '{"facts": []}'])
    narrow = {"type": "object"}
    asyncio.run(ask(engine, PROFILE, narrow, said="- x"))
    assert [call["schema"] for call in engine.calls] == [narrow, narrow]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("The wearer does not like their boss.", "You do not like your boss."),
        ("The wearer usually goes for a swim.", "You usually go for a swim."),
        ("The wearer has a sister called Anna who lives in Paris.",
         "You have a sister called Anna who lives in Paris."),
        ("The wearer studies law.", "You study law."),
        ("The wearer is often at the gym in the evening, exercising.",
         "You are often at the gym in the evening, exercising."),
        ("The wearer drinks coffee every morning.", "You drink coffee every morning."),
    ],
)  # fmt: skip
def test_a_line_of_the_profile_is_spoken_to_the_wearer(line: str, said: str) -> None:
    assert addressed(line) == said


def test_two_lines_of_the_profile_are_shown_to_the_model_and_its_word_is_taken_as_it_is() -> None:
    answer = {"verdict": "one", "text": "The wearer likes cats and dogs."}
    engine = Engine([json.dumps(answer)])
    writer = MemoryWriter(engine)
    found = asyncio.run(writer.revise_profile("The wearer likes dogs.", "The wearer likes cats."))
    assert found == Proposal("one", "The wearer likes cats and dogs.")
    asked = engine.calls[0]["messages"][-1].text
    assert "old: The wearer likes cats." in asked
    assert "new: The wearer likes dogs." in asked


@pytest.mark.parametrize("answer", ["", "I cannot help with that.", '{"verdict": "replace", "text": "x"}'])
def test_an_answer_about_two_lines_that_does_not_fit_is_none(answer: str) -> None:
    engine = Engine([answer] * TRIES)
    assert asyncio.run(MemoryWriter(engine).revise_profile("The wearer a.", "The wearer b.")) is None
