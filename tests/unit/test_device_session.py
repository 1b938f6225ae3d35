"""A recorded session: read whole, or refused in one clear line that says where to look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from os1_edge import cli, clock
from os1_edge.device.replay import camera, microphone, microphone_blocks, seed_memory, session_seconds
from os1_edge.device.session import load_session
from os1_edge.device.sound import BadSound, blocks, read
from os1_edge.events import CHUNK, RATE, Image, SceneFrame
from os1_edge.tomlfile import BadFile

HEAD = "schema = 1\nstart = 2026-03-02T08:00:00\n"
MIC = '[[microphone]]\nfile = "a.wav"\nat_s = 0.0\n'


def wav(path: Path, seconds: float, rate: int = RATE, channels: int = 1, level: float = 0.1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(str(path), np.full((round(seconds * rate), channels), level, np.float32), rate, "FLOAT")
    return path


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """A session folder with ``a.wav`` (1 s), ``b.wav`` (1 s), and the given ``session.toml``."""

    def make(toml: str | bytes) -> Path:
        folder = tmp_path / "session"
        for name in ("a.wav", "b.wav"):
            wav(folder / name, 1.0)
        (folder / "f.jpg").write_bytes(b"not a picture")
        text = toml.encode() if isinstance(toml, str) else toml
        (folder / "session.toml").write_bytes(text)
        return folder

    return make


def _text_wav(folder: Path) -> None:
    (folder / "a.wav").write_text("this is a letter, not a sound")


def _empty_wav(folder: Path) -> None:
    wav(folder / "a.wav", 0)


def _slow_wav(folder: Path) -> None:
    wav(folder / "a.wav", 1, rate=8000)


BROKEN: dict[str, tuple[str, int | None, str]] = {
    # name: (session.toml, line at fault, what the message says)
    "a file that is not there": (
        HEAD + MIC.replace("a.wav", "gone.wav"),
        4,
        "gone.wav, which does not exist",
    ),
    "a folder as a sound": (HEAD + MIC.replace("a.wav", "."), 4, "does not exist"),
    "no name": (HEAD + MIC.replace("a.wav", ""), 4, "does not exist"),
    "a name with a NUL": (HEAD + MIC.replace("a.wav", "a\\u0000b"), 4, "cannot be a file's name"),
    "a name of 300 letters": (HEAD + MIC.replace("a.wav", "a" * 300), 4, "cannot be a file's name"),
    "a file outside": (HEAD + MIC.replace("a.wav", "../../a.wav"), 4, "outside the session's folder"),
    "an absolute file outside": (HEAD + MIC.replace("a.wav", "/etc/hostname"), 4, "outside the session's"),
    "a negative time": (HEAD + MIC.replace("0.0", "-1"), 5, "microphone.1.at_s"),
    "a time that is no number": (HEAD + MIC.replace("0.0", "nan"), 5, "finite"),
    "an infinite time": (HEAD + MIC.replace("0.0", "inf"), 5, "finite"),
    "a time as text": (HEAD + MIC.replace("0.0", '"soon"'), 5, "valid number"),
    "a negative time in an inline table": (
        HEAD + 'microphone = [{file = "a.wav", at_s = -1}]',
        3,
        "microphone.1.at_s",
    ),
    "no time": (HEAD + MIC.replace("at_s = 0.0", ""), 3, "at_s: is missing"),
    "no start": ("schema = 1\n" + MIC, None, "start: is missing"),
    "another schema": (HEAD.replace("1", "9", 1) + MIC, 1, "schema"),
    "an unknown setting": (HEAD + "colour = 3\n" + MIC, 3, "colour: no such setting"),
    "an unknown setting of a microphone": (HEAD + MIC + "volume = 3\n", 6, "microphone.1.volume: no such"),
    "TOML cut short in a table": (HEAD + MIC + "[[fra", 6, "not TOML"),
    "TOML cut short in a string": (HEAD + '[[microphone]]\nfile = "a.w', 4, "not TOML"),
    "a date that is none": ("schema = 1\nstart = 2026-13-45T08:00:00\n" + MIC, 2, "not TOML"),
    "a number of 5000 digits": (HEAD + MIC.replace("0.0", "1" * 5000), None, "not TOML"),
    "not UTF-8": (HEAD + '# \udcff"\n' + MIC, None, "not UTF-8"),
    "an utterance that ends before it starts": (
        HEAD + MIC + '[[utterance]]\nstart_s = 2.0\nend_s = 1.0\ntext = "x"\n',
        6,
        "end_s 1.0 is not after start_s 2.0",
    ),
    "overlapping microphones": (
        HEAD + MIC + '[[microphone]]\nfile = "b.wav"\nat_s = 0.5\n',
        8,
        "0.5 s, before",
    ),
    "overlapping microphones, later first": (
        HEAD + '[[microphone]]\nfile = "b.wav"\nat_s = 0.5\n' + MIC,
        5,
        "0.5 s, before",
    ),
    "a cut that goes back": (
        HEAD + MIC + "[[cut]]\nat_s = 1.0\ntime = 2026-03-02T07:00:00\n",
        7,
        "back in time",
    ),
    "a cut that goes back a little": (
        HEAD + MIC + "[[cut]]\nat_s = 60.0\ntime = 2026-03-02T08:00:30\n",
        7,
        "back in time",
    ),
    "cuts out of order": (
        HEAD
        + MIC
        + "[[cut]]\nat_s = 9.0\ntime = 2026-03-02T09:00:00\n"
        + "[[cut]]\nat_s = 5.0\ntime = 2026-03-02T10:00:00\n",
        10,
        "back in time",
    ),
    "nothing to replay": (HEAD, None, "nothing to replay"),
    "a sound after a day": (HEAD + MIC.replace("0.0", "1e9"), 5, "equal to 86400"),
    "a frame after a day": (
        HEAD + MIC + '[[frame]]\nfile = "f.jpg"\nat_s = 1e9\n',
        8,
        "equal to 86400",
    ),
    "another rate": (HEAD + "[audio]\nrate = 8000\n" + MIC, 6, "has 16000 samples a second"),
    "an impossible rate": (HEAD + "[audio]\nrate = 1\n" + MIC, 4, "audio.rate"),
    "a seed that is not there": (HEAD + MIC + '[memory]\nseed = "gone.jsonl"\n', 7, "does not exist"),
}


def said_once(folder: Path, tmp_path: Path) -> str:
    """What ``os1 replay`` says to a broken session: exit code 1, one line, no traceback."""
    result = CliRunner().invoke(cli.main, ["replay", str(folder), "--out", str(tmp_path / "out")])
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("os1: ")
    assert not (tmp_path / "out" / "memory.db").exists()
    return lines[0]


@pytest.fixture(autouse=True)
def _own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS1_KEY_FILE", str(tmp_path / "memory.key"))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_session_is_one_clear_line(name: str, write: Callable[..., Path], tmp_path: Path) -> None:
    toml, line, words = BROKEN[name]
    folder = write(toml.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadFile) as found:
        load_session(folder)
    said = said_once(folder, tmp_path)
    assert said == f"os1: {found.value}"
    assert words in said
    place = f"{folder / 'session.toml'}:{line}: " if line else f"{folder / 'session.toml'}: "
    assert said.startswith(f"os1: {place}"), said
    assert ": : " not in said


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_text_wav, "a.wav is not a sound file that can be read"),
        (_empty_wav, "a.wav holds no samples"),
        (_slow_wav, "a.wav has 8000 samples a second where the session says 16000"),
    ],
)
def test_a_spoilt_sound_is_told_with_the_line_that_names_it(
    spoil: Callable[[Path], None], words: str, write: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write(HEAD + MIC)
    spoil(folder)
    said = said_once(folder, tmp_path)
    assert words in said
    assert f"{folder / 'session.toml'}:4: " in said


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    assert "no such folder" in said_once(tmp_path / "gone", tmp_path)
    (tmp_path / "file").write_text("x")
    assert "not a folder" in said_once(tmp_path / "file", tmp_path)
    (tmp_path / "empty").mkdir()
    assert "session.toml: no such file" in said_once(tmp_path / "empty", tmp_path)
    (tmp_path / "nested" / "session.toml").mkdir(parents=True)
    assert "directory" in said_once(tmp_path / "nested", tmp_path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("[config.hear]\nthreads = 0\n", "session.toml:7: config.hear.threads"),
        ("[config]\nhear = 3\n", "config.hear"),
        ("[config.nose]\nx = 1\n", "config.nose: no such setting"),
        ("[config.remember]\nmin_similarity = nan\n", "config.remember.min_similarity"),
    ],
)
def test_a_wrong_setting_in_the_session_is_named(
    config: str, words: str, write: Callable[..., Path], tmp_path: Path
) -> None:
    said = said_once(write(HEAD + MIC + config), tmp_path)
    assert "session.toml:" in said
    assert words in said


def test_a_session_saved_by_a_windows_editor_is_read(write: Callable[..., Path]) -> None:
    text = b"\xef\xbb\xbf" + (HEAD + MIC).replace("\n", "\r\n").encode()
    assert load_session(write(text)).file.start == datetime(2026, 3, 2, 8)


def test_a_session_may_have_no_sound(write: Callable[..., Path]) -> None:
    session = load_session(write(HEAD + '[[frame]]\nfile = "f.jpg"\nat_s = 2.0\n'))
    assert session_seconds(session) == pytest.approx(5.0)
    assert sum(map(len, microphone_blocks(session))) == 5 * RATE


def test_sounds_stand_at_their_seconds_with_silence_between(write: Callable[..., Path]) -> None:
    late_first = '[[microphone]]\nfile = "b.wav"\nat_s = 4.0\n' + MIC.replace("0.0", "1.5")
    whole = np.concatenate(list(microphone_blocks(load_session(write(HEAD + late_first)))))
    assert len(whole) == 8 * RATE
    loud = np.flatnonzero(np.abs(whole) > 0.05)
    assert abs(loud[0] - 1.5 * RATE) <= 1
    gap = loud[np.flatnonzero(np.diff(loud) > 1)]
    assert abs(gap[0] - 2.5 * RATE) <= 2
    assert abs(loud[-1] - 5 * RATE) <= 2


def test_each_microphone_frame_comes_when_its_last_sample_was_heard(write: Callable[..., Path]) -> None:
    session = load_session(write(HEAD + MIC))

    async def main() -> list[tuple[int, float]]:
        ticking = clock.Clock()
        return [(frame.start, ticking.now()) async for frame in microphone(session, ticking)]

    got = clock.run(main(), virtual=True)
    assert [start for start, _ in got] == list(range(0, 4 * RATE, CHUNK))
    assert all(now == pytest.approx((start + CHUNK) / RATE) for start, now in got)


def pictures(*names: str) -> Callable[[Path], Image]:
    def load(path: Path) -> Image:
        if path.name not in names:
            raise ValueError(f"{path}: damaged")
        return np.zeros((4, 4, 3), np.uint8)

    return load


def looked(folder: Path, load: Callable[[Path], Image], video: Any) -> list[tuple[str, float, float]]:
    session = load_session(folder)

    async def main() -> list[tuple[str, float, float]]:
        ticking = clock.Clock()
        out: list[tuple[str, float, float]] = []
        async for frame in camera(session, ticking, load, video):
            assert isinstance(frame, SceneFrame)
            out.append((frame.source, frame.at_s, ticking.now()))
            await asyncio.sleep(0)
        return out

    return clock.run(main(), virtual=True)


def test_one_damaged_picture_is_told_of_and_the_others_come(
    write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    folder = write(
        HEAD + "".join(f'[[frame]]\nfile = "{n}"\nat_s = {t}\n' for n, t in (("g.jpg", 3), ("f.jpg", 1)))
    )
    (folder / "g.jpg").write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        got = looked(folder, pictures("g.jpg"), None)
    assert got == [("g.jpg", 3.0, 3.0)]
    assert [r.getMessage() for r in caplog.records] == [f"skipped a scene frame: {folder / 'f.jpg'}: damaged"]


def test_films_and_pictures_come_in_the_order_of_time(
    write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    """Two films that overlap, the later one named first, and one of them breaks in the middle."""

    def video(path: Path, every_s: float) -> Iterator[tuple[float, Image]]:
        for i in range(3):
            if path.name == "b.wav" and i == 2:
                raise ValueError("damaged film")
            yield i * every_s, np.zeros((4, 4, 3), np.uint8)

    folder = write(
        HEAD
        + '[[video]]\nfile = "b.wav"\nat_s = 4\nevery_s = 3\n'
        + '[[video]]\nfile = "a.wav"\nat_s = 0\nevery_s = 5\n'
        + '[[frame]]\nfile = "f.jpg"\nat_s = 6\n'
    )
    got = looked(folder, pictures("f.jpg"), video)
    assert [(name, at) for name, at, _ in got] == [
        ("a.wav", 0), ("b.wav", 4), ("a.wav", 5), ("f.jpg", 6), ("b.wav", 7), ("a.wav", 10),
    ]  # fmt: skip
    assert all(at == pytest.approx(now) for _, at, now in got)
    assert "skipped the rest of a video: damaged film" in caplog.text


SEED = HEAD + MIC + '[memory]\nseed = "seed.jsonl"\n'


def test_earlier_memories_are_read_with_their_times(write: Callable[..., Path]) -> None:
    folder = write(SEED)
    (folder / "seed.jsonl").write_text('{"time": "2026-03-01T09:00:00+02:00", "text": "I like tea."}\n\n')
    assert seed_memory(load_session(folder)) == [(datetime(2026, 3, 1, 9), "I like tea.")]


@pytest.mark.parametrize(
    "line",
    ["not json", '{"text": "x"}', '{"time": "soon", "text": "x"}', '["a"]', "3", '{"time": 5, "text": "x"}'],
)
def test_a_bad_line_among_earlier_memories_is_named(
    line: str, write: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write(SEED)
    (folder / "seed.jsonl").write_text('{"time": "2026-03-01T09:00:00", "text": "ok"}\n' + line + "\n")
    assert f"{folder / 'seed.jsonl'}:2: " in said_once(folder, tmp_path)


def test_earlier_memories_that_are_no_text(write: Callable[..., Path], tmp_path: Path) -> None:
    folder = write(SEED)
    (folder / "seed.jsonl").write_bytes(b"\xff\xfe\x00")
    assert "seed.jsonl: not UTF-8 text" in said_once(folder, tmp_path)


@pytest.mark.parametrize(
    ("rate", "channels"), [(8000, 1), (44_100, 2), (48_000, 2), (16_000, 6), (192_000, 1)]
)
def test_sound_of_any_rate_becomes_mono_at_16_khz(rate: int, channels: int, tmp_path: Path) -> None:
    samples = read(wav(tmp_path / "x.wav", 1.0, rate, channels))
    assert samples.dtype == np.float32
    assert abs(len(samples) - RATE) <= 1
    assert samples[2000:-2000] == pytest.approx(0.1, abs=2e-3)


def test_samples_that_are_no_numbers_become_silence(tmp_path: Path) -> None:
    spoilt = np.array([0.1, np.nan, np.inf, -np.inf, 0.1] * 3200, np.float32)
    soundfile.write(str(tmp_path / "x.wav"), spoilt, RATE, "FLOAT")
    samples = read(tmp_path / "x.wav")
    assert np.isfinite(samples).all()
    assert np.abs(samples).max() <= 0.2


def test_five_minutes_of_sound_are_read_in_small_blocks(tmp_path: Path) -> None:
    path = wav(tmp_path / "long.wav", 300, rate=8000)
    sizes = [len(b) for b in blocks(path)]
    assert sum(sizes) == pytest.approx(300 * RATE, abs=2)
    assert max(sizes) <= 11 * RATE


@pytest.mark.parametrize("kind", ["gone", "folder", "text", "empty file", "cut header", "long name"])
def test_what_is_no_sound_is_told(kind: str, tmp_path: Path) -> None:
    path = tmp_path / ("n" * 300 if kind == "long name" else "x.wav")
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("hello")
    elif kind == "empty file":
        path.write_bytes(b"")
    elif kind == "cut header":
        path.write_bytes(wav(tmp_path / "y.wav", 1).read_bytes()[:30])
    with pytest.raises(BadSound, match=path.name):
        list(blocks(path))


def test_a_sound_cut_short_gives_what_is_left(tmp_path: Path) -> None:
    whole = wav(tmp_path / "y.wav", 2).read_bytes()
    (tmp_path / "x.wav").write_bytes(whole[: len(whole) // 2])
    assert 0.9 * RATE <= len(read(tmp_path / "x.wav")) <= 1.1 * RATE
