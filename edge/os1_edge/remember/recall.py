"""What of the memory to give to the reply: ranked, with the reason for each (paper 3.2.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from time import perf_counter
from typing import Literal, Protocol

from os1_edge.config import Remember
from os1_edge.remember.associate import associated
from os1_edge.remember.profile import propose
from os1_edge.remember.query import Question, read_question
from os1_edge.remember.ranking import Candidate, Ranked, Weights, age_days, rank_candidates
from os1_edge.remember.rows import OTHER, WEARER, Kind, readable
from os1_edge.remember.search import Search
from os1_edge.remember.store import Store, Vector
from os1_edge.remember.wording import sentences

IMPORTANCE_WEIGHT = 0.01
RECENCY_WEIGHT = 0.01
"""Both only break ties: at full weight recency drowns similarity (see docs/decisions/0007-recall.md)."""

WEIGHTS = Weights()

HELD = 0.6
"""Share of the question's rare words that a memory holds, above which it may be less alike in meaning..."""

HELD_SIMILARITY = 0.6
"""...down to this share of ``min_similarity``."""

SAYS_SOMETHING = 3
"""Words from which on a sentence beside a question tells something; "Oh wow!" does not."""

BUDGET_S = 0.1
"""Time for recall before a reply, of which links may take what is left."""

FIT = 40
"""Memories that fit the question, the best of them, among which links are looked for."""

CHARS_A_TOKEN = 4
"""English text, roughly; the budget need not be exact."""


class Embeds(Protocol):
    """What recall needs of an embedder."""

    def one(self, text: str) -> Vector:
        """The vector of one text, of norm 1."""


@dataclass(frozen=True, slots=True)
class RecallRules:
    """How much to recall, and what counts how much."""

    limit: int = 3
    """Memories at most."""
    min_similarity: float = 0.25
    """Cosine similarity below which a memory has nothing to do with what was said."""
    tokens: int = 240
    """Length of all of them together, about."""
    associated: int = 1
    """Memories more that are linked to them by index keys, where time and length allow: in what they leave
    free, never in their place."""
    fitting: bool = True
    """Only such as have to do with the question too. On LoCoMo one question in seven has one, and they hold
    as much evidence as whatever is linked, which is twice as much to read (decision 0007)."""
    questions: bool = False
    """Whether the wearer's own questions count as memories."""
    derived: bool = True
    """Whether events and summaries count beside what they were made of. A small model takes a day's line for
    an answer to whatever is asked; asked for a time or a place as a whole, it is given them all the same."""
    importance_weight: float = IMPORTANCE_WEIGHT
    recency_weight: float = RECENCY_WEIGHT
    weights: Weights = WEIGHTS


def rules_of(settings: Remember) -> RecallRules:
    """The rules for a reply, as the wearer set them."""
    return RecallRules(
        settings.limit,
        settings.min_similarity,
        associated=settings.associated,
        derived=False,
        importance_weight=settings.importance_weight,
        recency_weight=settings.recency_weight,
        weights=Weights(**settings.weights.model_dump()),
    )


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory that was recalled."""

    kind: Literal["turn", "profile", "event", "summary"]
    text: str
    """As it is told: another's words as "Anna said: …"."""
    time: datetime
    location: str
    score: float
    reason: str
    ref_id: int = 0
    """Its row."""
    speaker: str = WEARER


