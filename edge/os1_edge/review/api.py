"""The wearer's page: reading, correcting and forgetting, over HTTP. Thin: what is decided is decided in
``remember``. Every request has passed ``web.guard``."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, TextIO, cast

from aiohttp import web
from pydantic import ValidationError

from os1_edge.remember.choices import Choices, load_choices
from os1_edge.remember.connection import BadMemory
from os1_edge.remember.edit import edit
from os1_edge.remember.export import export
from os1_edge.remember.forget import Receipt, foresee
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import Embeds, Recall, RecallRules
from os1_edge.remember.rows import now
from os1_edge.remember.shorten import counted, goes
from os1_edge.review import reading
from os1_edge.review.lock import PageLock, TooManyTries, WrongPassphrase
from os1_edge.review.numbers import numbers

TEXT = 2000
"""Characters of a correction or a question."""

UNDO_S = 3600.0
"""How long the page's forgetting can be undone."""


async def _no_companion() -> None:
    """Nobody else holds words of the memory."""


@dataclass
class Review:
    """One memory, reviewed."""

    memory: Memory
    recall: Recall
    log_file: Path
    lock: PageLock
    choices: Choices
    """What holds now."""
    apply: Callable[[Choices], None]
    """Makes the companion, where one lives, keep to the choices from now on."""
    forgot: Callable[[], Awaitable[None]]
    """Has the companion, where one lives, drop its own words of what the memory lost or got back."""

    @classmethod
    def of(
        cls,
        memory: Memory,
        embedder: Embeds,
        file: Path,
        key: bytes,
        log_file: Path,
        choices: Choices,
        apply: Callable[[Choices], None] = lambda choices: None,
        forgot: Callable[[], Awaitable[None]] = _no_companion,
    ) -> Review:
        """For an open memory in ``file``."""
        rules = RecallRules(limit=reading.FOUND, min_similarity=-1.0, tokens=100_000, questions=True)
        recall = Recall(memory.store, embedder, rules)
        return cls(memory, recall, log_file, PageLock.of(file, key), choices, apply, forgot)


REVIEW = web.AppKey("review", Review)

Work = Callable[[web.Request, Review], Awaitable[web.StreamResponse]]


KnownBy = Callable[[web.Request], str]


def add_routes(app: web.Application, review: Review, known_by: KnownBy) -> None:
    """Adds the page's calls to ``app``; ``known_by`` tells the cookie by which a browser is known."""
    app[REVIEW] = review
    for method, path, work in _ROUTES:
        app.router.add_route(method, f"/api/review/{path}", _handled(work, known_by))
    app.router.add_get("/api/review/lock", _lock(known_by))
    app.router.add_post("/api/review/unlock", _unlock(known_by))


def _handled(work: Work, known_by: KnownBy) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        review = request.app[REVIEW]
        if not review.lock.open(known_by(request)):
            raise _Locked(reason="Give the memory's passphrase first.")
        try:
            return await work(request, review)
        except BadMemory as e:
            raise web.HTTPConflict(reason=_line(e)) from None
        except ValueError as e:
            raise web.HTTPBadRequest(reason=_line(e)) from None

    return handle


class _Locked(web.HTTPClientError):
    status_code = 423


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _lock(known_by: KnownBy) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def lock(request: web.Request) -> web.Response:
        review = request.app[REVIEW]
        return web.json_response({"locked": not review.lock.open(known_by(request))})

    return lock


def _unlock(known_by: KnownBy) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def unlock(request: web.Request) -> web.Response:
        review = request.app[REVIEW]
        said = (await json_body(request)).get("passphrase")
        if not isinstance(said, str) or not 0 < len(said) <= TEXT:
            raise web.HTTPBadRequest(reason="Give the passphrase.")
        try:
            await review.lock.unlock(known_by(request), said)
        except TooManyTries:
            raise web.HTTPTooManyRequests(reason="Too many wrong passphrases. Wait a minute.") from None
        except WrongPassphrase:
            raise web.HTTPForbidden(reason="That is not the memory's passphrase.") from None
        return web.json_response({"locked": False})

    return unlock


async def json_body(request: web.Request) -> dict[str, Any]:
    """The request's JSON object.

    Raises:
        web.HTTPBadRequest: it is none.
    """
    try:
        body = await request.json()
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(reason="Send a JSON object.")
    return body


def _date(text: object) -> date:
    try:
        return date.fromisoformat(text if isinstance(text, str) else "")
    except ValueError:
        raise ValueError("a day is written like 2026-03-01") from None


def _time(text: object) -> datetime:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None:
        raise ValueError("a time is written like 2026-03-01T08:30, the wearer's local time")
    return found


# Reading.


async def _days(request: web.Request, review: Review) -> web.Response:
    before = request.query.get("before")
    when = _date(before) if before is not None else None
    return web.json_response(await review.memory.run(reading.days, review.memory.store, when))


async def _day(request: web.Request, review: Review) -> web.Response:
    which = _date(request.query.get("date"))
    return web.json_response(await review.memory.run(reading.day, review.memory.store, which))


async def _profile(_request: web.Request, review: Review) -> web.Response:
    return web.json_response(await review.memory.run(reading.profile, review.memory.store))


async def _search(request: web.Request, review: Review) -> web.Response:
    query = request.query.get("q", "").strip()[:TEXT]
    if not any(c.isalnum() for c in query):
        raise ValueError("say in words what to look for")
    found = await review.memory.run(reading.search, review.memory.store, review.recall, query, now())
    return web.json_response(found)


async def _numbers(_request: web.Request, review: Review) -> web.Response:
    return web.json_response(await asyncio.to_thread(numbers, review.log_file))


# Changing.


