"""Nobody without a right credential gets to a method, nobody alone takes all places: wraps each as it is
registered.

Not an interceptor: those do not see the client's certificate, and cost every call another handler.
server imports it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol

import grpc
from google.protobuf.message import DecodeError

from os1_cloud import wire
from os1_cloud.admission import Refused
from os1_cloud.auth import Tokens
from os1_cloud.wearers import Wearers
from os1_proto.assist.v1 import assist_pb2 as pb

REFUSAL = "os1-refusal-bin"
"""The trailing metadata that says why."""
MESSAGE_S = 5.0
"""Until a call's first message, and between two of them: a link that is slower than that is of no use to
somebody who waits for a reply, and a call that says nothing holds a place."""
_caller: ContextVar[str] = ContextVar("caller", default="")


def caller() -> str:
    """Whose call is being answered."""
    return _caller.get()


class Calls(Protocol):
    """Is told about each call."""

    def called(self, method: str, code: str, seconds: float) -> None:
        """A call of `method` ended with the status `code`."""
        ...


class Gatekeeper:
    """Tells who calls, by token, by client certificate, or by both, which must then name the same wearer."""

    def __init__(self, tokens: Tokens | None = None, certificates: bool = False) -> None:
        self._tokens, self._certificates = tokens, certificates

    def who(self, context: Any) -> str | None:
        """The caller's name; "" on a server that asks for nothing; None: no right credential."""
        found = ""
        if self._certificates:
            names = context.auth_context().get("x509_common_name", [])
            found = names[0].decode("utf-8", "replace") if len(names) == 1 else ""
            if not found:
                return None
        if self._tokens is not None:
            holder = self._tokens.who(context.invocation_metadata())
            if holder is None or (found and holder != found):
                return None
            found = holder
        return found


class Guarded:
    """A server to register services at: every method of theirs asks the gatekeeper first."""

    def __init__(
        self, server: grpc.aio.Server, keeper: Gatekeeper, wearers: Wearers, watchers: Sequence[Calls] = ()
    ) -> None:
        """Args:
        server: where the methods go.
        keeper: tells who calls.
        wearers: count each wearer's open calls, from before their first message.
        watchers: are told about each call.
        """
        self._server, self._keeper, self._wearers = server, keeper, wearers
        self._watchers = tuple(watchers)
        self._live: set[asyncio.Task[Any]] = set()  # bounded by what the server takes at once
        self._idle = asyncio.Event()
        self._idle.set()
        self._cutting = False

    async def idle(self, grace_s: float) -> bool:
        """Waits until no call is being answered; False if there still was one after `grace_s`."""
        if self._idle.is_set():
            return True
        try:
            await asyncio.wait_for(self._idle.wait(), grace_s)
        except TimeoutError:
            return False
        return True

    async def cut(self, patience_s: float) -> None:
        """Ends the calls that are left as "draining", and waits for them, at most `patience_s`."""
        self._cutting = True
        for task in self._live:
            task.cancel()
        await self.idle(patience_s)

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """The generated code adds its handlers twice; this time they are left."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Adds the handlers of `service`, guarded."""
        guarded = {name: self._guarded(f"{service}/{name}", h) for name, h in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, guarded),))

    def _guarded(self, method: str, handler: Any) -> Any:
        shape = f"{_word(handler.request_streaming)}_{_word(handler.response_streaming)}"
        inner, read = getattr(handler, shape), handler.request_deserializer
        parse = _stream_of(read) if handler.request_streaming else message_of(read)
        wrap = self._streamed if handler.response_streaming else self._single
        # All take a stream: for a single message gRPC itself would wait without a bound, before it tells us.
        make = getattr(grpc, f"stream_{_word(handler.response_streaming)}_rpc_method_handler")
        # No deserializer: what strangers send is not even read.
        return make(wrap(method, inner, parse), response_serializer=handler.response_serializer)

    def _single(self, method: str, inner: Callable[[Any, Any], Any], parse: Parse) -> Any:
        async def call(requests: Any, context: Any) -> Any:
            async with self._answering(method, context):
                return await inner(await parse(requests, context), context)

        return call

    def _streamed(self, method: str, inner: Callable[[Any, Any], Any], parse: Parse) -> Any:
        async def call(requests: Any, context: Any) -> Any:
            async with (
                self._answering(method, context),
                aclosing(inner(await parse(requests, context), context)) as messages,
            ):
                async for message in messages:
                    yield message

        return call

    @asynccontextmanager
    async def _answering(self, method: str, context: Any) -> AsyncIterator[None]:
        """A call from its admission to its end."""
        began, task, who = time.perf_counter(), asyncio.current_task(), await self._admit(method, context)
        assert task is not None  # gRPC runs each call in one
        self._live.add(task)
        self._idle.clear()
        try:
            yield
        except asyncio.CancelledError:
            if not self._cutting or context.code():  # its client went away, or it just ended by itself
                raise
            task.uncancel()
            await refuse(context, Refused("draining", "this server ends now; ask another"))
        finally:
            self._live.discard(task)
            if not self._live:
                self._idle.set()
            self._wearers.left(who)
            self._told(method, context, began)

    async def _admit(self, method: str, context: Any) -> str:
        """Who calls; they are counted."""
        began = time.perf_counter()
        try:
            who = self._keeper.who(context)
            if who is None:
                message = (
                    "send the metadata 'authorization: Bearer TOKEN' with a token that this server knows"
                )
                await _abort(context, grpc.StatusCode.UNAUTHENTICATED, message, _BAD_TOKEN)
            no = self._wearers.entered(who)
            if no is not None:
                await refuse(context, no)
        except BaseException:
            self._told(method, context, began)
            raise
        _caller.set(who)
        return who

    def _told(self, method: str, context: Any, began: float) -> None:
        if self._watchers:
            code = context.code() or 0
            name = code.name if isinstance(code, grpc.StatusCode) else _NAMES[code]
            for watcher in self._watchers:
                watcher.called(method, name, time.perf_counter() - began)


