"""What a language model writes is kept only as far as it rests on what it was given."""

from __future__ import annotations

import pytest

from os1_edge.remember.grounding import faithful, unfaithful

SOURCE = "I parked the red car on level 3 before the meeting with Anna at the harbour office."


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("The wearer parked the red car on level 3.", None),
        ("The wearer mentions a meeting with Anna at the harbour office.", None),
        ("The wearer parked the car on level 4 before the meeting with Anna.", "number"),
        ("The wearer parked the red car before the meeting with Eva at the office.", "name"),
        ("The wearer bought a new house and painted the kitchen.", "too much"),
        ("As an AI I parked the red car on level 3.", "no summary"),
        ("Parked.", "short"),
    ],
)
def test_a_sentence_stands_or_falls_by_the_words_it_was_given(sentence: str, why: str | None) -> None:
    found = unfaithful(sentence, SOURCE)
    assert (found is None) if why is None else (found is not None and why in found)


def test_of_a_summary_the_true_sentences_stay() -> None:
    told = "The wearer parked the red car on level 3.", "They meet Anna at the harbour."
    text = f"{told[0]} They met Zoe in Venice. {told[1]} And th"
    assert faithful(text, SOURCE) == " ".join(told)