async def _edit(request: web.Request, review: Review) -> web.Response:
    body = await json_body(request)
    row, text = reading.row_named(body.get("id")), body.get("text")
    if not isinstance(text, str) or len(text) > TEXT:
        raise ValueError(f"give the words, at most {TEXT} characters")
    memory = review.memory
    kind, number = await memory.run(edit, memory.store, row, text, now(), memory.embed)
    memory.news.set()
    await review.forgot()
    return web.json_response({"id": f"{kind}:{number}"})


async def _foresee(request: web.Request, review: Review) -> web.Response:
    memory = review.memory
    match await _wanted(request, review):
        case ("span", since, until):
            plan = await memory.would_forget_span(since, until)
        case ("about", what):
            plan = await memory.would_forget_about(what)
        case (_, rows):
            plan = await memory.run(foresee, memory.store, rows)
    return web.json_response({"gone": plan.gone, "remade": plan.remade})


async def _forget(request: web.Request, review: Review) -> web.Response:
    memory = review.memory
    match await _wanted(request, review):
        case ("span", since, until):
            receipt = await memory.forget_span(since, until, undo_for_s=UNDO_S)
        case ("about", what):
            receipt = await memory.forget_about(what, undo_for_s=UNDO_S)
        case (_, rows):
            receipt = await memory.forget_rows(rows, undo_for_s=UNDO_S)
    await review.forgot()
    return web.json_response(_told(receipt))


def _told(receipt: Receipt) -> dict[str, Any]:
    until = receipt.undo_until
    return {
        "gone": receipt.gone,
        "remade": receipt.remade,
        "copies": [Path(copy).name for copy in receipt.copies],
        "undo_until": until.isoformat() if until is not None else None,
    }


async def _wanted(request: web.Request, review: Review) -> tuple[Any, ...]:
    """What is to be forgotten: named rows, a span of time, or what speaks of something."""
    body = await json_body(request)
    if "ids" in body:
        ids = body["ids"]
        if not isinstance(ids, list) or not 0 < len(ids) <= 1000:
            raise ValueError("name 1 to 1000 rows")
        rows = [reading.row_named(name) for name in ids]
        for row in rows:
            await review.memory.run(reading.must_exist, review.memory.store, row)
        return "rows", rows
    if "about" in body:
        what = body["about"]
        if not isinstance(what, str) or len(what) > TEXT:
            raise ValueError("say in words what is to be forgotten")
        return "about", what
    since, until = _time(body.get("since")), _time(body.get("until"))
    if until <= since:
        raise ValueError("the span must end after it begins")
    return "span", since, until


async def _undoable(_request: web.Request, review: Review) -> web.Response:
    found = await review.memory.undoable()
    moment = now()
    rows = [
        {"time": u.time.isoformat(), "until": u.until.isoformat(), "gone": u.gone}
        for u in found
        if u.until > moment
    ]
    return web.json_response({"undoable": rows})


async def _undo(_request: web.Request, review: Review) -> web.Response:
    restored = await review.memory.undo_forget(now())
    if restored is not None:
        await review.forgot()
    return web.json_response({"back": restored.back if restored is not None else None})


async def _purge(_request: web.Request, review: Review) -> web.Response:
    return web.json_response({"left": await review.memory.purge()})


async def _choices(_request: web.Request, review: Review) -> web.Response:
    return web.json_response((await _chosen(review)).model_dump())


async def _chosen(review: Review) -> Choices:
    """What holds: an undo, which may be spoken, changes it too (``remember.shorten``)."""
    return await review.memory.run(load_choices, review.memory.store) or review.choices


async def _wanted_choices(request: web.Request) -> Choices:
    try:
        return Choices.model_validate(await json_body(request))
    except ValidationError as e:
        first = e.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


async def _foresee_choices(request: web.Request, review: Review) -> web.Response:
    """What goes where memories are kept for less long; nothing is changed."""
    wanted, before = await _wanted_choices(request), await _chosen(review)
    rows = await review.memory.run(goes, review.memory.store, before, wanted, now())
    return web.json_response({"gone": counted(rows)})


async def _choose(request: web.Request, review: Review) -> web.Response:
    choices, before = await _wanted_choices(request), await _chosen(review)
    gone = await review.memory.choose(before, choices, UNDO_S)
    review.choices = choices
    review.apply(choices)
    if gone:
        await review.forgot()
    return web.json_response({**choices.model_dump(), "gone": gone})


async def _export(_request: web.Request, review: Review) -> web.Response:
    """All that is remembered as JSON lines. By POST, so that no link can set it off."""
    memory = review.memory

    def packed() -> bytes:
        # In memory: plain text of a whole life must not touch the disk.
        held = BytesIO()
        with gzip.open(held, "wt", encoding="utf-8") as out:
            export(memory.store, cast(TextIO, out))
        return held.getvalue()

    response = web.Response(body=await memory.run(packed), content_type="application/x-ndjson")
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Disposition"] = f'attachment; filename="os1-{now():%Y-%m-%d}.jsonl"'
    return response


_ROUTES: tuple[tuple[str, str, Work], ...] = (
    ("GET", "days", _days),
    ("GET", "day", _day),
    ("GET", "profile", _profile),
    ("GET", "search", _search),
    ("GET", "numbers", _numbers),
    ("GET", "undoable", _undoable),
    ("POST", "edit", _edit),
    ("POST", "foresee", _foresee),
    ("POST", "forget", _forget),
    ("POST", "undo", _undo),
    ("POST", "purge", _purge),
    ("POST", "export", _export),
    ("GET", "choices", _choices),
    ("POST", "choices", _choose),
    ("POST", "choices/foresee", _foresee_choices),
)
