"""A reply cut into clauses as it is written, read aloud without markup, played in its own time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import example, given
from hypothesis import strategies as st

from os1_edge import clock
from os1_edge.device.speaker import AHEAD_S, ReplaySpeaker
from os1_edge.speak.clauses import LONGEST, ClauseSplitter
from os1_edge.speak.spoken import spoken


def clauses(*pieces: str) -> list[str]:
    splitter = ClauseSplitter()
    out = [clause for piece in pieces for clause in splitter.add(piece)]
    return out + splitter.finish()


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Lee paid $3.14 on Jan. 5.",
        "It is 3.5 km to St. Mary, I think.".replace(", I think", ""),
        "Wake up at 7 a.m. on Monday.",
        "See e.g. the red one.",
        "Mr. J. R. Smith called.",
        "The ratio is 3:1 or 1,000 to one.",
        "Version 2.0.1 is out.",
        "Yes, I do.",
    ],
)
def test_a_mark_inside_a_sentence_does_not_cut_it(sentence: str) -> None:
    assert clauses(sentence) == [sentence]
    assert clauses(*sentence) == [sentence]


def test_sentences_and_long_clauses_are_spoken_one_by_one() -> None:
    text = 'Good morning! Your dentist is at three, so leave at two... "Really?" Yes — take the bus.\nBye'
    assert clauses(text) == [
        "Good morning!",
        "Your dentist is at three,",
        "so leave at two...",
        '"Really?"',
        "Yes — take the bus.",
        "Bye",
    ]


def test_the_first_clause_is_given_while_the_rest_is_still_unwritten() -> None:
    splitter = ClauseSplitter()
    assert splitter.add("You like green tea") == []
    assert splitter.add(".") == []
    assert splitter.add(" And") == ["You like green tea."]
    assert splitter.finish() == ["And"]
    assert splitter.finish() == []


def test_a_reply_without_any_mark_is_cut_at_a_space_before_it_gets_too_long() -> None:
    found = clauses("word " * 200)
    assert all(len(c) <= LONGEST for c in found)
    assert all(c.split() == ["word"] * len(c.split()) for c in found)
    assert all(len(c) <= LONGEST for c in clauses("x" * 1000))


PROSE = st.text(st.sampled_from("abDr. ,;:-–!?…\n\"')J3"), max_size=700)


@given(PROSE)
@example("a" * 50 + " " + "b" * 200 + ". c")
@example("x" * 219 + ". " + "y" * 300)
def test_written_letter_by_letter_or_at_once_the_clauses_are_the_same(text: str) -> None:
    assert clauses(*text) == clauses(text)


@given(st.lists(st.text(max_size=60), max_size=20) | st.lists(PROSE, max_size=4))
def test_nothing_of_a_reply_is_lost(pieces: list[str]) -> None:
    found = clauses(*pieces)
    assert "".join("".join(found).split()) == "".join("".join(pieces).split())
    assert all(c == c.strip() and c and len(c) <= LONGEST for c in found)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("**You** like _green_ tea.", "You like green tea."),
        ("Sure! 😀👍🏽 Done ✅", "Sure! Done"),
        ("# Plan\n> `run` it", "Plan run it"),
        ("See [the map](http://x.example/a) now", "See the map now"),
        ("😀", ""),
        ("...", ""),
        ("***", ""),
        ("", ""),
        ("Café, naïve, 北京", "Café, naïve, 北京"),
    ],
)
def test_markup_and_emoji_are_not_read_aloud(written: str, said: str) -> None:
    assert spoken(written) == said


@given(st.text(max_size=200))
def test_reading_aloud_never_fails_and_is_settled(text: str) -> None:
    said = spoken(text)
    assert said == " ".join(said.split())
    assert "*" not in said


def second(n: float, rate: int = 8000) -> np.ndarray:
    return np.full(round(n * rate), 0.5, np.float32)


def test_clauses_are_heard_back_to_back_not_over_each_other(tmp_path: Path) -> None:
    async def main() -> tuple[list[float], float, str | None]:
        ticking = clock.Clock()
        speaker = ReplaySpeaker(ticking, tmp_path / "replies")
        await asyncio.sleep(5)
        starts = [await speaker.play("t1", second(2), 8000)]
        await asyncio.sleep(0.5)
        starts.append(await speaker.play("t1", second(1), 8000))
        await asyncio.sleep(4)
        starts.append(await speaker.play("t1", second(1), 8000))
        file = await speaker.finish("t1")
        return starts, ticking.now(), file

    starts, ended, file = clock.run(main(), virtual=True)
    assert starts == pytest.approx([5.0, 7.0, 9.5])
    assert ended == pytest.approx(10.5)
    assert file == "01.wav"
    assert soundfile.info(str(tmp_path / "replies" / "01.wav")).frames == 4 * 8000


def test_a_voice_far_ahead_of_the_listener_waits(tmp_path: Path) -> None:
    async def main() -> tuple[list[float], list[float]]:
        ticking = clock.Clock()
        speaker = ReplaySpeaker(ticking, tmp_path)
        starts, ahead = [], []
        for _ in range(10):
            starts.append(await speaker.play("t1", second(4), 8000))
            ahead.append(starts[-1] - ticking.now())
        await speaker.finish("t1")
        return starts, ahead

    starts, ahead = clock.run(main(), virtual=True)
    assert starts == pytest.approx([4.0 * i for i in range(10)])
    assert max(ahead) <= AHEAD_S + 1e-6


def test_each_turn_gets_its_own_file_and_a_silent_turn_none(tmp_path: Path) -> None:
    async def main() -> list[str | None]:
        speaker = ReplaySpeaker(clock.Clock(), tmp_path)
        names = []
        for said in (1.0, 0.0, 2.0):
            if said:
                await speaker.play("t", second(said), 8000)
            names.append(await speaker.finish("t"))
        return names

    assert clock.run(main(), virtual=True) == ["01.wav", None, "02.wav"]
    assert [round(soundfile.info(str(tmp_path / f"0{i}.wav")).duration) for i in (1, 2)] == [1, 2]


def test_a_voice_that_is_too_loud_is_clipped_not_wrapped(tmp_path: Path) -> None:
    async def main() -> None:
        speaker = ReplaySpeaker(clock.Clock(), tmp_path)
        await speaker.play("t", np.array([2.0, -2.0] * 400, np.float32), 8000)
        await speaker.finish("t")

    clock.run(main(), virtual=True)
    samples = soundfile.read(str(tmp_path / "01.wav"))[0]
    assert samples[0] > 0.99
    assert samples[1] < -0.99
