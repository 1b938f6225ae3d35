"""The reply's prompt. Pure. Its beginning stays the same byte for byte from turn to turn, so that the model
reads only what is new: persona first, then the conversation as it was sent, then this turn's notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files

from os1_edge.offload.engine import Message
from os1_edge.remember.recall import Hit


def persona() -> str:
    """Who OS-1 is and how it answers: ``prompts/reply.md``."""
    return files("os1_edge.converse").joinpath("prompts/reply.md").read_text("utf-8").strip()


@dataclass(frozen=True, slots=True)
class Notes:
    """What the reply may rest on."""

    time: datetime
    location: str
    scene: str
    recalled: tuple[Hit, ...] = ()
    must_know: tuple[str, ...] = ()
    """Profile lines that always stand in the prompt: allergies and the like."""


def ask(heard: str, notes: Notes) -> str:
    """The user message of a turn."""
    place = "" if notes.location == "somewhere" else f", {notes.location}"
    lines = [f"[Now: {notes.time:%A %H:%M}{place}.]"]
    if notes.scene:
        lines.append(f"[In view: {notes.scene}]")
    lines += [f"[Known: {line}]" for line in notes.must_know]
    lines += [_memory(hit) for hit in notes.recalled]
    return "\n".join([*lines, heard])


def _memory(hit: Hit) -> str:
    if hit.kind == "profile":
        return f"[Known: {hit.text}]"
    return f'[The wearer said on {hit.time:%A} at {hit.time:%H:%M}: "{hit.text}"]'


@dataclass(slots=True)
class Conversation:
    """The running exchange. Bounded: when it is full, its older half is dropped at once, because each
    dropping makes the model read the rest again."""

    limit: int
    _exchanges: list[tuple[str, str, str]] = field(default_factory=list)
    _last: datetime | None = None

    def messages(self, asked: str) -> list[Message]:
        """The whole prompt for ``asked``."""
        out = [Message("system", persona())]
        for message, _, reply in self._exchanges:
            out += [Message("user", message), Message("assistant", reply)]
        return [*out, Message("user", asked)]

    def said(self) -> Sequence[str]:
        """What the wearer said in the exchanges that the prompt holds."""
        return [heard for _, heard, _ in self._exchanges]

    def begin(self, time: datetime, gap_s: float) -> None:
        """A turn begins at ``time``; after ``gap_s`` of idle time it opens a new conversation."""
        if self._last is not None and (time - self._last).total_seconds() > gap_s:
            self._exchanges.clear()
        self._last = time

    def add(self, message: str, heard: str, reply: str) -> None:
        """The exchange as it was sent and spoken."""
        if self.limit == 0:
            return
        if len(self._exchanges) >= self.limit:
            del self._exchanges[: (self.limit + 1) // 2]
        self._exchanges.append((message, heard, reply))
