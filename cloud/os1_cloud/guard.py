"""Nobody without a right credential gets to a method: wraps each as it is registered.

Not an interceptor: those do not see the client's certificate, and cost every call another handler.
server imports it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol

import grpc

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
        inner, wrap = getattr(handler, shape), self._streamed if handler.response_streaming else self._single
        make = getattr(grpc, f"{shape}_rpc_method_handler")
        return make(
            wrap(method, inner),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _single(self, method: str, inner: Callable[[Any, Any], Any]) -> Any:
        async def call(request: Any, context: Any) -> Any:
            began = time.perf_counter()
            try:
                await self._admit(context)
                return await inner(request, context)
            finally:
                self._told(method, context, began)

        return call

    def _streamed(self, method: str, inner: Callable[[Any, Any], Any]) -> Any:
        async def call(request: Any, context: Any) -> Any:
            began = time.perf_counter()
            try:
                await self._admit(context)
                async with aclosing(inner(request, context)) as messages:
                    async for message in messages:
                        yield message
            finally:
                self._told(method, context, began)

        return call

    async def _admit(self, context: Any) -> None:
        who = self._keeper.who(context)
        if who is None:
            await _refuse(context)
        _caller.set(who)

    def _told(self, method: str, context: Any, began: float) -> None:
        if self._watchers:
            code = context.code()
            name = (
                "OK"
                if not code
                else grpc.StatusCode(code).name
                if not isinstance(code, int)
                else _NAMES[code]
            )
            for watcher in self._watchers:
                watcher.called(method, name, time.perf_counter() - began)


_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}


def _word(streams: bool) -> str:
    return "stream" if streams else "unary"


async def _refuse(context: Any) -> NoReturn:
    refusal = pb.Refusal(reason=pb.REASON_BAD_TOKEN).SerializeToString()
    message = "send the metadata 'authorization: Bearer TOKEN' with a token that this server knows"
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, message, ((REFUSAL, refusal),))
    raise AssertionError("abort returned")
