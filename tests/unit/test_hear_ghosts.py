"""What nobody said is not written; what somebody said is."""

from __future__ import annotations

import numpy as np
import pytest

from os1_edge.hear.ghosts import Evidence, clean, judge, too_quiet

SURE = Evidence(2.0, confidence=-0.2, speech_share=0.8)
WEAK = Evidence(2.0, confidence=-1.4)
UNVOICED = Evidence(2.0, speech_share=0.02)


@pytest.mark.parametrize(
    "text",
    ["[Music]", "[BLANK_AUDIO]", "(wind blowing)", "*sighs*", "♪♪", "♪ la la ♪", "...", " - ", "[Music",
     "(sn", "<|nospeech|>", ""],
)  # fmt: skip
def test_tags_and_marks_are_no_words(text: str) -> None:
    assert clean(text) == ""


def test_words_beside_a_tag_stay() -> None:
    assert clean("[Music] Where are my keys? (door closes)") == "Where are my keys?"


GHOSTS = [
    "Thanks for watching!", "Thank you for watching.", "Thank you so much for watching, and bye.",
    "Please subscribe to my channel.", "See you in the next video.", "Subtitles by the Amara.org community",
    "Untertitel im Auftrag des ZDF", "Sous-titres réalisés par la communauté", "Transcribed by Otter",
    "Thank you.", "you", "Bye-bye.", "Music",
]  # fmt: skip


@pytest.mark.parametrize("text", GHOSTS)
@pytest.mark.parametrize("evidence", [WEAK, UNVOICED], ids=["unsure", "unvoiced"])
def test_the_end_of_a_video_is_not_heard_in_a_fan(text: str, evidence: Evidence) -> None:
    verdict = judge(text, evidence)
    assert not verdict.kept
    assert "known" in verdict.reason


@pytest.mark.parametrize("text", GHOSTS)
def test_somebody_who_clearly_says_so_is_heard(text: str) -> None:
    assert judge(text, SURE).kept


@pytest.mark.parametrize("text", ["Stop.", "Yes.", "No!", "Hey", "Help!", "Wait.", "Oh no", "Hm"])
def test_a_short_command_is_heard_however_faint(text: str) -> None:
    assert judge(text, Evidence(0.3, confidence=-1.4)).kept


@pytest.mark.parametrize("text", ["No, no, no, no.", "Stop stop stop!", "five five", "yes yes yes yes"])
def test_saying_it_four_times_is_no_loop(text: str) -> None:
    assert judge(text, SURE).kept


@pytest.mark.parametrize(
    "text", ["five " * 15, "go forward ten meters. " * 5, "I'm not sure. I'm not sure, " * 4, "ha " * 40]
)
def test_a_loop_is_no_speech(text: str) -> None:
    verdict = judge(text, Evidence(30.0, confidence=-0.1))
    assert not verdict.kept
    assert "in a row" in verdict.reason


def test_nobody_says_forty_words_in_two_seconds() -> None:
    text = " ".join(f"word{i}" for i in range(40))
    assert not judge(text, SURE).kept
    assert judge(text, Evidence(12.0)).kept


def test_a_fast_speaker_is_heard() -> None:
    assert judge("could you please tell me right now where I have left my keys", Evidence(1.9)).kept


def test_silence_is_not_listened_to() -> None:
    assert too_quiet(np.zeros(0, np.float32))
    assert too_quiet(np.full(16_000, 0.0005, np.float32))
    assert not too_quiet(np.array([0, 0, 0.01], np.float32))
