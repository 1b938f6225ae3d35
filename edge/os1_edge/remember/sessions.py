"""Conversations: runs of turns with no long silence in between (paper 3.2.3, conversation summary). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from os1_edge.remember.rows import WEARER, StoredTurn, seconds
from os1_edge.remember.wording import sentences

GAP_S = 1200.0
"""Idle time after which a new conversation begins; as ``converse.session_gap_s``."""

LONGEST_S = 6 * 3600.0
"""A conversation that goes on for longer is summarised in parts."""

SUMMARY_SENTENCES = 4
"""Sentences of a summary made without a language model."""

SUMMARY_CHARS = 600
"""And its letters."""

_SMALL_TALK = re.compile(
    r"(?:(?:good (?:morning|evening|night|afternoon)|hello|hi|hey|bye|goodbye|thanks|thank you|ok|okay|yes|no"
    r"|please|well|sure|right|great|cool|fine|all right|see you(?: later)?)\b[ ,.!?]*)+",
    re.I,
)
_QUESTION = re.compile(r"\?\s*$")


def session_of(
    last: StoredTurn | None, first_time: datetime | None, time: datetime, origin: str, gap_s: float = GAP_S
) -> str:
    """The session id of a turn at ``time``.

    Args:
        last: the newest turn there is.
        first_time: when the session of ``last`` began.
        time: the new turn's.
        origin: names the run: the same recording may be lived twice.
        gap_s: the longest silence within a session.

    Returns:
        That of ``last``, or a new one when the silence was longer, or time went back (another recording).
    """
    if last is not None and last.session_id and first_time is not None:
        silence = seconds(time) - seconds(last.time)
        lasted = seconds(time) - seconds(first_time)
        if 0 <= silence <= gap_s and lasted <= LONGEST_S:
            return last.session_id
    return f"{time:%Y%m%dT%H%M%S}-{origin[:6]}"


def extract(turns: Sequence[StoredTurn]) -> str:
    """A summary without a language model: the wearer's most telling sentences, in the order they were said.

    A sentence tells the more, the more content words it has that the conversation comes back to; questions
    and greetings tell little. Empty where nothing but small talk was said.
    """
    lines = [
        (i, " ".join(sentence.split()))
        for i, turn in enumerate(turns)
        if turn.speaker == WEARER
        for sentence in sentences(turn.heard)
        if sentence.strip() and not small_talk(sentence)
    ]
    if not lines:
        return ""
    count: dict[str, int] = {}
    for _, sentence in lines:
        for word in content_words(sentence):
            count[word] = count.get(word, 0) + 1

    def weight(sentence: str) -> float:
        words = content_words(sentence)
        told = sum(count[word] for word in words) / (len(words) or 1) ** 0.5
        return float(told * (0.5 if _QUESTION.search(sentence) else 1.0))

    ranked = sorted(range(len(lines)), key=lambda n: (-weight(lines[n][1]), n))
    chosen, seen, letters = [], set(), 0
    for n in ranked:
        text = lines[n][1]
        if text.casefold() in seen or letters + len(text) > SUMMARY_CHARS:
            continue
        seen.add(text.casefold())
        letters += len(text)
        chosen.append(n)
        if len(chosen) == SUMMARY_SENTENCES:
            break
    said = " ".join(_ended(lines[n][1]) for n in sorted(chosen))
    return f"The wearer said: {said}" if said else ""


def small_talk(text: str) -> bool:
    """Whether ``text`` is a greeting, thanks or the like and nothing else."""
    return _SMALL_TALK.fullmatch(text.strip()) is not None


def _ended(sentence: str) -> str:
    return sentence if sentence[-1] in ".!?" else f"{sentence}."


_STOP = frozenset(
    """a about after again all also am an and any are as at be because been before being but by can could
    did do does doing don down for from further get got had has have having he her here hers him his
    how i if in into is it its just know let like ll m me more most my no nor not now of off ok okay
    on once one only or other our out over own please re really s said same say she should so some
    such t tell than that the their them then there these they thing things this those through to too
    under until up us ve very was we well were what when where which while who why will with would yes
    you your""".split()  # noqa: SIM905
)


def content_words(text: str) -> list[str]:
    """The words that carry meaning, in lower case, in order, each once."""
    return list(dict.fromkeys(w for w in re.findall(r"[^\W\d_]{2,}", text.casefold()) if w not in _STOP))
