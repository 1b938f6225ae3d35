"""The engine that asks another server: one that speaks the documented protocol, and what can go wrong."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import grpc
import pytest
from cloud_world import refused, world

from os1_cloud.engines import (
    BadImage,
    BadSchema,
    EngineError,
    EngineLost,
    Finished,
    Piece,
    Prompt,
    TooLong,
    Turn,
)
from os1_cloud.engines.http import endpoint, retry_after_s
from os1_cloud.engines.pulse import look
from os1_cloud.engines.upstream import Upstream
from os1_proto.assist.v1 import assist_pb2 as pb

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
JPEG, PNG = b"\xff\xd8jpeg", b"\x89PNGpng"


def chunk(text: str) -> bytes:
    data = text.encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(**part: Any) -> str:
    return f"data: {json.dumps(part)}\n\n"


def said(text: str, finish: str | None = None) -> str:
    return event(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish}])


USAGE = event(
    choices=[],
    usage={"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}},
)
WHOLE = [said(""), said("By the "), said("door"), said("", "stop"), USAGE, "data: [DONE]\n\n"]


class Other:
    """A server that answers each request with what the test wrote down; notes requests and who went away."""

    def __init__(self, parts: list[str | float], status: str = "", body: str = "") -> None:
        self.parts, self.status, self.body = parts, status, body
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.gone = asyncio.Event()
        self.url = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = [line.partition(":") for line in head.split("\r\n")]
        length = int(next(value for key, _, value in lines if key.lower() == "content-length"))
        self.requests.append((head, json.loads(await reader.readexactly(length))))
        if self.status:
            answer = f"HTTP/1.1 {self.status}\r\nContent-Length: {len(self.body)}\r\n\r\n{self.body}"
            writer.write(answer.encode())
        else:
            writer.write(HEAD.encode())
            for part in self.parts:
                if isinstance(part, float):
                    left = asyncio.ensure_future(reader.read())
                    await asyncio.wait({left}, timeout=part)
                    if left.done():
                        self.gone.set()
                        break
                    left.cancel()
                else:
                    writer.write(chunk(part))
                    await writer.drain()
            else:
                writer.write(b"0\r\n\r\n")
        writer.close()


@asynccontextmanager
async def other(
    parts: list[str | float] | None = None, status: str = "", body: str = ""
) -> AsyncIterator[Other]:
    found = Other(list(WHOLE) if parts is None else parts, status, body)
    server = await asyncio.start_server(found._serve, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield found
    finally:
        server.close()
        await server.wait_closed()


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 20))


def prompt(*images: bytes, **fields: Any) -> Prompt:
    return Prompt((Turn("system", "Be brief."), Turn("user", "Where?", images)), 5, **fields)


async def parts_of(engine: Upstream, asked: Prompt) -> list[Piece | Finished]:
    async with aclosing(engine.generate(asked)) as parts:
        return [part async for part in parts]


def test_an_answer_of_the_other_server_comes_piece_by_piece() -> None:
    async def story() -> None:
        async with other() as o:
            engine = Upstream("big", o.url, "qwen", key="k3y")
            found = await parts_of(engine, prompt())
            assert found == [Piece("By the "), Piece("door"), Finished("stop", 9, 3, 4)]
            head, body = o.requests[0]
            assert head.startswith("POST /v1/chat/completions HTTP/1.1")
            assert "Bearer k3y" in head
            assert (body["model"], body["stream"], body["max_tokens"]) == ("qwen", True, 5)
            assert body["messages"][1] == {"role": "user", "content": "Where?"}

    run(story)


def test_an_event_cut_into_single_bytes_is_read_whole() -> None:
    async def story() -> None:
        async with other([letter for part in WHOLE for letter in part]) as o:
            found = await parts_of(Upstream("big", o.url, "m"), prompt())
            assert found == [Piece("By the "), Piece("door"), Finished("stop", 9, 3, 4)]

    run(story)


def test_pictures_schemas_and_beginnings_are_sent_as_the_protocol_says() -> None:
    async def story() -> None:
        async with other() as o:
            engine = Upstream("big", o.url, "m", vision=True)
            await parts_of(engine, prompt(JPEG, PNG))
            kinds = [
                part["image_url"]["url"].split(",")[0]
                for part in o.requests[0][1]["messages"][1]["content"][:2]
            ]
            assert kinds == ["data:image/jpeg;base64", "data:image/png;base64"]
            await parts_of(engine, prompt(json_schema='{"type": "object"}'))
            form = o.requests[1][1]["response_format"]
            assert form["json_schema"]["schema"] == {"type": "object"}
            await parts_of(engine, prompt(prefix="By the"))
            assert o.requests[2][1]["messages"][-1] == {"role": "assistant", "content": "By the"}
            assert o.requests[2][1]["continue_final_message"]

    run(story)


def test_closing_an_answer_hangs_up_at_once() -> None:
    async def story() -> None:
        async with other([said("By"), 10.0]) as o:
            answer = Upstream("big", o.url, "m").generate(prompt())
            assert await anext(answer) == Piece("By")
            await answer.aclose()
            await asyncio.wait_for(o.gone.wait(), 5)

    run(story)


def test_a_server_that_says_nothing_is_given_up_and_hung_up_on() -> None:
    async def story() -> None:
        async with other([said("By"), 10.0]) as o:
            engine = Upstream("big", o.url, "m", silence_s=0.1)
            with pytest.raises(EngineError, match="said nothing"):
                await parts_of(engine, prompt())
            await asyncio.wait_for(o.gone.wait(), 5)

    run(story)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        ("400 Bad Request", '{"error": "maximum context length is 4096"}', TooLong),
        ("400 Bad Request", '{"error": "cannot load image"}', BadImage),
        ("400 Bad Request", '{"error": "invalid schema"}', BadSchema),
        ("401 Unauthorized", "SECRET", EngineError),
        ("500 Internal Server Error", "SECRET", EngineError),
    ],
)
def test_a_refusal_of_the_other_server_is_understood_and_not_quoted(
    status: str, body: str, kind: type[Exception]
) -> None:
    async def story() -> None:
        async with other(status=status, body=body) as o:
            with pytest.raises(kind) as found:
                await parts_of(Upstream("big", o.url, "m"), prompt())
            assert "SECRET" not in str(found.value)

    run(story)


DATE = datetime(2026, 11, 30, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "wait_ms"),
    [
        ("429 Too Many Requests\r\nRetry-After: 7", 7000),
        ("503 Service Unavailable\r\nRetry-After: soon", 1000),
        ("503 Service Unavailable", 1000),
    ],
)
def test_a_busy_server_behind_tells_the_glasses_when_to_come_back(status: str, wait_ms: int) -> None:
    async def story() -> None:
        async with other(status=status) as o, world(engine=Upstream("big", o.url, "m")) as w:  # type: ignore[arg-type]
            code, why = await refused(w.ask())
            assert (code, why.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, pb.REASON_QUEUE_FULL)
            assert why.retry_after_ms == wait_ms

    run(story)


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("0", 0.0),
        ("9" * 400, 3600.0),
        ("-1", None),
        ("", None),
        ("²", None),
        (format_datetime(DATE, usegmt=True), 30.0),
        ("Mon, 30 Nov 2020 12:00:00 GMT", 0.0),
        ("Mon, 99 Nov 2026 12:00:00 GMT", None),
    ],
)
def test_when_to_come_back_is_a_number_or_a_date(value: str, wait_s: float | None) -> None:
    assert retry_after_s(value, DATE - timedelta(seconds=30)) == wait_s


@pytest.mark.parametrize(
    "parts",
    [
        [said("By")],  # ends without an end
        ["data: {half\n\n"],
        [event(error={"message": "SECRET"})],
        ["data: " + "x" * 2_000_000],
        ["data: 7\n\n"],
    ],
)
def test_an_answer_that_breaks_off_is_a_failure_not_an_answer(parts: list[str | float]) -> None:
    async def story() -> None:
        async with other(parts) as o:
            with pytest.raises(EngineError) as found:
                await parts_of(Upstream("big", o.url, "m"), prompt())
            assert "SECRET" not in str(found.value)

    run(story)


def test_nobody_there_is_told() -> None:
    async def story() -> None:
        async with other() as o:
            url = o.url
        with pytest.raises(EngineLost, match="ConnectionRefusedError"):
            await parts_of(Upstream("big", url, "m"), prompt())

    run(story)


def test_nobody_there_is_told_to_the_glasses_with_when_to_come_back() -> None:
    async def story() -> None:
        async with other() as o:
            url = o.url
        async with world(engine=Upstream("big", url, "m")) as w:  # type: ignore[arg-type]
            code, why = await refused(w.ask())
            assert (code, why.reason) == (grpc.StatusCode.UNAVAILABLE, pb.REASON_ENGINE_LOST)
            assert why.retry_after_ms > 0

    run(story)


@asynccontextmanager
async def pages(*statuses: int | None) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that answers GETs with these statuses in turn, None: never; its url, and what it was asked."""
    left, asked = list(statuses), list[str]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split()[1].decode())
        if (status := left.pop(0)) is None:
            await reader.read()
        else:
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", asked
    finally:
        server.close()
        await server.wait_closed()


