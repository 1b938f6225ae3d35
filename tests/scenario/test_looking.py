"""The scene camera in a wearer's day: which pictures are taken, what is looked at, what is kept of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from companion import Companion, Engine, Tracker, picture

from os1_edge import clock
from os1_edge.app.gazing import Gazing
from os1_edge.config import Config
from os1_edge.events import EyeFrame, Image
from os1_edge.see.camera import FrameTaker
from os1_edge.see.faces import Face
from os1_edge.see.objects import DetectedObject
from os1_edge.see.scene import SceneDescriber
from os1_edge.see.text import TextLine

CUP, BOOK = (20, 60, 80, 100), (200, 60, 90, 120)
ON_CUP, ON_BOOK = (60, 110), (245, 120)


class Detector:
    """A cup on the left, a book on the right, in every picture; counts the pictures."""

    def __init__(self) -> None:
        self.seen = 0

    def detect(self, image: Image) -> tuple[DetectedObject, ...]:
        self.seen += 1
        return DetectedObject("mug", 0.9, CUP), DetectedObject("book", 0.8, BOOK)


class Reader:
    """Reads the book's title in a crop that is as high as the book."""

    def __init__(self) -> None:
        self.read_: list[tuple[int, ...]] = []

    def read(self, image: Image) -> tuple[TextLine, ...]:
        self.read_.append(image.shape)
        return (TextLine("Emma", 0.9, ()),) if image.shape[0] > 140 else ()


def looking(folder: Path, **changes: Any) -> tuple[Companion, Detector, Reader]:
    detector, reader = Detector(), Reader()
    eyes = SceneDescriber(detector, None, reader)
    config = Config.model_validate({"see": changes.pop("see", {})})
    told = Companion(folder, eyes=eyes, config=config, capture={"gaze": Tracker(), **changes})
    return told, detector, reader


# What is looked at.


def test_what_is_this_is_answered_by_what_the_gaze_rests_on(tmp_path: Path) -> None:
    told, _, _ = looking(tmp_path)
    told.show(0.0, "A table.").look(0.2, 3.0, *ON_CUP).say(1.0, "What is this?")
    told.show(20.0, "A table.").look(20.2, 23.0, *ON_BOOK).say(21.0, "And what is this?").live()
    assert [t.looked_at for t in told.turns] == ["a mug", "a book that reads “Emma”"]
    asked = [prompt[-1].text for prompt in told.engine.prompts]
    assert "You are looking at a mug." in asked[0]
    assert "You also see a book." in asked[0]
    assert "You are looking at a book that reads “Emma”." in asked[1]


def test_the_gaze_while_asking_counts_not_the_one_when_the_picture_was_taken(tmp_path: Path) -> None:
    told, _, _ = looking(tmp_path)
    told.show(0.0, "A table.").look(0.2, 3.0, *ON_CUP).look(6.0, 9.0, *ON_BOOK)
    told.say(7.0, "What is this?").say(15.0, "And what is this?").live()
    assert [turn.looked_at for turn in told.turns] == ["a book", ""], "the last without a gaze"


def test_without_a_gaze_the_whole_picture_is_in_view(tmp_path: Path) -> None:
    told, _, reader = looking(tmp_path)
    told.show(0.0, "A table.").say(1.0, "What is this?").live()
    assert told.turns[0].looked_at == ""
    assert "You see a mug and a book." in told.engine.prompts[0][-1].text
    assert reader.read_ == []


def test_a_glance_while_speaking_does_not_change_what_is_asked_about(tmp_path: Path) -> None:
    told, _, _ = looking(tmp_path)
    told.show(0.0, "A table.").look(0.2, 1.6, *ON_CUP).look(1.6, 1.9, *ON_BOOK).look(1.9, 3.0, *ON_CUP)
    told.say(1.0, "What is this?").live()
    assert told.turns[0].looked_at == "a mug"


def test_words_are_read_where_the_gaze_rests_and_nowhere_else(tmp_path: Path) -> None:
    told, _, reader = looking(tmp_path)
    told.show(0.0, "A table.").show(5.0, "A hall.").look(5.5, 8.0, *ON_BOOK).live()
    assert len(reader.read_) == 1
    height, width = reader.read_[0][:2]
    assert height * width < 0.6 * 320 * 240
    assert ("A hall.", "Emma") not in told.described
    assert any("Emma" in sentence for _, sentence in told.described)
    told, _, reader = looking(tmp_path / "off", see={"read_text": False})
    told.show(0.0, "A table.").look(0.5, 3.0, *ON_BOOK).live()
    assert reader.read_ == []


# Which pictures are taken.


def test_a_scene_that_does_not_change_is_described_once(tmp_path: Path) -> None:
    told, detector, _ = looking(tmp_path)
    for i in range(60):
        told.show(float(i), "A table.")
    told.say(30.0, "What is this?").live()
    assert detector.seen == 1
    assert told.turns[0].scene == "A mug and a book."


