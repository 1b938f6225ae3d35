"""`os1 serve` as its own process with a real model, and what it says when it cannot start."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner

import os1_models
from os1_cloud.address import ServeError
from os1_cloud.engines import Prompt, Turn
from os1_cloud.engines.llama import Llama
from os1_cloud.settings import read_settings
from os1_cloud.token_cli import token
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import assist_pb2_grpc, edge_pb2, edge_pb2_grpc

PATIENCE_S = 120
COMMAND = [sys.executable, "-m", "os1_cloud", "--threads", "1"]
"""One thread: two of them on cores that are busy otherwise wait for each other."""
QUESTION = [pb.Turn(role=pb.ROLE_USER, text="Name three colours, with commas.")]


@pytest.fixture(scope="module")
def model() -> str:
    """The smallest language model that is pulled."""
    for name in ("smollm2-135m", "qwen2.5-0.5b"):
        if os1_models.installed(name) is not None:
            return name
    pytest.skip("no small language model is pulled; run: os1 models pull qwen2.5-0.5b")


@contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], grpc.Channel]]:
    """A server on a free port and a channel to it; ended by its id."""
    process = subprocess.Popen(
        [*COMMAND, "--listen", "127.0.0.1:0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"os1 serve: ready on (127\.0\.0\.1:\d+) \(.*\), model (\S+)\n", line)
        assert found, f"{line!r}, {process.stderr and process.poll() is not None and process.stderr.read()}"
        with grpc.insecure_channel(found[1]) as channel:
            yield process, channel
    finally:
        process.kill()
        process.communicate()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


@pytest.mark.models
def test_a_real_question_is_answered_and_sigterm_lets_the_next_one_end(model: str) -> None:
    with served("--model", model, "--grace", str(PATIENCE_S)) as (process, channel):
        edge, assist = edge_pb2_grpc.EdgeStub(channel), assist_pb2_grpc.AssistStub(channel)
        hello = edge.Hello(edge_pb2.HelloRequest(client_version="test"), timeout=PATIENCE_S)
        assert hello.models[0].name == model
        assert edge.Probe(edge_pb2.ProbeRequest(padding=os.urandom(32 * 1024))).received_bytes == 32 * 1024

        request = pb.AskRequest(request_id="first", turns=QUESTION, max_tokens=24)
        events = list(assist.Ask(request, timeout=PATIENCE_S))
        kinds = [e.WhichOneof("event") for e in events]
        assert kinds[0] == "accepted"
        assert kinds[-1] == "done"
        assert set(kinds[1:-1]) - {"progress"} == {"delta"}
        assert [e.seq for e in events] == list(range(1, len(events) + 1))
        assert "".join(e.delta.text for e in events).strip()
        assert 0 < events[-1].done.answer_tokens <= 24

        running = assist.Ask(
            pb.AskRequest(request_id="second", turns=QUESTION, max_tokens=12), timeout=PATIENCE_S
        )
        assert next(running).WhichOneof("event") == "accepted"
        process.send_signal(signal.SIGTERM)
        assert [e.WhichOneof("event") for e in running][-1] == "done"
        code, out, err = ended(process)
        assert (code, out) == (0, ""), err
        assert "colours" not in err


@pytest.mark.models
def test_a_cancelled_answer_frees_the_real_engine_and_leaves_no_trace_in_the_next(model: str) -> None:
    with served("--model", model) as (_, channel):
        assist = assist_pb2_grpc.AssistStub(channel)

        def answer(request_id: str) -> str:
            request = pb.AskRequest(request_id=request_id, turns=QUESTION, max_tokens=12, session_id="s")
            return "".join(e.delta.text for e in assist.Ask(request, timeout=PATIENCE_S))

        before = answer("before")
        story = [pb.Turn(role=pb.ROLE_USER, text="Count from one to five hundred, in words, with no pause.")]
        long = assist.Ask(pb.AskRequest(request_id="long", turns=story, max_tokens=1024, session_id="s"))
        while next(long).WhichOneof("event") != "delta":
            pass
        long.cancel()
        assert answer("after") == before


@pytest.mark.models
def test_a_closed_answer_stops_the_model_long_before_its_bound(model: str) -> None:
    engine = Llama(model, os1_models.path(model), threads=1, context=1024)
    endless = '{"type": "array", "items": {"type": "integer"}, "minItems": 400}'
    prompt = Prompt((Turn("user", "Count."),), max_tokens=400, json_schema=endless)

    async def story() -> None:
        await engine.start()
        answer = engine.generate(prompt)
        await anext(answer)
        began = time.monotonic()
        await answer.aclose()
        assert time.monotonic() - began < 2.0  # it was told to stop, not killed
        assert engine.worker.starts == 1
        engine.close()
        await asyncio.sleep(0.1)  # for the loop to reap the process

    asyncio.run(story())


@pytest.mark.models
def test_a_schema_is_obeyed_and_a_bad_or_endless_request_refused(model: str) -> None:
    schema = '{"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}'
    with served("--model", model) as (_, channel):
        assist = assist_pb2_grpc.AssistStub(channel)
        request = pb.AskRequest(request_id="json", turns=QUESTION, json_schema=schema, max_tokens=40)
        text = "".join(e.delta.text for e in assist.Ask(request, timeout=PATIENCE_S))
        assert re.fullmatch(r'\{\s*"yes"\s*:\s*(true|false)\s*\}\s*', text)
        endless = [pb.Turn(role=pb.ROLE_USER, text="word " * 5000)]
        for bad, reason in (
            (pb.AskRequest(request_id="a", turns=QUESTION, json_schema="{"), pb.REASON_BAD_SCHEMA),
            (pb.AskRequest(request_id="b", turns=endless), pb.REASON_TOO_LONG),
        ):
            with pytest.raises(grpc.RpcError) as found:
                list(assist.Ask(bad, timeout=PATIENCE_S))
            assert found.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            trailing = dict(found.value.trailing_metadata())
            assert pb.Refusal.FromString(trailing["os1-refusal-bin"]).reason == reason


@pytest.mark.models
def test_tokens_from_a_file_guard_the_served_port(model: str, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"ann {sha256(b'right').hexdigest()}\n")
    with served("--model", model, "--tokens", str(tmp_path / "tokens")) as (process, channel):
        edge = edge_pb2_grpc.EdgeStub(channel)
        edge.Hello(edge_pb2.HelloRequest(), metadata=(("authorization", "Bearer right"),))
        with pytest.raises(grpc.RpcError) as found:
            edge.Hello(edge_pb2.HelloRequest(), metadata=(("authorization", "Bearer wrong"),))
        assert found.value.code() == grpc.StatusCode.UNAUTHENTICATED
        process.send_signal(signal.SIGINT)
        assert ended(process)[0] == 0


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (["--listen", "nowhere"], 2, "HOST:PORT"),
        (["--listen", "0.0.0.0:0"], 2, "--tls-cert"),
        (["--listen", "0.0.0.0:0", "--tls-cert", "c", "--tls-key", "k"], 2, "--tokens"),
        (["--tls-cert", "c"], 2, "belong together"),
        (["--threads", "0"], 2, "--threads"),
        (["--client-ca", "c"], 2, "--client-ca"),
        (["--tokens", "/nonexistent/tokens"], 1, "cannot be read"),
        (["--tls-cert", "/nonexistent/c", "--tls-key", "/nonexistent/k"], 1, "cannot be read"),
        (["--model", "no-such-model"], 1, "no-such-model"),
    ],
)
def test_a_server_that_cannot_start_says_why(options: list[str], code: int, word: str) -> None:
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (code, "")
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_that_is_not_pulled_says_how_to_get_it(tmp_path: Path) -> None:
    environment = {**os.environ, "OS1_MODELS_DIR": str(tmp_path)}
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
    assert done.returncode == 1
    assert "os1 models pull qwen2.5-1.5b" in done.stderr


def asked(channel: grpc.Channel, token: str) -> edge_pb2.HelloReply | grpc.StatusCode:
    """What the server says about itself to who has this token, or how it refuses."""
    try:
        return edge_pb2_grpc.EdgeStub(channel).Hello(
            edge_pb2.HelloRequest(), metadata=(("authorization", f"Bearer {token}"),), timeout=PATIENCE_S
        )
    except grpc.RpcError as e:
        return e.code()


def test_a_running_server_notices_new_limits_and_withdrawn_tokens(tmp_path: Path) -> None:
    tokens, settings = tmp_path / "tokens", tmp_path / "server.toml"
    ann, bob = (made(tokens, who) for who in ("ann", "bob"))

    def write(calls: int) -> None:
        settings.write_text(
            f'tokens = "{tokens}"\nnode = "n1"\nmetrics = "127.0.0.1:0"\n'
            f"[limits]\ncalls = {calls}\n"
            '[[models]]\nkind = "upstream"\nname = "far"\nurl = "http://127.0.0.1:9/v1"\n'
        )

    write(2)
    with served("--config", str(settings)) as (process, channel):
        hello = asked(channel, ann)
        assert isinstance(hello, edge_pb2.HelloReply)
        assert (hello.node, hello.limits.calls, hello.models[0].name) == ("n1", 2, "far")
        write(7)
        process.send_signal(signal.SIGHUP)
        CliRunner().invoke(token, ["revoke", "bob", "--file", str(tokens)])
        deadline = time.monotonic() + PATIENCE_S
        while asked(channel, bob) != grpc.StatusCode.UNAUTHENTICATED:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        hello = asked(channel, ann)
        assert isinstance(hello, edge_pb2.HelloReply)
        assert hello.limits.calls == 7
        settings.write_text("half a")
        process.send_signal(signal.SIGHUP)  # is no reason to end
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0


def made(tokens: Path, who: str) -> str:
    done = CliRunner().invoke(token, ["create", who, "--file", str(tokens)])
    assert done.exit_code == 0
    return done.output.strip()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("lisen = 'x'", "lisen"),
        ("[[models]]\nkind = 'upstream'\nname = 'a'", "url"),
        ("[[models]]\nkind = 'other'\nname = 'a'", "kind"),
        ("[[models]]\nkind = 'llama'\nname = 'a'\n[[models]]\nkind = 'llama'\nname = 'a'", "same name"),
        ("client_ca = 'x'", "client_ca"),
        ("half a", "cannot be read"),
    ],
)
def test_settings_that_make_no_sense_are_told(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "server.toml").write_text(text)
    with pytest.raises(ServeError, match=word):
        read_settings(tmp_path / "server.toml")
