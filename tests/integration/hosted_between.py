"""A server between the glasses and the real one, whose operator makes what he likes of its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from hosted_world import Server


class Between(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc's stubs know no base
    """Passes every call on, and its answer back as ``makes(method, answer)`` has it."""

    def __init__(self, real: Server) -> None:
        self.makes: Callable[[str, bytes], bytes] = lambda method, answer: answer
        options, at = [("grpc.max_receive_message_length", -1)], real.url.rpartition("/")[2]
        if real.ca_file:
            trusted = grpc.ssl_channel_credentials(Path(real.ca_file).read_bytes())
            self._channel = grpc.secure_channel(at, trusted, options)
        else:
            self._channel = grpc.insecure_channel(at, options)

    def service(self, details: Any) -> Any:
        call = self._channel.unary_unary(details.method)
        method = details.method.rpartition("/")[2]
        said = [(k, v) for k, v in details.invocation_metadata if k == "authorization"]

        def answer(request: bytes, context: Any) -> bytes:
            try:
                found = call(request, timeout=30, metadata=said)
            except grpc.RpcError as e:
                context.abort(e.code(), e.details())
            return self.makes(method, found)

        return grpc.unary_unary_rpc_method_handler(answer)

    def close(self) -> None:
        self._channel.close()


@contextmanager
def between(real: Server) -> Iterator[tuple[str, Between]]:
    """The URL to speak to, and what passes on what is said there."""
    handler = Between(real)
    server = grpc.server(ThreadPoolExecutor(8), (handler,), options=[("grpc.max_send_message_length", -1)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}", handler
    finally:
        server.stop(0).wait()
        handler.close()
