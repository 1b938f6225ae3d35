"""Candidates for recall where part of the memory is only on the server: words, times and names are looked up
on the device, meaning is asked of the server, and what is found there is fetched, opened and ranked here.

The server learns which rows are like a turned question, and which are fetched together; it never sees a word.
Where it cannot be reached recall goes on with what is on the device, and ``word`` says so.
"""

from __future__ import annotations

import json
import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from threading import Lock, Thread
from time import monotonic
from typing import TypeVar

from os1_edge.remember.hosted.content import SHELVES, Content
from os1_edge.remember.hosted.seal import NotSealed, Seal
from os1_edge.remember.hosted.shelf import NotReached, Shelf
from os1_edge.remember.hosted.state import FIRST_AWAY, MARK, embedder_of
from os1_edge.remember.query import Question
from os1_edge.remember.rows import OS1, OTHER, seconds
from os1_edge.remember.search import (
    BY_MEANING,
    BY_TIME,
    BY_WORDS,
    OF_EACH_KIND,
    Search,
    SearchedItem,
    affordable,
)
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector, unpack

log = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_S = 0.6
"""Time that the server has for one question, all its requests together; recall comes before a reply."""

RETRY_S = 30.0
"""Between tries to reach a server that could not be reached; meanwhile no question waits for it."""

OPENED = 2048
"""Opened rows kept in RAM, about 2 MB: a conversation asks for the same ones."""

UNREACHED = "what is older cannot be looked up now: the server that holds it is not reached"


class Line:
    """The connection to the server: opened at the first use, and anew beside the questions when it broke."""

    def __init__(self, connect: Callable[[], Shelf], clock: Callable[[], float] = monotonic) -> None:
        self._connect, self._clock = connect, clock
        self._lock = Lock()
        self._shelf: Shelf | None = None
        self._next_try: float | None = None
        self._trying = False

    def shelf(self) -> Shelf | None:
        """The server, if it is reached; only the very first call waits for that."""
        with self._lock:
            if self._shelf is not None or self._trying:
                return self._shelf
            first = self._next_try is None
            if self._next_try is not None and self._clock() < self._next_try:
                return None
            self._trying = True
        if first:
            self._try()
        else:
            Thread(target=self._try, name="memory server", daemon=True).start()
        return self._shelf

    def broke(self, why: NotReached) -> None:
        """A request failed."""
        with self._lock:
            shelf, self._shelf = self._shelf, None
            self._next_try = self._clock() + RETRY_S
        log.warning("%s; recall goes on with what is on this device", why)
        if shelf is not None:
            shelf.close()

    def close(self) -> None:
        """Ends the connection."""
        with self._lock:
            shelf, self._shelf, self._next_try = self._shelf, None, math.inf
        if shelf is not None:
            shelf.close()

    def _try(self) -> None:
        try:
            shelf: Shelf | None = self._connect()
        except NotReached as e:
            shelf = None
            if self._next_try is None:
                log.warning("%s; recall goes on with what is on this device", e)
        with self._lock:
            self._trying = False
            if self._next_try == math.inf and shelf is not None:
                shelf.close()
                return
            self._shelf, self._next_try = shelf, self._clock() + RETRY_S


