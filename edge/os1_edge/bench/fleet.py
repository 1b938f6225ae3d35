"""Many simulated wearers on one server: what it serves a second, how soon, and where it stops keeping up.

Questions come when they come, whatever became of those before (open loop); times count from when a question
was due, so that a slow server hides nothing. Gaps between turns, and turns with the prompt that each had by
then, are drawn from the bundled morning; an answer is taken to be as long as what was said. Nobody interrupts
in that morning: what is given up after the first word are the races that the device wins, at the router's own
bound on races (``Allowance``), which is the most that there may be of them.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc

from os1_edge.bench.stages.clips import morning
from os1_edge.bench.stages.offload import TOKEN
from os1_edge.config import Config
from os1_edge.converse.prompt import examples, system_message
from os1_edge.offload.budget import RACES
from os1_edge.offload.engine import Message
from os1_edge.offload.wire import ROLES
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1 import assist_pb2_grpc

CHANNELS = 64
"""Connections at most: wearers have one each, but this machine's client would then be what is measured."""
BUDGET_S = 1.5
"""To the first word; a question is refused or given up beyond it."""
REFUSED = 0.01
"""Share of the questions that may fail before a load counts as too much."""
TOKENS_A_WORD = 1.4
FIRST = 8
"""Part of the wearers that the first load is of."""
NEAR = 1.15
"""Of a load that is too much by one that is not: nearer, chance decides which is which."""
STEPS = 10
"""Loads tried at most: a server at its end answers now in time and now not."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How people talk with it."""

    gaps_s: tuple[float, ...]
    """From the end of what is said to the next thing said."""
    words: tuple[int, ...]
    """Of each turn."""
    prompts: tuple[tuple[Message, ...], ...]
    """Of each turn."""
    cancels: float
    """Share of the questions given up after the first word."""

    @property
    def turns_a_second(self) -> float:
        """Of one wearer who talks all the time."""
        return 1 / statistics.mean(self.gaps_s)


@dataclass(frozen=True, slots=True)
class Due:
    """One question."""

    at_s: float
    wearer: int
    turn: int
    """Which of the habits' turns it is."""
    tokens: int
    """Of the answer, at most."""
    cancelled: bool


@dataclass(slots=True)
class Load:
    """What became of the questions of so many wearers."""

    wearers: int
    seconds: float
    first_s: list[float] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    client_late_s: list[float] = field(default_factory=list)
    """By how much this machine asked late: the client's own limit."""
    server_cpu_s: float | None = None
    client_cpu_s: float = 0.0
    machine_cpu_s: float | None = None
    """Processor time of the server's process, where it is one of this machine, of this one, and of all."""
    kb: float = 0.0
    """Of all messages, both ways."""
    mark: str = field(default_factory=lambda: secrets.token_hex(4))
    """Of its questions: a server answers one that it has answered already from what it has kept."""

    @property
    def asked(self) -> int:
        """Questions."""
        return sum(self.codes.values())

    @property
    def failed(self) -> float:
        """Share of the questions that were not answered."""
        kept = self.codes["OK"] + self.codes["given up"]
        return 1 - kept / self.asked if self.asked else 0.0

    def first(self, percent: float) -> float:
        """Percentile of the seconds to the first word; those that failed count as never."""
        ordered = sorted(self.first_s) + [float("inf")] * round(self.failed * self.asked)
        return ordered[min(len(ordered) - 1, int(percent / 100 * len(ordered)))] if ordered else float("inf")

    @property
    def kept_up(self) -> bool:
        """Whether nearly all were answered in time; where nothing was asked, nothing was too late."""
        return not self.asked or (self.failed <= REFUSED and self.first(95) <= BUDGET_S)

    @property
    def by_client(self) -> bool:
        """Whether the client was so late itself that the server is not what was measured."""
        late = sorted(self.client_late_s)
        return bool(late) and late[int(0.95 * len(late))] > 0.05


def of_the_morning() -> Habits:
    """The bundled session's."""
    said = morning().file.utterance
    gaps = tuple(round(after.start_s - before.end_s, 2) for before, after in pairwise(said))
    texts = [u.text for u in said]
    prompts = tuple(_prompt(texts[: turn + 1]) for turn in range(len(texts)))
    return Habits(gaps, tuple(len(text.split()) for text in texts), prompts, RACES)


def _prompt(said: Sequence[str]) -> tuple[Message, ...]:
    """Of the last of the turns, as the runtime makes it of persona, examples and the turns before. What is in
    view and what is recalled is left out, for which models would be needed: a sentence or two."""
    *before, now = said[-1 - Config().converse.history :]
    told = (Message(role, text) for text in before for role in ("user", "assistant"))
    return (system_message(), *examples(), *told, Message("user", f"The wearer says: {now}"))


