"""Who goes on with an answer that breaks off in the middle: pure, whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_offload_route import HOME, SHORT, jobs, states

from os1_edge.offload.broken import MENDED, SILENCE_S, Broken, mend
from os1_edge.offload.budget import Budget
from os1_edge.offload.far import Failure
from os1_edge.offload.offers import IMAGES, PREFIX, RESUME, SCHEMA, Offers
from os1_edge.offload.route import MARGIN_S, Job, Rules, State, decide, keeps, lacks

ALL = Offers(features=frozenset({PREFIX, RESUME, SCHEMA, IMAGES}))
NOTHING = Offers()
BROKE = Broken("unreachable", 20.0)

brokens = st.builds(
    Broken,
    st.sampled_from(get_args(Failure)),
    st.floats(-5.0, 30.0),
    st.booleans(),
    st.booleans(),
    st.integers(1, MENDED + 1),
)
offered = st.none() | st.builds(Offers, features=st.frozensets(st.sampled_from((PREFIX, RESUME, SCHEMA))))


@given(brokens, states, jobs(), offered)
def test_nothing_more_leaves_when_nothing_may(
    broken: Broken, state: State, job: Job, offers: Offers | None
) -> None:
    """The wearer may have said so in the middle of the answer."""
    assert not mend(broken, replace(state, private=True), job, offers).ways
    assert not mend(broken, replace(state, rules=Rules("prefer-private")), job, offers).ways
    if keeps(state, job) is not None:
        assert not mend(broken, state, job, offers).ways


@given(brokens, states, jobs(), offered)
def test_what_was_said_is_sent_only_to_a_server_that_is_known_to_go_on_behind_it(
    broken: Broken, state: State, job: Job, offers: Offers | None
) -> None:
    how = mend(broken, state, job, offers)
    if not broken.whole and (broken.pictures or offers is None or PREFIX not in offers.features):
        assert "again" not in how.ways
    if offers is not None and RESUME not in offers.features:
        assert "resume" not in how.ways


@given(brokens, states, jobs(), offered)
def test_the_device_begins_in_time_to_say_the_next_word_by_itself(
    broken: Broken, state: State, job: Job, offers: Offers | None
) -> None:
    how, local = mend(broken, state, job, offers), state.local.p95_s(job)
    assert how.reason
    assert 0 < how.resume_s <= SILENCE_S
    if not how.ways or local == float("inf"):
        return
    if state.low_battery or state.rules.policy == "prefer-battery":
        assert (how.device_at, how.patience_s) == (None, SILENCE_S)  # never both, and no longer than that
        return
    assert how.device_at is not None
    keeps_it = local + MARGIN_S <= SILENCE_S
    assert 0 <= how.device_at <= SILENCE_S
    if keeps_it and state.cloud is not None and 3 * state.cloud.srtt_s + 4 * state.cloud.rttvar_s < 0.1:
        assert how.device_at <= max(SILENCE_S - local - MARGIN_S, 0.25 + 1e-9)


@pytest.mark.parametrize(
    ("broken", "ways"),
    [
        (BROKE, ("resume", "again")),
        (replace(BROKE, fault="ending"), ("again",)),
        (replace(BROKE, fault="gone"), ("again",)),
        (replace(BROKE, fault="lost"), ("again",)),
        (replace(BROKE, fault="broken"), ()),
        (replace(BROKE, fault="unfit"), ()),
        (replace(BROKE, left_s=0.0), ()),
        (replace(BROKE, times=MENDED), ("resume", "again")),
        (replace(BROKE, times=MENDED + 1), ()),
        (replace(BROKE, pictures=True), ("resume",)),
    ],
)
def test_the_server_that_has_it_goes_on_else_another_else_the_device(
    broken: Broken, ways: tuple[str, ...]
) -> None:
    assert mend(broken, HOME, SHORT, ALL).ways == ways


def test_a_server_that_is_far_slower_than_the_device_is_not_asked_to_go_on() -> None:
    assert HOME.cloud is not None
    slow = replace(HOME, cloud=replace(HOME.cloud, first_p50_s=4.0))
    how = mend(replace(BROKE, fault="lost"), slow, SHORT, ALL)
    assert (how.ways, how.reason) == ((), "the server would go on later than the device")
    assert mend(BROKE, slow, SHORT, ALL).ways == ("resume",)  # what it has is there already


@pytest.mark.parametrize(
    ("offers", "job", "reason"),
    [
        (replace(ALL, features=frozenset()), replace(SHORT, schema=True), "the server obeys no schema"),
        (
            replace(ALL, features=frozenset()),
            replace(SHORT, images=1),
            "the server does not look at pictures",
        ),
        (replace(ALL, images=4), replace(SHORT, images=5), "the server takes 4 pictures at most, not 5"),
        (replace(ALL, turns=64), replace(SHORT, turns=65), "the server takes 64 turns at most, not 65"),
        (
            replace(ALL, request_bytes=1_500),
            replace(SHORT, images=1, rungs=((0, 900), (1, 600))),
            "the server takes 1500 bytes at most, not 1600",
        ),
    ],
)
def test_what_a_server_says_that_it_cannot_take_is_not_sent_there(
    offers: Offers, job: Job, reason: str
) -> None:
    state = replace(HOME, lacks=lacks(offers, job))
    made = decide(state, job, Budget(3.0, 10.0))
    assert (made.route, made.reason) == ("local", reason)
    able = replace(ALL, turns=1, images=1, request_bytes=2_000)
    assert lacks(able, SHORT) == "" == lacks(None, job)
