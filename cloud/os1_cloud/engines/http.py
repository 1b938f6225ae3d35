"""One HTTP/1.1 request: an answer that comes as a stream of server-sent events, or a status.

upstream and pulse import it. A connection a request: closing it is how every OpenAI-compatible server is told
to stop.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import h11

READ = 64 * 1024
LINE = 1024 * 1024
"""Bytes of one event: a token's is some hundred."""
ERROR = 4096
"""Bytes of a failed answer that are looked at."""
CLOSED = "the connection was closed before an answer"
LATEST_S = 3600.0
"""Of a Retry-After: whoever says later is asked again then."""


class HttpError(Exception):
    """The other side cannot be reached, or does not speak HTTP."""


class HttpStatus(Exception):
    """The answer was not 200."""

    def __init__(self, status: int, body: bytes, retry_after_s: float | None = None) -> None:
        """`retry_after_s`: when to come back, if it said so."""
        super().__init__(str(status))
        self.status, self.body, self.retry_after_s = status, body, retry_after_s


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask."""

    host: str
    port: int
    tls: bool
    path: str


def endpoint(url: str) -> Endpoint:
    """Reads `http://HOST[:PORT]/PATH` or https.

    Raises:
        ValueError: it is neither.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no address; write e.g. http://127.0.0.1:8000/v1")
    tls = parts.scheme == "https"
    return Endpoint(parts.hostname, parts.port or (443 if tls else 80), tls, parts.path.rstrip("/"))


async def events(
    to: Endpoint, path: str, body: bytes, headers: list[tuple[str, str]], connect_s: float
) -> AsyncGenerator[str, None]:
    """The data of each server-sent event in the answer to a POST.

    Closing the iterator closes the connection.

    Raises:
        HttpError: no connection, or it broke.
        HttpStatus: another status than 200.
        ValueError: what comes are no events.
    """
    wanted = [
        ("Content-Type", "application/json"),
        ("Accept", "text/event-stream"),
        ("Content-Length", str(len(body))),
    ]
    request = h11.Request(method="POST", target=to.path + path, headers=[*_fixed(to), *wanted, *headers])
    async with _asked(to, request, body, connect_s) as (connection, reader):
        rest = b""
        async for chunk in _body(connection, reader):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LINE:
                raise ValueError("an event is longer than any can be")
            for line in lines:
                if line.startswith(b"data:"):
                    yield line[5:].strip().decode("utf-8", "replace")


async def status(to: Endpoint, path: str, headers: list[tuple[str, str]], within_s: float) -> int:
    """How the answer to a GET of `path` (the whole, not behind `to.path`) begins.

    Raises:
        HttpError: no connection, or it broke.
        TimeoutError: it took too long.
    """
    request = h11.Request(method="GET", target=path, headers=[*_fixed(to), *headers])
    async with asyncio.timeout(within_s), _asked(to, request, b"", within_s) as (connection, reader):
        while not isinstance(event := await _event(connection, reader), h11.Response):
            if isinstance(event, h11.ConnectionClosed):
                raise HttpError(CLOSED)
        return event.status_code


def _fixed(to: Endpoint) -> list[tuple[str, str]]:
    return [("Host", f"{to.host}:{to.port}"), ("Connection", "close")]


@asynccontextmanager
async def _asked(
    to: Endpoint, request: h11.Request, body: bytes, connect_s: float
) -> AsyncIterator[tuple[h11.Connection, asyncio.StreamReader]]:
    """A connection over which `request` went."""
    reader, writer = await _connected(to, connect_s)
    try:
        connection = h11.Connection(h11.CLIENT)
        for part in (request, *([h11.Data(data=body)] if body else []), h11.EndOfMessage()):
            writer.write(connection.send(part) or b"")
        await writer.drain()
        yield connection, reader
    except (OSError, h11.ProtocolError) as e:
        raise HttpError(f"the connection to {to.host}:{to.port} broke ({type(e).__name__})") from e
    finally:
        writer.transport.abort()  # now, not when the other side agrees


def retry_after_s(value: str, now: datetime) -> float | None:
    """Seconds of a Retry-After, which is a number or a date (RFC 9110, 10.2.3); None if it is neither."""
    try:
        if value.isascii() and value.isdigit():
            wait = float(value)
        else:
            wait = (parsedate_to_datetime(value).replace(tzinfo=UTC) - now).total_seconds()
    except ValueError:
        return None
    return min(max(0.0, wait), LATEST_S)


async def _connected(to: Endpoint, connect_s: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context() if to.tls else None
    try:
        async with asyncio.timeout(connect_s):
            return await asyncio.open_connection(to.host, to.port, ssl=context)
    except (OSError, TimeoutError) as e:
        raise HttpError(f"{to.host}:{to.port} cannot be reached ({type(e).__name__})") from e


async def _body(connection: h11.Connection, reader: asyncio.StreamReader) -> AsyncGenerator[bytes, None]:
    status, failed, wait = 200, b"", None
    while True:
        event = await _event(connection, reader)
        if isinstance(event, h11.Response):
            status = event.status_code
            said = next((value for name, value in event.headers if name == b"retry-after"), None)
            wait = None if said is None else retry_after_s(said.decode("latin-1"), datetime.now(UTC))
        elif isinstance(event, h11.Data):
            if status == 200:
                yield bytes(event.data)
            elif len(failed) < ERROR:
                failed += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            if status != 200:
                raise HttpStatus(status, failed, wait)
            return
        elif isinstance(event, h11.ConnectionClosed):
            raise HttpError(CLOSED)


async def _event(connection: h11.Connection, reader: asyncio.StreamReader) -> Any:
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(READ))
    return event
