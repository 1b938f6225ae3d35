"""Daily events (paper 3.2.3): contiguous, alike pair by pair, as long as can be; the same over restarts."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from os1_edge.events import RealtimeContext
from os1_edge.remember import derived
from os1_edge.remember.cluster import LONGEST_GAP_S, Cut, DailyEvent, EventClusterer, place_key
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.store import Store, Vector
from os1_edge.remember.timeline import LATE_S, Timeline

NOW = datetime(2026, 3, 2, 12)


def compass(degrees: float) -> Vector:
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], np.float32)


def day(*degrees: float, threshold: float = 0.75) -> list[DailyEvent]:
    clusterer = EventClusterer(threshold)
    out = []
    for i, angle in enumerate(degrees):
        context = RealtimeContext(float(i), "", "", f"place {angle}", "")
        out.append(clusterer.add(context, NOW + timedelta(minutes=i), compass(angle), i))
    return [e for e in [*out, clusterer.close()] if e is not None]


def lengths(events: list[DailyEvent]) -> list[int]:
    return [e.contexts for e in events]


def test_staying_in_one_place_is_one_event() -> None:
    (event,) = day(0, 0, 10, 0)
    assert (event.contexts, event.location) == (4, "place 0")
    assert (event.start, event.end) == (NOW, NOW + timedelta(minutes=3))


def test_coming_back_later_is_a_new_event() -> None:
    assert lengths(day(0, 0, 90, 0, 0)) == [2, 1, 2]


def test_a_slow_drift_is_cut_where_the_first_and_the_last_differ() -> None:
    """Every two contexts of an event must be alike, not only neighbours: cos 41 degrees = 0.755."""
    assert lengths(day(0, 20, 40, 60, 80)) == [3, 2]


def test_nothing_seen_is_no_event() -> None:
    assert day() == []
    assert EventClusterer().close() is None


def conditions(runs: Sequence[Sequence[int]], threshold: float) -> tuple[bool, bool, bool]:
    """The paper's three, for every run of a day. Below the threshold to a subsequence is the contrary of
    above the threshold to all of it."""

    def above(one: int, run: Sequence[int]) -> bool:
        return all(float(compass(one) @ compass(other)) >= threshold or one == other for other in run)

    pairs = list(itertools.pairwise(runs))
    return (
        all(not above(after[0], before) for before, after in pairs),
        all(above(one, run) for run in runs for one in run),
        all(not above(before[-1], after) for before, after in pairs),
    )


@given(st.lists(st.sampled_from([0, 15, 30, 45, 90, 110, 180]), min_size=1, max_size=7))
def test_where_the_three_conditions_can_be_kept_they_are_and_in_one_way_only(angles: list[int]) -> None:
    """Every way to cut the day is tried. Where none keeps all three (a drift), the first two are kept."""
    runs, at = [], 0
    for size in lengths(day(*angles)):
        runs.append(angles[at : at + size])
        at += size
    assert at == len(angles)  # contiguous, nothing lost, nothing double
    lawful = []
    for cuts in itertools.product((False, True), repeat=len(angles) - 1):
        tried: list[list[int]] = [[angles[0]]]
        for angle, cut in zip(angles[1:], cuts, strict=True):
            if cut:
                tried.append([angle])
            else:
                tried[-1].append(angle)
        if all(conditions(tried, 0.75)):
            lawful.append(tried)
    assert len(lawful) <= 1
    if lawful:
        assert runs == lawful[0]
    first, second, _ = conditions(runs, 0.75)
    assert (first, second) == (True, True)


@pytest.mark.parametrize(
    ("angles", "cut"),
    [((0, 90), Cut.BORDER), ((0, 30, 60), Cut.DRIFT)],
)
def test_an_event_says_why_it_ended(angles: tuple[int, ...], cut: Cut) -> None:
    clusterer = EventClusterer()
    for i, angle in enumerate(angles):
        context = RealtimeContext(0.0, "", "", f"place {angle}", "")
        clusterer.add(context, NOW + timedelta(minutes=i), compass(angle))
    assert clusterer.last_cut is cut


@pytest.mark.parametrize(
    ("start", "minutes", "cut"),
    [(NOW, 31, Cut.GAP), (NOW.replace(hour=23, minute=50), 20, Cut.DAY), (NOW, 30, None)],
)
def test_a_long_absence_and_a_new_day_end_an_event(start: datetime, minutes: int, cut: Cut | None) -> None:
    clusterer = EventClusterer()
    desk = RealtimeContext(0.0, "", "", "office", "working")
    clusterer.add(desk, start, compass(0))
    closed = clusterer.add(desk, start + timedelta(minutes=minutes), compass(0))
    assert clusterer.last_cut is cut
    assert (closed is None) == (cut is None)


def test_a_place_that_is_not_known_is_not_one_event_across_a_gap() -> None:
    clusterer = EventClusterer()
    context = RealtimeContext(0.0, "", "", "somewhere", "unknown")
    assert clusterer.add(context, NOW, compass(0)) is None
    assert clusterer.add(context, NOW + timedelta(minutes=4), compass(0)) is None
    closed = clusterer.add(context, NOW + timedelta(minutes=14), compass(0))
    assert closed is not None
    assert closed.end == NOW + timedelta(minutes=4)


def test_an_event_is_named_after_its_commonest_place_and_quotes_what_tells_something() -> None:
    clusterer = EventClusterer()
    said = (("hall", "Good morning."), ("office", "I start now."), ("office", ""))
    for i, (place, words) in enumerate(said):
        clusterer.add(RealtimeContext(i, "", words, place, "working"), NOW + timedelta(minutes=i), compass(0))
    event = clusterer.close()
    assert event is not None
    assert event.summary == '12:00-12:02 office, working; you said: "I start now."'


def test_a_talkative_event_keeps_only_a_few_quotes() -> None:
    clusterer = EventClusterer()
    for i in range(50):
        clusterer.add(RealtimeContext(i, "", f"word {i}", "office", ""), NOW, compass(0))
    event = clusterer.close()
    assert event is not None
    assert event.said == tuple(f"word {i}" for i in range(5))
    assert place_key("office", "") == "office"
    assert place_key("office", "working") == "office, working"


# Kept in the file -------------------------------------------------------------------------------------------

PLACES = ("kitchen", "office", "gym", "street", "somewhere")


def embed(text: str) -> Vector:
    vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSIONS)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def seen(at_s: float, place: str, said: str = "") -> tuple[RealtimeContext, datetime]:
    return RealtimeContext(at_s, "A cup.", said, place, "resting"), NOW + timedelta(seconds=at_s)


def kept(store: Store) -> list[tuple[datetime, datetime, str, int]]:
    return [(e.start, e.end, e.location, e.contexts) for e in derived.events(store)]


def lived(
    folder: str, contexts: Sequence[tuple[RealtimeContext, datetime]], restarts: frozenset[int] = frozenset()
) -> list[tuple[datetime, datetime, str, int]]:
    """The events of a life, with the file closed and opened again before some contexts."""
    path = Path(folder) / f"{len(restarts)}.db"
    path.unlink(missing_ok=True)
    store = Store(path, bytes(32))
    store.rows("PRAGMA synchronous = OFF")  # no power is lost here, and the disk is slow
    timeline = Timeline(store, embed)
    for i, (context, time) in enumerate(contexts):
        if i in restarts:
            store.close()
            store = Store(path, bytes(32))
            timeline = Timeline(store, embed)
        timeline.add(context, time)
    open_ones = [(e.start, e.end, e.location, e.contexts) for e in timeline.open_events()]
    found = [*kept(store), *open_ones]
    store.close()
    return found


@settings(max_examples=12)
@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.sampled_from([1.0, 10.0, 59.0, 400.0, 2000.0]), st.booleans()),
        min_size=2, max_size=14,
    ),
    st.sets(st.integers(0, 13), min_size=1),
)  # fmt: skip
def test_a_restart_at_any_moment_changes_no_event(
    steps: list[tuple[str, float, bool]], restarts: set[int]
) -> None:
    """Also with contexts that come late, when newer ones have been seen."""
    at, contexts = 0.0, []
    for place, wait, late in steps:
        at += wait
        contexts.append(seen(at - (30.0 if late else 0.0), place))
    with TemporaryDirectory() as folder:
        at_once = lived(folder, contexts)
        assert lived(folder, contexts, frozenset(restarts)) == at_once
    assert sum(event[3] for event in at_once) == len(contexts)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "memory.db", bytes(32))


def test_an_event_is_kept_with_its_contexts_and_can_be_found_once_it_is_over(store: Store) -> None:
    timeline = Timeline(store, embed)
    for i in range(4):
        assert timeline.add(*seen(i * 10.0, "kitchen", "I am hungry." if i == 1 else "")) == []
    (row,) = timeline.add(*seen(600.0, "office")) + timeline.add(*seen(600.0 + 2 * LATE_S, "office"))
    (event,) = derived.events(store)
    assert (event.id, event.location, event.contexts) == (row, "kitchen", 4)
    assert (event.start, event.end) == (NOW, NOW + timedelta(seconds=30))
    assert event.summary == '12:00-12:00 kitchen, resting; you said: "I am hungry."'
    assert len(store.stored_contexts("event_id = ?", row)) == 4
    assert store.rows("SELECT text FROM items WHERE kind = 'event'") == [(event.summary,)]
    assert [(e.location, e.contexts) for e in timeline.open_events()] == [("office", 2)]


def test_a_context_that_comes_late_stands_where_it_belongs(store: Store) -> None:
    timeline = Timeline(store, embed)
    for at, place in ((0, "kitchen"), (10, "kitchen"), (40, "office"), (20, "kitchen"), (300, "office")):
        timeline.add(*seen(at, place))
    assert kept(store) == [(NOW, NOW + timedelta(seconds=20), "kitchen", 3)]


def test_a_recording_of_an_earlier_day_does_not_mix_with_today(store: Store) -> None:
    timeline = Timeline(store, embed)
    timeline.add(*seen(0.0, "kitchen"))
    timeline.add(*seen(-86_400.0, "kitchen"))
    assert kept(store) == [(NOW, NOW, "kitchen", 1)]
    assert [e.start for e in timeline.open_events()] == [NOW - timedelta(days=1)]


def test_an_evening_at_home_ends_though_nothing_follows(store: Store) -> None:
    timeline = Timeline(store, embed)
    timeline.add(*seen(0.0, "home"))
    assert timeline.close_stale(NOW + timedelta(seconds=LONGEST_GAP_S)) == []
    assert len(timeline.close_stale(NOW + timedelta(seconds=LONGEST_GAP_S + 2 * LATE_S))) == 1
    assert timeline.close_stale(NOW + timedelta(days=1)) == []
    assert timeline.open_events() == []


def test_what_was_forgotten_while_an_event_went_on_is_not_in_it(store: Store) -> None:
    timeline = Timeline(store, embed)
    timeline.add(*seen(0.0, "kitchen", "My secret is blue."))
    timeline.add(*seen(10.0, "kitchen", "I am hungry."))
    timeline.add(*seen(200.0, "kitchen"))
    with store.transaction() as db:
        db.execute("DELETE FROM contexts WHERE utterance LIKE '%secret%'")
    timeline.add(*seen(400.0, "office"))
    timeline.add(*seen(600.0, "office"))
    (event,) = derived.events(store)
    assert event.contexts == 2
    assert "secret" not in event.summary
    assert "hungry" in event.summary


def test_an_event_that_the_wearer_deleted_does_not_come_back_after_a_restart(store: Store) -> None:
    timeline = Timeline(store, embed)
    for at, place in ((0, "kitchen"), (100, "office"), (300, "gym"), (500, "gym")):
        timeline.add(*seen(at, place))
    with store.transaction() as db:
        db.execute("DELETE FROM events WHERE location = 'kitchen'")
    again = Timeline(store, embed)
    again.add(*seen(700.0, "gym"))
    assert "kitchen" not in [e.location for e in (*derived.events(store), *again.open_events())]


def test_a_context_that_cannot_be_kept_leaves_the_day_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeline = Timeline(store, embed)
    timeline.add(*seen(0.0, "kitchen"))
    timeline.add(*seen(100.0, "office"))
    with monkeypatch.context() as broken:
        broken.setattr(derived, "add_event", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            timeline.add(*seen(300.0, "office"))
    timeline.add(*seen(300.0, "office"))
    assert [(e[2], e[3]) for e in kept(store)] == [("kitchen", 1)]
    assert [(e.location, e.contexts) for e in timeline.open_events()] == [("office", 2)]
