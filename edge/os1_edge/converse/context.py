"""Real-time context: where the wearer is and what they do, inferred from scene and speech (paper 3.2.2).

``N_llm(v, u) -> {l, a}`` is the job ``context``; it runs in the background, for turns and for frames without
speech, and never delays a reply. What the wearer said of the place stands against whatever a model infers;
where no model may be asked, or it fails, the caller's own guess is taken.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from os1_edge.converse.jobs import LanguageJob, ask
from os1_edge.events import UNKNOWN_LOCATION
from os1_edge.offload.engine import EngineError, LanguageEngine

UNKNOWN_ACTIVITY = "unknown"

Words = Annotated[str, Field(pattern=r"^[a-z][a-z ]{1,28}[a-z]$")]
"""One to three words, in small letters."""

NOTHING_SAID = "nothing"
KEPT = 64
"""Inferences kept: a camera that sees the same all morning is not asked about twice."""


class Whereabouts(BaseModel):
    """Location and activity."""

    model_config = ConfigDict(extra="forbid", strict=True)

    location: Words
    activity: Words


CONTEXT = LanguageJob("context", Whereabouts, 30, budget="context", seconds=8.0)


@dataclass(frozen=True, slots=True)
class Guess:
    """Where the wearer is and what they do, as far as rules can tell."""

    location: str
    activity: str
    said: bool = False
    """The wearer's own words say where."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """Where the wearer is and what they do."""

    location: str
    activity: str
    by: Literal["model", "rule"]
    reason: str


def merged(guess: Guess, answer: Whereabouts | None, evidence: str) -> Inferred:
    """What to keep of a model's ``answer`` beside the ``guess``. Pure.

    Args:
        guess: of the rules.
        answer: the model's; ``None``: it gave none.
        evidence: scene and utterance. Without any, no model can know.
    """
    if answer is None:
        return Inferred(guess.location, guess.activity, "rule", "no model answered")
    if not re.search(r"\w", evidence):
        return Inferred(guess.location, guess.activity, "rule", "nothing was seen or said")
    activity = guess.activity if guess.activity != UNKNOWN_ACTIVITY else answer.activity
    if guess.said:
        return Inferred(guess.location, activity, "rule", "the wearer said where")
    if guess.location != UNKNOWN_LOCATION and answer.location == UNKNOWN_LOCATION:
        return Inferred(guess.location, activity, "rule", "the model could not tell")
    return Inferred(answer.location, activity, "model", "inferred from scene and speech")


class ContextAgent:
    """Infers contexts on a language engine. Use it in one loop."""

    def __init__(self, engine: LanguageEngine) -> None:
        self._engine = engine
        self._known: OrderedDict[tuple[str, str], Whereabouts] = OrderedDict()

    async def infer(self, scene: str, utterance: str, guess: Guess) -> Inferred:
        """The context of a frame and what was said with it (empty: nothing); ``guess`` where no model
        answers.

        Raises:
            Busy: somebody waits for the engine; ask again later.
        """
        key = scene, utterance
        answer = self._known.get(key)
        if answer is None and (scene or utterance):
            try:
                answer = await ask(
                    self._engine, CONTEXT, scene=scene or "nothing", utterance=utterance or NOTHING_SAID
                )
            except (EngineError, TimeoutError):
                answer = None
            if answer is not None:
                self._known[key] = answer
                if len(self._known) > KEPT:
                    self._known.popitem(last=False)
        return merged(guess, answer, f"{scene} {utterance}")
