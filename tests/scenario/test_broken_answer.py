"""An answer breaks off in the middle: the wearer hears one answer, whoever goes on with it. Virtual clock.

All sides write the same numbered words, so that what is said twice, left out or begun anew shows.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from os1_edge import clock
from os1_edge.clock import Clock
from os1_edge.offload.broken import SILENCE_S
from os1_edge.offload.engine import Message, Task
from os1_edge.offload.far import (
    Accepted,
    Failure,
    FarError,
    Finished,
    Probed,
    Question,
    Step,
    Stranger,
    TaskLoad,
    Text,
)
from os1_edge.offload.network import Quiet
from os1_edge.offload.offers import IMAGES, PREFIX, RESUME, SCHEMA, Offers
from os1_edge.offload.route import Rules
from os1_edge.offload.router import Router
from os1_edge.offload.taken import Taken

WORDS = 20
ANSWER = "".join(f"w{n} " for n in range(WORDS))
ASKED = [Message("system", "Be brief."), Message("user", "Where is my car?")]
TASKS: tuple[Task, ...] = ("reply", "caption", "plan")
ALL = Offers(features=frozenset({PREFIX, RESUME, SCHEMA, IMAGES}))
WORD_S, NEAR_S = 0.05, 0.2


@dataclass
class Doors:
    """Front doors of one server. The first breaks off after ``breaks_after`` words, and then ``resumes``: to
    where it was, not at all (a failure), or never says anything ("silent"); another goes on."""

    breaks_after: int = 8
    fault: Failure = "unreachable"
    resumes: str = "lost"
    again: str = ""
    """A failure, "silent", or "": it goes on ``again_s`` after it was asked."""
    again_s: float = 0.1
    back_s: float = 0.05
    offers: Offers | None = ALL
    ends: str = ""
    """It ends soon, and says so: when "asked" a question, or when it is "told" in a probe's answer."""
    fresh: int = 0
    """Connections that were made anew; behind the next there is one that does not end."""
    name: str = "server"
    around: Quiet = field(default_factory=Quiet)
    asked: list[Question] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    live: int = 0
    broke_at: float = 0.0
    told_at: float = 0.0
    fresh_at: float = 0.0

    async def ask(self, question: Question) -> AsyncGenerator[Step, None]:
        if question.prime:
            return
        self.asked.append(question)
        self.live += 1
        try:
            if self.ends:
                raise FarError("ending", "it takes no more")
            if question.attempt:
                await self._do(self.again, self.again_s)
            yield Step(1, Accepted("a"))
            begin = question.prefix.count(" ")
            for number in range(begin, WORDS):
                if not question.attempt and number == self.breaks_after:
                    self.broke_at = asyncio.get_running_loop().time()
                    raise FarError(self.fault, "it broke off")
                await asyncio.sleep(WORD_S)
                yield Step(number - begin + 2, Text(f"w{number} "))
            yield Step(WORDS + 2, Finished())
        finally:
            self.live -= 1

    async def resume(self, request_id: str, node: str, from_seq: int) -> AsyncGenerator[Step, None]:
        self.resumed.append(request_id)
        self.live += 1
        try:
            await self._do(self.resumes, self.back_s)
            for seq in range(from_seq, WORDS + 2):
                await asyncio.sleep(WORD_S)
                yield Step(seq, Text(f"w{seq - 2} "))
            yield Step(WORDS + 2, Finished())
        finally:
            self.live -= 1

    async def _do(self, how: Any, seconds: float) -> None:
        await asyncio.sleep(1e9 if how == "silent" else seconds)
        if how:
            raise FarError(how, "as it was told")

    async def cancel(self, request_id: str, node: str) -> None:
        self.cancelled.append(request_id)

    async def probe(self, padding: int, timeout_s: float, *, fresh: bool = False) -> Probed:
        await asyncio.sleep(0.02)
        if fresh:
            self.fresh, self.fresh_at = self.fresh + 1, asyncio.get_running_loop().time()
            self.ends = self.ends if self.fresh == 1 else ""
        if self.ends == "told":
            self.told_at = asyncio.get_running_loop().time()
        loads = dict.fromkeys(TASKS, TaskLoad(0, 0.1, 0.02))
        return Probed(0.02, padding, self.ends == "told", loads, self.offers)

    async def diagnose(self, timeout_s: float) -> Stranger:
        return ""

    async def close(self) -> None: ...


@dataclass
class Device:
    """Goes on behind a last message of the assistant's."""

    first_s: float = NEAR_S
    sees: bool = False
    name: str = "device"
    live: int = 0
    begun_at: list[float] = field(default_factory=list)

    async def prime(self, messages: Sequence[Message]) -> None:
        await asyncio.sleep(self.first_s)

    async def stream(
        self, messages: Sequence[Message], *_: object, **__: object
    ) -> AsyncGenerator[str, None]:
        self.begun_at.append(asyncio.get_running_loop().time())
        self.live += 1
        said = messages[-1].text.count(" ") if messages[-1].role == "assistant" else 0
        try:
            await asyncio.sleep(self.first_s)
            for number in range(said, WORDS):
                yield f"w{number} "
                await asyncio.sleep(WORD_S)
        finally:
            self.live -= 1


