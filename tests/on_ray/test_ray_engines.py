"""Real engines on the cluster, made by the app builder of Serve configs and asked through `os1 serve --ray`:
llama.cpp, its eyes, Whisper, Piper, and servers behind a replica. Models that are not pulled are left out."""

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from importlib import util
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "os1_cloud.ray.bench.front", reason="needs Ray: scripts/test-ray installs it and runs these tests"
)

import grpc
import numpy as np
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray_world import APP, Client, World, text, timeline

import os1_models
from os1_cloud.ray.bench.front import RETRYABLE, Front, Told, read
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import edge_pb2, speech_pb2, speech_pb2_grpc

OTHERS = Path(__file__).resolve().parents[1] / "integration"
SERVER = str(OTHERS / "openai_server.py")
SMALL = ("smollm2-135m", "qwen2.5-0.5b")
QUESTION = [pb.Turn(role=pb.ROLE_USER, text="Count from one to fifty, in words.")]


@pytest.fixture(scope="module")
def outside(world: World) -> Iterator[Any]:
    """An OpenAI-compatible server that nobody of ours starts, on the head's address: `start` and `end`."""
    host, port = world.cluster.address.rpartition(":")[0], next(world.cluster._ports)
    running: list[subprocess.Popen[bytes]] = []

    class Outside:
        url = f"http://{host}:{port}/v1"

        def start(self) -> None:
            command = [sys.executable, SERVER, str(port), "--host", host]
            running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))

        def end(self) -> None:
            if running:
                process = running.pop()
                process.kill()
                process.wait()

    there = Outside()
    there.start()
    yield there
    there.end()


