"""Speech over the wire: a scripted recogniser and voice for the order of things, real ones for the words."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np
import pytest
from cloud_world import PATIENCE_S, World, refused, timeline, until, world

import os1_models
from os1_cloud import server as serving
from os1_cloud.engines import EngineError
from os1_cloud.engines.speech import Piper, Whisper
from os1_cloud.speech import AUDIO_S, BYTES_S, Ears, Mouth
from os1_cloud.wearers import WearerLimits, Wearers
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import speech_pb2

SECOND = bytes(BYTES_S)


class Counts:
    """A recogniser that "hears" how many seconds there are; holds its breath until the test says `go`."""

    name = "counts"

    def __init__(self, holds: bool = False) -> None:
        self.go, self.at_work, self.begun = asyncio.Event(), 0, 0
        if not holds:
            self.go.set()

    async def transcribe(self, pcm: bytes, language: str) -> str:
        self.at_work += 1
        self.begun += 1
        try:
            await self.go.wait()
            if language == "xx":
                raise EngineError("no such language")
            return f"{len(pcm) // BYTES_S} seconds"
        finally:
            self.at_work -= 1

    def close(self) -> None: ...


class Spells:
    """A voice that says two bytes a letter, word by word, when the test says `go`."""

    name, rate = "spells", 8000

    def __init__(self) -> None:
        self.go: asyncio.Queue[None] = asyncio.Queue()
        self.at_work = 0

    async def speak(self, text: str, speed: float) -> AsyncIterator[bytes]:
        self.at_work += 1
        try:
            for word in text.split():
                await self.go.get()
                yield word.encode() * 2
        finally:
            self.at_work -= 1

    def close(self) -> None: ...


def speech(recognizer: Any = None, voice: Any = None) -> dict[str, Any]:
    wearers = Wearers(WearerLimits(calls=0, asks_per_minute=0))
    return {
        "ears": Ears(recognizer, wearers) if recognizer else None,
        "mouth": Mouth(voice, wearers) if voice else None,
    }


def config(**fields: Any) -> speech_pb2.RecognizeRequest:
    fields = {"request_id": "r", "sample_rate_hz": 16_000, **fields}
    return speech_pb2.RecognizeRequest(config=speech_pb2.RecognizeConfig(**fields))


def sound(data: bytes = SECOND) -> speech_pb2.RecognizeRequest:
    return speech_pb2.RecognizeRequest(audio=data)


async def heard(call: Any) -> list[tuple[str, str]]:
    found = []
    while (event := await call.read()) is not grpc.aio.EOF:
        kind = event.WhichOneof("event")
        found.append((kind, "" if kind == "accepted" else getattr(event, kind).text))
    return found


def test_what_was_said_comes_when_the_sound_is_over() -> None:
    async def story() -> None:
        async with world(serve=speech(Counts())) as w:
            call = w.speech.Recognize(iter([config(), sound(), sound(), sound()]))
            assert await heard(call) == [("accepted", ""), ("final", "3 seconds")]

    timeline(story)


def test_guesses_come_while_somebody_speaks() -> None:
    async def story() -> None:
        async with world(serve=speech(Counts())) as w:
            call = w.speech.Recognize()
            await call.write(config(partials=True))
            await call.write(sound())
            assert (await call.read()).WhichOneof("event") == "accepted"
            assert (await call.read()).partial.text == "1 seconds"
            await call.write(sound())
            assert (await call.read()).partial.audio_ms == 2000
            await call.done_writing()
            assert await heard(call) == [("final", "2 seconds")]

    timeline(story)


def test_a_speaker_who_goes_away_frees_the_recogniser() -> None:
    async def story() -> None:
        recognizer = Counts(holds=True)
        async with world(serve=speech(recognizer)) as w:
            call = w.speech.Recognize(iter([config(), sound()]))
            await until(lambda: recognizer.at_work == 1)
            call.cancel()
            await until(lambda: recognizer.at_work == 0)
            recognizer.go.set()
            assert await heard(w.speech.Recognize(iter([config(), sound()]))) == [
                ("accepted", ""),
                ("final", "1 seconds"),
            ]

    timeline(story)


def test_a_speaker_who_goes_away_in_the_middle_leaves_no_guess_at_work() -> None:
    async def story() -> None:
        recognizer = Counts(holds=True)
        async with world(serve=speech(recognizer)) as w:
            before = len(asyncio.all_tasks())
            call = w.speech.Recognize()
            await call.write(config(partials=True))
            await call.write(sound())
            await until(lambda: recognizer.at_work == 1)
            call.cancel()
            await until(lambda: recognizer.at_work == 0 and len(asyncio.all_tasks()) <= before)

    timeline(story)


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ([sound()], pb.REASON_BAD_REQUEST),
        ([], pb.REASON_BAD_REQUEST),
        ([config(), config()], pb.REASON_BAD_REQUEST),
        ([config(), sound(b"odd")], pb.REASON_BAD_REQUEST),
        ([config(sample_rate_hz=8000)], pb.REASON_BAD_REQUEST),
        ([config(encoding=9)], pb.REASON_BAD_REQUEST),
        ([config(request_id="two words")], pb.REASON_BAD_REQUEST),
        ([config(), *[sound(SECOND * 20)] * (AUDIO_S // 20 + 1)], pb.REASON_BAD_REQUEST),
        ([config(language="xx"), sound()], pb.REASON_ENGINE_FAILED),
        ([config(budget=pb.Budget(total_ms=10, elapsed_ms=10))], pb.REASON_EXPIRED),
    ],
)
def test_sound_that_makes_no_sense_is_refused(requests: list[Any], reason: int) -> None:
    async def story() -> None:
        async with world(serve=speech(Counts())) as w:
            _, why = await refused(w.speech.Recognize(iter(requests)))
            assert why.reason == reason

    timeline(story)


def say(w: World, text: str = "good morning", **fields: Any) -> Any:
    return w.speech.Synthesize(speech_pb2.SynthesizeRequest(request_id="s", text=text, **fields))


def test_sound_comes_sentence_by_sentence_before_the_whole_is_said() -> None:
    async def story() -> None:
        voice = Spells()
        async with world(serve=speech(voice=voice)) as w:
            call = say(w)
            voice.go.put_nowait(None)
            first = await call.read()
            assert (first.audio, first.sample_rate_hz, first.last) == (b"goodgood", 8000, False)
            voice.go.put_nowait(None)
            assert (await call.read()).audio == b"morningmorning"
            last = await call.read()
            assert (last.seq, last.audio, last.last) == (3, b"", True)
            assert await call.read() is grpc.aio.EOF

    timeline(story)


def test_a_voice_is_silenced_by_cancel_and_by_hanging_up() -> None:
    async def story() -> None:
        voice = Spells()
        async with world(serve=speech(voice=voice)) as w:
            for how in ("cancel", "hang up"):
                call = say(w)
                await until(lambda: voice.at_work == 1)
                if how == "cancel":
                    assert (await w.assist.Cancel(pb.CancelRequest(request_id="s"))).stopped
                else:
                    call.cancel()
                await until(lambda: voice.at_work == 0)

    timeline(story)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": ""}, pb.REASON_BAD_REQUEST),
        ({"text": "x" * 4001}, pb.REASON_BAD_REQUEST),
        ({"speed": 9.0}, pb.REASON_BAD_REQUEST),
        ({"voice": "other"}, pb.REASON_NO_SUCH_MODEL),
    ],
)
def test_a_text_that_cannot_be_said_is_refused(fields: dict[str, Any], reason: int) -> None:
    async def story() -> None:
        async with world(serve=speech(voice=Spells())) as w:
            _, why = await refused(say(w, **fields))
            assert why.reason == reason

    timeline(story)


def test_a_server_without_speech_says_so() -> None:
    async def story() -> None:
        async with world() as w:
            for call in (w.speech.Recognize(iter([config()])), say(w)):
                code, why = await refused(call)
                assert (code, why.reason) == (grpc.StatusCode.INVALID_ARGUMENT, pb.REASON_NO_SUCH_MODEL)

    timeline(story)


def test_draining_waits_for_what_is_being_heard_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LAST_WORDS_S", 0.01)

    async def story() -> None:
        recognizer, voice = Counts(holds=True), Spells()
        async with world(serve=speech(recognizer, voice)) as w:
            hearing, saying = w.speech.Recognize(iter([config(), sound()])), say(w, "hello")
            await until(lambda: recognizer.at_work == voice.at_work == 1)
            drained = asyncio.ensure_future(w.server.drain(PATIENCE_S))
            await asyncio.wait({drained}, timeout=0.3)  # many times what cutting takes
            recognizer.go.set()
            assert (await heard(hearing))[-1] == ("final", "1 seconds")
            assert not drained.done()  # something is still being said
            voice.go.put_nowait(None)
            assert [(await saying.read()).audio for _ in range(2)] == [b"hellohello", b""]
            assert await drained

    timeline(story)


def test_speech_that_outlasts_the_grace_is_told_to_ask_another_server() -> None:
    async def story() -> None:
        recognizer, voice = Counts(holds=True), Spells()
        async with world(serve=speech(recognizer, voice)) as w:
            calls = [w.speech.Recognize(iter([config(), sound()])), say(w)]
            await until(lambda: recognizer.at_work == voice.at_work == 1)
            drained = asyncio.ensure_future(w.server.drain(0.01))
            for call in calls:
                code, why = await refused(call)
                assert (code, why.reason) == (grpc.StatusCode.UNAVAILABLE, pb.REASON_DRAINING)
            assert not await drained
            assert (recognizer.at_work, voice.at_work) == (0, 0)

    timeline(story)


@pytest.mark.models
def test_what_a_real_voice_says_is_understood_by_a_real_recogniser() -> None:
    for name in ("whisper-tiny.en", "piper-joe"):
        if os1_models.installed(name) is None:
            pytest.skip(f"{name} is not pulled; run: os1 models pull {name}")

    async def story() -> None:
        ears = Whisper("ears", os1_models.path("whisper-tiny.en"), 1)
        mouth = Piper("mouth", os1_models.path("piper-joe"), 1)
        await ears.start()
        await mouth.start()
        async with world(serve=speech(ears, mouth)) as w:
            call = say(w, "Where did I leave my keys? They are on the kitchen table.")
            chunks = []
            while (chunk := await call.read()) is not grpc.aio.EOF:
                chunks.append(chunk)
            assert len(chunks) == 3  # two sentences and the end
            samples = np.frombuffer(b"".join(c.audio for c in chunks), "<i2").astype(np.float32)
            at = np.arange(0, len(samples), chunks[0].sample_rate_hz / 16_000)
            data = np.interp(at, np.arange(len(samples)), samples).astype("<i2").tobytes()
            pieces = [sound(data[i : i + BYTES_S]) for i in range(0, len(data), BYTES_S)]
            found = await heard(w.speech.Recognize(iter([config(language="en-GB"), *pieces])))
            assert "keys" in found[-1][1]
            assert "kitchen table" in found[-1][1]
            silence = await heard(w.speech.Recognize(iter([config(), sound()])))
            assert silence[-1] == ("final", "")
        ears.close()
        mouth.close()
        await asyncio.sleep(0.1)

    asyncio.run(asyncio.wait_for(story(), 4 * PATIENCE_S))
