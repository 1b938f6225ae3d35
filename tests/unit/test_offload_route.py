"""Where an answer is made: what the rule promises, for any state of the world."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from os1_edge.offload.budget import Allowance, Budget
from os1_edge.offload.estimate import Lateness
from os1_edge.offload.ladder import RUNGS, Pictures
from os1_edge.offload.link import TRANSITIONS, Event, Link, works
from os1_edge.offload.route import MARGIN_S, Cloud, Job, Local, Rules, State, decide

thorough = settings(max_examples=150)
"""Most states keep a question on the device for one reason or another; the others are what is looked for."""

seldom = st.integers(0, 7).map(lambda n: n == 0)
seconds = st.floats(0.0, 1.0)
clouds = st.builds(
    Cloud,
    srtt_s=st.floats(0.001, 1.0),
    rttvar_s=st.floats(0.0, 0.3),
    uplink_p50=st.floats(1e3, 1e7),
    uplink_p10=st.floats(1e3, 1e7),
    queue_s=seconds,
    first_p50_s=seconds,
    first_p95_s=seconds,
    known=st.booleans(),
    late_s=st.none() | st.floats(0.0, 1.0),
)
locals_ = st.builds(
    Local,
    a=st.floats(0.0, 0.5),
    b=st.floats(0.0, 0.002),
    c=st.floats(0.0, 1.0),
    high=st.floats(0.0, 0.5),
    sees=st.booleans(),
)
tasks = st.sampled_from(["reply", "caption", "context", "plan", "consolidate"])
rules = st.builds(
    Rules,
    policy=st.sampled_from(["prefer-quality"] * 4 + ["prefer-private", "prefer-battery"]),
    metered=st.sampled_from(["allow", "text", "deny"]),
    images=st.booleans(),
    local_only=st.sets(tasks, max_size=1),
)
states = st.builds(
    State,
    rules=rules,
    link=st.sampled_from([Link.ONLINE] * 5 + list(Link)),
    local=locals_,
    cloud=clouds | clouds | clouds | st.none(),
    metered=st.booleans(),
    breaker_open=seldom,
    draining=seldom,
    serves=seldom.map(lambda no: not no),
    may_hedge=st.booleans(),
    too_often=seldom,
    private=seldom,
    low_battery=seldom,
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Questions, with and without pictures."""
    images = draw(st.integers(0, 3))
    sizes = sorted(draw(st.lists(st.integers(2_000, 400_000), min_size=1, max_size=5)), reverse=True)
    return Job(
        task=draw(tasks),
        tokens=draw(st.integers(1, 2000)),
        text_bytes=draw(st.integers(300, 20_000)),
        images=images,
        rungs=tuple(enumerate(sizes)) if images else ((-1, 0),),
        background=draw(seldom),
    )


budget = st.floats(0.05, 10.0).map(lambda first: Budget(first, 30.0))


@thorough
@given(states, jobs(), budget)
def test_the_device_begins_in_time_to_keep_the_budget_by_itself(
    state: State, job: Job, within: Budget
) -> None:
    """Never misses the first token's budget where the device fits it, whatever the server does."""
    made = decide(state, job, within)
    local = state.local.p95_s(job)
    if local + MARGIN_S > within.first_token_s or made.route == "local":
        return
    assert made.hedge_at is not None
    assert 0 <= made.hedge_at <= within.first_token_s - local


@thorough
@given(states, jobs(), budget)
def test_nothing_private_leaves(state: State, job: Job, within: Budget) -> None:
    made = decide(state, job, within)
    private = (
        state.private
        or state.rules.policy == "prefer-private"
        or job.task in state.rules.local_only
        or (job.images > 0 and not state.rules.images)
        or (state.metered and state.rules.metered == "deny")
        or (state.metered and state.rules.metered == "text" and job.images > 0)
    )
    if private or not works(state.link) or state.cloud is None:
        assert (made.route, made.rung) == ("local", None)
    assert made.reason


@thorough
@given(states, clouds, jobs(), budget, st.floats(1.0, 100.0), st.floats(1.0, 100.0))
def test_more_bandwidth_never_makes_it_worse(
    state: State, cloud: Cloud, job: Job, within: Budget, more: float, more_low: float
) -> None:
    """Not from the server back to the device, not to a smaller picture, not later."""
    wider = replace(cloud, uplink_p50=cloud.uplink_p50 * more, uplink_p10=cloud.uplink_p10 * more_low)
    narrow = decide(replace(state, cloud=cloud), job, within)
    wide = decide(replace(state, cloud=wider), job, within)

    def rank(made: object) -> int:
        return 0 if made.route == "local" else 1 if made.doubtful else 2  # type: ignore[attr-defined]

    assert rank(wide) >= rank(narrow)
    if narrow.rung is not None and wide.rung is not None:
        assert wide.rung <= narrow.rung  # 0 is the largest
        if wide.rung == narrow.rung:
            assert (wide.cloud_high_s or 0) <= (narrow.cloud_high_s or 0) + 1e-9


@thorough
@given(states, jobs(), budget)
def test_both_sides_are_not_set_to_work_where_that_is_used_up_or_costs_battery(
    state: State, job: Job, within: Budget
) -> None:
    made = decide(state, job, within)
    if not state.may_hedge or state.low_battery or state.rules.policy == "prefer-battery":
        assert not made.doubtful


HOME = State(
    Rules(images=True),
    Link.ONLINE,
    Local(0.1, 0.001, 1.0, 0.1, sees=True),
    Cloud(0.04, 0.01, 100_000.0, 50_000.0, 0.0, 0.1, 0.15),
)
SHORT = Job("reply", 50, 1_000)
REPLY = Budget(0.6, 30.0)