@pytest.fixture(scope="module")
def door(world: World, outside: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A front door that has deployed each kind of engine."""
    folder = tmp_path_factory.mktemp("engines")
    own = {"kind": "upstream", "name": "own", "command": [sys.executable, SERVER, "{port}", "--loads", "1"]}
    models: list[dict[str, Any]] = [
        own | {"replicas": {"min": 2, "max": 2}},
        {"kind": "upstream", "name": "outside", "url": outside.url},
    ]
    if (small := next((name for name in SMALL if os1_models.installed(name)), None)) is not None:
        models.append({"kind": "llama", "name": small, "threads": 1, "context": 512})
    for kind, name in (("whisper", "whisper-tiny.en"), ("piper", "piper-joe")):
        if os1_models.installed(name) is not None:
            models.append({"kind": kind, "name": name, "threads": 1})
    if util.find_spec("gguf") is not None:
        weights, projector = _tiny_eyes(folder)
        files = {"path": str(weights), "projector": str(projector), "threads": 1, "context": 1024}
        models.append({"kind": "vision", "name": "eyes", **files})
    config = folder / "server.toml"
    config.write_text(f'listen = "127.0.0.1:0"\nnode = "engines"\nray = "{world.cluster.address}"\n')
    with config.open("a") as file:
        for model in models:
            wanted = {"min": 1, "max": 1, "cpus": 0.1} | model.pop("replicas", {})
            numbers = ", ".join(f"{key} = {value}" for key, value in wanted.items())
            file.write(f"[[models]]\nreplicas = {{ {numbers} }}\n")
            file.writelines(f"{key} = {json.dumps(value)}\n" for key, value in model.items())
    with world.front("engines", "--config", str(config)) as front:
        yield front
    for model in models:
        serve.delete(APP + model["name"], _blocking=False)


def _tiny_eyes(folder: Path) -> tuple[Path, Path]:
    """A vision model with random weights, made as the tests of one machine make it."""
    spec = util.spec_from_file_location("tiny_vlm", OTHERS / "tiny_vlm.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    weights, projector = module.write_tiny_vlm(folder, "llava")
    return weights, projector


def offered(address: str) -> dict[str, edge_pb2.Model]:
    async def story() -> dict[str, edge_pb2.Model]:
        client = Client([address])
        hello = await client.edges[0].Hello(edge_pb2.HelloRequest())
        await client.close()
        return {model.name: model for model in hello.models}

    return asyncio.run(story())


def needs(address: str, *names: str) -> str:
    """The first of `names` that is deployed; the test is skipped where none is."""
    there = offered(address)
    for name in names:
        if name in there:
            return name
    pytest.skip(f"not deployed; run: os1 models pull {names[0]}")


async def ask(client: Client, model: str, words: str, **fields: Any) -> Told:
    """One question to a model."""
    fields.setdefault("turns", [pb.Turn(role=pb.ROLE_USER, text=words)])
    request = pb.AskRequest(request_id=secrets.token_hex(8), model=model, **{"max_tokens": 5, **fields})
    return await read(client.assists[0].Ask(request))


async def replicas(name: str) -> set[int]:
    """The processes of a model's replicas."""
    try:
        found = await serve.get_app_handle(APP + name).broadcast("facts").results_async()
    except (RayError, RayServeException, grpc.RpcError):  # there is none, or one ends now
        return set()
    return {each["pid"] for each in found}


def processes() -> Iterator[tuple[int, list[str]]]:
    """Id and arguments of each."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield int(entry.name), (entry / "cmdline").read_text().split("\0")


def children(of: int, what: str) -> list[int]:
    """The child processes of `of` with `what` among their arguments."""
    found = []
    for pid, words in processes():
        with suppress(OSError):
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == of and what in words:
                found.append(pid)
    return found


def test_a_worker_process_that_dies_in_an_answer_costs_the_wearer_nothing(door: Front) -> None:
    model = needs(door.address, *SMALL)

    async def story() -> None:
        client = Client([door.address])
        [replica] = await replicas(model)
        for number in range(4):  # a machine that stands still for seconds loses an answer of its own accord
            asked = client.assists[0].Ask(
                pb.AskRequest(request_id=client.id(number), turns=QUESTION, model=model, max_tokens=60)
            )
            while not (await asked.read()).HasField("delta"):
                pass
            [worker] = children(replica, "os1_cloud.engines.child")
            os.kill(worker, signal.SIGKILL)
            told = await read(asked)
            if told.code == "OK":
                break
            await _until_answered(client, model, 1)
        assert told.code == "OK"
        assert told.text
        assert await replicas(model) == {replica}
        assert children(replica, "os1_cloud.engines.child") not in ([], [worker])
        await client.close()

    timeline(story)


def test_what_the_voice_of_one_replica_says_the_recogniser_of_another_hears(door: Front) -> None:
    needs(door.address, "piper-joe")
    needs(door.address, "whisper-tiny.en")

    async def story() -> None:
        async with grpc.aio.insecure_channel(door.address) as channel:
            speech = speech_pb2_grpc.SpeechStub(channel)
            words = "Where did I leave my keys? They are on the kitchen table."
            said = speech.Synthesize(speech_pb2.SynthesizeRequest(request_id="s", text=words))
            chunks = [chunk async for chunk in said]
            samples = np.frombuffer(b"".join(c.audio for c in chunks), "<i2").astype(np.float32)
            at = np.arange(0, len(samples), chunks[0].sample_rate_hz / 16_000)
            sound = np.interp(at, np.arange(len(samples)), samples).astype("<i2").tobytes()

            async def requests() -> AsyncIterator[speech_pb2.RecognizeRequest]:
                config = speech_pb2.RecognizeConfig(request_id="r", sample_rate_hz=16_000)
                yield speech_pb2.RecognizeRequest(config=config)
                for start in range(0, len(sound), 32_000):
                    yield speech_pb2.RecognizeRequest(audio=sound[start : start + 32_000])

            heard = [event async for event in speech.Recognize(requests())][-1].final.text
            assert "keys" in heard
            assert "kitchen table" in heard

    timeline(story)


def test_a_picture_is_looked_at_by_the_replica_that_sees(door: Front) -> None:
    needs(door.address, "eyes")
    cv2 = pytest.importorskip("cv2")

    def picture(*colour: int) -> bytes:
        pixels = np.zeros((48, 64, 3), np.uint8)
        pixels[:24] = colour
        return bytes(cv2.imencode(".jpg", pixels)[1])

    async def story() -> None:
        client = Client([door.address])
        turns = [
            pb.Turn(role=pb.ROLE_SYSTEM, text="Be short."),
            pb.Turn(role=pb.ROLE_USER, text="What is it?"),
        ]

        async def seen(picture: bytes) -> Told:
            fields = {"turns": turns, "task": pb.TASK_CAPTION, "max_tokens": 16}
            return await ask(client, "eyes", "", images=[pb.Image(data=picture)], **fields)

        red, blue = await seen(picture(0, 0, 255)), await seen(picture(255, 60, 0))
        assert (red.code, blue.code) == ("OK", "OK")
        assert red.text != blue.text
        assert (await seen(picture(0, 0, 255))).text == red.text
        assert (await seen(b"\xff\xd8 none")).code == "INVALID_ARGUMENT"  # its own word, no failure of it
        await client.close()

    timeline(story)


def test_a_replica_that_has_lost_its_server_is_gone_round_until_that_is_started_again(door: Front) -> None:
    async def story() -> None:
        client = Client([door.address])
        while len(before := await replicas("own")) < 2:  # noqa: ASYNC110 - Serve's state
            await asyncio.sleep(0.1)
        os.kill(min(servers()), signal.SIGKILL)
        for number in range(8):
            told = await ask(client, "own", "hi", session_id=f"s{number}")
            assert (told.code, told.text) == ("OK", text(5))
        died = await ask(
            client, "own", "die"
        )  # in the middle, and at the other replica, if that is back, again
        assert died.code == "UNAVAILABLE"
        assert died.text in (text(2), text(4))
        assert died.retry_ms
        assert (await _until_answered(client, "own")).text == text(5)
        assert await replicas("own") == before
        await client.close()

    timeline(story)


def test_a_replica_whose_server_is_busy_says_so_and_one_whose_server_is_gone_is_replaced(
    door: Front, outside: Any
) -> None:
    async def story() -> None:
        client = Client([door.address])
        assert (await ask(client, "outside", "hi")).text == text(5)
        busy = await ask(client, "outside", "busy")
        assert (busy.code, busy.retry_ms) == ("RESOURCE_EXHAUSTED", 7000)
        before = await replicas("outside")
        outside.end()
        gone = await ask(client, "outside", "hi")
        assert gone.code == "UNAVAILABLE"
        assert gone.retry_ms
        while before & await replicas("outside"):  # noqa: ASYNC110 - Serve's state
            await asyncio.sleep(0.2)
        outside.start()
        assert (await _until_answered(client, "outside")).text == text(5)
        assert not before & await replicas("outside")
        await client.close()

    timeline(story)


async def _until_answered(client: Client, model: str, tokens: int = 5) -> Told:
    while (told := await ask(client, model, "hi", max_tokens=tokens)).code != "OK":
        assert told.code in RETRYABLE
        assert told.retry_ms
        await asyncio.sleep(0.2)
    return told


def test_no_server_is_left_behind_when_its_replica_is_killed(door: Front) -> None:
    """At once, as Ray does with a replica that does not end; and the next replica has a server of its own."""

    async def story() -> None:
        client = Client([door.address])
        while len(before := servers()) < 2:  # noqa: ASYNC110 - the test before killed them
            await asyncio.sleep(0.1)
        os.kill(min(await replicas("own")), signal.SIGKILL)
        while len(before & (now := servers())) == 2 or len(now) < 2:  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.1)
        assert len(servers()) == 2
        assert (await _until_answered(client, "own")).text == text(5)
        await client.close()

    timeline(story)


def servers() -> set[int]:
    """The processes of `own`'s servers."""
    return {pid for pid, words in processes() if words[1:2] == [SERVER] and "--loads" in words}
