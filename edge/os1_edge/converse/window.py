"""The frame window: frames and lines of dialogue in one order, and few frames in the prompt.

"I was blind but now I see" (vision-enabled dialogue, 2023): frames come independent of speech; at a limit of
n = 4 frames the first m = 3 consecutive ones are summarised, separately from the dialogue but with the
conversation so far before them, and the summary takes their place. The newest frame is at full resolution,
older ones are scaled down. Pure: a window is a value, each step gives a new one, and what a model has to do
is handed out as a request. A frame is a picture's name for a vision model, or its description where there is
none: the window never looks into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

MOST_FRAMES = 4
"""n of the paper."""
AT_ONCE = 3
"""m of the paper; below n, so that a frame always stays."""
MOST_ITEMS = 200
"""Lines, frames and summaries kept: an hour of talk. The oldest go; the conversation's own history and the
memory hold them longer."""
OLD_SCALE = 0.5
"""Scale of all frames but the newest."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture in its place in the conversation."""

    at_s: float
    key: str
    """Names the picture for who holds it."""
    description: str = ""
    """What the scene describer said of it; stands in for the picture where there is no vision model."""


@dataclass(frozen=True, slots=True)
class Line:
    """Something said."""

    at_s: float
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What frames showed, in their place."""

    at_s: float
    """Time of the first frame."""
    until_s: float
    text: str
    frames: int


Item = Frame | Line | Summary


@dataclass(frozen=True, slots=True)
class SummaryWanted:
    """The first frames to be summarised, and all that came before them."""

    frames: tuple[Frame, ...]
    before: tuple[Item, ...]
    """The conversation and the summaries up to the frames: what the model is shown first."""
    reason: str


@dataclass(frozen=True, slots=True)
class Shown:
    """One item as the prompt shows it."""

    item: Item
    scale: float
    """Of a frame's picture: 1 for the newest, less for older ones; 1 for what is no frame."""


@dataclass(frozen=True, slots=True)
class FrameWindow:
    """Items in the order of their times."""

    items: tuple[Item, ...] = ()
    most_frames: int = MOST_FRAMES
    at_once: int = AT_ONCE

    def __post_init__(self) -> None:
        if not 1 <= self.at_once < self.most_frames:
            raise ValueError(f"at_once ({self.at_once}) must be 1 or more and below {self.most_frames}")

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames still in the window, oldest first."""
        return tuple(item for item in self.items if isinstance(item, Frame))

    def add(self, item: Frame | Line) -> FrameWindow:
        """With `item` in its place by time: a slow description may come after a line that was said later."""
        at = len(self.items)
        while at > 0 and self.items[at - 1].at_s > item.at_s:
            at -= 1
        return replace(self, items=(*self.items[:at], item, *self.items[at:])[-MOST_ITEMS:])

    def wanted(self) -> SummaryWanted | None:
        """What is to be summarised before another frame comes in; None below the limit.

        The first run of `at_once` frames without a line between; where dialogue parts them all, the longest
        run among the older ones, so that the prompt is bounded whatever is said.
        """
        if len(self.frames) < self.most_frames:
            return None
        runs = _runs(self.items)
        newest = self.frames[-1]
        older = [[frame for frame in run if frame is not newest][: self.at_once] for run in runs]
        full = next((run for run in older if len(run) == self.at_once), None)
        chosen = full or max(older, key=len)
        at = self.items.index(chosen[0])
        reason = f"{len(self.frames)} frames in the prompt; the first {len(chosen)} consecutive ones go"
        return SummaryWanted(tuple(chosen), self.items[:at], reason)

    def summarised(self, wanted: SummaryWanted, text: str) -> FrameWindow:
        """With the summary in the frames' place; unchanged where they have left the window meanwhile.

        Lines that came in since stay where they are. An empty `text` (a model that failed) falls back to the
        frames' own descriptions.
        """
        gone = set(wanted.frames)
        held = [item for item in self.items if item in gone]
        if not held:
            return self
        text = " ".join(text.split()) or fallback(wanted.frames)
        made = Summary(wanted.frames[0].at_s, wanted.frames[-1].at_s, text, len(wanted.frames))
        at = self.items.index(held[0])
        rest = [item for item in self.items[at:] if item not in gone]
        return replace(self, items=(*self.items[:at], made, *rest))

    def shown(self) -> tuple[Shown, ...]:
        """The prompt's items in order: never more than `most_frames` frames, the newest at full size.

        Frames above the limit, while a summary is in the making, are left out, oldest first.
        """
        frames = self.frames
        newest = frames[-1] if frames else None
        hidden = {id(frame) for frame in frames[: max(0, len(frames) - self.most_frames)]}
        return tuple(
            Shown(item, OLD_SCALE if isinstance(item, Frame) and item is not newest else 1.0)
            for item in self.items
            if id(item) not in hidden
        )


def fallback(frames: Sequence[Frame]) -> str:
    """What frames showed, from their descriptions alone: each once, in order."""
    told: list[str] = []
    for frame in frames:
        text = " ".join(frame.description.split())
        if text and (not told or told[-1] != text):
            told.append(text)
    return " Then: ".join(told) or "Nothing that could be described."


def as_text(shown: Sequence[Shown]) -> str:
    """The items as lines for a model without eyes: what was seen stands in brackets."""
    lines = []
    for one in shown:
        item = one.item
        if isinstance(item, Line):
            lines.append(f"{item.speaker}: {item.text}")
        elif isinstance(item, Summary):
            lines.append(f"[Seen before: {item.text}]")
        elif item.description:
            lines.append(f"[Seen: {item.description}]")
    return "\n".join(lines)


def _runs(items: Sequence[Item]) -> list[list[Frame]]:
    """Frames in a row, with no line and no summary between."""
    runs: list[list[Frame]] = [[]]
    for item in items:
        if isinstance(item, Frame):
            runs[-1].append(item)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
