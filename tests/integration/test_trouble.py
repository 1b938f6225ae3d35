"""A reader that does not read, a disk that is full, a clock that jumps: others go on, and nothing is lost."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from cloud_world import kinds, refused, rest, timeline, until, world
from test_memory_full_disk import full_at

from os1_cloud.auth import Tokens, read_tokens
from os1_cloud.engines import Finished, Piece, Prompt
from os1_cloud.ring import BYTES
from os1_cloud.token_cli import token
from os1_edge.offload.journal import Journal, read
from os1_edge.offload.network import Quiet
from os1_edge.offload.taken import Taken
from os1_edge.offload.watch import FORGOTTEN_S, Watch
from os1_proto.assist.v1 import assist_pb2 as pb

DAY_S = 86_400.0
LONG = 500
"""Pieces: eight megabytes, more than gRPC and the kernel hold between two processes."""


class Fountain:
    """Writes a piece each millisecond, whoever reads: a kilobyte, in long answers 16."""

    name, context_tokens, slots, at_work = "fountain", 100, 2, 0

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece | Finished, None]:
        self.at_work += 1
        try:
            for _ in range(prompt.max_tokens):
                yield Piece("x" * (1_000 if prompt.max_tokens < LONG else 16_000))
                await asyncio.sleep(0.001)
            yield Finished("length", 1, prompt.max_tokens)
        finally:
            self.at_work -= 1

    def close(self) -> None: ...


def test_a_reader_that_does_not_read_holds_up_nobody_and_fills_no_memory() -> None:
    async def story() -> None:
        engine: Any = Fountain()
        async with world(engine=engine, grace_s=60.0) as w:
            slow = w.ask("slow", max_tokens=LONG)
            assert (await slow.read()).HasField("accepted")
            assert (await slow.read()).HasField("delta")
            other = await rest(w.ask("other", max_tokens=100))
            assert sum(len(event.delta.text) for event in other) == 100_000
            await until(lambda: engine.at_work == 0)  # it was not held up by the slow one either
            assert w.answerer.live == 0
            held = w.answerer._jobs["", "slow"].ring
            assert sum(len(e.text) for e in held._events if hasattr(e, "text")) <= BYTES
            code, why = await refused(slow)  # what is gone is told, not left out
            assert (code, why.reason) == (grpc.StatusCode.OUT_OF_RANGE, pb.REASON_LOST)

    timeline(story)


# --- a disk that is full


def test_a_token_that_cannot_be_written_is_told_and_those_there_are_stay(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    assert CliRunner().invoke(token, ["create", "ann", "--file", str(file)]).exit_code == 0
    before = file.read_bytes()
    for arguments in (["create", "bob"], ["revoke", "ann"]):
        with full_at(20):
            done = CliRunner().invoke(token, [*arguments, "--file", str(file)])
        assert done.exit_code == 1
        assert "nothing has changed" in done.output
        assert file.read_bytes() == before
        assert [each.name for each in read_tokens(file)] == ["ann"]
        assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".lock") == ["tokens"]
    assert CliRunner().invoke(token, ["create", "bob", "--file", str(file)]).exit_code == 0
    assert [each.name for each in read_tokens(file)] == ["ann", "bob"]


def test_a_journal_that_cannot_be_written_costs_no_turn_and_the_old_one_stays(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "routes.json")
    journal.note(Taken("2026-03-02T08:00:00", "reply", "online", "cloud", "it is quick", 0.6), {})
    journal.write()
    journal.note(Taken("2026-03-02T08:01:00", "reply", "online", "cloud", "it is quick", 0.6), {})
    with full_at(100):
        journal.write()
    assert [path.name for path in tmp_path.iterdir()] == ["routes.json"]
    assert len(read(tmp_path / "routes.json").taken) == 1
    journal.write()
    assert len(read(tmp_path / "routes.json").taken) == 2
    Journal(tmp_path / "routes.json" / "in a file.json", {}, journal.taken).write()


# --- a wall clock that jumps


@pytest.mark.parametrize("jump_s", [-400 * DAY_S, 400 * DAY_S])
def test_a_clock_that_is_set_neither_ends_nor_prolongs_what_is_under_way(
    monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    async def story() -> None:
        true_time = time.time
        tokens = Tokens({hashlib.sha256(b"ann").hexdigest(): "ann"})
        ann = (("authorization", "Bearer ann"),)
        budget = pb.Budget(first_token_ms=10_000, total_ms=10_000)
        async with world(tokens, heartbeat_s=60.0) as w:
            call = w.ask("r", ann, budget=budget)
            assert (await call.read()).HasField("accepted")
            waits = w.ask("waits", ann, budget=budget)
            assert (await waits.read()).HasField("accepted")
            monkeypatch.setattr(time, "time", lambda: true_time() + jump_s)
            for word in ("Here.", ".", "There.", "."):
                w.engine.go.put_nowait(word)
            assert await kinds(call) == ["delta", "done"]
            assert await kinds(waits) == ["delta", "done"]
            late = w.ask("late", ann, budget=pb.Budget(total_ms=300))
            await late.read()
            code, why = await refused(late)  # a budget ends when its time is over, whatever the date
            assert why.reason == pb.REASON_EXPIRED, code

    timeline(story)


def test_a_tokens_end_follows_the_date_forward_and_back() -> None:
    now = [1000.0]
    tokens = Tokens({hashlib.sha256(b"ann").hexdigest(): "ann"}, {}, now=lambda: now[0])
    ending = Tokens(tokens._names, dict.fromkeys(tokens._names, 2000.0), now=lambda: now[0])
    bearer = [("authorization", "Bearer ann")]
    for at, known in ((1000.0, "ann"), (1000.0 + DAY_S, None), (1000.0, "ann"), (-DAY_S, "ann")):
        now[0] = at
        assert (tokens.who(bearer), ending.who(bearer)) == ("ann", known)


@pytest.mark.parametrize("jump_s", [-400 * DAY_S, 400 * DAY_S])
def test_what_is_known_of_a_link_ages_by_time_that_passes_not_by_the_date(
    monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    class Ticking:
        at = 100.0

        def now(self) -> float:
            return self.at

    clock: Any = Ticking()
    far: Any = type("Far", (), {"around": Quiet()})()
    watch = Watch(far, clock, random.Random(0))
    watch.path.rtt.sample(0.05)
    watch.path.at_s = clock.at
    for late in (0.1, 0.2, 0.3, 0.2, 0.1):
        watch.answered("reply", 100, 0.4, late, inside=True, missed=False)
    before = watch.cloud("reply", 100)
    true_time = time.time
    monkeypatch.setattr(time, "time", lambda: true_time() + jump_s)
    assert watch.cloud("reply", 100) == before
    clock.at += 2 * FORGOTTEN_S
    aged = watch.cloud("reply", 100)
    assert before is not None
    assert aged is not None
    assert (before.known, aged.known, aged.late_s) == (True, False, None)
