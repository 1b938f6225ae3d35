"""A link and a server as a model on the virtual clock: minutes of turns in milliseconds.

One TCP connection per call and direction, in order: a lost packet is sent again after a retransmission
timeout where it was the last, else after a round trip; the rate under loss is that of Mathis et al. (1997),
1.22 MSS / (RTT sqrt p).
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from os1_edge.offload.engine import Message
from os1_edge.offload.far import Accepted, FarError, Finished, Probed, Question, Step, Stranger, Text
from os1_edge.offload.network import Quiet
from os1_edge.offload.offers import IMAGES, PREFIX, RESUME, Offers

MSS = 1448
WORDS = 12
ANSWER = "".join(f"w{n} " for n in range(WORDS))
ALL = Offers(features=frozenset({RESUME, PREFIX, IMAGES}))


@dataclass(frozen=True)
class Path:
    """What a packet meets."""

    rtt_s: float
    loss: float = 0.0
    bits_s: float = 50e6

    def one_way(self, size: int, chance: random.Random) -> float:
        """Seconds until all of a message has arrived."""
        packets = max(1, math.ceil(size / MSS))
        rate = self.bits_s / 8
        if self.loss:
            rate = min(rate, 1.22 * MSS / (self.rtt_s * math.sqrt(self.loss)))
        late, timeout = 0.0, max(0.2, 1.5 * self.rtt_s)
        while chance.random() < self.loss:  # the last packet: nothing behind it tells of the loss
            late += timeout
            timeout *= 2
        if packets > 1 and chance.random() < 1 - (1 - self.loss) ** min(packets - 1, 10):
            late += self.rtt_s
        return self.rtt_s / 2 + size / rate + late


@dataclass
class Model:
    """A server at the other end; see ``Far``. ``fault(now)`` says what is wrong then."""

    path: Path
    chance: random.Random
    fault: Callable[[float], str] = lambda now: ""
    first_s: float = 0.12
    """Median to the first text; the spread is log-normal."""
    word_s: float = 0.02
    name: str = "offload server"
    around: Quiet = field(default_factory=Quiet)
    live: int = 0
    asked: int = 0
    _answers: dict[str, list[tuple[float, Step]]] = field(default_factory=dict)

    def first_text_s(self, up: int) -> float:
        """A sample of the seconds from asking to the first text."""
        thinks = self.first_s * math.exp(self.chance.gauss(0, 0.2))
        return self.path.one_way(up, self.chance) + thinks + self.path.one_way(120, self.chance)

    async def ask(self, question: Question) -> AsyncGenerator[Step, None]:
        self.asked += 1
        up = 300 + sum(len(m.text) + sum(map(len, m.images)) for m in question.messages)
        now = self._now()
        self._refuse()
        arrives = now + self.path.one_way(up, self.chance)
        at = arrives + self.path.one_way(80, self.chance)
        steps = [(at, Step(1, Accepted()))]
        writes = arrives + self.first_s * math.exp(self.chance.gauss(0, 0.2))
        begin = question.prefix.count(" ")
        for number in range(begin, WORDS):
            at = max(at, writes + self.path.one_way(120, self.chance))
            steps.append((at, Step(number - begin + 2, Text(f"w{number} "))))
            writes += self.word_s
        steps.append((at, Step(WORDS + 2, Finished())))
        self._answers = {question.request_id: steps}
        async with aclosing(self._come(steps, now + question.budget.total_s)) as coming:
            async for step in coming:
                yield step

    async def resume(self, request_id: str, node: str, from_seq: int) -> AsyncGenerator[Step, None]:
        self._refuse()
        if request_id not in self._answers or self.fault(self._now()) == "forgets":
            await asyncio.sleep(self.path.rtt_s)
            raise FarError("lost", "not found")
        now = self._now()
        steps = [(max(at, now + self.path.rtt_s), s) for at, s in self._answers[request_id]]
        async with aclosing(self._come([s for s in steps if s[1].seq >= from_seq], now + 30)) as coming:
            async for step in coming:
                yield step

    async def _come(self, steps: Sequence[tuple[float, Step]], until: float) -> AsyncGenerator[Step, None]:
        self.live += 1
        try:
            for at, step in steps:
                await asyncio.sleep(max(0.0, at - self._now()))
                while (fault := self.fault(self._now())) in ("black hole", "half open"):
                    await asyncio.sleep(0.05)
                    if self._now() > until:
                        raise FarError("unreachable", "deadline")
                if fault in ("killed", "down", "tls broken"):
                    raise FarError("unreachable", "reset")
                yield step
        finally:
            self.live -= 1

    async def cancel(self, request_id: str, node: str) -> None:
        await asyncio.sleep(self.path.rtt_s)

    async def probe(self, padding: int, timeout_s: float, *, fresh: bool = False) -> Probed:
        took = self.path.one_way(60 + padding, self.chance) + self.path.one_way(60, self.chance)
        whole = took + (3 * self.path.rtt_s if fresh else 0.0)
        if self.fault(self._now()) in ("black hole", "half open") or whole > timeout_s:
            await asyncio.sleep(timeout_s)
            raise FarError("unreachable", "no answer")
        self._refuse()
        await asyncio.sleep(whole)
        return Probed(took, padding, self.fault(self._now()) == "draining", offers=ALL)

    async def diagnose(self, timeout_s: float) -> Stranger:
        return "forged" if self.fault(self._now()) == "captive" else ""

    async def close(self) -> None: ...

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _refuse(self) -> None:
        match self.fault(self._now()):
            case "down" | "dns dead" | "tls broken" | "captive" | "killed":
                raise FarError("unreachable", "no way")
            case "draining":
                raise FarError("busy", "ends soon", 5.0)


@dataclass
class ModelDevice:
    """The device's model; goes on behind a last message of the assistant's."""

    chance: random.Random
    first_s: float = 0.22
    spread_s: float = 0.03
    word_s: float = 0.02
    sees: bool = True
    name: str = "device"
    live: int = 0
    asked: int = 0

    async def prime(self, messages: Sequence[Message]) -> None:
        await asyncio.sleep(self.first_s)

    async def stream(
        self, messages: Sequence[Message], max_tokens: int, **_: object
    ) -> AsyncGenerator[str, None]:
        self.asked += 1
        self.live += 1
        said = len(messages[-1].text.split()) if messages[-1].role == "assistant" else 0
        try:
            await asyncio.sleep(max(0.02, self.chance.gauss(self.first_s, self.spread_s)))
            for number in range(said, WORDS):
                yield f"w{number} "
                await asyncio.sleep(self.word_s)
        finally:
            self.live -= 1