def schedule(habits: Habits, wearers: int, seconds: float, seed: int = 1) -> list[Due]:
    """All questions in order. Each wearer begins somewhere in a gap."""
    chance, out = random.Random(seed), []
    for wearer in range(wearers):
        at = chance.random() * chance.choice(habits.gaps_s)
        while at < seconds:
            turn = chance.randrange(len(habits.words))
            tokens = max(2, round(TOKENS_A_WORD * habits.words[turn]))
            out.append(Due(at, wearer, turn, tokens, chance.random() < habits.cancels))
            at += chance.choice(habits.gaps_s)
    return sorted(out, key=lambda due: due.at_s)


def knee(loads: Sequence[Load]) -> Load | None:
    """The biggest load that was kept up with below the least that was not; None: not even the least."""
    best = None
    for load in sorted(loads, key=lambda some: some.wearers):
        if not load.kept_up:
            break
        best = load
    return best


def next_step(loads: Sequence[Load], most: int) -> int | None:
    """How many wearers to try next, of at most ``most``; None: the knee is known as well as it gets.

    From an eighth of ``most`` up by doubling until a load is too much, then between the biggest that was kept
    up with and the least that was not, until they lie within ``NEAR``.
    """
    if not loads:
        return max(1, most // FIRST)
    best = knee(loads)
    good = best.wearers if best is not None else 0
    bad = min((load.wearers for load in loads if not load.kept_up), default=None)
    if len(loads) >= STEPS:
        return None
    if bad is None:
        return min(2 * good, most) if good < most else None
    middle = (good + bad) // 2
    return middle if middle > good and bad > NEAR * good else None


async def drive(
    address: str,
    habits: Habits,
    wearers: int,
    seconds: float,
    tokens: Sequence[str] = (TOKEN,),
    server_pid: int | None = None,
) -> Load:
    """Asks the server at ``address`` (plain text) all questions of so many wearers."""
    channels = [
        grpc.aio.insecure_channel(address, (("os1.channel", number),))
        for number in range(min(CHANNELS, wearers))
    ]
    stubs = [assist_pb2_grpc.AssistStub(channel) for channel in channels]
    load, began = Load(wearers, seconds), time.perf_counter()
    asked: list[asyncio.Task[None]] = []
    try:
        prompts = [
            [pb.Turn(role=ROLES[part.role], text=part.text) for part in prompt] for prompt in habits.prompts
        ]
        first = Due(0.0, -1, 0, 2, False)
        await _ask(stubs[0], first, prompts[0], time.perf_counter(), Load(0, 0.0), tokens[0])
        began, cpu, own, every = time.perf_counter(), cpu_s(server_pid), time.process_time(), machine_cpu_s()
        for due in schedule(habits, wearers, seconds):
            await asyncio.sleep(max(0.0, began + due.at_s - time.perf_counter()))
            load.client_late_s.append(time.perf_counter() - began - due.at_s)
            stub, token = stubs[due.wearer % len(stubs)], tokens[due.wearer % len(tokens)]
            one = _ask(stub, due, prompts[due.turn], began + due.at_s, load, token)
            asked.append(asyncio.create_task(one))
        await asyncio.gather(*asked)
        load.client_cpu_s = time.process_time() - own
        load.server_cpu_s = _since(cpu, cpu_s(server_pid))
        load.machine_cpu_s = _since(every, machine_cpu_s())
    finally:
        for channel in channels:
            await channel.close()
    load.seconds = time.perf_counter() - began
    return load


def cpu_s(pid: int | None) -> float | None:
    """Processor seconds that the process has used; None: there is none, or the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_cpu_s() -> float | None:
    """Processor seconds that all of the machine have used; None: the system does not tell."""
    try:
        _, user, nice, system, _, _, irq, softirq, *_ = (
            Path("/proc/stat").read_text("ascii").split(maxsplit=9)
        )
    except (OSError, ValueError):
        return None
    return sum(map(int, (user, nice, system, irq, softirq))) / os.sysconf("SC_CLK_TCK")


def _since(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else now - before


async def _ask(
    stub: assist_pb2_grpc.AssistStub,
    due: Due,
    prompt: Sequence[pb.Turn],
    due_at: float,
    load: Load,
    token: str,
) -> None:
    request = pb.AskRequest(
        request_id=f"{load.mark}-{due.wearer}-{due.at_s:.3f}",
        turns=prompt,
        max_tokens=due.tokens,
        budget=pb.Budget(first_token_ms=round(1000 * BUDGET_S)),
    )
    metadata = (("authorization", f"Bearer {token}"),)
    call: Any = stub.Ask(request, metadata=metadata, timeout=30.0)  # the stubs know no async iteration
    first = None
    load.kb += request.ByteSize() / 1000
    try:
        async for event in call:
            load.kb += event.ByteSize() / 1000
            if event.delta.text and first is None:
                first = time.perf_counter() - due_at
                load.first_s.append(first)
                if due.cancelled:
                    load.codes["given up"] += 1
                    return
        load.codes["OK"] += 1
    except grpc.aio.AioRpcError as e:
        load.codes[e.code().name] += 1
    finally:
        call.cancel()
