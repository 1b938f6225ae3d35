"""The night shift: nothing lost, nothing doubled, nothing in the way of whoever speaks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from os1_edge import clock
from os1_edge.events import RealtimeContext
from os1_edge.remember import consolidate, derived
from os1_edge.remember.chores import Busy
from os1_edge.remember.consolidate import ATTEMPTS, Consolidator, Quiet
from os1_edge.remember.keys import Keys
from os1_edge.remember.memory import Memory
from os1_edge.remember.profile import Candidate
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store, Vector

NOON = datetime(2026, 3, 2, 12)
LATER = NOON + timedelta(hours=3)
KEY = bytes(32)


class Apart:
    """An embedder to which no two texts are alike."""

    def one(self, text: str) -> Vector:
        vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSIONS)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class Author:
    """A writer whose answers are given; ``None`` where none is."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def _answer(self, job: str, material: object) -> Any:
        self.asked.append(job)
        answer = self.answers.get(job)
        if callable(answer):
            return await answer(material)
        return answer

    async def summarise_event(self, event: Any, contexts: Any) -> Any:
        return await self._answer("event", (event, contexts))

    async def summarise_session(self, turns: Any) -> Any:
        return await self._answer("session", turns)

    async def keys(self, text: str, start: datetime, location: str) -> Any:
        return await self._answer("keys", text)

    async def importance(self, text: str) -> Any:
        return await self._answer("importance", text)

    async def profile_candidates(self, said: Sequence[str]) -> Any:
        return await self._answer("profile", said) or []

    async def revise_profile(self, new: str, old: str) -> Any:
        return await self._answer("revise", (new, old))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    opened = Memory(Store(tmp_path / "memory.db", KEY), Apart())  # type: ignore[arg-type]
    opened.store.rows("PRAGMA synchronous = OFF")  # where no power is lost, the disk need not be waited for
    yield opened
    opened.close()


SAID = ("I parked the car on level three.", "Spicy food makes me happy.", "Where is my cup?")


async def live(memory: Memory, said: Sequence[str] = SAID) -> None:
    for i, heard in enumerate(said):
        time = NOON + timedelta(minutes=i)
        await memory.keep_turn(f"t{i}", 0, time, heard, "Noted.", "kitchen")
        await memory.keep_context(RealtimeContext(i * 60.0, f"Cup {i}.", heard, "kitchen", "resting"), time)


def finished(memory: Memory, writer: Author | None = None, said: Sequence[str] = SAID) -> int:
    async def day() -> int:
        await live(memory, said)
        return await Consolidator(memory, writer).finish(LATER)

    return clock.run(day(), virtual=True)


def waiting(memory: Memory) -> list[tuple[Any, ...]]:
    return memory.store.rows("SELECT kind, target_kind, state, attempts FROM jobs ORDER BY id")


def test_a_day_without_a_language_model_is_summarised_keyed_and_rated(memory: Memory) -> None:
    assert finished(memory) == 8  # summary, keys and importance of each; a habit; the profile
    assert waiting(memory) == []
    (summary,) = derived.summaries(memory.store)
    assert summary.text.startswith("The wearer said: I parked the car on level three.")
    assert (summary.text_by, summary.turns) == ("rule", 3)
    (event,) = derived.events(memory.store)
    for kind, row in (("event", event.id), ("summary", summary.id)):
        keys = derived.keys_of(memory.store, kind, row)  # type: ignore[arg-type]
        assert {key.dimension for key in keys} >= {"temporal", "spatial"}
        assert len(keys) >= 4
    assert event.importance is not None
    assert summary.importance is not None
    keyed = memory.store.rows(
        "SELECT count(*) FROM items i JOIN item_vectors v ON v.id = i.id WHERE kind = 'key'"
    )
    assert keyed == memory.store.rows("SELECT count(*) FROM index_keys")


def test_a_language_model_writes_what_it_can_and_is_believed_where_it_is_in_the_memorys_words(
    memory: Memory,
) -> None:
    author = Author(
        event="The wearer was in the kitchen, resting.",
        session="The wearer parked the car on level three. They bought a dragon in Venice.",
        keys=Keys(semantic=("parked the car", "bought a dragon")),
        importance=3,
        profile=[
            Candidate("preference", "The wearer likes spicy food.", "Spicy food makes me happy."),
            Candidate("preference", "The wearer likes dragons.", "Spicy food makes me happy."),
        ],
    )
    finished(memory, author)
    (event,) = derived.events(memory.store)
    assert (event.summary, event.summary_by) == ("12:00-12:02 The wearer was in the kitchen, resting.", "llm")
    (summary,) = derived.summaries(memory.store)
    assert (summary.text, summary.text_by) == ("The wearer parked the car on level three.", "llm")
    texts = [key.text for key in derived.keys_of(memory.store, "summary", summary.id)]
    assert "parked the car" in texts
    assert not any("dragon" in text for text in texts)
    (entry,) = memory.store.profile()
    assert (entry.text, entry.made_by, entry.confidence) == ("The wearer likes spicy food.", "llm", 0.5)
    assert [s.quote for s in memory.store.sources(entry.id)] == ["Spicy food makes me happy."]


