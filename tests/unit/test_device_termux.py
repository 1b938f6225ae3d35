"""A phone's own commands, stood in for by scripts that answer as Termux documents."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import aclosing
from pathlib import Path

import cv2
import numpy as np
import pytest

from os1_edge.clock import Clock
from os1_edge.device import termux
from os1_edge.device.microphone import Retry
from os1_edge.device.power import Power
from os1_edge.device.termux import TermuxCamera, battery, is_termux
from os1_edge.events import SceneFrame
from os1_edge.see.image import load_image


@pytest.fixture
def phone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands, first on the path."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def command(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def answers(folder: Path, **changes: object) -> None:
    told = {
        "health": "GOOD",
        "percentage": 57,
        "plugged": "UNPLUGGED",
        "status": "DISCHARGING",
        "temperature": 31.5,
    }
    command(folder, termux.BATTERY, f"echo '{json.dumps({**told, **changes})}'")


def test_the_phones_battery_is_read(phone: Path) -> None:
    assert not is_termux()
    answers(phone)
    assert is_termux()
    assert asyncio.run(battery()) == Power(57.0, False, 31.5)
    answers(phone, plugged="PLUGGED_USB", status="CHARGING")
    assert asyncio.run(battery()).charging


@pytest.mark.parametrize(
    "script", ["exit 1", "echo", "echo '[]'", 'echo \'{"percentage": "x"}\'', "sleep 60"]
)
def test_a_battery_that_does_not_answer_is_not_known(
    phone: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(termux, "BATTERY_S", 0.5)
    command(phone, termux.BATTERY, script)
    assert asyncio.run(battery()) == Power()


def photos(count: int) -> list[SceneFrame]:
    async def go() -> list[SceneFrame]:
        camera = TermuxCamera(1, load_image, Clock(), 0.0, Retry(0.01, 0.02))
        out: list[SceneFrame] = []
        async with aclosing(camera.frames()) as frames, asyncio.timeout(30):
            async for frame in frames:
                out.append(frame)
                if len(out) == count:
                    break
        return out

    return asyncio.run(go())


def test_photos_of_the_phone_are_frames_and_none_of_them_stays(phone: Path, tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a.jpg"), np.full((48, 64, 3), 77, np.uint8))
    command(phone, termux.PHOTO, f'echo "$@" > {tmp_path}/asked; cp {tmp_path}/a.jpg "$3"')
    frames = photos(2)
    assert frames[1].image.shape == (48, 64, 3)
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:2] == ["-c", "1"]
    assert not Path(asked[2]).exists()
    assert not Path(asked[2]).parent.exists()


def test_photos_go_where_the_app_outside_debian_can_write(
    phone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Termux:API sees the folders of Termux only, and tells what it cannot write on stdout, with status 0."""
    cv2.imwrite(str(tmp_path / "a.jpg"), np.full((48, 64, 3), 77, np.uint8))
    command(
        phone,
        termux.PHOTO,
        f'case "$(realpath "$3")" in\n{tmp_path}/usr/*) cp {tmp_path}/a.jpg "$3" ;;\n'
        '*) echo; echo "ERROR: no parent directory of $3"; echo "more of it" ;;\nesac',
    )
    shared = tmp_path / "usr" / "tmp"
    shared.mkdir(parents=True)
    monkeypatch.setattr(termux, "SHARED", shared)
    assert photos(1)[0].image.shape == (48, 64, 3)
    assert list(shared.iterdir()) == []
    assert not caplog.records


def test_why_the_app_gives_no_photo_is_told_in_its_words(
    phone: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cv2.imwrite(str(tmp_path / "a.jpg"), np.full((48, 64, 3), 77, np.uint8))
    command(
        phone,
        termux.PHOTO,
        f'[ -e {tmp_path}/asked ] && exec cp {tmp_path}/a.jpg "$3"\ntouch {tmp_path}/asked\n'
        'echo; echo "ERROR: no parent directory of $3"; echo "more of it"',
    )
    assert len(photos(1)) == 1
    told = caplog.records[0].getMessage()
    assert "(ERROR: no parent directory of" in told
    assert "more of it" not in told


def test_a_camera_that_may_not_be_used_is_told_once_and_tried_again(
    phone: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "os1_edge")
    cv2.imwrite(str(tmp_path / "a.jpg"), np.full((48, 64, 3), 77, np.uint8))
    # Termux:API without the permission ends well and writes nothing; then it fails; then it works.
    command(
        phone,
        termux.PHOTO,
        f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); echo $((n+1)) > {tmp_path}/n\n"
        f'[ $n = 0 ] && exit 0\n[ $n = 1 ] && {{ echo "no such camera" >&2; exit 1; }}\n'
        f'cp {tmp_path}/a.jpg "$3"',
    )
    assert len(photos(1)) == 1
    told = [r.getMessage() for r in caplog.records]
    assert sum("gives no photo" in line for line in told) == 1
    assert "may Termux:API use the camera?" in told[0]
    assert "the phone's camera is back" in told
