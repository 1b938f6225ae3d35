"""Answers turns that have ended, one after the other: what was drafted is spoken, and what was heard of it is
kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from os1_edge.app.answer import Spoken
from os1_edge.app.commanding import Commanding
from os1_edge.app.contexts import Contexts
from os1_edge.app.draft import Draft
from os1_edge.app.floor import Answering, Floor, Verdict
from os1_edge.app.initiative import FirstWords, Initiative
from os1_edge.app.trace import Observer, TurnTrace, tell_failure
from os1_edge.clock import Calendar
from os1_edge.converse.commands import Command
from os1_edge.converse.reply import Replier
from os1_edge.events import RATE, TurnEnded
from os1_edge.faculties import Faculties
from os1_edge.see.place import PlaceGuess, guess_place
from os1_edge.see.scene import SceneDescription
from os1_edge.speak.clauses import ClauseSplitter
from os1_edge.speak.heard import Heard
from os1_edge.speak.playback import Player

log = logging.getLogger(__name__)

TURNS_WAITING = 8
"""Turns that may wait for an answer; a ninth pushes the oldest out."""


@dataclass(slots=True)
class EndedTurn:
    """A turn that has ended, and its answer in the making."""

    ended: TurnEnded
    draft: Draft
    answering: Answering
    ended_at: float = field(default_factory=perf_counter)


Say = Callable[[TurnTrace, str], Awaitable[Spoken | None]]
"""Makes a clause sound; nothing where the voice failed."""


class Talk:
    """The mouth of the companion. Use it in one loop."""

    def __init__(
        self,
        faculties: Faculties,
        replier: Replier,
        floor: Floor,
        player: Player,
        calendar: Calendar,
        observer: Observer,
        say: Say,
        commanding: Commanding,
        initiative: Initiative,
        kept: Callable[[], Awaitable[None]],
        answered: Callable[[], None],
    ) -> None:
        """``say`` makes the sound of what is said without a draft; ``kept`` is awaited once a turn is in the
        memory; ``answered`` is told when a turn is over, however it ended."""
        self._faculties = faculties
        self._replier = replier
        self._floor = floor
        self._player = player
        self._calendar = calendar
        self.contexts = Contexts(faculties.memory, calendar, replier.contexts)
        self._observer = observer
        self._say, self._commanding, self._initiative = say, commanding, initiative
        self._kept, self._answered = kept, answered
        self._first: FirstWords | None = None
        self._waiting: deque[EndedTurn] = deque(maxlen=TURNS_WAITING)
        self._heard_all = False
        self._something_new = asyncio.Event()

    def add(self, turn: EndedTurn) -> None:
        """Another turn has ended."""
        if len(self._waiting) == TURNS_WAITING:
            log.warning("more than %d turns wait for an answer; the oldest is dropped", TURNS_WAITING)
            dropped = self._waiting.popleft()
            dropped.draft.void()
            dropped.draft.trace.failed = f"more than {TURNS_WAITING} turns waited"
            self._floor.answered(dropped.answering)
            self._observer.turn_answered(dropped.draft.trace)
        self._waiting.append(turn)
        self._something_new.set()

    def speak_first(self, words: FirstWords) -> None:
        """Says something unasked, unless a turn is to be answered first: then it is not said."""
        self._first = words
        self._something_new.set()

    def no_more(self) -> None:
        """No further turn comes."""
        self._heard_all = True
        self._something_new.set()

    async def run(self) -> None:
        """Until ``no_more`` was said and the last turn is answered."""
        while True:
            while not self._waiting:
                if self._heard_all:
                    return
                if (words := self._first) is not None:
                    self._first = None
                    await self._speak_first(words)
                    continue
                self._something_new.clear()
                await self._something_new.wait()
            self._first = None
            turn = self._waiting.popleft()
            try:
                await self._answer(turn)
            except Exception as e:
                tell_failure(f"turn {turn.ended.turn_id}", e)
                turn.draft.trace.failed = type(e).__name__
                self._observer.turn_answered(turn.draft.trace)
            finally:
                turn.draft.void()
                self._floor.answered(turn.answering)
                self._answered()

    async def _answer(self, turn: EndedTurn) -> None:
        draft, trace, answering = turn.draft, turn.draft.trace, turn.answering
        verdict = await draft.verdict
        if draft.heard_at is not None:
            trace.final_text_s = max(0.0, draft.heard_at - turn.ended_at)
        if verdict.kind != "turn":
            self._not_answered(trace, verdict)
            return
        answering.heard, answering.reply = trace.heard, draft.composed
        if draft.command is not None:
            await self._obey(draft.command, trace, answering)
            return
        heard = await self._speak(trace, answering, draft.clauses.get)
        if answering.fate == "withdrawn":
            return
        if draft.failed is not None:
            raise draft.failed
        await self._keep(draft, heard, cut=answering.fate == "cut")
        self._observer.turn_answered(trace)

    def _not_answered(self, trace: TurnTrace, verdict: Verdict) -> None:
        log.info("turn %s needs no answer", trace.ended.turn_id)
        if verdict.kind == "stop":
            trace.route, trace.route_reason = "rule", verdict.reason
            self._observer.turn_answered(trace)

    async def _obey(self, command: Command, trace: TurnTrace, answering: Answering) -> None:
        """Does what was commanded and says so. Neither is remembered."""
        words = await self._commanding.carry_out(
            command, trace.heard, self._calendar.at(trace.ended.end / RATE)
        )
        trace.route, trace.route_reason = "rule", f'the command "{command.kind}"'
        heard = await self._say_words(words, trace, answering)
        trace.interrupted = answering.fate == "cut"
        trace.reply = heard.text if heard is not None else ""
        self._initiative.sounded()
        self._observer.turn_answered(trace)

    async def _speak_first(self, words: FirstWords) -> None:
        """Says ``words`` if nobody has begun to speak meanwhile; what was heard of them is remembered as the
        companion's."""
        trace = TurnTrace(words.ended, route="rule", route_reason=words.reason)
        answering = self._floor.answers(words.ended.turn_id, words.ended.end / RATE)
        try:
            heard = await self._say_words(words.occasion.words, trace, answering, only_if_free=True)
            if heard is not None and heard.text:
                trace.reply, trace.interrupted = heard.text, answering.fate == "cut"
                await self._initiative.spoke(words, heard.text)
                self._replier.spoke_first(heard.text, self._calendar.at(words.ended.end / RATE))
                self._commanding.said(heard.text)
                self._observer.turn_answered(trace)
        except Exception as e:
            tell_failure("speaking first", e)
        finally:
            self._floor.answered(answering)
            self._answered()

    async def _say_words(
        self, words: str, trace: TurnTrace, answering: Answering, *, only_if_free: bool = False
    ) -> Heard | None:
        """Plays ``words``, which no draft has made."""
        splitter = ClauseSplitter()
        clauses = [*splitter.add(words), *splitter.finish()]
        answering.reply = clauses
        left = iter(clauses)

        async def another() -> Spoken | None:
            for clause in left:
                if (spoken := await self._say(trace, clause)) is not None:
                    return spoken
            return None

        return await self._speak(trace, answering, another, only_if_free=only_if_free)

    async def _speak(
        self,
        trace: TurnTrace,
        answering: Answering,
        another: Callable[[], Coroutine[Any, Any, Spoken | None]],
        *,
        only_if_free: bool = False,
    ) -> Heard | None:
        """Plays clauses as ``another`` gives them; what was heard of them, or nothing when none was spoken.
        With ``only_if_free`` none is where the wearer speaks."""
        of, player = (trace.ended.turn_id, trace.ended.revision), self._player
        spoken = await answering.unless_gone(another())
        if spoken is None or (only_if_free and not self._floor.free) or not await self._floor.take(answering):
            return None
        player.begin(*of, rtf=self._faculties.voice.rtf)
        said: list[str] = []
        while spoken is not None:
            said.append(spoken.clause)
            self._observer.being_said(trace, said)
            await player.add(spoken.clause, spoken.samples, spoken.rate, spoken.words, of=of)
            spoken = await answering.unless_gone(another())
        heard = await player.end()
        trace.spoke_at_s, trace.spoken_s = player.first_heard_at_s, heard.seconds
        trace.spoken_file = heard.file
        return heard

    async def _keep(self, draft: Draft, heard: Heard | None, *, cut: bool) -> None:
        """The turn, and as much of its reply as reached the wearer's ear, is remembered."""
        trace, asked = draft.trace, draft.asked
        assert asked is not None
        trace.interrupted = cut
        whole = not cut
        trace.reply = " ".join(draft.composed) if whole else heard.text if heard is not None else ""
        self._replier.keep(asked, trace.reply, whole=whole)
        guess = guess_place(draft.view, trace.heard)
        ended = trace.ended
        await self._faculties.memory.keep_turn(
            ended.turn_id,
            ended.revision,
            asked.time,
            trace.heard,
            trace.reply,
            guess.location,
            used=trace.hits if trace.reply else (),
        )
        await self.keep_context(ended.end / RATE, draft.view, trace.heard, guess)
        self._commanding.said(trace.reply)
        await self._initiative.answered(trace.heard, asked.time, ended.turn_id)
        await self._kept()

    async def keep_context(
        self, at_s: float, view: SceneDescription, utterance: str, place: PlaceGuess
    ) -> None:
        """What was seen and said at session second ``at_s`` is remembered."""
        await self.contexts.keep(at_s, view.sentence, utterance, place)
        await self._initiative.at_place(place.location, self._calendar.at(at_s))
