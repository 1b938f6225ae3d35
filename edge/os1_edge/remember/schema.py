"""The memory file's tables, as numbered steps forward. ``PRAGMA user_version`` counts the steps done.

What happened (``turns``, ``contexts``) is kept as it was; what was made of it (``events``, ``summaries``,
``index_keys``, ``profile``) points to it. ``items`` is the one index over everything that can be searched,
with ``items_fts`` for its words, ``item_bits`` to scan and ``item_vectors`` to score by meaning; triggers
keep the words, vectors and keys of a deleted row from outliving it. All of ``items`` can be made again.

Times are the wearer's local time, ISO 8601; ``items.time`` is the same in seconds (``rows.seconds``). A
``uid`` is the same on every device that holds the row.
"""

from __future__ import annotations

DIMENSIONS = 384
"""Length of an embedding (all-MiniLM-L6-v2)."""

OWNERS = ("turn", "event", "summary", "profile")
"""Kinds of items that have a table of their own; the kind ``key`` is a row of ``index_keys``."""

TABLE_OF = {
    "turn": "turns",
    "event": "events",
    "summary": "summaries",
    "profile": "profile",
    "key": "index_keys",
}

TABLES = {**TABLE_OF, "context": "contexts"}
"""The table of every kind of row that is named by an id, as in ``turn:12``."""

FIRST = f"""
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
"""

