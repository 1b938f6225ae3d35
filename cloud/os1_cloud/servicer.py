"""The RPCs of os1.assist.v1: thin, everything is decided in core and speech and translated in wire.

server imports it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from os1_cloud import __version__, wire
from os1_cloud.admission import Load, Refused, Task
from os1_cloud.core import KEPT_S, Answerer
from os1_cloud.engines import sees
from os1_cloud.events import Event
from os1_cloud.guard import caller, refuse
from os1_cloud.speech import AUDIO_S, CHARACTERS, RATE, Ears, Mouth
from os1_proto.assist.v1 import (
    assist_pb2,
    assist_pb2_grpc,
    edge_pb2,
    edge_pb2_grpc,
    speech_pb2,
    speech_pb2_grpc,
)

log = logging.getLogger(__name__)
FEATURES = ("json_schema", "resume", "answer_prefix", "latest_only", "prime")
TEXT: tuple[Task, ...] = ("reply", "context", "plan", "consolidate")


@asynccontextmanager
async def _refusals(context: Any, node: str) -> AsyncIterator[None]:
    """Ends the call as the wire says when something is refused in the block."""
    try:
        yield
    except Refused as refused:
        await refuse(context, refused, node)


class EdgeServicer(edge_pb2_grpc.EdgeServicer):
    """What the server is, and how busy."""

    def __init__(self, answerer: Answerer, ears: Ears | None, mouth: Mouth | None, node: str) -> None:
        self._answerer, self._ears, self._mouth, self._node = answerer, ears, mouth, node
        self._places = [*answerer.places.values(), *(d.places for d in (ears, mouth) if d is not None)]
        self._state: tuple[int, ...] = ()
        self._load = edge_pb2.Load()

    async def Hello(self, request: edge_pb2.HelloRequest, context: Any) -> edge_pb2.HelloReply:
        """See edge.proto."""
        log.info("hello from a client of version %r", request.client_version[:32])
        answerer, limits = self._answerer, self._answerer.wearers.limits
        models = [
            edge_pb2.Model(
                name=e.name,
                context_tokens=e.context_tokens,
                vision=sees(e),
                tasks=[wire.TASKS[t] for t in (*TEXT, *(["caption"] if sees(e) else []))],  # type: ignore[index]
            )
            for e in answerer.engines
        ]
        features = list(FEATURES)
        features += ["images"] if any(sees(e) for e in answerer.engines) else []
        if self._ears is not None:
            features.append("recognize")
            models.append(edge_pb2.Model(name=self._ears.recognizer.name, tasks=[assist_pb2.TASK_TRANSCRIBE]))
        if self._mouth is not None:
            features.append("synthesize")
            models.append(edge_pb2.Model(name=self._mouth.voice.name, tasks=[assist_pb2.TASK_SYNTHESIZE]))
        return edge_pb2.HelloReply(
            server_version=__version__,
            api_versions=["os1.assist.v1"],
            models=models,
            limits=edge_pb2.Limits(
                request_bytes=wire.REQUEST_BYTES,
                turns=wire.TURNS,
                max_tokens=wire.MAX_TOKENS,
                json_schema_bytes=wire.SCHEMA_BYTES,
                queue=sum(p.queue for p in answerer.places.values()),
                images=wire.IMAGES,
                calls=limits.calls,
                asks_per_minute=limits.asks_per_minute,
                resume_ms=wire.ms(KEPT_S),
                audio_s=AUDIO_S,
            ),
            features=features,
            node=self._node,
        )

    async def Probe(self, request: edge_pb2.ProbeRequest, context: Any) -> edge_pb2.ProbeReply:
        """See edge.proto."""
        state = (self._answerer.draining, *[p.changes for p in self._places])
        if state != self._state:  # asked far more often than it changes
            self._state, self._load = state, self._loaded()
        return edge_pb2.ProbeReply(received_bytes=len(request.padding), load=self._load, node=self._node)

    def _loaded(self) -> edge_pb2.Load:
        answerer = self._answerer
        tasks: dict[Task, Load] = {task: answerer.load(task) for task in TEXT}
        if any(sees(e) for e in answerer.engines):
            tasks["caption"] = answerer.load("caption")
        if self._ears is not None:
            tasks["transcribe"] = self._ears.places.load("transcribe")
        if self._mouth is not None:
            tasks["synthesize"] = self._mouth.places.load("synthesize")
        return wire.write_load(tasks["reply"], answerer.draining, tasks)


class AssistServicer(assist_pb2_grpc.AssistServicer):
    """Answers."""

    def __init__(self, answerer: Answerer, mouth: Mouth | None, node: str) -> None:
        self._answerer, self._mouth, self._node = answerer, mouth, node

    async def Ask(self, request: assist_pb2.AskRequest, context: Any) -> AsyncIterator[assist_pb2.AskEvent]:
        """See assist.proto."""
        async with _refusals(context, self._node):
            trace = dict(context.invocation_metadata() or ()).get("traceparent", "")
            ask = wire.read_ask(request, context.time_remaining(), caller(), str(trace))
            async for message in self._written(self._answerer.ask(ask)):
                yield message

    async def Resume(
        self, request: assist_pb2.ResumeRequest, context: Any
    ) -> AsyncIterator[assist_pb2.AskEvent]:
        """See assist.proto."""
        async with _refusals(context, self._node):
            answer = self._answerer.resume(caller(), wire.read_id(request.request_id), request.from_seq)
            async for message in self._written(answer):
                yield message

    async def Cancel(self, request: assist_pb2.CancelRequest, context: Any) -> assist_pb2.CancelReply:
        """See assist.proto."""
        async with _refusals(context, self._node):
            request_id = wire.read_id(request.request_id)
            stopped = self._answerer.cancel(caller(), request_id)
            if not stopped and self._mouth is not None:
                stopped = self._mouth.cancel(caller(), request_id)
            return assist_pb2.CancelReply(stopped=stopped)
        raise AssertionError("abort returned")

    async def _written(
        self, answer: AsyncGenerator[tuple[int, Event], None]
    ) -> AsyncIterator[assist_pb2.AskEvent]:
        # Closed here, not by the garbage collector: the question must know now that nobody reads along.
        async with aclosing(answer) as numbered:
            async for seq, event in numbered:
                yield wire.write_event(seq, event, self._node)


class SpeechServicer(speech_pb2_grpc.SpeechServicer):
    """Hears and speaks."""

    def __init__(self, ears: Ears | None, mouth: Mouth | None, node: str) -> None:
        self._ears, self._mouth, self._node = ears, mouth, node

    async def Recognize(
        self, request_iterator: AsyncIterator[speech_pb2.RecognizeRequest], context: Any
    ) -> AsyncIterator[speech_pb2.RecognizeEvent]:
        """See speech.proto."""
        async with _refusals(context, self._node):
            if self._ears is None:
                raise Refused("no_such_model", "this server has no speech recogniser")
            first = await anext(aiter(request_iterator), speech_pb2.RecognizeRequest())
            if not first.HasField("config"):
                raise Refused("bad_request", "the first message must be the config")
            config = first.config
            wire.read_id(config.request_id)
            wire.read_config(config, RATE)
            budget = wire.read_budget(config.budget, context.time_remaining())
            heard = self._ears.recognize(
                caller(), budget, config.language, config.partials, _sound(request_iterator)
            )
            seq = 1
            accepted = assist_pb2.Accepted(model=self._ears.recognizer.name, node=self._node)
            yield speech_pb2.RecognizeEvent(seq=seq, accepted=accepted)
            async with aclosing(heard) as transcripts:
                async for each in transcripts:
                    seq += 1
                    words = speech_pb2.Transcript(
                        text=each.text, audio_ms=wire.ms(each.audio_s), took_ms=wire.ms(each.took_s)
                    )
                    if each.final:
                        yield speech_pb2.RecognizeEvent(seq=seq, final=words)
                    else:
                        yield speech_pb2.RecognizeEvent(seq=seq, partial=words)

    async def Synthesize(
        self, request: speech_pb2.SynthesizeRequest, context: Any
    ) -> AsyncIterator[speech_pb2.AudioChunk]:
        """See speech.proto."""
        async with _refusals(context, self._node):
            if self._mouth is None or request.voice not in ("", self._mouth.voice.name):
                raise Refused("no_such_model", "this server has no such voice")
            if not 0 < len(request.text) <= CHARACTERS:
                raise Refused("bad_request", f"text must be 1 to {CHARACTERS} characters")
            speed = request.speed or 1.0
            if not 0.5 <= speed <= 2.0:
                raise Refused("bad_request", "speed must be from 0.5 to 2")
            budget = wire.read_budget(request.budget, context.time_remaining())
            said = self._mouth.synthesize(
                caller(), wire.read_id(request.request_id), budget, request.text, speed
            )
            seq, rate = 0, self._mouth.voice.rate
            async with aclosing(said) as chunks:
                async for chunk in chunks:
                    seq += 1
                    yield speech_pb2.AudioChunk(seq=seq, audio=chunk, sample_rate_hz=rate)
            yield speech_pb2.AudioChunk(seq=seq + 1, sample_rate_hz=rate, last=True)


async def _sound(requests: AsyncIterator[speech_pb2.RecognizeRequest]) -> AsyncIterator[bytes]:
    """The sound in the messages behind the config.

    Raises:
        Refused: one of them is another config.
    """
    async for request in requests:
        if not request.HasField("audio") or len(request.audio) % 2:
            raise Refused("bad_request", "messages behind the config must be whole 16-bit samples")
        yield request.audio
