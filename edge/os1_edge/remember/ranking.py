"""How well a memory answers a question: similarity + importance + recency, each 0..1 (paper 3.2.5). Pure.

Similarity is itself a weighted sum of plain features of a memory and its neighbours. What each brings, and on
which conversations the weights were fitted, stands in docs/decisions/0007-recall.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import mul
from typing import NamedTuple

from os1_edge.remember.query import Question, in_place, tells_when
from os1_edge.remember.rows import OTHER, WEARER, Kind

RECENCY_HALF_LIFE_DAYS = 30.0

_K1, _B = 1.2, 0.75
"""BM25, as FTS5 has it."""

_UNRATED = 3
"""Importance of a memory that nobody rated: that of everyday talk."""

_ALONE = 0.5
"""What has no neighbours (a profile line, an event, a summary) has this much of its own for each."""


@dataclass(slots=True)
class Candidate:
    """A memory that may answer."""

    kind: Kind
    ref_id: int
    time: datetime
    text: str
    speaker: str = WEARER
    location: str = ""
    importance: int | None = None
    group: str = ""
    """The conversation that it belongs to, or its day."""
    meaning: float = 0.0
    """Cosine similarity to the question."""
    before: float = 0.0
    """The same of what was said just before, 0 if nothing was."""
    after: float = 0.0
    terms: Mapping[str, int] = field(default_factory=dict)
    """The question's terms in it, with how often."""
    length: int = 1
    """Words in it."""
    near: frozenset[str] = frozenset()
    """The question's terms in it or its neighbours."""
    source_turn: str = ""
    """Of a profile line: the turn id that it came from."""
    turn_id: str = ""
    """Of a turn: its id."""
    via: str = ""
    """The index key by which it was found, if by one."""


class Weights(NamedTuple):
    """What counts how much in similarity; scaled so that the best possible is 1."""

    meaning: float = 5.7
    before: float = 2.4
    after: float = 1.4
    words: float = 1.0
    """BM25, the best candidate's as 1."""
    near: float = 2.3
    """Share of the question's terms, by rarity, in the memory or its neighbours."""
    group: float = 2.7
    """The same for all candidates of its conversation together."""
    speaker: float = 3.2
    """Said by whom the question names."""
    when: float = 2.9
    """A word of time in it, and the question asks when."""
    times: float = 3.6
    """Of the time that the question names."""
    place: float = 3.2
    """At the place that the question names; LoCoMo names none, so this one is set as ``speaker``."""
    asks: float = -1.0
    """It is a question itself."""

    @property
    def best(self) -> float:
        """The best possible sum."""
        return sum(max(0.0, weight) for weight in self)

    def dot(self, features: Weights) -> float:
        """The weighted sum of ``features``."""
        return float(sum(map(mul, self, features)))


NOTHING = Weights(*[0.0] * len(Weights._fields))


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score and what made it."""

    candidate: Candidate
    score: float
    features: Weights
    """What each weight was multiplied with."""
    coverage: float
    """Share of the question's terms, by rarity, that it holds itself."""


def rank_candidates(
    candidates: Sequence[Candidate],
    question: Question,
    rarity: Mapping[str, float],
    now: datetime,
    weights: Weights,
    importance_weight: float,
    recency_weight: float,
) -> list[Ranked]:
    """The candidates with their scores, the best first.

    Args:
        candidates: memories that may answer.
        question: what was asked.
        rarity: inverse document frequency of each of the question's terms; terms that no memory holds are
            left out.
        now: the wearer's local time.
        weights: of the features of similarity.
        importance_weight: of importance.
        recency_weight: of recency.
    """
    together: dict[str, set[str]] = {}
    for candidate in candidates:
        together.setdefault(candidate.group, set()).update(candidate.terms)
    bm25 = _bm25(candidates, rarity)
    best = max(bm25, default=0.0) or 1.0
    total = sum(rarity.values()) or 1.0
    best_possible = weights.best or 1.0
    shared = {group: _share(terms, rarity) / total for group, terms in together.items()}
    out = []
    for candidate, lexical in zip(candidates, bm25, strict=True):
        near = _share(candidate.near, rarity) / total
        features = _features(candidate, question, lexical / best, near, shared[candidate.group])
        score = (
            weights.dot(features) / best_possible
            + importance_weight * ((candidate.importance or _UNRATED) - 1) / 9
            + recency_weight * recency(candidate.time, now)
        )
        out.append(Ranked(candidate, score, features, _share(candidate.terms, rarity) / total))
    return sorted(out, key=lambda r: (-r.score, r.candidate.time, r.candidate.text))


def _features(candidate: Candidate, question: Question, words: float, near: float, group: float) -> Weights:
    before, after = candidate.before, candidate.after
    if candidate.kind != "turn":
        before = after = _ALONE * candidate.meaning
    return Weights(
        meaning=candidate.meaning,
        before=before,
        after=after,
        words=words,
        near=near,
        group=group,
        speaker=_spoken_by(candidate, question),
        when=float(question.asks_when and tells_when(candidate.text)),
        times=float(question.times is not None and question.times.fits(candidate.time)),
        place=float(candidate.location != "" and in_place(question, candidate.location)),
        asks=float(candidate.text.rstrip().endswith("?")),
    )


def recency(time: datetime, now: datetime) -> float:
    """1 for a memory of now (or of later), 0.5 for one of 30 days ago."""
    return float(0.5 ** (age_days(time, now) / RECENCY_HALF_LIFE_DAYS))


def age_days(time: datetime, now: datetime) -> float:
    """Days since ``time``, 0 if it is still to come."""
    return max(0.0, (now.replace(tzinfo=None) - time.replace(tzinfo=None)).total_seconds() / 86_400)


def _bm25(candidates: Sequence[Candidate], rarity: Mapping[str, float]) -> list[float]:
    average = sum(c.length for c in candidates) / max(1, len(candidates)) or 1.0
    return [
        0.0
        if not candidate.terms
        else sum(
            rarity.get(term, 0.0) * n * (_K1 + 1) / (n + _K1 * (1 - _B + _B * candidate.length / average))
            for term, n in candidate.terms.items()
        )
        for candidate in candidates
    ]


def _share(terms: Iterable[str], rarity: Mapping[str, float]) -> float:
    return sum([rarity.get(term, 0.0) for term in terms])


def _spoken_by(candidate: Candidate, question: Question) -> float:
    """1 for the one person that is asked about, 0 for another; a half where it does not matter who."""
    asked = len(question.people) + question.of_wearer
    if asked != 1 or candidate.kind != "turn":
        return 0.5
    if question.of_wearer:
        return float(candidate.speaker == WEARER)
    return float(candidate.speaker.removeprefix(OTHER).casefold() in question.people)
