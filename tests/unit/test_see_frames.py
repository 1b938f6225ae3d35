"""When a frame is taken, which is kept, and how large it may be when it leaves."""

import re
from pathlib import Path

import cv2
import numpy as np
import pytest

import os1_edge
from os1_edge.config import See
from os1_edge.see.camera import FrameTaker, NoFaceFinder
from os1_edge.see.faces import Face, FaceStays
from os1_edge.see.frames import RETAKES, FrameSchedule, Keeper, distance, look_of, same_view, turned
from os1_edge.see.indicator import Ask, Indicator, NoCapture
from os1_edge.see.jpeg import JpegEncoder, frame_budget
from os1_edge.see.quality import Quality

GOOD = Quality(True, "", "bright", 0.05)
SOFT = Quality(True, "", "bright", 0.02)
BLACK = Quality(False, "black", "dark", 0.0)


def room(seed: int = 3) -> np.ndarray:
    """Blocks of light and dark with sharp edges."""
    blocks = np.random.default_rng(seed).integers(0, 255, (12, 16, 3), np.uint8)
    return np.repeat(np.repeat(blocks, 40, axis=0), 40, axis=1)


def test_a_frame_comes_every_ten_seconds_and_every_five_in_dialogue() -> None:
    schedule = FrameSchedule()
    assert schedule.due(0.0).yes
    schedule.taken(0.0)
    assert [schedule.due(t).yes for t in (4.9, 5.0, 9.9, 10.0)] == [False, False, False, True]
    assert [schedule.due(t, in_dialogue=True).yes for t in (4.9, 5.0)] == [False, True]
    assert "next in 5.1 s" in schedule.due(4.9).reason


def test_a_question_a_fixation_or_a_new_scene_takes_one_at_once_but_not_a_hail_of_them() -> None:
    schedule = FrameSchedule()
    schedule.taken(0.0)
    assert schedule.due(0.6, prompted="question").yes
    assert not schedule.due(0.6, prompted="fixation").yes
    assert schedule.due(1.1, prompted="fixation").reason == "at once: fixation"
    assert not schedule.due(1.1, prompted="scene change").yes
    assert schedule.due(2.1, prompted="scene change").yes


def test_a_bad_frame_is_taken_again_at_once_and_not_for_ever() -> None:
    schedule, keeper = FrameSchedule(), Keeper()
    look, now, shots = look_of(room()), 0.0, 0
    for _ in range(60):  # six seconds in the dark
        if schedule.due(now).yes:
            kept = keeper.judge(BLACK, look)
            schedule.taken(now, again=kept.retake)
            shots += 1
        now += 0.1
    assert shots == 1 + RETAKES


def test_a_frame_softer_than_the_others_is_used_until_a_better_one_is_there() -> None:
    keeper = Keeper()
    assert keeper.judge(GOOD, look_of(room(1))).keep
    judged = [keeper.judge(SOFT, look_of(room(2))) for _ in range(RETAKES + 1)]
    assert [one.retake for one in judged] == [True] * RETAKES + [False]
    assert [one.keep for one in judged] == [True] + [False] * RETAKES
    assert "softer" in judged[0].reason


def test_the_sharper_one_takes_its_place() -> None:
    keeper = Keeper()
    keeper.judge(GOOD, look_of(room(1)))
    assert keeper.judge(SOFT, look_of(room(2))).retake
    assert keeper.judge(GOOD, look_of(room(2))).reason == "sharper"
    again = keeper.judge(SOFT, look_of(room(2)))
    assert not again.keep
    assert not again.retake, "the sharp one of the same view is there"


def test_what_looks_like_the_last_one_kept_is_dropped() -> None:
    keeper = Keeper()
    noisy = np.clip(room().astype(int) + np.random.default_rng(0).normal(0, 8, (480, 640, 3)), 0, 255)
    brighter = np.clip(room().astype(int) + 15, 0, 255)
    assert keeper.judge(GOOD, look_of(room())).reason == "new"
    for again in (room(), noisy.astype(np.uint8), brighter.astype(np.uint8)):
        assert keeper.judge(GOOD, look_of(again)).reason == "as the last one kept"
    other = keeper.judge(GOOD, look_of(room(9)))
    assert other.keep
    assert other.changed


def test_a_slow_drift_is_not_dropped_for_ever() -> None:
    """Each frame is compared with the last one kept, not with the last one seen."""
    wide = cv2.resize(room(), (1280, 480))
    keeper = Keeper()
    kept = [keeper.judge(GOOD, look_of(wide[:, x : x + 640])).keep for x in range(0, 640, 16)]
    assert 3 <= sum(kept) < len(kept)


