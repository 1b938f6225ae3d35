"""Whoever leaves the machine goes through TLS: a real certificate, and what is wrong with a bad one."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import grpc
import pytest

from os1_cloud.core import Answerer
from os1_cloud.engines import Finished, Piece, Prompt
from os1_cloud.server import Address, ServeError, Server, read_tls
from os1_proto.assist.v1 import edge_pb2, edge_pb2_grpc

HERE = Address("127.0.0.1", 0)


class Mute:
    """An engine for calls that need none."""

    name, context_tokens = "mute", 1

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        yield Finished("stop", 0, 0)

    def close(self) -> None:
        pass


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A new self-signed certificate for localhost and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True, timeout=60
    )
    return cert, key


def test_a_client_that_trusts_the_certificate_gets_through_and_plain_text_does_not(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "a")

    async def story() -> None:
        server = Server(Answerer(Mute()), tls=read_tls(cert, key))
        port = await server.start(HERE)
        trust = grpc.ssl_channel_credentials(cert.read_bytes())
        async with grpc.aio.secure_channel(f"localhost:{port}", trust) as channel:
            hello = await edge_pb2_grpc.EdgeStub(channel).Hello(edge_pb2.HelloRequest(), timeout=20)
            assert hello.models[0].name == "mute"
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as found:
                await edge_pb2_grpc.EdgeStub(channel).Hello(edge_pb2.HelloRequest(), timeout=20)
            assert found.value.code() == grpc.StatusCode.UNAVAILABLE
        await server.drain(0)

    asyncio.run(story())


def test_a_key_of_another_certificate_is_refused_at_the_start(tmp_path: Path) -> None:
    (cert, _), (_, key) = certificate(tmp_path, "a"), certificate(tmp_path, "b")

    async def story() -> None:
        with pytest.raises(ServeError, match="belong together"):
            await Server(Answerer(Mute()), tls=read_tls(cert, key)).start(HERE)

    asyncio.run(story())


def test_files_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "a")
    with pytest.raises(ServeError, match="holds no PEM certificate"):
        read_tls(key, cert)
