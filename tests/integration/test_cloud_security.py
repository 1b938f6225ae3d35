"""Nobody without a right credential is answered, whatever they call; nothing they send hurts the server."""

import asyncio
import hashlib
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from authority import WEEK, Authority
from cloud_world import HERE, PATIENCE_S, Scripted, kinds, refused, timeline, until, world
from grpc_health.v1 import health_pb2

from os1_cloud import guard, health
from os1_cloud import server as serving
from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.engines import Finished, Piece, Prompt
from os1_cloud.server import Server, read_tls
from os1_cloud.speech import Ears, Mouth
from os1_cloud.wearers import OPEN, WearerLimits, Wearers
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import edge_pb2, speech_pb2

TURNS = [pb.Turn(role=pb.ROLE_USER, text="Where are my keys?")]
METHODS = [
    method
    for file in (edge_pb2.DESCRIPTOR, pb.DESCRIPTOR, speech_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for method in service.methods
]
"""As the descriptors have them: a method that is added is tried with every wrong credential by itself."""
REQUESTS: dict[str, Any] = {
    "Ask": pb.AskRequest(request_id="r", turns=TURNS),
    "Recognize": speech_pb2.RecognizeRequest(config=speech_pb2.RecognizeConfig(request_id="r")),
    "Synthesize": speech_pb2.SynthesizeRequest(request_id="r", text="hi"),
}
"""Those that would set something to work; for any other method an empty one does."""
CREDENTIALS: dict[str, Any] = {
    "absent": None,
    "wrong": (("authorization", "Bearer wrong"),),
    "expired": (("authorization", "Bearer expired"),),
    "revoked": (("authorization", "Bearer revoked"),),
    "no bearer": (("authorization", "right"),),
    "twice": (("authorization", "Bearer right"), ("authorization", "Bearer wrong")),
    "the hash": (("authorization", f"Bearer {hashlib.sha256(b'right').hexdigest()}"),),
}


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Recognizer:
    """Counts."""

    name, calls = "ears", 0

    async def transcribe(self, pcm: bytes, language: str) -> str:
        self.calls += 1
        return ""

    def close(self) -> None: ...


class Voice:
    """Counts."""

    name, rate, calls = "mouth", 16_000, 0

    async def speak(self, text: str, speed: float) -> AsyncIterator[bytes]:
        self.calls += 1
        yield b"\0\0"

    def close(self) -> None: ...


def called(channel: Any, method: Any, metadata: Any = None) -> Any:
    """One call of a method, of whatever shape."""
    shape = "_".join("stream" if s else "unary" for s in (method.client_streaming, method.server_streaming))
    call = getattr(channel, shape)(f"/{method.containing_service.full_name}/{method.name}")
    request = REQUESTS[method.name].SerializeToString() if method.name in REQUESTS else b""
    return call(iter([request]) if method.client_streaming else request, metadata=metadata, timeout=10)


async def code_of(call: Any) -> grpc.StatusCode:
    """How far a call comes: OK with its first message."""
    try:
        await (call.read() if hasattr(call, "read") else call)
    except grpc.aio.AioRpcError as e:
        return e.code()
    finally:
        call.cancel()
    return grpc.StatusCode.OK


def test_no_method_answers_without_a_right_token() -> None:
    async def story() -> None:
        tokens = Tokens({digest("right"): "ann", digest("expired"): "bob"}, {digest("expired"): 1.0})
        wearers, ears, mouth = Wearers(WearerLimits()), Recognizer(), Voice()
        speech: Any = {"ears": Ears(ears, wearers), "mouth": Mouth(mouth, wearers)}  # type: ignore[arg-type]
        async with world(tokens, serve=speech) as w:
            for method in METHODS:
                for kind, metadata in CREDENTIALS.items():
                    code, why = await refused(called(w.channel, method, metadata))
                    assert code == grpc.StatusCode.UNAUTHENTICATED, (method.name, kind)
                    assert why.reason == pb.REASON_BAD_TOKEN, (method.name, kind)
            assert (w.engine.begun, ears.calls, mouth.calls) == (0, 0, 0)
            assert w.answerer.live == 0
            right = (("authorization", "Bearer right"),)
            for method in METHODS:
                code = await code_of(called(w.channel, method, right))
                assert code != grpc.StatusCode.UNAUTHENTICATED, method.name

    timeline(story)


def test_reflection_is_off_unless_asked_for_and_needs_a_token() -> None:
    async def listed(channel: Any, metadata: Any) -> list[str]:
        from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        call = stub.ServerReflectionInfo(iter([request]), metadata=metadata)
        reply = await call.read()
        return [s.name for s in reply.list_services_response.service]

    async def code(channel: Any, metadata: Any) -> Any:
        with pytest.raises(grpc.aio.AioRpcError) as found:
            await listed(channel, metadata)
        return found.value.code()

    async def story() -> None:
        tokens = Tokens({digest("right"): "ann"})
        right = (("authorization", "Bearer right"),)
        async with world(tokens) as w:
            assert await code(w.channel, right) == grpc.StatusCode.UNIMPLEMENTED
        async with world(tokens, serve={"reflection": True}) as w:
            assert await code(w.channel, None) == grpc.StatusCode.UNAUTHENTICATED
            assert "os1.assist.v1.Assist" in await listed(w.channel, right)

    timeline(story)


# --- certificates


@asynccontextmanager
async def secured(
    server_files: tuple[Path, Path], client_ca: Path, tokens: Tokens | None = None
) -> AsyncIterator[tuple[int, Scripted]]:
    engine = Scripted()
    tls = read_tls(*server_files, client_ca)
    server = Server(Answerer(engine), tokens, tls, certificates=True)
    try:
        yield await server.start(HERE), engine
    finally:
        await server.drain(0)


def channel_credentials(roots: Path, client: tuple[Path, Path] | None) -> Any:
    pair = (None, None) if client is None else (client[1].read_bytes(), client[0].read_bytes())
    return grpc.ssl_channel_credentials(roots.read_bytes(), *pair)


async def seen(port: int, roots: Path, client: tuple[Path, Path] | None, metadata: Any = None) -> set[Any]:
    """What the methods say to this certificate."""
    credentials = channel_credentials(roots, client)
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
        return {await code_of(called(channel, method, metadata)) for method in METHODS}


def test_no_method_answers_without_a_right_certificate(tmp_path: Path) -> None:
    ours, others = Authority(tmp_path, "ours"), Authority(tmp_path, "others")
    server, ann = ours.issue("server"), ours.issue("ann")
    wrong = {
        "absent": None,
        "another authority's": others.issue("ann"),
        "expired": ours.issue("ann", -4 * WEEK),
        "not valid yet": ours.issue("ann", WEEK),
    }

    async def story() -> None:
        async with secured(server, ours.cert) as (port, engine):
            for kind, client in wrong.items():
                assert await seen(port, ours.cert, client) == {grpc.StatusCode.UNAVAILABLE}, kind
            assert await seen(port, others.cert, ann) == {grpc.StatusCode.UNAVAILABLE}  # nor the reverse
            assert engine.begun == 0
            engine.go.put_nowait(".")
            assert grpc.StatusCode.OK in await seen(port, ours.cert, ann)
            assert engine.begun == 1

    timeline(story)


def test_a_token_works_with_its_own_wearers_certificate_only_whatever_is_called(tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    server, ann, bob = ours.issue("server"), ours.issue("ann"), ours.issue("bob")
    wrong: dict[str, Any] = {
        "no token": (ann, None),
        "another wearer's token": (bob, (("authorization", "Bearer of-ann"),)),
        "a token that was withdrawn": (ann, (("authorization", "Bearer was-anns"),)),
        "a token that has expired": (ann, (("authorization", "Bearer old-of-ann"),)),
    }

    async def story() -> None:
        names = {digest("of-ann"): "ann", digest("old-of-ann"): "ann"}
        tokens = Tokens(names, {digest("old-of-ann"): 1.0})
        async with secured(server, ours.cert, tokens) as (port, engine):
            for kind, (client, metadata) in wrong.items():
                assert await seen(port, ours.cert, client, metadata) == {grpc.StatusCode.UNAUTHENTICATED}, (
                    kind
                )
            assert engine.begun == 0
            right = await seen(port, ours.cert, ann, (("authorization", "Bearer of-ann"),))
            assert grpc.StatusCode.OK in right
            assert grpc.StatusCode.UNAUTHENTICATED not in right

    timeline(story)


def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    (cert, key), ann = old.issue("server"), old.issue("ann")
    renewed_cert, renewed_key = new.issue("server")

    async def story() -> None:
        async with secured((cert, key), old.cert) as (port, _):
            assert grpc.StatusCode.OK in await seen(port, old.cert, ann)
            cert.write_text("half a certifi")  # the old one stays
            assert grpc.StatusCode.OK in await seen(port, old.cert, ann)
            key.write_bytes(renewed_key.read_bytes())
            cert.write_bytes(renewed_cert.read_bytes())
            assert grpc.StatusCode.OK in await seen(port, new.cert, ann)
            assert await seen(port, old.cert, ann) == {grpc.StatusCode.UNAVAILABLE}

    timeline(story)


# --- what strangers send


def test_broken_and_oversized_messages_neither_crash_nor_grow_the_server() -> None:
    methods = [f"/{method.containing_service.full_name}/{method.name}" for method in METHODS]
    chance = random.Random(7)
    valid = pb.AskRequest(request_id="r", turns=TURNS, images=[pb.Image(data=b"x" * 50)]).SerializeToString()

    def broken() -> bytes:
        if chance.random() < 0.5:
            return chance.randbytes(chance.randrange(200))
        data = bytearray(valid)
        for _ in range(chance.randrange(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        return bytes(data[: chance.randrange(len(data) + 1)])

    async def story() -> None:
        async with world() as w:
            w.engine.go.put_nowait(".")
            before, codes = len(asyncio.all_tasks()), set()
            for _ in range(60):
                for method in methods:
                    call = w.channel.stream_stream(method)(iter([broken()]), timeout=5)
                    try:
                        await asyncio.wait_for(call.read(), 5)
                    except grpc.aio.AioRpcError as e:
                        codes.add(e.code())
                    finally:
                        call.cancel()
            assert grpc.StatusCode.INVALID_ARGUMENT in codes
            assert not codes & {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
            with pytest.raises(grpc.aio.AioRpcError) as found:
                await w.edge.Probe(edge_pb2.ProbeRequest(padding=bytes(5 * 1024 * 1024)))
            assert found.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            await until(lambda: w.answerer.live == 0 and len(asyncio.all_tasks()) <= before)
            assert (await w.edge.Probe(edge_pb2.ProbeRequest(padding=b"xy"))).received_bytes == 2

    timeline(story)


# --- places


def bearer(who: str) -> Any:
    return (("authorization", f"Bearer {who}"),)


def test_strangers_take_no_place_of_a_wearers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MESSAGE_S", PATIENCE_S)
    for module, name, most in (
        (serving, "CALLS", 4),
        *((module, name, 4) for module in (serving, health) for name in ("CHECKS", "WATCHES")),
    ):
        monkeypatch.setattr(module, name, most)

    async def story() -> None:
        async with world(Tokens({digest("ann"): "ann"})) as w:
            silent = [w.health.Watch(health_pb2.HealthCheckRequest()) for _ in range(20)]
            await until(lambda: sum(call.done() for call in silent) == 16)
            for path, more in (("/grpc.health.v1.Health/Check", 16), ("/os1.assist.v1.Edge/Hello", 20)):
                done = sum(call.done() for call in silent) + more
                silent += [w.channel.stream_stream(path)() for _ in range(20)]  # their message never comes
                await until(lambda: sum(call.done() for call in silent) == done)  # noqa: B023
            codes = [await call.code() for call in silent if call.done()]
            assert codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == 32
            assert codes.count(grpc.StatusCode.UNAUTHENTICATED) == 20
            running = [w.ask(f"r{n}", bearer("ann")) for n in range(3)]
            for call in running:
                assert (await call.read()).HasField("accepted")
            assert (await w.edge.Hello(edge_pb2.HelloRequest(), metadata=bearer("ann"))).models
            for call in (*silent, *running):
                call.cancel()

    timeline(story)


def test_one_wearer_cannot_take_the_places_of_all() -> None:
    async def story() -> None:
        tokens, speech = (
            Tokens({digest(who): who for who in ("ann", "bob")}),
            Ears(Recognizer(), Wearers(WearerLimits())),
        )  # type: ignore[arg-type]
        limits = WearerLimits(calls=1, asks_per_minute=0)
        async with world(tokens, limits=limits, serve={"ears": speech}) as w:
            ann, resume = bearer("ann"), pb.ResumeRequest(request_id="r", from_seq=1)
            # The same answer read twice and picked up, and sound that never comes.
            opened: list[Any] = []
            for call in (w.ask, w.ask, lambda r, who: w.assist.Resume(resume, metadata=who)):
                opened.append(call("r", ann))
                assert (await opened[-1].read()).HasField("accepted")
            opened.append(w.speech.Recognize(metadata=ann))
            assert len(opened) == OPEN * limits.calls
            await until(lambda: w.answerer.wearers._open["ann"] == len(opened))
            for call in (
                w.ask("r", ann),
                w.assist.Resume(resume, metadata=ann),
                w.speech.Recognize(metadata=ann),
            ):
                code, why = await refused(call)
                assert (code, why.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, pb.REASON_TOO_MANY)
            assert (await w.edge.Hello(edge_pb2.HelloRequest(), metadata=bearer("bob"))).models
            for call in opened:
                call.cancel()
            await until(lambda: not w.answerer.wearers._open)

    timeline(story)


def test_a_client_that_falls_silent_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MESSAGE_S", 0.05)

    async def story() -> None:
        ears = Ears(Recognizer(), Wearers(WearerLimits(calls=0, asks_per_minute=0)))  # type: ignore[arg-type]
        async with world(serve={"ears": ears}) as w:
            config = speech_pb2.RecognizeConfig(request_id="r", sample_rate_hz=16_000)
            begun = w.speech.Recognize()
            await begun.write(speech_pb2.RecognizeRequest(config=config))
            silent = [
                w.channel.stream_stream(f"/{m.containing_service.full_name}/{m.name}")() for m in METHODS
            ]
            for call in (begun, *silent):
                code, why = await refused(call)
                assert (code, why.reason) == (grpc.StatusCode.DEADLINE_EXCEEDED, pb.REASON_EXPIRED)

    timeline(story)


class Sees(Scripted):
    """An engine that looks at pictures."""

    vision = True

    async def generate(self, prompt: Prompt) -> AsyncIterator[Piece | Finished]:  # type: ignore[override]
        self.prompts.append(prompt)
        yield Finished("stop", 1, 1)


def test_a_picture_never_reaches_another_wearers_question() -> None:
    async def story() -> None:
        engine = Sees()
        tokens = Tokens({digest(who): who for who in ("ann", "bob")})
        ann, bob = ((("authorization", f"Bearer {who}"),) for who in ("ann", "bob"))
        async with world(tokens, engine=engine, heartbeat_s=PATIENCE_S) as w:
            data = os.urandom(100)
            sent = pb.Image(data=data, sha256=hashlib.sha256(data).digest())
            named = pb.Image(sha256=sent.sha256)
            assert await kinds(w.ask("a", metadata=ann, images=[sent])) == ["accepted", "done"]
            assert await kinds(w.ask("b", metadata=ann, images=[named])) == ["accepted", "done"]
            code, why = await refused(w.ask("c", metadata=bob, images=[named]))
            assert (code, why.reason) == (grpc.StatusCode.FAILED_PRECONDITION, pb.REASON_NEED_IMAGE)
            assert await kinds(w.ask("d", metadata=bob, session_id="s")) == ["accepted", "done"]
            assert [p.turns[-1].images for p in engine.prompts] == [(data,), (data,), ()]

    timeline(story)
