"""The memory file: SQLCipher with sqlite-vec inside. One connection, one thread at a time.

These are the rows that the runtime writes as it goes, each entered in the index in the same transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from os1_edge.events import RealtimeContext
from os1_edge.remember.connection import BadMemory
from os1_edge.remember.index import Index, among
from os1_edge.remember.rows import WEARER, ProfileEntry, Source, StoredContext, StoredTurn, searched
from os1_edge.remember.vectors import Vector

__all__ = ["BadMemory", "ProfileEntry", "Store", "StoredTurn", "Vector"]


class Store(Index):
    """An open memory: what happened, and what is known of the wearer."""

    # What happened ------------------------------------------------------------------------------------------

    def add_turn(
        self,
        turn_id: str,
        revision: int,
        time: datetime,
        heard: str,
        reply: str,
        location: str,
        vector: Vector | None,
        *,
        speaker: str = WEARER,
        session_id: str = "",
        origin: str | None = None,
        uid: bytes | None = None,
    ) -> int:
        """Remembers a turn with the embedding of what was heard (``rows.searched``); returns its id.

        A later revision takes the place of an earlier one, which stays as history; the same or an earlier
        one changes nothing, and the id is that of the turn as it stands.
        """
        origin = origin or self.origin
        with self.transaction() as db:
            before = db.execute(
                "SELECT id, revision FROM turns WHERE origin = ? AND turn_id = ? "
                "ORDER BY revision DESC LIMIT 1",
                (origin, turn_id),
            ).fetchone()
            if before is not None and before[1] >= revision:
                return int(before[0])
            row = db.execute(
                "INSERT INTO turns (uid, origin, turn_id, revision, session_id, time, speaker, heard, reply, "
                "location) VALUES (?,?,?,?,?,?,?,?,?,?)",
                (
                    uid or self.new_uid(),
                    origin,
                    turn_id,
                    revision,
                    session_id,
                    time.isoformat(),
                    speaker,
                    heard,
                    reply,
                    location,
                ),
            ).lastrowid
            if before is not None:
                db.execute("UPDATE turns SET superseded_by = ? WHERE id = ?", (row, before[0]))
                db.execute("DELETE FROM items WHERE kind = 'turn' AND ref_id = ?", (before[0],))
            text = searched(speaker, heard)
            self.add_item("turn", row, time, text, vector, speaker=speaker, location=location)
        return int(row)

    def turns(self, where: str = "1", *values: object) -> list[StoredTurn]:
        """The turns as they stand for which the SQL condition ``where`` holds, by time."""
        query = f"SELECT {_TURN} FROM turns t WHERE superseded_by IS NULL AND ({where}) ORDER BY time, id"
        return [_turn(row) for row in self.rows(query, *values)]

    def add_context(self, context: RealtimeContext, time: datetime) -> int:
        """Remembers a real-time context; returns its id."""
        with self.transaction() as db:
            row = db.execute(
                "INSERT INTO contexts (uid, at_s, time, scene, utterance, location, activity) "
                "VALUES (?,?,?,?,?,?,?)",
                (
                    self.new_uid(),
                    context.at_s,
                    time.isoformat(),
                    context.scene,
                    context.utterance,
                    context.location,
                    context.activity,
                ),
            ).lastrowid
        return int(row)

    def contexts(self) -> list[tuple[RealtimeContext, datetime]]:
        """All contexts in the order of their times."""
        return [
            (RealtimeContext(c.at_s, c.scene, c.utterance, c.location, c.activity), c.time)
            for c in self.stored_contexts()
        ]

    def stored_contexts(self, where: str = "1", *values: object) -> list[StoredContext]:
        """The contexts for which the SQL condition ``where`` holds, in the order of the wearer's day."""
        query = (
            "SELECT id, at_s, time, scene, utterance, location, activity, event_id FROM contexts "
            f"WHERE {where} ORDER BY time, at_s, utterance <> '', id"
        )
        return [
            StoredContext(row[0], row[1], datetime.fromisoformat(row[2]), *row[3:])
            for row in self.rows(query, *values)
        ]

    # What is known of the wearer ----------------------------------------------------------------------------

    def add_profile(
        self,
        entry: ProfileEntry,
        vector: Vector | None,
        supersedes: Collection[int] = (),
        sources: Sequence[Source] = (),
    ) -> int:
        """Adds a profile entry (its ``id`` is ignored) with the words it rests on; those it supersedes are
        kept as history and stop being true when the new one begins."""
        since = (entry.valid_from or entry.learned).isoformat()
        until = entry.valid_to.isoformat() if entry.valid_to else None
        with self.transaction() as db:
            row = db.execute(
                "INSERT INTO profile (uid, kind, text, confidence, learned, valid_from, valid_to, evidence, "
                "made_by, source_turn) VALUES (?,?,?,?,?,?,?,?,?,?)",
                (
                    self.new_uid(),
                    entry.kind,
                    entry.text,
                    entry.confidence,
                    entry.learned.isoformat(),
                    since,
                    until,
                    entry.evidence,
                    entry.made_by,
                    entry.source_turn,
                ),
            ).lastrowid
            self.add_item("profile", row, entry.learned, entry.text, vector)
            db.executemany(
                "INSERT OR IGNORE INTO profile_sources VALUES (?,?,?,?,?)",
                [(row, s.kind, s.id, s.time.isoformat(), s.quote) for s in sources],
            )
            for old in supersedes:
                self.end_profile(old, entry.valid_from or entry.learned, row)
        return int(row)

    def end_profile(self, old: int, when: datetime, successor: int | None = None) -> None:
        """An entry is true no longer, from ``when`` on; it is kept as history, and no longer recalled."""
        with self.transaction() as db:
            db.execute(
                "UPDATE profile SET superseded_by = ?, valid_to = coalesce(valid_to, ?) WHERE id = ?",
                (successor, when.isoformat(), old),
            )
            db.execute("DELETE FROM items WHERE kind = 'profile' AND ref_id = ?", (old,))

    def profile(self) -> list[ProfileEntry]:
        """The profile as it stands now, oldest first."""
        query = (
            f"SELECT {_PROFILE} FROM profile p WHERE superseded_by IS NULL AND valid_to IS NULL ORDER BY id"
        )
        return [_profile_entry(row) for row in self.rows(query)]

    def profile_history(self) -> list[ProfileEntry]:
        """Every entry there ever was, oldest first."""
        return [_profile_entry(row) for row in self.rows(f"SELECT {_PROFILE} FROM profile p ORDER BY id")]

    def sources(self, profile_id: int) -> list[Source]:
        """The words that an entry rests on, oldest first."""
        return [
            Source(row[0], row[1], datetime.fromisoformat(row[2]), row[3])
            for row in self.rows(
                "SELECT source_kind, source_id, time, quote FROM profile_sources WHERE profile_id = ? "
                "ORDER BY time, source_kind, source_id",
                profile_id,
            )
        ]

    # Nearest by meaning -------------------------------------------------------------------------------------

    def nearest_turns(self, vector: Vector, k: int) -> list[tuple[StoredTurn, float]]:
        """The ``k`` turns whose words are nearest to ``vector``, with their cosine similarity."""
        found = self._nearest("turn", vector, k)
        turns = {turn.id: turn for turn in self.turns(among([ref for ref, _ in found]))}
        return [(turns[ref], similarity) for ref, similarity in found]

    def nearest_profile(self, vector: Vector, k: int) -> list[tuple[ProfileEntry, float]]:
        """The ``k`` valid profile entries nearest to ``vector``, with their cosine similarity."""
        found = self._nearest("profile", vector, k)
        query = f"SELECT {_PROFILE} FROM profile p WHERE {among([ref for ref, _ in found])}"
        entries = {row[0]: _profile_entry(row) for row in self.rows(query)}
        return [(entries[ref], similarity) for ref, similarity in found]


_TURN = "t.id, turn_id, time, heard, reply, location, revision, speaker, session_id, importance"
_PROFILE = (
    "p.id, kind, text, confidence, learned, source_turn, valid_from, valid_to, evidence, made_by, "
    "superseded_by"
)


def _turn(row: tuple[Any, ...]) -> StoredTurn:
    return StoredTurn(row[0], row[1], datetime.fromisoformat(row[2]), *row[3:])


def _profile_entry(row: tuple[Any, ...]) -> ProfileEntry:
    return ProfileEntry(
        id=row[0],
        kind=row[1],
        text=row[2],
        confidence=row[3],
        learned=datetime.fromisoformat(row[4]),
        source_turn=row[5],
        valid_from=datetime.fromisoformat(row[6]),
        valid_to=datetime.fromisoformat(row[7]) if row[7] else None,
        evidence=row[8],
        made_by=row[9],
        superseded_by=row[10],
    )
