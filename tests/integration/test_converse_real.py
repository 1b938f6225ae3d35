"""The default local model on sentences beside the demo's: the right fact, and nothing invented."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import datetime

import pytest

import os1_models
from os1_edge.converse.editing import Editor
from os1_edge.converse.food import concerns_food
from os1_edge.converse.prompt import Notes, examples, plan, system_message
from os1_edge.converse.reply import Asked
from os1_edge.converse.saying import Outcome, sayable, split
from os1_edge.offload.engine import Message
from os1_edge.offload.local import LocalLlama
from os1_edge.remember.recall import Hit
from os1_edge.speak.clauses import ClauseSplitter

pytestmark = pytest.mark.models

NOW = datetime(2026, 3, 2, 11, 30)
ALLERGY = "The wearer is allergic to peanuts."

CASES = (
    # (heard, remembered, in view, the reply must match, the reply must not match)
    ("Where did I park my car?", "I parked the car on level three.", "A book.", r"level (three|3)", ""),
    ("Who is Anna?", "My sister is called Anna.", "", r"sister", ""),
    ("When is my flight?", "My flight to Rome leaves on Friday at nine.", "A chair.", r"friday", ""),
    ("Do I like jazz?", "I really love jazz.", "", r"\b(love|like|yes)", r"not"),
    ("What colour is my new bike?", "I bought a red bike yesterday.", "", r"\bred\b", ""),
    ("What did my doctor tell me?", "My doctor told me to walk every day.", "A desk.", r"walk", ""),
    ("How many cats do I have?", "I have two cats at home.", "", r"\b(two|2)\b", ""),
    ("Which bus do I take to work?", "I take bus number nine to work.", "", r"\b(nine|9)\b", ""),
    ("What is my brother's job?", "My brother is a teacher.", "A car.", r"teacher", ""),
    ("What should I cook tonight?", "I do not eat meat.", "A table.", r".", r"peanut(?!s\.)|beef|chicken"),
    ("Is there a dog here?", "", "A dog and a chair.", r"dog", r"\bno\b"),
    ("What is in front of me?", "", "A bottle on a table.", r"bottle", ""),
    ("What do you see?", "", "Two books on a desk.", r"book", ""),
    ("What am I looking at?", "", "", r"cannot", ""),
    ("What is my sister's name?", "", "A table.", r"do not know", r"\b(Anna|Sarah|Jane)\b"),
    ("When is my exam?", "", "A laptop.", r"do not know", r"day\b"),
    ("Where do I live?", "", "", r"do not know", ""),
    ("Tell me what I said about Tom.", "", "", r"do not know", ""),
    ("What is the capital of France?", "", "", r"paris", ""),
    ("Tell me a joke.", "", "", r".", r"wearer|allerg"),
    ("Thank you.", "", "", r"welcome|glad|remember", r"wearer"),
    ("Hello.", "", "", r"hello|hi|hey", r"wearer|allerg"),
    ("I feel tired today.", "", "A chair.", r"tired|rest|sorry|sleep", r"^I (am|feel)(?! sorry)"),
    ("My exam is tomorrow and I am nervous.", "", "", r"exam|nervous|luck", r"^I am(?! sorry)"),
    ("I am going to have some cake.", "", "", r"allerg|peanut|enjoy|cake", ""),
    ("I moved to Boston last year.", "", "", r"boston|remember", r"^I moved"),
    ("Good night.", "", "", r"night|sleep|remember", r"allerg"),
)

NEEDED = 0.85


@pytest.fixture(scope="module")
def llama() -> Iterator[LocalLlama]:
    try:
        path = os1_models.path("qwen2.5-0.5b")
    except os1_models.ModelError as e:
        pytest.skip(str(e))
    llama = LocalLlama(path, threads=2)
    yield llama
    llama.close()


def reply(llama: LocalLlama, heard: str, remembered: str, scene: str) -> str:
    """As it is spoken."""
    hits = (Hit("turn", remembered, datetime(2026, 3, 2, 8), "", 0.7, ""),) if remembered else ()
    planned = plan(heard, Notes(NOW, scene, hits, (ALLERGY,) if concerns_food(heard) else ()))
    asked = Asked(
        heard, NOW, planned, [system_message(), *examples(), Message("user", planned.message)], hits
    )

    async def spoken() -> str:
        written = split(llama.stream(asked.prompt, 60), ClauseSplitter())
        editor = Editor(heard, asked.evidence, planned.health, scene)
        return " ".join([clause async for clause in sayable(asked, written, editor, Outcome())])

    return asyncio.run(spoken())


def test_other_sentences_get_the_right_fact_and_nothing_invented(llama: LocalLlama) -> None:
    wrong = []
    for heard, remembered, scene, must, must_not in CASES:
        said = reply(llama, heard, remembered, scene)
        if not re.search(must, said, re.I) or (must_not and re.search(must_not, said, re.I)):
            wrong.append(f"{heard} -> {said}")
    score = 1 - len(wrong) / len(CASES)
    print(f"\n{len(CASES) - len(wrong)} of {len(CASES)} right", *wrong, sep="\n  ")
    assert score >= NEEDED, "\n".join(wrong)
