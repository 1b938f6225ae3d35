"""What a reply is told of the wearer's view, and what a summary of views is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from os1_edge.converse.sight import NO_SIGHT, Sight, asks_before, view_lines
from os1_edge.converse.view_writer import ViewWriter, lines_before
from os1_edge.converse.window import Frame, FrameWindow, Line
from os1_edge.offload.engine import Preempted
from os1_edge.remember.chores import Busy

SAW = Sight(before=("A dog.", "A bus."))


def test_what_is_looked_at_is_told_apart_from_what_is_in_view() -> None:
    told = view_lines("What is this?", "A mug and a book.", Sight("a mug", "A book."))
    assert [line for _, line in told] == ["You are looking at a mug.", "You also see a book."]
    assert view_lines("What is this?", "A mug.", NO_SIGHT) == [("in view now", "You see a mug.")]
    assert view_lines("What is this?", "", NO_SIGHT) == []


@pytest.mark.parametrize(
    "heard", ["What did I just see?", "What was that?", "What have I seen?", "What was in view before?"]
)
def test_who_asks_for_it_is_told_what_was_in_view_before(heard: str) -> None:
    told = view_lines(heard, "A door.", SAW)
    assert told[0] == ("in view before", "You saw a bus.")
    assert told[-1] == ("in view now", "You see a door.")
    assert not asks_before(heard, NO_SIGHT)


@pytest.mark.parametrize("heard", ["What is this?", "When was I born?", "I saw Anna yesterday."])
def test_who_does_not_is_not(heard: str) -> None:
    assert not asks_before(heard, SAW)


def test_lines_before_leave_out_what_is_still_in_view_and_what_was_said() -> None:
    window = FrameWindow()
    for at_s, scene in enumerate(("A dog.", "A dog.", "A bus.", "A door.", "A bus.")):
        window = window.add(Frame(float(at_s), str(at_s), scene))
    window = window.add(Line(2.5, "Wearer", "Hello."))
    assert lines_before(window.items, 4.0, 3) == ("A dog.", "A door.")


class Sees:
    """A vision model that says how many pictures it was shown; or a busy one."""

    name = "sees"

    def __init__(self, busy: bool = False) -> None:
        self.busy = busy
        self.asked: list[Any] = []

    async def stream(self, messages: Any, max_tokens: int, **asked: Any) -> AsyncGenerator[str, None]:
        if self.busy:
            raise Preempted("somebody speaks")
        self.asked.append((messages, max_tokens, asked))
        yield f"{len(messages[-1].images)} pictures "
        yield "of a dog."


def wanted() -> Any:
    window = FrameWindow().add(Line(-1.0, "Wearer", "Look, a dog."))
    for at_s in range(4):
        window = window.add(Frame(float(at_s), str(at_s), f"Scene {at_s}."))
    found = window.wanted()
    assert found is not None
    return found


def test_a_vision_model_is_shown_the_pictures_after_what_was_said() -> None:
    eye = Sees()
    writer = ViewWriter(Sees(), eye)  # type: ignore[arg-type]
    assert asyncio.run(writer.summarise(wanted(), (b"1", b"2", b"3"))) == "3 pictures of a dog."
    ((messages, most, asked),) = eye.asked
    assert messages[-1].text.startswith("Wearer: Look, a dog.")
    assert (most, asked["background"], asked["task"]) == (512, True, "caption")


def test_who_is_busy_is_asked_again_later() -> None:
    for writer in (ViewWriter(Sees(busy=True)), ViewWriter(Sees(), Sees(busy=True))):  # type: ignore[arg-type]
        with pytest.raises(Busy):
            asyncio.run(writer.summarise(wanted(), (b"1", b"2", b"3")))