@dataclass
class Heard:
    """What a wearer and an observer notice."""

    text: str
    gap_s: float
    """The longest silence after the first word."""
    taken: Taken
    parts: int
    left: int
    """Calls that are still at work half a second later."""


def lived(doors: Doors, device: Device | None = None, rules: Rules | None = None, **asked: Any) -> Heard:
    """One question over a link that is known to be good."""

    async def go() -> Heard:
        here = device or Device()
        at = Clock()
        router = Router(here, doors, at, rules or Rules(images=True), chance=random.Random(1))
        router.wearer_speaks()
        await router.prime(ASKED)
        await asyncio.sleep(3.0)
        text, gap, parts, last = "", 0.0, 0, None
        private_after, stop_after = asked.pop("private_after", None), asked.pop("stop_after", None)
        async with aclosing(router.stream(asked.pop("messages", ASKED), 64, **asked)) as answer:
            async for part in answer:
                gap = max(gap, at.now() - last) if last is not None else 0.0
                text, last, parts = text + part, at.now(), parts + 1
                router.private = router.private or parts == private_after
                if parts == stop_after:
                    break
        await asyncio.sleep(0.5)
        left = doors.live + here.live
        await router.close()
        return Heard(text, gap, router.journal.taken[-1], parts, left)

    return clock.run(go(), virtual=True)


def test_an_answer_whose_front_door_is_gone_goes_on_at_another_behind_what_was_heard() -> None:
    doors, device = Doors(), Device()
    heard = lived(doors, device)
    assert (heard.text, heard.left, device.begun_at) == (ANSWER, 0, [])
    first, again = doors.asked
    assert again.prefix == "".join(f"w{n} " for n in range(8))
    assert again.request_id != first.request_id  # by its own id it would be joined, from its first word on
    assert again.budget.total_s < first.budget.total_s
    assert heard.taken.answered == "cloud"
    assert heard.taken.outcome == "it broke off, and a server that was told so far went on"


def test_an_answer_that_its_server_still_has_is_not_made_twice() -> None:
    doors, device = Doors(resumes=""), Device()
    heard = lived(doors, device)
    assert (heard.text, len(doors.asked), device.begun_at) == (ANSWER, 1, [])
    assert heard.taken.outcome == "it broke off, and was picked up again"


def test_a_server_that_ends_in_mid_answer_is_not_waited_for() -> None:
    doors = Doors(fault="ending")
    heard = lived(doors)
    assert (heard.text, doors.resumed, len(doors.asked)) == (ANSWER, [], 2)


@pytest.mark.parametrize("doors", [Doors(resumes="silent", again="silent"), Doors(again="silent")])
def test_whoever_is_silent_the_device_says_the_next_word_in_time(doors: Doors) -> None:
    heard = lived(doors, Device())
    assert (heard.text, heard.taken.answered, heard.left) == (ANSWER, "both", 0)
    assert heard.gap_s <= SILENCE_S
    assert heard.taken.both  # and that is told
    assert doors.asked[0].request_id in doors.cancelled


@pytest.mark.parametrize("again", ["busy", "late", "refused", "unreachable", "unfit"])
def test_where_no_server_goes_on_the_device_does_at_once(again: Failure) -> None:
    heard = lived(Doors(again=again))
    assert (heard.text, heard.taken.answered, heard.left) == (ANSWER, "both", 0)
    assert heard.gap_s <= 0.05 + 0.1 + NEAR_S + WORD_S  # to be told, and the device's own first word


def test_with_little_battery_both_are_never_at_work_at_once() -> None:
    doors, device = Doors(again="silent"), Device()
    heard = lived(doors, device, Rules("prefer-battery"))
    assert (heard.text, heard.taken.both, heard.taken.answered) == (ANSWER, False, "both")
    assert device.begun_at[0] - doors.broke_at == pytest.approx(SILENCE_S, abs=0.01)


def test_a_wearer_who_wants_to_be_private_in_mid_answer_is_from_then_on() -> None:
    doors = Doors()
    heard = lived(doors, private_after=5)
    assert (heard.text, doors.resumed, len(doors.asked)) == (ANSWER, [], 1)
    assert heard.taken.outcome == "the server broke off; the device went on (nothing leaves the device)"


@pytest.mark.parametrize(("schema", "heard"), [(None, ANSWER[: ANSWER.index("w8")]), ({}, "")])
def test_where_nobody_has_more_to_say_the_answer_ends(schema: Any, heard: str) -> None:
    class Speechless(Device):
        async def stream(self, *_: object, **__: object) -> AsyncGenerator[str, None]:
            return
            yield

    assert lived(Doors(again="busy"), Speechless(), schema=schema).text == heard
    assert lived(Doors(fault="broken"), Speechless(), schema=schema).text == heard