def test_another_scene_is_taken_at_once(tmp_path: Path) -> None:
    told, detector, _ = looking(tmp_path)
    told.show(0.0, "A table.").show(3.0, "A hall.").live()
    assert [at for at, _ in told.described] == [0.0, 3.0]
    assert detector.seen == 2


def test_a_picture_is_taken_every_ten_seconds_and_every_five_in_dialogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[float] = []
    take = FrameTaker.take
    monkeypatch.setattr(FrameTaker, "take", lambda *a: (taken.append(a[2]), take(*a))[1])
    told, _, _ = looking(tmp_path)
    for i in range(60):
        told.show(float(i), "A table.")
    told.say(30.2, "Good evening.", 0.5).live()
    gaps = np.diff(taken)  # the newest picture of a camera that gives one a second may be a second old
    talked = [gap for at, gap in zip(taken, gaps, strict=False) if 30 <= at < 46]
    quiet = [gap for at, gap in zip(taken, gaps, strict=False) if at < 20 or at > 50]
    assert all(9 <= gap <= 10 for gap in quiet), taken
    assert len(talked) >= 3
    assert all(4 <= gap <= 5 for gap in talked), taken
    assert any(30 <= at <= 30.7 for at in taken), "at once when the wearer speaks"


# What the wearer is asked to trust.


def test_while_it_looks_away_no_picture_is_looked_at_and_the_light_is_off(tmp_path: Path) -> None:
    shown: list[bool] = []
    light = Light(shown)
    told, detector, _ = looking(tmp_path, light=light)
    states: list[bool] = []
    told.show(0.0, "A table.").do(1.0, lambda os1: os1.looking.look_away())
    told.do(1.5, lambda _: states.append(light.is_on()))
    told.show(2.0, "A bedroom.").show(4.0, "A bathroom.").say(4.5, "What is this?")
    told.do(7.0, lambda os1: os1.looking.look_back()).do(7.5, lambda _: states.append(light.is_on()))
    told.show(9.0, "A hall.").live()
    assert [at for at, _ in told.described] == [0.0, 9.0]
    assert detector.seen == 2
    assert told.turns[0].scene == ""
    assert states == [False, True]
    assert shown == [True, False, True, False], "and off at the end"


def test_a_picture_that_was_being_looked_at_is_let_go_when_it_looks_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    glimpse = FrameTaker.glimpse
    told, detector, _ = looking(tmp_path)
    companions: list[Any] = []

    def slow(taker: FrameTaker, image: Image, at_s: float) -> Any:
        found = glimpse(taker, image, at_s)
        loop, os1 = companions[0]
        loop.call_soon_threadsafe(os1.looking.look_away)  # it is asked while the picture is in work
        return found

    monkeypatch.setattr(FrameTaker, "glimpse", slow)
    told.do(0.0, lambda os1: companions.append((asyncio.get_running_loop(), os1)))
    told.show(1.0, "A table.").do(1.2, lambda os1: os1.looking.look_back())
    told.do(1.4, lambda os1: os1.looking.fixated(1.4)).live()
    assert detector.seen == 0


class Light:
    """A capture light that can break."""

    def __init__(self, shown: list[bool], broken: bool = False) -> None:
        self.shown, self.broken, self.on = shown, broken, False

    def set(self, on: bool) -> None:
        if self.broken:
            raise OSError("no such LED")
        if on is not self.on:
            self.shown.append(on)
        self.on = on

    def is_on(self) -> bool:
        return self.on


def test_without_its_light_the_camera_stays_off_and_the_rest_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told, detector, _ = looking(tmp_path, light=Light([], broken=True))
    told.show(0.0, "A table.").say(1.0, "What is this?").show(9.0, "A hall.").live()
    assert detector.seen == 0
    assert told.turns[0].scene == ""
    assert told.turns[0].reply
    assert caplog.text.count("scene camera stays off") == 1


def test_a_light_that_goes_out_ends_capture_with_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    light = Light([])
    told, detector, _ = looking(tmp_path, light=light)
    told.show(0.0, "A table.").do(1.0, lambda _: setattr(light, "on", False))
    for i in range(5):
        told.show(3.0 + i, f"Room {i}.")
    told.live()
    assert detector.seen == 1
    assert caplog.text.count("light went out") == 1


class OneFace:
    """Finds a face in the upper left until it has been blurred."""

    def find(self, image: Image, least: float = 0.5) -> tuple[Face, ...]:
        box = (10, 10, 60, 60)
        return (Face(0.9, box),) if image[15:60, 15:60].std() > 30 else ()


def test_what_the_report_is_given_has_no_face_and_no_picture(tmp_path: Path) -> None:
    told, _, _ = looking(tmp_path, thumbnails=True)
    told.faces = OneFace()
    given: list[Any] = []
    told.frame_described = lambda frame, _: given.append(frame)  # type: ignore[method-assign]
    told.show(0.0, "A table.").live()
    (frame,) = given
    assert frame.thumbnail.startswith(b"\xff\xd8")
    assert not hasattr(frame, "image")
    told, _, _ = looking(tmp_path / "2", thumbnails=True)  # and nothing finds faces
    told.frame_described = lambda frame, _: given.append(frame)  # type: ignore[method-assign]
    told.show(0.0, "A table.").live()
    assert given[-1].thumbnail is None


