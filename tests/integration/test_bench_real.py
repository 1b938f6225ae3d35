"""`os1 bench` for real on a few stages: what it writes, what Ctrl-C leaves, what is suggested from it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_bench_compare import result

import os1_models
from os1_edge.bench.cli import bench
from os1_edge.bench.result import load_result, series
from os1_edge.bench.room import loudness
from os1_edge.bench.stage import Setting, Unavailable, empty, take
from os1_edge.bench.stages import offload
from os1_edge.bench.stages.clips import noisy_utterances, pictures, utterances
from os1_edge.bench.stages.requantise import requantised
from os1_edge.events import RATE
from os1_edge.hear.asr import Whisper
from os1_edge.replay.measure import word_errors
from os1_edge.settings_cli import config

OS1 = [sys.executable, "-m", "os1_edge", "bench"]


def test_a_run_is_written_shown_compared_with_itself_and_suggested_from(
    tmp_path: Path, pulled: Callable[[str], Path]
) -> None:
    pulled("silero-vad")
    out = tmp_path / "out"
    command = [*OS1, "--only", "vad", "--only", "jpeg", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = load_result(out / "bench.json")
    assert {s.group for s in made.series} >= {"hear", "see"}
    assert all(s.n >= 6 and len(s.blocks) == 2 for s in made.series if s.group != "process")
    assert "jpeg, at most 60 kB" in done.stdout
    assert made.command == "os1 bench --only vad --only jpeg"
    assert (out / "bench.html").stat().st_size > 2000
    path = str(out / "bench.json")
    told = CliRunner().invoke(bench, ["compare", path, path, "--fail-over", "1%"])
    assert told.exit_code == 0
    suggested = tmp_path / "device.toml"
    assert CliRunner().invoke(bench, ["suggest", path, "--out", str(suggested)]).exit_code == 0
    assert CliRunner().invoke(config, ["check", "--file", str(suggested)]).exit_code == 0
    assert CliRunner().invoke(bench, ["suggest", path, "--out", str(suggested)]).exit_code == 1


def test_ctrl_c_ends_a_run_with_what_was_measured(tmp_path: Path, pulled: Callable[[str], Path]) -> None:
    pulled("silero-vad")
    out = tmp_path / "out"
    command = [*OS1, "--only", "vad", "--only", "frame hash", "--rounds", "20", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:  # a line a stage: by the third round it has measured
            if line.startswith("3 of "):
                os.kill(process.pid, signal.SIGINT)
                break
        log = process.stderr.read()
        process.wait(90)
    assert process.returncode == 0, log
    assert "what was measured is kept" in log
    made = load_result(out / "bench.json")
    assert made.interrupted
    assert made.series
    assert len(made.series[0].blocks) < 20


def test_a_part_that_does_not_exist_is_told_with_those_that_do(tmp_path: Path) -> None:
    told = CliRunner().invoke(bench, ["--only", "hats", "--out", str(tmp_path)], standalone_mode=False)
    assert isinstance(told.exception, Unavailable)
    assert "rooms are hear" in str(told.exception)


def test_the_wire_to_a_real_server_is_measured() -> None:
    stage = next(s for s in offload.stages() if s.name == "grpc")
    block = empty(stage)
    take(stage, Setting(), block)
    assert block.n >= 3
    assert all(value > 0 for values in block.values for value in values)


def test_the_bundled_utterances_are_whole_and_the_shortest_first() -> None:
    clips = utterances()
    assert len(clips) == 13
    lengths = [len(audio) / RATE for _, audio in clips]
    assert lengths == sorted(lengths)
    assert 0.8 < lengths[0] < lengths[-1] < 6
    noisy = noisy_utterances()
    assert [text for text, _ in noisy] == [text for text, _ in clips]
    for (_, audio), (_, hard) in zip(clips, noisy, strict=True):
        assert loudness(hard - audio) == pytest.approx(loudness(audio), rel=0.1)
    assert all(picture.shape == (480, 640, 3) for picture in pictures())


@pytest.mark.parametrize("kind", ["q5_1", "f16"])
def test_a_model_in_another_quantisation_still_hears(
    tmp_path: Path, pulled: Callable[[str], Path], kind: str
) -> None:
    source = pulled("whisper-tiny.en")
    made = requantised(source, tmp_path / "other.bin", kind)
    assert (made.stat().st_size < source.stat().st_size) == (kind == "q5_1")
    said, audio = utterances()[-1]
    errors, words = word_errors(said, Whisper(made).text(audio))
    assert errors <= words // 5


def test_what_is_no_whisper_model_is_not_rounded(tmp_path: Path) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(bytes(100))
    with pytest.raises(Unavailable, match=r"other\.bin"):
        requantised(path, tmp_path / "out.bin", "q5_1")


def test_a_model_that_is_missing_leaves_its_stage_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS1_MODELS_DIR", str(tmp_path / "none"))
    with pytest.raises(os1_models.ModelMissing):
        os1_models.path("silero-vad")
    out = tmp_path / "out"
    command = [*OS1, "--only", "end of turn", "--only", "frame hash", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = load_result(out / "bench.json")
    assert [s.name for s in made.series] == ["frame hash"]
    assert "os1 models pull" in made.skipped[0].why


def test_a_small_fleet_is_served_by_a_real_server() -> None:
    told = CliRunner().invoke(bench, ["fleet", "--wearers", "40", "--seconds", "3", "--json"])
    assert told.exit_code == 0, told.output
    found = json.loads(next(line for line in told.stdout.splitlines() if line.startswith("{")))
    assert found["loads"][0]["wearers"] <= 5
    codes = [row["codes"] for row in found["loads"]]
    assert sum(some.get("OK", 0) + some.get("given up", 0) for some in codes) >= 1
    assert all(row["server_cores"] is not None for row in found["loads"])


def test_the_page_of_machines_is_filled_only_from_a_model_that_was_measured(tmp_path: Path) -> None:
    page, made = tmp_path / "scale.md", tmp_path / "bench.json"
    page.write_text("")
    result(series("vad", "hear", "ms", [[1.0]])).write(made)
    command = ["fleet", "--wearers", "1", "--seconds", "1", "--scale", str(page), "--bench", str(made)]
    told = CliRunner().invoke(bench, command, standalone_mode=False)
    assert "os1 bench --only converse" in str(told.exception)
    assert CliRunner().invoke(bench, command[:-2]).exit_code == 2
