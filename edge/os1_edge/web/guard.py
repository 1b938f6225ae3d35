"""What every request passes: the right host, the page's own origin, a paired browser; and the headers that
keep what is shown data.

The page holds a person's memory. So: no other site may call it (Origin, and SameSite cookies), no name that
was made to point here may (Host: DNS rebinding), nothing is loaded from elsewhere and no text becomes markup
(Content-Security-Policy; the scripts never use innerHTML).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from os1_edge.web.pairing import Doors

COOKIE = "os1-{port}"
"""A browser sends a cookie to every port of a host: two companions of one machine must not share one."""

PAIRED: web.AppKey[set[Any]] = web.AppKey("paired")
"""Protocols of the connections over which a paired browser has asked; ``gate.Visitor`` takes them out."""

PATIENCE_S = 120.0
"""A request that is not answered by then is given up, such as one whose body never comes. Not for sockets.
Forgetting in a big memory takes seconds, exporting one a minute."""

OPEN = frozenset(("/", "/api/pair"))
"""What a browser may ask for before it is paired; so are the page's own files, which hold nothing."""

SAFE_METHODS = frozenset(("GET", "HEAD"))

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "media-src 'self' blob:; connect-src 'self'; worker-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(self), geolocation=()",
    "Cache-Control": "no-store",
}


def guarded(doors: Doors, hosts: frozenset[str], now: Callable[[], float] = time.monotonic) -> Middleware:
    """The middleware.

    Args:
        doors: who is paired.
        hosts: names and addresses, without port, by which the page may be called.
        now: seconds that only grow.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = refused(request, doors, hosts, now())
        if refusal is not None:
            return _answer(*refusal)
        if doors.knows(known_by(request), now()):
            request.app[PAIRED].add(request.protocol)
        try:
            async with asyncio.timeout(None if request.path == "/api/glasses" else PATIENCE_S):
                response = await handler(request)
        except TimeoutError:
            return _answer(408, "That took too long.")
        except web.HTTPException as e:
            response = _answer(e.status, e.reason) if e.status >= 400 else e
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return guard


def refused(
    request: web.BaseRequest, doors: Doors, hosts: frozenset[str], now_s: float
) -> tuple[int, str] | None:
    """Status and words, where the request may not be answered."""
    host = request.headers.get("Host", "")
    if _split(f"//{host}")[0] not in hosts:
        return 421, "This page is not served under that name."
    origin = request.headers.get("Origin")
    socket = request.headers.get("Upgrade", "").lower() == "websocket"
    needed = socket or request.method not in SAFE_METHODS
    foreign = _split(origin)[1] != host if origin is not None else needed
    site = request.headers.get("Sec-Fetch-Site", "none")
    if foreign or (site not in ("same-origin", "none") and request.path != "/"):
        return 403, "Only the companion's own page may ask for that."
    if request.path in OPEN or request.path.startswith("/page/"):
        return None
    if not doors.knows(known_by(request), now_s):
        return 401, "This browser is not paired."
    return None


def _split(url: str) -> tuple[str, str]:
    """Name, and name with port; empty where it is no address."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.netloc
    except ValueError:
        return "", ""


def _answer(status: int, words: str) -> web.Response:
    return web.json_response({"error": words}, status=status, headers=HEADERS)


def cookie_name(request: web.BaseRequest) -> str:
    """The cookie by which a browser is known on this port."""
    return COOKIE.format(port=_split(f"//{request.headers.get('Host', '')}")[1].rpartition(":")[2])


def known_by(request: web.BaseRequest) -> str:
    """That cookie's value; empty where there is none."""
    return request.cookies.get(cookie_name(request), "")
