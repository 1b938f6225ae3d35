"""Servers that this process starts for itself: ready, dead, started again, ended. Real processes."""

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from cloud_world import refused, rest, world

from os1_cloud.address import ServeError
from os1_cloud.build import engine
from os1_cloud.engines import EngineError, EngineLost, Finished, Prompt, Turn, keeper
from os1_cloud.engines.upstream import Upstream
from os1_cloud.settings import ModelSettings
from os1_proto.assist.v1 import assist_pb2 as pb

SERVER = str(Path(__file__).with_name("openai_server.py"))
COMMAND = [sys.executable, SERVER, "{port}"]
PATIENCE_S = 120.0


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


def upstream(*options: str, start_s: float = PATIENCE_S) -> Upstream:
    return Upstream("big", "", "m", command=[*COMMAND, *options], start_s=start_s)


@asynccontextmanager
async def started(*options: str) -> AsyncIterator[Upstream]:
    made = upstream(*options)
    try:
        await made.start()
        yield made
    finally:
        made.close()
        await asyncio.sleep(0.05)  # for the loop to close its pipes


async def said(made: Upstream, text: str, **fields: Any) -> str:
    prompt = Prompt((Turn("user", text),), 4, **fields)
    async with aclosing(made.generate(prompt)) as parts:
        return "".join([part.text async for part in parts if not isinstance(part, Finished)])


def pid(made: Upstream) -> int:
    assert made.server is not None
    assert made.server.pid
    return made.server.pid


def alive(group: int) -> set[int]:
    """The processes of a group; zombies are none."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            state, _, its, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(its) == group and state != "Z":
            found.add(int(entry.name))
    return found


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


async def gone(group: int) -> None:
    while alive(group):  # noqa: ASYNC110 - other processes' state
        await asyncio.sleep(0.05)


async def again(made: Upstream) -> None:
    """Until it is well."""
    while True:
        try:
            return await made.check()
        except EngineError:
            await asyncio.sleep(0.1)


def test_a_server_is_started_waited_for_and_asked() -> None:
    async def story() -> None:
        async with started("--loads", "0.5") as made:
            await made.check()
            assert await said(made, "hi") == "0 1 2 3 "
            assert await said(made, "go on", prefix="0 1 ") == "2 3 4 5 "

    run(story)


def test_a_server_that_dies_in_an_answer_is_lost_for_a_moment_and_comes_back() -> None:
    async def story() -> None:
        async with started() as made, world(engine=made) as w:  # type: ignore[arg-type]
            code, why = await refused(w.ask(turns=[pb.Turn(role=pb.ROLE_USER, text="die")], max_tokens=9))
            assert (code, why.reason) == (grpc.StatusCode.UNAVAILABLE, pb.REASON_ENGINE_LOST)
            assert why.retry_after_ms > 0
            with pytest.raises(EngineError):
                await made.check()
            await again(made)
            events = await rest(w.ask("next", max_tokens=2))
            assert "".join(e.delta.text for e in events) == "0 1 "
            assert made.server is not None
            assert made.server.starts == 2

    run(story)


def test_a_question_while_the_server_is_started_again_is_told_when_to_come_back() -> None:
    async def story() -> None:
        async with started() as made:
            os.kill(pid(made), signal.SIGKILL)
            lost = None
            while lost is None:
                try:
                    await said(made, "hi")
                except EngineLost as e:
                    lost = e
            assert lost.retry_after_s > 0
            await again(made)

    run(story)


def test_closing_ends_the_server_and_what_it_started() -> None:
    async def story() -> None:
        async with started("--child") as made:
            group = pid(made)
            assert len(alive(group)) == 2
        await gone(group)

    run(story)


def test_what_a_dead_server_leaves_behind_is_ended_before_the_next_starts() -> None:
    """vLLM's own processes hold the accelerator's memory."""

    async def story() -> None:
        async with started("--child") as made:
            group = pid(made)
            os.kill(group, signal.SIGKILL)
            await again(made)
            assert not alive(group)
            assert len(alive(pid(made))) == 2

    run(story)


def test_a_server_whose_keeper_is_killed_does_not_stay_beside_the_next() -> None:
    async def story() -> None:
        async with started("--child") as made:
            group = pid(made)
            os.kill(parent(group), signal.SIGKILL)
            await gone(group)
            await again(made)

    run(story)


def test_a_server_ends_when_whoever_started_it_is_killed() -> None:
    program = (
        "import asyncio, json, sys\n"
        "from os1_cloud.engines.upstream import Upstream\n"
        "async def main():\n"
        "    made = Upstream('big', '', 'm', command=json.loads(sys.argv[1]))\n"
        "    await made.start()\n"
        "    print(made.server.pid, flush=True)\n"
        "    await asyncio.sleep(300)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, json.dumps([*COMMAND, "--child"])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        group = int(process.stdout.readline())
        assert len(alive(group)) == 2
        process.kill()
    run(lambda: gone(group))


def test_a_server_that_does_not_end_when_asked_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "TERM_S", 0.2)
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); "
    server = subprocess.Popen(
        [sys.executable, "-c", program + "time.sleep(300)"], stdout=subprocess.PIPE, start_new_session=True
    )
    assert server.stdout is not None
    assert server.stdout.readline()
    keeper._end(server)
    assert server.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("command", "start_s", "word"),
    [
        (["/no/such/server", "{port}"], PATIENCE_S, "/no/such/server cannot be started: No such file"),
        ([*COMMAND, "--fails", "out of\nmemory"], PATIENCE_S, r"ended with code 7 \(out of memory\) before"),
        ([*COMMAND, "--loads", "300"], 0.5, "not ready within 0.5 s"),
    ],
)
def test_a_server_that_cannot_be_started_says_why(command: list[str], start_s: float, word: str) -> None:
    async def story() -> None:
        made = Upstream("big", "", "m", command=command, start_s=start_s)
        with pytest.raises(EngineError, match=f"big: .*{word}"):
            await made.start()
        await asyncio.sleep(0.05)

    run(story)


def test_what_a_server_prints_of_a_question_is_in_no_log(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not even when it ends: this one prints all that it is asked."""

    async def story() -> None:
        async with started() as made:
            with pytest.raises(EngineLost):
                await said(made, "die, diary")
            await again(made)

    with caplog.at_level(logging.DEBUG):
        run(story)
    assert "ended with code 3" in caplog.text
    assert "diary" not in caplog.text + "".join(capfd.readouterr())


