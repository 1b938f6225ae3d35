"""Who goes first at an engine, what one wearer may ask, what is kept for a while: without a server."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import pytest

from os1_cloud.admission import Class, Refused
from os1_cloud.events import Accepted, Delta, Picture, Progress
from os1_cloud.pictures import BYTES as PICTURES_BYTES
from os1_cloud.pictures import EACH, TTL_S, Pictures
from os1_cloud.places import Places
from os1_cloud.ring import BYTES, TOGETHER, Ring
from os1_cloud.wearers import DAY_S, WearerLimits, Wearers


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 10))


class Desk:
    """Questions at one `Places`, in the order in which they were let in."""

    def __init__(self, places: Places) -> None:
        self.places, self.order = places, []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, kind: Class = "reply", deadline: float = 1.0) -> None:
        self.ends[name] = asyncio.Event()

        async def work() -> None:
            async with self.places.place(self.places.enter(kind, deadline)):
                self.order.append(name)
                await self.ends[name].wait()

        self.tasks[name] = asyncio.ensure_future(work())
        await asyncio.sleep(0)

    async def end(self, *names: str) -> None:
        for name in names:
            self.ends[name].set()
            await self.tasks[name]
        await asyncio.sleep(0)


def test_the_earliest_deadline_goes_first_whoever_came_first() -> None:
    async def story() -> None:
        desk = Desk(Places(1, 4))
        await desk.come("at work")
        for name, deadline in (("late", 9.0), ("soon", 2.0), ("sooner", 1.0)):
            await desk.come(name, deadline=deadline)
        assert desk.places.load(deadline=2.0).ahead == 3  # at work, soon, sooner
        await desk.end("at work", "sooner", "soon", "late")
        assert desk.order == ["at work", "sooner", "soon", "late"]
        assert desk.places.busy == 0

    run(story)


def test_whoever_leaves_the_queue_is_never_let_in() -> None:
    async def story() -> None:
        desk = Desk(Places(1, 4))
        for name in ("a", "b", "c"):
            await desk.come(name)
        desk.tasks["b"].cancel()
        await asyncio.wait({desk.tasks["b"]})
        await desk.end("a", "c")
        assert desk.order == ["a", "c"]

    run(story)


def test_a_place_given_to_one_who_left_in_that_moment_is_free() -> None:
    async def story() -> None:
        places = Places(1, 4)
        first, second = (places.place(places.enter("reply", 1.0)) for _ in range(2))
        await first.__aenter__()
        waiting = asyncio.ensure_future(second.__aenter__())
        await asyncio.sleep(0)
        await first.__aexit__(None, None, None)
        assert places.busy == 1
        waiting.cancel()  # it has been let in, and does not know it yet
        await asyncio.wait({waiting})
        assert places.busy == 0

    run(story)


def test_one_who_left_before_their_turn_came_does_not_free_another_ones_place() -> None:
    async def story() -> None:
        desk = Desk(Places(1, 4))
        for name in ("at work", "leaves", "next", "after"):
            await desk.come(name)
        desk.ends["at work"].set()
        desk.tasks["leaves"].cancel()  # it learns of that after the place was given on
        await desk.tasks["at work"]
        await asyncio.wait({desk.tasks["leaves"]})
        await asyncio.sleep(0)
        assert desk.order == ["at work", "next"]
        assert desk.places.busy == 1
        await desk.end("next", "after")
        assert desk.order == ["at work", "next", "after"]
        assert desk.places.busy == 0

    run(story)


def test_the_nights_work_never_takes_the_last_place() -> None:
    async def story() -> None:
        desk = Desk(Places(2, 8))
        await desk.come("night 1", "background", 0.0)
        await desk.come("night 2", "background", 0.0)
        await desk.come("reply", "reply", 5.0)
        assert desk.order == ["night 1", "reply"]
        await desk.end("night 1")
        assert desk.order == ["night 1", "reply", "night 2"]
        await desk.end("reply", "night 2")

    run(story)


# --- the ring


async def taken(ring: Ring, from_seq: int = 1) -> list[tuple[int, object]]:
    return [numbered async for numbered in ring.follow(from_seq)]


def test_words_that_nobody_has_taken_become_one_message_without_a_gap_in_numbers() -> None:
    async def story() -> None:
        ring = Ring()
        ring.add(Accepted("m", 0, None))
        for word in ("By ", "the ", "door"):
            ring.add(Delta(word))
        reader = ring.follow()
        assert [await anext(reader) for _ in range(2)] == [
            (1, Accepted("m", 0, None)),
            (2, Delta("By the door")),
        ]
        ring.add(Delta("."))
        ring.end(None)
        assert await anext(reader) == (3, Delta("."))
        assert await taken(ring, 2) == [(2, Delta("By the door")), (3, Delta("."))]

    run(story)


def test_silence_that_nobody_has_noticed_is_one_message() -> None:
    async def story() -> None:
        ring = Ring()
        for seconds in range(100):
            ring.add(Progress(float(seconds), True))
        ring.end(None)
        assert await taken(ring) == [(1, Progress(99.0, True))]

    run(story)


def test_what_a_reader_does_not_take_stays_within_the_bound_and_comes_in_messages_of_some_size() -> None:
    async def story() -> None:
        ring = Ring()
        reader = ring.follow()
        ring.add(Accepted("m", 0, None))
        await anext(reader)
        for number in range(2 * BYTES // 10):
            ring.add(Delta(f"{number:10}"))
        held = [len(event.text) for event in ring._events if isinstance(event, Delta)]
        assert sum(held) <= BYTES
        assert max(held) <= TOGETHER
        with pytest.raises(Refused) as found:  # not a hole in the answer: it is told
            await anext(reader)
        assert found.value.why == "lost"

    run(story)


def test_an_answer_keeps_its_newest_words_and_tells_which_are_lost() -> None:
    async def story() -> None:
        ring = Ring(most_bytes=100)
        reader = ring.follow()
        for number in range(20):
            ring.add(Delta(f"{number:10}"))
            await anext(reader)
        ring.end(None)
        with pytest.raises(Refused) as found:
            await taken(ring, 1)
        assert found.value.why == "lost"
        assert [seq for seq, _ in await taken(ring, 18)] == [18, 19, 20]
        with pytest.raises(Refused) as found:
            await taken(ring, 99)
        assert found.value.why == "lost"
        await reader.aclose()
        assert ring.readers == 0

    run(story)


# --- wearers


def why(refused: Refused | None) -> str | None:
    return refused.why if refused else None


def test_one_wearer_has_so_many_calls_at_once_and_another_has_their_own() -> None:
    wearers = Wearers(WearerLimits(calls=2, asks_per_minute=0))
    assert [why(wearers.admit("ann", 0.0)) for _ in range(3)] == [None, None, "too_many"]
    assert wearers.admit("bob", 0.0) is None
    wearers.release("ann")
    assert wearers.admit("ann", 0.0) is None


def test_one_wearer_asks_so_often_and_is_told_when_to_come_back() -> None:
    wearers = Wearers(WearerLimits(calls=0, asks_per_minute=60))
    assert [why(wearers.admit("ann", 0.0)) for _ in range(11)] == [None] * 10 + ["too_often"]
    refused = wearers.admit("ann", 0.5)
    assert refused is not None
    assert refused.retry_after_s == pytest.approx(0.5)
    assert wearers.admit("ann", 1.0) is None
    assert wearers.admit("bob", 1.0) is None


def test_a_quota_of_the_day_is_new_the_next_day() -> None:
    wearers = Wearers(WearerLimits(calls=0, asks_per_minute=0, asks_per_day=2))
    assert [why(wearers.admit("ann", 10.0)) for _ in range(3)] == [None, None, "quota"]
    assert wearers.admit("ann", DAY_S + 1) is None


def test_wearers_that_come_and_go_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os1_cloud.wearers.WEARERS", 10)
    wearers = Wearers(WearerLimits())
    assert wearers.admit("stays", 0.0) is None
    for number in range(100):
        assert wearers.admit(f"w{number}", 0.0) is None
        wearers.release(f"w{number}")
    assert len(wearers) == 10
    assert [why(wearers.admit("stays", 0.0)) for _ in range(4)] == [None, None, None, "too_many"]


# --- pictures


def picture(data: bytes, named: bool = True) -> Picture:
    return Picture(data, hashlib.sha256(data).digest() if named else b"")


def test_a_picture_sent_once_is_found_by_its_hash_for_a_while_and_by_its_wearer_only() -> None:
    pictures, sent = Pictures(), picture(b"jpeg")
    known = Picture(b"", sent.sha256)
    assert pictures.resolve("ann", (sent,), 0.0) == (b"jpeg",)
    assert pictures.resolve("ann", (known,), TTL_S - 1) == (b"jpeg",)
    for who, now in (("bob", 1.0), ("ann", 3 * TTL_S)):
        with pytest.raises(Refused) as found:
            pictures.resolve(who, (known,), now)
        assert found.value.why == "need_image"


def test_a_picture_that_is_not_what_its_hash_says_is_refused() -> None:
    with pytest.raises(Refused) as found:
        Pictures().resolve("ann", (Picture(b"jpeg", bytes(32)),), 0.0)
    assert found.value.why == "bad_image"


def test_pictures_do_not_fill_the_memory() -> None:
    pictures = Pictures()
    for number in range(3 * EACH):
        pictures.resolve("ann", (picture(b"%d" % number),), 0.0)
    assert len(pictures) == EACH
    pictures.resolve("ann", (picture(b"not named", named=False),), 0.0)
    assert len(pictures) == EACH
    for number in range(6):
        pictures.resolve(f"w{number}", (picture(bytes([number]) * (PICTURES_BYTES // 4)),), 0.0)
    assert len(pictures) <= 4
