"""One reply: recall, prompt, stream; and the conversation that it becomes a part of."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from os1_edge.config import Config
from os1_edge.converse.ablation import LEAVES_OUT, Part
from os1_edge.converse.ahead import Ahead, Thoughts
from os1_edge.converse.balance import asks
from os1_edge.converse.context import ContextAgent
from os1_edge.converse.correction import corrections
from os1_edge.converse.editing import Editor
from os1_edge.converse.evidence import SUGGESTED, queries, standing
from os1_edge.converse.history import Conversation, as_turns, by_rule
from os1_edge.converse.jobs import MemoryWriter
from os1_edge.converse.manners import Manners
from os1_edge.converse.prompt import ANSWER, NOTED, Notes, Plan, examples, plan, system_message
from os1_edge.converse.question import kind_of
from os1_edge.converse.retrieval import Report
from os1_edge.converse.safety import must_mind
from os1_edge.converse.sight import NO_SIGHT, Sight
from os1_edge.converse.texts import text
from os1_edge.offload.engine import EngineError, Message
from os1_edge.offload.route import Decision, RoutedEngine
from os1_edge.remember.chores import Busy
from os1_edge.remember.grounding import faithful
from os1_edge.remember.memory import Memory
from os1_edge.remember.recall import Hit
from os1_edge.remember.rows import ProfileEntry

SPOKE_FIRST = "(You speak first.)"
"""Stands in the conversation where the wearer said nothing."""

CUT = "\u2014"
"""Ends a reply in the conversation that the wearer did not let finish."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A turn's prompt and what it rests on."""

    heard: str
    time: datetime
    plan: Plan
    prompt: list[Message]
    hits: tuple[Hit, ...]
    scene: str = ""
    thoughts: Thoughts | None = None
    """What the agents had for it."""

    @property
    def evidence(self) -> str:
        """All that the prompt tells of this wearer: facts, what was recalled, their words; nothing of the
        replies and nothing of the examples."""
        told = self.prompt[1 + len(examples()) :]
        return "\n".join(message.text for message in told if message.role != "assistant")


