"""Who speaks: the wearer first. When they speak, the reply falls silent; what they say decides what becomes
of it.

::

    no reply ──────────── a turn
    a reply being made ── soon after the turn before it ended: that turn was cut off too early, and goes on
                          with these words; else a turn of its own, which waits for its answer
    a reply sounding ──── paused at once;  "mm-hm", noise, the reply's own sound → it goes on
                                           "stop" → it is over, and nothing is answered
                                           anything else → it is over, and a turn
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from os1_edge.hear.interrupt import judge
from os1_edge.speak.playback import Player

T = TypeVar("T")

REOPEN_S = 1.5
"""Speech that begins so soon after a turn's last word, before it was answered, goes on with that turn:
whoever was not finished goes on within a breath (after a longer pause it is something new)."""


FORESEEN = 16
"""Letters (a second of speech) of a reply that a listener can tell before they sound: an answer to a question
often begins before its last word is over."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of something that was heard."""

    kind: Literal["turn", "stop", "nothing"]
    heard: str
    """The words to answer."""
    reason: str
    took_up: str = ""
    """The turn that was cut off too early, and is a part of this one now."""


@dataclass(slots=True, eq=False)
class Answering:
    """A turn that is being answered, from its end until its reply is over and kept."""

    turn_id: str
    end_s: float
    """Session second of its last word."""
    heard: str = ""
    reply: list[str] = field(default_factory=list)
    """The clauses made so far; bounded by the reply's tokens."""
    fate: Literal["open", "cut", "withdrawn"] = "open"
    """"cut": the wearer stopped the reply. "withdrawn": the turn is a part of the next one now."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Its fate is no longer open: nothing more of it is to be spoken."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Heard or cut, and kept: the conversation stands as it was heard."""

    def end(self, fate: Literal["cut", "withdrawn"]) -> None:
        """Nothing more of it is to be spoken."""
        self.fate = fate
        self.gone.set()

    async def unless_gone(self, wait: Coroutine[Any, Any, T]) -> T | None:
        """What ``wait`` gives; ``None`` as soon as nothing more is to be spoken."""
        waited, gone = asyncio.ensure_future(wait), asyncio.ensure_future(self.gone.wait())
        try:
            await asyncio.wait((waited, gone), return_when=asyncio.FIRST_COMPLETED)
            return None if gone.done() else waited.result()
        finally:
            waited.cancel()
            gone.cancel()


@dataclass(slots=True)
class _Speaker:
    """The wearer's open turn."""

    turn_id: str
    start_s: float
    over: Answering | None
    """Whose reply was sounding when it began."""
    behind: Answering | None
    """The turn before it, that was not yet answered when it began."""


