"""What becomes of the profile when something is stated of the wearer (paper 3.2.4). Pure.

The paper takes the nearest line above a similarity threshold and lets a model's revision replace it. Here a
line is never replaced: it is said again (surer), made richer or ended by its contrary (superseded, kept as
history with its dates), or it stands beside the new one. Why each was decided is told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from os1_edge.remember.contradict import ambiguous, ends
from os1_edge.remember.rows import MadeBy, ProfileEntry, seconds
from os1_edge.remember.statements import Statement, asserts, statements
from os1_edge.remember.wording import sentences

SAME = 0.9
"""Cosine similarity above which two lines may say the same thing."""

STATED = 0.8
"""Confidence of something that the wearer said once."""

INFERRED = 0.5
"""Confidence of what a model read out of a conversation, or a habit out of the days, once."""

KINDS = ("personality", "preference", "social background", "habit", "health")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that a language model proposes, with the wearer's words that it claims to rest on."""

    kind: str
    text: str
    quote: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is to be done to the profile, and why."""

    reason: str
    kind: str = ""
    text: str = ""
    """The new line; empty: none."""
    confidence: float = STATED
    evidence: int = 1
    reinforces: int | None = None
    """The entry that was said again in its own words: only its confidence and evidence grow."""
    supersedes: tuple[int, ...] = ()
    """Entries that end with this lesson."""
    was_true_until: datetime | None = None
    """The new line is news of the past: what ended it is known already."""


def propose(utterance: str) -> list[Statement]:
    """The profile lines that ``utterance`` states."""
    return [statement for statement in statements(utterance) if not statement.only_ends]


def judge(
    statement: Statement,
    time: datetime,
    profile: Sequence[ProfileEntry],
    near: Sequence[tuple[ProfileEntry, float]],
    *,
    made_by: MadeBy = "rule",
    resting_on_it: Collection[int] = (),
) -> Lesson:
    """Decides what ``statement``, made at ``time``, teaches.

    Args:
        statement: what was stated.
        time: when.
        profile: the profile as it stands.
        near: its entries nearest in meaning, with their cosine similarity.
        made_by: "llm" for a model's reading; that never ends what the wearer stated.
        resting_on_it: entries that rest on the same source already: it is no new evidence for them.
    """
    over = {
        e.id: (e, reason)
        for e in profile
        if (reason := denied(statement, e.text) or ends(statement.text, e.text, statement.words))
    }
    if len(over) > 1 and ambiguous(statement.text):
        over = {}  # which of them was meant was not said
    if statement.only_ends:
        why = "; ".join(reason for _, reason in over.values())
        return Lesson(why or "nothing known ended", supersedes=tuple(over))
    if made_by == "llm" and any(e.made_by != "llm" for e, _ in over.values()):
        return Lesson("what the wearer stated stands against it")
    later = [e for e, _ in over.values() if e.valid_from and seconds(e.valid_from) > seconds(time)]
    if later:
        until = min((e.valid_from for e in later if e.valid_from), key=seconds)
        return Lesson(
            "it was true before what is known now", statement.kind, statement.text, was_true_until=until
        )
    first = INFERRED if made_by == "llm" else STATED
    same = _same(statement, profile, near, over)
    if same is None:
        why = "; ".join(reason for _, reason in over.values())
        return Lesson(why or "it is new", statement.kind, statement.text, first, supersedes=tuple(over))
    if same.id in resting_on_it:
        return Lesson("it is known from the same words")
    confidence, evidence = max(reinforced(same.confidence), first), same.evidence + 1
    if content(statement.text) <= content(same.text):
        return Lesson(
            "it was said again", confidence=confidence, evidence=evidence,
            reinforces=same.id, supersedes=tuple(over),
        )  # fmt: skip
    return Lesson(
        "it was said again with more to it", statement.kind, statement.text, confidence, evidence,
        supersedes=(same.id, *over),
    )  # fmt: skip


def denied(statement: Statement, old: str) -> str | None:
    """Why the line ``old`` is wrong: it was said to be, in so many words; ``None``: it was not."""
    wrong, line = (text.casefold().removesuffix(".") for text in (statement.denies, old))
    if wrong and (line == wrong or line.startswith((f"{wrong} who ", f"{wrong} in ", f"{wrong} every "))):
        return "the wearer said that it is wrong"
    return None


def _same(
    statement: Statement,
    profile: Sequence[ProfileEntry],
    near: Sequence[tuple[ProfileEntry, float]],
    over: Collection[int],
) -> ProfileEntry | None:
    said = statement.text.casefold()
    for entry in profile:
        if entry.text.casefold() == said:
            return entry
    for entry, similarity in near:
        if (
            entry.id not in over
            and entry.kind == statement.kind
            and said_again(statement.text, entry.text, similarity)
        ):
            return entry
    return None


def said_again(new: str, old: str, similarity: float) -> bool:
    """Whether the line ``new`` says what ``old`` said, perhaps with more or less to it. Embeddings hardly see
    a "not" (0.93 between "is allergic to peanuts" and "is not allergic to peanuts") nor another thing of the
    same sort ("two cats", "three cats"), so the words of one line must be among the other's."""
    if similarity < SAME or (" not " in new) != (" not " in old):
        return False
    a, b = content(new), content(old)
    return a <= b or b <= a


