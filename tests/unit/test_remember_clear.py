"""The file is written anew so that nothing forgotten is left in it; the wearer does not notice it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from memories import KEY, at, meaning, new, say

from os1_edge.remember import erase, forget
from os1_edge.remember import memory as memory_module
from os1_edge.remember.consolidate import Consolidator, Quiet
from os1_edge.remember.memory import Memory
from os1_edge.remember.scan import Signs
from os1_edge.remember.store import Store


class Apart:
    """An embedder to which no two texts are alike."""

    one = staticmethod(meaning)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = new(tmp_path)
    yield store
    store.close()


def leave_traces(store: Store) -> None:
    row = say(store, "gone", "My number is 4711.")
    forget.carry_out(store, forget.foresee(store, [("turn", row)]), clear_file=False)


def test_reading_goes_on_and_writing_waits_while_the_file_is_written_anew(store: Store) -> None:
    say(store, "t1", "It rains.")
    writer = Thread(target=say, args=(store, "t2", "It snows."))
    with store.beside():
        writer.start()
        assert [turn.heard for turn in store.turns()] == ["It rains."]
        assert store.nearest_turns(meaning("It rains."), 1)[0][0].heard == "It rains."
        writer.join(0.2)
        assert writer.is_alive()
    writer.join()
    assert [turn.heard for turn in store.turns()] == ["It rains.", "It snows."]


def test_a_question_asked_while_the_file_is_written_anew_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory(new(tmp_path), Apart())  # type: ignore[arg-type]
    begun, go_on = Event(), Event()

    def slowly(store: Store, stop: Callable[[], bool]) -> str:
        with store.beside():
            begun.set()
            go_on.wait()
        return ""

    async def talk() -> None:
        await memory.keep_turn("t1", 0, at(0), "I live in Oslo.", "Noted.", "home")
        clearing = asyncio.create_task(memory.clear())
        await asyncio.to_thread(begun.wait)
        kept = asyncio.create_task(memory.keep_turn("t2", 0, at(1), "It rains.", "Yes.", "home"))
        await asyncio.sleep(0)
        try:
            hits = await asyncio.wait_for(memory.recall("I live in Oslo.", at(2), ()), 60)
            assert [hit.text for hit in hits] == ["I live in Oslo."]
            assert [line.text for line in await memory.profile()] == ["The wearer lives in Oslo."]
            assert not kept.done()
        finally:
            go_on.set()
        await asyncio.gather(clearing, kept)
        assert [turn.heard for turn in memory.store.turns()] == ["I live in Oslo.", "It rains."]

    monkeypatch.setattr(memory_module, "clear", slowly)
    asyncio.run(talk())
    memory.close()


def test_speech_breaks_it_off_and_the_next_quiet_moment_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase, "ASK_EVERY", 1)
    memory = Memory(new(tmp_path), Apart())  # type: ignore[arg-type]
    leave_traces(memory.store)
    shift, quiet = Consolidator(memory), Quiet(quiet=False)
    asyncio.run(shift.finish(at(60), quiet))
    assert erase.has_traces(memory.store)
    quiet.set()
    asyncio.run(shift.finish(at(60), quiet))
    assert not erase.has_traces(memory.store)
    memory.close()


def test_what_was_done_of_it_is_not_done_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase, "ASK_EVERY", 1)
    leave_traces(store)
    done = []

    def after_the_words() -> bool:
        return bool(done)

    def rewrite(db: object) -> None:
        words(db)
        done.append("words")

    words = erase._rewrite_words
    monkeypatch.setattr(erase, "_rewrite_words", rewrite)
    assert "may still be found" in erase.clear(store, after_the_words)
    assert erase.clear(store) == ""
    assert done == ["words"]
    leave_traces(store)  # something more is forgotten: all of it anew
    erase.clear(store)
    assert done == ["words", "words"]


def test_the_companion_ends_without_waiting_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase, "ASK_EVERY", 1)
    memory = Memory(new(tmp_path), Apart())  # type: ignore[arg-type]
    leave_traces(memory.store)
    stops: list[Callable[[], bool]] = []

    def told(store: Store, stop: Callable[[], bool]) -> str:
        stops.append(stop)
        return ""

    monkeypatch.setattr(memory_module, "clear", told)
    asyncio.run(memory.clear())
    assert not stops[0]()
    memory.close()
    assert stops[0]()


def test_the_signs_are_not_read_again_for_a_file_written_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(store, "t1", "It rains.")
    leave_traces(store)
    assert store.nearest_turns(meaning("It rains."), 1)
    assert erase.clear(store) == ""
    with monkeypatch.context() as unread:
        unread.setattr(Signs, "_read_all", lambda _: 1 / 0)
        assert store.nearest_turns(meaning("It rains."), 1)[0][0].heard == "It rains."


def test_what_another_process_writes_meanwhile_is_found(store: Store, tmp_path: Path) -> None:
    say(store, "t1", "It rains.")
    assert store.nearest_turns(meaning("It snows."), 1)
    with store.beside():
        another = Store(tmp_path / "memory.db", KEY)
        say(another, "t2", "It snows.")
        another.close()
    assert store.nearest_turns(meaning("It snows."), 1)[0][0].heard == "It snows."


def test_forgetting_one_thing_does_not_look_through_all_vectors(store: Store) -> None:
    """It took a second after eight years."""
    row = say(store, "t1", "It rains.")
    read = []
    with store.reading() as db:
        db.set_authorizer(lambda _, table, column, *__: read.append((table, column)) or 0)
        forget._share_used(db)
        db.set_authorizer(None)
    assert "item_bits_chunks" in {table for table, _ in read}
    assert not {table for table, _ in read} & {"item_vectors", "items"}
    assert forget.carry_out(store, forget.foresee(store, [("turn", row)])).gone == {"turn": 1}
