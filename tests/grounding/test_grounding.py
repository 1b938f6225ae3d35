"""Replies rest on what is known and seen: scripted cases through the real memory, recall and language model.

The cases are data (``cases.toml``, ``held_back.toml``); ``python -m os1_edge.bench.grounding`` asks them of
any model, and prints the replies that are not right.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from os1_edge.bench.grounding import Judged, Suite, judged, load_suite, needing, share
from os1_edge.converse.ablation import LEAVES_OUT, Ablation
from os1_edge.converse.prompt import examples
from os1_edge.offload.engine import Message
from os1_edge.offload.local import LocalLlama
from os1_edge.remember.embed import Embedder

pytestmark = pytest.mark.models

HERE = Path(__file__).parent
ABLATIONS: tuple[Ablation, ...] = ("without profile", "without profile and history", "without context")

RIGHT = 80.0
"""Percent, with everything on (measured: 100; another processor's arithmetic may cost a case or two)."""
LOWER = 25.0
"""Percentage points that leaving a part out has to cost the cases that need it."""
EVERY = 2
"""Of the cases that an ablation is asked about here, each second: the command asks them all."""


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite(HERE / "cases.toml")


@pytest.fixture(scope="module")
def held_back(suite: Suite) -> Suite:
    return load_suite(HERE / "held_back.toml").model_copy(update={"background": suite.background})


@pytest.fixture(scope="module")
def embedder(pulled: Callable[..., Path]) -> Embedder:
    return Embedder(pulled("minilm-l6"), pulled("minilm-l6", "tokenizer.json"))


@pytest.fixture(scope="module")
def llama(pulled: Callable[..., Path]) -> Iterator[LocalLlama]:
    engine = LocalLlama(pulled("qwen2.5-0.5b"))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def whole(suite: Suite, llama: LocalLlama, embedder: Embedder) -> list[Judged]:
    """Every case with everything on; asked once for all tests."""
    return asyncio.run(judged(suite.case, suite, llama, embedder, "none"))


def wrong(found: Sequence[Judged]) -> str:
    return "\n".join(f"{one.case.name}: {one.reply} ({one.fault})" for one in found if one.fault)


def test_there_are_forty_cases_and_some_for_each_part(suite: Suite) -> None:
    assert len(suite.case) == 40
    assert len({case.name for case in suite.case}) == 40
    for ablation in ABLATIONS:
        assert len(needing(suite.case, ablation)) >= 10


@pytest.mark.timeout(240)
def test_most_replies_name_what_they_should_and_nothing_that_they_must_not(whole: list[Judged]) -> None:
    assert share(whole) >= RIGHT, wrong(whole)


@pytest.mark.timeout(240)
def test_cases_that_nobody_looked_at_fare_as_well(
    held_back: Suite, llama: LocalLlama, embedder: Embedder
) -> None:
    found = asyncio.run(judged(held_back.case, held_back, llama, embedder, "none"))
    print(f"\n{share(found)} % of {len(found)} cases held back")
    assert share(found) >= RIGHT - 10


@pytest.mark.timeout(240)
@pytest.mark.parametrize("ablation", ABLATIONS)
def test_a_part_left_out_is_missed_where_it_is_needed(
    ablation: Ablation, suite: Suite, whole: list[Judged], llama: LocalLlama, embedder: Embedder
) -> None:
    cases = needing(suite.case, ablation)
    cases = cases if len(cases) <= 12 else cases[::EVERY]
    found = asyncio.run(judged(cases, suite, llama, embedder, ablation))
    names = {case.name for case in cases}
    before = share([one for one in whole if one.case.name in names])
    assert share(found) <= before - LOWER, wrong(found)


# What an ablation leaves out is not in the prompt at all.


@dataclass
class Reads:
    """Keeps what a model would be given."""

    prompts: list[str] = field(default_factory=list)
    name: str = "reads"

    async def stream(
        self, messages: Sequence[Message], max_tokens: int, **_: object
    ) -> AsyncGenerator[str, None]:
        told = messages[1 + len(examples()) :]
        self.prompts.append("\n".join(message.text for message in told))
        yield "All right."

    async def prime(self, messages: Sequence[Message]) -> None: ...


PARTS = {
    # part: (a case that needs it and nothing else, a word that only this part has)
    "history": ("where the spare key is", "flower pot"),
    "profile": ("baking with a peanut allergy", "peanuts"),
    "context": ("what lies in front", "bottle of water"),
}


@pytest.mark.parametrize("ablation", ["none", *ABLATIONS])
def test_an_ablation_leaves_its_parts_out_of_the_prompt_and_nothing_else(
    ablation: Ablation, suite: Suite, embedder: Embedder
) -> None:
    """On the very prompts of the real pipeline."""
    left_out = LEAVES_OUT[ablation]
    for part, (name, mark) in PARTS.items():
        case = next(case for case in suite.case if case.name == name)
        if part == "profile":  # the words that it came from are history, and similar enough to come up
            case = case.model_copy(update={"heard": "I will have dinner now."})
        engine = Reads()
        (one,) = asyncio.run(judged([case], suite, engine, embedder, ablation))
        told = "\n".join([*engine.prompts, one.reply])
        assert (mark in told) is (part not in left_out), (part, told)
