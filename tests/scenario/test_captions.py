"""A vision model's words about the view: there before the question, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from companion import Companion, Tracker
from test_looking import ON_BOOK, ON_CUP, Detector, OneFace, Reader
from test_outage import Server

from os1_edge.app.captions import tidy
from os1_edge.config import Config
from os1_edge.offload.engine import EngineError
from os1_edge.offload.far import Question, Step
from os1_edge.see.scene import SceneDescriber

SAID = "A red mug with a chip in its rim."


class Vision:
    """Captions a picture in ``seconds``; keeps what it was shown."""

    name = "eyes"

    def __init__(self, seconds: float = 1.0, text: str = SAID) -> None:
        self.seconds, self.text = seconds, text
        self.shown: list[bytes] = []
        self.stopped = 0
        self.asked: list[dict[str, Any]] = []

    async def stream(self, messages: Any, max_tokens: int, **asked: Any) -> AsyncGenerator[str, None]:
        self.shown.append(messages[-1].images[0])
        self.asked.append({"max_tokens": max_tokens, **asked})
        try:
            await asyncio.sleep(self.seconds)
        except (asyncio.CancelledError, GeneratorExit):
            self.stopped += 1
            raise
        yield self.text

    def close(self) -> None: ...


Tell = Callable[..., Companion]


@pytest.fixture
def told(tmp_path: Path) -> Tell:
    """A companion with that vision model, whose pictures show a face, a mug and a book."""

    def make(vision: Any) -> Companion:
        return Companion(
            tmp_path,
            eyes=SceneDescriber(Detector(), None, Reader()),
            faces=OneFace(),
            vision=vision,
            capture={"gaze": Tracker()},
        )

    return make


def asked(told: Companion) -> list[str]:
    return [prompt[-1].text for prompt in told.engine.prompts]


def size(jpeg: bytes) -> tuple[int, ...]:
    return np.shape(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR))[:2]


def test_what_the_vision_model_saw_is_told_beside_the_detectors_facts(told: Tell) -> None:
    vision = Vision()
    lived = told(vision).show(0.0, "A table.").say(5.0, "What is this?").live()
    assert "You see a mug and a book." in asked(lived)[0]
    assert f"The picture: {SAID}" in asked(lived)[0]
    assert lived.turns[0].scene == f"A mug and a book. {SAID}"
    assert vision.asked == [{"max_tokens": 96, "background": True, "task": "caption"}]


def test_a_caption_that_is_not_written_yet_delays_no_reply(told: Tell) -> None:
    quick = told(Vision(0.0)).show(0.0, "A table.").say(1.0, "What is this?").live().turns[0]
    vision = Vision(60.0)
    begun: list[int] = []
    lived = told(vision).show(0.0, "A table.").say(1.0, "What is this?")
    lived.do(1.8, lambda _: begun.append(len(vision.shown))).live()
    assert begun == [1], "none while they speak"
    assert lived.turns[0].spoke_at_s == quick.spoke_at_s
    assert "The picture" not in asked(lived)[0]
    assert vision.stopped, "the cores are for the wearer"


def test_a_caption_stopped_by_speech_is_written_when_it_is_quiet_again(
    told: Tell,
) -> None:
    vision = Vision(3.0)
    lived = told(vision).show(0.0, "A table.").say(1.0, "Hello there.").say(20.0, "What is this?").live()
    assert vision.stopped >= 1
    assert f"The picture: {SAID}" in asked(lived)[-1]


def test_the_place_that_is_looked_at_is_captioned_and_no_other(told: Tell) -> None:
    vision = Vision()
    lived = told(vision).show(0.0, "A table.").show(0.4, "A table.").look(0.1, 6.0, *ON_CUP)
    lived.look(8.0, 12.0, *ON_BOOK).say(5.0, "What is this?").say(9.0, "And what is this?").live()
    first, second = asked(lived)
    assert f"The picture: {SAID}" in first
    assert "You are looking at a book" in second
    assert "The picture" not in second, "that was of the cup"
    height, width = size(vision.shown[-1])
    assert width < 320
    assert height <= 240


def test_no_face_is_shown_to_the_vision_model(told: Tell) -> None:
    vision = Vision()
    told(vision).show(0.0, "A table.").say(5.0, "What is this?").live()
    for jpeg in vision.shown:
        whole = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
        assert OneFace().find(np.asarray(whole, np.uint8)) == ()
    blind = Vision()
    lived = told(blind)
    lived.faces = None  # and nothing finds them
    lived.show(0.0, "A table.").say(5.0, "What is this?").live()
    assert blind.shown == []


def test_a_picture_that_shows_the_same_is_captioned_once(told: Tell) -> None:
    vision = Vision()
    lived = told(vision)
    for i in range(60):
        lived.show(float(i), "A table.")
    lived.say(58.0, "What is this?").live()
    assert len(vision.shown) == 1
    assert f"The picture: {SAID}" in asked(lived)[0]


def test_after_looking_away_no_caption_is_left_nor_begun(told: Tell) -> None:
    vision = Vision(4.0)
    lived = told(vision).show(0.0, "A table.").do(2.0, lambda os1: os1.looking.look_away())
    lived.say(9.0, "What is this?").live()
    assert vision.stopped == 1
    assert len(vision.shown) == 1
    assert all("The picture" not in text for text in asked(lived))


def test_a_vision_model_that_fails_costs_only_its_caption(
    told: Tell, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(Vision):
        async def stream(self, messages: Any, max_tokens: int, **asked: Any) -> AsyncGenerator[str, None]:
            self.shown.append(messages[-1].images[0])
            raise EngineError("no memory")
            yield ""

    vision = Fails()
    lived = told(vision).show(0.0, "A table.").say(5.0, "What is this?").live()
    assert "You see a mug and a book." in asked(lived)[0]
    assert lived.turns[0].reply
    assert len(vision.shown) == 1
    assert caplog.text.count("the caption of a view") == 1


class Far(Server):
    """An offload server that sees; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(answer=SAID)
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> AsyncGenerator[Step, None]:
        self.questions.append(question)
        async for step in super().ask(question):
            yield step

    @property
    def pictures(self) -> list[bytes]:
        return [image for one in self.questions for message in one.messages for image in message.images]


