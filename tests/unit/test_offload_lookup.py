"""Guessing what comes next from what stands in the prompt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from os1_edge.offload.lookup import FEW, LONGEST_MATCH, MANY, guesses

TOKENS = st.lists(st.integers(0, 5), max_size=60)


def test_a_phrase_of_the_prompt_that_is_begun_again_goes_on_the_same_way() -> None:
    assert guesses([1, 2, 3, 4, 5, 6, 9, 2, 3]) == [4, 5, 6]


def test_the_longest_match_wins_over_a_later_shorter_one() -> None:
    assert guesses([7, 2, 3, 10, 11, 8, 3, 20, 21, 7, 2, 3], 2) == [10, 11]


def test_of_two_equal_matches_the_later_one_wins() -> None:
    assert guesses([2, 3, 10, 2, 3, 20, 9, 2, 3], 1) == [20]


def test_new_words_are_not_guessed_at() -> None:
    assert guesses([1, 2, 3, 4]) == []
    assert guesses([]) == []
    assert guesses([1]) == []


def test_a_guess_may_run_up_to_the_end_of_the_text_but_not_past_it() -> None:
    assert guesses([5, 5], MANY) == [5]


@given(TOKENS, st.sampled_from([FEW, MANY]))
def test_a_guess_always_stands_in_the_text_behind_the_same_words(tokens: list[int], count: int) -> None:
    guessed = guesses(tokens, count)
    assert len(guessed) <= count
    if guessed:
        lengths = range(1, min(LONGEST_MATCH, len(tokens) - 1) + 1)
        places = [
            start + length
            for length in lengths
            for start in range(len(tokens) - length)
            if tokens[start : start + length] == tokens[-length:]
        ]
        assert any(tokens[at : at + len(guessed)] == guessed for at in places)
