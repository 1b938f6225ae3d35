"""Serves the page while the companion lives."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, cast

from aiohttp import WSCloseCode, web

from os1_edge.live.run import Live
from os1_edge.review.api import Review, add_routes, json_body
from os1_edge.web.gate import Gate, Visitor
from os1_edge.web.glasses import LARGEST, TAKEN, BadMessage, BrowserGlasses, close_page, page_of, serve_page
from os1_edge.web.guard import HEADERS, PAIRED, cookie_name, guarded, known_by
from os1_edge.web.pairing import Doors, NotPaired

log = logging.getLogger(__name__)

PAGE = files("os1_edge.web") / "page"

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

HELLO_S = 10.0
"""A page that has not said what it is after this is none."""

PING_S = 15.0
"""A page that does not answer for so long has gone, whatever its socket says."""

BODY_BYTES = 64 * 1024
"""Largest request; a page sends words, never files."""

LIVE: web.AppKey[Live | None] = web.AppKey("live")
GLASSES = web.AppKey("glasses", BrowserGlasses)
DOORS = web.AppKey("doors", Doors)


def make_app(
    live: Live | None,
    glasses: BrowserGlasses,
    doors: Doors,
    hosts: frozenset[str],
    review: Review | None = None,
) -> web.Application:
    """The page's application: of a living companion, of a memory, or of both.

    Args:
        live: the companion.
        glasses: through which it hears, sees and speaks.
        doors: who is let in.
        hosts: names by which the page may be called.
        review: the memory to be reviewed.
    """
    app = web.Application(middlewares=[guarded(doors, hosts)], client_max_size=BODY_BYTES)
    app[LIVE], app[GLASSES], app[DOORS], app[PAIRED] = live, glasses, doors, set()
    if review is not None:
        add_routes(app, review, known_by)
    app.router.add_get("/", _index)
    app.router.add_get("/page/{name}", _file)
    app.router.add_post("/api/pair", _pair)
    app.router.add_post("/api/unpair", _unpair)
    app.router.add_get("/api/state", _state)
    app.router.add_get("/api/glasses", _glasses)
    return app


class PortTaken(OSError):
    """Another program has the port; the message says what to do."""


@asynccontextmanager
async def served(
    app: web.Application, hosts: list[str], port: int, tls: ssl.SSLContext | None
) -> AsyncIterator[int]:
    """The port on which ``app`` is served on each of ``hosts`` until the block is left.

    Raises:
        PortTaken: another program has the port.
        OSError: it cannot be served there.
    """
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2)
    await runner.setup()
    gate, servers = Gate(), list[asyncio.Server]()
    make = cast(Callable[[], asyncio.Protocol], runner.server)
    try:
        for host in hosts:
            try:
                server = await asyncio.get_running_loop().create_server(
                    lambda: Visitor(gate, make, app[PAIRED], tls), host, port
                )
            except OSError as e:
                if e.errno != errno.EADDRINUSE:
                    raise
                raise PortTaken(f"port {port} is taken; choose another with --port") from None
            servers.append(server)
            port = server.sockets[0].getsockname()[1]
        yield port
    finally:
        for server in servers:
            server.close()
        await runner.cleanup()


def own_addresses() -> list[str]:
    """Addresses by which this machine is called on its network."""
    found = set()
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses a route
        found.add(probe.getsockname()[0])
    with contextlib.suppress(OSError):
        found |= {a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    return sorted(str(a) for a in found if not str(a).startswith("127."))


async def _index(_request: web.Request) -> web.Response:
    return web.Response(body=(PAGE / "index.html").read_bytes(), content_type="text/html", charset="utf-8")


async def _file(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    suffix = name[name.rfind(".") :]
    # Only a name out of the folder itself: no path, no other file.
    if suffix not in TYPES or name not in {entry.name for entry in PAGE.iterdir()}:
        raise web.HTTPNotFound(reason="There is no such file.")
    return web.Response(body=(PAGE / name).read_bytes(), content_type=TYPES[suffix], charset="utf-8")


async def _pair(request: web.Request) -> web.Response:
    body = await json_body(request)
    code = body.get("code")
    if not isinstance(code, str):
        raise web.HTTPBadRequest(reason="Give the code.")
    try:
        cookie = request.app[DOORS].pair(code[:64], time.monotonic())
    except NotPaired as e:
        raise web.HTTPForbidden(reason=str(e)) from None
    answer = web.json_response({"paired": True})
    answer.set_cookie(
        cookie_name(request),
        cookie,
        httponly=True,
        samesite="Strict",
        secure=request.secure,
        path="/",
        max_age=30 * 86_400,
    )
    return answer


async def _unpair(request: web.Request) -> web.Response:
    request.app[DOORS].leave(known_by(request))
    answer = web.json_response({"paired": False})
    answer.del_cookie(cookie_name(request), path="/")
    return answer


async def _state(request: web.Request) -> web.Response:
    return web.json_response(snapshot(request.app[LIVE]))


def snapshot(live: Live | None) -> dict[str, Any]:
    """What a page that is opened now has missed."""
    if live is None:
        return {"kind": "snapshot", "live": False}
    return {
        "kind": "snapshot",
        "live": True,
        "state": live.os1.state,
        "now_s": live.clock.now(),
        "latest": list(live.watched.latest.values()),
        "turns": [live.watched.told(trace) for trace in live.watched.newest],
    }


async def _glasses(request: web.Request) -> web.WebSocketResponse:
    live, glasses = request.app[LIVE], request.app[GLASSES]
    if live is None:
        raise web.HTTPNotFound(reason="No companion lives here; start one with: os1 run --browser")
    # Sound and JPEG do not get smaller; packing them would only cost the battery.
    ws = web.WebSocketResponse(heartbeat=PING_S, max_msg_size=LARGEST, compress=False)
    ws.headers.update(HEADERS)
    await ws.prepare(request)
    try:
        hello = await asyncio.wait_for(ws.receive_json(), HELLO_S)
        page = page_of(ws, hello)
        if glasses.refuses(page):
            await ws.send_json({"kind": "taken"})
            await ws.close(code=TAKEN)
            return ws
        with contextlib.closing(_Watching(live, page.event)):
            page.event(snapshot(live))
            await serve_page(ws, glasses, page, lambda message: command(live, message))
        await close_page(page)
        if request.transport is not None:  # one that is too far behind would take nothing of an end either
            request.transport.abort()
    except (TimeoutError, TypeError, ValueError):
        await ws.close(code=WSCloseCode.POLICY_VIOLATION, message=b"no hello")
    except BadMessage as e:
        log.warning("a page was let go: %s", e)
        await ws.close(code=WSCloseCode.POLICY_VIOLATION, message=str(e).encode())
    except Exception as e:
        if not isinstance(e, ConnectionError):
            log.warning("a page was let go: %s", type(e).__name__)
        await ws.close(code=WSCloseCode.INTERNAL_ERROR)
    return ws


class _Watching:
    """A page is told what happens until this is closed."""

    def __init__(self, live: Live, tell: Callable[[dict[str, Any]], None]) -> None:
        self.close = live.watched.watch(tell)


def command(live: Live, message: dict[str, Any]) -> None:
    """What the wearer does on the page.

    Raises:
        BadMessage: nothing that can be done.
    """
    match message["kind"]:
        case "mute":
            live.os1.mute()
        case "unmute":
            live.os1.unmute()
        case "hold":
            live.os1.hold()
        case "release":
            live.os1.release()
        case "look_away":
            live.os1.looking.look_away()
        case "look_back":
            live.os1.looking.look_back()
        case "gaze":
            live.os1.gazing.point(_share(message.get("x")), _share(message.get("y")))
        case _:
            raise BadMessage("an unknown kind")


def _share(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadMessage("no place in the picture")
    return float(value)
