"""The sound of one reply, clause behind clause, handed out in blocks. Pure; no time in it."""

from __future__ import annotations

import numpy as np
import soxr

from os1_edge.events import RATE, Samples
from os1_edge.speak.heard import UNSURE_S, ClauseHeard, Word, guess_words, heard_text, resume_at

FADE_S = 0.005
"""Sound that is cut or taken up inside a word swells over this; a hard edge clicks."""


class Score:
    """Clauses of one reply. A clause's sound is dropped when it has been played; the words stay until the
    reply is over, and a reply's words are bounded by who writes it."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.length = 0
        """Samples added so far."""
        self.position = 0
        """The next sample to hand out."""
        self._clauses: list[ClauseHeard] = []
        self._sound: dict[int, tuple[Samples, Samples]] = {}
        """Clause number -> its sound at ``rate`` and at 16 kHz, for the clauses not yet played."""
        self._swell = False

    def add(self, text: str, samples: Samples, rate: int, words: tuple[Word, ...] | None = None) -> None:
        """Appends a clause: mono float32 at any ``rate``. Samples that are not numbers become silence."""
        samples = np.clip(np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0)
        found = words if words is not None else guess_words(text, samples)
        if rate != self.rate:
            scale = self.rate / rate
            found = tuple(Word(w.text_end, round(w.begin * scale), round(w.end * scale)) for w in found)
            samples = _resampled(samples, rate, self.rate)
        length = len(samples)
        found = tuple(Word(w.text_end, min(w.begin, length), min(w.end, length)) for w in found)
        found = found or (Word(len(text), 0, length),)
        unsure = 0 if words is not None else round(UNSURE_S * self.rate)
        self._sound[len(self._clauses)] = samples, _resampled(samples, self.rate, RATE)
        self._clauses.append(ClauseHeard(text, found, self.length, self.length + length, unsure))
        self.length += length

    def take(self, most: int) -> tuple[Samples, Samples]:
        """The next block: at most ``most`` samples, and the same sound at 16 kHz. Empty at the end.

        A block never reaches over a clause's end, and shorter ones only stand there.
        """
        number = next((i for i in sorted(self._sound) if self.position < self._clauses[i].end), None)
        if number is None:
            return np.zeros(0, np.float32), np.zeros(0, np.float32)
        clause, (sound, reference) = self._clauses[number], self._sound[number]
        begin = self.position - clause.begin
        end = min(begin + most, len(sound))
        self.position = clause.begin + end
        low, high = round(begin * RATE / self.rate), round(end * RATE / self.rate)
        block, told = sound[begin:end], reference[low:high]
        if self._swell:
            self._swell = False
            block, told = _faded(block, self.rate, rising=True), _faded(told, RATE, rising=True)
        return block, told

    def take_fading(self) -> tuple[Samples, Samples]:
        """The next few milliseconds, dying away: what follows when the sound is cut."""
        block, told = self.take(round(FADE_S * self.rate))
        return _faded(block, self.rate, rising=False), _faded(told, RATE, rising=False)

    def forget(self, position: int) -> None:
        """The sound before ``position`` has been played; clauses that lie before it are let go."""
        for i in [i for i in self._sound if self._clauses[i].end <= position]:
            del self._sound[i]

    def go_back(self, position: int) -> None:
        """The next sample to hand out is ``position``, one not forgotten."""
        self.position = position

    def take_up(self) -> None:
        """Goes back to the beginning of the word that was cut; its sound swells up."""
        self.position = resume_at(self._clauses, self.position)
        self._swell = True

    def heard(self, position: int) -> tuple[str, bool]:
        """The words heard when the sound up to ``position`` was, and whether those are all added so far."""
        return heard_text(self._clauses, position)


def _resampled(samples: Samples, rate: int, to: int) -> Samples:
    if rate == to or not len(samples):
        return samples
    return np.asarray(soxr.resample(samples, rate, to), np.float32)


def _faded(samples: Samples, rate: int, *, rising: bool) -> Samples:
    out = samples.copy()
    n = min(len(out), round(FADE_S * rate))
    ramp = np.linspace(0.0, 1.0, n, dtype=np.float32)
    if rising:
        out[:n] *= ramp
    elif n:
        out[len(out) - n :] *= ramp[::-1]
    return out
