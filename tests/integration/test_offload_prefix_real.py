"""A server's answer that broke off is gone on with by the device's own model, which repeats nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from os1_edge.offload.engine import Message
from os1_edge.offload.local import LocalLlama

pytestmark = pytest.mark.models

ASKED = [
    Message("system", "You are a helpful companion. Answer in one short sentence."),
    Message(
        "user",
        "Fact: You parked the car on level three, next to the lift.\n"
        "Where did I park the car? Answer with the fact.",
    ),
]


async def text(stream: AsyncGenerator[str, None]) -> str:
    async with aclosing(stream):
        return "".join([part async for part in stream])


def test_what_was_said_is_gone_on_with_and_not_said_again(pulled: Callable[[str], Path]) -> None:
    engine = LocalLlama(pulled("qwen2.5-0.5b"))
    try:
        whole = asyncio.run(text(engine.stream(ASKED, 40)))
        cut = whole.index(" on ")
        begun = [*ASKED, Message("assistant", whole[:cut])]
        rest = asyncio.run(text(engine.stream(begun, 40)))
    finally:
        engine.close()
    assert "level three" in whole[cut:]
    assert whole[:cut] + rest == whole
