"""Small memories for the tests of the store, with a fake embedder to which no two texts are alike."""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from os1_edge.events import RealtimeContext
from os1_edge.remember import derived
from os1_edge.remember.rows import ProfileEntry, Source, StoredEvent, StoredSummary
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store, Vector

KEY, OTHER = bytes(range(32)), bytes(32)
MONDAY = datetime(2026, 3, 2, 8)


def at(minutes: float) -> datetime:
    """So many minutes after eight on Monday."""
    return MONDAY + timedelta(minutes=minutes)


def meaning(text: str) -> Vector:
    """A direction of its own for every text."""
    vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSIONS)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def say(
    store: Store, turn: str, heard: str, minutes: float = 0, session: str = "s1", reply: str = "ok"
) -> int:
    """The wearer says something."""
    return store.add_turn(turn, 0, at(minutes), heard, reply, "kitchen", meaning(heard), session_id=session)


def see(store: Store, place: str, minutes: float, utterance: str = "") -> int:
    """A context."""
    return store.add_context(
        RealtimeContext(60 * minutes, f"A {place}.", utterance, place, "busy"), at(minutes)
    )


def event(store: Store, contexts: list[int], summary: str, minutes: float, place: str = "gym") -> int:
    """An event of these contexts, with a key."""
    stored = StoredEvent(0, at(minutes), at(minutes + 10), place, "busy", summary, "llm", len(contexts))
    row = derived.add_event(store, stored, contexts, meaning(summary))
    derived.put_keys(
        store, "event", row, at(minutes), [("semantic", f"key of {summary}", meaning("k" + summary))]
    )
    return row


def summary(store: Store, session: str, text: str, turns: int, minutes: float = 0) -> int:
    """A session's summary."""
    stored = StoredSummary(0, session, at(minutes), at(minutes + 5), text, "llm", turns)
    return derived.put_summary(store, stored, meaning(text))


def know(
    store: Store, text: str, turns: list[int], minutes: float = 0, supersedes: tuple[int, ...] = ()
) -> int:
    """A profile line that rests on these turns."""
    sources = [Source("turn", row, at(minutes), f"words of {row}") for row in turns]
    entry = ProfileEntry(0, "preference", text, 0.9, at(minutes), "t", evidence=max(1, len(turns)))
    return store.add_profile(entry, meaning(text), supersedes, sources)


def texts(store: Store) -> list[str]:
    """Everything that can be searched."""
    return sorted(row[0] for row in store.rows("SELECT text FROM items"))


def new(folder: Path, name: str = "memory.db") -> Store:
    """An empty memory."""
    return Store(folder / name, KEY)
