"""Worker processes: prefixes, cancels, deaths, replacement, and pictures that stay apart.

Most of it with tiny models of random weights, which behave like any other."""

import asyncio
import hashlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from cloud_world import World, rest, until, world

import os1_models
from os1_cloud.auth import Tokens
from os1_cloud.engines import BadImage, BadSchema, EngineError, EngineLost, Finished, Piece, Prompt, Turn
from os1_cloud.engines.llama import Llama, Llava
from os1_cloud.engines.worker import Recycle
from os1_proto.assist.v1 import assist_pb2 as pb

PATIENCE_S = 120
LONG = "The wearer met Anna at the station and they talked about the garden. " * 10


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny language model; a token a byte."""
    return _tiny(tmp_path_factory.mktemp("llm"), "qwen2.5-vl")[0]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny vision model and its projector."""
    return _tiny(tmp_path_factory.mktemp("vlm"), "llava")


@pytest.fixture
def slow() -> Path:
    """A real model, which takes its time to read."""
    for name in ("smollm2-135m", "qwen2.5-0.5b"):
        if os1_models.installed(name) is not None:
            return os1_models.path(name)
    pytest.skip("no small language model is pulled; run: os1 models pull qwen2.5-0.5b")


def _tiny(folder: Path, kind: str) -> tuple[Path, Path]:
    pytest.importorskip("gguf", reason="tiny models are made with the gguf package")
    from tiny_vlm import write_tiny_vlm

    weights, projector = write_tiny_vlm(folder, kind)  # type: ignore[arg-type]
    return weights, projector


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


async def loaded(model: Path, recycle: Recycle = Recycle()) -> Llama:  # noqa: B008 - frozen
    engine = Llama("m", model, threads=1, context=2048, recycle=recycle)
    await engine.start()
    return engine


async def ended(engine: Llama | Llava) -> None:
    engine.close()
    await asyncio.sleep(0.1)  # for the loop to reap the process


def prompt(text: str, session: str = "", tokens: int = 6, prefix: str = "", said: str = "") -> Prompt:
    turns = (Turn("system", f"Be brief. {said}"), Turn("user", text))
    return Prompt(turns, tokens, session=session, prefix=prefix)


async def answered(engine: Llama | Llava, asked: Prompt) -> tuple[str, Finished]:
    text = ""
    async with aclosing(engine.generate(asked)) as parts:
        async for part in parts:
            if isinstance(part, Finished):
                return text, part
            text += part.text
    raise AssertionError("no end")


def test_what_was_read_for_a_wearer_is_kept_while_others_ask_and_never_serves_them(model: Path) -> None:
    async def story() -> None:
        engine = await loaded(model)
        text, first = await answered(engine, prompt("Who was met?", "ann/s", said=LONG))
        assert first.cached_tokens == 0
        other, second = await answered(engine, prompt("Who was met?", "bob/s", said=LONG))
        assert second.cached_tokens == 0  # the same words, another wearer
        again, third = await answered(engine, prompt("Who was met?", "ann/s", said=LONG))
        assert third.cached_tokens >= first.prompt_tokens - 1
        assert text == other == again
        _, alone = await answered(engine, prompt("Who was met?", "", said=LONG))
        assert alone.cached_tokens == 0
        await ended(engine)

    run(story)


def test_what_was_read_ahead_is_not_read_again_by_the_question(model: Path) -> None:
    async def story() -> None:
        engine = await loaded(model)
        _, ahead = await answered(engine, prompt("Who was", "ann/s", tokens=1, said=LONG))
        _, asked = await answered(engine, prompt("Who was met?", "ann/s", said=LONG))
        assert ahead.cached_tokens == 0
        assert asked.cached_tokens > 0.9 * asked.prompt_tokens
        await ended(engine)

    run(story)


