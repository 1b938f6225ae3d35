"""The small parts of looking: where the gaze rested, what moves, lights, and pictures held for a model."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from os1_edge.app.scenery import Scenery
from os1_edge.app.views import NOTHING_SEEN
from os1_edge.events import Gaze
from os1_edge.see.album import Album
from os1_edge.see.frames import look_of, turned
from os1_edge.see.gaze.attention import RESTED_S, Attention
from os1_edge.see.gaze.track import EyeSample
from os1_edge.see.indicator import Ask, Indicator, NoCapture, State
from os1_edge.see.light import Led, ScreenLight
from os1_edge.see.motion import CLOSE_S, MotionWatch


def room(seed: int) -> np.ndarray:
    blocks = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), np.uint8)
    return np.repeat(np.repeat(blocks, 40, axis=0), 40, axis=1)


def sample(at_s: float, x: float | None, rests: bool = True) -> EyeSample:
    gaze = None if x is None else Gaze(at_s, x, 100.0, 0.9, 2.0)
    return EyeSample(at_s, None, x is None, gaze, rests and x is not None, (), None)


def looks(*spans: tuple[float, float, float]) -> tuple[Attention, list[float]]:
    """Attention after looks at x from one second to another, 30 frames a second, and when it told of one."""
    attention, told = Attention(), []
    for from_s, to_s, x in spans:
        for i in range(round((to_s - from_s) * 30)):
            at_s = from_s + i / 30
            if attention.add(sample(at_s, x, rests=i > 0)):
                told.append(at_s)
    return attention, told


def test_the_longest_look_counts_and_of_two_as_long_the_later() -> None:
    attention, _ = looks((0.0, 1.0, 50.0), (1.0, 1.4, 300.0), (1.4, 1.8, 200.0))
    assert attention.rested(0.0, 2.0).x == pytest.approx(50.0)  # type: ignore[union-attr]
    assert attention.rested(1.0, 2.0).x == pytest.approx(200.0)  # type: ignore[union-attr]
    assert attention.rested(1.0, 1.39).x == pytest.approx(300.0)  # type: ignore[union-attr]
    assert attention.rested(5.0, 6.0) is None


def test_a_look_is_told_of_once_and_a_glance_never() -> None:
    _, told = looks((0.0, 2.0, 50.0), (2.0, 2.2, 300.0), (2.2, 3.2, 50.0))
    assert len(told) == 2
    assert RESTED_S <= told[0] <= RESTED_S + 0.1


def test_a_blink_ends_a_look() -> None:
    attention = Attention()
    told = [attention.add(sample(i / 30, None if i % 6 == 0 else 50.0)) for i in range(60)]
    assert not any(told)


def test_an_eye_that_never_rests_gives_its_newest_direction() -> None:
    attention = Attention()
    for i in range(10):
        attention.add(sample(i / 30, 10.0 * i, rests=False))
    assert attention.rested(0.0, 1.0).x == 90.0  # type: ignore[union-attr]


def test_a_picture_holds_still_or_moves_only_where_two_close_ones_tell() -> None:
    one, other = look_of(room(1)), look_of(room(2))
    watch = MotionWatch()
    assert watch.step(one, 0.0) == ""
    assert watch.step(one, 0.5) == "still"
    assert watch.step(other, 1.0) == "moving"
    assert watch.step(one, 1.0 + CLOSE_S + 0.1) == "", "too long ago"
    assert watch.step(one, 1.0) == "", "a clock that went back"


def test_an_led_is_lit_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "brightness").write_text("0")
    (tmp_path / "max_brightness").write_text("255\n")
    indicator = Indicator(Led(tmp_path))
    assert indicator.ask(Ask.START).done
    assert (tmp_path / "brightness").read_text() == "255"
    indicator.permit()
    (tmp_path / "brightness").write_text("0")  # somebody else put it out
    with pytest.raises(NoCapture):
        indicator.permit()
    assert indicator.state is State.FAILED


def test_without_its_led_there_is_no_capture(tmp_path: Path) -> None:
    indicator = Indicator(Led(tmp_path / "none"))
    assert not indicator.ask(Ask.START).done
    with pytest.raises(NoCapture):
        indicator.permit()


def test_a_mark_that_cannot_be_shown_is_not_on() -> None:
    def broken(_: bool) -> None:
        raise OSError("the page is gone")

    light = ScreenLight(broken)
    with pytest.raises(OSError, match="gone"):
        light.set(True)
    assert not light.is_on()


def test_an_album_holds_few_pictures_and_older_ones_are_shown_smaller() -> None:
    album = Album(most=2)
    for i in range(4):
        album.put(f"{i}", cv2.imencode(".jpg", room(i))[1].tobytes())
    assert len(album) == 2
    assert album.picture("1") is None
    whole, half = album.picture("3"), album.picture("3", 0.5)
    assert whole is not None
    assert half is not None
    sides = [cv2.imdecode(np.frombuffer(one, np.uint8), cv2.IMREAD_COLOR).shape[1] for one in (whole, half)]
    assert sides == [320, 160]
    album.drop(["3", "never there"])
    assert album.picture("3") is None


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_gaze_stays_on_its_thing_when_the_picture_is_turned_upright(degrees: int) -> None:
    from os1_edge.app.views import Aim
    from os1_edge.config import See
    from os1_edge.see.gaze.scene_camera import SceneCamera

    camera = np.zeros((240, 320, 3), np.uint8)
    camera[60:80, 220:240] = 255
    upright = turned(camera, degrees)  # type: ignore[arg-type]
    aim = Aim(None, SceneCamera(640, 480), See(turned_deg=degrees))  # type: ignore[arg-type]
    gaze = aim.on(Gaze(0.0, 460.0, 140.0, 0.9, 1.0), upright.shape[1], upright.shape[0])
    assert gaze is not None
    assert upright[round(gaze.y), round(gaze.x)].tolist() == [255, 255, 255]


def test_pictures_go_when_their_frames_were_summarised_or_all_is_forgotten() -> None:
    scenery = Scenery(album=Album())
    for at_s in range(4):
        scenery.saw(float(at_s), replace(NOTHING_SEEN, sentence=f"Room {at_s}.", usable=True), b"jpeg")
    assert scenery._album is not None
    assert len(scenery._album) == 1
    assert scenery.before(4.0)
    scenery.forget()
    assert len(scenery._album) == 0
    assert scenery.pictures() == ()
    assert scenery.before(4.0) == ()
