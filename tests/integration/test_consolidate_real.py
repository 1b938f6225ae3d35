"""The memory's language jobs on the default local model: what it writes is in the memory's own words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from os1_edge.converse.jobs import MemoryWriter
from os1_edge.events import RealtimeContext
from os1_edge.offload.engine import Message
from os1_edge.offload.local import LocalLlama
from os1_edge.remember import derived
from os1_edge.remember.consolidate import Consolidator
from os1_edge.remember.embed import Embedder
from os1_edge.remember.grounding import unfaithful
from os1_edge.remember.memory import Memory
from os1_edge.remember.store import Store

pytestmark = pytest.mark.models

EIGHT = datetime(2026, 3, 2, 8)
SAID = (
    "I have a dentist appointment on Thursday at three o'clock.",
    "Every evening I play the piano for an hour.",
    "My sister Anna is allergic to nuts.",
)


@pytest.fixture(scope="module")
def llama(pulled: Callable[..., Path]) -> Iterator[LocalLlama]:
    llama = LocalLlama(pulled("qwen2.5-0.5b"), threads=2)
    yield llama
    llama.close()


@pytest.fixture(scope="module")
def night(
    llama: LocalLlama, pulled: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Memory]:
    """One conversation in the kitchen, and the night after it."""
    embedder = Embedder(pulled("minilm-l6"), pulled("minilm-l6", "tokenizer.json"))
    memory = Memory(Store(tmp_path_factory.mktemp("night") / "memory.db", bytes(32)), embedder)

    async def live() -> None:
        for i, heard in enumerate(SAID):
            time = EIGHT + timedelta(minutes=i)
            await memory.keep_turn(f"t{i}", 0, time, heard, "I will remember that.", "kitchen")
            scene = "A mug on a table." if i % 2 else "A bottle on a table."
            # nothing is said in view of the camera: a silent stay costs no call of the model
            await memory.keep_context(RealtimeContext(60.0 * i, scene, "", "kitchen", "eating"), time)
        await Consolidator(memory, MemoryWriter(llama)).finish(EIGHT + timedelta(hours=4))

    asyncio.run(live())
    yield memory
    memory.close()


def test_every_chore_of_the_night_is_done(night: Memory) -> None:
    assert night.store.rows("SELECT * FROM jobs") == []
    assert len(derived.events(night.store)) == 1


def test_the_conversations_summary_is_the_models_and_holds_what_was_told(night: Memory) -> None:
    (summary,) = derived.summaries(night.store)
    print(f"\n{summary.text_by}: {summary.text}")
    assert re.search(r"dentist|piano|nuts", summary.text)
    said = " ".join((*SAID, "I will remember that."))
    if summary.text_by == "llm":
        for sentence in re.findall(r"[^.]+\.", summary.text):
            assert unfaithful(sentence.strip(), said) is None


def test_keys_and_ratings_are_there_in_all_dimensions(night: Memory) -> None:
    (summary,), (event,) = derived.summaries(night.store), derived.events(night.store)
    for kind, row in (("event", event.id), ("summary", summary.id)):
        keys = derived.keys_of(night.store, kind, row)  # type: ignore[arg-type]
        assert {key.dimension for key in keys} == {"temporal", "spatial", "semantic"}
    assert summary.importance is not None
    assert 1 <= summary.importance <= 10


def test_the_profile_learns_of_the_wearer_and_gives_them_nobody_elses_allergy(night: Memory) -> None:
    profile = night.store.profile()
    print(*(f"\n{e.made_by} {e.kind}: {e.text}" for e in profile))
    assert not [e for e in profile if e.kind == "health"]
    assert not [e for e in profile if "dentist" in e.text]
    for entry in profile:
        for source in night.store.sources(entry.id):
            assert source.quote in SAID


def test_a_chore_makes_way_for_a_reply_and_is_done_afterwards(llama: LocalLlama, night: Memory) -> None:
    (summary,) = derived.summaries(night.store)
    derived.add_job(night.store, "importance", "summary", summary.id)

    async def both() -> str:
        shift = asyncio.create_task(Consolidator(night, MemoryWriter(llama)).finish())
        await asyncio.sleep(0.2)  # it has begun to read
        asked = [Message("user", "What is the capital of France?")]
        reply = "".join([text async for text in llama.stream(asked, 12)])
        assert not shift.done()
        assert await shift == 1
        return reply

    assert "Paris" in asyncio.run(both())
    assert night.store.rows("SELECT * FROM jobs") == []
