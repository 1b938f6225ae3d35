"""Words shown while somebody speaks: what is steady stays, whatever the next guess says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from os1_edge.hear.partials import LONGEST, Stabiliser


def shown(*hypotheses: str) -> list[tuple[str, str]]:
    """(stable, tentative) after each hypothesis over one turn."""
    stabiliser = Stabiliser()
    partials = [stabiliser.add("t0001", 0, text) for text in hypotheses]
    return [(p.stable, p.tentative) for p in partials]


def test_a_word_is_steady_once_two_guesses_agree_on_it() -> None:
    assert shown("Where", "Where are", "Where are my keys?") == [
        ("", "Where"),
        ("Where", "are"),
        ("Where are", "my keys?"),
    ]


def test_a_guess_that_is_dropped_was_never_steady() -> None:
    assert shown("wear a", "Where are my", "Where are my keys")[-1] == ("Where are my", "keys")


def test_a_steady_word_is_not_taken_back() -> None:
    *_, last = shown("I left them", "I left them", "Eye loft")
    assert last[0] == "I left them"


def test_a_guess_that_hears_one_word_more_at_the_start_repeats_no_word() -> None:
    *_, last = shown("go to the", "go to the", "Please go to the shop")
    assert last == ("go to the", "shop")


def test_a_guess_that_hears_one_word_less_at_the_start_loses_no_word() -> None:
    *_, last = shown("so go to the", "so go to the", "Go to the shop")
    assert last == ("so go to the", "shop")


def test_a_full_stop_that_becomes_a_comma_is_the_same_word() -> None:
    assert shown("Stop.", "stop, please")[-1] == ("stop,", "please")


def test_another_revision_or_turn_begins_anew() -> None:
    stabiliser = Stabiliser()
    for _ in range(2):
        stabiliser.add("t0001", 0, "Good morning")
    assert stabiliser.add("t0001", 1, "Good evening").stable == ""
    stabiliser.add("t0001", 1, "Good evening")
    assert stabiliser.add("t0002", 0, "Good evening").stable == ""


def test_a_guess_of_nothing_leaves_what_is_steady() -> None:
    assert shown("hello there", "hello there", "")[-1] == ("hello there", "")


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=12), max_size=12))
def test_whatever_is_guessed_what_is_steady_only_grows(guesses: list[list[str]]) -> None:
    stable: list[str] = []
    for now, _ in shown(*(" ".join(words) for words in guesses)):
        assert now.split()[: len(stable)] == stable
        stable = now.split()


def test_a_recogniser_that_raves_is_bounded() -> None:
    raving = " ".join(str(i) for i in range(10 * LONGEST))
    for stable, tentative in shown(raving, raving, raving, raving):
        assert len(stable.split()) <= LONGEST
        assert len(tentative.split()) <= LONGEST
