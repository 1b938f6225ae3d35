"""Where a conversation is led, and how it turns when the wearer wants something else."""

from __future__ import annotations

import pytest

from os1_edge.converse.strategy import (
    CHAT,
    COMFORT,
    HELP,
    LISTEN,
    SHARE,
    Decided,
    Planned,
    Strategy,
    advanced,
    decided,
    planned,
    pushed_back,
    refined,
)


@pytest.mark.parametrize(
    ("heard", "objective"),
    [
        ("I failed the exam and feel terrible.", COMFORT),
        ("I got the job!", SHARE),
        ("What should I cook tonight?", HELP),
        ("My cousin lives in Madrid.", CHAT),
        ("What is the capital of France?", CHAT),
    ],
)
def test_what_is_said_first_sets_the_objective(heard: str, objective: str) -> None:
    assert advanced(None, heard).objective == objective


def test_who_only_wants_comfort_is_no_longer_advised() -> None:
    """The paper's own case of refining a plan."""
    advice = planned(HELP, "it was asked")
    said = "I don't want to think about how to solve the problem right now, can you just comfort me?"
    turned = advanced(advice, said)
    assert turned.objective == COMFORT
    assert turned.action == "affirm the feeling"


def test_a_models_plan_yields_to_the_wearer_too() -> None:
    solving = Strategy("solve the problem", ("find the cause", "make a list"), by="model")
    assert advanced(solving, "Please just listen.").objective == LISTEN
    assert advanced(solving, "It is a red one.").objective == "solve the problem"


@pytest.mark.parametrize("heard", ["Stop asking me questions.", "No more questions, please.", "Let me talk."])
def test_who_was_asked_too_much_is_listened_to(heard: str) -> None:
    assert pushed_back(heard) == LISTEN


def test_step_follows_step_and_the_last_one_stays() -> None:
    now = advanced(None, "I feel so sad.")
    actions = [now.action]
    for said in ("It was a long day.", "Thank you.", "Hm.", "Yes.", "Yes.", "Yes."):
        now = advanced(now, said)
        actions.append(now.action)
        assert now.done <= len(now.steps)
    assert actions[:3] == list(now.steps[:3])
    assert actions[-1] == now.steps[-1]


def test_who_is_not_calmed_is_comforted_again_before_anything_is_solved() -> None:
    now = advanced(advanced(None, "I feel awful."), "It was a long day.")
    again = advanced(now, "I am still so sad.")
    assert again.outcome == "worse"
    assert again.action == again.steps[0]
    assert advanced(again, "Thank you, I feel better.").outcome == "better"


def test_a_models_next_action_is_used_once_and_then_the_plan_goes_on() -> None:
    plan = refined(planned(COMFORT, ""), Planned(objective="give comfort", steps=["affirm", "ask", "offer"]))
    told = decided(plan, Decided(done=1, outcome="better", action="ask what happened"))
    first = advanced(told, "My boss was there.")
    assert (first.action, first.done) == ("ask what happened", 1)
    assert advanced(first, "And then I left.").done == 2


def test_a_model_cannot_undo_steps_nor_run_past_the_plan() -> None:
    plan = Strategy("x", ("a", "b"), done=2, by="model")
    assert decided(plan, Decided(done=0, outcome="open", action="do that")).done == 2
    assert decided(plan, Decided(done=4, outcome="open", action="do that")).done == 2


def test_who_asks_for_comfort_outright_is_not_asked_what_happened() -> None:
    bad = advanced(None, "I failed my driving test.")
    asked = advanced(bad, "Can you just comfort me?")
    assert (asked.objective, asked.action) == (COMFORT, "affirm the feeling")
    assert asked.reason == "the wearer asks for it again"


def test_what_did_no_good_is_not_gone_on_with() -> None:
    bad = advanced(None, "I am sad that the trip was cancelled.")
    worse = advanced(bad, "That makes me feel even worse.")
    assert (worse.outcome, worse.action) == ("worse", "affirm the feeling")
    assert advanced(bad, "It was the whole week.").action == "ask what happened"


@pytest.mark.parametrize(
    ("heard", "objective"),
    [
        ("We should finally plan our holiday.", CHAT),
        ("I finally finished the book", SHARE),
        ("I have no idea what to give her.", HELP),
        ("I cannot sleep because of tomorrow.", COMFORT),
    ],
)
def test_what_is_needed_is_told_from_the_words(heard: str, objective: str) -> None:
    assert advanced(None, heard).objective == objective
