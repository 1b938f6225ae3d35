"""What a replay leaves of what was seen: no raw picture, no face, and what the wearer looked at."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from plainfile import plain_bytes

from os1_edge.config import Config
from os1_edge.faculties import model_names
from os1_edge.replay.run import replay
from os1_edge.see.faces import SUSPECTED, FaceFinder
from os1_edge.see.image import load_image

pytestmark = pytest.mark.models

KEY = bytes(range(32))
SESSION = """schema = 1
start = 2026-03-02T08:00:00
thumbnails = true
[[frame]]
file = "face.png"
at_s = 0.0
[[frame]]
file = "cup.png"
at_s = 5.0
"""


@pytest.mark.shared_data
def test_a_replay_leaves_no_raw_picture_and_no_face(
    tmp_path: Path, shared_data: Path, pulled: Callable[..., Path]
) -> None:
    for name in model_names(Config()):
        pulled(name)
    photos, session, out = shared_data / "scene" / "scikit-image", tmp_path / "session", tmp_path / "out"
    session.mkdir()
    shutil.copy(photos / "astronaut.png", session / "face.png")
    shutil.copy(photos / "coffee.png", session / "cup.png")
    (session / "session.toml").write_text(SESSION)
    made = replay(session, out, Config(), KEY, realtime=False, tell=lambda _: None)
    assert [frame.usable for frame in made.frames] == [True, True]
    assert "person" in made.frames[0].scene

    finder = FaceFinder(pulled("centerface"))
    assert finder.find(load_image(session / "face.png"))
    page = (out / "report.html").read_text("utf-8")
    pictures = [base64.b64decode(found) for found in re.findall(r"data:image/jpeg;base64,([^\"')]+)", page)]
    assert len(pictures) == 2
    for jpeg in pictures:
        small = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
        assert max(small.shape[:2]) <= 160
        grown = np.asarray(cv2.resize(small, None, fx=4, fy=4), np.uint8)  # type: ignore[arg-type]
        assert not finder.find(grown, SUSPECTED)

    raw = [(session / name).read_bytes() for name in ("face.png", "cup.png")]
    left = [path for path in out.rglob("*") if path.is_file()]
    assert {path.name for path in left} >= {"report.json", "report.html", "memory.db"}
    for path in left:
        data = plain_bytes(path, KEY) if path.name == "memory.db" else path.read_bytes()
        assert all(one[len(one) // 2 :][:64] not in data for one in raw), path.name
        if path.name != "report.html":
            assert not pictures_in(data), f"{path.name} holds a picture"


@pytest.mark.parametrize("kind", [".jpg", ".png"])
def test_a_picture_in_other_bytes_is_found_and_chance_bytes_are_none(kind: str) -> None:
    noise = np.random.default_rng(1).bytes(4096)
    picture = cv2.imencode(kind, np.full((16, 16, 3), 90, np.uint8))[1].tobytes()
    assert pictures_in(noise + picture + noise) == [len(noise)]
    assert pictures_in(noise + picture[:4] + noise) == []


def pictures_in(data: bytes) -> list[int]:
    """Where in `data` a JPEG or PNG begins that can be opened. A mark alone is none: three bytes of a JPEG's
    turn up by chance in one of a hundred memories."""
    begins = [found.start() for found in re.finditer(rb"\xff\xd8\xff|\x89PNG", data)]
    opened = ((at, cv2.imdecode(np.frombuffer(data, np.uint8, offset=at), cv2.IMREAD_COLOR)) for at in begins)
    return [at for at, picture in opened if picture is not None]
