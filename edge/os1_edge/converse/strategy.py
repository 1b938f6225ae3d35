"""The dialogue strategy agent (paper 3.2.5): a planner gives a conversation its objective and steps, a
decider says what to do next.

Both have rules of their own, which every turn can afford; a language model's plan takes their place when it
is there. The state is one conversation's, a value: each exchange gives a new one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from os1_edge.converse.jobs import LanguageJob
from os1_edge.converse.question import feels_bad, kind_of, seeks

Outcome = Literal["open", "better", "worse"]
By = Literal["rule", "model"]

Short = Annotated[str, Field(min_length=3, max_length=60, pattern=r"^[A-Za-z][A-Za-z ,'-]+$")]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Planned(_Answer):
    """The planner's answer."""

    objective: Literal["give comfort", "listen", "share the joy", "help to decide", "keep company"]
    """The rules' own: a plan made for something else could not be revised by them."""
    steps: Annotated[list[Short], Field(min_length=1, max_length=4)]


class Decided(_Answer):
    """The decider's answer."""

    done: Annotated[int, Field(ge=0, le=4)]
    outcome: Outcome
    action: Short


PLAN = LanguageJob("plan", Planned, 80, budget="plan", seconds=10.0)
DECIDE = LanguageJob("decide", Decided, 50, budget="plan", seconds=8.0)


@dataclass(frozen=True, slots=True)
class Strategy:
    """Where a conversation is meant to go, and how far it has come."""

    objective: str
    steps: tuple[str, ...]
    done: int = 0
    """Steps taken."""
    outcome: Outcome = "open"
    action: str = ""
    """What the next reply should do."""
    by: By = "rule"
    reason: str = ""
    fresh: bool = False
    """The action was made for the next turn, by a model; no rule moves on from it."""

    @property
    def next_step(self) -> str:
        """The step that comes next; the last one again when all are done."""
        return self.steps[min(self.done, len(self.steps) - 1)]

    @property
    def numbered(self) -> str:
        """The steps as the decider reads them: "1. affirm the feeling 2. ask what happened"."""
        return " ".join(f"{n}. {step}" for n, step in enumerate(self.steps, 1))


COMFORT = "give comfort"
LISTEN = "listen"
SHARE = "share the joy"
HELP = "help to decide"
CHAT = "keep company"

_STEPS: dict[str, tuple[str, ...]] = {
    COMFORT: (
        "affirm the feeling",
        "ask what happened",
        "offer something they like",
        "look for what can be learned",
    ),
    LISTEN: ("affirm what they say", "let them talk"),
    SHARE: ("be glad with them", "ask for more"),
    HELP: ("advise from what is known and seen", "ask whether it helps"),
    CHAT: ("answer what they say", "come back to what they told before"),
}

_PUSHES_BACK: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), objective)
    for pattern, objective in (
        (r"\b(?:just|only|please) (?:comfort|hug|hold|console) me\b|\bneed comfort\b", COMFORT),
        (
            r"\bjust listen\b|\b(?:stop|no more|don't|do not|without) (?:asking|questions?|ask)\b"
            r"|\blet me talk\b|\btoo many questions\b|\bstop (?:asking|advising|giving)\b",
            LISTEN,
        ),
        (
            r"\b(?:don't|do not) (?:want|need) (?:to (?:think|talk) about|any|your)?\s*(?:advice|solutions?"
            r"|tips|solve|solving|it)\b|\bnot (?:now|looking for advice)\b",
            COMFORT,
        ),
        (r"\bwhat should i do\b|\bhelp me (?:decide|solve|with)\b|\bi (?:want|need) advice\b", HELP),
        (r"\b(?:change|another) (?:the )?(?:subject|topic)\b|\btalk about something else\b", CHAT),
    )
)
_CALMED = re.compile(
    r"\b(?:thank(?:s| you)|feel(?:ing)? better|that helps?|you(?:'re| are) right|good idea|calmer)\b", re.I
)
_GLAD = re.compile(
    r"\b(?:great|wonderful|happy|excited|finally (?:\w+ed|got|did|made|found)|amazing|won"
    r"|passed|got the|engaged|promoted)\b",
    re.I,
)
_IN_VAIN = re.compile(
    r"\b(?:even )?worse\b|\b(?:does not|doesn't|did not|didn't|not) help(?:ing|ed)?\b|\bno help\b"
    r"|\byou (?:do not|don't) understand\b",
    re.I,
)
"""What was said so far did no good."""


def pushed_back(heard: str) -> str:
    """The objective that the wearer asks for instead ("can you just comfort me?"); empty: they do not."""
    return next((objective for pattern, objective in _PUSHES_BACK if pattern.search(heard)), "")


def objective_of(heard: str) -> str:
    """What the wearer needs, by what they say."""
    if seeks(heard) or kind_of(heard) != "statement":
        return HELP if seeks(heard) else CHAT
    if feels_bad(heard):
        return COMFORT
    return SHARE if _GLAD.search(heard) or heard.rstrip().endswith("!") else CHAT


def planned(objective: str, reason: str) -> Strategy:
    """A plan by rule."""
    steps = _STEPS[objective]
    return Strategy(objective, steps, action=steps[0], reason=reason)


def advanced(strategy: Strategy | None, heard: str) -> Strategy:
    """The strategy for the reply to ``heard``, by rule: revised where the wearer pushes back or needs
    something else, else the next step of the plan. What a model planned stays as long as it holds."""
    if wanted := pushed_back(heard):
        again = strategy is not None and strategy.objective == wanted
        return planned(
            wanted, "the wearer asks for it again" if again else "the wearer asks for something else"
        )
    needed = objective_of(heard)
    if strategy is None:
        return planned(needed, "the conversation begins")
    if needed == COMFORT and strategy.objective not in (COMFORT, LISTEN) and strategy.by == "rule":
        return planned(COMFORT, "the wearer feels bad now")
    in_vain = _IN_VAIN.search(heard) is not None
    bad = in_vain or feels_bad(heard)
    outcome: Outcome = (
        "worse" if in_vain else "better" if _CALMED.search(heard) else "worse" if bad else "open"
    )
    if strategy.objective == COMFORT and (in_vain or (bad and strategy.done and not strategy.fresh)):
        return replace(strategy, outcome=outcome, action=strategy.steps[0], reason="not calmed yet")
    if strategy.by == "rule" and needed not in (CHAT, strategy.objective) and strategy.objective != LISTEN:
        return planned(needed, "the wearer turns to something else")
    if strategy.fresh:
        return replace(strategy, outcome=outcome, fresh=False)
    done = min(strategy.done + 1, len(strategy.steps))
    moved = replace(strategy, done=done, outcome=outcome)
    return replace(moved, action=moved.next_step, reason="the next step of the plan")


def refined(strategy: Strategy, answer: Planned) -> Strategy:
    """The planner's answer in the rules' place."""
    steps = tuple(answer.steps)
    why = "planned by a model"
    return Strategy(answer.objective, steps, action=steps[0], by="model", reason=why, fresh=True)


def decided(strategy: Strategy, answer: Decided) -> Strategy:
    """The decider's answer: never back behind what is done, never past the plan."""
    done = max(strategy.done, min(answer.done, len(strategy.steps)))
    return replace(
        strategy,
        done=done,
        outcome=answer.outcome,
        action=answer.action,
        reason="decided by a model",
        fresh=True,
    )
