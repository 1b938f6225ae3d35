"""The memory file's tables, as numbered steps forward. ``PRAGMA user_version`` counts the steps done."""

from __future__ import annotations

from typing import Any

DIMENSIONS = 384
"""Length of an embedding (all-MiniLM-L6-v2)."""

STEPS: tuple[str, ...] = (
    f"""
    CREATE TABLE turns (
      id INTEGER PRIMARY KEY,
      turn_id TEXT NOT NULL,
      revision INTEGER NOT NULL,
      time TEXT NOT NULL,              -- wearer's local time, ISO 8601
      heard TEXT NOT NULL,
      reply TEXT NOT NULL,
      location TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE TABLE contexts (
      id INTEGER PRIMARY KEY,
      at_s REAL NOT NULL,
      time TEXT NOT NULL,
      scene TEXT NOT NULL,
      utterance TEXT NOT NULL,
      location TEXT NOT NULL,
      activity TEXT NOT NULL
    ) STRICT;
    CREATE TABLE profile (
      id INTEGER PRIMARY KEY,
      kind TEXT NOT NULL CHECK (kind IN ('personality','preference','social background','habit','health')),
      text TEXT NOT NULL,
      confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
      learned TEXT NOT NULL,
      source_turn TEXT NOT NULL,
      superseded_by INTEGER REFERENCES profile(id)
    ) STRICT;
    CREATE VIRTUAL TABLE turn_vectors USING vec0(embedding float[{DIMENSIONS}] distance_metric=cosine);
    CREATE VIRTUAL TABLE profile_vectors USING vec0(embedding float[{DIMENSIONS}] distance_metric=cosine);
    """,
)


def migrate(db: Any) -> None:
    """Brings an open database to the newest step, each step in one transaction.

    Raises:
        ValueError: the file was written by a newer release.
    """
    done = int(db.execute("PRAGMA user_version").fetchone()[0])
    if done > len(STEPS):
        raise ValueError(f"it was written by a newer release (schema {done}, this one knows {len(STEPS)})")
    for number, step in enumerate(STEPS[done:], done + 1):
        db.executescript(f"BEGIN; {step} PRAGMA user_version = {number}; COMMIT;")
