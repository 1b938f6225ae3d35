"""os1 scene: a line a picture in order, whatever is wrong with one of them."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result

import os1_models
from os1_edge import cli
from os1_edge.see import cli as scene_cli
from os1_edge.see.faces import Face
from os1_edge.see.objects import DetectedObject
from os1_edge.see.scene import SceneDescriber

FIELDS = ["file", "quality", "objects", "text", "people", "light", "sentence"]


class Fake:
    """Finds a cat, and nobody."""

    def detect(self, image: np.ndarray) -> tuple[DetectedObject, ...]:
        return (DetectedObject("cat", 0.81234567, (1, 2, 30, 40)),)

    def find(self, image: np.ndarray, least: float = 0.5) -> tuple[Face, ...]:
        return ()


@pytest.fixture(autouse=True)
def eyes(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake()
    monkeypatch.setattr(scene_cli, "load_eyes", lambda threads, read: SceneDescriber(fake, fake))
    monkeypatch.setattr("os1_edge.config.default_config_file", lambda: Path("nowhere"))


def os1(*words: str | Path) -> Result:
    return CliRunner().invoke(cli.main, ["scene", *map(str, words)])


@pytest.fixture
def room(tmp_path: Path) -> Path:
    blocks = np.random.default_rng(3).integers(0, 255, (12, 16, 3), np.uint8)
    cv2.imwrite(str(tmp_path / "room.png"), np.repeat(np.repeat(blocks, 40, axis=0), 40, axis=1))
    return tmp_path / "room.png"


def test_a_line_has_just_the_fields_that_programs_read(room: Path) -> None:
    result = os1(room, "--json")
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    told = json.loads(line)
    assert list(told) == FIELDS
    assert told == {
        "file": str(room),
        "quality": {"usable": True, "reason": "named from 1 detected objects"},
        "objects": [{"label": "cat", "score": 0.8123, "box": [1, 2, 30, 40]}],
        "text": [],
        "people": 0,
        "light": "bright",
        "sentence": "A cat.",
    }


def broken(folder: Path, room: Path) -> dict[str, bytes]:
    """Files that are wrong in every way that the issue names."""
    png, jpeg = room.read_bytes(), folder / "whole.jpg"
    cv2.imwrite(str(jpeg), cv2.imread(str(room)))
    head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    return {
        "empty.jpg": b"",
        "cut.jpg": jpeg.read_bytes()[:4000],
        "cut.png": png[:3000],
        "noise.jpg": bytes(range(256)) * 9,
        "damaged.png": png[:60] + bytes(200) + png[260:],
        "animated.gif": b"GIF89a\x10\x00\x10\x00\x80\x00\x00" + bytes(6) + b";",
        "hundred-megapixels.png": head + (10_000).to_bytes(4, "big") * 2 + bytes(64) + b"IEND\xaeB`\x82",
    }


def test_bad_pictures_are_told_of_in_one_line_each_and_the_others_still_done(
    tmp_path: Path, room: Path
) -> None:
    bad = broken(tmp_path, room)
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
    names = [tmp_path / name for name in bad]
    result = os1(room, *names, tmp_path / "missing.jpg", tmp_path, room, "--json")
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert [json.loads(line)["file"] for line in result.stdout.splitlines()] == [str(room)] * 2
    told = [line for line in result.stderr.splitlines() if line.startswith("os1: ")]
    assert len(told) == len(bad) + 2
    for name, line in zip([*bad, "missing.jpg", ""], told, strict=True):
        assert name in line


def test_an_odd_but_whole_picture_is_described(tmp_path: Path, room: Path) -> None:
    picture = cv2.imread(str(room))
    cv2.imwrite(str(tmp_path / "16.png"), picture.astype(np.uint16) * 257)
    cv2.imwrite(str(tmp_path / "grey.png"), picture[:, :, 0])
    cv2.imwrite(str(tmp_path / "clear.png"), np.dstack([picture, np.full(picture.shape[:2], 200, np.uint8)]))
    result = os1(tmp_path / "16.png", tmp_path / "grey.png", tmp_path / "clear.png", "--json")
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["quality"]["usable"] for line in result.stdout.splitlines()] == [True] * 3


def test_a_person_reads_a_sentence_or_why_there_is_none(tmp_path: Path, room: Path) -> None:
    cv2.imwrite(str(tmp_path / "black.png"), np.zeros((480, 640, 3), np.uint8))
    lines = os1(room, tmp_path / "black.png").stdout.splitlines()
    assert lines[0] == f"{room}: A cat."
    assert "not usable: the picture is black" in lines[1]


def test_a_file_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    assert "\x1b" not in os1(tmp_path / "a\x1b[31m.jpg").stderr


def test_without_the_model_for_words_the_rest_is_still_done_and_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def missing() -> None:
        raise os1_models.ModelMissing("ppocr")

    assert scene_cli._if_pulled(missing) is None
    told = capsys.readouterr().err
    assert told.startswith("os1: going on without it: ")
    assert "os1 models pull ppocr" in told
