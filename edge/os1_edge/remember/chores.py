"""What the night shift does with a memory, chore by chore: what it reads, has written, and keeps.

A chore reads its material (``Draft``), has a ``Writer`` write where there is one, and keeps the result in one
transaction together with the chores that follow from it. Without a writer, or where its answer will not do,
plain rules stand in. Material that changed meanwhile (the wearer forgot some of it) is read again: nothing is
ever kept that rests on what is gone.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from os1_edge.remember import derived
from os1_edge.remember.grammar import told_of
from os1_edge.remember.grounding import faithful
from os1_edge.remember.habits import note_habit
from os1_edge.remember.importance import LEAST, MOST, importance_by_rule
from os1_edge.remember.keys import Keys, grounded, keys_by_rule, merged
from os1_edge.remember.learning import learn
from os1_edge.remember.profile import Candidate, refused
from os1_edge.remember.revise import Proposal, alike, apply_revision, judge_revision
from os1_edge.remember.rows import (
    WEARER,
    Job,
    ProfileEntry,
    Source,
    StoredContext,
    StoredEvent,
    StoredSummary,
    StoredTurn,
)
from os1_edge.remember.sessions import extract, small_talk
from os1_edge.remember.statements import Statement
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

TURNS_READ = 120
"""Turns of a session that a summary reads: two days' worth; beyond that, the first ones."""

CONTEXTS_READ = 400
"""Contexts of an event that its summary reads."""

RATING_SPAN = 2
"""How far a model's rating may move the rule's. Small models find everything an 8."""

Embed = Callable[[str], Vector]


class Writer(Protocol):
    """The language jobs of the memory. Each answers ``None`` (or nothing) when it has no answer that will do.

    Raises, each of them:
        Busy: somebody waits for the model; ask again later.
    """

    async def summarise_event(self, event: StoredEvent, contexts: Sequence[StoredContext]) -> str | None:
        """One sentence of what the wearer did."""
        ...

    async def summarise_session(self, turns: Sequence[StoredTurn]) -> str | None:
        """Topics and details of a conversation."""
        ...

    async def keys(self, text: str, start: datetime, location: str) -> Keys | None:
        """The phrases by which somebody would look for it."""
        ...

    async def importance(self, text: str) -> int | None:
        """1 to 10 by emotional arousal."""
        ...

    async def profile_candidates(self, said: Sequence[str]) -> list[Candidate]:
        """What the wearer's utterances tell of the wearer."""
        ...

    async def revise_profile(self, new: str, old: str) -> Proposal | None:
        """What becomes of two lines of the profile that are alike."""
        ...


class Busy(Exception):
    """The chore made way for somebody who waits."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A chore's material."""

    event: StoredEvent | None = None
    contexts: tuple[StoredContext, ...] = ()
    summary: StoredSummary | None = None
    turns: tuple[StoredTurn, ...] = ()
    lines: tuple[ProfileEntry, ProfileEntry] | None = None
    """Two lines of the profile, the new one first."""

    @property
    def text(self) -> str:
        """The memory in words."""
        return self.event.summary if self.event else self.summary.text if self.summary else ""


Answer = str | int | Keys | list[Candidate] | Proposal | None


@dataclass(frozen=True, slots=True)
class Chore:
    """How one kind of work is done."""

    read: Callable[[Store, int], Draft | None]
    """``None``: its row is gone or leaves nothing to do."""
    write: Callable[[Writer, Draft], Awaitable[Answer]] | None
    """``None``: no model is needed."""
    keep: Callable[[Store, Embed, Draft, Answer], None]


def read_event(store: Store, row: int) -> Draft | None:
    """An event with its contexts."""
    event = next(iter(derived.events(store, "id = ?", row)), None)
    if event is None:
        return None
    contexts = store.stored_contexts("event_id = ?", row)[:CONTEXTS_READ]
    return Draft(event=event, contexts=tuple(contexts))


def read_summary(store: Store, row: int) -> Draft | None:
    """A summary with the turns of its session."""
    summary = next(iter(derived.summaries(store, "id = ?", row)), None)
    if summary is None:
        return None
    return Draft(summary=summary, turns=_turns(store, summary.session_id))


