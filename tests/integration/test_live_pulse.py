"""`os1 run` on this machine's own programs: a real sound server with a room and a mouth that are null sinks,
a film as the camera, and the real models."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest

import os1_models

MIC = Path(__file__).resolve().parents[2] / "edge" / "os1_edge" / "demo" / "morning" / "mic"
MODELS = (
    "silero-vad", "smart-turn-v3.2", "whisper-tiny.en", "qwen2.5-0.5b", "piper-joe", "minilm-l6",
    "objects-ssd", "ppocr", "centerface",
)  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which a sound server of the test's own is found."""
    missing = [name for name in ("pulseaudio", "pactl", "pacat", "parec") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {missing[0]} on PATH: install pulseaudio to try live sound")
    folder = tmp_path_factory.mktemp("pulse")
    folder.chmod(0o700)
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "HOME": str(folder), "PYTHONUNBUFFERED": "1"}
    environ["OS1_MODELS_DIR"] = str(os1_models.models_dir())  # not below this home
    environ |= {"PULSE_SERVER": f"unix:{folder}/pulse/native", "OS1_KEY_FILE": str(folder / "key")}
    command = [
        "pulseaudio",
        "-n",
        "--daemonize=no",
        "--exit-idle-time=-1",
        "-L",
        "module-native-protocol-unix",
    ]
    sinks = [["-L", f"module-null-sink sink_name={name}"] for name in ("mouth", "room")]
    server = subprocess.Popen(
        [*command, *sinks[0], *sinks[1]], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(100):
            if (
                subprocess.run(["pactl", "info"], env=environ, capture_output=True, check=False).returncode
                == 0
            ):
                break
            assert server.poll() is None, "pulseaudio ended"
            time.sleep(0.1)
        yield environ
    finally:
        server.terminate()
        server.wait(10)


@dataclass
class Running:
    """A companion in a process of its own."""

    process: subprocess.Popen[bytes]
    log: Path

    def text(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def wait_for(self, pattern: str, seconds: float = 60.0) -> str:
        ends = time.monotonic() + seconds
        while (found := re.search(pattern, self.text())) is None:
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < ends, f"no {pattern!r} in: {self.text()}"
            time.sleep(0.1)
        return found[0]

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        assert self.process.wait(30) == 0, self.text()
        assert "Traceback" not in self.text()
        assert "scene camera" not in self.text()  # the film never ends


def film(folder: Path) -> Path:
    """A second of a scene, again and again."""
    file = folder / "film.avi"
    out = cv2.VideoWriter(str(file), cv2.VideoWriter.fourcc(*"MJPG"), 10, (320, 240))
    rng = np.random.default_rng(0)
    for n in range(10):
        picture = np.repeat(np.repeat(rng.integers(60, 200, (6, 8, 3), np.uint8), 40, 0), 40, 1)
        out.write(np.clip(picture.astype(int) + n, 0, 255).astype(np.uint8))
    out.release()
    return file


@contextmanager
def running(folder: Path, environ: dict[str, str], *more: str) -> Iterator[Running]:
    config = folder / "config.toml"
    config.write_text(
        '[device]\nmicrophone = "pulse:room.monitor"\nspeaker = "pulse:mouth"\n'
        f'scene_camera = "{film(folder)}"\n[see]\nevery_s = 1.0\nin_dialogue_s = 1.0\n'
    )
    log = folder / f"log{len(list(folder.glob('log*')))}"
    command = [sys.executable, "-m", "os1_edge", "run", "--captions", "--config", str(config)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--memory", str(folder / "memory.db"), *more], stdout=out, stderr=out, env=environ
        )
    try:
        yield Running(process, log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def say(name: str, environ: dict[str, str]) -> None:
    subprocess.run(["pacat", "--file-format=wav", "-d", "room", str(MIC / name)], env=environ, check=True)


def strays(environ: dict[str, str]) -> list[str]:
    """Command lines of sound programs that are still on the test's server."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            theirs = environ["PULSE_SERVER"].encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        if theirs and "OS-1" in line:
            found.append(line)
    return found


def test_a_question_said_in_the_room_is_answered_from_the_mouth_and_a_lost_microphone_comes_back(
    tmp_path: Path, sound: dict[str, str], pulled: Callable[..., Path]
) -> None:
    for name in MODELS:
        pulled(name)
    with running(tmp_path, sound) as companion:
        companion.wait_for(r"listening after \d+\.\d s")
        spoken = tmp_path / "spoken.raw"
        with spoken.open("wb") as out:
            recorder = subprocess.Popen(
                [
                    "parec",
                    "--raw",
                    "--format=s16le",
                    "--channels=1",
                    "--rate=16000",
                    "--latency-msec=30",
                    "-d",
                    "mouth.monitor",
                ],
                stdout=out,
                env=sound,
            )
        try:
            time.sleep(0.5)
            say("02.wav", sound)  # "Please remember that I am allergic to peanuts."
            reply = companion.wait_for(r"you: .*allergic to peanuts.*\nOS-1: .+").rsplit("OS-1: ", 1)[1]
            time.sleep(1.0)
        finally:
            recorder.terminate()
            recorder.wait()
        said, meant = heard(spoken, pulled), words(reply)
        assert len(set(said) & set(meant)) >= len(set(meant)) / 2, (said, meant)  # tiny.en may miss a word

        second = subprocess.run(
            companion.process.args, env=sound, capture_output=True, text=True, check=False, timeout=60
        )
        assert second.returncode == 1
        assert f"process {companion.process.pid}" in second.stderr
        assert "end that one first" in second.stderr

        subprocess.run(["pactl", "unload-module", module("room", sound)], env=sound, check=True)
        companion.wait_for("microphone is gone")
        subprocess.run(
            ["pactl", "load-module", "module-null-sink", "sink_name=room"],
            env=sound,
            check=True,
            capture_output=True,
        )
        ends = time.monotonic() + 30
        while "room.monitor" not in outputs(sound):
            assert time.monotonic() < ends, companion.text()
            time.sleep(0.2)
        time.sleep(0.5)
        say("03.wav", sound)  # "I like green tea much more than coffee."
        companion.wait_for(r"you: .*green tea")
        companion.end()  # mostly over the reply
    assert strays(sound) == []


def module(sink: str, environ: dict[str, str]) -> str:
    listed = subprocess.run(
        ["pactl", "list", "short", "modules"], env=environ, capture_output=True, text=True, check=True
    )
    return next(line.split()[0] for line in listed.stdout.splitlines() if f"sink_name={sink}" in line)


def outputs(environ: dict[str, str]) -> str:
    """From which sources somebody records."""

    def listed(what: str) -> list[list[str]]:
        command = ["pactl", "list", "short", what]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        return [line.split("\t") for line in done.stdout.splitlines()]

    names = {fields[0]: fields[1] for fields in listed("sources")}
    return " ".join(names.get(fields[1], "") for fields in listed("source-outputs"))


def heard(raw: Path, pulled: Callable[..., Path]) -> list[str]:
    from os1_edge.hear.recogniser import make_recogniser

    samples = np.frombuffer(raw.read_bytes(), "<i2").astype(np.float32) / 32768
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    assert len(loud), "the mouth was silent"
    ears = make_recogniser("whisper", pulled("whisper-tiny.en"), "en", 2)
    return words(ears.text(samples[max(0, loud[0] - 8000) : loud[-1] + 8000], lambda: False))


def words(text: str) -> list[str]:
    return re.sub(r"[^a-z ]", "", text.lower()).split()


@pytest.mark.parametrize(("wait_s", "number"), [(0.0, signal.SIGTERM), (0.7, signal.SIGINT)])
def test_told_to_end_while_it_starts_it_ends_cleanly(
    wait_s: float, number: int, tmp_path: Path, sound: dict[str, str], pulled: Callable[..., Path]
) -> None:
    for name in MODELS:
        pulled(name)
    with running(tmp_path, sound) as companion:
        while not (tmp_path / "memory.db.worn").exists():  # then it begins to load
            assert companion.process.poll() is None, companion.text()
            time.sleep(0.02)
        time.sleep(wait_s)
        companion.end(number)
    assert strays(sound) == []
    with running(tmp_path, sound) as companion:  # memory and lock are as they should be
        companion.wait_for("listening after")
        companion.end(number)


def test_a_port_that_is_taken_is_told_of(
    tmp_path: Path, sound: dict[str, str], pulled: Callable[..., Path]
) -> None:
    import socket

    for name in MODELS:
        pulled(name)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with running(tmp_path, sound, "--browser", "--port", str(port)) as companion:
            assert companion.process.wait(60) == 1
            assert f"port {port} is taken; choose another with --port" in companion.text()
            assert "Traceback" not in companion.text()
