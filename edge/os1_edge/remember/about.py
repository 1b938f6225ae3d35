"""What the memory holds about something, for the wearer to see before it is forgotten: everything that says
it, wherever it stands, and apart from that what may mean it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from os1_edge.remember.forget import Forgetting, Row, foresee
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector, bits, unpack

SIMILAR = 0.55
"""Cosine similarity from which something may mean what was named. Shown, never forgotten unasked: among a
wearer's days, half of what lies above it means something else."""

SHOWN_SIMILAR = 50
"""Rows that may mean it, at most: more than anybody reads before saying yes."""

_SMALL = frozenset("a an and at for from in it its my of on or our the to with your".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Mention:
    """A row that says something, or may mean it."""

    kind: str
    id: int
    time: datetime
    text: str
    why: Literal["says", "means"]
    similarity: float = 1.0

    @property
    def row(self) -> Row:
        """What ``forget.foresee`` takes."""
        return self.kind, self.id


_TEXTS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "turn": ("turns", "time", "heard", ("heard", "reply", "speaker", "location")),
    "context": ("contexts", "time", "utterance", ("utterance", "scene", "location", "activity")),
    "event": ("events", "start_time", "summary", ("summary", "location", "activity")),
    "summary": ("summaries", "start_time", "text", ("text",)),
    "profile": ("profile", "learned", "text", ("text",)),
}
"""Where words stand, by kind: table, its time, the column shown, the columns searched."""


def about(store: Store, what: str, embed: Callable[[str], Vector] | None = None) -> list[Mention]:
    """Everything about ``what``: first what says it, by time, then what may mean it, most similar first.

    Args:
        store: the memory.
        what: a name, a thing, a phrase; all of its words have to be said, in any form of theirs.
        embed: text -> embedding; without it only what says it is found.

    Raises:
        ValueError: there is no word in ``what``.
    """
    wanted = words(what)
    if not wanted:
        raise ValueError("name what to look for in words")
    store.complete()
    said = sorted(_saying(store, wanted), key=lambda m: (m.time, m.kind, m.id))
    if embed is None:
        return said
    known = {mention.row for mention in said}
    return said + [m for m in _meaning(store, embed(what)) if m.row not in known]


def foresee_about(store: Store, what: str, found: Iterable[Mention]) -> Forgetting:
    """Works out what forgetting ``found``, which ``about`` found for ``what``, means.

    An event or a session's summary that says it goes with the last of its sources; while there are others,
    it is made again from those.
    """
    wanted, rows = words(what), list(found)
    again = {m.row for m in rows if m.why == "says" and m.kind in ("event", "summary")}
    chosen = {m.row for m in rows} - again
    return foresee(store, chosen, again, lambda text: wanted <= words(text))


def words(text: str) -> frozenset[str]:
    """The stems of the words of ``text`` that carry meaning, without accents; of small words alone, those."""
    found = re.findall(r"[^\W_]+(?:['’][^\W_]+)*", _plain(text))
    return frozenset(_stem(w) for w in found if w not in _SMALL) or frozenset(_stem(w) for w in found)


def _plain(text: str) -> str:
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return text.casefold()


def _stem(word: str) -> str:
    """Folds "Jack's", "peanuts", "running" into "jack", "peanut", "run": better one too many than too few."""
    word = re.sub(r"['’]s?$|['’]s\b", "", word)
    for ending in ("ingly", "edly", "ing", "ies", "ied", "es", "ed", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _saying(store: Store, wanted: frozenset[str]) -> Iterable[Mention]:
    begins = [stem for stem in wanted if not re.search("['’]", stem)]

    def says(*texts: bytes) -> bool:
        text = _plain(b" ".join(texts).decode(errors="replace"))
        # a stem is the beginning of its word, so most texts need not be taken apart: ten times as quick
        return all(stem in text for stem in begins) and wanted <= words(text)

    with store.reading() as db:
        db.create_function("says", -1, says, deterministic=True)
    for kind, (table, time, shown, searched) in _TEXTS.items():
        # as bytes: in text a function sees nothing behind a NUL, which older files may hold
        texts = ",".join(f"CAST({column} AS BLOB)" for column in searched)
        query = f"SELECT id, {time}, {shown} FROM {table} r WHERE says({texts})"
        if kind in ("event", "summary", "profile"):  # by its keys too: they may say what the line does not
            query += (
                f" UNION SELECT id, {time}, {shown} FROM {table} WHERE id IN (SELECT target_id "
                f"FROM index_keys WHERE target_kind = '{kind}' AND says(CAST(text AS BLOB)))"
            )
        if kind == "profile":
            quoted = "SELECT profile_id FROM profile_sources WHERE says(CAST(quote AS BLOB))"
            query += f" UNION SELECT id, learned, text FROM profile WHERE id IN ({quoted})"
        for row in store.rows(query):
            yield Mention(kind, row[0], datetime.fromisoformat(row[1]), row[2], "says")


def _meaning(store: Store, vector: Vector) -> list[Mention]:
    rows = store.rows(
        "SELECT i.kind, i.ref_id, v.vector FROM item_bits b JOIN item_vectors v ON v.id = b.rowid "
        "JOIN items i ON i.id = b.rowid WHERE b.bits MATCH vec_bit(?) AND b.k = 400",
        bits(vector),
    )
    scores = (unpack([row[2] for row in rows]) @ vector).tolist() if rows else []
    similar: dict[Row, float] = {}
    for (kind, ref, _), score in zip(rows, scores, strict=True):
        if score >= SIMILAR:
            target = _target(store, kind, ref)
            similar[target] = max(similar.get(target, 0.0), score)
    best = sorted(similar.items(), key=lambda pair: -pair[1])[:SHOWN_SIMILAR]
    return [m for (kind, ref), score in best if (m := _mention(store, kind, ref, round(score, 3)))]


def _target(store: Store, kind: str, ref: int) -> Row:
    """The memory that a key leads to; anything else itself."""
    if kind != "key":
        return kind, ref
    kind, ref = store.rows("SELECT target_kind, target_id FROM index_keys WHERE id = ?", ref)[0]
    return kind, ref


def _mention(store: Store, kind: str, ref: int, similarity: float) -> Mention | None:
    if kind not in _TEXTS:
        return None
    table, time, shown, _ = _TEXTS[kind]
    for row in store.rows(f"SELECT {time}, {shown} FROM {table} WHERE id = ?", ref):
        return Mention(kind, ref, datetime.fromisoformat(row[0]), row[1], "means", similarity)
    return None
