"""Nobody without a right credential is answered, whatever they call; nothing they send hurts the server."""

import asyncio
import hashlib
import os
import random
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from cloud_world import HERE, PATIENCE_S, Scripted, kinds, refused, timeline, until, world

from os1_cloud.auth import Tokens
from os1_cloud.core import Answerer
from os1_cloud.engines import Finished, Piece, Prompt
from os1_cloud.server import Server, read_tls
from os1_cloud.speech import Ears, Mouth
from os1_cloud.wearers import WearerLimits, Wearers
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import assist_pb2_grpc, edge_pb2, edge_pb2_grpc, speech_pb2, speech_pb2_grpc

TURNS = [pb.Turn(role=pb.ROLE_USER, text="Where are my keys?")]
RPCS: dict[str, Callable[[Any, Any], Any]] = {
    "Hello": lambda c, m: edge_pb2_grpc.EdgeStub(c).Hello(edge_pb2.HelloRequest(), metadata=m),
    "Probe": lambda c, m: edge_pb2_grpc.EdgeStub(c).Probe(edge_pb2.ProbeRequest(), metadata=m),
    "Ask": lambda c, m: assist_pb2_grpc.AssistStub(c).Ask(
        pb.AskRequest(request_id="r", turns=TURNS), metadata=m
    ),
    "Resume": lambda c, m: assist_pb2_grpc.AssistStub(c).Resume(pb.ResumeRequest(request_id="r"), metadata=m),
    "Cancel": lambda c, m: assist_pb2_grpc.AssistStub(c).Cancel(pb.CancelRequest(request_id="r"), metadata=m),
    "Recognize": lambda c, m: speech_pb2_grpc.SpeechStub(c).Recognize(
        iter([speech_pb2.RecognizeRequest(config=speech_pb2.RecognizeConfig(request_id="r"))]), metadata=m
    ),
    "Synthesize": lambda c, m: speech_pb2_grpc.SpeechStub(c).Synthesize(
        speech_pb2.SynthesizeRequest(request_id="r", text="hi"), metadata=m
    ),
}
"""One call of each method."""
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


def test_the_list_of_methods_is_whole() -> None:
    found = [pb.DESCRIPTOR, edge_pb2.DESCRIPTOR, speech_pb2.DESCRIPTOR]
    methods = {
        m.name for file in found for service in file.services_by_name.values() for m in service.methods
    }
    assert methods == set(RPCS)


def test_no_method_answers_without_a_right_token() -> None:
    async def story() -> None:
        tokens = Tokens({digest("right"): "ann", digest("expired"): "bob"}, {digest("expired"): 1.0})
        wearers, ears, mouth = Wearers(WearerLimits()), Recognizer(), Voice()
        speech: Any = {"ears": Ears(ears, wearers), "mouth": Mouth(mouth, wearers)}  # type: ignore[arg-type]
        async with world(tokens, serve=speech) as w:
            for method, call in RPCS.items():
                for kind, metadata in CREDENTIALS.items():
                    code, why = await refused(call(w.channel, metadata))
                    assert code == grpc.StatusCode.UNAUTHENTICATED, (method, kind)
                    assert why.reason == pb.REASON_BAD_TOKEN, (method, kind)
            assert (w.engine.begun, ears.calls, mouth.calls) == (0, 0, 0)
            assert w.answerer.live == 0
            hello = await RPCS["Hello"](w.channel, (("authorization", "Bearer right"),))
            assert "synthesize" in hello.features

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


