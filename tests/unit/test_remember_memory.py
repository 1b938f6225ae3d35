"""A turn and what it taught: kept together, and the last word of the wearer counts."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from os1_edge.app.contexts import Contexts
from os1_edge.clock import Calendar
from os1_edge.converse.context import ContextAgent
from os1_edge.remember.embed import Embedder
from os1_edge.remember.memory import Memory
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store, Vector
from os1_edge.see.place import PlaceGuess

NOON = datetime(2026, 3, 2, 12)


class Apart:
    """An embedder to which no two texts are alike, but for those that ``alike`` folds into one."""

    def __init__(self, alike: Callable[[str], str] = lambda text: text) -> None:
        self._alike = alike

    def one(self, text: str) -> Vector:
        vector = np.random.default_rng(zlib.crc32(self._alike(text).encode())).normal(size=DIMENSIONS)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def deaf_to_not(text: str) -> str:
    """As real embeddings nearly are."""
    return text.replace(" not ", " ").replace("does like", "likes")


@pytest.fixture
def remember(tmp_path: Path) -> Iterator[Callable[[Any], Memory]]:
    opened: list[Memory] = []

    def make(embedder: Any) -> Memory:
        opened.append(Memory(Store(tmp_path / "memory.db", bytes(32)), embedder))
        opened[-1].store.rows("PRAGMA synchronous = OFF")  # no power is lost here, and the disk is slow
        return opened[-1]

    yield make
    for memory in opened:
        memory.close()


def tell(memory: Memory, *said: str) -> None:
    for number, heard in enumerate(said, 1):
        time = NOON + timedelta(minutes=number)
        asyncio.run(memory.keep_turn(f"t{number:04d}", 0, time, heard, "Noted.", "kitchen"))


def known(memory: Memory) -> list[str]:
    return [e.text.removeprefix("The wearer ") for e in asyncio.run(memory.profile())]


@pytest.mark.parametrize("embedder", [Apart(), Apart(deaf_to_not)])
@pytest.mark.parametrize(
    ("said", "left"),
    [
        (("I like tea.", "I do not like tea."), ["does not like tea."]),
        (("I hate tea.", "I love tea!"), ["likes tea."]),
        (("I like tea.", "I don't like green tea."), ["likes tea.", "does not like green tea."]),
        (("I like coffee.", "I no longer drink coffee."), ["does not drink coffee."]),
        (("I am vegan.", "I'm not vegan anymore."), ["is not vegan."]),
        (("I like tea. No, I do not like tea.",), ["does not like tea."]),
    ],
)
def test_who_changes_their_mind_is_believed_the_last_time(
    said: tuple[str, ...], left: list[str], embedder: Apart, remember: Callable[[Any], Memory]
) -> None:
    memory = remember(embedder)
    tell(memory, *said)
    assert known(memory) == left


def test_what_was_true_before_is_kept_as_history_and_the_contrary_is_no_surer_for_it(
    remember: Callable[[Any], Memory],
) -> None:
    memory = remember(Apart(deaf_to_not))
    tell(memory, "I like tea.", "I do not like tea.")
    (entry,) = asyncio.run(memory.profile())
    assert entry.confidence == 0.8
    rows = memory.store._rows("SELECT text, superseded_by FROM profile ORDER BY id")
    assert rows == [("The wearer likes tea.", entry.id), ("The wearer does not like tea.", None)]


def test_what_is_said_again_is_one_line_and_surer(remember: Callable[[Any], Memory]) -> None:
    memory = remember(Apart())
    tell(memory, "I like tea.", "I like tea.")
    (entry,) = asyncio.run(memory.profile())
    assert (entry.confidence, entry.source_turn) == (0.9, "t0002")


def test_a_turn_whose_lesson_cannot_be_kept_is_not_kept_either(
    remember: Callable[[Any], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = remember(Apart())
    with monkeypatch.context() as broken:
        broken.setattr(memory.store, "add_profile", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tell(memory, "I like tea.")
    assert memory.store._rows("SELECT count(*) FROM turns") == [(0,)]
    tell(memory, "I like tea.")
    assert memory.store._rows("SELECT count(*) FROM turns") == [(1,)]
    assert known(memory) == ["likes tea."]


def test_of_two_lessons_of_a_turn_both_are_kept_or_none(
    remember: Callable[[Any], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = remember(Apart())
    keep, calls = memory.store.add_profile, []

    def second_fails(*args: Any, **kwargs: Any) -> int:
        calls.append(args)
        return keep(*args, **kwargs) if len(calls) == 1 else int(1 / 0)

    monkeypatch.setattr(memory.store, "add_profile", second_fails)
    with pytest.raises(ZeroDivisionError):
        tell(memory, "I like tea. I live in Oslo.")
    assert len(calls) == 2
    assert known(memory) == []


@pytest.mark.models
def test_an_allergy_outgrown_is_not_taken_for_the_allergy_said_again(
    remember: Callable[[Any], Memory], pulled: Callable[..., Path]
) -> None:
    memory = remember(Embedder(pulled("minilm-l6"), pulled("minilm-l6", "tokenizer.json")))
    tell(memory, "I am allergic to peanuts.", "I am allergic to cats.", "I'm no longer allergic to peanuts.")
    assert known(memory) == ["is allergic to cats.", "is not allergic to peanuts."]
    assert [e.confidence for e in asyncio.run(memory.profile())] == [0.8, 0.8]


@pytest.mark.parametrize("crowd", [0, 40])
def test_what_the_conversation_holds_does_not_come_back_as_a_profile_line(
    crowd: int, remember: Callable[[Any], Memory]
) -> None:
    """Nor where so many turns are nearer that the one it came from is not among the neighbours."""
    memory = remember(Apart(lambda text: "about tea" if "drink" in text or "likes tea" in text else text))
    tell(memory, "I like tea.", *["What shall I drink?"] * crowd)
    recalled = asyncio.run(memory.recall("What do I drink?", NOON, ("I like tea.",)))
    assert [hit.text for hit in recalled] == []
    recalled = asyncio.run(memory.recall("What do I drink?", NOON, ()))
    assert [hit.text for hit in recalled] == ["The wearer likes tea."]


def test_what_is_still_to_be_placed_when_all_of_somebody_is_forgotten_does_not_come_later(
    remember: Callable[[Any], Memory],
) -> None:
    async def live() -> None:
        memory = remember(Apart())
        contexts = Contexts(memory, Calendar(NOON), agent=cast("ContextAgent", object()))
        await contexts.keep(1.0, "A cup.", "Tom came by.", PlaceGuess("kitchen", "talking", "cups"))
        assert memory.store.contexts() == []
        assert (await memory.would_forget_about("Tom")).gone
        await contexts.keep(2.0, "A cup.", "Tom left.", PlaceGuess("kitchen", "talking", "cups"))
        await memory.forget_about("Tom")
        await contexts.flush()
        assert [c.utterance for c, _ in memory.store.contexts() if "Tom" in c.utterance] == []

    asyncio.run(live())
