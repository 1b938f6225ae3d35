"""What earlier frames showed, in a sentence: the frame window's summary, by a vision model, or by a language
model from the frames' descriptions. A background job: whoever waits goes first.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from os1_edge.converse.jobs import PAGE, LanguageJob, ask
from os1_edge.converse.window import Frame, FrameWindow, Item, Line, Summary, SummaryWanted, as_text
from os1_edge.offload.engine import LanguageEngine, Message, Preempted
from os1_edge.remember.chores import Busy

SHOWN = "These pictures were seen after that, one after the other. Say in one sentence what they show."
MOST_TOKENS = 512
"""Of a vision model's answer about frames (OS-1 paper 3.3.3)."""


class ViewSummary(BaseModel):
    """What was seen."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sentence: Annotated[str, Field(min_length=8, max_length=240)]


VIEWS = LanguageJob("summarise_views", ViewSummary, 100, own_words=True)


class ViewWriter:
    """Summarises frames."""

    def __init__(self, engine: LanguageEngine, vision: LanguageEngine | None = None) -> None:
        """``vision`` is shown the pictures themselves, where there are any."""
        self._engine, self._vision = engine, vision

    async def summarise(self, wanted: SummaryWanted, pictures: tuple[bytes, ...] = ()) -> str:
        """One sentence; empty where there is none that fits.

        Raises:
            Busy: somebody waits for the engine.
            EngineError: it cannot answer at all.
        """
        said = _page(as_text(FrameWindow(wanted.before).shown()))
        if self._vision is not None and len(pictures) == len(wanted.frames):
            return await self._looked(said, pictures)
        seen = "\n".join(f"- {_line(frame)}" for frame in wanted.frames if frame.description)
        if not seen:
            return ""
        found = await ask(self._engine, VIEWS, conversation=said or "(nothing)", views=seen)
        return found.sentence if found else ""

    async def _looked(self, said: str, pictures: tuple[bytes, ...]) -> str:
        assert self._vision is not None
        asked = Message("user", f"{said}\n\n{SHOWN}".strip(), pictures)
        try:
            stream = self._vision.stream((asked,), MOST_TOKENS, background=True, task="caption")
            async with aclosing(stream):
                return " ".join("".join([part async for part in stream]).split())
        except Preempted:
            raise Busy from None


def _line(frame: Frame) -> str:
    return " ".join(frame.description.split())[:200]


def _page(text: str) -> str:
    """The end of it, by whole lines, as far as a job has room."""
    return text if len(text) <= PAGE else text[-PAGE:].partition("\n")[2]


def lines_before(items: tuple[Item, ...], newest_s: float, most: int) -> tuple[str, ...]:
    """What was in view before the frame of ``newest_s``: summaries and descriptions, oldest first, the last
    ``most`` of them, none twice in a row and none that says the same as that frame."""
    now = next((one.description for one in items if isinstance(one, Frame) and one.at_s == newest_s), "")
    told: list[str] = []
    for item in items:
        if item.at_s >= newest_s or isinstance(item, Line):
            continue
        text = item.text if isinstance(item, Summary) else item.description
        if text and text != now and (not told or told[-1] != text):
            told.append(text)
    return tuple(told[-most:])
