"""The offload server over gRPC: questions out, events in."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import grpc

from os1_edge import __version__
from os1_edge.offload.channels import Channels, Pair, Trust
from os1_edge.offload.engine import EngineError
from os1_edge.offload.far import FarError, Probed, Question, Step, Stranger, Text
from os1_edge.offload.network import Around, Linux
from os1_edge.offload.offers import PREFIX
from os1_edge.offload.spans import Spans
from os1_edge.offload.wire import failure, read_hello, read_probe, read_step, write_ask
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import assist_pb2_grpc, edge_pb2, edge_pb2_grpc

CANCEL_S = 5.0
"""For a Cancel to come through; the server's own grace is over by then anyway."""

RESUMED_S = 30.0
"""For the rest of an answer that was picked up again."""

HELLO_S = 1.0
"""For a server to say what it is. Nobody waits for it but an answer that goes on at a new connection."""

GREETED_S = 600.0
"""After this it is asked again: gRPC connects anew by itself, maybe to a server of another release."""


class RemoteEngine:
    """A server; see ``Far``."""

    name = "offload server"

    def __init__(
        self,
        server: str,
        token: str | None,
        trust: Trust | None = None,
        around: Around | None = None,
        spans: Spans | None = None,
    ) -> None:
        """Args:
            server: ``host:port``, or several with commas between them: while one fails, the next is asked. A
                server on this machine is asked in plain text.
            token: the wearer's, sent with each call.
            trust: whom to believe.
            around: hints; None: Linux's.
            spans: of its questions; None: none.

        Raises:
            EngineError: the address is none.
        """
        self.around: Around = around or Linux()
        self._channels = Channels(server, trust or Trust())
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._session = uuid.uuid4().hex
        self._spans = spans or Spans()

    async def close(self) -> None:
        """See ``Far``."""
        await self._channels.close()
        await asyncio.to_thread(self._spans.close)

    async def ask(self, question: Question) -> AsyncGenerator[Step, None]:
        """See ``Far``."""
        pair = self._channels.pair
        if question.attempt and pair.failed:
            pair = self._channels.open()
            self._channels.adopt(pair)
        left = max(question.budget.total_s - question.spent_s, 0.001)
        if question.prefix:
            await self._greet(pair, min(left, HELLO_S))
            if pair.offers is None:
                raise FarError("unreachable", f"{self.name}: it does not say what it is")
            if PREFIX not in pair.offers.features:
                raise FarError("unfit", f"{self.name}: it goes on with no answer that others began")
        request = write_ask(question, self._session, pair.offers)
        stub = assist_pb2_grpc.AssistStub(pair.bulk)
        with self._spans.asking(question) as asking:
            metadata = (*self._metadata, ("traceparent", asking.traceparent))
            # Closed here, not by the garbage collector: that is what ends the call.
            call = stub.Ask(request, metadata=metadata, timeout=left)
            async with aclosing(self._steps(call, pair)) as steps:
                async for step in steps:
                    if isinstance(step.event, Text):
                        asking.answered()
                    yield step

    async def resume(self, request_id: str, node: str, from_seq: int) -> AsyncGenerator[Step, None]:
        """See ``Far``. On the control channel, as the other one broke off a moment ago; but the two may lead
        to different servers of one name."""
        pair, begun = self._channels.pair, False
        request = pb.ResumeRequest(request_id=request_id, from_seq=from_seq)
        self._channels.answered(pair, well=False)  # until it does
        for channel in (pair.control, pair.bulk):
            stub = assist_pb2_grpc.AssistStub(channel)
            call = stub.Resume(request, metadata=self._to(node), timeout=RESUMED_S)
            try:
                async with aclosing(self._steps(call, pair)) as steps:
                    async for step in steps:
                        if not begun:
                            begun = True
                            self._channels.answered(pair)
                        yield step
                return
            except FarError as e:
                if e.kind != "unreachable":
                    self._channels.answered(pair, well=e.kind != "ending")
                if begun or e.kind != "lost" or channel is pair.bulk:
                    raise

    async def cancel(self, request_id: str, node: str) -> None:
        """See ``Far``."""
        pair, request = self._channels.pair, pb.CancelRequest(request_id=request_id)
        for channel in (pair.control, pair.bulk):
            stub = assist_pb2_grpc.AssistStub(channel)
            with suppress(grpc.aio.AioRpcError):  # the server's own grace ends it
                if (await stub.Cancel(request, metadata=self._to(node), timeout=CANCEL_S)).stopped:
                    return

    async def probe(self, padding: int, timeout_s: float, *, fresh: bool = False) -> Probed:
        """See ``Far``."""
        pair = self._channels.open() if fresh else self._channels.pair
        adopted = not fresh
        try:
            async with asyncio.timeout(timeout_s) as patience:
                if fresh:  # a call fails as soon as the connection's first try has
                    await self._probed(pair.control, 0, timeout_s)
                began = perf_counter()
                reply = await self._probed(pair.control, padding, timeout_s)
                took = perf_counter() - began
            if fresh:
                self._channels.adopt(pair)
                adopted = True
        except (FarError, TimeoutError) as e:
            self._channels.answered(pair, well=False)
            if isinstance(e, FarError):
                raise
            raise FarError("unreachable", f"{self.name}: no answer to a probe") from None
        finally:
            if not adopted:
                self._channels.discard(pair)
        self._channels.answered(pair, well=not reply.load.draining)
        left = (patience.when() or 0.0) - asyncio.get_running_loop().time()
        if not fresh and left > 0:  # that there is a way is not to be known later for it
            await self._greet(pair, min(left, HELLO_S), reply.node)
        return read_probe(reply, took, pair.offers)

    async def diagnose(self, timeout_s: float) -> Stranger:
        """See ``Far``."""
        return await self._channels.stranger(timeout_s)

    async def _probed(self, channel: Any, padding: int, timeout_s: float) -> Any:
        call = edge_pb2_grpc.EdgeStub(channel).Probe(
            # Random: it must not be compressed on its way.
            edge_pb2.ProbeRequest(padding=os.urandom(padding)),
            metadata=self._metadata,
            timeout=timeout_s,
        )
        try:
            return await call
        except grpc.aio.AioRpcError as e:
            raise failure(e) from None
        finally:
            call.cancel()

    async def _greet(self, pair: Pair, timeout_s: float, node: str = "") -> None:
        """Asks the server what it is, unless it has said so lately. ``node``: who answers there now."""
        async with pair.greeting:
            now, known = asyncio.get_running_loop().time(), pair.offers
            if known is not None and now - pair.greeted_at < GREETED_S and node in ("", known.node):
                return
            call = edge_pb2_grpc.EdgeStub(pair.control).Hello(
                edge_pb2.HelloRequest(client_version=__version__[:32]),
                metadata=self._metadata,
                timeout=timeout_s,
            )
            try:
                pair.offers, pair.greeted_at = read_hello(await call), now
            except grpc.aio.AioRpcError:
                pair.offers = None  # it may be another by now
            finally:
                call.cancel()

    async def _steps(self, call: Any, pair: Pair) -> AsyncGenerator[Step, None]:
        try:
            while (event := await call.read()) is not grpc.aio.EOF:
                if (step := read_step(event)) is not None:
                    yield step
        except grpc.aio.AioRpcError as e:
            told = failure(e)
            if told.kind in ("unreachable", "ending"):
                self._channels.answered(pair, well=False)
            raise told from None
        finally:
            call.cancel()  # a dropped call is never cancelled by itself (grpc#43462)

    def _to(self, node: str) -> tuple[tuple[str, str], ...]:
        """Metadata that leads to the server that has the question."""
        return (*self._metadata, ("os1-node", node)) if node else self._metadata


def read_secret(path: Path | None) -> bytes | None:
    """The bytes of a file named in the settings.

    Raises:
        EngineError: it cannot be read.
    """
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as e:
        raise EngineError(f"{path}: {e.strerror}") from None
