"""Takes the speaker's own voice out of the microphone: WebRTC's audio processing module, in this process.

The module (``livekit``'s ``rtc.apm``: AEC3, and optionally noise suppression and gain) works on 10 ms of
16-bit sound. This wrapper keeps the far end on the session's sample clock, reframes 512 samples to 160 and
back, and takes the delay of it all off each frame's ``start``. While nothing has been played for a while,
frames pass unprocessed with the same delay, at no cost; what was learned of the room is kept.
"""

from __future__ import annotations

import importlib.util
import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from os1_edge.events import CHUNK, RATE, AudioFrame, Samples
from os1_edge.hear.farend import FarEnd

log = logging.getLogger(__name__)

BLOCK = RATE // 100
"""What the module takes at once: 10 ms."""

REFRAMING = 128
"""512 k samples hold up to 128 more than whole blocks: with so many in hand each frame in gives one out."""

CANCELLER_DELAY = 128
NOISE_DELAY = 96
"""Samples by which AEC3 and the noise suppressor delay the sound (measured by cross-correlation)."""

RING_OUT = RATE
"""After the last sound played the canceller works on for 1 s: up to 0.3 s until the microphone hears it, and
the room."""

PRIMED = 5 * BLOCK
"""When the module is to work again, it is given the 50 ms before first: they push out what it still holds,
and let its filters settle."""

LEARNING_S = 1.5
"""Played sound in which the canceller has not found the room yet: it lets some echo through, and mutes the
wearer. All false starts measured fell within the first 1.4 s; LiveKit ignores the first 3 s of each reply."""

LOUD_DB = -2.0
"""So much against what is played is no echo, which comes back at -6 dB or less: it is the wearer."""

FADE: Samples = ((np.arange(BLOCK) + 0.5) / BLOCK).astype(np.float32)

SILENT_DB = -100.0


@dataclass(frozen=True, slots=True)
class EchoState:
    """What the canceller found in one frame. Levels in dB of full scale, -100 for silence."""

    active: bool
    """Whether own sound may be in the microphone: something is played, or was until a moment ago."""
    cancelled: bool = False
    """Whether a canceller worked on this frame; without one the levels say nothing."""
    mic_db: float = SILENT_DB
    """What came in."""
    clean_db: float = SILENT_DB
    """What is left of it."""
    reference_db: float = SILENT_DB
    """The loudest 32 ms of what was played in the last 0.4 s."""
    learned_s: float = 0.0
    """Seconds of played sound that the canceller has heard so far: how far it has converged."""

    @property
    def learned(self) -> bool:
        """Whether the canceller can tell an echo from the wearer."""
        return self.cancelled and self.learned_s >= LEARNING_S

    @property
    def loud(self) -> bool:
        """Whether the frame is louder than an echo can be."""
        return self.mic_db - self.reference_db >= LOUD_DB

    @property
    def kept_db(self) -> float:
        """How much of the frame's sound is left, in dB: near 0 for the wearer, far below for an echo."""
        return self.clean_db - self.mic_db


NO_ECHO = EchoState(active=False)


class NoCanceller(Exception):
    """The library that cancels echo is not there; the message says how to get it."""


def problem() -> str | None:
    """Why echo cannot be cancelled here; None when it can. Loads nothing."""
    try:
        found = importlib.util.find_spec("livekit.rtc") is not None
    except ImportError:
        found = False
    return None if found else "livekit is not installed: pip install 'livekit>=1.2'"


