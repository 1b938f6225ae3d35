"""Candidates for recall out of the memory file: by words (FTS5), by meaning (signs scanned, the best few
hundred scored), by time, by index key; each turn with the one before and the one after it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from os1_edge.remember.query import Question
from os1_edge.remember.ranking import Candidate
from os1_edge.remember.rows import OS1, OTHER, Kind, moment, seconds
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.stem import counting, stem
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector, unpack

BY_WORDS = 40
"""Memories found by their words that are ranked: 100 a list find no more on LoCoMo (decision 0007)."""

BY_MEANING = 40
"""And by their meaning, out of those scanned."""

SEEDS = 12
"""The best of each list whose neighbours are candidates too."""

SCANNED: dict[Kind, int] = {"turn": 250, "event": 50, "summary": 50, "profile": 50, "key": 100}
"""How many of each kind are scored out of the scan of signs: 100 hold 99.4 % of the true top 20 of 3,584 real
turns, 250 hold 97.6 % of that of 200,000 made-up ones (decision 0007)."""

BY_TIME = 60
"""Newest memories of each time that the question names."""

POSTINGS = 4_000
"""Entries of the word index read for one question, the rarest words' first: BM25 takes a microsecond for
each. A word in more memories than are left of this tells little: with one memory in a hundred as the most,
LoCoMo's six conversations in one memory lose 0.2 points at 10 (76.5 to 76.3). If even the rarest is in more,
the newest that hold it are taken."""

SESSION_GAP_S = 1800.0
"""Turns without a session id that are further apart are no neighbours."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found."""

    candidates: list[Candidate]
    rarity: dict[str, float]
    """Inverse document frequency of the question's terms that the memory holds."""


class SearchedItem(NamedTuple):
    """What the index holds of a memory, with what its own table adds."""

    id: int
    kind: Kind
    ref: int
    time: float
    speaker: str
    location: str
    text: str
    session: str
    importance: int | None
    turn_id: str
    source_turn: str


OF_EACH_KIND = 3
"""Nearest items of each kind that are looked at whatever else is nearer: a question asked forty times must
not crowd out the one line of the profile that answers it."""


