"""Two lines of the profile that tell one thing become one, and nothing that the wearer said is lost by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from memories import MONDAY, at, meaning, new

from os1_edge import clock
from os1_edge.remember.about import about, foresee_about
from os1_edge.remember.consolidate import Consolidator
from os1_edge.remember.forget import carry_out, foresee
from os1_edge.remember.memory import Memory
from os1_edge.remember.mend import compare
from os1_edge.remember.revise import Proposal, judge_revision
from os1_edge.remember.rows import ProfileEntry
from os1_edge.remember.store import Store, Vector
from os1_edge.remember.trash import Window
from os1_edge.remember.undo import undo


class Near:
    """An embedder to which all that speaks of the same animal is alike."""

    def one(self, text: str) -> Vector:
        for word in ("cat", "dog"):
            if word in text:
                vector = meaning("pets") + 0.5 * meaning(text) / 1.0
                return vector / float((vector @ vector) ** 0.5)
        return meaning(text)


class Author:
    """A model whose answer to two lines is given; it writes nothing else."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    async def revise_profile(self, new: str, old: str) -> Any:
        self.asked.append((new, old))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def nothing(self, *_: object) -> Any:
        return None

    summarise_event = summarise_session = keys = importance = profile_candidates = nothing


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    opened = Memory(new(tmp_path), Near())  # type: ignore[arg-type]
    opened.store.rows("PRAGMA synchronous = OFF")  # no power is lost here, and the disk is slow
    yield opened
    with opened.store.reading() as db:
        assert not compare(db)
    opened.close()


CATS, DOGS = "I like cats.", "I like dogs."
BOTH = Proposal("one", "The wearer likes cats and dogs.")


def told(memory: Memory, *said: str) -> None:
    count = memory.store.rows("SELECT count(*) FROM turns")[0][0]
    for number, heard in enumerate(said, count):
        asyncio.run(memory.keep_turn(f"t{number}", 0, at(number), heard, "Noted.", "home"))


def night(memory: Memory, answer: Any) -> Author:
    author = Author(answer)
    clock.run(Consolidator(memory, author).finish(), virtual=True)  # type: ignore[arg-type]
    return author


def lines(store: Store) -> list[str]:
    return [e.text.removeprefix("The wearer ").removesuffix(".") for e in store.profile()]


def test_two_lines_that_tell_one_thing_become_one_with_all_that_spoke_for_them(memory: Memory) -> None:
    told(memory, CATS, DOGS, DOGS)
    author = night(memory, BOTH)
    assert author.asked == [("The wearer likes dogs.", "The wearer likes cats.")]
    (entry,) = memory.store.profile()
    assert (entry.text, entry.kind, entry.made_by) == (
        "The wearer likes cats and dogs.",
        "preference",
        "rule",
    )
    assert (entry.confidence, entry.evidence, entry.valid_from) == (0.9, 3, at(0))
    assert [s.quote for s in memory.store.sources(entry.id)] == [CATS, DOGS, DOGS]
    assert [e.valid_to for e in memory.store.profile_history()] == [None] * 3
    assert memory.store.rows("SELECT * FROM jobs") == []


def test_the_richer_of_two_lines_may_tell_both(memory: Memory) -> None:
    told(memory, CATS, "I like old cats.")
    night(memory, Proposal("one", "The wearer likes old cats."))
    (entry,) = memory.store.profile()
    assert (entry.text, entry.evidence) == ("The wearer likes old cats.", 2)
    assert len(memory.store.profile_history()) == 2


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Proposal("both"),
        Proposal("both", "The wearer likes cats and dogs."),
        Proposal("one", ""),
        Proposal("one", "There is no information."),
        Proposal("one", "The wearer has no known preferences."),
        Proposal("one", "The wearer likes cats."),
        Proposal("one", "The wearer likes animals."),
        Proposal("one", "The wearer likes cats, dogs and birds."),
        Proposal("one", "The wearer does not like cats and dogs."),
        Proposal("one", "Wearer: cats and dogs"),
        Proposal("over", "The wearer likes dogs."),
        RuntimeError("the model is gone"),
    ],
)
def test_an_empty_a_refusing_or_an_inventing_answer_changes_nothing(answer: Any, memory: Memory) -> None:
    told(memory, CATS, DOGS)
    night(memory, answer)
    assert lines(memory.store) == ["likes cats", "likes dogs"]
    assert [e.confidence for e in memory.store.profile()] == [0.8, 0.8]
    assert memory.store.rows("SELECT * FROM jobs") == []