def reinforced(confidence: float) -> float:
    """Confidence after the same thing was said once more."""
    return round(confidence + (1.0 - confidence) / 2, 3)


_FUNCTION = frozenset(
    """a an the of to in at on for with as and or that who is are was be been has have had do does did not my
    their his her its it they them he she wearer i me am im ive very really s""".split()  # noqa: SIM905 (a list of words)
)
_SAYING = frozenset(
    """like love enjoy prefer hate dislike live work call name old year favourit favorit usual often drink eat
    know known own person find make feel""".split()  # noqa: SIM905
)
"""Words that a rewording may bring: "my name is Ada" -> "is called Ada"."""

_NOT = re.compile(r"\b(?:not|no|never|nothing|without|cannot)\b|n't\b|\bno longer\b", re.I)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|me|my|mine|we|our)\b", re.I)
_NO_INFORMATION = re.compile(
    r"\b(?:no|not|any|lack of|insufficient|unknown)\b.{0,30}\b(?:information|profile|facts?|details?|data"
    r"|mention\w*|known|provided|specified|available)\b|\bas an ai\b|\bi (?:cannot|can't|am unable)\b",
    re.I,
)


_PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|now|appointment|meeting|this (?:morning|afternoon|evening|week)"
    r"|next \w+|last \w+|(?:mon|tues|wednes|thurs|fri|satur|sun)day|tired|hungry|thirsty|late|busy)\b",
    re.I,
)
_LASTING = re.compile(r"\b(?:every|each|usually|always|often|never|\w+days|once a|twice a)\b", re.I)


def is_line(text: str) -> bool:
    """Whether ``text`` has the form of one line about the wearer, and says something."""
    return re.fullmatch(r"The wearer [^.!?\n]{3,150}\.", text) is not None and not _NO_INFORMATION.search(
        text
    )


def content(text: str) -> frozenset[str]:
    """What a line says: the stems of its words that carry meaning."""
    return frozenset(_stem(word) for word in re.findall(r"\w+", text.casefold()) if word not in _FUNCTION)


def _stem(word: str) -> str:
    """Enough of a stem to see "running" in "runs"."""
    for ending in ("ies", "ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def refused(candidate: Candidate, said: Sequence[str]) -> str | None:
    """Why a model's line may not enter the profile; ``None`` when it may.

    It must be one statement about the wearer, resting on words that the wearer did say, in the first person,
    as an assertion; each of its content words must be among them; and it must deny what they deny.

    Args:
        candidate: the model's line.
        said: the wearer's utterances that the model was given.
    """
    if candidate.kind not in KINDS:
        return "its kind is none of the profile's"
    if not re.fullmatch(r"The wearer [^.!?\n]{3,150}\.", candidate.text):
        return "it is no single statement about the wearer"
    if _NO_INFORMATION.search(candidate.text):
        return "it says that nothing is known"
    quote = _plain(candidate.quote)
    source = next((words for words in said if quote and quote in _plain(words)), None)
    if source is None or len(quote.split()) < 3:
        return "the wearer did not say that"
    sentence = next((s for s in sentences(source) if quote in _plain(s)), source)
    if not asserts(source, sentence):
        return "it was asked, supposed, quoted or in jest"
    if not _FIRST_PERSON.search(sentence):
        return "it is not about the wearer"
    if re.match(r"\W*(?:\w+ ){0,3}?(?:my|our) \w+", candidate.quote, re.I) and not re.match(
        r"The wearer (?:has|lives|is (?:married|engaged|dating|no longer))\b", candidate.text
    ):
        return "it is about somebody else"
    if _PASSING.search(candidate.text) and not _LASTING.search(candidate.text):
        return "it will be over soon"
    if bool(_NOT.search(candidate.text)) != bool(_NOT.search(candidate.quote)):
        return "it turns what was said round"
    invented = content(candidate.text) - content(candidate.quote) - {_stem(w) for w in _SAYING} - _SAYING
    return f"{len(invented)} of its words were not said" if invented else None


def telling(utterance: str) -> list[str]:
    """The sentences of ``utterance`` that may tell something of the wearer: asserted, in the first person."""
    return [
        " ".join(sentence.split())
        for sentence in sentences(utterance)
        if asserts(utterance, sentence) and _FIRST_PERSON.search(sentence.replace("’", "'"))
    ]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.casefold().replace("’", "'")))