def test_a_server_is_asked_for_its_health_and_nothing_that_would_disturb_it() -> None:
    async def story() -> None:
        async with pages(200, 404, 503) as (url, asked):
            engine = Upstream("big", url, "m")
            await engine.check()
            await engine.check()  # it has no such page, but it is there
            with pytest.raises(EngineError, match="503"):
                await engine.check()
            assert asked == ["/health"] * 3
        async with pages(404, 503, 404, 200, 503) as (url, asked):
            seen = [await look(endpoint(url), [], starts=True) for _ in range(3)]
            assert seen == [503, 200, 503]
            assert asked == ["/health", "/v1/models", "/health", "/v1/models", "/health"]

    run(story)


def test_a_server_that_never_shows_its_page_is_looked_at_in_bounded_time() -> None:
    async def story() -> None:
        async with pages(None) as (url, _):
            assert await look(endpoint(url), [], within_s=0.1) == "silent"
        assert await look(endpoint(url), [], within_s=5.0) == "unreachable"

    run(story)


def test_a_server_that_has_just_answered_is_asked_nothing_more() -> None:
    async def story() -> None:
        async with other() as o:
            engine = Upstream("big", o.url, "m")
            await parts_of(engine, prompt())
            await engine.check()
            assert len(o.requests) == 1

    run(story)


def test_a_server_whose_answers_never_come_is_ill() -> None:
    async def story() -> None:
        async with other([10.0]) as o:
            engine = Upstream("big", o.url, "m", silence_s=0.1)
            for _ in range(2):
                with pytest.raises(EngineLost):
                    await parts_of(engine, prompt())
        async with pages(200) as (url, _):
            engine._there = endpoint(url)  # its page is well
            with pytest.raises(EngineError, match="never came"):
                await engine.check()

    run(story)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://h/v1", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        Upstream("big", url, "m")