class Search:
    """Searches one open memory. Any thread; the store lets one in at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._people: dict[str, str] = {}
        self._seen = 0
        with store.reading() as db:
            db.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS temp.item_words USING fts5vocab(main, items_fts, row)"
            )

    word = ""
    """What to tell where the last question was not answered by all of the memory (``hosted``)."""

    def warm(self) -> None:
        """Reads what every question needs (0.4 s at 200,000 memories)."""
        self.people()
        self._store.nearest_signs("turn", np.zeros(DIMENSIONS, np.float32), 1)

    def close(self) -> None:
        """Nothing is asked any more."""

    def people(self) -> Collection[str]:
        """Names of those other than the wearer who speak in the memory; each item is looked at once."""
        for last, speaker in self._store.rows(
            # "+": by id; the index over kinds would lead through all turns every time
            "SELECT max(id), speaker FROM items WHERE id > ? AND +kind = 'turn' GROUP BY speaker",
            self._seen,
        ):
            self._seen = max(self._seen, last)
            if speaker.startswith(OTHER) and (name := speaker.removeprefix(OTHER)):
                self._people[name.casefold()] = name
        return self._people.values()

    def find(self, question: Question, vector: Vector) -> Found:
        """The candidates for ``question``, whose ``plain`` words have the embedding ``vector``."""
        with self._store.reading():  # one view of the memory from the first list to the last row
            rarity, looked_up, few = self._words(question)
            by_words = self._by_words(looked_up, few)
            meanings, firsts = self.by_meaning(vector)
            nearest = sorted(meanings, key=lambda i: (-meanings[i], i))[:BY_MEANING]
            by_meaning = list(dict.fromkeys([*nearest, *firsts]))
            items, keys = self._items({*by_words, *by_meaning, *self._by_time(question)})
            loaded = {item.ref: item for item in items if item.kind == "turn"}
            near = self._neighbours(list(loaded.values()), loaded)
            known = {item.id for item in items}
            beside = {
                i.id: i
                for seed in (*by_words[:SEEDS], *by_meaning[:SEEDS])
                for i in near.get(seed, ())
                if i is not None and i.id not in known
            }
            near |= self._neighbours(list(beside.values()), loaded)
            items += beside.values()
            every = {i.id for i in items} | {i.id for pair in near.values() for i in pair if i is not None}
            meanings |= self._meanings(self._unmeasured(every, meanings), vector)
        return Found(_candidates(items, keys, near, meanings, set(rarity)), rarity)

    def _words(self, question: Question) -> tuple[dict[str, float], list[str], bool]:
        """Rarity of each term; the words to look up, the rarest first; whether few enough hold them to be
        ranked."""
        count = int(self._store.rows("SELECT coalesce(max(id), 0) FROM items")[0][0])
        rarity: dict[str, float] = {}
        holding: dict[str, int] = {}
        for term in question.terms:
            found = self._store.rows("SELECT doc FROM temp.item_words WHERE term = ?", term)
            if found:
                holding[term] = int(found[0][0])
                rarity[term] = max(math.log((count - holding[term] + 0.5) / (holding[term] + 0.5)), 1e-6)
        return rarity, *affordable(question.words, holding)

    def _by_words(self, looked_up: Sequence[str], ranked: bool) -> list[int]:
        if not looked_up:
            return []
        query = " OR ".join(f'"{word}"' for word in looked_up)  # letters and digits only: see stem.words
        order = "rank" if ranked else "rowid DESC"
        return [
            row[0]
            for row in self._store.rows(
                f"SELECT rowid FROM items_fts WHERE items_fts MATCH ? ORDER BY {order} LIMIT ?",
                query,
                BY_WORDS,
            )
        ]

    def _by_time(self, question: Question) -> set[int]:
        return {
            row[0]
            for start, end in (question.times.spans if question.times else ())
            for row in self._store.rows(
                "SELECT id FROM items WHERE time >= ? AND time < ? AND kind <> 'key' "
                "ORDER BY time DESC LIMIT ?",
                seconds(start), seconds(end), BY_TIME,
            )
        }  # fmt: skip

    def by_meaning(self, vector: Vector) -> tuple[dict[int, float], list[int]]:
        """Cosine similarity of the items whose signs are nearest to those of ``vector``, by item; and the
        nearest of each kind."""
        near = {kind: self._store.nearest_signs(kind, vector, k) for kind, k in SCANNED.items()}
        found = self._meanings([item for ids in near.values() for item in ids], vector)
        firsts = [
            item
            for ids in near.values()
            for item in sorted(found.keys() & ids, key=lambda i: (-found[i], i))[:OF_EACH_KIND]
        ]
        return found, firsts

    def _meanings(self, ids: Iterable[int], vector: Vector) -> dict[int, float]:
        rows = self._store.rows(
            f"SELECT id, vector FROM item_vectors WHERE id IN ({_list(ids)}) AND embedder = {_EMBEDDER}"
        )
        return _cosines(rows, vector)

    def _unmeasured(self, ids: Collection[int], meanings: Collection[int]) -> set[int]:
        return set(ids) - set(meanings)

    def _items(
        self, ids: Collection[int]
    ) -> tuple[list[SearchedItem], dict[tuple[str, int], tuple[int, str]]]:
        """The items with these ids; keys as what they lead to, with the key's item and words."""
        keys = {
            (kind, ref): (item, text)
            for item, kind, ref, text in self._store.rows(
                "SELECT i.id, k.target_kind, k.target_id, k.text FROM items i JOIN index_keys k "
                # "+": by id; the index over kinds would lead through all keys every time
                f"ON k.id = i.ref_id WHERE +i.kind = 'key' AND i.id IN ({_list(ids)})"
            )
        }
        found = self._read(f"i.kind <> 'key' AND i.id IN ({_list(ids)})")
        known = {(item.kind, item.ref) for item in found}
        for kind in ("turn", "event", "summary", "profile"):
            refs = [ref for k, ref in keys if k == kind and (k, ref) not in known]
            if refs:
                found += self._read(f"i.kind = '{kind}' AND i.ref_id IN ({_list(refs)})")
        return [item for item in found if item.speaker != OS1], keys

    def _neighbours(
        self, turns: Sequence[SearchedItem], have: dict[int, SearchedItem]
    ) -> dict[int, tuple[SearchedItem | None, SearchedItem | None]]:
        """What was said before and after each of ``turns``; ``have``: turns read already, by row, and those
        read now."""
        wanted = {ref for turn in turns for ref in (turn.ref - 1, turn.ref + 1)} - have.keys()
        read = self._read(f"i.kind = 'turn' AND i.ref_id IN ({_list(wanted)})") if wanted else []
        have |= {turn.ref: turn for turn in read}
        return {
            turn.id: (_beside(turn, have.get(turn.ref - 1)), _beside(turn, have.get(turn.ref + 1)))
            for turn in turns
        }

    def _read(self, where: str) -> list[SearchedItem]:
        rows = self._store.rows(
            "SELECT i.id, i.kind, i.ref_id, i.time, i.speaker, i.location, i.text, "
            "coalesce(t.session_id, s.session_id, ''), coalesce(t.importance, e.importance, s.importance), "
            "coalesce(t.turn_id, ''), coalesce(p.source_turn, '') FROM items i "
            "LEFT JOIN turns t ON i.kind = 'turn' AND t.id = i.ref_id "
            "LEFT JOIN events e ON i.kind = 'event' AND e.id = i.ref_id "
            "LEFT JOIN summaries s ON i.kind = 'summary' AND s.id = i.ref_id "
            f"LEFT JOIN profile p ON i.kind = 'profile' AND p.id = i.ref_id WHERE {where}"
        )
        return [SearchedItem._make(row) for row in rows]