class Floor:
    """Keeps wearer and companion from speaking at the same time. Use it in one loop."""

    def __init__(self, player: Player, language: str = "auto") -> None:
        self._player = player
        self._language = language
        self._open: list[Answering] = []
        """Oldest first; bounded by the turns that may wait."""
        self._sounding: Answering | None = None
        self._speaker: _Speaker | None = None
        self._free = asyncio.Event()
        self._free.set()

    @property
    def sounding(self) -> bool:
        """A reply sounds now, or is held for what the wearer is saying."""
        return self._player.speaking or self._player.paused

    @property
    def free(self) -> bool:
        """The wearer is silent, and what they said is understood."""
        return self._free.is_set()

    @property
    def busy(self) -> bool:
        """Some turn is being answered, or its reply heard."""
        return bool(self._open)

    # The wearer.

    def wearer_speaks(self, turn_id: str, at_s: float) -> None:
        """The wearer begins to speak, or speaks on."""
        if self._speaker is None or self._speaker.turn_id != turn_id:
            over = self._sounding if self.sounding else None
            behind = self._open[-1] if self._open and over is None else None
            self._speaker = _Speaker(turn_id, at_s, over, behind)
        self._free.clear()
        self._player.pause()

    def settle(self, turn_id: str, verdict: Verdict | None) -> None:
        """The wearer's turn is over and ``verdict`` is what became of it; ``None``: it could not be heard.
        Only now the turn that it goes on with, if any, is withdrawn: a turn that comes to nothing must not
        take another with it."""
        if verdict is not None and verdict.took_up:
            for answering in self._open:
                if answering.turn_id == verdict.took_up and not answering.over.is_set():
                    answering.end("withdrawn")
        if verdict is None:
            self._player.resume()
        if self._speaker is not None and self._speaker.turn_id == turn_id:
            self._free.set()

    def discard(self) -> None:
        """The wearer's open turn was thrown away: others may speak, and what was held goes on."""
        self._free.set()
        self._player.resume()

    async def judge(self, turn_id: str, text: str, seconds: float) -> Verdict:
        """What becomes of ``text``, said in ``seconds`` of speech. Returns when the conversation stands as it
        was heard: a reply that this cuts has been kept, as far as it was heard."""
        speaker = self._speaker
        if speaker is None or speaker.turn_id != turn_id:
            return Verdict("turn" if text else "nothing", text, "nobody else spoke")
        if (before := speaker.over) is not None:
            reply = " ".join(before.reply)
            heard = _foreseen(reply, self._player.heard().text)
            decision = judge(text, seconds, reply, heard, language=self._language)
            if decision.kind == "resume":
                self._player.resume()
                return Verdict("nothing", text, decision.reason)
            await self._cut(before)
            return Verdict(decision.kind, text, decision.reason)
        if not text:
            return Verdict("nothing", text, "no words")
        if speaker.behind is not None and judge(text, seconds, "", language=self._language).kind == "stop":
            await self._cut_all(turn_id)
            return Verdict("stop", text, "stopped before it was answered")
        behind = speaker.behind
        if behind is None or not self._goes_on_with(behind, speaker):
            return Verdict("turn", text, "a turn")
        reason = f"goes on with {behind.turn_id}, which was cut off too early"
        return Verdict("turn", f"{behind.heard} {text}", reason, behind.turn_id)

    async def _cut(self, answering: Answering) -> None:
        """Ends its reply; returns when as much of it as was heard has been kept."""
        if not answering.over.is_set():
            self._player.stop()
            answering.end("cut")
            await answering.over.wait()

    async def _cut_all(self, turn_id: str) -> None:
        """Ends all replies but that to ``turn_id``, also those that wait; returns when all that was heard has
        been kept. One alone would deadlock: those before it wait for this very turn to be understood."""
        others = [a for a in self._open if a.turn_id != turn_id and not a.over.is_set()]
        self._player.stop()
        for answering in others:
            answering.end("cut")
        for answering in others:
            await answering.over.wait()

    def _goes_on_with(self, behind: Answering, speaker: _Speaker) -> bool:
        unspoken = behind.fate == "open" and not behind.over.is_set() and behind is not self._sounding
        return unspoken and bool(behind.heard) and speaker.start_s - behind.end_s <= REOPEN_S

    # The companion.

    def answers(self, turn_id: str, end_s: float) -> Answering:
        """A turn is to be answered."""
        answering = Answering(turn_id, end_s)
        self._open.append(answering)
        return answering

    async def take(self, answering: Answering) -> bool:
        """Waits until the wearer is silent, then the reply may sound; ``False``: it is gone meanwhile."""
        if await answering.unless_gone(self._free.wait()) is None:
            return False
        self._sounding = answering
        return True

    def answered(self, answering: Answering) -> None:
        """Its reply is over, and kept."""
        answering.over.set()
        self._open.remove(answering)
        if self._sounding is answering:
            self._sounding = None


def _foreseen(reply: str, heard: str) -> str:
    """What the wearer knows of ``reply`` when ``heard`` of it has sounded."""
    return reply if len(reply) - len(heard) <= FORESEEN else heard