def read_session(store: Store, turn: int) -> Draft | None:
    """The turns of the session that ``turn`` belongs to."""
    found = store.rows("SELECT session_id FROM turns WHERE id = ?", turn)
    turns = _turns(store, found[0][0]) if found and found[0][0] else ()
    if not turns:
        return None
    summary = next(iter(derived.summaries(store, "session_id = ?", turns[0].session_id)), None)
    if summary is not None and summary.text_by == "wearer":
        return None
    if summary is not None and summary.text_by == "llm" and summary.turns == len(turns):
        return None
    return Draft(turns=turns)


def read_lines(store: Store, row: int) -> Draft | None:
    """A new line of the profile and the one nearest to it."""
    lines = alike(store, row)
    return Draft(lines=lines) if lines is not None else None


def _turns(store: Store, session: str) -> tuple[StoredTurn, ...]:
    return tuple(store.turns("session_id = ?", session)[:TURNS_READ])


def keep_event_summary(store: Store, embed: Embed, draft: Draft, answer: Answer) -> None:
    """A model's sentence takes the rule's place; the event is ready for its keys."""
    event = draft.event
    assert event is not None
    if isinstance(answer, str) and event.summary_by == "rule":
        source = " ".join(f"{c.scene} {c.utterance} {c.location} {c.activity}" for c in draft.contexts)
        first = re.match(r"[^.!?]+[.!?]", " ".join(answer.split()))  # small models go on to list the notes
        if first and (written := faithful(first[0], f"{source} {event.location} {event.activity}")):
            text = f"{event.start:%H:%M}-{event.end:%H:%M} {written}"
            derived.change_event(store, replace(event, summary=text, summary_by="llm"), embed(text))
    for kind in ("keys", "importance", "habit"):
        derived.add_job(store, kind, "event", event.id)


def keep_session_summary(store: Store, embed: Embed, draft: Draft, answer: Answer) -> None:
    """The model's summary, else the most telling sentences; of small talk alone there is none."""
    turns = draft.turns
    said = " ".join(f"{turn.heard} {turn.reply}" for turn in turns)
    written = faithful(answer, said) if isinstance(answer, str) else ""
    text = written or extract(turns)
    if not text:
        return
    rated = max(importance_by_rule(turn.heard) for turn in turns)
    row = derived.put_summary(
        store,
        StoredSummary(
            0, turns[0].session_id, turns[0].time, turns[-1].time, text, "llm" if written else "rule",
            len(turns), rated,
        ),
        embed(text),
    )  # fmt: skip
    for kind in ("keys", "importance", "profile"):
        derived.add_job(store, kind, "summary", row)


def keep_keys(store: Store, embed: Embed, draft: Draft, answer: Answer) -> None:
    """The model's keys as far as they are in the memory's words, then the rules'."""
    event, summary = draft.event, draft.summary
    start = event.start if event else summary.start if summary else datetime.min
    location = event.location if event else _place(draft.turns)
    keys = keys_by_rule(draft.text, start, location, event.activity if event else "")
    if isinstance(answer, Keys):
        source = " ".join([draft.text, *(turn.heard for turn in draft.turns)])
        keys = merged(grounded(answer, source, start, location), keys)
    kind, row = ("event", event.id) if event else ("summary", summary.id if summary else 0)
    entries = [(dimension, key, embed(key)) for dimension, key in keys.all()]
    derived.put_keys(store, "event" if kind == "event" else "summary", row, start, entries, location)


def _place(turns: Sequence[StoredTurn]) -> str:
    places = [turn.location for turn in turns if turn.location]
    return max(sorted(set(places)), key=places.count) if places else ""


def keep_importance(store: Store, _embed: Embed, draft: Draft, answer: Answer) -> None:
    """The model's rating, near the rule's."""
    event, summary = draft.event, draft.summary
    rated = (event.importance if event else summary.importance if summary else None) or importance_by_rule(
        draft.text
    )
    if isinstance(answer, int) and LEAST <= answer <= MOST:
        rated = max(rated - RATING_SPAN, min(rated + RATING_SPAN, answer))
    if event:
        derived.set_importance(store, "event", event.id, max(LEAST, min(MOST, rated)))
    elif summary:
        derived.set_importance(store, "summary", summary.id, max(LEAST, min(MOST, rated)))