_TABLES = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

    CREATE TABLE turns (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      uid BLOB NOT NULL UNIQUE DEFAULT (randomblob(16)),
      origin TEXT NOT NULL,            -- the run or the import that numbered it: turn ids begin anew in each
      turn_id TEXT NOT NULL,
      revision INTEGER NOT NULL,
      session_id TEXT NOT NULL DEFAULT '',
      time TEXT NOT NULL,
      speaker TEXT NOT NULL DEFAULT 'wearer',  -- who said "heard": wearer, os1, other:NAME
      heard TEXT NOT NULL,
      reply TEXT NOT NULL DEFAULT '',
      location TEXT NOT NULL DEFAULT '',
      importance INTEGER CHECK (importance BETWEEN 1 AND 10),
      superseded_by INTEGER REFERENCES turns(id),  -- a later revision, or the wearer's correction
      UNIQUE (origin, turn_id, revision)
    ) STRICT;
    CREATE INDEX turns_by_time ON turns (time);
    CREATE INDEX turns_by_session ON turns (session_id, time);
    CREATE INDEX turns_by_successor ON turns (superseded_by) WHERE superseded_by IS NOT NULL;

    CREATE TABLE events (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      uid BLOB NOT NULL UNIQUE DEFAULT (randomblob(16)),
      start_time TEXT NOT NULL,
      end_time TEXT NOT NULL,
      location TEXT NOT NULL,
      activity TEXT NOT NULL,
      summary TEXT NOT NULL,
      summary_by TEXT NOT NULL DEFAULT 'rule' CHECK (summary_by IN ('rule','llm','wearer')),
      contexts INTEGER NOT NULL,       -- how many it was made of, kept or not
      importance INTEGER CHECK (importance BETWEEN 1 AND 10)
    ) STRICT;
    CREATE INDEX events_by_time ON events (start_time);

    CREATE TABLE contexts (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      uid BLOB NOT NULL UNIQUE DEFAULT (randomblob(16)),
      at_s REAL NOT NULL,
      time TEXT NOT NULL,
      scene TEXT NOT NULL,
      utterance TEXT NOT NULL,
      location TEXT NOT NULL,
      activity TEXT NOT NULL,
      event_id INTEGER REFERENCES events(id) ON DELETE SET NULL
    ) STRICT;
    CREATE INDEX contexts_by_time ON contexts (time);
    CREATE INDEX contexts_by_event ON contexts (event_id);

    CREATE TABLE summaries (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      uid BLOB NOT NULL UNIQUE DEFAULT (randomblob(16)),
      session_id TEXT NOT NULL UNIQUE,
      start_time TEXT NOT NULL,
      end_time TEXT NOT NULL,
      text TEXT NOT NULL,
      text_by TEXT NOT NULL DEFAULT 'rule' CHECK (text_by IN ('rule','llm','wearer')),
      turns INTEGER NOT NULL,          -- how many it was made of
      importance INTEGER CHECK (importance BETWEEN 1 AND 10)
    ) STRICT;
    CREATE INDEX summaries_by_time ON summaries (start_time);

    CREATE TABLE index_keys (
      id INTEGER PRIMARY KEY,
      target_kind TEXT NOT NULL CHECK (target_kind IN ('turn','event','summary','profile')),
      target_id INTEGER NOT NULL,
      dimension TEXT NOT NULL CHECK (dimension IN ('temporal','spatial','semantic')),
      text TEXT NOT NULL,
      UNIQUE (target_kind, target_id, dimension, text)
    ) STRICT;

    CREATE TABLE profile (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      uid BLOB NOT NULL UNIQUE DEFAULT (randomblob(16)),
      kind TEXT NOT NULL CHECK (kind IN ('personality','preference','social background','habit','health')),
      text TEXT NOT NULL,
      confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
      learned TEXT NOT NULL,           -- when it was entered
      valid_from TEXT NOT NULL,        -- since when it has been true, as far as known
      valid_to TEXT,                   -- until when it was; null: it still is
      evidence INTEGER NOT NULL DEFAULT 1,
      made_by TEXT NOT NULL DEFAULT 'rule' CHECK (made_by IN ('rule','llm','wearer')),
      source_turn TEXT NOT NULL DEFAULT '',
      superseded_by INTEGER REFERENCES profile(id)
    ) STRICT;
    CREATE INDEX profile_now ON profile (kind) WHERE superseded_by IS NULL AND valid_to IS NULL;
    CREATE INDEX profile_by_successor ON profile (superseded_by) WHERE superseded_by IS NOT NULL;

    CREATE TABLE profile_sources (
      profile_id INTEGER NOT NULL REFERENCES profile(id) ON DELETE CASCADE,
      source_kind TEXT NOT NULL CHECK (source_kind IN ('turn','event','summary')),
      source_id INTEGER NOT NULL,
      time TEXT NOT NULL,
      quote TEXT NOT NULL,             -- the very words
      PRIMARY KEY (profile_id, source_kind, source_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX profile_sources_by_source ON profile_sources (source_kind, source_id);

    CREATE TABLE jobs (
      id INTEGER PRIMARY KEY,
      kind TEXT NOT NULL,              -- what is to be done, such as 'summarise' or 'embed'
      target_kind TEXT NOT NULL,
      target_id INTEGER NOT NULL,
      state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting','failed')),
      attempts INTEGER NOT NULL DEFAULT 0,
      UNIQUE (kind, target_kind, target_id)
    ) STRICT;

    CREATE TABLE forgotten (           -- what an import must not bring back
      uid BLOB PRIMARY KEY,
      time TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
"""

_INDEX = f"""
    CREATE TABLE embedders (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

    CREATE TABLE items (
      id INTEGER PRIMARY KEY,
      kind TEXT NOT NULL,
      ref_id INTEGER NOT NULL,
      time REAL NOT NULL,              -- the wearer's local clock in seconds, as rows.seconds gives them
      speaker TEXT NOT NULL DEFAULT '',
      location TEXT NOT NULL DEFAULT '',
      text TEXT NOT NULL,
      UNIQUE (kind, ref_id)
    ) STRICT;
    CREATE INDEX items_by_time ON items (time);

    CREATE TABLE item_vectors (
      id INTEGER PRIMARY KEY REFERENCES items(id) ON DELETE CASCADE,
      embedder INTEGER NOT NULL REFERENCES embedders(id),
      vector BLOB NOT NULL             -- vectors.pack: int8 and a scale
    ) STRICT;
    CREATE VIRTUAL TABLE item_bits USING vec0(kind text partition key, bits bit[{DIMENSIONS}]);

    CREATE VIRTUAL TABLE items_fts USING fts5(
      text, content='items', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
    );
    INSERT INTO items_fts (items_fts, rank) VALUES ('secure-delete', 1);

    CREATE TRIGGER item_added AFTER INSERT ON items BEGIN
      INSERT INTO items_fts (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER item_reworded AFTER UPDATE OF text ON items BEGIN
      INSERT INTO items_fts (items_fts, rowid, text) VALUES ('delete', old.id, old.text);
      INSERT INTO items_fts (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER item_gone AFTER DELETE ON items BEGIN
      INSERT INTO items_fts (items_fts, rowid, text) VALUES ('delete', old.id, old.text);
      DELETE FROM item_bits WHERE rowid = old.id;
    END;
"""

_GONE = (
    "".join(
        f"""
    CREATE TRIGGER {kind}_gone AFTER DELETE ON {TABLE_OF[kind]} BEGIN
      DELETE FROM items WHERE kind = '{kind}' AND ref_id = old.id;
      DELETE FROM index_keys WHERE target_kind = '{kind}' AND target_id = old.id;
      DELETE FROM profile_sources WHERE source_kind = '{kind}' AND source_id = old.id;
      DELETE FROM jobs WHERE target_kind = '{kind}' AND target_id = old.id;
    END;
    """
        for kind in OWNERS
    )
    + """
    CREATE TRIGGER key_gone AFTER DELETE ON index_keys BEGIN
      DELETE FROM items WHERE kind = 'key' AND ref_id = old.id;
    END;
"""
)

SECOND = f"""
    ALTER TABLE turns RENAME TO turns_1;
    ALTER TABLE contexts RENAME TO contexts_1;
    ALTER TABLE profile RENAME TO profile_1;
    {_TABLES}
    {_INDEX}
    INSERT INTO embedders (id, name) VALUES (1, 'all-MiniLM-L6-v2 int8');
    INSERT INTO meta VALUES ('device', lower(hex(randomblob(16)))), ('embedder', '1');

    INSERT INTO turns (id, uid, origin, turn_id, revision, time, heard, reply, location)
      SELECT id, uid_of('turn', turn_id, revision, time, heard),
             'v1.' || lower(hex(uid_of('turn', turn_id, revision, time, heard))),
             turn_id, revision, time, heard, reply, location FROM turns_1;
    INSERT INTO contexts (id, uid, at_s, time, scene, utterance, location, activity)
      SELECT id, uid_of('context', id, time, scene, utterance), at_s, time, scene, utterance, location,
             activity FROM contexts_1;
    INSERT INTO profile (id, uid, kind, text, confidence, learned, valid_from, valid_to, source_turn,
                         superseded_by)
      SELECT p.id, uid_of('profile', p.kind, p.text, p.learned, p.source_turn), p.kind, p.text, p.confidence,
             p.learned, p.learned, n.learned, p.source_turn, p.superseded_by
      FROM profile_1 p LEFT JOIN profile_1 n ON n.id = p.superseded_by ORDER BY p.id DESC;
    INSERT INTO profile_sources (profile_id, source_kind, source_id, time, quote)
      SELECT p.id, 'turn', max(t.id), p.learned, t.heard
      FROM profile p JOIN turns t ON t.turn_id = p.source_turn AND t.time = p.learned GROUP BY p.id;

    INSERT INTO items (kind, ref_id, time, speaker, location, text)
      SELECT 'turn', id, seconds_of(time), speaker, location, heard FROM turns;
    INSERT INTO items (kind, ref_id, time, text)
      SELECT 'profile', id, seconds_of(learned), text FROM profile WHERE superseded_by IS NULL;
    INSERT INTO item_vectors (id, embedder, vector)
      SELECT i.id, 1, pack_of(v.embedding) FROM items i JOIN turn_vectors v ON v.rowid = i.ref_id
      WHERE i.kind = 'turn';
    INSERT INTO item_vectors (id, embedder, vector)
      SELECT i.id, 1, pack_of(v.embedding) FROM items i JOIN profile_vectors v ON v.rowid = i.ref_id
      WHERE i.kind = 'profile';
    INSERT INTO item_bits (rowid, kind, bits)
      SELECT i.id, i.kind, vec_bit(bits_of(v.vector)) FROM items i JOIN item_vectors v ON v.id = i.id;

    UPDATE profile_1 SET superseded_by = NULL;
    DROP TABLE turns_1;
    DROP TABLE contexts_1;
    DROP TABLE profile_1;
    DROP TABLE turn_vectors;
    DROP TABLE profile_vectors;
    {_GONE}
"""
"""Needs the functions that ``migrate`` registers: uid_of, seconds_of, pack_of, bits_of."""

THIRD = """
    CREATE TABLE trash_batches (       -- forgettings that can be undone yet
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      time TEXT NOT NULL,
      until TEXT NOT NULL,             -- from then on they are for good
      gone TEXT NOT NULL               -- JSON: rows by kind
    ) STRICT;
    CREATE TABLE trash (
      id INTEGER PRIMARY KEY,
      batch INTEGER NOT NULL REFERENCES trash_batches(id) ON DELETE CASCADE,
      kind TEXT NOT NULL,
      row TEXT NOT NULL                -- JSON: as it was
    ) STRICT;
    CREATE INDEX trash_by_batch ON trash (batch, kind);
"""

_UNUSED = "".join(
    f"""
    CREATE TRIGGER used_{kind}_gone AFTER DELETE ON {TABLE_OF[kind]} BEGIN
      DELETE FROM turn_used WHERE kind = '{kind}' AND ref_id = old.id;
    END;
    """
    for kind in OWNERS
)

FOURTH = f"""
    CREATE TABLE turn_used (           -- the memories that a reply rested on
      turn INTEGER NOT NULL REFERENCES turns(id) ON DELETE CASCADE,
      kind TEXT NOT NULL CHECK (kind IN ('turn','event','summary','profile')),
      ref_id INTEGER NOT NULL,
      reason TEXT NOT NULL,            -- why it was recalled
      PRIMARY KEY (turn, kind, ref_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX turn_used_by_memory ON turn_used (kind, ref_id);
    {_UNUSED}
"""

STEPS: tuple[str, ...] = (FIRST, SECOND, THIRD, FOURTH)
