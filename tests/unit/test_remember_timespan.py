"""Which time a question asks about."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.remember.timespan import read_times

NOW = datetime(2026, 3, 4, 15, 30)  # a Wednesday


def fits(question: str, year: int, month: int, day: int, hour: int = 12) -> bool:
    times = read_times(question, NOW)
    assert times is not None, question
    return times.fits(datetime(year, month, day, hour))


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("What did I do yesterday?", (2026, 3, 3), (2026, 3, 4)),
        ("What did I eat yesterday morning?", (2026, 3, 3, 9), (2026, 3, 3, 19)),
        ("What did I say this morning?", (2026, 3, 4, 9), (2026, 3, 4, 14)),
        ("Whom did I meet the day before yesterday?", (2026, 3, 2), (2026, 3, 3)),
        ("What did I dream last night?", (2026, 3, 4, 2), (2026, 3, 4, 9)),
        ("What happened last week?", (2026, 2, 25), (2026, 3, 2)),
        ("What happened this week?", (2026, 3, 2), (2026, 2, 28)),
        ("Where was I last weekend?", (2026, 2, 28), (2026, 3, 2)),
        ("What did I buy last month?", (2026, 2, 11), (2026, 3, 1)),
        ("Where did I live last year?", (2025, 7, 1), (2026, 1, 1)),
        ("What did I say two days ago?", (2026, 3, 2), (2026, 3, 3)),
        ("What did I say three weeks ago?", (2026, 2, 11), (2026, 3, 1)),
        ("What did I say on Monday?", (2026, 3, 2), (2026, 3, 3)),
        ("What did we say last Wednesday?", (2026, 2, 25), (2026, 3, 4)),
        ("What did I do in the morning?", (2026, 1, 5, 8), (2026, 1, 5, 13)),
        ("What do I do at night?", (2026, 1, 5, 23), (2026, 1, 5, 13)),
        ("What did I say in the last 3 hours?", (2026, 3, 4, 14), (2026, 3, 4, 11)),
        ("When did I go camping in May 2023?", (2023, 5, 20), (2023, 7, 1)),
        ("What happened on 7 May 2023?", (2023, 5, 7), (2023, 5, 1)),
        ("What happened on May 7th, 2023?", (2023, 5, 8), (2023, 6, 1)),
        ("What happened on 2023-05-07?", (2023, 5, 7), (2023, 5, 1)),
        ("When did I go camping in July?", (2025, 7, 3), (2025, 5, 3)),
        ("What did I paint in 2022?", (2022, 8, 1), (2023, 8, 1)),
        ("Where was I in summer 2024?", (2024, 7, 1), (2024, 1, 1)),
    ],
)
def test_a_question_of_a_time_means_that_time(
    question: str, inside: tuple[int, ...], outside: tuple[int, ...]
) -> None:
    assert fits(question, *inside)
    assert not fits(question, *outside)


@pytest.mark.parametrize(
    "question",
    ["Who is Anna?", "May I ask you something?", "What will I do tomorrow?", "Is it 5 pm?", "", "March on!"],
)
def test_a_question_of_no_past_time_means_any(question: str) -> None:
    times = read_times(question, NOW)
    assert times is None or not times.exact


def test_only_a_time_seen_from_now_rules_out_all_others() -> None:
    """What is told of a date is often told later; what was said yesterday was said yesterday."""
    yesterday, date = read_times("yesterday", NOW), read_times("on 7 May 2023", NOW)
    assert yesterday is not None
    assert yesterday.exact
    assert date is not None
    assert not date.exact
    assert date.fits(datetime(2023, 5, 15))


def test_a_date_that_never_was_means_its_month() -> None:
    assert fits("What happened on 31 February 2023?", 2023, 2, 20)


@given(st.text(max_size=80), st.datetimes(datetime(1971, 1, 1), datetime(2999, 1, 1)))
def test_no_words_break_it(text: str, now: datetime) -> None:
    times = read_times(text, now)
    if times is not None:
        times.fits(now)


@given(
    st.sampled_from(["yesterday", "last week", "last month", "two days ago", "on Friday", "last year"]),
    st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1)),
)
def test_what_is_over_lies_before_now(phrase: str, now: datetime) -> None:
    times = read_times(phrase, now)
    assert times is not None
    assert all(start < end <= now + timedelta(days=1) for start, end in times.spans)
    assert not times.fits(now + timedelta(days=2))