class HostedSearch(Search):
    """Searches an open memory of which part is away. Where all of it came home meanwhile, as ``Search``."""

    def __init__(self, store: Store, seal: Seal, line: Line, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(store)
        self._seal, self._line, self._clock = seal, line, clock
        self._opened: OrderedDict[int, Content] = OrderedDict()
        self._until = 0.0
        self._names_of = -1
        self.word = ""
        """What to tell where the last question was not answered by all of the memory; "" where it was."""
        with store.reading() as db:
            db.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS temp.away_words USING fts5vocab(main, hosted_words, row)"
            )

    def warm(self) -> None:
        """As ``Search.warm``; and reaches for the server, so that the first question need not."""
        super().warm()
        self._line.shelf()

    def close(self) -> None:
        """Ends the connection."""
        self._line.close()

    def people(self) -> Collection[str]:
        """As ``Search.people``, of those that are away too."""
        if self._home():
            return super().people()
        ((newest,),) = self._store.rows("SELECT coalesce(max(item), 0) FROM hosted_away")
        if newest != self._names_of:
            self._names_of = newest
            for (speaker,) in self._store.rows(
                "SELECT DISTINCT speaker FROM hosted_away WHERE kind = 'turn'"
            ):
                if speaker.startswith(OTHER) and (name := speaker.removeprefix(OTHER)):
                    self._people[name.casefold()] = name
        return super().people()

    def by_meaning(self, vector: Vector) -> tuple[dict[int, float], list[int]]:
        """As ``Search.by_meaning``, with what the server finds."""
        found, firsts = super().by_meaning(vector)
        self.word, self._until = "", self._clock() + ANSWER_S
        if self._home() or embedder_of(self._store) != self._store.embedder():
            return found, firsts  # vectors of two embedders are never compared
        turned = self._seal.leaving(vector)
        for kind, shelf in SHELVES.items():
            any_away = "SELECT 1 FROM hosted_away WHERE kind = ? AND ref IS NOT NULL LIMIT 1"
            if not self._store.rows(any_away, kind):
                continue
            near = self._ask(partial(_nearest, shelf, turned)) or []
            away = self._numbers(row_id for row_id, _ in near)
            some = {away[row_id]: min(1.0, score) for row_id, score in near if row_id in away}
            found |= some
            firsts += list(some)[:OF_EACH_KIND]
        return found, firsts

    def _unmeasured(self, ids: Collection[int], meanings: Collection[int]) -> set[int]:
        """How alike the server calls a row says which are fetched; what counts is how alike they are."""
        return {*ids, *meanings} - {i for i in meanings if i < FIRST_AWAY}

    def _words(self, question: Question) -> tuple[dict[str, float], list[str], bool]:
        if self._home():
            return super()._words(question)
        ((here, away),) = self._store.rows(
            "SELECT (SELECT coalesce(max(id), 0) FROM items), (SELECT max(item) FROM hosted_away)"
        )
        count = max(here, (away or FIRST_AWAY) - FIRST_AWAY)
        holding: dict[str, int] = {}
        for table in ("item_words", "away_words"):
            for term in question.terms:
                for (docs,) in self._store.rows(f"SELECT doc FROM temp.{table} WHERE term = ?", term):
                    holding[term] = holding.get(term, 0) + int(docs)
        rarity = {
            term: max(math.log(max(count - n + 0.5, 0.5) / (n + 0.5)), 1e-6) for term, n in holding.items()
        }
        return rarity, *affordable(question.words, holding)

    def _by_words(self, looked_up: Sequence[str], ranked: bool) -> list[int]:
        if self._home() or not looked_up:
            return super()._by_words(looked_up, ranked)
        query = " OR ".join(f'"{word}"' for word in looked_up)
        order = "rank" if ranked else "rowid DESC"
        rows = [
            row
            for table in ("items_fts", "hosted_words")
            for row in self._store.rows(
                f"SELECT rank, rowid FROM {table} WHERE {table} MATCH ? ORDER BY {order} LIMIT ?",
                query,
                BY_WORDS,
            )
        ]
        return [row[1] for row in (sorted(rows) if ranked else rows)]

    def _by_time(self, question: Question) -> set[int]:
        found = super()._by_time(question)
        if self._home():
            return found
        for start, end in question.times.spans if question.times else ():
            found |= {
                row[0]
                for row in self._store.rows(
                    "SELECT item FROM hosted_away WHERE time >= ? AND time < ? AND kind <> 'key' "
                    "ORDER BY time DESC LIMIT ?",
                    seconds(start), seconds(end), BY_TIME,
                )
            }  # fmt: skip
        return found

    def _items(
        self, ids: Collection[int]
    ) -> tuple[list[SearchedItem], dict[tuple[str, int], tuple[int, str]]]:
        items, keys = super()._items([i for i in ids if i < FIRST_AWAY])
        away = {i for i in ids if i >= FIRST_AWAY}
        if not away:
            return items, keys
        beside = self._store.rows(  # their neighbours will be asked for: one request for all
            "SELECT n.item FROM hosted_away t JOIN hosted_away n ON n.kind = 'turn' "
            f"AND n.ref IN (t.ref - 1, t.ref + 1) WHERE t.kind = 'turn' AND t.item IN ({_list(away)})"
        )
        self._fetch(away | {row[0] for row in beside})
        leads = {}
        for number in away:
            content = self._opened.get(number)
            if content is not None and content.table == "index_keys":
                c = content.columns
                keys[c["target_kind"], c["target_id"]] = number, c["text"]
                leads[number] = c["target_kind"], c["target_id"]
        targets = self._by_ref(leads.values())
        self._fetch(targets)
        wanted = (away - leads.keys()) | set(targets)
        items += [self._item(i) for i in sorted(wanted) if i in self._opened]
        return [item for item in items if item.speaker != OS1], keys

    def _neighbours(
        self, turns: Sequence[SearchedItem], have: dict[int, SearchedItem]
    ) -> dict[int, tuple[SearchedItem | None, SearchedItem | None]]:
        wanted = {ref for turn in turns for ref in (turn.ref - 1, turn.ref + 1)} - have.keys()
        if not self._home():
            away = self._by_ref(("turn", ref) for ref in wanted)
            self._fetch(away)
            have |= {item.ref: item for i in away if i in self._opened for item in [self._item(i)]}
        return super()._neighbours(turns, have)

    def _meanings(self, ids: Iterable[int], vector: Vector) -> dict[int, float]:
        every = list(ids)
        found = super()._meanings([i for i in every if i < FIRST_AWAY], vector)
        embedder = self._store.embedder()
        away = {
            i: content.item.vector
            for i in every
            if (content := self._opened.get(i)) is not None
            and content.item is not None
            and content.item.vector
            and content.item.embedder == embedder
        }
        if away:
            similar = (unpack(list(away.values())) @ vector).tolist()
            found |= dict(zip(away, (min(1.0, max(-1.0, s)) for s in similar), strict=True))
        return found

    def _home(self) -> bool:
        return self._store.meta(MARK) is None

    def _numbers(self, row_ids: Iterable[bytes]) -> dict[bytes, int]:
        hexes = json.dumps([row_id.hex() for row_id in row_ids])
        return dict(
            self._store.rows(
                "SELECT row_id, item FROM hosted_away WHERE item IS NOT NULL "
                "AND row_id IN (SELECT unhex(value) FROM json_each(?))",
                hexes,
            )
        )

    def _by_ref(self, refs: Iterable[tuple[str, int]]) -> list[int]:
        by_kind: dict[str, list[int]] = {}
        for kind, ref in refs:
            by_kind.setdefault(kind, []).append(ref)
        return [
            row[0]
            for kind, some in by_kind.items()
            for row in self._store.rows(
                f"SELECT item FROM hosted_away WHERE kind = ? AND ref IN ({_list(some)})", kind
            )
        ]

    def _fetch(self, numbers: Iterable[int]) -> None:
        """Opens rows that are away, as far as the server gives them."""
        missing = [i for i in dict.fromkeys(numbers) if i not in self._opened]
        if not missing:
            return
        rows = {
            row[0]: (row[1], row[2])
            for row in self._store.rows(
                f"SELECT row_id, item, digest FROM hosted_away WHERE item IN ({_list(missing)})"
            )
        }
        given = self._ask(lambda s, t: s.get(list(rows), t, newest=False))
        if given is None:
            return
        for row_id, (number, digest) in rows.items():
            row = given.get(row_id)
            try:
                content = self._seal.open(row_id, row.shelf, row.sealed) if row is not None else b""
            except NotSealed:
                content = b""
            if self._seal.digest(content) != digest:
                self.word = "a memory on the server is not there as it was sent; it is not used"
                continue
            self._opened[number] = Content.decode(content)
        while len(self._opened) > OPENED:
            self._opened.popitem(last=False)

    def _item(self, number: int) -> SearchedItem:
        content = self._opened[number]
        item, columns = content.item, content.columns
        assert item is not None  # only what is searched has a number
        return SearchedItem(
            id=number,
            kind=item.kind,  # type: ignore[arg-type]  # a Kind when it was sent, and unchanged
            ref=item.ref,
            time=item.time,
            speaker=item.speaker,
            location=item.location,
            text=item.text,
            session=columns.get("session_id", ""),
            importance=columns.get("importance"),
            turn_id=columns.get("turn_id", ""),
            source_turn=columns.get("source_turn", ""),
        )

    def _ask(self, what: Callable[[Shelf, float], T]) -> T | None:
        """What the server answers, in the time that the question has left; ``None``: it does not."""
        shelf, left = self._line.shelf(), self._until - self._clock()
        if shelf is None or left <= 0:
            self.word = UNREACHED
            return None
        try:
            return what(shelf, left)
        except NotReached as e:
            self._line.broke(e)
            self.word = UNREACHED
            return None


def _nearest(shelf: int, vector: Vector, server: Shelf, timeout_s: float) -> list[tuple[bytes, float]]:
    return server.nearest(shelf, vector, BY_MEANING, timeout_s)


def _list(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))
