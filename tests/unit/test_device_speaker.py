"""What a replay keeps of a reply: the sound as it was heard, with its gaps, cut where it was stopped."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import numpy as np
import pytest
import soundfile

from os1_edge import clock
from os1_edge.device.speaker import LONGEST_GAP_S, NullSink, ReplaySink
from os1_edge.events import Samples
from os1_edge.speak.playback import Player

RATE = 8000


def tone(seconds: float) -> Samples:
    return np.full(round(seconds * RATE), 0.5, np.float32)


def kept(folder: Path, name: str) -> Samples:
    return np.asarray(soundfile.read(str(folder / name), dtype="float32")[0])


def test_each_reply_gets_its_own_file_as_long_as_it_was_heard_and_a_silent_one_none(tmp_path: Path) -> None:
    async def main() -> list[str | None]:
        player, names = Player(ReplaySink(tmp_path), clock.Clock()), []
        for seconds in (1.0, 0.0, 2.0):
            player.begin("t", 0)
            if seconds:
                await player.add("some words", tone(seconds), RATE)
            names.append((await player.end()).file)
        return names

    assert clock.run(main(), virtual=True) == ["01.wav", None, "02.wav"]
    assert [len(kept(tmp_path, f"0{i}.wav")) for i in (1, 2)] == [RATE, 2 * RATE]
    assert not (tmp_path / "03.wav").exists()


def test_a_gap_between_clauses_is_in_the_file(tmp_path: Path) -> None:
    async def main() -> None:
        player = Player(ReplaySink(tmp_path), clock.Clock())
        player.begin("t", 0)
        await player.add("one", tone(1.0), RATE)
        await asyncio.sleep(3.0)
        await player.add("two", tone(1.0), RATE)
        await player.end()

    clock.run(main(), virtual=True)
    sound = kept(tmp_path, "01.wav")
    assert len(sound) == 4 * RATE
    assert np.abs(sound[RATE : 3 * RATE]).max() == 0
    assert np.abs(sound[3 * RATE :]).min() > 0.4


def test_a_stopped_reply_ends_in_the_file_where_it_ended_in_the_ear(tmp_path: Path) -> None:
    async def main() -> str | None:
        player = Player(ReplaySink(tmp_path), clock.Clock())
        player.begin("t", 0)
        await player.add("a b c d", tone(4.0), RATE)
        await asyncio.sleep(1.5)
        return player.stop().file

    assert clock.run(main(), virtual=True) == "01.wav"
    assert 1.5 <= len(kept(tmp_path, "01.wav")) / RATE <= 1.54


def test_what_a_pause_takes_back_is_not_in_the_file_twice(tmp_path: Path) -> None:
    async def main() -> None:
        player = Player(ReplaySink(tmp_path), clock.Clock())
        player.begin("t", 0)
        await player.add("oneword", tone(0.5), RATE)
        await player.add("another", np.full(2 * RATE, 0.25, np.float32), RATE)
        await asyncio.sleep(0.49)
        player.pause()
        await asyncio.sleep(1.0)
        player.resume()
        await player.end()

    clock.run(main(), virtual=True)
    sound = kept(tmp_path, "01.wav")
    assert np.count_nonzero(np.abs(sound - 0.25) < 0.001) <= 2 * RATE
    assert np.count_nonzero(np.abs(sound) < 0.001) == pytest.approx(RATE, abs=0.02 * RATE)


def test_a_reply_held_for_an_hour_does_not_fill_the_disk(tmp_path: Path) -> None:
    async def main() -> None:
        player = Player(ReplaySink(tmp_path), clock.Clock())
        player.begin("t", 0)
        await player.add("a b c d", tone(2.0), RATE)
        await asyncio.sleep(1.0)
        player.pause()
        await asyncio.sleep(3600.0)
        player.resume()
        await player.end()

    clock.run(main(), virtual=True)
    assert len(kept(tmp_path, "01.wav")) / RATE < 3.0 + LONGEST_GAP_S


def test_a_voice_that_is_too_loud_is_clipped_not_wrapped(tmp_path: Path) -> None:
    sink = ReplaySink(tmp_path)
    sink.begin("t", 0, RATE)
    sink.write(np.array([2.0, -2.0] * 400, np.float32), 0.0)
    sink.end()
    sound = kept(tmp_path, "01.wav")
    assert sound[0] > 0.99
    assert sound[1] < -0.99


def test_a_folder_that_cannot_be_written_costs_the_file_not_the_reply(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> float:
        ticking = clock.Clock()
        sink = ReplaySink(tmp_path / "replies")
        (tmp_path / "replies").rmdir()
        player = Player(sink, ticking)
        for turn in ("t1", "t2"):
            player.begin(turn, 0)
            await player.add("one", tone(1.0), RATE)
            heard = await player.end()
            assert heard.whole
            assert heard.file is None
        return ticking.now()

    with caplog.at_level(logging.ERROR):
        assert clock.run(main(), virtual=True) == pytest.approx(2.0)
    assert len(caplog.records) == 1


def test_without_a_speaker_time_passes_all_the_same() -> None:
    async def main() -> float:
        ticking = clock.Clock()
        player = Player(NullSink(), ticking)
        player.begin("t", 0)
        await player.add("one", tone(1.5), RATE)
        await player.end()
        return ticking.now()

    assert clock.run(main(), virtual=True) == pytest.approx(1.5)
