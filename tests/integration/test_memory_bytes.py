"""What was forgotten is not in the file any more: its pages and its log are decrypted and searched."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from plainfile import plain_bytes

from os1_edge.events import RealtimeContext
from os1_edge.remember import derived, erase, forget, retention
from os1_edge.remember.rows import ProfileEntry, Source, StoredEvent, StoredSummary
from os1_edge.remember.store import Store, Vector
from os1_edge.remember.trash import Window, purge_due
from os1_edge.remember.vectors import bits, pack

KEY = bytes(range(32))
BEGIN = datetime(2026, 1, 1, 8)
CHANCE = np.random.default_rng(5)


def unit() -> Vector:
    vector = CHANCE.normal(size=384)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class Life:
    """A memory in which every thing said holds a word and has a vector that nothing else has."""

    def __init__(self, file: Path) -> None:
        self.file, self.store = file, Store(file, KEY)
        self.words: dict[int, str] = {}
        """By turn."""
        self.vectors: dict[int, list[Vector]] = {}
        self.contexts: dict[int, int] = {}

    def say(self, number: int, chance: random.Random) -> int:
        """A turn, its context, an event, a summary, a key and a profile line, all of one word."""
        word, when = f"zqx{number:05d}q", BEGIN + timedelta(minutes=30 * number)
        heard = f"{word} " + " ".join(f"{word}{n}" for n in range(chance.randint(1, 40)))
        made = [unit() for _ in range(5)]
        store, session = self.store, f"s{number}"
        with store.transaction():
            row = store.add_turn(
                f"t{number}", 0, when, heard, f"re {word}", "gym", made[0], session_id=session
            )
            context = store.add_context(RealtimeContext(0.0, f"scene {word}", heard, "gym", "run"), when)
            event = StoredEvent(0, when, when, "gym", "run", f"event {word}", "llm", 1)
            number_of_event = derived.add_event(store, event, [context], made[1])
            key = ("semantic", f"key {word}", made[2])
            derived.put_keys(store, "event", number_of_event, when, [key])  # type: ignore[list-item]
            derived.put_summary(
                store, StoredSummary(0, session, when, when, f"about {word}", "llm", 1), made[3]
            )
            entry = ProfileEntry(0, "habit", f"The wearer says {word}.", 0.8, when, f"t{number}")
            store.add_profile(entry, made[4], (), [Source("turn", row, when, f"quote {word}")])
        self.words[row], self.vectors[row], self.contexts[row] = word, made, context
        return row

    def traces(self, rows: list[int]) -> list[str]:
        """What of these turns can still be read in the file and its log."""
        plain = plain_bytes(self.file, KEY)
        found = [self.words[row] for row in rows if self.words[row].encode() in plain]
        for row in rows:
            for vector in self.vectors[row]:
                packed = pack(vector)[4:]
                if bits(vector) in plain or packed[:48] in plain or packed[-48:] in plain:
                    found.append(f"vector of {self.words[row]}")
        return found


@pytest.fixture
def life(tmp_path: Path) -> Life:
    life, chance = Life(tmp_path / "memory.db"), random.Random(3)
    for number in range(100):
        life.say(number, chance)
    return life


Choose = Callable[[list[int], random.Random], list[int]]


@pytest.mark.parametrize(
    "choose",
    [
        lambda rows, chance: chance.sample(rows, 40),
        lambda rows, chance: rows[:40],
        lambda rows, chance: rows[-40:],
    ],
    ids=["here and there", "the first", "the last"],
)
def test_nothing_of_what_was_forgotten_is_left_in_the_bytes(choose: Choose, life: Life) -> None:
    rows = list(life.words)
    chance = random.Random(4)
    for number in range(100, 120):  # some come after, and some are corrected, so that pages move
        rows.append(life.say(number, chance))
    gone = choose(rows, chance)
    assert len(life.traces(gone)) == 6 * len(gone)  # the search does find what is there
    receipt = forget.carry_out(life.store, forget.foresee(life.store, [("turn", row) for row in gone]))
    assert receipt.gone == dict.fromkeys(("context", "event", "profile", "summary", "turn"), len(gone))
    assert life.traces(gone) == []
    stays = [row for row in rows if row not in gone]
    assert len(life.traces(stays)) == 6 * len(stays)
    life.store.close()
    assert life.traces(gone) == []


def test_nothing_of_the_last_hour_is_left_in_the_bytes(life: Life) -> None:
    rows = list(life.words)
    since = BEGIN + timedelta(minutes=30 * 90)
    chosen = forget.within(life.store, since, None)
    forget.carry_out(life.store, forget.foresee(life.store, chosen))
    assert life.traces(rows[90:]) == []
    assert len(life.traces(rows[:90])) == 6 * 90


def test_nothing_that_could_be_undone_is_left_in_the_bytes_when_its_time_is_over(life: Life) -> None:
    rows = list(life.words)
    window = Window(BEGIN, BEGIN + timedelta(hours=1))
    chosen = [("turn", row) for row in rows[10:50]]
    forget.carry_out(life.store, forget.foresee(life.store, chosen), undo=window)
    assert len(life.traces(rows[10:50])) >= 40  # it lies in the file yet
    life.say(100, random.Random(4))
    assert purge_due(life.store, window.until) == ""
    assert life.traces(rows[10:50]) == []
    assert len(life.traces(rows[:10] + rows[50:])) == 6 * 60


def test_nothing_is_left_in_the_bytes_when_clearing_them_was_broken_off_and_begun_again(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase, "ASK_EVERY", 100)  # it is a small file
    rows = list(life.words)
    plan = forget.foresee(life.store, [("turn", row) for row in rows[20:40]])
    forget.carry_out(life.store, plan, clear_file=False)
    assert erase.clear(life.store, lambda: True) != ""
    life.store.close()
    life.store = Store(life.file, KEY)
    assert erase.has_traces(life.store)
    assert erase.clear(life.store, lambda: False) == ""
    assert life.traces(rows[20:40]) == []
    assert len(life.traces(rows[:20] + rows[40:])) == 6 * 80


def test_nothing_that_could_be_undone_is_left_after_a_forgetting_for_good(life: Life) -> None:
    rows = list(life.words)
    window = Window(BEGIN, BEGIN + timedelta(hours=1))
    forget.carry_out(life.store, forget.foresee(life.store, [("turn", rows[5])]), undo=window)
    forget.carry_out(life.store, forget.foresee(life.store, [("turn", rows[7])]))
    assert life.traces([rows[5], rows[7]]) == []


def test_nothing_that_expired_is_left_in_the_bytes(life: Life) -> None:
    rows = list(life.words)
    with life.store.transaction() as db:
        db.execute("DELETE FROM profile WHERE id <= 60")  # their turns are needed no more
    rules = retention.Retention(turn_days=1, context_days=1, event_days=1, summary_days=1)
    gone = retention.expire(life.store, rules, BEGIN + timedelta(minutes=30 * 60, days=1))
    assert gone == dict.fromkeys(("context", "event", "summary", "turn"), 60)
    assert life.traces(rows[:60]) == []


def test_nothing_of_a_correction_of_a_correction_is_left(life: Life) -> None:
    store, words = life.store, []
    for revision in range(3):
        words.append(f"wvk{revision}w")
        store.add_turn("x", revision, BEGIN, f"I meant {words[-1]}", "", "", unit())
    (last,) = store.turns("turn_id = 'x'")
    forget.carry_out(store, forget.foresee(store, [("turn", last.id)]))
    plain = plain_bytes(life.file, KEY)
    assert [word for word in words if word.encode() in plain] == []
