"""grpc.health.v1, open to whoever balances the load and knows no wearer; strangers are counted.

server imports it.
"""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from os1_cloud.guard import message_of

CHECKS = 256
"""At once. One takes a moment, and whoever sends no message 5 s."""
WATCHES = 64
"""At once: more balancers than stand before any server."""


class Health:
    """What the server says of itself, with places of its own: no stranger takes one of a wearer's."""

    def __init__(self, server: grpc.aio.Server) -> None:
        """Registers the methods at `server`, which takes `CHECKS` + `WATCHES` calls besides the wearers'."""
        self.state = health.aio.HealthServicer()
        self._server = server
        self._open = dict.fromkeys(("Check", "Watch"), 0)
        health_pb2_grpc.add_HealthServicer_to_server(self.state, self)  # type: ignore[arg-type]

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """The generated code adds its handlers twice; this time they are left."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Adds the handlers of `service`, counted."""
        write = health_pb2.HealthCheckResponse.SerializeToString
        check = self._counted("Check", CHECKS, handlers["Check"].unary_unary)
        watch = self._counted("Watch", WATCHES, handlers["Watch"].unary_stream)
        counted: dict[str, Any] = {
            "Check": grpc.stream_unary_rpc_method_handler(check, response_serializer=write),
            "Watch": grpc.stream_stream_rpc_method_handler(watch, response_serializer=write),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, counted),))

    def _counted(self, name: str, most: int, inner: Any) -> Any:
        parse = message_of(health_pb2.HealthCheckRequest.FromString)

        async def call(requests: Any, context: Any) -> Any:
            if self._open[name] >= most:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{most} calls of {name} are open")
            self._open[name] += 1
            try:
                return await inner(await parse(requests, context), context)
            finally:
                self._open[name] -= 1

        return call