@pytest.mark.parametrize(("stop_after", "calls"), [(5, 1), (12, 2)])
def test_a_wearer_who_interrupts_an_answer_frees_its_server_whichever_that_is(
    stop_after: int, calls: int
) -> None:
    doors = Doors()
    heard = lived(doors, stop_after=stop_after)
    assert (len(doors.asked), heard.left) == (calls, 0)
    assert doors.cancelled[-1] == doors.asked[-1].request_id


@pytest.mark.parametrize("offers", [None, Offers(features=frozenset({RESUME}))])
def test_a_server_that_is_not_known_to_go_on_behind_what_was_said_is_not_sent_it(
    offers: Offers | None,
) -> None:
    doors = Doors(offers=offers)
    heard = lived(doors)
    assert (heard.text, len(doors.asked), heard.taken.answered) == (ANSWER, 1, "both")


def test_an_answer_about_a_picture_is_not_gone_on_with_by_another_server() -> None:
    doors = Doors()
    asked = [Message("user", "What is this?", (bytes(2_000),))]
    heard = lived(doors, Device(sees=True), messages=asked, task="caption")
    assert (heard.text, len(doors.asked), heard.taken.answered) == (ANSWER, 1, "both")


@pytest.mark.parametrize("fault", ["unreachable", "ending", "gone"])
def test_a_picture_that_the_device_cannot_look_at_is_shown_to_another_server(fault: Failure) -> None:
    doors = Doors(breaks_after=0, fault=fault)
    asked = [Message("user", "What is this?", (bytes(2_000),))]
    assert lived(doors, messages=asked, task="caption").text == ANSWER
    first, again = doors.asked
    assert (again.request_id, again.attempt, again.prefix) == (first.request_id, 1, "")


def test_a_question_that_the_device_can_answer_is_not_asked_twice() -> None:
    doors = Doors(breaks_after=0)
    heard = lived(doors)
    assert (heard.text, heard.taken.answered, len(doors.asked)) == (ANSWER, "local", 1)


@pytest.mark.parametrize(("resumes", "again", "asked"), [("", "", 1), ("lost", "", 2), ("lost", "busy", 2)])
def test_an_answer_that_obeys_a_schema_is_picked_up_or_begun_anew_and_given_once(
    resumes: str, again: str, asked: int
) -> None:
    doors = Doors(resumes=resumes, again=again)
    heard = lived(doors, schema={"type": "object"}, task="plan")
    assert (heard.text, heard.parts) == (ANSWER, 1)
    assert [(q.prefix, q.schema) for q in doors.asked] == [("", {"type": "object"})] * asked


def test_a_server_that_ends_is_left_for_another_as_soon_as_it_says_so() -> None:
    async def go() -> None:
        doors = Doors(breaks_after=WORDS, ends="asked")
        router = Router(Device(), doors, Clock(), chance=random.Random(1))
        router.wearer_speaks()
        await asyncio.sleep(2.0)
        sides = []
        for _ in range(2):
            async with aclosing(router.stream(ASKED, 64)) as answer:
                assert "".join([part async for part in answer]) == ANSWER
            sides.append(router.journal.taken[-1].answered)
        assert (sides, doors.fresh) == (["local", "cloud"], 2)  # at the start, and then
        doors.ends = "told"  # in answer to a probe
        await asyncio.sleep(40.0)
        assert (doors.ends, doors.fresh) == ("", 3)
        assert doors.fresh_at - doors.told_at < 1.0  # not when the next probe would have been due
        await router.close()

    clock.run(go(), virtual=True)


ends = st.sampled_from(("", "silent", "lost", "unreachable", "busy"))


@settings(max_examples=300, deadline=None)
@given(
    st.builds(
        Doors,
        breaks_after=st.integers(1, WORDS - 1),
        fault=st.sampled_from(("unreachable", "ending", "gone", "lost", "broken", "late")),
        resumes=ends,
        again=ends,
        again_s=st.floats(0.0, 2.0),
        back_s=st.floats(0.0, 2.0),
    ),
    st.floats(0.01, 2.0),
    st.booleans(),
)
def test_whatever_happens_no_word_is_doubled_or_left_out_and_nothing_is_left_at_work(
    doors: Doors, near_s: float, whole: bool
) -> None:
    heard = lived(doors, Device(near_s), schema={"type": "object"} if whole else None)
    assert (heard.text, heard.left) == (ANSWER, 0)
    # What was known of the device when it was decided: a first word of the usual guess, or of what was seen.
    assert heard.gap_s <= max(SILENCE_S, near_s + 0.5) + near_s + WORD_S
