"""The one stage that every microphone frame passes before anything listens: here mute is real.

    microphone → [muted? gone] → echo canceller, noise suppression, gain → gate (wake word, button) → VAD

Nothing downstream ever holds the microphone itself, so a frame that this stage keeps back does not exist for
the rest of the system: no detector, no recording, no log sees it. Time is counted in samples; a stage that
must buffer takes its delay off each frame's ``start``, so indices stay those of the microphone.

All methods are for one thread (the event loop); a step costs well under a millisecond.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from os1_edge.events import CHUNK, RATE, AudioFrame, Samples
from os1_edge.hear.echo import NO_ECHO, EchoState


class Canceller(Protocol):
    """What takes the speaker's own sound out of the microphone's; see ``echo.EchoCanceller``."""

    state: EchoState

    def played(self, samples: Samples, rate: int, at_sample: int) -> None: ...

    def clean(self, frame: AudioFrame) -> AudioFrame: ...

    def reset(self) -> None: ...


class Spotter(Protocol):
    """What notices the wake word; see ``wake.WakeWord``."""

    def heard(self, frame: AudioFrame) -> bool: ...

    def reset(self) -> None: ...


Reason = Literal["muted", "unmuted", "held", "released", "woken", "asleep"]


@dataclass(frozen=True, slots=True)
class GateChange:
    """From here on frames pass, or no longer do."""

    passing: bool
    at: int
    """Sample index of the first frame that passes, or of the first that does not."""
    reason: Reason
    discard: bool = False
    """An open turn is thrown away, with all its audio (mute). Otherwise it ends here and is answered."""


@dataclass(frozen=True, slots=True)
class CaptureRules:
    """Which gates there are; lengths in samples."""

    push_to_talk: bool = False
    """Frames pass only while the button is held."""
    awake: int = 8 * RATE
    """Frames pass for 8 s after the wake word, or after whoever kept the gate open last."""
    wake_pre_roll: int = 3 * RATE // 10
    """Audio (0.3 s) from before the wake word was noticed: the spotter is up to 0.25 s late, and people speak
    on 50 ms after it (linux-voice-assistant#117)."""
    hold_pre_roll: int = 2 * RATE // 10
    """Audio (0.2 s) from before the button: people press as they begin."""
    chime_tail: int = RATE // 10
    """A chime rings on in the room for 0.1 s."""


class Capture:
    """Takes the microphone's frames, gives those that may be heard."""

    def __init__(
        self,
        rules: CaptureRules = CaptureRules(),  # frozen
        echo: Canceller | None = None,
        wake: Spotter | None = None,
        changed: Callable[[GateChange], None] = lambda change: None,
    ) -> None:
        """``changed`` is told of every change of what passes; it must return at once."""
        self._rules = rules
        self._echo = echo
        self._wake = wake
        self._changed = changed
        self._muted = False
        self._held = False
        self._open_until = 0
        """The wake word's gate is open up to this sample."""
        self._next = 0
        """Index after the newest sample seen."""
        self._passing = not (rules.push_to_talk or wake)
        self._blank = (0, 0)
        """Samples in which an own chime sounds that no canceller takes out."""
        longest = max(rules.wake_pre_roll, rules.hold_pre_roll)
        self._kept: deque[AudioFrame] = deque(maxlen=-(-longest // CHUNK) + 1)
        """What a gate that opens lets out first; nothing is kept while muted."""

    @property
    def muted(self) -> bool:
        """Whether no frame passes until ``unmute``."""
        return self._muted

    @property
    def passing(self) -> bool:
        """Whether the next frame would pass."""
        return self._passing

    @property
    def echo(self) -> EchoState:
        """What the canceller found in the newest frame; inactive where there is none."""
        return NO_ECHO if self._echo is None else self._echo.state

    def mute(self) -> None:
        """From now on no frame leaves; what is buffered inside is dropped, what a turn holds is to be."""
        if self._muted:
            return
        self._muted = True
        self._forget()
        self._open_until = 0
        self._passing = False
        self._changed(GateChange(False, self._next, "muted", discard=True))

    def unmute(self) -> None:
        """Frames pass again, as far as the other gates let them."""
        if not self._muted:
            return
        self._muted = False
        self._settle("unmuted")

    def hold(self) -> None:
        """The push-to-talk button goes down."""
        self._held = True
        self._settle("held")

    def release(self) -> None:
        """The button comes up; a turn spoken while it was down ends."""
        self._held = False
        self._settle("released")

    def stay_open(self) -> None:
        """Somebody speaks, or a reply plays, or has just ended: the wake word's gate, if it is open, stays
        open for the whole of ``rules.awake`` from now on, so that no turn is cut and a follow-up needs no
        wake word."""
        if self._next < self._open_until:
            self._open_until = self._next + self._rules.awake

    def played(self, samples: Samples, rate: int, at_sample: int) -> None:
        """What the speaker plays, in the order it goes out; see ``EchoCanceller.played``."""
        if self._echo is not None:
            self._echo.played(samples, rate, at_sample)

    def chime(self, samples: Samples, rate: int, at_sample: int) -> None:
        """Like ``played``, for a chime: without a canceller its span is silenced, as it must never be taken
        for speech (linux-voice-assistant#332)."""
        self.played(samples, rate, at_sample)
        if self._echo is None:
            length = len(samples) * RATE // rate + self._rules.chime_tail
            self._blank = (at_sample, at_sample + length)

    def step(self, frame: AudioFrame) -> tuple[AudioFrame, ...]:
        """Takes the next frame; returns those that may be heard now, in order. Usually one or none; more
        when a gate opens, and lets out what was said as it did."""
        jumped = frame.start != self._next
        self._next = frame.start + len(frame.samples)
        if self._muted:
            return ()
        if jumped:
            self._forget()
        frame = self._silenced(frame)
        if self._echo is not None:
            frame = self._echo.clean(frame)
        woken = self._wake is not None and self._wake.heard(frame)
        if woken:
            self._open_until = self._next + self._rules.awake
        self._kept.append(frame)
        self._settle("woken" if woken else "asleep")
        if not self._passing:
            return ()
        out = tuple(self._kept)
        self._kept.clear()
        return out

    async def frames(self, microphone: AsyncIterator[AudioFrame]) -> AsyncIterator[AudioFrame]:
        """``step`` over a whole stream."""
        async for frame in microphone:
            for heard in self.step(frame):
                yield heard

    def _settle(self, reason: Reason) -> None:
        """Opens or closes the gate as its inputs now stand, and tells of it."""
        rules = self._rules
        gated = rules.push_to_talk or self._wake is not None
        passing = not self._muted and (not gated or self._held or self._next < self._open_until)
        if passing == self._passing:
            return
        self._passing = passing
        if passing:
            pre_roll = {"woken": rules.wake_pre_roll, "held": rules.hold_pre_roll}.get(reason, 0)
            # The frame in hand, where there is one, is the last of those kept.
            before = self._newest() - pre_roll
            while self._kept and self._kept[0].start + len(self._kept[0].samples) <= before:
                self._kept.popleft()
        at = self._kept[0].start if self._kept else self._next
        self._changed(GateChange(passing, at, reason))

    def _newest(self) -> int:
        """Index after the newest sample that is kept; an echo canceller's delay behind the microphone."""
        return self._kept[-1].start + len(self._kept[-1].samples) if self._kept else self._next

    def _forget(self) -> None:
        """Drops all audio that is inside."""
        self._kept.clear()
        if self._echo is not None:
            self._echo.reset()
        if self._wake is not None:
            self._wake.reset()

    def _silenced(self, frame: AudioFrame) -> AudioFrame:
        first, last = (min(max(0, at - frame.start), len(frame.samples)) for at in self._blank)
        if first >= last:
            return frame
        samples = frame.samples.copy()
        samples[first:last] = 0.0
        return AudioFrame(frame.start, samples)
