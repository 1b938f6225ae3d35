"""Which word sounds when: from the lengths of the phonemes, through what was made of the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from os1_edge.speak.align import phoneme_runs, place_words
from os1_edge.speak.voicefile import _message, with_durations


def placed(clause: str, said: str, phonemes: str) -> list[tuple[str, int, int]] | None:
    """Every phoneme lasts 10 samples."""
    words = place_words(clause, said, phoneme_runs([(p, 10) for p in phonemes]))
    if words is None:
        return None
    begins = [0, *(w.text_end for w in words)]
    return [(clause[b : w.text_end].strip(), w.begin, w.end) for b, w in zip(begins, words, strict=False)]


def test_word_for_word() -> None:
    assert placed("Green tea.", "Green tea.", "^ɡɹˈiːn tˈiː.$") == [("Green", 10, 70), ("tea.", 80, 120)]


def test_words_that_the_phonemizer_runs_together_share_their_sound_by_letters() -> None:
    assert placed("It is on the table.", "It is on the table.", "^ɪt ɪz ɔnðə tˈeɪbəl.$") == [
        ("It", 10, 30),
        ("is", 40, 60),
        ("on", 70, 86),
        ("the", 86, 110),
        ("table.", 120, 190),
    ]


def test_a_comma_tells_which_word_is_which() -> None:
    found = placed(
        "Your keys are on the table, and it's 25 of the 30.",
        "Your keys are on the table, and it's 25 of the 30.",
        "^jʊɹ kˈiːz ɑːɹ ɔnðə tˈeɪbəl, ænd ɪts twˈɛnti fˈaɪv ʌvðə θˈɜːɾi.$",
    )
    assert found is not None
    lengths = {word: (end - begin) // 10 for word, begin, end in found}
    assert (lengths["table,"], lengths["and"], lengths["it's"], lengths["25"], lengths["30."]) == (
        7,
        3,
        3,
        13,
        6,
    )


def test_a_comma_keeps_a_run_from_the_word_before_it() -> None:
    assert placed("Go, a tea.", "Go, a tea.", "^ɡˈoʊ, ɐtˈiː.$") == [
        ("Go,", 10, 50),
        ("a", 70, 82),
        ("tea.", 82, 120),
    ]


def test_a_figure_lasts_as_long_as_the_words_it_is_read_as() -> None:
    assert placed(
        "He paid $3.14 now.",
        "He paid 3 dollars and 14 cents now.",
        "^hiː pˈeɪd θɹˈiː dˈɑːlɚz ænd fˈɔːɹtiːn sˈɛnts nˈaʊ.$",
    ) == [("He", 10, 40), ("paid", 50, 100), ("$3.14", 110, 450), ("now.", 460, 500)]


def test_what_is_not_read_lasts_no_time() -> None:
    assert placed("Great 😀 tea.", "Great tea.", "^ɡɹˈeɪt tˈiː.$") == [
        ("Great", 10, 70),
        ("😀", 70, 70),
        ("tea.", 80, 120),
    ]


def test_what_cannot_be_told_is_not_made_up() -> None:
    assert placed("茶", "茶", "") is None
    assert placed("one two three four five six", "one two three four five six", "^ab$") is None


@given(st.text(st.sampled_from("ab ,.5$"), max_size=60), st.text(st.sampled_from("ab ,.ː"), max_size=80))
def test_words_follow_each_other_whatever_comes(clause: str, phonemes: str) -> None:
    found = place_words(clause, clause, phoneme_runs([(p, 10) for p in phonemes]))
    if found is not None:
        assert [w.text_end for w in found] == sorted({w.text_end for w in found})
        edges = [edge for w in found for edge in (w.begin, w.end)]
        assert edges == sorted(edges)
        assert edges[-1] <= 10 * len(phonemes)


def onnx(*ops: tuple[str, str], outputs: tuple[str, ...] = ("output",)) -> bytes:
    nodes = b"".join(_message(1, _message(2, out.encode()) + _message(4, op.encode())) for op, out in ops)
    return b"\x08\x07" + _message(7, nodes + b"".join(_message(12, _message(1, o.encode())) for o in outputs))


def test_the_durations_become_an_output_once() -> None:
    model = onnx(("Add", "/a"), ("Ceil", "/durations"))
    patched = with_durations(model)
    assert patched == model + _message(7, _message(12, _message(1, b"/durations")))
    assert with_durations(patched) == patched


@pytest.mark.parametrize("ops", [(("Add", "/a"),), (("Ceil", "/a"), ("Ceil", "/b"))])
def test_a_voice_without_clear_durations_is_left_alone(ops: tuple[tuple[str, str], ...]) -> None:
    assert with_durations(onnx(*ops)) == onnx(*ops)


@pytest.mark.parametrize("broken", [onnx(("Ceil", "/a"))[:-3], b"\xff" * 20, b"\x07hello"])
def test_a_broken_model_file_is_told(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut off|not an ONNX"):
        with_durations(broken)