# When something is wrong.


def test_an_eye_camera_that_gives_rubbish_costs_only_the_gaze(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Breaks(Tracker):
        def step(self, frame: Any, at_s: float) -> Any:
            raise ValueError("no picture")

    told, _, _ = looking(tmp_path, gaze=Breaks())
    told.show(0.0, "A table.").look(0.2, 3.0, *ON_CUP).say(1.0, "What is this?").live()
    assert told.turns[0].looked_at == ""
    assert told.turns[0].reply
    assert caplog.text.count("the eye frame") == 1


def test_a_view_a_minute_old_is_not_what_is_in_view(tmp_path: Path) -> None:
    told = Companion(tmp_path)
    told.show(0.0, "A table.").say(50.0, "What is this?").say(70.0, "And what is this?").live()
    assert [turn.scene for turn in told.turns] == ["A table.", ""]


def test_a_scene_that_could_not_be_described_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    told = Companion(tmp_path)
    told.show(0.0, "A table.").show(10.0, "broken").show(20.0, "broken").say(21.0, "What is this?").live()
    assert told.turns[0].scene == ""


def test_no_picture_is_held_once_it_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ref[Any]] = []

    def watched(number: int, scene: str) -> Image:
        image = picture(number, scene)
        made.append(ref(image))
        return image

    monkeypatch.setattr("companion.picture", watched)
    told, _, _ = looking(tmp_path)
    held: list[int] = []
    for i in range(20):
        told.show(5.0 * i, f"Room {i}.")
        told.do(5.0 * i + 1.0, lambda _: held.append(sum(one() is not None for one in made)))
        told.do(5.0 * i + 4.0, lambda _: held.append(sum(one() is not None for one in made)))
    told.live()
    assert len(told.described) == 20
    assert held[::2] == [1] * 20, "two seconds for a question about it"
    assert held[1::2] == [0] * 20


# What was seen before.


def test_what_was_in_view_before_is_told_to_who_asks_for_it(tmp_path: Path) -> None:
    told = Companion(tmp_path)
    told.show(0.0, "A dog.").show(10.0, "A bus.").show(20.0, "A door.")
    told.say(21.0, "What did I just see?").say(30.0, "What is this?").live()
    asked = [prompt[-1].text for prompt in told.engine.prompts]
    assert "Fact in view before: You saw a bus." in asked[0]
    assert "You saw a dog." in asked[0]
    assert "Fact in view now: You see a door." in asked[0]
    assert "You saw" not in asked[1]


def test_of_many_views_the_first_become_one_sentence_in_the_background(tmp_path: Path) -> None:
    class Writes(Engine):
        async def stream(self, messages, max_tokens, **asked):  # type: ignore[no-untyped-def]
            if asked.get("background") and "Seen, one after the other" in messages[-1].text:
                jobs.append(messages[-1].text)
                yield '{"sentence": "A dog, a bus and a door passed by."}'
                return
            async for word in Engine.stream(self, messages, max_tokens):
                yield word

    jobs: list[str] = []
    told, states = Companion(tmp_path, Writes()), []
    for i, scene in enumerate(("A dog.", "A bus.", "A door.", "A tree.", "A lake.")):
        told.show(10.0 * i, scene)
    told.do(44.0, lambda os1: states.append(os1.scenery.window)).say(41.0, "What did I just see?").live()
    assert len(jobs) == 1
    assert "- A dog.\n- A bus.\n- A door." in jobs[0]
    assert "You saw a dog, a bus and a door passed by." in told.engine.prompts[-1][-1].text
    assert len(states[0].frames) == 2


def test_without_a_model_the_descriptions_stand_in_and_the_window_stays_short(tmp_path: Path) -> None:
    config = Config.model_validate({"remember": {"written_by_model": False}})
    told, frames = Companion(tmp_path, config=config), []
    for i in range(30):
        told.show(10.0 * i, f"Room {i}.")
        told.do(10.0 * i + 5, lambda os1: frames.append(len(os1.scenery.window.frames)))
    told.live()
    assert max(frames) <= 4


def test_eye_frames_that_come_late_are_passed_over() -> None:
    async def late(ticking: clock.Clock) -> AsyncIterator[EyeFrame]:
        await ticking.sleep_until(10.0)
        for at_s in (0.0, 9.99):
            yield EyeFrame(at_s, "eye", np.array([[60, 110]], np.uint8))

    async def story() -> None:
        ticking = clock.Clock()
        gazing = Gazing(Tracker(), ticking, lambda _at_s: None)  # type: ignore[arg-type]
        await gazing.follow(late(ticking))
        assert (gazing.followed.skipped, gazing.followed.frames) == (1, 1)
        gazing.close()

    clock.run(story(), virtual=True)
