"""How long memories are kept: what was made of them outlives them, and so do the words of the profile."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from memories import MONDAY, at, event, know, new, say, see, summary, texts

from os1_edge.remember.choices import Choices, load_choices
from os1_edge.remember.erase import has_traces
from os1_edge.remember.forget import carry_out, foresee
from os1_edge.remember.retention import Retention, expire, expired
from os1_edge.remember.shorten import choose, goes
from os1_edge.remember.store import Store
from os1_edge.remember.trash import Window, undoable
from os1_edge.remember.undo import undo

DAY = 24 * 60


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Ten days with a turn, a context, an event and a summary each."""
    store = new(tmp_path)
    for day in range(10):
        say(store, f"t{day}", f"Said on day {day}.", day * DAY, f"s{day}")
        event(store, [see(store, "gym", day * DAY)], f"Event of day {day}.", day * DAY)
        summary(store, f"s{day}", f"Summary of day {day}.", 1, day * DAY)
    yield store
    store.close()


NOW = MONDAY + timedelta(days=9, hours=1)


def test_without_rules_everything_stays(store: Store) -> None:
    assert expired(store, Retention(), NOW) == []
    assert expire(store, Retention(), NOW) == {}
    assert len(store.turns()) == 10


def test_turns_age_apart_from_what_was_made_of_them(store: Store) -> None:
    assert expire(store, Retention(turn_days=3), NOW) == {"turn": 7}
    assert [t.turn_id for t in store.turns()] == ["t7", "t8", "t9"]
    assert sum(text.startswith("Summary") for text in texts(store)) == 10
    assert "Said on day 0." not in texts(store)


def test_the_file_is_written_anew_only_when_nobody_may_want_to_speak(store: Store) -> None:
    assert expire(store, Retention(turn_days=3), NOW, clear_file=False) == {"turn": 7}
    assert has_traces(store)
    assert "Said on day 0." not in texts(store)


def test_an_event_outlives_its_contexts(store: Store) -> None:
    assert expire(store, Retention(context_days=3), NOW) == {"context": 7}
    assert sum(text.startswith("Event") for text in texts(store)) == 10
    assert expire(store, Retention(event_days=3, summary_days=5), NOW) == {"event": 7, "summary": 5}
    assert "key of Event of day 0." not in texts(store)


def test_the_words_that_the_profile_rests_on_stay(store: Store) -> None:
    line = know(store, "The wearer likes tea.", [1])
    assert expire(store, Retention(turn_days=3), NOW) == {"turn": 6}
    assert [s.id for s in store.sources(line)] == [1]
    assert store.turns()[0].turn_id == "t0"


def test_what_expired_may_come_back_with_an_import(store: Store) -> None:
    expire(store, Retention(turn_days=3), NOW)
    assert store.rows("SELECT count(*) FROM forgotten") == [(0,)]


FOR_EVER = Choices()
WINDOW = Window(NOW, NOW + timedelta(hours=1))


def everything(store: Store) -> list[object]:
    tables = ("turns", "contexts", "events", "summaries", "profile_sources", "turn_used")
    return [store.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in tables]


def test_what_is_kept_for_less_long_comes_back_whole_with_its_links_and_the_longer_keeping(
    store: Store,
) -> None:
    know(store, "The wearer trains.", [1])
    store.rows("UPDATE profile_sources SET source_kind = 'event' RETURNING 1")
    before = everything(store)
    shorter = Choices(keep_turns_days=3, keep_contexts_days=3, keep_events_days=3, share_pictures=True)
    assert len(goes(store, FOR_EVER, shorter, NOW)) == 21
    assert everything(store) == before
    assert choose(store, FOR_EVER, shorter, WINDOW) == {"context": 7, "event": 7, "turn": 7}
    assert [u.until for u in undoable(store)] == [WINDOW.until]
    assert load_choices(store) == shorter
    assert undo(store) is not None
    assert everything(store) == before
    assert load_choices(store) == Choices(share_pictures=True)


def test_only_a_kind_that_is_kept_for_less_long_is_taken_by_a_choice(store: Store) -> None:
    month, week = Choices(keep_turns_days=30, keep_events_days=5), Choices(keep_turns_days=7)
    assert {kind for kind, _ in goes(store, month, week, NOW)} == {"turn"}
    assert choose(store, week, month.model_copy(update={"keep_events_days": None}), WINDOW) == {}
    assert undoable(store) == []


def test_an_undo_of_another_forgetting_leaves_the_choices_alone(store: Store) -> None:
    shorter = Choices(keep_turns_days=3)
    later = Window(NOW + timedelta(minutes=5), NOW + timedelta(hours=2))
    choose(store, FOR_EVER, shorter, WINDOW)
    carry_out(store, foresee(store, [("turn", 10)]), undo=later)
    undo(store)
    assert load_choices(store) == shorter
    undo(store)
    assert load_choices(store) == FOR_EVER


def test_a_file_that_is_too_big_loses_its_oldest_weeks(tmp_path: Path) -> None:
    store = new(tmp_path, "big")
    with store.transaction():
        for day in range(70):
            for n in range(4):
                say(store, f"t{day}-{n}", f"Day {day}. " + "many words " * 60, day * DAY + n, f"s{day}")
    rules = Retention(max_bytes=700_000)
    (over,) = expired(store, rules, at(70 * DAY))
    assert "more than 700000" in over.why
    assert expire(store, rules, at(70 * DAY))["turn"] > 0
    left = store.turns()
    assert left[0].time.weekday() == MONDAY.weekday()  # whole weeks
    assert left[-1].turn_id == "t69-3"
    assert (tmp_path / "big").stat().st_size < 900_000
    store.close()
