"""One profile out of two: what both devices learned is one line, and of two lines that cannot both be true
the one that began later stands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from os1_edge.remember.contradict import ends
from os1_edge.remember.rows import ProfileEntry
from os1_edge.remember.store import Store


def reconcile(store: Store, fresh: Sequence[int]) -> int:
    """Compares the profile lines ``fresh`` (ids, just brought in) with the profile as it stands; returns how
    many lines are over now. Nothing is lost: they stay as history, with the words they came from."""
    over = 0
    with store.transaction():
        for row in fresh:
            entries = {entry.id: entry for entry in store.profile()}
            entry = entries.pop(row, None)
            for other in entries.values() if entry else ():
                assert entry is not None
                if _same(entry, other):
                    keep, gone = sorted((entry, other), key=lambda e: (_since(e), e.id))
                    _join(store, keep, gone)
                    over += 1
                    break
                new, old = sorted((other, entry), key=lambda e: (_since(e), e.id), reverse=True)
                if ends(new.text, old.text) is not None and not (
                    new.made_by == "llm" and old.made_by != "llm"  # a model's reading never beats the wearer
                ):
                    store.end_profile(old.id, _since(new), new.id)
                    over += 1
                    if old is entry:
                        break
    return over


def _same(a: ProfileEntry, b: ProfileEntry) -> bool:
    return a.kind == b.kind and a.text.casefold() == b.text.casefold()


def _since(entry: ProfileEntry) -> datetime:
    return entry.valid_from or entry.learned


def _join(store: Store, keep: ProfileEntry, gone: ProfileEntry) -> None:
    """The older line stays, with what spoke for either."""
    with store.transaction() as db:
        db.execute(
            "INSERT OR IGNORE INTO profile_sources SELECT ?, source_kind, source_id, time, quote "
            "FROM profile_sources WHERE profile_id = ?",
            (keep.id, gone.id),
        )
        (sources,) = db.execute(
            "SELECT count(*) FROM profile_sources WHERE profile_id = ?", (keep.id,)
        ).fetchone()
        db.execute(
            "UPDATE profile SET confidence = ?, evidence = ? WHERE id = ?",
            (max(keep.confidence, gone.confidence), max(keep.evidence, gone.evidence, sources), keep.id),
        )
        store.end_profile(gone.id, _since(gone), keep.id)
