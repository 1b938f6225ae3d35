"""When agents think: inline within the budget, else ahead; what becomes of bad, late or refused answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from os1_edge import clock
from os1_edge.converse.ahead import RETRIEVAL, Ahead, Times, fits
from os1_edge.converse.context import CONTEXT, ContextAgent, Guess, Whereabouts, merged
from os1_edge.converse.jobs import prompt_of
from os1_edge.converse.retrieval import PROPOSE, REPORT
from os1_edge.converse.strategy import COMFORT, DECIDE, PLAN
from os1_edge.offload.engine import EngineError, Message, Preempted
from os1_edge.remember.chores import Busy
from os1_edge.remember.recall import Hit

NOON = datetime(2026, 3, 2, 12)
ANSWERS = {
    "plan": {"objective": "give comfort", "steps": ["listen", "offer tea"]},
    "decide": {"done": 1, "outcome": "open", "action": "offer tea"},
    "propose": {"history": ["tea"], "profile": []},
    "report": {"report": "The wearer likes tea."},
    "context": {"location": "garden", "activity": "reading"},
}


@dataclass
class Engine:
    """Answers each job, known by its first words, after ``seconds``."""

    seconds: float = 0.1
    answer: Callable[[str], str | Exception] = lambda kind: json.dumps(ANSWERS[kind])
    asked: list[str] = field(default_factory=list)
    name: str = "fake"

    async def stream(
        self, messages: Sequence[Message], max_tokens: int, **how: Any
    ) -> AsyncGenerator[str, None]:
        marks = {
            "You plan": "plan", "You decide": "decide", "You say what": "propose", "You write one": "report",
            "You tell where": "context",
        }  # fmt: skip
        kind = next(kind for mark, kind in marks.items() if messages[0].text.startswith(mark))
        assert how["background"] is True
        assert how["schema"] is not None
        self.asked.append(kind)
        await asyncio.sleep(self.seconds)
        answer = self.answer(kind)
        if isinstance(answer, Exception):
            raise answer
        yield answer

    async def prime(self, messages: Sequence[Message]) -> None: ...


class Remembers:
    """A memory with one thing in it."""

    async def recall(self, query: str, now: datetime, in_view: object) -> list[Hit]:
        return [Hit("turn", "I like tea.", NOON, "", 0.6, "")]


def agents(engine: Engine) -> Ahead:
    return Ahead(engine, Remembers(), 1200.0, by_model=True)  # type: ignore[arg-type]


def live(work: Any) -> Any:
    return clock.run(work, virtual=True)


def test_a_job_is_done_inline_only_where_its_time_is_known_and_fits() -> None:
    assert not fits(None, 5.0).yes
    assert not fits(0.5, 0.4).yes
    assert not fits(0.1, 0.0).yes
    assert fits(0.3, 0.4).yes
    assert "0.50" in fits(0.5, 0.4).reason


def test_times_are_learned_with_their_spread() -> None:
    times = Times()
    assert times.predicted_s("plan") is None
    for seconds in (0.2, 0.2, 0.2, 0.2):
        times.learn("plan", seconds)
    steady = times.predicted_s("plan")
    assert steady is not None
    times.learn("plan", 2.0)
    assert (times.predicted_s("plan") or 0) > steady + 1.0
    assert times.predicted_s("decide") is None


def test_what_was_thought_ahead_serves_the_next_turn_and_costs_it_nothing() -> None:
    async def go() -> None:
        engine = Engine(seconds=5.0)
        ahead = agents(engine)
        first = await ahead.for_turn("I feel sad.", NOON, "home", (), 0.3)
        assert first.strategy.objective == COMFORT
        ahead.kept("I feel sad.", "I am sorry.", NOON, first.strategy)
        assert await ahead.think(NOON)
        assert engine.asked == ["plan", "decide", "propose", "report"]
        began = asyncio.get_running_loop().time()
        second = await ahead.for_turn("My cat is ill.", NOON, "home", (), 0.3)
        assert asyncio.get_running_loop().time() == began
        assert (second.strategy.objective, second.strategy.action) == ("give comfort", "offer tea")
        assert second.report is not None
        assert second.report.text == "The wearer likes tea."
        assert second.inline == ()
        assert all("are left" in reason for reason in second.reasons)

    live(go())


def test_quick_agents_are_asked_inline_about_the_very_turn() -> None:
    async def go() -> None:
        ahead = agents(Engine(seconds=0.02))
        first = await ahead.for_turn("I feel sad.", NOON, "home", (), 0.6)
        assert first.inline == ()  # nobody knows yet how long they take
        ahead.kept("I feel sad.", "I am sorry.", NOON, first.strategy)
        await ahead.think(NOON)
        second = await ahead.for_turn("My cat is ill.", NOON, "home", (), 0.6)
        assert second.inline == ("decide", RETRIEVAL)
        assert second.report is not None
        assert second.report.heard == "My cat is ill."

    live(go())


def test_agents_that_turn_slow_are_left_when_the_budget_is_spent() -> None:
    async def go() -> None:
        engine = Engine(seconds=0.02)
        ahead = agents(engine)
        first = await ahead.for_turn("I feel sad.", NOON, "home", (), 0.6)
        ahead.kept("I feel sad.", "I am sorry.", NOON, first.strategy)
        await ahead.think(NOON)
        engine.seconds = 30.0
        began = asyncio.get_running_loop().time()
        second = await ahead.for_turn("My cat is ill.", NOON, "home", (), 0.6)
        assert asyncio.get_running_loop().time() - began <= 0.6 + 1e-6
        assert second.inline == ()
        assert second.report is not None  # the newest there is

    live(go())


def test_a_turn_that_is_only_looked_at_changes_nothing() -> None:
    async def go() -> None:
        ahead = agents(Engine())
        first = await ahead.for_turn("I feel sad.", NOON, "", (), None)
        ahead.kept("I feel sad.", "Oh.", NOON, first.strategy)
        before = await ahead.for_turn("Yes.", NOON, "", (), None)
        await ahead.for_turn("Please just listen.", NOON, "", (), None)
        assert await ahead.for_turn("Yes.", NOON, "", (), None) == before

    live(go())


def test_the_plan_ends_with_the_conversation() -> None:
    async def go() -> None:
        ahead = agents(Engine())
        ahead.kept(
            "I feel sad.", "Oh.", NOON, (await ahead.for_turn("I feel sad.", NOON, "", (), None)).strategy
        )
        await ahead.think(NOON)
        later = await ahead.for_turn("Hello there.", NOON + timedelta(hours=1), "", (), None)
        assert later.report is None
        assert later.strategy.by == "rule"

    live(go())


@pytest.mark.parametrize("bad", ["", "{", '{"x": 1}', "no"])
def test_answers_that_will_not_do_leave_the_rules_plan_and_the_found_memories(bad: str) -> None:
    async def go() -> None:
        engine = Engine(answer=lambda kind: bad)
        ahead = agents(engine)
        first = await ahead.for_turn("What about my holiday trip?", NOON, "", (), None)
        ahead.kept("What about my holiday trip?", "Oh.", NOON, first.strategy)
        assert await ahead.think(NOON)
        assert engine.asked[:2] == ["plan", "plan"]  # asked once more, then given up
        second = await ahead.for_turn("Yes.", NOON, "", (), None)
        assert second.strategy.by == "rule"
        assert second.report is not None
        assert (second.report.by, second.report.text) == ("rule", "You like tea.")

    live(go())


def test_a_report_of_what_was_never_remembered_is_not_believed() -> None:
    async def go() -> None:
        lie = json.dumps({"report": "The wearer owns a yacht in Monaco with Peter."})
        engine = Engine(answer=lambda kind: lie if kind == "report" else json.dumps(ANSWERS[kind]))
        ahead = agents(engine)
        ahead.kept("Hello.", "Hi.", NOON, (await ahead.for_turn("Hello.", NOON, "", (), None)).strategy)
        await ahead.think(NOON)
        report = (await ahead.for_turn("Yes.", NOON, "", (), None)).report
        assert report is not None
        assert report.text == "You like tea."

    live(go())


def test_thinking_makes_way_for_whoever_waits_and_goes_on_later() -> None:
    async def go() -> None:
        engine = Engine(answer=lambda kind: Preempted("needed"))
        ahead = agents(engine)
        ahead.kept("Hello.", "Hi.", NOON, (await ahead.for_turn("Hello.", NOON, "", (), None)).strategy)
        assert await ahead.think(NOON) is False
        engine.answer = lambda kind: json.dumps(ANSWERS[kind])
        assert await ahead.think(NOON) is True
        assert await ahead.think(NOON) is True
        assert engine.asked.count("report") == 1  # nothing is thought twice

    live(go())


# Real-time context.

GUESS = Guess("somewhere", "unknown")


def test_a_frame_without_speech_is_placed_too_and_the_same_view_is_asked_about_once() -> None:
    async def go() -> None:
        engine = Engine()
        agent = ContextAgent(engine)
        found = await agent.infer("A bench under a tree.", "", GUESS)
        assert (found.location, found.activity, found.by) == ("garden", "reading", "model")
        await agent.infer("A bench under a tree.", "", GUESS)
        assert engine.asked == ["context"]

    live(go())


@pytest.mark.parametrize(
    "failure", ["not JSON", EngineError("gone"), '{"location": "Garden 7!", "activity": "x"}']
)
def test_where_no_model_answers_the_rules_guess_stands(failure: str | Exception) -> None:
    async def go() -> None:
        agent = ContextAgent(Engine(answer=lambda kind: failure))
        found = await agent.infer("A bench.", "", Guess("park", "walking"))
        assert (found.location, found.activity, found.by) == ("park", "walking", "rule")

    live(go())


def test_a_slow_model_is_not_waited_for_longer_than_the_job_may_take() -> None:
    async def go() -> None:
        began = asyncio.get_running_loop().time()
        found = await ContextAgent(Engine(seconds=600)).infer("A bench.", "", GUESS)
        assert found.by == "rule"
        assert asyncio.get_running_loop().time() - began < 20

    live(go())


def test_somebody_who_waits_is_told_apart_from_a_model_that_cannot() -> None:
    with pytest.raises(Busy):
        live(ContextAgent(Engine(answer=lambda kind: Preempted("needed"))).infer("A bench.", "", GUESS))


def test_what_the_wearer_said_of_the_place_stands_against_any_inference() -> None:
    answer = Whereabouts(location="office", activity="working")
    said = merged(Guess("kitchen", "unknown", said=True), answer, "A laptop. I am in the kitchen.")
    assert (said.location, said.activity) == ("kitchen", "working")
    assert merged(GUESS, answer, "").location == "somewhere"
    unsure = Whereabouts(location="somewhere", activity="unknown")
    assert merged(Guess("office", "working"), unsure, "A desk.").location == "office"


@pytest.mark.parametrize("job", [CONTEXT, PLAN, DECIDE, PROPOSE, REPORT], ids=lambda job: str(job.prompt))
def test_the_agents_prompts_show_answers_of_the_shape_that_they_ask_for(job: Any) -> None:
    names = "scene utterance place conversation objective steps action notes".split()  # noqa: SIM905
    messages = prompt_of(job, dict.fromkeys(names, "{x} here"))
    shown = [message.text for message in messages if message.role == "assistant"]
    assert shown
    for text in shown:
        job.answer.model_validate_json(text)
    assert "{x} here" in messages[-1].text  # and what is filled in opens no slot