class Authority:
    """Signs certificates."""

    def __init__(self, folder: Path, name: str) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("needs the openssl command to make certificates")
        self.folder, self.name = folder, name
        self.cert, self._key = folder / f"{name}-ca.pem", folder / f"{name}-ca.key"
        self._run("req", "-x509", *self._new(self._key), "-subj", f"/CN={name}", "-out", str(self.cert))

    def issue(self, who: str, days: str = "2") -> tuple[Path, Path]:
        """A certificate and its key."""
        base = self.folder / f"{self.name}-{who}"
        cert, key, asked = base.with_suffix(".pem"), base.with_suffix(".key"), base.with_suffix(".csr")
        extra = base.with_suffix(".ext")
        extra.write_text("subjectAltName=DNS:localhost\n")
        self._run("req", *self._new(key), "-subj", f"/CN={who}", "-out", str(asked))
        sign = ["x509", "-req", "-in", str(asked), "-CA", str(self.cert), "-CAkey", str(self._key)]
        self._run(*sign, "-CAcreateserial", "-days", days, "-extfile", str(extra), "-out", str(cert))
        return cert, key

    def _new(self, key: Path) -> list[str]:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key)]

    def _run(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


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


async def seen(port: int, roots: Path, client: tuple[Path, Path] | None, metadata: Any = None) -> Any:
    """The status of a Hello with this certificate."""
    credentials = channel_credentials(roots, client)
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
        try:
            await edge_pb2_grpc.EdgeStub(channel).Hello(
                edge_pb2.HelloRequest(), metadata=metadata, timeout=10
            )
        except grpc.aio.AioRpcError as e:
            return e.code()
        return grpc.StatusCode.OK


def test_a_clients_certificate_opens_the_door_and_one_of_another_authority_does_not(tmp_path: Path) -> None:
    ours, others = Authority(tmp_path, "ours"), Authority(tmp_path, "others")
    server, ann, eve = ours.issue("server"), ours.issue("ann"), others.issue("ann")

    async def story() -> None:
        async with secured(server, ours.cert) as (port, _):
            assert await seen(port, ours.cert, ann) == grpc.StatusCode.OK
            assert await seen(port, ours.cert, None) == grpc.StatusCode.UNAVAILABLE
            assert await seen(port, ours.cert, eve) == grpc.StatusCode.UNAVAILABLE
            assert await seen(port, others.cert, ann) == grpc.StatusCode.UNAVAILABLE  # nor the reverse

    timeline(story)


def test_a_token_works_with_its_own_wearers_certificate_only(tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    server, ann, bob = ours.issue("server"), ours.issue("ann"), ours.issue("bob")

    async def story() -> None:
        tokens = Tokens({digest("of-ann"): "ann"})
        metadata = (("authorization", "Bearer of-ann"),)
        async with secured(server, ours.cert, tokens) as (port, _):
            assert await seen(port, ours.cert, ann, metadata) == grpc.StatusCode.OK
            assert await seen(port, ours.cert, ann) == grpc.StatusCode.UNAUTHENTICATED
            assert await seen(port, ours.cert, bob, metadata) == grpc.StatusCode.UNAUTHENTICATED

    timeline(story)


def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    (cert, key), ann = old.issue("server"), old.issue("ann")
    renewed_cert, renewed_key = new.issue("server")

    async def story() -> None:
        async with secured((cert, key), old.cert) as (port, _):
            assert await seen(port, old.cert, ann) == grpc.StatusCode.OK
            cert.write_text("half a certifi")  # the old one stays
            assert await seen(port, old.cert, ann) == grpc.StatusCode.OK
            key.write_bytes(renewed_key.read_bytes())
            cert.write_bytes(renewed_cert.read_bytes())
            assert await seen(port, new.cert, ann) == grpc.StatusCode.OK
            assert await seen(port, old.cert, ann) == grpc.StatusCode.UNAVAILABLE

    timeline(story)


# --- what strangers send


def test_broken_and_oversized_messages_neither_crash_nor_grow_the_server() -> None:
    methods = [
        f"/{service.full_name}/{method.name}"
        for file in (pb.DESCRIPTOR, edge_pb2.DESCRIPTOR, speech_pb2.DESCRIPTOR)
        for service in file.services_by_name.values()
        for method in service.methods
    ]
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