def keep_candidates(store: Store, embed: Embed, draft: Draft, answer: Answer) -> None:
    """What a model read out of a conversation, as far as it stands in the wearer's own words there."""
    turns = [turn for turn in draft.turns if turn.speaker == WEARER]
    said = [turn.heard for turn in turns]
    for candidate in answer if isinstance(answer, list) else ():
        if refused(candidate, said) is not None:
            continue
        turn = next(t for t in turns if refused(candidate, [t.heard]) is None)
        statement = Statement(candidate.kind, told_of(candidate.text), candidate.quote)
        learn(
            store, embed, statement, turn.time, Source("turn", turn.id, turn.time, turn.heard),
            turn.turn_id, made_by="llm",
        )  # fmt: skip


def keep_revision(store: Store, embed: Embed, draft: Draft, answer: Answer) -> None:
    """One line out of two, where a model sees that and its words will do."""
    assert draft.lines is not None
    revision = judge_revision(*draft.lines, answer if isinstance(answer, Proposal) else None)
    apply_revision(store, embed, draft.lines, revision)


def keep_habit(store: Store, embed: Embed, draft: Draft, _answer: Answer) -> None:
    """What is done in the same place and time of day again and again."""
    if draft.event is not None:
        note_habit(store, embed, draft.event)


def _is_telling(draft: Draft) -> bool:
    """Whether a model can say more of it than the rules do: of a silent stay in one place it cannot."""
    return draft.event is None or any(not small_talk(c.utterance) for c in draft.contexts if c.utterance)


async def _write_event(writer: Writer, draft: Draft) -> Answer:
    event = draft.event
    assert event is not None
    if event.summary_by != "rule" or not _is_telling(draft):
        return None
    return await writer.summarise_event(event, draft.contexts)


async def _write_session(writer: Writer, draft: Draft) -> Answer:
    return await writer.summarise_session(draft.turns) if extract(draft.turns) else None


async def _write_keys(writer: Writer, draft: Draft) -> Answer:
    event, summary = draft.event, draft.summary
    if not _is_telling(draft):
        return None
    start = event.start if event else summary.start if summary else datetime.min
    return await writer.keys(draft.text, start, event.location if event else _place(draft.turns))


async def _write_importance(writer: Writer, draft: Draft) -> Answer:
    return await writer.importance(draft.text) if _is_telling(draft) else None


async def _write_profile(writer: Writer, draft: Draft) -> Answer:
    said = [turn.heard for turn in draft.turns if turn.speaker == WEARER]
    return await writer.profile_candidates(said)


async def _write_revision(writer: Writer, draft: Draft) -> Answer:
    assert draft.lines is not None
    new, old = draft.lines
    return await writer.revise_profile(new.text, old.text)


CHORES: dict[tuple[str, str], Chore] = {
    ("summarise", "event"): Chore(read_event, _write_event, keep_event_summary),
    ("summarise", "turn"): Chore(read_session, _write_session, keep_session_summary),
    ("keys", "event"): Chore(read_event, _write_keys, keep_keys),
    ("keys", "summary"): Chore(read_summary, _write_keys, keep_keys),
    ("importance", "event"): Chore(read_event, _write_importance, keep_importance),
    ("importance", "summary"): Chore(read_summary, _write_importance, keep_importance),
    ("profile", "summary"): Chore(read_summary, _write_profile, keep_candidates),
    ("revise", "profile"): Chore(read_lines, _write_revision, keep_revision),
    ("habit", "event"): Chore(read_event, None, keep_habit),
}
"""(kind, table of the row): ``("summarise", "turn")`` is the session that ends with that turn."""


def chore_of(job: Job) -> Chore | None:
    """How ``job`` is done; ``None`` for work of a kind that is somebody else's."""
    return CHORES.get((job.kind, job.target_kind))
