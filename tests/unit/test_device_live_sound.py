"""Microphone and speaker over programs' pipes: real processes, no sound card."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest

from os1_edge.device.pipes import PipeMicrophone, PipeSpeaker
from os1_edge.device.programs import NoSound, Program, player, recorder
from os1_edge.device.ring import MOST_S, SLACK_S, Ring
from os1_edge.events import RATE


def have(*names: str):  # type: ignore[no-untyped-def]
    return lambda name: f"/usr/bin/{name}" if name in names else None


def test_pulse_is_taken_before_alsa_and_a_named_device_is_asked_for() -> None:
    assert recorder("auto", have("parec", "arecord")).argv[0] == "parec"
    assert recorder("auto", have("arecord")).system == "alsa"
    argv = recorder("alsa:hw:1,0", have("arecord", "parec")).argv
    assert argv[argv.index("-D") + 1] == "hw:1,0"
    assert "--device=bt" in player(22_050, "pulse:bt", have("pacat")).argv


def test_who_has_no_sound_program_is_told_what_to_install() -> None:
    with pytest.raises(NoSound, match="parec or arecord is not here; install alsa-utils"):
        recorder("auto", have())
    with pytest.raises(NoSound, match="aplay is not here"):
        player(16_000, "alsa", have("pacat"))


def test_an_own_command_is_split_as_a_shell_would_and_gets_the_rate() -> None:
    made = player(22_050, "play -r {rate} 'my file'", have("play"))
    assert made.argv == ("play", "-r", "22050", "my file")
    with pytest.raises(NoSound, match="nothing-such cannot be run"):
        recorder("nothing-such -x", have())
    with pytest.raises(NoSound, match="No closing quotation"):
        recorder("play 'oh", have("play"))


def test_sound_leaves_the_ring_when_it_is_due_with_silence_between() -> None:
    ring = Ring(1000)
    ring.put(np.full(10, 0.5, np.float32), 1.005)
    ring.put(np.full(10, 0.25, np.float32), 1.020)
    got = np.concatenate([ring.take(10, 1.0), ring.take(10, 1.01), ring.take(10, 1.02)])
    assert np.array_equal(got, np.repeat([0, 0.5, 0, 0.25], [5, 10, 5, 10]).astype(np.float32))


def test_a_thread_that_is_a_little_late_loses_no_sound_and_a_stopped_one_goes_on_in_time() -> None:
    ring = Ring(1000)
    ring.put(np.ones(200, np.float32), 1.0)
    ring.take(20, 1.0)
    assert ring.take(20, 1.02 + SLACK_S / 2).all()  # late, and still the very next samples
    assert not ring.take(20, 5.0).any()  # asleep for seconds: what was due then is over


def test_what_is_dropped_is_not_played_and_the_ring_is_bounded() -> None:
    ring = Ring(1000)
    for n in range(10):
        ring.put(np.full(10, n + 1, np.float32), n / 100)
    ring.drop(0.05)
    assert ring.take(200, 0.0).max() == 5
    for n in range(1000):
        ring.put(np.ones(10, np.float32), 1 + n / 100)
    assert ring.take(10_000, 11.0 - MOST_S - 1).sum() == pytest.approx(MOST_S * 1000, abs=10)


RECORDS = """
import struct, sys, time
rate, count, header = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "wav"
out = sys.stdout.buffer
if header:
    out.write(b"RIFF" + struct.pack("<I", 0x7FFFFFFF) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate,
        rate * 2, 2, 16) + b"data" + struct.pack("<I", 0x7FFFFFFF))
out.write(struct.pack("<h", 16384) * count)
out.flush()
if len(sys.argv) > 4:
    print(sys.argv[4], file=sys.stderr)
    sys.exit(1)
time.sleep(60 if count < 0 else 0)
"""


def recording(*args: str) -> Program:
    return Program("own", (sys.executable, "-c", RECORDS, *args), RATE)


def heard(program: Program) -> tuple[int, np.ndarray]:
    async def go() -> tuple[int, np.ndarray]:
        device = await PipeMicrophone.open(program)
        async with aclosing(device.blocks()) as blocks:
            return device.rate, np.concatenate([block async for block in blocks])

    return asyncio.run(go())


def test_a_recorder_tells_its_own_rate_in_the_header() -> None:
    rate, sound = heard(recording("48000", "5000", "wav"))
    assert rate == 48_000
    assert len(sound) == 5000
    assert np.all(sound == 0.5)


def test_raw_sound_is_whole_from_its_first_sample() -> None:
    rate, sound = heard(recording("16000", "4001", "raw"))
    assert (rate, len(sound)) == (RATE, 4001)


def test_a_recorder_that_fails_is_told_in_its_own_words() -> None:
    with pytest.raises(OSError, match="no such card"):
        heard(recording("16000", "0", "raw", "arecord: no such card"))
    with pytest.raises(OSError, match="unplugged"):
        heard(recording("16000", "4000", "wav", "arecord: unplugged"))
    with pytest.raises(OSError, match="nothing-such"):
        heard(Program("own", ("/nothing-such",), RATE))


def test_a_microphone_that_is_left_ends_its_program(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid()));"
        "os.write(1, bytes(8000)); time.sleep(60)"
    )

    async def go() -> None:
        device = await PipeMicrophone.open(Program("own", (sys.executable, "-c", code, str(pid_file)), RATE))
        async with aclosing(device.blocks()) as blocks:
            await anext(blocks)

    asyncio.run(go())
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_speaker_gets_the_reply_whole_and_lets_the_device_go(tmp_path: Path) -> None:
    file = tmp_path / "played.raw"
    program = Program("own", ("sh", "-c", f"cat > {file}"), 22_050)
    began = time.monotonic()
    sink = PipeSpeaker(lambda rate: program, lambda: time.monotonic() - began)
    sink.begin("t1", 0, 22_050)
    now = time.monotonic() - began
    tone = np.full(441, 0.5, np.float32)  # 20 ms
    for n in range(8):
        sink.write(tone, now + 0.1 + n * 0.02)
    time.sleep(0.5)
    sink.end()
    sink.close()
    played = np.frombuffer(file.read_bytes(), "<i2")
    loud = np.flatnonzero(played)
    assert len(loud) == 8 * 441
    assert loud[-1] - loud[0] == 8 * 441 - 1  # without a gap
    assert np.all(played[loud] == 16383)


def test_a_reply_of_another_rate_is_played_at_the_devices() -> None:
    got: list[Program] = []

    def program(rate: int) -> Program:
        got.append(Program("own", ("cat",), 48_000))
        return got[-1]

    sink = PipeSpeaker(program, time.monotonic)
    sink.begin("t1", 0, 22_050)
    for n in range(50):
        sink.write(np.ones(441, np.float32), 1e9 + n * 0.02)
    feed = sink._feed
    assert feed is not None
    assert feed.ring._held == pytest.approx(48_000, rel=0.05)
    sink.close()
    assert len(got) == 1


def test_a_speaker_that_is_pulled_out_is_told_and_the_next_reply_tries_again() -> None:
    commands = [("false",), ("cat",)]
    sink = PipeSpeaker(lambda rate: Program("own", commands.pop(0), rate), time.monotonic)
    sink.begin("t1", 0, 16_000)

    def reply() -> None:
        for _ in range(200):
            sink.write(np.ones(320, np.float32), time.monotonic())
            time.sleep(0.01)

    with pytest.raises(NoSound):
        reply()
    sink.begin("t2", 0, 16_000)
    sink.write(np.ones(320, np.float32), time.monotonic())
    sink.close()
    assert not commands
