"""Plays a reply while it is still being made, and knows at any time what of it has been heard.

::

    add ─► waiting (10 s) ─► handed to the sink, 160 ms ahead ─► begun: told to the listener ─► heard
                             └─ pause and stop take this back ─┘

The sink is some way ahead, so that a loop busy for a tenth of a second is not heard; what is ahead can be
taken back, so that silence comes within one block and one fade (25 ms). A clause is whole when it is added:
when the next one is late, the gap lies between clauses, never inside a word.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace

from os1_edge.clock import Clock
from os1_edge.events import Samples
from os1_edge.speak.heard import NOTHING_HEARD, Heard, Word
from os1_edge.speak.score import Score
from os1_edge.speak.sink import OnPlayed, Outlet, Sink

BLOCK_S = 0.02
"""Sound goes out in blocks of this; one that has begun is played to its end."""

AHEAD_S = 0.16
"""Sound that the sink holds beyond now: longer than the loop is ever busy, short enough to take back."""

WAITING_S = 10.0
"""Speech that may be waiting to be played; who makes more waits."""

LONGEST_HOLD_S = 0.5
"""Longest time that a reply's beginning is held back for its continuation."""

LONGEST_GAP_S = 0.4
"""Silence between two clauses that still sounds like a breath."""

TYPICAL_CLAUSE_S = 3.0
"""Speech of a clause that is not known yet."""

EPSILON_S = 1e-6
"""Session seconds are floats; a block due now must not seem to be due later."""


def hold_s(first_s: float, rtf: float) -> float:
    """Seconds to hold back a first clause of ``first_s`` seconds, so that the next follows without a long
    gap.

    ``rtf`` is the seconds that synthesis takes for a second of speech. A voice faster than speech is hardly
    ever held.
    """
    missing = rtf * TYPICAL_CLAUSE_S - first_s - LONGEST_GAP_S
    return min(max(missing, 0.0), LONGEST_HOLD_S)


class Player:
    """Plays one reply at a time on ``sink``. Use it in the loop that ``clock`` reads.

    ``begin``, any number of ``add``, then ``end``; ``pause``, ``resume`` and ``stop`` at any time. A reply
    ends by ``end`` or ``stop`` only, however long nothing is added. A sink that fails is logged once; the
    reply goes on in time without it, and the next one tries it again. The last reply's ``heard`` is kept
    until ``begin``.
    """

    def __init__(self, sink: Sink, clock: Clock, on_played: OnPlayed | None = None) -> None:
        self._outlet = Outlet(sink, on_played)
        self._clock = clock
        self._reply: _Reply | None = None

    @property
    def speaking(self) -> bool:
        """A reply is open and not paused: it sounds, or would if the next clause were there."""
        return self._reply is not None and not self._reply.over and not self._reply.paused

    @property
    def paused(self) -> bool:
        """A reply is held by ``pause``."""
        return self._reply is not None and not self._reply.over and self._reply.paused

    @property
    def first_heard_at_s(self) -> float | None:
        """Session second at which the first sample of the last reply reached the ear."""
        return self._reply.first_heard_at_s if self._reply is not None else None

    @property
    def played_s(self) -> float:
        """Seconds of the last reply's speech that have begun to sound."""
        return self.heard().seconds

    def begin(self, turn_id: str, revision: int, rtf: float = 0.0) -> None:
        """A reply begins; one still open is stopped. ``rtf``: see ``hold_s``."""
        self.stop()
        self._reply = _Reply(self._outlet, self._clock, (turn_id, revision), rtf)

    async def add(
        self,
        clause: str,
        samples: Samples,
        rate: int,
        words: tuple[Word, ...] | None = None,
        of: tuple[str, int] | None = None,
    ) -> None:
        """Appends a clause; returns when no more than ``WAITING_S`` seconds wait to be played, or the reply
        is stopped.

        ``words`` tell where the words lie, if the voice knows. Without an open reply, or with ``of`` naming
        another ``(turn_id, revision)`` than the open one's, the clause is dropped.
        """
        reply = self._reply
        if reply is None or reply.over or (of is not None and of != reply.of):
            return
        await reply.add(clause, samples, rate, words)

    async def end(self) -> Heard:
        """Returns when all that was added has been heard, or the reply was stopped. Cancelled, it stops."""
        return NOTHING_HEARD if self._reply is None else await self._reply.end()

    def pause(self) -> None:
        """Silence, now; the reply is kept."""
        if self._reply is not None:
            self._reply.pause()

    def resume(self) -> None:
        """Goes on from the beginning of the word that was cut."""
        if self._reply is not None:
            self._reply.resume()

    def stop(self) -> Heard:
        """Silence, now; what has not been heard is dropped."""
        if self._reply is not None:
            self._reply.stop()
        return self.heard()

    def heard(self) -> Heard:
        """What has been heard of the last reply so far."""
        return self._reply.heard() if self._reply is not None else NOTHING_HEARD


@dataclass(slots=True)
class _Block:
    """A block that the sink holds."""

    begin: int
    """Its first sample in the reply."""
    end: int
    at_s: float
    told: Samples = field(repr=False)