class Replier:
    """Answers turns, one after the other."""

    def __init__(self, config: Config, engine: RoutedEngine, memory: Memory) -> None:
        self._settings = config.converse
        self._engine = engine
        self._memory = memory
        self.manners = Manners.of(config.converse, config.hear.language)
        self._opening = (system_message(self.manners.persona.text), *examples())
        self._conversation = Conversation(config.converse.history, config.converse.session_gap_s)
        by_model = config.converse.agents == "model"
        self._ahead = Ahead(engine, memory, config.converse.session_gap_s, by_model=by_model)
        self.contexts = ContextAgent(engine) if by_model else None
        """Tells where the wearer is; ``None``: rules alone do."""

    @property
    def budget_s(self) -> float:
        """From the wearer's last sound to the reply's first."""
        return self._settings.voice_to_voice_s

    async def warm(self) -> None:
        """Has the engine read the prompt's beginning ahead of the first turn."""
        await self._engine.open([*self._opening, Message("user", "Hello.")])

    async def prepare(
        self,
        heard: str,
        time: datetime,
        scene: str,
        sight: Sight = NO_SIGHT,
        *,
        place: str = "",
        left_s: float | None = None,
    ) -> Asked:
        """Recalls for ``heard`` and writes the prompt. Changes nothing: the turn may never be answered.

        Args:
            heard: what the wearer said.
            time: their time.
            scene: what is in view, in a sentence.
            sight: what else is known of the view.
            place: location and activity.
            left_s: how long the turn may wait for the agents; ``None``: what they have is enough.
        """
        out = LEAVES_OUT[self._settings.ablation]
        notes = await self._notes(heard, time, scene)
        out_of_reach = bool(self._memory.word)
        if "context" not in out:
            notes = replace(notes, sight=sight)
        said = self._conversation.said(time)
        left_s = None if "history" in out else left_s
        thoughts = await self._ahead.for_turn(heard, time, "" if "context" in out else place, said, left_s)
        notes = replace(notes, strategy=thoughts.strategy, replied=self._conversation.replied(time))
        if thoughts.report is not None and not out:
            notes = replace(notes, report=thoughts.report.text, proposed=_with(notes, thoughts.report))
        planned = self.manners.minded(plan(heard, notes), heard, time)
        language = self.manners.language(heard)
        if out_of_reach and planned.fixed == text("unknown", language):
            told = text("unknown, out of reach", language)
            planned = replace(planned, fixed=told, fallback=told, reason="part of the memory is out of reach")
        if heard in corrections([*said, heard]):
            planned = replace(planned, fixed=NOTED, reason="the wearer puts something right")
        prompt = self._conversation.messages(self._opening, planned.message, time)
        prompt[-1] = replace(prompt[-1], likely=planned.likely)
        hits = (*notes.recalled, *notes.proposed)
        return Asked(heard, time, planned, prompt, hits, notes.scene, thoughts)

    async def _notes(self, heard: str, time: datetime, scene: str) -> Notes:
        """What the reply may rest on, less what the ablation leaves out."""
        out = LEAVES_OUT[self._settings.ablation]
        history: list[ProfileEntry] = []
        if "profile" not in out:
            history = await self._memory.run(self._memory.store.profile_history)
        recalled: list[Hit] = []
        proposed: list[Hit] = []
        if "history" not in out:
            said = self._conversation.said(time)
            # What was told a moment ago stands in the prompt, but not as the fact that answers.
            asks = kind_of(heard) == "question"
            recalled = _put_right(await self._recall(heard, time, () if asks else said, out), said)
            for query in queries(heard, time):
                found = await self._recall(query, time, said, out)
                proposed += [hit for hit in found if hit.score >= SUGGESTED]
        profile = [e for e in history if e.valid_to is None and e.superseded_by is None]
        seen = "" if "context" in out else scene
        return Notes(
            time, seen, tuple(standing(recalled, history, heard)), must_mind(heard, seen, profile),
            tuple(profile), tuple(standing(proposed, history, heard)),
        )  # fmt: skip

    async def _recall(
        self, query: str, time: datetime, said: Sequence[str], out: Collection[Part]
    ) -> list[Hit]:
        found = await self._memory.recall(query, time, said)
        return [hit for hit in found if hit.kind != "profile" or "profile" not in out]

    def editor(self, asked: Asked) -> Editor:
        """Who edits the reply to ``asked``."""
        return self.manners.editor(asked.heard, asked.evidence, asked.plan, asked.scene)

    async def prime(self, asked: Asked) -> None:
        """Has the engine read ahead for a turn whose end is still to come."""
        if asked.plan.fixed is None:
            await self._engine.prime(asked.prompt)

    def stream(self, asked: Asked) -> AsyncGenerator[str, None]:
        """The reply's text as it is written.

        Raises:
            EngineError: the engine gave out.
        """
        return self._engine.stream(asked.prompt, self._settings.max_tokens)

    @property
    def decision(self) -> Decision:
        """Where the newest reply was made, and why; known from its first text on."""
        return self._engine.decision

    def keep(self, asked: Asked, heard: str, *, whole: bool) -> None:
        """What the wearer really heard of the reply belongs to the conversation, and nothing else of it."""
        reply = heard if whole else f"{heard} {CUT}".lstrip()
        self._conversation.add(asked.plan.message, asked.heard, reply, asked.time)
        self._ahead.kept(asked.heard, heard, asked.time, asked.thoughts.strategy if asked.thoughts else None)
        self.manners.replied(asked.heard, heard)

    async def think(self, now: datetime, place: str = "") -> bool:
        """Works ahead of the next turn, in the background: the conversation is read as it now stands; the
        turn's strategy, a report, a summary of what will leave the prompt. Cancel it when somebody speaks.

        Returns:
            Whether all is done; ``False``: the engine was needed elsewhere, ask again later.
        """
        await self._read_on(now)
        if self._settings.agents == "rules":
            return True
        if LEAVES_OUT[self._settings.ablation]:
            return True  # what is left out must not come in by the agents
        done = await self._ahead.think(now, place, self._conversation.said(now))
        if going := self._conversation.to_summarise():
            try:
                text = await MemoryWriter(self._engine).summarise_session(as_turns(going))
            except (Busy, EngineError, TimeoutError):
                return False
            source = " ".join(f"{one.heard} {one.reply}" for one in going)
            self._conversation.summarised(going, faithful(text or "", source) or by_rule(going))
        return done

    async def _read_on(self, now: datetime) -> None:
        """Has the engine read the newest exchange as it was heard, and all of them where the older went: else
        the next turn would wait for it. The last line is how a question begins, of which there is most to
        read."""
        if self._conversation.goes_on(now):
            await self._engine.prime(self._conversation.messages(self._opening, f"{ANSWER}\n", now))

    def spoke_first(self, words: str, time: datetime) -> None:
        """The companion said ``words`` unasked: what the wearer says next may answer them."""
        self._conversation.add(SPOKE_FIRST, "", words, time)
        self.manners.asked.append(asks(words))

    def forget(self) -> None:
        """The running conversation is over: what was forgotten must not be said again out of it."""
        self._conversation = Conversation(self._settings.history, self._settings.session_gap_s)
        self._ahead.forget()


def _put_right(hits: Sequence[Hit], said: Sequence[str]) -> list[Hit]:
    """``hits`` as the wearer corrected them since."""
    right = corrections(said)
    texts = [right.get(hit.text, hit.text) for hit in hits]
    return [replace(hit, text=text) for hit, text in zip(hits, texts, strict=True) if text]


def _with(notes: Notes, report: Report) -> tuple[Hit, ...]:
    """What was recalled for the rules' queries, then what the retrieval agent found."""
    known = {hit.text.casefold() for hit in (*notes.recalled, *notes.proposed)}
    return (*notes.proposed, *(hit for hit in report.hits if hit.text.casefold() not in known))
