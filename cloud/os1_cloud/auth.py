"""Who calls: bearer tokens, of which the server knows only the SHA-256.

The file has one token a line, `NAME SHA256HEX`; `#` begins a comment. server and servicer import this.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

import grpc

from os1_proto.assist.v1 import assist_pb2 as pb

OPEN = ("/grpc.health.v1.Health/",)
"""Calls without a token: whoever balances the load asks for the health and knows no wearer."""
REFUSAL = "os1-refusal-bin"
"""The trailing metadata that says why."""
_LINE = re.compile(r"([A-Za-z0-9._@-]{1,64})\s+([0-9a-f]{64})")


class BadTokens(Exception):
    """The file of tokens cannot be used."""


class Tokens:
    """Names by the hash of their token."""

    def __init__(self, names: dict[str, str]) -> None:
        """`names` maps SHA-256 in lower-case hex to the name of who holds the token."""
        self._names = names

    def who(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
        """The name of the caller with this metadata, None if its token is missing or wrong."""
        sent = [value for key, value in metadata or () if key == "authorization"]
        if len(sent) != 1 or not isinstance(sent[0], str) or not sent[0].startswith("Bearer "):
            return None
        digest = hashlib.sha256(sent[0].removeprefix("Bearer ").encode()).hexdigest()
        found = [name for known, name in self._names.items() if hmac.compare_digest(known, digest)]
        return found[0] if found else None


def load_tokens(path: Path) -> Tokens:
    """Reads the file of tokens.

    Raises:
        BadTokens: it cannot be read, holds no token, or has a line that is none.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise BadTokens(f"the tokens in {path} cannot be read: {e}") from e
    names: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise BadTokens(f"{path}, line {number}: expected NAME and the token's SHA-256 in lower-case hex")
        names[match[2]] = match[1]
    if not names:
        raise BadTokens(f"{path} holds no token")
    return Tokens(names)


class Guard(grpc.aio.ServerInterceptor):
    """Ends every call without a right token with UNAUTHENTICATED."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(handler_call_details)
        call: Any = handler_call_details
        if (
            handler is None
            or call.method.startswith(OPEN)
            or self._tokens.who(call.invocation_metadata) is not None
        ):
            return handler
        # For a streamed method as well: a call that is aborted before its first message has no shape.
        return grpc.unary_unary_rpc_method_handler(_refuse)


async def _refuse(_request: Any, context: Any) -> NoReturn:
    refusal = pb.Refusal(reason=pb.REASON_BAD_TOKEN).SerializeToString()
    message = "send the metadata 'authorization: Bearer TOKEN' with a token that this server knows"
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, message, ((REFUSAL, refusal),))
    raise AssertionError("abort returned")