class _Reply:
    """One reply being played."""

    def __init__(self, outlet: Outlet, clock: Clock, of: tuple[str, int], rtf: float) -> None:
        self.of = of
        self.paused = False
        self.over = False
        self.first_heard_at_s: float | None = None
        self._outlet = outlet
        self._clock = clock
        self._rtf = rtf
        self._score: Score | None = None
        self._ahead: deque[_Block] = deque()  # bounded by AHEAD_S
        self._free_at = 0.0
        """When the next block may sound."""
        self._begun = 0
        """Samples that have begun to sound, and so will be heard."""
        self._complete = False
        self._final: Heard | None = None
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._done = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def add(self, clause: str, samples: Samples, rate: int, words: tuple[Word, ...] | None) -> None:
        if self._score is None:
            self._score = Score(rate)
            self._outlet.begin(*self.of, rate)
            self._free_at = self._clock.now() + hold_s(len(samples) / rate, self._rtf)
        self._score.add(clause, samples, rate, words)
        self._changed.set()
        while not self.over and self._waiting_s() > WAITING_S:
            self._room.clear()
            await self._room.wait()

    async def end(self) -> Heard:
        self._complete = True
        self._changed.set()
        try:
            await self._done.wait()
        except asyncio.CancelledError:
            self.stop()
            raise
        return self.heard()

    def pause(self) -> None:
        if not self.over and not self.paused:
            self._fall_silent()
            self.paused = True

    def resume(self) -> None:
        if not self.over and self.paused:
            self.paused = False
            if self._score is not None and self._begun:
                self._score.take_up()
            self._changed.set()

    def stop(self) -> None:
        if not self.over:
            self._fall_silent()
            self._close()

    def heard(self) -> Heard:
        if self._final is not None:
            return self._final
        if self._score is None:
            return NOTHING_HEARD
        self._tell_begun()
        return Heard(self._score.heard(self._begun)[0], False, self._begun / self._score.rate)

    # The thread of time.

    async def _run(self) -> None:
        try:
            while not self.over:
                self._changed.clear()
                self._tell_begun()
                self._hand_over()
                if self._waiting_s() <= WAITING_S:
                    self._room.set()
                if self._ahead:
                    await self._clock.sleep_until(self._ahead[0].at_s)
                elif self._complete and not self.paused and not self._waiting_s():
                    sounds_until = self._free_at + self._outlet.latency_s
                    if self._clock.now() + EPSILON_S >= sounds_until:
                        self._close()
                    else:
                        await self._clock.sleep_until(sounds_until)
                elif self._waiting_s() and not self.paused:  # held back
                    await self._clock.sleep_until(self._free_at)
                else:
                    await self._changed.wait()
        finally:
            self.over = True
            self._room.set()
            self._done.set()

    def _waiting_s(self) -> float:
        """Seconds of speech that the sink has not got yet."""
        return 0.0 if self._score is None else (self._score.length - self._score.position) / self._score.rate

    def _hand_over(self) -> None:
        """Keeps the sink ``AHEAD_S`` ahead."""
        if self._score is None or self.paused:
            return
        now = self._clock.now()
        most = round(BLOCK_S * self._score.rate)
        # When nothing was ready, or the loop was busy for longer than the sink was ahead, there was a gap.
        while (at_s := max(self._free_at, now)) < now + AHEAD_S:
            block, told = self._score.take(most)
            if not len(block):
                return
            self._free_at = at_s
            self._write(block, told)

    def _write(self, block: Samples, told: Samples) -> None:
        assert self._score is not None
        at_s, end = self._free_at, self._score.position
        if self.first_heard_at_s is None:
            self.first_heard_at_s = at_s + self._outlet.latency_s
        self._outlet.write(block, at_s)
        self._ahead.append(_Block(end - len(block), end, at_s, told))
        self._free_at = at_s + len(block) / self._score.rate

    def _tell_begun(self) -> None:
        """A block whose time has come is as good as heard."""
        now = self._clock.now()
        while self._ahead and self._ahead[0].at_s <= now + EPSILON_S:
            self._note_begun(self._ahead.popleft())

    def _note_begun(self, block: _Block) -> None:
        assert self._score is not None
        self._begun = max(self._begun, block.end)
        self._score.forget(self._begun)
        self._outlet.tell(block.told, block.at_s + self._outlet.latency_s)

    def _fall_silent(self) -> None:
        """Takes back what has not begun, and lets the sound die away."""
        self._tell_begun()
        if self._score is None or not self._ahead:
            return
        first = self._ahead[0]
        self._ahead.clear()
        self._score.go_back(first.begin)
        self._free_at = first.at_s
        self._outlet.drop(first.at_s)
        if not self._begun:
            self.first_heard_at_s = None
            return
        self._write(*self._score.take_fading())
        self._note_begun(self._ahead.pop())

    def _close(self) -> None:
        self.over = True
        heard = self.heard()
        file, all_words = None, True
        if self._score is not None:
            file = self._outlet.end()
            all_words = self._score.heard(self._begun)[1]
        # Stopped after the last word, when nothing more was to come: then nothing is missing.
        self._final = replace(heard, whole=all_words and self._complete, file=file)
        self._score = None
        self._changed.set()
        self._room.set()
        self._done.set()