@pytest.mark.parametrize("answer", ["", "I'm sorry, I cannot do that.", "No information.", "dragon " * 200])
def test_an_empty_or_refusing_model_changes_nothing(answer: str, memory: Memory, tmp_path: Path) -> None:
    refusal = [Candidate("preference", answer, answer), Candidate("preference", "The wearer .", "")]
    author = Author(event=answer, session=answer, importance=99, profile=refusal)
    finished(memory, author)
    by_rule = Memory(Store(tmp_path / "other.db", KEY), Apart())  # type: ignore[arg-type]
    finished(by_rule)
    for read in (derived.events, derived.summaries):
        assert [r.text if hasattr(r, "text") else r.summary for r in read(memory.store)] == [  # type: ignore[operator]
            r.text if hasattr(r, "text") else r.summary
            for r in read(by_rule.store)  # type: ignore[operator]
        ]
    assert memory.store.profile() == []
    by_rule.close()


def test_what_the_wearer_stated_is_not_ended_by_what_a_model_reads(memory: Memory) -> None:
    said = ("I do not like spicy food.", "Spicy food makes me happy.")
    wrong = [Candidate("preference", "The wearer likes spicy food.", said[1])]
    finished(memory, Author(profile=wrong), said)
    assert [e.text for e in memory.store.profile()] == ["The wearer does not like spicy food."]


def test_a_chore_makes_way_the_moment_somebody_speaks_and_is_done_later(memory: Memory) -> None:
    begun: list[float] = []
    writing = asyncio.Event()

    async def slow(_material: object) -> str:
        writing.set()
        begun.append(asyncio.get_running_loop().time())
        await asyncio.sleep(10.0)
        return "The wearer parked the car on level three."

    async def day() -> float:
        await live(memory)
        quiet = Quiet()
        shift = asyncio.create_task(Consolidator(memory, Author(session=slow)).run(quiet, lambda: LATER))
        await writing.wait()
        await asyncio.sleep(1.0)
        quiet.clear()
        spoke = asyncio.get_running_loop().time()
        await asyncio.sleep(60.0)
        assert derived.summaries(memory.store) == []
        assert len(begun) == 1
        quiet.set()
        await asyncio.sleep(60.0)
        shift.cancel()
        return spoke

    spoke = clock.run(day(), virtual=True)
    (summary,) = derived.summaries(memory.store)
    assert summary.text_by == "llm"  # the attempt that made way did not count
    assert begun[1] >= spoke + 60.0


def test_a_model_that_is_needed_elsewhere_is_asked_again(memory: Memory) -> None:
    asked: list[int] = []

    async def busy_at_first(_material: object) -> str:
        asked.append(1)
        if len(asked) <= ATTEMPTS + 3:
            raise Busy
        return "The wearer parked the car on level three."

    finished(memory, Author(session=busy_at_first))
    (summary,) = derived.summaries(memory.store)
    assert summary.text_by == "llm"


def test_a_model_that_breaks_every_time_is_given_up_and_the_rules_stand_in(memory: Memory) -> None:
    async def broken(_material: object) -> str:
        raise RuntimeError("the model broke")

    author = Author(session=broken, event=broken, keys=broken, importance=broken, profile=broken)
    finished(memory, author)
    assert author.asked.count("session") == ATTEMPTS
    assert waiting(memory) == []
    (summary,) = derived.summaries(memory.store)
    assert summary.text_by == "rule"


def test_work_that_not_even_the_rules_can_do_is_set_aside_and_blocks_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os1_edge.remember.chores.extract", lambda _turns: 1 / 0)
    chores = dict(consolidate.CHORES)
    monkeypatch.setattr(consolidate, "CHORES", chores)
    finished(memory)
    assert ("summarise", "turn", "failed", 1) in waiting(memory)
    assert derived.events(memory.store)[0].importance is not None


def test_what_is_forgotten_while_a_model_writes_about_it_is_not_written_down(memory: Memory) -> None:
    async def forget_meanwhile(_material: object) -> str:
        if memory.store.turns("heard LIKE '%car%'"):
            await memory.forget_about("car")
        return "The wearer parked the car on level three."

    finished(memory, Author(session=forget_meanwhile))
    for table, column in (("summaries", "text"), ("items", "text"), ("index_keys", "text")):
        assert memory.store.rows(f"SELECT count(*) FROM {table} WHERE {column} LIKE '%car %'") == [(0,)]
    assert len(memory.store.turns()) == 2