class Recall:
    """Recalls from one open memory. Blocking, a few milliseconds and one embedding."""

    def __init__(
        self, store: Store, embedder: Embeds, rules: RecallRules | None = None, *, wearer_name: str = ""
    ) -> None:
        """``wearer_name`` is what others call the wearer, where it is known."""
        self._store = store
        self._search = _search_of(store)
        self._embedder = embedder
        self._rules = rules or RecallRules()
        self._wearer_name = wearer_name

    def recall(
        self, query: str, now: datetime, in_view: Collection[str] = (), *, budget_s: float | None = None
    ) -> list[Hit]:
        """The best memories for ``query`` first.

        Args:
            query: what was said.
            now: the wearer's local time.
            in_view: texts that the prompt holds already.
            budget_s: time that it may take with what is linked; ``None``: no bound.
        """
        began = perf_counter()
        question = read_question(readable(query), now, self._search.people(), self._wearer_name)
        found = self._search.find(question, self._embedder.one(question.plain))
        order = in_order(found.candidates, question, now, in_view, self._rules, found.rarity)
        fit = list(islice(order, max(self._rules.limit, FIT)))
        hits = cut(fit, self._rules)
        left = None if budget_s is None else budget_s - (perf_counter() - began)
        return hits + self._linked(hits, fit[len(hits) :], in_view, left)

    def warm(self) -> None:
        """Reads what every question needs, so that the first need not wait."""
        self._search.warm()

    def close(self) -> None:
        """Ends what it holds open beside the store."""
        self._search.close()

    @property
    def word(self) -> str:
        """What to tell where the last question was not answered by all of the memory; "" where it was."""
        return self._search.word

    def _linked(
        self, hits: Sequence[Hit], others: Sequence[Hit], in_view: Collection[str], budget_s: float | None
    ) -> list[Hit]:
        """What is linked to ``hits`` and not told already, as far as length allows. ``others``: what fits the
        question too, the best first."""
        rules, out = self._rules, list[Hit]()
        fit: dict[tuple[Kind, int], Hit] | None = None
        if rules.fitting:
            fit = {(other.kind, other.ref_id): other for other in others}
        told = {text.casefold() for text in in_view} | {hit.text.casefold() for hit in hits}
        left = rules.tokens * CHARS_A_TOKEN - sum(len(hit.text) for hit in hits)
        refs: list[tuple[Kind, int]] = [(hit.kind, hit.ref_id) for hit in hits]
        for link in associated(
            self._store, refs, rules.associated, budget_s, derived=rules.derived, among=fit
        ):
            score = fit[link.memory.kind, link.memory.ref_id].score if fit else 0.0
            hit = _hit(link.memory, score, f'linked by "{link.key}" to {link.to[0]}:{link.to[1]}')
            if hit.text.casefold() in told or len(hit.text) > left or _only_asks(link.memory.text):
                continue
            told.add(hit.text.casefold())
            left -= len(hit.text)
            out.append(hit)
        return out


def _search_of(store: Store) -> Search:
    if not store.hosted:
        return Search(store)
    from os1_edge.remember.hosted.open import hosted_search  # only where a memory was moved

    return hosted_search(store)


def rank(
    candidates: Sequence[Candidate],
    question: Question,
    now: datetime,
    in_view: Collection[str],
    rules: RecallRules,
    rarity: Mapping[str, float] | None = None,
) -> list[Hit]:
    """The first of ``in_order``, as many as the rules give."""
    order = in_order(candidates, question, now, in_view, rules, rarity)
    return cut(list(islice(order, rules.limit)), rules)


def cut(hits: Sequence[Hit], rules: RecallRules) -> list[Hit]:
    """The first of ``hits`` within the rules' number and length; the first of all however long it is."""
    left, out = rules.tokens * CHARS_A_TOKEN, list[Hit]()
    for hit in hits[: rules.limit]:
        if out and len(hit.text) > left:
            break
        left -= len(hit.text)
        out.append(hit)
    return out