def test_a_turned_camera_gives_an_upright_picture() -> None:
    upright = room()
    for deg in (0, 90, 180, 270):
        # A camera turned clockwise sees the world turned counter-clockwise, which rot90 does.
        seen = turned(np.ascontiguousarray(np.rot90(upright, deg // 90)), deg)  # type: ignore[arg-type]
        assert np.array_equal(seen, upright)
    assert distance(look_of(upright), look_of(turned(upright, 180))) > 12


def test_looks_hold_no_picture() -> None:
    look = look_of(room())
    assert look.thumbnail.shape == (16, 16)
    assert look.bits < 1 << 63
    assert same_view(look, look)


@pytest.mark.parametrize("budget", [3_000, 8_000, 15_000, 30_000, 60_000])
def test_a_frame_never_exceeds_its_budget_and_uses_it(budget: int) -> None:
    encoder, picture = JpegEncoder(), np.random.default_rng(1).integers(0, 255, (480, 640, 3), np.uint8)
    for image in (picture, room(), picture):
        made = encoder.encode(image, budget)
        assert made.fits
        assert len(made.data) <= budget
        assert cv2.imdecode(np.frombuffer(made.data, np.uint8), 1).shape == (made.height, made.width, 3)


def test_a_plain_picture_is_not_spoilt_on_a_wide_link() -> None:
    made = JpegEncoder().encode(room(), 60_000)
    assert (made.quality, made.width, made.height) == (90, 640, 480)


def test_an_impossible_budget_says_so() -> None:
    made = JpegEncoder().encode(room(), 10)
    assert not made.fits
    with pytest.raises(ValueError, match="budget"):
        JpegEncoder().encode(room(), 0)


def test_the_budget_follows_the_link_within_bounds() -> None:
    assert [frame_budget(b, 1.0) for b in (0, 20_000, 1e9)] == [6_000, 20_000, 60_000]


class Lamp:
    on = False

    def set(self, on: bool) -> None:
        self.on = on

    def is_on(self) -> bool:
        return self.on


class OneFace:
    """Finds a face where the picture is bright at one spot, and counts what it was shown."""

    def __init__(self, stubborn: bool = False) -> None:
        self.stubborn = stubborn

    def find(self, image: np.ndarray, least: float = 0.5) -> tuple[Face, ...]:
        there = self.stubborn or image[100:140, 100:140].std() > 60
        return (Face(0.9, (100, 100, 40, 40)),) if there else ()


def with_face() -> np.ndarray:
    picture = room()
    picture[100:140, 100:120], picture[100:140, 120:140] = 0, 255
    return picture


def taker(faces: OneFace | None = None, settings: See | None = None, lit: bool = True) -> FrameTaker:
    indicator = Indicator(Lamp())
    if lit:
        indicator.ask(Ask.START)
    return FrameTaker(settings or See(), indicator, faces)


def test_no_frame_is_looked_at_while_capture_is_off() -> None:
    with pytest.raises(NoCapture):
        taker(lit=False).take(room(), 0.0)


def test_a_taken_frame_is_upright_and_the_second_alike_is_not_kept() -> None:
    eye = taker(settings=See(turned_deg=180))
    first = eye.take(eye.glimpse(room(), 0.0).image, 0.0)
    again = eye.take(eye.glimpse(room(), 10.0).image, 10.0)
    assert first.image is not None
    assert np.array_equal(first.image, room()[::-1, ::-1])
    assert again.image is None
    assert not eye.due(15.0).yes
    assert eye.due(20.0).yes


def test_what_leaves_has_no_face_in_it(caplog: pytest.LogCaptureFixture) -> None:
    sent = taker(OneFace()).release(with_face(), 1e6)
    seen = cv2.imdecode(np.frombuffer(sent.data, np.uint8), 1)
    assert seen[100:140, 100:140].std() < 60
    assert caplog.text == ""
    open_ = taker(OneFace(), See(blur_faces=False)).release(with_face(), 1e6)
    assert cv2.imdecode(np.frombuffer(open_.data, np.uint8), 1)[100:140, 100:140].std() > 60
    assert "blur_faces is off" in caplog.text


def test_half_a_face_in_a_crop_is_found_as_the_whole_one() -> None:
    class Whole(OneFace):
        def find(self, image: np.ndarray, least: float = 0.5) -> tuple[Face, ...]:
            return super().find(image, least) if image.shape[1] > 200 else ()

    sent = taker(Whole()).release(with_face(), 1e6, box=(0, 80, 120, 80))
    seen = cv2.imdecode(np.frombuffer(sent.data, np.uint8), 0)
    assert seen.shape == (80, 120)
    assert seen[20:60, 100:120].mean() > 60, "half a face would be black there"


def test_a_face_that_stays_or_cannot_be_looked_for_keeps_the_frame_here() -> None:
    with pytest.raises(FaceStays):
        taker(OneFace(stubborn=True)).release(with_face(), 1e6)
    with pytest.raises(NoFaceFinder, match="centerface"):
        taker(None).release(with_face(), 1e6)


def test_pictures_are_encoded_for_release_alone_and_written_nowhere() -> None:
    edge = Path(os1_edge.__file__).parent
    made: dict[str, set[str]] = {}
    for file in edge.rglob("*.py"):
        if "bench" in file.relative_to(edge).parts:
            continue  # renders and measures; never runs with a camera
        for word in re.findall(r"imwrite|VideoWriter|imencode|JpegEncoder\(|blur_faces\(", file.read_text()):
            made.setdefault(word, set()).add(file.relative_to(edge).as_posix())
    # The album and shrink make what was released smaller; the marker is drawn, not taken.
    again = {"see/album.py", "see/shrink.py", "see/gaze/cli.py"}
    assert made == {
        "imencode": {"see/jpeg.py", *again},
        "JpegEncoder(": {"see/camera.py"},
        "blur_faces(": {"see/camera.py", "see/faces.py"},
    }