def test_what_the_wearer_wrote_themselves_stays(memory: Memory) -> None:
    async def day() -> None:
        await live(memory)
        await Consolidator(memory).finish(LATER)
        with memory.store.transaction() as db:
            db.execute("UPDATE summaries SET text = 'Mine.', text_by = 'wearer'")
            db.execute("UPDATE events SET summary = 'Mine.', summary_by = 'wearer'")
        (event,), (turn, *_) = derived.events(memory.store), memory.store.turns()
        derived.add_job(memory.store, "summarise", "event", event.id)
        derived.add_job(memory.store, "summarise", "turn", turn.id)
        author = Author(event="The wearer was in the kitchen.", session="The wearer parked the car.")
        await Consolidator(memory, author).finish(LATER)

    clock.run(day(), virtual=True)
    assert [s.text for s in derived.summaries(memory.store)] == ["Mine."]
    assert [e.summary for e in derived.events(memory.store)] == ["Mine."]


def test_doing_it_all_twice_changes_nothing(memory: Memory) -> None:
    finished(memory)
    tables = ("events", "summaries", "index_keys", "profile")
    before = [memory.store.rows(f"SELECT * FROM {table}") for table in tables]
    assert clock.run(Consolidator(memory).finish(LATER + timedelta(hours=1)), virtual=True) == 0
    assert before == [memory.store.rows(f"SELECT * FROM {table}") for table in tables]


def test_a_conversation_whose_process_was_killed_is_summarised_the_next_day(
    memory: Memory, tmp_path: Path
) -> None:
    clock.run(live(memory), virtual=True)
    memory.store.close()
    again = Memory(Store(tmp_path / "memory.db", KEY), Apart())  # type: ignore[arg-type]
    clock.run(Consolidator(again).finish(NOON + timedelta(hours=20)), virtual=True)
    assert len(derived.summaries(again.store)) == 1
    assert len(derived.events(again.store)) == 1
    again.close()


def test_one_that_goes_on_is_left_alone(memory: Memory) -> None:
    async def day() -> int:
        await live(memory)
        return await Consolidator(memory).finish(NOON + timedelta(minutes=10))

    assert clock.run(day(), virtual=True) == 0
    assert derived.summaries(memory.store) == []


def test_no_words_of_the_wearer_reach_the_log(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(material: object) -> str:
        raise RuntimeError(f"cannot summarise {material}")

    finished(memory, Author(session=broken))
    assert "RuntimeError" in caplog.text
    assert "car" not in caplog.text


_KILLED = """
import asyncio, os, sys
sys.path.insert(0, {tests!r})
from test_remember_consolidate import *
from os1_edge.remember.memory import Memory

class Deadly(Author):
    async def summarise_session(self, turns):
        print("begun", flush=True)
        os.kill(os.getpid(), 9)

memory = Memory(Store(Path(sys.argv[1]), KEY), Apart())
async def main():
    if not memory.store.turns():
        await live(memory)
    await Consolidator(memory, Deadly()).finish(LATER)
asyncio.run(main())
print("finished", flush=True)
memory.close()
"""


def test_a_chore_that_takes_the_process_with_it_is_not_tried_for_ever(tmp_path: Path) -> None:
    """Each start is killed in the middle of the model's work; the rules do it in the end."""
    code = _KILLED.format(tests=str(Path(__file__).parent))
    ends = []
    command = [sys.executable, "-c", code, str(tmp_path / "memory.db")]
    for _ in range(ATTEMPTS + 1):
        run = subprocess.run(command, capture_output=True, text=True)
        ends.append((run.returncode, run.stdout.split()))
    assert ends == [(-9, ["begun"])] * ATTEMPTS + [(0, ["finished"])]
    store = Store(tmp_path / "memory.db", KEY)
    (summary,) = derived.summaries(store)
    assert (summary.text_by, summary.turns) == ("rule", 3)
    assert len(store.turns()) == 3
    assert store.rows("SELECT count(*) FROM jobs") == [(0,)]
    store.close()


def test_vectors_of_another_model_are_made_again_when_nothing_else_waits(memory: Memory) -> None:
    finished(memory)
    memory.store.set_embedder("another model")
    memory.vectors_missing = True
    clock.run(Consolidator(memory).finish(LATER), virtual=True)
    assert memory.store.without_vector(5) == []
    assert memory.vectors_missing is False


def test_a_summary_made_again_after_forgetting_gets_its_keys_and_better_words_again(memory: Memory) -> None:
    author = Author(
        session="The wearer parked the car on level three. The wearer finds spicy food makes them happy."
    )

    async def day() -> None:
        await live(memory)
        await Consolidator(memory, author).finish(LATER)
        await memory.forget_about("spicy food")
        await Consolidator(memory, author).finish(LATER)

    clock.run(day(), virtual=True)
    (summary,) = derived.summaries(memory.store)
    assert (summary.text, summary.text_by) == ("The wearer parked the car on level three.", "llm")
    assert derived.keys_of(memory.store, "summary", summary.id)
    assert memory.store.without_vector(1) == []