def test_without_a_model_both_stay(memory: Memory) -> None:
    told(memory, CATS, DOGS)
    clock.run(Consolidator(memory).finish(), virtual=True)
    assert lines(memory.store) == ["likes cats", "likes dogs"]


@pytest.mark.parametrize(
    "said",
    [
        ("I am allergic to cats.", "I am allergic to dogs."),  # each allergy is a line of its own
        ("I like cats.", "I like tea."),  # not alike
        ("I like cats.", "I feed the dogs every day."),  # of another kind
    ],
)
def test_no_model_is_asked_about_them(said: tuple[str, ...], memory: Memory) -> None:
    told(memory, *said)
    assert night(memory, BOTH).asked == []


def test_whoever_takes_one_of_them_back_keeps_the_other(memory: Memory) -> None:
    told(memory, CATS, DOGS)
    night(memory, BOTH)
    told(memory, "I don't like dogs anymore.")
    assert lines(memory.store) == ["likes cats", "does not like dogs"]
    over = {e.text for e in memory.store.profile_history() if e.valid_to is not None}
    assert over == {"The wearer likes dogs.", "The wearer likes cats and dogs."}


Forget = Callable[[Store], object]


@pytest.mark.parametrize(
    ("forget", "left"),
    [
        (lambda s: foresee(s, [("turn", s.turns()[1].id)]), ["likes cats"]),
        (lambda s: foresee_about(s, "dogs", about(s, "dogs")), ["likes cats"]),
        (lambda s: foresee(s, [("profile", s.profile()[0].id)]), []),  # the wearer's own choice
        (lambda s: foresee(s, [("turn", t.id) for t in s.turns()]), []),
    ],
)
def test_what_is_forgotten_of_them_leaves_the_rest_and_comes_back_with_an_undo(
    forget: Any, left: list[str], memory: Memory
) -> None:
    told(memory, CATS, DOGS)
    night(memory, BOTH)
    history = [(e.text, e.superseded_by, e.valid_to, e.evidence) for e in memory.store.profile_history()]
    carry_out(memory.store, forget(memory.store), undo=Window(at(60), at(120)))
    assert lines(memory.store) == left
    undo(memory.store)
    assert lines(memory.store) == ["likes cats and dogs"]
    after = [(e.text, e.superseded_by, e.valid_to, e.evidence) for e in memory.store.profile_history()]
    assert after == history


def test_a_turn_that_went_on_takes_its_line_out_of_what_tells_two(memory: Memory) -> None:
    told(memory, CATS, DOGS)
    night(memory, BOTH)
    asyncio.run(memory.keep_turn("t1", 1, at(1), "I like dogs in films.", "", "home"))
    assert lines(memory.store) == ["likes cats", "likes dogs in films"]


def entry(text: str, made_by: Any) -> ProfileEntry:
    return ProfileEntry(1, "preference", text, 0.8, MONDAY + timedelta(1), "t", made_by=made_by)


@pytest.mark.parametrize(("made_by", "over"), [("llm", True), ("rule", False), ("wearer", False)])
def test_a_model_ends_only_what_a_model_had_read(made_by: Any, over: bool) -> None:
    new_line, old = entry("The wearer likes dogs.", "rule"), entry("The wearer likes cats.", made_by)
    assert judge_revision(new_line, old, Proposal("over", "")).over is over