def in_order(
    candidates: Sequence[Candidate],
    question: Question,
    now: datetime,
    in_view: Collection[str],
    rules: RecallRules,
    rarity: Mapping[str, float] | None = None,
) -> Iterator[Hit]:
    """The memories that have to do with the question, the best first. The wearer's questions are left out:
    they hold no fact, and the same question asked before is always the nearest.

    Args:
        candidates: memories that may answer.
        question: what was asked.
        now: the wearer's time.
        in_view: texts that the prompt already holds; they are not given twice, nor is a profile entry
            beside the turn that it came from, nor an event that quotes them.
        rules: what counts how much.
        rarity: of the question's terms, see ``rank_candidates``.
    """
    said = {text.casefold() for text in in_view}
    stated = {line.text.casefold() for text in in_view for line in propose(text)}
    ranked = [
        r
        for r in rank_candidates(
            candidates,
            question,
            rarity or {},
            now,
            rules.weights,
            rules.importance_weight,
            rules.recency_weight,
        )
        if _concerns(r, question, rules)
    ]
    if question.times is not None and question.times.exact and any(r.features.times for r in ranked):
        ranked = [r for r in ranked if r.features.times]
    sources = {c.turn_id for c in candidates if c.kind == "turn" and c.text.casefold() in said}
    ranked = [r for r in ranked if _is_new(r.candidate, said, rules)]
    sources |= {r.candidate.turn_id for r in ranked if r.candidate.kind == "turn"}
    known = {*said, *stated}
    for r in ranked:
        candidate, text = r.candidate, r.candidate.text.casefold()
        if candidate.kind == "profile" and candidate.source_turn in sources:
            continue
        if text in known or (candidate.kind in ("event", "summary") and any(k and k in text for k in known)):
            continue
        known.add(text)
        yield _hit(candidate, r.score, _reason(r, question, now))


def _concerns(ranked: Ranked, question: Question, rules: RecallRules) -> bool:
    """Whether a memory has to do with the question at all."""
    if ranked.candidate.kind in ("event", "summary") and not (rules.derived or question.vague):
        return False
    if ranked.candidate.meaning >= rules.min_similarity:
        return True
    if question.vague and (ranked.features.place or ranked.features.times):
        return True  # "what did I do yesterday?" asks for all of it
    enough = HELD_SIMILARITY * rules.min_similarity
    return ranked.coverage >= HELD and ranked.candidate.meaning >= enough


def _is_new(candidate: Candidate, said: Collection[str], rules: RecallRules) -> bool:
    if candidate.text.casefold() in said:
        return False
    return rules.questions or candidate.kind != "turn" or not _only_asks(candidate.text)


def _only_asks(text: str) -> bool:
    """Whether ``text`` is questions all through: "I bought a bike. Do you like it?" tells something."""
    if "?" not in text:
        return False
    said = [s.strip() for s in sentences(text)]
    return any(s.endswith("?") for s in said) and all(
        s.endswith("?") or len(s.split()) < SAYS_SOMETHING for s in said
    )


def _reason(ranked: Ranked, question: Question, now: datetime) -> str:
    candidate = ranked.candidate
    reasons = [f"similarity {candidate.meaning:.2f}", f"{age_days(candidate.time, now):.0f} days old"]
    if ranked.coverage > 0:
        reasons.append(f"words {', '.join(sorted(candidate.terms))}")
    if (name := _name(candidate)).casefold() in question.people:
        reasons.append(f"said by {name}")
    if ranked.features.times and question.times is not None:
        reasons.append(question.times.phrase)
    if ranked.features.place:
        reasons.append(f"at {candidate.location}")
    if candidate.via:
        reasons.append(f'key "{candidate.via}"')
    return ", ".join(reasons)


def _name(candidate: Candidate) -> str:
    """Who else said it; "" for the wearer's own and what nobody said."""
    return candidate.speaker.removeprefix(OTHER) if candidate.speaker.startswith(OTHER) else ""


def _hit(candidate: Candidate, score: float, reason: str) -> Hit:
    assert candidate.kind != "key"  # search replaces a key by what it leads to
    name = _name(candidate)
    return Hit(
        kind=candidate.kind,
        text=f"{name} said: {candidate.text}" if candidate.speaker.startswith(OTHER) else candidate.text,
        time=candidate.time,
        location=candidate.location,
        score=round(score, 4),
        reason=reason,
        ref_id=candidate.ref_id,
        speaker=candidate.speaker,
    )