def test_a_reading_that_made_way_is_gone_on_with(slow: Path) -> None:
    """What whole batches have read is kept."""

    async def story() -> None:
        engine = await loaded(slow)
        for tries in range(5):  # until it was stopped in the middle
            session = f"ann/{tries}"
            reading = asyncio.create_task(answered(engine, prompt("Who", session, tokens=1, said=LONG * 2)))
            await asyncio.sleep(0.25 * 2**tries)
            reading.cancel()
            await asyncio.wait((reading,))
            _, asked = await answered(engine, prompt("Who was met?", session, tokens=1, said=LONG * 2))
            if reading.cancelled() and asked.cached_tokens:
                break
        assert 64 <= asked.cached_tokens < asked.prompt_tokens
        await ended(engine)

    run(story)


def test_a_schema_that_cannot_be_obeyed_is_printed_nowhere(
    model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """llama.cpp prints a grammar that it cannot read, with all words of the schema."""

    async def story() -> None:
        engine = await loaded(model)
        schema = '{"type": "string", "pattern": "^(((secret){1,9999}){1,9999}){1,9999}$"}'
        with pytest.raises(BadSchema):
            await answered(engine, Prompt((Turn("user", "?"),), 4, json_schema=schema))
        await ended(engine)

    run(story)
    assert "secret" not in "".join(capfd.readouterr())


def test_a_text_that_looks_like_the_end_of_a_turn_ends_none(model: Path) -> None:
    from os1_cloud.engines.llama_model import LlamaModel

    loaded = LlamaModel({"model": str(model), "threads": 1, "context": 256})
    end = loaded._llama.token_eos()
    assert loaded._llama.tokenize(b"</s>", add_bos=False, special=True)[-1] == end
    assert end not in loaded._tokens([["system", "A sign: </s>"], ["user", "What does </s> mean?"]], "</s>")


def test_an_answer_goes_on_behind_what_the_wearer_has_heard(model: Path) -> None:
    async def story() -> None:
        engine = await loaded(model)
        whole, _ = await answered(engine, prompt("Count from one to five.", tokens=12))
        half = whole[: len(whole) // 2]
        rest, _ = await answered(engine, prompt("Count from one to five.", tokens=12, prefix=half))
        assert rest
        assert not rest.startswith(half)
        await ended(engine)

    run(story)


@pytest.mark.models
def test_a_cancel_while_the_prompt_is_being_read_stops_without_killing_the_worker(slow: Path) -> None:
    async def story() -> None:
        engine = await loaded(slow)
        reading = engine.generate(prompt("Who was met?", "ann/s", said=LONG))
        step = asyncio.ensure_future(anext(reading))
        await asyncio.sleep(0.2)
        assert not step.done()  # it is still reading
        began = time.monotonic()
        step.cancel()
        await asyncio.wait({step})
        await reading.aclose()
        took = time.monotonic() - began
        _, after = await answered(engine, prompt("Who was met?", "ann/s", said=LONG))
        assert engine.worker.starts == 1, f"killed after {took:.1f} s"
        assert after.cached_tokens < after.prompt_tokens - 1  # it really had not read it all
        await ended(engine)

    run(story)


def test_a_worker_that_dies_fails_one_answer_and_the_next_works(model: Path) -> None:
    async def story() -> None:
        engine = await loaded(model)
        dying = engine.generate(prompt("Count to fifty.", tokens=200))
        await anext(dying)
        assert engine.worker.pid is not None
        os.kill(engine.worker.pid, signal.SIGKILL)
        with pytest.raises(EngineLost, match="died") as lost:
            async for _ in dying:
                pass
        assert lost.value.retry_after_s > 0
        text, _ = await answered(engine, prompt("Hello."))
        assert text
        assert engine.worker.starts == 2
        await ended(engine)

    run(story)


def test_a_worker_that_dies_while_nobody_asks_is_there_for_the_next_question(model: Path) -> None:
    async def story() -> None:
        engine = await loaded(model)
        first = engine.worker.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        while engine.worker.pid == first:
            await engine.check()  # never fails: one that dies once is not ill
            await asyncio.sleep(0.02)
        assert (await answered(engine, prompt("Hello.")))[0]
        assert engine.worker.starts == 2
        await ended(engine)

    run(story)


def test_a_worker_that_cannot_be_started_again_is_ill_until_it_can(model: Path, tmp_path: Path) -> None:
    there, away = tmp_path / "m.gguf", tmp_path / "away.gguf"
    there.write_bytes(model.read_bytes())

    async def story() -> None:
        engine = await loaded(there)
        there.rename(away)
        dying = engine.generate(prompt("Count to fifty.", tokens=200))
        await anext(dying)
        assert engine.worker.pid is not None
        os.kill(engine.worker.pid, signal.SIGKILL)
        with pytest.raises(EngineLost):
            [part async for part in dying]
        with pytest.raises(EngineLost, match="cannot be loaded"):
            await answered(engine, prompt("Hello."))
        with pytest.raises(EngineError, match="cannot be loaded"):
            await engine.check()
        away.rename(there)
        while True:
            try:
                await engine.check()
                break
            except EngineError:
                await asyncio.sleep(0.1)
        assert (await answered(engine, prompt("Hello.")))[0]
        await ended(engine)

    run(story)


def test_a_question_that_is_given_up_while_the_model_loads_does_not_stop_that(model: Path) -> None:
    async def story() -> None:
        engine = Llama("m", model, threads=1, context=2048)
        for _ in range(3):  # each in more of a hurry than the model
            asked = asyncio.ensure_future(answered(engine, prompt("Hello.")))
            await asyncio.sleep(0.01)
            asked.cancel()
            await asyncio.wait({asked})
        await until(lambda: bool(engine.worker.facts))
        await ended(engine)

    run(story)


def test_a_worker_is_replaced_as_planned_between_two_answers(model: Path) -> None:
    async def story() -> None:
        engine = await loaded(model, Recycle(jobs=2))
        first = engine.worker.pid
        texts = [(await answered(engine, prompt("Hello.")))[0] for _ in range(2)]
        await until(lambda: engine.worker.starts == 2 and engine.worker.pid != first)  # nobody asked for it
        texts.append((await answered(engine, prompt("Hello.")))[0])
        assert engine.worker.starts == 2
        assert len(set(texts)) == 1
        await ended(engine)

    run(story)


def test_a_worker_that_a_waiting_question_has_replaced_is_not_replaced_again(model: Path) -> None:
    async def story() -> None:
        engine = await loaded(model, Recycle(jobs=2))
        await asyncio.gather(*(answered(engine, prompt("Hello.")) for _ in range(3)))
        assert engine.worker._renewal is not None
        await engine.worker._renewal
        assert engine.worker.starts == 2
        await ended(engine)

    run(story)


def test_a_file_that_is_no_model_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"no model")

    async def story() -> None:
        engine = Llama("m", tmp_path / "m.gguf", threads=1)
        with pytest.raises(EngineError, match="cannot be loaded"):
            await engine.start()
        await ended(engine)

    run(story)


# --- pictures, with a tiny model of random weights


def jpeg(shade: int) -> bytes:
    import cv2
    import numpy as np

    pixels = np.full((64, 64, 3), shade, np.uint8)
    pixels[16:48, 8 : 8 + shade % 40 + 8] = 255 - shade
    return bytes(cv2.imencode(".jpg", pixels)[1])


def look(session: str, *images: bytes) -> Prompt:
    return Prompt((Turn("user", "What is this?", images),), 8, session=session)


def test_a_picture_changes_the_answer_and_is_gone_for_the_next_wearer(tiny: tuple[Path, Path]) -> None:
    async def story() -> None:
        engine = Llava("v", *tiny, threads=1, context=1024)
        await engine.start()
        alone, _ = await answered(engine, look("bob/s"))
        seen, with_picture = await answered(engine, look("ann/s", jpeg(30)))
        after, _ = await answered(engine, look("bob/s"))
        assert with_picture.prompt_tokens > 16
        assert after == alone  # nothing of ann's picture is left
        assert seen != alone
        await ended(engine)

    run(story)


def test_a_picture_is_not_even_kept_for_the_next_wearer(tiny: tuple[Path, Path]) -> None:
    from os1_cloud.engines.vision_model import VisionChild

    child = VisionChild({"model": str(tiny[0]), "projector": str(tiny[1]), "threads": 1, "context": 1024})

    def asked(session: str, picture: bytes) -> int:
        job = {"session": session, "max_tokens": 2, "json_schema": "", "prefix": ""}
        job |= {"turns": [["user", "What is this?"]], "images": [[len(picture)] if picture else []]}
        assert list(child.do(job, picture, lambda: False))
        return len(child._model._projector._seen)

    assert asked("ann/s", jpeg(30)) == 1
    assert asked("ann/s", b"") == 1
    assert asked("bob/s", b"") == 0
    assert asked("", jpeg(30)) == 1
    assert asked("", b"") == 0


def test_canary_a_wearers_picture_leaves_no_trace_in_what_another_wearer_is_told(
    tiny: tuple[Path, Path],
) -> None:
    """The whole server: what a fresh one says is said word for word after a picture of somebody else, one
    that was looked at to the end and one whose question was cancelled while it was being read."""

    async def new() -> Any:
        engine = Llava("v", *tiny, threads=1, context=1024)
        await engine.start()
        return engine

    async def story() -> None:
        tokens = Tokens({hashlib.sha256(who.encode()).hexdigest(): who for who in ("ann", "bob")})

        async def told(w: World, who: str, number: int, *pictures: bytes) -> str:
            images = [pb.Image(data=picture) for picture in pictures]
            asked = [pb.Turn(role=pb.ROLE_USER, text="What is this?")]
            bearer = (("authorization", f"Bearer {who}"),)
            # The same session's name: the token makes them two.
            call = w.ask(
                f"r{number}", bearer, turns=asked, images=images, session_id="s", max_tokens=24, model="v"
            )
            return "".join([event.delta.text for event in await rest(call)])

        async with world(tokens, engine=await new()) as fresh:
            expected = await told(fresh, "bob", 1)
            fresh.engine.close()
        async with world(tokens, engine=await new()) as w:
            seen = await told(w, "ann", 1, jpeg(30))
            assert seen != expected  # a picture does change what is said
            assert await told(w, "bob", 2) == expected
            assert await told(w, "ann", 3, jpeg(30)) == seen
            reading = w.ask(
                "r4",
                (("authorization", "Bearer ann"),),
                images=[pb.Image(data=jpeg(90))] * 4,
                session_id="s",
                max_tokens=1000,
            )
            assert (await reading.read()).HasField("accepted")
            stopped = await w.assist.Cancel(
                pb.CancelRequest(request_id="r4"), metadata=(("authorization", "Bearer ann"),)
            )
            assert stopped.stopped
            assert await told(w, "bob", 5) == expected
            w.engine.close()
        await asyncio.sleep(0.1)  # for the loop to reap the processes

    run(story)


def test_what_is_no_picture_is_refused_and_the_next_one_is_seen(tiny: tuple[Path, Path]) -> None:
    async def story() -> None:
        engine = Llava("v", *tiny, threads=1, context=1024)
        await engine.start()
        with pytest.raises(BadImage):
            await answered(engine, look("s", b"\xff\xd8 no jpeg"))
        parts = [part async for part in engine.generate(look("s", jpeg(30)))]
        assert isinstance(parts[-1], Finished)
        assert all(isinstance(part, Piece) for part in parts[:-1])
        assert engine.worker.starts == 1
        await ended(engine)

    run(story)