class EchoMeter:
    """Stands in where nothing cancels: frames pass as they are, but what is played is known, so that the
    guard against own speech (``interrupt.own_sound``) can weigh the microphone's level against it."""

    delay = 0

    def __init__(self, delay_ms: int = 0) -> None:
        """``delay_ms``: as for ``EchoCanceller``."""
        self._far = FarEnd(round(delay_ms * RATE / 1000))
        self.state = NO_ECHO
        """What was found in the newest frame."""

    def reset(self) -> None:
        """Nothing of the microphone is inside."""

    def relearn(self) -> None:
        """There is nothing to learn."""

    def played(self, samples: Samples, rate: int, at_sample: int) -> None:
        """See ``EchoCanceller.played``."""
        self._far.add(samples, rate, at_sample)

    def clean(self, frame: AudioFrame) -> AudioFrame:
        """The frame itself."""
        self.state = NO_ECHO
        if self._far.sounded_until + RING_OUT > frame.start:
            level = level_db(np.nan_to_num(frame.samples, nan=0.0, posinf=0.0, neginf=0.0))
            self.state = EchoState(True, False, level, level, self._far.level_before(frame.start + CHUNK))
        return frame


class EchoCanceller:
    """One microphone's echo canceller. For one thread; deterministic."""

    def __init__(
        self,
        *,
        echo_cancellation: bool = True,
        noise_suppression: bool = False,
        gain_control: bool = False,
        delay_ms: int = 0,
    ) -> None:
        """``delay_ms``: known time from ``played``'s ``at_sample`` until the microphone hears it; AEC3 finds
        what is missing up to 0.5 s by itself.

        Raises:
            NoCanceller: ``livekit`` is not installed, or not for this machine.
        """
        if (reason := problem()) is not None:
            raise NoCanceller(reason)
        try:
            from livekit.rtc.apm import AudioProcessingModule
            from livekit.rtc.audio_frame import AudioFrame as ApmFrame

            self._apm: Any = AudioProcessingModule(
                echo_cancellation=echo_cancellation,
                noise_suppression=noise_suppression,
                auto_gain_control=gain_control,
            )
        except (ImportError, OSError) as e:
            raise NoCanceller(f"livekit does not load: {str(e).splitlines()[0]}") from e
        self._frame: Any = lambda data: ApmFrame(data, RATE, 1, BLOCK)
        self._cancels = echo_cancellation
        self._always = noise_suppression or gain_control
        self._far = FarEnd(round(delay_ms * RATE / 1000))
        self._module_delay = CANCELLER_DELAY * echo_cancellation + NOISE_DELAY * noise_suppression
        self.delay = REFRAMING + self._module_delay
        """Samples by which a cleaned frame lies behind the frame given."""
        self.state = EchoState(active=False)
        """What was found in the newest frame."""
        self._learned = 0
        self.reset()

    def reset(self) -> None:
        """Drops all sound of the microphone that is inside, for a gap or mute; the room stays learned."""
        self._next: int | None = None
        self._in = np.zeros(0, np.float32)
        self._out = np.zeros(REFRAMING, np.float32)
        """Cleaned samples that wait for a whole frame; at most a frame and a block."""
        self._late = np.zeros(self._module_delay, np.float32)
        """For unprocessed sound: what the module would still hold back."""
        self._raw = np.zeros(self.delay, np.float32)
        """The microphone's sound of which the cleaned frame has not come yet."""
        self._working = False
        self._loud = False
        self._before = np.zeros(PRIMED, np.float32)
        """The newest whole blocks."""

    def relearn(self) -> None:
        """The microphone or the speaker was opened anew: what was learned of their delay may be wrong."""
        self._learned = 0

    def played(self, samples: Samples, rate: int, at_sample: int) -> None:
        """The far end as it goes out: mono float32 ``samples`` at ``rate``, the first of which sounds at
        session sample ``at_sample`` (16 kHz). Call it before the microphone's frame of that time, in order,
        in blocks of any length up to 4 s; blocks that follow each other within 8 ms are one stream."""
        self._far.add(samples, rate, at_sample)

    def clean(self, frame: AudioFrame) -> AudioFrame:
        """The microphone's next frame without own sound; ``delay`` samples earlier than ``frame``."""
        if self._next is not None and frame.start != self._next:
            self.reset()
        self._next = frame.start + len(frame.samples)
        active = self._far.sounded_until + RING_OUT > frame.start
        samples = np.nan_to_num(frame.samples, nan=0.0, posinf=0.0, neginf=0.0).astype(np.float32)
        first = frame.start - len(self._in)
        heard = np.concatenate([self._in, samples])
        whole = len(heard) // BLOCK * BLOCK
        self._in = heard[whole:]
        process = self._always or (self._cancels and active)
        done = [self._block(heard[i : i + BLOCK], first + i, process) for i in range(0, whole, BLOCK)]
        ready = np.concatenate([self._out, *done])
        self._out = ready[CHUNK:]
        clean = AudioFrame(frame.start - self.delay, ready[:CHUNK])
        raw = np.concatenate([self._raw, samples])
        self._raw = raw[CHUNK:]
        self._note(raw[:CHUNK], clean.samples, frame.start, active)
        loud = self.state.cancelled and not self.state.learned and self.state.loud
        was, self._loud = self._loud, loud
        if not (loud or was):
            return clean
        # While it learns, the module mutes nearly all; what is too loud for an echo passes as it is.
        given, before = (raw[:CHUNK], clean.samples) if loud else (clean.samples, raw[:CHUNK])
        if loud != was:
            given = given.copy()
            given[:BLOCK] = before[:BLOCK] + (given[:BLOCK] - before[:BLOCK]) * FADE
        return AudioFrame(clean.start, given)

    def _block(self, block: Samples, start: int, process: bool) -> Samples:
        late = np.concatenate([self._late, block])
        self._late = late[BLOCK:]
        late = late[:BLOCK]
        was, self._working = self._working, process
        if process and not was:
            for i in range(0, PRIMED, BLOCK):
                self._run(self._before[i : i + BLOCK], start - PRIMED + i)
        self._before = np.concatenate([self._before, block])[BLOCK:]
        if not process and not was:
            return late
        done = self._run(block, start)
        if process == was:
            return done
        # The module's filters turn the phase a little: without a cross-fade, each change would click.
        before, after = (late, done) if process else (done, late)
        return before + (after - before) * FADE

    def _run(self, block: Samples, start: int) -> Samples:
        if self._cancels:
            reference = self._far.read(start, BLOCK)
            self._learned += BLOCK * bool(np.any(np.abs(reference) > 1e-3))
            self._apm.process_reverse_stream(self._frame(_pcm(reference)))
            self._apm.set_stream_delay_ms(0)
        data = _pcm(block)
        self._apm.process_stream(self._frame(data))
        return np.frombuffer(data, np.int16).astype(np.float32) / np.float32(32768)

    def _note(self, mic: Samples, clean: Samples, start: int, active: bool) -> None:
        if not active:
            self.state = EchoState(active=False, learned_s=self._learned / RATE)
            return
        self.state = EchoState(
            active=True,
            cancelled=self._cancels,
            mic_db=level_db(mic),
            clean_db=level_db(clean),
            reference_db=self._far.level_before(start + CHUNK),
            learned_s=self._learned / RATE,
        )


def canceller(
    *, echo_cancellation: bool = True, noise_suppression: bool = False, gain_control: bool = False
) -> EchoCanceller | EchoMeter:
    """What the settings ask for, as far as it can be had here; says once in the log what cannot."""
    if not (echo_cancellation or noise_suppression or gain_control):
        return EchoMeter()
    try:
        return EchoCanceller(
            echo_cancellation=echo_cancellation,
            noise_suppression=noise_suppression,
            gain_control=gain_control,
        )
    except NoCanceller as e:
        log.warning("no echo cancellation: only loud speech interrupts a reply (%s)", e)
        return EchoMeter()


def level_db(samples: Samples) -> float:
    """Level of ``samples`` (at least one) in dB of full scale: -100 for silence."""
    return float(10 * np.log10(np.mean(np.square(samples, dtype=np.float64)) + 1e-10))


def _pcm(samples: Samples) -> bytearray:
    return bytearray(np.round(np.clip(samples, -1.0, 1.0) * 32767).astype(np.int16).tobytes())
