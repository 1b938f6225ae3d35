"""Nobody without a right credential gets to a method: wraps each as it is registered.

Not an interceptor: those do not see the client's certificate, and cost every call another handler.
server imports it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol

import grpc
from google.protobuf.message import DecodeError

from os1_cloud.auth import Tokens
from os1_proto.assist.v1 import assist_pb2 as pb

REFUSAL = "os1-refusal-bin"
"""The trailing metadata that says why."""
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

    def __init__(self, server: grpc.aio.Server, keeper: Gatekeeper, watchers: Sequence[Calls] = ()) -> None:
        self._server, self._keeper, self._watchers = server, keeper, tuple(watchers)

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """The generated code adds its handlers twice; this time they are left."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Adds the handlers of `service`, guarded."""
        guarded = {name: self._guarded(f"{service}/{name}", h) for name, h in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, guarded),))

    def _guarded(self, method: str, handler: Any) -> Any:
        shape = f"{_word(handler.request_streaming)}_{_word(handler.response_streaming)}"
        inner, read = getattr(handler, shape), handler.request_deserializer
        parse = _stream_of(read) if handler.request_streaming else _message_of(read)
        wrap = self._streamed if handler.response_streaming else self._single
        make = getattr(grpc, f"{shape}_rpc_method_handler")
        # No deserializer: what strangers send is not even read.
        return make(wrap(method, inner, parse), response_serializer=handler.response_serializer)

    def _single(self, method: str, inner: Callable[[Any, Any], Any], parse: Parse) -> Any:
        async def call(request: Any, context: Any) -> Any:
            began = time.perf_counter()
            try:
                await self._admit(context)
                return await inner(await parse(request, context), context)
            finally:
                self._told(method, context, began)

        return call

    def _streamed(self, method: str, inner: Callable[[Any, Any], Any], parse: Parse) -> Any:
        async def call(request: Any, context: Any) -> Any:
            began = time.perf_counter()
            try:
                await self._admit(context)
                async with aclosing(inner(await parse(request, context), context)) as messages:
                    async for message in messages:
                        yield message
            finally:
                self._told(method, context, began)

        return call

    async def _admit(self, context: Any) -> None:
        who = self._keeper.who(context)
        if who is None:
            message = "send the metadata 'authorization: Bearer TOKEN' with a token that this server knows"
            await _refuse(context, "bad_token", message)
        _caller.set(who)

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


def _message_of(read: Callable[[bytes], Any]) -> Parse:
    async def parse(request: bytes, context: Any) -> Any:
        try:
            return read(request)
        except DecodeError:
            await _refuse(context, "bad_request", "the message cannot be read")

    return parse


def _stream_of(read: Callable[[bytes], Any]) -> Parse:
    async def parse(requests: AsyncIterator[bytes], context: Any) -> Any:
        one = _message_of(read)

        async def messages() -> AsyncIterator[Any]:
            async for request in requests:
                yield await one(request, context)

        return messages()

    return parse


_REFUSALS: dict[str, tuple[grpc.StatusCode, pb.Reason.ValueType]] = {
    "bad_token": (grpc.StatusCode.UNAUTHENTICATED, pb.REASON_BAD_TOKEN),
    "bad_request": (grpc.StatusCode.INVALID_ARGUMENT, pb.REASON_BAD_REQUEST),
}


async def _refuse(context: Any, why: str, message: str) -> NoReturn:
    code, reason = _REFUSALS[why]
    await context.abort(code, message, ((REFUSAL, pb.Refusal(reason=reason).SerializeToString()),))
    raise AssertionError("abort returned")
