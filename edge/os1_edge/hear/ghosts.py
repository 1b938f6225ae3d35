"""What a recogniser writes where nobody speaks, and how to tell it from speech. Pure.

Sources: whisper.cpp#1724, #1592, #1507 (silence), WhisperLive#185 ("Thanks for watching"), whisper.cpp#412,
#3744 (repetition loops).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numpy as np

from os1_edge.events import Samples

QUIET = 0.001
"""Peak (-60 dBFS) under which there is no sound to transcribe: a microphone's own noise is louder."""

WEAK = -1.0
"""Mean log probability under which the words are weakly supported by the sound."""

WORDS_A_SECOND = 9.0
"""More than a mouth can say; an auctioneer reaches six or seven."""

BREATH_S = 0.6
"""Seconds allowed over the count of words: times from Whisper are coarse."""

REPEATS = 5
"""A phrase this often in a row is a loop; people say "no no no no"."""

NON_SPEECH = re.compile(r"\[[^\]]*\]?|\([^)]*\)?|\*[^*]*\*?|[♪♫][^♪♫]*[♪♫]?|<\|[^|]*\|>")
"""Tags such as [Music] or (wind blowing) that Whisper writes where nobody speaks; an open one goes on to the
end."""

GHOSTS = re.compile(
    r"""(?x) ^(?:
      (?:thanks?|thank\ you)(?:\ (?:you\ )?(?:so|very)\ much)?\ for\ (?:watching|viewing|listening)(?:\ .*)?
    | (?:please\ )?(?:don't\ forget\ to\ )?(?:like\ and\ )?subscribe(?:\ .*)?
    | (?:i'll\ )?see\ you\ (?:in\ the\ next|next)\ (?:video|time|one|episode)
    | (?:subtitles?|captions?|captioning|transcription|transcribed|translated|untertitel|sous\ titres)
      (?:\ .*)?\ (?:by|von|par|der|des|im)(?:\ .*)?
    | (?:.*\ )?amara\ ?org(?:\ .*)?
    | you | bye | bye\ bye | thank\ you(?:\ (?:so|very)\ much)? | thanks | okay | uh | the | so | and
    | beep(?:\ beep)* | music | silence | applause | blank\ audio
    )$"""
)
"""Whole utterances that Whisper learnt from the ends of videos. Real people say some of them, so they
are dropped only where the sound supports them weakly."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a transcript."""

    seconds: float
    """Length of the audio that it stands for."""
    confidence: float | None = None
    """Mean log probability of its words; None where the engine does not tell."""
    speech_share: float | None = None
    """Share of the audio that voice activity detection called speech; None where it was not asked."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a transcript is kept, and why."""

    kept: bool
    reason: str


def clean(text: str) -> str:
    """The words of a transcript, without non-speech tags; empty when only marks are left."""
    words = " ".join(NON_SPEECH.sub(" ", text).split())
    return words if any(c.isalnum() for c in words) else ""


def too_quiet(audio: Samples) -> bool:
    """Whether there is no sound at all in ``audio`` (shape (n,))."""
    return len(audio) == 0 or float(np.abs(audio).max()) < QUIET


def judge(text: str, evidence: Evidence) -> Verdict:
    """Whether ``text``, already clean, was said."""
    plain = _plain(text)
    words = plain.split()
    if not words:
        return Verdict(False, "no words")
    if _repeats(words):
        return Verdict(False, f"a phrase {REPEATS} times or more in a row")
    if len(words) > WORDS_A_SECOND * (evidence.seconds + BREATH_S):
        return Verdict(False, f"{len(words)} words in {evidence.seconds:.1f} s")
    if GHOSTS.match(plain) and _weak(evidence):
        return Verdict(False, "known to be written over noise, and the sound hardly supports it")
    return Verdict(True, "said")


def _weak(evidence: Evidence) -> bool:
    unsure = evidence.confidence is not None and evidence.confidence < WEAK
    unvoiced = evidence.speech_share is not None and evidence.speech_share < 0.1
    return unsure or unvoiced


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    return " ".join("".join(c if c.isalnum() or c == "'" else " " for c in folded).split())


def _repeats(words: list[str]) -> bool:
    for size in range(1, len(words) // REPEATS + 1):
        run = 0
        for i in range(size, len(words)):
            run = run + 1 if words[i] == words[i - size] else 0
            if run >= size * (REPEATS - 1):
                return True
    return False
