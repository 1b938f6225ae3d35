"""The wearer's page over real sockets and a real memory: read, correct, forget, take back, take along."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import memories
import numpy as np
import pytest
from memories import KEY, at, know, say, see, summary

from os1_edge.remember.choices import Choices, load_choices
from os1_edge.remember.key import KeySource, from_passphrase, salt_of
from os1_edge.remember.memory import Memory
from os1_edge.remember.rekey import new_lock, rekey
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector
from os1_edge.review.api import Review
from os1_edge.review.lock import TRIES
from os1_edge.review.numbers import numbers
from os1_edge.see.image import decode_image
from os1_edge.web.glasses import BrowserGlasses
from os1_edge.web.pairing import Doors
from os1_edge.web.run import HERE
from os1_edge.web.server import make_app, served

HOSTILE = "<img src=x onerror=alert(1)> <script>alert(2)</script>"


class Meanings:
    """An embedder to which no two texts are alike."""

    name = "fake"

    def one(self, text: str) -> Vector:
        return memories.meaning(text)

    def many(self, texts: list[str]) -> Any:
        return np.stack([memories.meaning(text) for text in texts])


@dataclass
class Page:
    """A paired browser on a memory."""

    url: str
    http: aiohttp.ClientSession
    review: Review
    forgot: list[None]
    """One for each time that a companion would be told."""

    async def get(self, path: str, status: int = 200) -> Any:
        async with self.http.get(f"{self.url}/api/review/{path}") as r:
            assert r.status == status, await r.text()
            return await r.json()

    async def post(self, path: str, body: Any, status: int = 200) -> Any:
        headers = {"Origin": self.url}
        async with self.http.post(f"{self.url}/api/review/{path}", json=body, headers=headers) as r:
            assert r.status == status, await r.text()
            return await r.json()


@asynccontextmanager
async def opened(folder: Path, key: bytes = KEY) -> AsyncIterator[Page]:
    file = folder / "memory.db"
    embedder: Any = Meanings()
    memory = Memory(Store(file, key), embedder)
    applied: list[Choices] = []
    forgot: list[None] = []

    async def told() -> None:
        forgot.append(None)

    try:
        known = (memory, embedder, file, key, folder / "turns.jsonl")
        review = Review.of(*known, Choices(), applied.append, told)
        doors = Doors()
        app = make_app(None, BrowserGlasses(decode_image), doors, frozenset(HERE), review)
        jar = aiohttp.CookieJar(unsafe=True)
        async with served(app, ["127.0.0.1"], 0, None) as port, aiohttp.ClientSession(cookie_jar=jar) as http:
            url = f"http://127.0.0.1:{port}"
            async with http.post(f"{url}/api/pair", json={"code": doors.code}, headers={"Origin": url}) as r:
                assert r.status == 200
            yield Page(url, http, review, forgot)
    finally:
        memory.close()


@pytest.fixture
def page(tmp_path: Path) -> Callable[[Callable[[Page], Awaitable[None]]], None]:
    """Runs a test against a memory of a small day."""
    store = memories.new(tmp_path)
    tea = say(store, "t1", "I never drink coffee.", 0)
    say(store, "t2", HOSTILE, 5)
    say(store, "t3", "Where did I park?", 24 * 60, session="s2")
    seen = [see(store, "cafe", 0, "I never drink coffee."), see(store, "gym", 6)]
    memories.event(store, seen[1:], "Lifted weights.", 6)
    summary(store, "s1", "Talked of coffee.", 2)
    know(store, "The wearer never drinks coffee.", [tea], 0)
    store.close()

    def run(work: Callable[[Page], Awaitable[None]]) -> None:
        async def go() -> None:
            async with opened(tmp_path) as found, asyncio.timeout(60):
                await work(found)

        asyncio.run(go())

    return run


def test_days_and_their_conversations_are_told_with_what_was_in_view(page: Any) -> None:
    async def work(p: Page) -> None:
        found = await p.get("days")
        assert [(d["date"], d["turns"]) for d in found["days"]] == [("2026-03-03", 1), ("2026-03-02", 2)]
        assert found["days"][1]["events"][0]["summary"] == "Lifted weights."
        assert [d["date"] for d in (await p.get("days?before=2026-03-03"))["days"]] == ["2026-03-02"]
        day = await p.get("day?date=2026-03-02")
        talk = day["conversations"][0]
        assert talk["summary"]["text"] == "Talked of coffee."
        assert talk["turns"][0]["heard"] == "I never drink coffee."
        assert talk["turns"][0]["scene"] == "A cafe."
        assert (
            talk["turns"][1]["heard"] == HOSTILE
        )  # as it was said: it is the page that never makes it markup

    page(work)


def test_a_profile_line_says_what_it_rests_on(page: Any) -> None:
    async def work(p: Page) -> None:
        (line,) = (await p.get("profile"))["entries"]
        assert line["text"] == "The wearer never drinks coffee."
        assert line["sources"] == [{"id": "turn:1", "time": at(0).isoformat(), "quote": "words of 1"}]
        assert line["confidence"] == 0.9

    page(work)


def test_a_correction_counts_and_the_old_words_are_history(page: Any) -> None:
    async def work(p: Page) -> None:
        await p.post("edit", {"id": "profile:1", "text": "The wearer drinks decaf."})
        (line,) = (await p.get("profile"))["entries"]
        assert (line["text"], line["made_by"]) == ("The wearer drinks decaf.", "wearer")
        assert [b["text"] for b in line["before"]] == ["The wearer never drinks coffee."]
        await p.post("edit", {"id": "turn:1", "text": "I never drink tea."})
        day = await p.get("day?date=2026-03-02")
        assert day["conversations"][0]["turns"][0]["heard"] == "I never drink tea."

    page(work)


def test_what_is_forgotten_is_told_before_gone_after_and_can_be_taken_back(page: Any) -> None:
    async def work(p: Page) -> None:
        plan = await p.post("foresee", {"ids": ["turn:1"]})
        assert plan["gone"]["turn"] == 1
        assert len((await p.get("profile"))["entries"]) == 1  # nothing happened yet
        receipt = await p.post("forget", {"ids": ["turn:1"]})
        assert receipt["undo_until"]
        assert (await p.get("profile"))["entries"] == []  # it rested on that turn alone
        found = (await p.get("search?q=coffee"))["found"]
        assert not [f for f in found if "drink" in f["text"]]
        assert len((await p.get("undoable"))["undoable"]) == 1
        assert (await p.post("undo", {}))["back"]["turn"] == 1
        assert len((await p.get("profile"))["entries"]) == 1
        assert (await p.post("undo", {}))["back"] is None

    page(work)


def test_a_companion_is_told_of_each_change_so_that_it_speaks_of_nothing_else(page: Any) -> None:
    async def work(p: Page) -> None:
        await p.post("foresee", {"ids": ["turn:1"]})
        assert len(p.forgot) == 0
        await p.post("edit", {"id": "turn:1", "text": "I never drink tea."})
        assert len(p.forgot) == 1
        await p.post("forget", {"ids": ["turn:2"]})
        assert len(p.forgot) == 2
        await p.post("undo", {})
        assert len(p.forgot) == 3

    page(work)


def test_a_span_and_a_subject_can_be_forgotten_for_good(page: Any) -> None:
    async def work(p: Page) -> None:
        span = {"since": "2026-03-03T00:00", "until": "2026-03-04T00:00"}
        assert (await p.post("forget", span))["gone"]["turn"] == 1
        await p.post("forget", {"about": "coffee"})
        await p.post("purge", {})
        assert (await p.get("undoable"))["undoable"] == []
        raw = json.dumps([await p.get("days"), await p.get("profile"), await p.get("search?q=coffee")])
        assert "coffee" not in raw
        assert "park" not in raw

    page(work)


def test_all_of_it_can_be_taken_along_without_touching_the_disk(page: Any, tmp_path: Path) -> None:
    def names() -> set[str]:
        return {f.name for f in tmp_path.iterdir()}

    async def work(p: Page) -> None:
        before = names()
        headers = {"Origin": p.url, "Accept-Encoding": "gzip"}
        async with p.http.post(f"{p.url}/api/review/export", headers=headers) as r:
            assert r.status == 200
            assert "attachment" in r.headers["Content-Disposition"]
            lines = [json.loads(line) for line in (await r.text()).splitlines()]
        assert any(line.get("heard") == HOSTILE for line in lines)
        assert names() <= before | {"memory.db-wal", "memory.db-shm"}
        async with p.http.get(f"{p.url}/api/review/export") as r:
            assert r.status == 405  # no link can set it off

    page(work)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("edit", {"id": "turn:1"}, 400),
        ("edit", {"id": "turn:1", "text": "  "}, 400),
        ("edit", {"id": "turn:99", "text": "x"}, 409),
        ("edit", {"id": "context:1", "text": "x"}, 400),
        ("edit", {"id": "turn:1", "text": "x" * 3000}, 400),
        ("forget", {}, 400),
        ("forget", {"ids": []}, 400),
        ("forget", {"ids": ["turn:1; DROP TABLE turns"]}, 400),
        ("forget", {"ids": ["turn:99"]}, 409),
        ("forget", {"ids": ["turn:0"]}, 400),
        ("forget", {"about": "!!"}, 400),
        ("forget", {"since": "2026-03-02T08:00", "until": "2026-03-02T08:00"}, 400),
        ("forget", {"since": "2026-03-02T08:00+02:00", "until": "2026-03-02T09:00"}, 400),
        ("foresee", {"since": 5, "until": None}, 400),
        ("choices", {"keep_turns_days": 0}, 400),
        ("choices", {"share": True}, 400),
        ("nothing", {}, 404),
    ],
)
def test_a_call_that_is_not_right_says_so_and_changes_nothing(
    page: Any, path: str, body: Any, status: int
) -> None:
    async def work(p: Page) -> None:
        before = [await p.get("days"), await p.get("profile")]
        answer = await p.post(path, body, status)
        assert answer["error"]
        assert [await p.get("days"), await p.get("profile")] == before

    page(work)


WRONG = ("day", "day?date=yesterday", "day?date=2026-13-01", "days?before=x", "search?q=", "search?q=%21")


@pytest.mark.parametrize("path", WRONG)
def test_a_question_that_is_not_right_says_so(page: Any, path: str) -> None:
    async def work(p: Page) -> None:
        assert (await p.get(path, 400))["error"]

    page(work)


def test_choices_hold_from_now_on_and_over_a_restart(page: Any, tmp_path: Path) -> None:
    wanted = {"keep_turns_days": 90, "share_text": False, "share_pictures": False}

    async def work(p: Page) -> None:
        await p.post("choices", wanted)
        assert (await p.get("choices"))["keep_turns_days"] == 90

    page(work)
    store = Store(tmp_path / "memory.db", KEY)
    kept = load_choices(store)
    store.close()
    assert kept == Choices(keep_turns_days=90, share_text=False)


def test_what_a_shorter_keeping_takes_is_told_before_and_comes_back_together_with_the_longer_one(
    page: Any,
) -> None:
    wanted = {"keep_turns_days": 30, "keep_contexts_days": 30, "share_text": False}

    async def work(p: Page) -> None:
        before = await p.get("days")
        gone = {"context": 2, "turn": 2}  # the profile rests on the third turn
        assert (await p.post("choices/foresee", wanted))["gone"] == gone
        assert await p.get("days") == before
        assert (await p.post("choices", wanted))["gone"] == gone
        assert len((await p.get("days"))["days"]) == 1
        assert [u["gone"] for u in (await p.get("undoable"))["undoable"]] == [gone]
        assert (await p.post("undo", {}))["back"] == gone
        assert await p.get("days") == before
        kept = await p.get("choices")  # else the next sweep takes it for good
        assert (kept["keep_turns_days"], kept["keep_contexts_days"]) == (None, None)
        assert not kept["share_text"]
        assert (await p.post("choices/foresee", {"keep_turns_days": None}))["gone"] == {}

    page(work)


def test_a_page_of_a_memory_with_a_passphrase_asks_for_it(tmp_path: Path) -> None:
    memories.new(tmp_path).close()
    file = tmp_path / "memory.db"
    lock, source = new_lock(KeySource("passphrase"), file, "correct horse")
    rekey(file, KEY, lock, source)
    key = from_passphrase("correct horse", salt_of(file))

    async def go() -> None:
        async with opened(tmp_path, key) as p, asyncio.timeout(60):
            assert (await p.get("lock"))["locked"]
            for path in ("days", "profile", "search?q=x", "numbers", "choices", "undoable"):
                await p.get(path, 423)
            for path in ("export", "forget", "edit", "undo", "purge"):
                await p.post(path, {}, 423)
            headers = {"Origin": p.url}

            async def guess() -> int:
                asked = p.http.post(
                    f"{p.url}/api/review/unlock", json={"passphrase": "wrong"}, headers=headers
                )
                async with asked as r:
                    return r.status

            statuses = await asyncio.gather(*(guess() for _ in range(3 * TRIES)))
            assert sorted(statuses) == [403] * TRIES + [429] * 2 * TRIES  # all at once are no more tries
            await p.post("unlock", {"passphrase": "correct horse"}, 429)
            p.review.lock.closed_until = 0.0
            p.review.lock.wrong = TRIES - 1
            await p.post("unlock", {"passphrase": "correct horse"})  # the last try counts when it is right
            assert p.review.lock.closed_until < 0
            await p.get("days")

    asyncio.run(go())


def test_numbers_come_from_the_log_and_nonsense_in_it_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "turns.jsonl"
    assert numbers(log) == {"turns": [], "routes": {}}
    log.write_text(
        '{"time":"2026-03-02T08:00:00","route":"local","voice_to_voice_s":0.9}\n'
        '{"time":"2026-03-02T08:01:00","route":"cloud"}\nno json\n{"time":1}\n'
        '{"time":"2026-03-02T08:02:00","route":"<script>","voice_to_voice_s":1}\n'
        '{"time":"2026-03-02T08:03:00","route":"local","voice_to_voice_s":NaN}\n'
    )
    found = numbers(log)
    assert found["routes"] == {"local": 2, "cloud": 1}
    assert [t["seconds"] for t in found["turns"]] == [0.9, None, None]