Parse = Callable[[Any, Any], Awaitable[Any]]
_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}


def _word(streams: bool) -> str:
    return "stream" if streams else "unary"


def message_of(read: Callable[[bytes], Any]) -> Parse:
    """Reads a call's one message, which must come within `MESSAGE_S`."""

    async def parse(requests: AsyncIterator[bytes], context: Any) -> Any:
        request = await _next(aiter(requests), context)
        if request is None:
            await refuse(context, Refused("bad_request", "there is no message"))
        return await _read(read, request, context)

    return parse


def _stream_of(read: Callable[[bytes], Any]) -> Parse:
    async def parse(requests: AsyncIterator[bytes], context: Any) -> Any:
        async def messages() -> AsyncIterator[Any]:
            source = aiter(requests)
            while (request := await _next(source, context)) is not None:
                yield await _read(read, request, context)

        return messages()

    return parse


async def _next(requests: AsyncIterator[bytes], context: Any) -> bytes | None:
    """The next message; None: there are no more."""
    try:
        async with asyncio.timeout(MESSAGE_S):
            return await anext(requests, None)
    except TimeoutError:
        await refuse(context, Refused("expired", f"the client sent nothing for {MESSAGE_S:.0f} s"))


async def _read(read: Callable[[bytes], Any], request: bytes, context: Any) -> Any:
    try:
        return read(request)
    except DecodeError:
        await refuse(context, Refused("bad_request", "the message cannot be read"))


_BAD_TOKEN = pb.Refusal(reason=pb.REASON_BAD_TOKEN)


async def refuse(context: Any, refused: Refused, node: str = "") -> NoReturn:
    """Ends the call as the wire says."""
    code, why = wire.write_refusal(refused, node)
    await _abort(context, code, str(refused), why)


async def _abort(context: Any, code: grpc.StatusCode, message: str, why: pb.Refusal) -> NoReturn:
    await context.abort(code, message, ((REFUSAL, why.SerializeToString()),))
    raise AssertionError("abort returned")