def test_at_home_the_server_answers_and_the_device_waits_for_the_last_moment() -> None:
    made = decide(HOME, SHORT, REPLY)
    assert (made.route, made.doubtful) == ("cloud", False)
    assert made.hedge_at == pytest.approx(min(made.cloud_high_s or 0, 0.6 - 0.25 - MARGIN_S))
    assert made.reason == "the server's first word comes within 0.25 s, of 0.60 s"


def test_a_server_that_nobody_knows_yet_is_waited_for_to_the_last_moment() -> None:
    """Else a slow one would never have the first word, and never be known."""
    hoped = replace(HOME, cloud=replace(HOME.cloud, known=False))  # type: ignore[type-var]
    assert decide(hoped, SHORT, REPLY).hedge_at == pytest.approx(0.6 - 0.25 - MARGIN_S)
    assert decide(hoped, SHORT, Budget(4.0, 30.0)).hedge_at == pytest.approx(4.0 - 0.25 - MARGIN_S)
    assert decide(HOME, SHORT, Budget(4.0, 30.0)).hedge_at == pytest.approx(0.2477, abs=0.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"link": Link.OFFLINE}, "the server cannot be reached"),
        ({"link": Link.CAPTIVE}, "a login page stands between here and the server"),
        ({"breaker_open": True}, "the server gave no answer a moment ago"),
        ({"draining": True}, "the server ends soon"),
        ({"serves": False}, "the server has no model for a reply"),
        ({"private": True}, "nothing leaves the device"),
        ({"cloud": None}, "nothing is known of the server yet"),
        ({"metered": True, "rules": Rules(metered="deny")}, "the network costs by the byte"),
        ({"rules": Rules(local_only={"reply"})}, "the setting keeps reply on the device"),
        (
            {"cloud": replace(HOME.cloud, srtt_s=2.0)},  # type: ignore[type-var]
            "the server's first word comes hardly before 2.11 s, of 0.60 s; the device has to begin after "
            "0.30 s to keep that by itself",
        ),
    ],
)
def test_what_keeps_a_question_on_the_device_is_told_in_words(change: dict[str, object], words: str) -> None:
    made = decide(replace(HOME, **change), SHORT, REPLY)  # type: ignore[arg-type]
    assert (made.route, made.reason) == ("local", words)


def test_a_picture_leaves_as_large_as_the_uplink_carries_in_time() -> None:
    shrinks = Pictures(lambda data, side, quality: data)
    job = Job("reply", 50, 1_000, 1, shrinks.rungs([200_000], "reply"))
    sides = []
    for rate in (30_000.0, 60_000.0, 80_000.0, 1e6):
        at = replace(HOME, cloud=replace(HOME.cloud, uplink_p50=rate, uplink_p10=rate))  # type: ignore[type-var]
        made = decide(at, job, Budget(3.0, 10.0))
        sides.append(-1 if made.rung == -1 or made.rung is None else RUNGS[made.rung].side)
    assert sides == [512, 768, 1024, -1]


def test_a_caption_that_may_be_asked_to_read_is_not_made_unreadable() -> None:
    shrinks = Pictures(lambda data, side, quality: data)
    assert [n for n, _ in shrinks.rungs([200_000], "caption")] == [-1, 0, 1]
    assert [n for n, _ in shrinks.rungs([200_000], "reply")] == [-1, 0, 1, 2, 3, 4]


@thorough
@given(st.lists(st.booleans(), min_size=20, max_size=400))
def test_second_starts_stay_a_small_share_of_the_questions(wanted: list[bool]) -> None:
    allowance, started = Allowance(0.1, 3.0), 0
    for want in wanted:
        allowance.asked()
        if want and allowance.allows:
            allowance.spent()
            started += 1
    assert started <= 0.1 * len(wanted) + 3


def test_lateness_that_was_measured_replaces_what_the_parts_would_add_up_to() -> None:
    parts = replace(HOME.cloud, rttvar_s=0.5)  # type: ignore[type-var]
    assert parts.forecast(1_000)[1] > 2.0
    measured = replace(parts, late_s=0.07)
    middle, high = measured.forecast(1_000)
    assert high == pytest.approx(middle + 0.07)
    late = Lateness()
    for n in range(10):
        late.outcome(0.0, n / 100, inside=True)
        assert (late.p90_s is None) == (n < 4)
    assert late.p90_s == 0.09


def test_every_state_has_an_answer_to_every_event() -> None:
    assert set(TRANSITIONS) == {(state, event) for state in Link for event in Event}


def test_one_lost_probe_is_a_lost_packet_and_two_are_an_outage() -> None:
    once = TRANSITIONS[Link.ONLINE, Event.LOST]
    assert (once, TRANSITIONS[once, Event.LOST]) == (Link.DEGRADED, Link.OFFLINE)


def test_a_picture_stays_unless_the_wearer_allowed_it_to_leave() -> None:
    looking = Job("caption", 50, 1_000, 1, ((-1, 40_000),))
    lax = Budget(5.0, 10.0)
    assert decide(HOME, looking, lax).route == "cloud"
    kept = decide(replace(HOME, rules=Rules(images=False)), looking, lax)
    assert (kept.route, kept.rung, kept.reason) == ("local", None, "pictures do not leave the device")
    metered = replace(HOME, metered=True, link=Link.METERED)
    assert decide(metered, looking, lax).reason == "the network costs by the byte"
    assert decide(metered, SHORT, REPLY).route == "cloud"