def with_server(told: Tell, **offload: Any) -> tuple[Companion, Far]:
    lived, far = told(None), Far()
    lived.server = far
    lived.config = Config.model_validate({"offload": {"pictures": True, "server": "there:1", **offload}})
    lived.say(1.0, "Hello there.").show(12.0, "A table.").say(16.0, "What is this?").live()
    return lived, far


def test_a_server_captions_the_view_where_pictures_may_leave(told: Tell) -> None:
    lived, far = with_server(told)
    (picture,) = far.pictures
    assert OneFace().find(np.asarray(cv2.imdecode(np.frombuffer(picture, np.uint8), 1), np.uint8)) == ()
    assert lived.turns[-1].scene == f"A mug and a book. {SAID}"
    assert lived.engine.prompts == [] or all(not m.images for prompt in lived.engine.prompts for m in prompt)


@pytest.mark.parametrize(
    "offload", [{"pictures": False}, {"policy": "prefer-private"}, {"local_only": ["caption"]}]
)
def test_no_picture_leaves_where_the_wearer_says_so(told: Tell, offload: dict[str, Any]) -> None:
    lived, far = with_server(told, **offload)
    assert far.pictures == []
    assert lived.turns[-1].scene == "A mug and a book."


def test_a_caption_is_one_line_of_whole_sentences() -> None:
    assert tidy(" A cup.\nIt is red. And it st") == "A cup. It is red."
    assert tidy("no end") == "no end"
    assert len(tidy("word " * 100)) <= 240
