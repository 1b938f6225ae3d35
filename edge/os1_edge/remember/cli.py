"""`os1 memory`: what the memory holds, for its wearer to read, correct, take along and forget. A skin."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import click

from os1_edge.remember import cli_change, cli_files
from os1_edge.remember.about import words
from os1_edge.remember.backup import backups
from os1_edge.remember.cli_common import (
    KINDS,
    Access,
    access,
    as_json,
    embedder,
    plain,
    put,
    row_of,
    say,
    time_of,
)
from os1_edge.remember.connection import BadMemory
from os1_edge.remember.derived import keys_of
from os1_edge.remember.forget import Row
from os1_edge.remember.hosted import cli as hosted
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.rows import now
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

_LISTED = {
    "turn": "SELECT 'turn' kind, id, time, heard text, reply, location, speaker FROM turns "
    "WHERE superseded_by IS NULL",
    "event": "SELECT 'event' kind, id, start_time time, summary, '', location, '' FROM events",
    "summary": "SELECT 'summary' kind, id, start_time time, text, '', '', '' FROM summaries",
    "profile": "SELECT 'profile' kind, id, valid_from time, text, '', '', '' FROM profile "
    "WHERE superseded_by IS NULL AND valid_to IS NULL",
    "context": "SELECT 'context' kind, id, time, scene || ' ' || utterance, '', location, '' FROM contexts",
}
_COUNTED = ("turns", "contexts", "events", "summaries", "index_keys", "profile", "jobs", "items", "trash")
_NAMES = ("kind", "id", "time", "text", "reply", "location", "speaker")


@click.group()
def memory() -> None:
    """What OS-1 remembers: read it, correct it, take it along, forget it.

    The memory is one encrypted file. Rows are named like turn:12, event:3, profile:7.
    """


for _command in (*cli_change.COMMANDS, *cli_files.COMMANDS, *hosted.COMMANDS):
    memory.add_command(_command)


@memory.command("list")
@access
@click.option(
    "--kind", type=click.Choice(KINDS), multiple=True, help="Only these; default: all but contexts."
)
@click.option("--since", help="From this local time on (2026-03-02, 2026-03-02T08:30).")
@click.option("--until", help="Before this local time.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="The newest.")
@as_json
def list_(
    memory: Access, kind: tuple[str, ...], since: str | None, until: str | None, limit: int, as_json: bool
) -> None:
    """List memories, the newest last."""
    first, last = time_of(since), time_of(until)
    with memory.opened() as store:
        union = " UNION ALL ".join(_LISTED[k] for k in kind or KINDS[:-1])
        rows = store.rows(
            f"SELECT * FROM ({union}) AS m WHERE m.time >= ? AND m.time < ? "
            "ORDER BY m.time DESC, kind DESC, id DESC LIMIT ?",
            first.isoformat() if first else "",
            last.isoformat() if last else "9999",
            limit,
        )
    found = [dict(zip(_NAMES, row, strict=True)) for row in reversed(rows)]
    for entry in found:
        entry["id"] = f"{entry['kind']}:{entry['id']}"
    if as_json:
        put({"memories": found})
        return
    for entry in found:
        _print(entry)
    if not found:
        say("nothing")


@memory.command()
@access
@click.argument("ids", nargs=-1, required=True)
@as_json
def show(memory: Access, ids: tuple[str, ...], as_json: bool) -> None:
    """Show all that is kept of the memories named by their IDS: turn:12 profile:3."""
    rows = [row_of(text) for text in ids]
    with memory.opened() as store:
        shown = [_whole(store, row) for row in rows]
    if as_json:
        put(shown[0] if len(shown) == 1 else shown)
        return
    for entry in shown:
        for name, value in entry.items():
            if value not in (None, "", []):
                say(f"{name + ':':16}{plain(str(value))}")
        say("")


@memory.command()
@access
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True)
@as_json
def search(memory: Access, query: str, limit: int, as_json: bool) -> None:
    """Find memories about QUERY, by words and by meaning, the best first."""
    if not words(query):
        raise click.UsageError("name what to look for in words")
    with memory.opened() as store:
        found = _search(store, query, limit)
    if as_json:
        put({"query": query, "memories": found})
        return
    for entry in found:
        _print(entry, f"{entry['score']:.2f}  " if entry["score"] is not None else "      ")
    if not found:
        say("nothing")


@memory.command()
@access
@as_json
def stats(memory: Access, as_json: bool) -> None:
    """Say how much there is and where it lies."""
    with memory.opened() as store:
        counts = {
            table: store.rows(f"SELECT count(*) FROM {table}")[0][0]
            for table in (
                "turns",
                "contexts",
                "events",
                "summaries",
                "index_keys",
                "profile",
                "jobs",
                "items",
            )
        }
        (span,) = store.rows("SELECT min(time), max(time) FROM turns")
        told: dict[str, Any] = {
            "file": str(memory.file),
            "bytes": memory.file.stat().st_size,
            "rows": counts,
            "first": span[0],
            "last": span[1],
            "embedder": store.embedder(),
            "without_vector": counts["items"] - store.rows("SELECT count(*) FROM item_vectors")[0][0],
            "schema": store.rows("PRAGMA user_version")[0][0],
            "device": store.meta("device"),
            "backups": backups(store),
        }
    if as_json:
        put(told)
        return
    say(f"{told['file']}: {told['bytes'] / 1e6:.1f} MB, schema {told['schema']}, {told['embedder']}")
    say("  " + ", ".join(f"{n} {table.replace('_', ' ')}" for table, n in counts.items()))
    if told["first"]:
        say(f"  from {told['first']} to {told['last']}")
    for copy in told["backups"]:
        say(f"  backup: {copy}")


def _print(entry: dict[str, Any], score: str = "") -> None:
    who = entry.get("speaker", "")
    who = f"{who.removeprefix('other:')}: " if who not in ("", "wearer") else ""
    say(f"{entry['id']:14}{score}{str(entry['time'])[:16].replace('T', ' ')}  {who}{plain(entry['text'])}")
    if entry.get("reply"):
        say(f"{'':32}-> {plain(entry['reply'])}")


def _whole(store: Store, row: Row) -> dict[str, Any]:
    from os1_edge.remember.schema import TABLES

    kind, number = row
    names = [column[1] for column in store.rows(f"PRAGMA table_info({TABLES[kind]})")]
    found = store.rows(f"SELECT * FROM {TABLES[kind]} WHERE id = ?", number)
    if not found:
        raise BadMemory(f"there is no {kind}:{number} in the memory")
    entry: dict[str, Any] = {"kind_of_row": kind, **dict(zip(names, found[0], strict=True))}
    entry["id"] = f"{kind}:{number}"
    entry["uid"] = entry["uid"].hex()
    if kind in ("turn", "profile"):
        entry["revisions"] = _revisions(store, kind, number)
    if kind == "profile":
        entry["sources"] = [{**asdict(s), "id": f"{s.kind}:{s.id}"} for s in store.sources(number)]
    if kind == "event":
        members = store.rows("SELECT id FROM contexts WHERE event_id = ? ORDER BY time, id", number)
        entry["made_of"] = [f"context:{member}" for (member,) in members]
    if kind != "context":
        keys = keys_of(store, kind, number)  # type: ignore[arg-type]  # one of the kinds that have keys
        entry["keys"] = [{"dimension": k.dimension, "text": k.text} for k in keys]
    return entry


def _revisions(store: Store, kind: str, number: int) -> list[dict[str, Any]]:
    """What this row took the place of, newest first."""
    table, text = ("turns", "heard") if kind == "turn" else ("profile", "text")
    rows = store.rows(
        f"WITH RECURSIVE chain(id) AS (SELECT id FROM {table} WHERE superseded_by = ? UNION "
        f"SELECT t.id FROM {table} t JOIN chain c ON t.superseded_by = c.id) "
        f"SELECT id, {text} FROM {table} WHERE id IN (SELECT id FROM chain) ORDER BY id DESC",
        number,
    )
    return [{"id": f"{kind}:{row[0]}", "text": row[1]} for row in rows]


def _search(store: Store, query: str, limit: int) -> list[dict[str, Any]]:
    """As recall ranks it, questions included; by words alone where there is no embedding model."""
    embed = embedder()
    if embed is not None:
        rules = RecallRules(limit=limit, min_similarity=-1.0, tokens=limit * 10_000, questions=True)
        hits = Recall(store, _One(embed), rules).recall(query, now())
        return [_entry(store, hit.kind, hit.ref_id, hit.score) for hit in hits]
    terms = " ".join(f'"{term}"' for term in re.findall(r"\w+", query))
    found: dict[str, dict[str, Any]] = {}
    for item in store.rows(
        "SELECT i.kind, i.ref_id FROM items_fts f JOIN items i ON i.id = f.rowid "
        "WHERE items_fts MATCH ? ORDER BY rank LIMIT ?",
        terms,
        4 * limit,
    ):
        kind, ref = item
        if kind == "key":  # a memory may be found by several of its keys
            kind, ref = store.rows("SELECT target_kind, target_id FROM index_keys WHERE id = ?", ref)[0]
        found.setdefault(f"{kind}:{ref}", _entry(store, kind, ref, None))
    return list(found.values())[:limit]


@dataclass(frozen=True)
class _One:
    """An embedder as recall asks for one."""

    one: Callable[[str], Vector]


def _entry(store: Store, kind: str, ref: int, score: float | None) -> dict[str, Any]:
    found = store.rows(f"SELECT * FROM ({_LISTED[kind]}) WHERE id = ?", ref)
    listed = dict(zip(_NAMES, found[0], strict=True)) if found else {"text": "", "time": ""}
    return {**listed, "kind": kind, "id": f"{kind}:{ref}", "score": score}