def test_a_keeper_holds_nothing_of_what_a_server_says_after_it_is_ready(tmp_path: Path) -> None:
    there = tmp_path / "go"
    program = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\nprint('diary')"
    command = [sys.executable, "-c", program, str(there)]
    keeping = [sys.executable, "-m", "os1_cloud.engines.keeper", json.dumps(command)]
    for words, said in (("", "diary\n"), ("ready\n", "")):
        there.unlink(missing_ok=True)
        with subprocess.Popen(
            keeping, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert "pid" in json.loads(process.stdout.readline())
            process.stdin.write(words)
            there.touch()
            assert json.loads(process.stdout.readline()) == {"code": 0, "said": said}


def test_os1_serve_starts_its_server_and_leaves_none_behind(tmp_path: Path) -> None:
    own = shutil.copy(SERVER, tmp_path)
    (tmp_path / "server.toml").write_text(
        'listen = "127.0.0.1:0"\n[[models]]\nkind = "upstream"\nname = "big"\n'
        f"command = {json.dumps([sys.executable, own, '{port}', '--child'])}\n"
    )
    command = [sys.executable, "-m", "os1_cloud", "--config", str(tmp_path / "server.toml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "model big" in process.stdout.readline()
        [server] = [e for e in Path("/proc").glob("[0-9]*") if _arguments(e)[1:2] == [own]]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        run(lambda: gone(int(server.name)))
    finally:
        process.kill()
        process.wait()


def _arguments(process: Path) -> list[str]:
    with suppress(OSError):
        return (process / "cmdline").read_text().split("\0")
    return []


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"command": ["llama-server", "--port", "8080"]}, "{port}"),
        ({"command": COMMAND, "url": "http://127.0.0.1:8080/v1"}, "url needs"),
        ({"command": COMMAND, "kind": "llama"}, "kind upstream"),
        ({}, "needs its url"),
    ],
)
def test_a_command_that_makes_no_sense_is_told(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        ModelSettings.model_validate({"kind": "upstream", "name": "big", **fields})
    odd = ModelSettings(kind="upstream", name="big", command=("x", "{port}"), url="ftp://{port}")
    with pytest.raises(ServeError, match="no address"):
        engine(odd)
