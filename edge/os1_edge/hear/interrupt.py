"""What to do when somebody seems to speak while a reply plays. Pure: data in, a decision and its reason out.

    speech over a reply ─ Onset ─ ignore: our own voice, or too short, or not sure enough
                               └ pause: playback stops at once (about 150 ms after the wearer began)
    what was said       ─ judge ─ resume: "mm-hm", no words, our own words come back
                               ├ stop: "stop", "wait": the reply ends, nothing is answered
                               └ turn: anything else is a turn of its own and ends the reply

The thresholds are measured (docs/decisions/0008-echo.md): own speech through rooms of
0.2-0.5 s, echoes of -6 to -20 dB, 5 to 250 ms late, and a wearer 0 to 15 dB louder than the echo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from os1_edge.events import CHUNK, RATE
from os1_edge.hear.echo import EchoState
from os1_edge.hear.phrases import BACKCHANNELS, FILLERS, HUM, STOPS, matches, only, tokens


@dataclass(frozen=True, slots=True)
class OnsetRules:
    """When speech over a reply is the wearer's; lengths in samples."""

    probability: float = 0.7
    """Speech probability needed while own sound may be in the microphone; otherwise ``TurnRules`` hold."""
    speech: int = 3 * CHUNK
    """96 ms of it in a row, as for any turn: a "stop" of 250 ms holds that twice."""
    kept_db: float = -15.0
    """An echo loses 22 dB and more in the canceller (19 frames of 20), half of the wearer's under 5."""
    untouched_db: float = -5.0
    unsure_probability: float = 0.3
    """What the canceller leaves as it is, is not what is played: then this is enough. It dulls the wearer's
    voice, and Silero doubts it: without this, a wearer 5 dB over the echo is missed one time in six."""


@dataclass(frozen=True, slots=True)
class OnsetDecision:
    """What one frame means for the reply that plays."""

    kind: Literal["ignore", "pause"]
    probability: float
    """The frame's speech probability for the turn detector: 0 where it is own sound, raised to
    ``OnsetRules.probability`` where the canceller vouches for the wearer."""
    reason: str


def own_sound(probability: float, echo: EchoState, rules: OnsetRules = OnsetRules()) -> str | None:
    """Why a frame's speech is taken for the speaker's own; None when it is the wearer's."""
    if not echo.active:
        return None
    untouched = echo.learned and echo.kept_db >= rules.untouched_db
    if probability < (rules.unsure_probability if untouched else rules.probability):
        return f"a speech probability of {probability:.2f} is not enough while something plays"
    if not echo.learned:
        if echo.loud:
            return None
        why = "the canceller still learns the room" if echo.cancelled else "nothing cancels the echo"
        return f"{why}, and this is not louder than an echo may be"
    if echo.kept_db < rules.kept_db:
        return f"the canceller took {-echo.kept_db:.0f} dB away: it is what is played"
    return None


class Onset:
    """Counts the wearer's speech while a reply plays."""

    def __init__(self, rules: OnsetRules = OnsetRules()) -> None:  # frozen
        self._rules = rules
        self._run = 0

    def step(self, samples: int, probability: float, echo: EchoState) -> OnsetDecision:
        """Takes the next frame: its length, speech probability, and what the canceller found in it. Says
        ``pause`` on the frame that completes the wearer's first 96 ms, and on each while they speak on."""
        own = own_sound(probability, echo, self._rules)
        if own is not None:
            self._run = 0
            return OnsetDecision("ignore", 0.0, own)
        if echo.active:
            probability = max(probability, self._rules.probability)
        if probability < self._rules.probability:
            self._run = 0
            return OnsetDecision("ignore", probability, "nobody speaks")
        self._run += samples
        if self._run < self._rules.speech:
            return OnsetDecision(
                "ignore", probability, f"only {self._run * 1000 // RATE} ms of speech so far"
            )
        return OnsetDecision("pause", probability, f"{self._run * 1000 // RATE} ms of the wearer's speech")


@dataclass(frozen=True, slots=True)
class JudgeRules:
    """What may be said under a reply."""

    backchannel_s: float = 1.2
    """Agreement is short: who says "yeah, okay, right" for longer wants the floor."""
    echo_words: int = 3
    """Fewer words than this are never taken for our own: "Friday?" repeats one and is a question."""
    echo_share: float = 0.7
    """Share of the words that must be a run of the reply's."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What speech under a reply was."""

    kind: Literal["resume", "stop", "turn"]
    reason: str


def judge(
    text: str,
    seconds: float,
    reply: str,
    heard: str | None = None,
    *,
    language: str = "auto",
    rules: JudgeRules = JudgeRules(),  # frozen
) -> Verdict:
    """What to do with a paused reply.

    Args:
        text: the transcript of what was said over it; empty when there were no words.
        seconds: length of the speech.
        reply: the whole reply.
        heard: the part of it that was heard; the reply where that is not known. After a question, "yes" is
            an answer; and only what was played can come back as an echo.
        language: code of the language spoken; "auto" or one without tables uses all tables.
    """
    words = tokens(text)
    if not words:
        return Verdict("resume", "a false interruption: no words")
    if (stop := _stops(words, language)) is not None:
        return Verdict("stop", f'"{stop}"')
    played = reply if heard is None else heard
    if only(words, BACKCHANNELS, language, HUM):
        if played.rstrip().endswith(("?", "？")):
            return Verdict("turn", "an answer to the question just asked")
        if seconds <= rules.backchannel_s:
            return Verdict("resume", "a backchannel")
        return Verdict("turn", f"agreement for {seconds:.1f} s wants the floor")
    share = run_share(words, tokens(played))
    question = text.rstrip().endswith(("?", "？")) and "?" not in played
    if len(words) >= rules.echo_words and share >= rules.echo_share and not question:
        return Verdict("resume", f"an echo: {share:.0%} of the words are the reply's own, in order")
    return Verdict("turn", "the wearer says something else")


def _stops(words: list[str], language: str) -> str | None:
    """The stop word, when that is all there is but for polite words and repetition."""
    for rest in (words, [w for w in words if w not in FILLERS]):
        if only(rest, STOPS, language):
            return " ".join(next(matches(rest, 0, STOPS, language)))
    return None


COMPARED = 80
"""Words compared at most on each side: an echo is of the last seconds, and a turn of 30 s holds about 80."""


def run_share(words: list[str], reply: list[str]) -> float:
    """The largest share of ``words`` found in order in one stretch of ``reply``: local alignment, a match
    counts 1, a word too many or another word costs 0.5."""
    words, reply = words[:COMPARED], reply[-COMPARED:]
    if not words:
        return 0.0
    best = 0.0
    above = [0.0] * (len(reply) + 1)
    for word in words:
        row = [0.0]
        for j, other in enumerate(reply):
            same = 1.0 if alike(word, other) else -0.5
            row.append(max(0.0, above[j] + same, above[j + 1] - 0.5, row[j] - 0.5))
        best = max(best, *row)
        above = row
    return best / len(words)


def alike(a: str, b: str) -> bool:
    """Equal, or at most one letter in four another: "umbrella" and "umbrela"."""
    if a == b:
        return True
    longest = max(len(a), len(b))
    return longest >= 4 and abs(len(a) - len(b)) <= longest // 4 and _distance(a, b) <= longest // 4


def _distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]