_EMBEDDER = "(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'embedder')"


def affordable(words: Sequence[str], holding: Mapping[str, int]) -> tuple[list[str], bool]:
    """The words to look up, the rarest first, as far as ``POSTINGS`` reaches; whether it reached for all.

    Args:
        words: the question's.
        holding: how many items hold a term.
    """
    left, chosen = POSTINGS, list[str]()
    for word in sorted(words, key=lambda w: holding.get(stem(w), 0)):
        n = holding.get(stem(word), 0)
        if n and (not chosen or n <= left):
            chosen.append(word)
            left -= n
    return chosen, left >= 0


def said(speaker: str, text: str) -> str:
    """The words of an item without the name before them (``rows.searched``)."""
    return text.removeprefix(f"{speaker.removeprefix(OTHER)}: ") if speaker.startswith(OTHER) else text


def _list(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _cosines(rows: Sequence[tuple[Any, ...]], vector: Vector) -> dict[int, float]:
    if not rows:
        return {}
    similar = np.clip(unpack([row[1] for row in rows]) @ vector, -1.0, 1.0).tolist()
    return dict(zip((row[0] for row in rows), similar, strict=True))


def _beside(turn: SearchedItem, other: SearchedItem | None) -> SearchedItem | None:
    if other is None or other.session != turn.session:
        return None
    return other if turn.session or abs(other.time - turn.time) <= SESSION_GAP_S else None


def _candidates(
    items: Sequence[SearchedItem],
    keys: dict[tuple[str, int], tuple[int, str]],
    near: dict[int, tuple[SearchedItem | None, SearchedItem | None]],
    meanings: dict[int, float],
    terms: set[str],
) -> list[Candidate]:
    counted = counting(terms)
    known: dict[int, dict[str, int]] = {}

    def count(item: SearchedItem) -> dict[str, int]:
        if item.id not in known:
            known[item.id] = counted(said(item.speaker, item.text))
        return known[item.id]

    out = []
    for item in items:
        held, text = count(item), said(item.speaker, item.text)
        before, after = near.get(item.id, (None, None))
        time = moment(item.time)
        key, via = keys.get((item.kind, item.ref), (0, ""))
        own = meanings.get(item.id, 0.0)
        by_key = meanings.get(key, 0.0)
        out.append(
            Candidate(
                kind=item.kind,
                ref_id=item.ref,
                time=time,
                text=text,
                speaker=item.speaker,
                location=item.location,
                importance=item.importance,
                group=item.session or f"{time:%Y-%m-%d}",
                meaning=max(own, by_key),
                before=meanings.get(before.id, 0.0) if before else 0.0,
                after=meanings.get(after.id, 0.0) if after else 0.0,
                terms=held,
                length=max(1, len(text.split())),
                near=frozenset(held).union(*(count(n) for n in (before, after) if n)),
                source_turn=item.source_turn,
                turn_id=item.turn_id,
                via=via if by_key > own else "",
            )
        )
    return out
