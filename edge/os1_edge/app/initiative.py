"""Speaks first where ``converse.proactive`` finds an occasion: gathers what there is to speak of, asks every
few seconds, and hands the words to who talks.

Reminders are read out of the memory again whenever it changes, so that nothing is reminded of that was
forgotten. What was spoken of is kept by names without words in them.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import partial

import numpy as np

from os1_edge.app.trace import tell_failure
from os1_edge.clock import Calendar, Clock
from os1_edge.config import Converse
from os1_edge.converse import proactive, safety
from os1_edge.converse.greeting import greeted
from os1_edge.converse.manners import Manners
from os1_edge.converse.proactive import Occasion, Rules, State, decide
from os1_edge.converse.question import kind_of
from os1_edge.converse.reminders import found
from os1_edge.events import RATE, UNKNOWN_LOCATION, TurnEnded
from os1_edge.remember.about import about
from os1_edge.remember.memory import Memory
from os1_edge.remember.rows import OS1, WEARER
from os1_edge.remember.sessions import small_talk

EVERY_S = 2.0
"""Between two looks: a reminder may be two seconds late."""

LOOK_BACK = timedelta(days=31)
"""How old what is reminded of may be: who says "on Friday" means this week's or the next."""

MOST_TURNS = 400
"""Turns read for reminders, the newest: a month of talk."""

SPOKEN_KEPT = 200
"""Names of what was spoken of; far more than a month holds."""

WAITING = 32
"""Occasions of the moment (a person, a place) that may wait; the oldest goes."""

ARRIVED = 2
"""Contexts in a row at another place before it counts as a change: one alone may be a glance."""

MEMORY_KEY = "proactive"


@dataclass(frozen=True, slots=True)
class FirstWords:
    """Something to say unasked."""

    occasion: Occasion
    reason: str
    ended: TurnEnded
    """Stands for the turn that there was not."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the companion knows of the moment."""

    wearer_speaks: Callable[[], bool]
    busy: Callable[[], bool]
    muted: Callable[[], bool]
    speak: Callable[[FirstWords], None]


class Initiative:
    """One companion's. Use it in one loop."""

    def __init__(
        self, converse: Converse, memory: Memory, manners: Manners, clock: Clock, calendar: Calendar
    ) -> None:
        self._rules = Rules(on=converse.proactive, quiet=_quiet(converse.quiet_hours))
        self._memory, self._manners = memory, manners
        self._clock, self._calendar = clock, calendar
        self._reminders: list[Occasion] = []
        self._moment: deque[Occasion] = deque(maxlen=WAITING)
        self._distress: datetime | None = None
        self._last_sound: datetime | None = None
        self._spoken: deque[str] = deque(maxlen=SPOKEN_KEPT)
        self._times: deque[datetime] = deque(maxlen=SPOKEN_KEPT)
        self._place, self._coming, self._seen_there = "", "", 0
        self._number = 0

    async def run(self, stage: Stage) -> None:
        """Looks for an occasion every few seconds, until cancelled."""
        if not self._rules.on:
            return
        try:
            await self._recollect()
        except Exception as e:
            tell_failure("reading what was spoken of first", e)
        while True:
            await asyncio.sleep(EVERY_S)
            self.look(stage)

    def look(self, stage: Stage) -> None:
        """Speaks first, if this is the moment."""
        now = self._calendar.at(self._clock.now())
        if stage.wearer_speaks() or stage.busy():
            self._last_sound = now
        state = State(
            now, stage.wearer_speaks(), stage.busy(), stage.muted(), self._last_sound, tuple(self._times)
        )
        decision = decide(self._occasions(), state, self._rules)
        if decision.say is not None:
            self._number += 1
            stage.speak(FirstWords(decision.say, decision.reason, self._no_turn()))

    def sounded(self) -> None:
        """Somebody spoke until now."""
        self._last_sound = self._calendar.at(self._clock.now())

    async def spoke(self, words: FirstWords, heard: str) -> None:
        """``words`` were said, or ``heard`` of them: they are the companion's, and not said again."""
        now = self._calendar.at(self._clock.now())
        self.sounded()
        self._times.append(now)
        self._spoken.append(words.occasion.key)
        if words.occasion in self._moment:
            self._moment.remove(words.occasion)
        turn = words.ended
        await self._memory.keep_turn(turn.turn_id, turn.revision, now, heard, "", "", OS1)
        await self._memory.run(self._write_down)

    async def answered(self, heard: str, time: datetime, turn_id: str) -> None:
        """A turn of the wearer's was answered and kept."""
        self.sounded()
        if not self._rules.on:
            return
        if safety.distress(heard):
            self._distress = time
        if found(heard, time) is not None:
            await self._refresh()
        name = greeted(heard, (self._manners.persona.name,))
        if name is not None and (known := await self._memory.run(partial(self._of, name, turn_id))):
            self._add(proactive.of_person(name, known, time, self._manners.spoken))

    async def at_place(self, place: str, time: datetime) -> None:
        """The wearer seems to be at ``place``."""
        if not self._rules.on or place in (UNKNOWN_LOCATION, "", self._place):
            self._coming = ""
            return
        self._seen_there = self._seen_there + 1 if place == self._coming else 1
        self._coming = place
        if self._seen_there < ARRIVED:
            return
        first, self._place, self._coming = not self._place, place, ""
        if not first and (said := await self._memory.run(partial(self._said_at, place, time))):
            self._add(proactive.of_place(place, said, time, self._manners.spoken))

    async def forgot(self) -> None:
        """The memory lost or got back something: only what it holds now is spoken of."""
        self._moment.clear()
        self._distress = None
        if self._rules.on:
            await self._refresh()

    async def _refresh(self) -> None:
        self._reminders = await self._memory.run(self._read, self._calendar.at(self._clock.now()))

    def _occasions(self) -> list[Occasion]:
        out = [*self._reminders, *self._moment]
        if self._distress is not None:
            last = self._last_sound or self._distress
            out.append(proactive.of_distress(self._distress, last, self._manners.spoken))
        return [o for o in out if o.key not in self._spoken]

    def _add(self, occasion: Occasion) -> None:
        if occasion.key not in self._spoken and all(o.key != occasion.key for o in self._moment):
            self._moment.append(occasion)

    def _no_turn(self) -> TurnEnded:
        at = round(self._clock.now() * RATE)
        turn_id = f"first-{self._calendar.at(self._clock.now()):%Y%m%dT%H%M%S}-{self._number}"
        return TurnEnded(turn_id, 0, at, at, at, "the companion speaks first", np.zeros(0, np.float32), at)

    # In the memory's thread.

    async def _recollect(self) -> None:
        kept = await self._memory.run(self._memory.store.meta, MEMORY_KEY)
        if kept is not None:
            noted = json.loads(kept)
            self._spoken.extend(noted["spoken"])
            self._times.extend(datetime.fromisoformat(at) for at in noted["times"])
        await self._refresh()

    def _write_down(self) -> None:
        # A person's or a place's name would outlive its forgetting; those are of one day anyway.
        keys = [key for key in self._spoken if key.startswith(("reminder", "distress"))]
        times = [at.isoformat() for at in self._times]
        self._memory.store.set_meta(MEMORY_KEY, json.dumps({"spoken": keys, "times": times}))

    def _read(self, now: datetime) -> list[Occasion]:
        turns = self._memory.store.turns(
            "time >= ? AND speaker = ?", (now - LOOK_BACK).isoformat(), WEARER
        )[-MOST_TURNS:]  # fmt: skip
        out = []
        for turn in turns:
            reminder = found(turn.heard, turn.time)
            if reminder is not None and reminder.speak_until >= now:
                key = f"reminder {turn.turn_id} {reminder.due.isoformat()}"
                out.append(proactive.of_reminder(reminder, key, self._manners.spoken))
        return out

    def _of(self, name: str, turn_id: str) -> str:
        """The newest thing known of somebody: a line of the profile, else the wearer's words."""
        store = self._memory.store
        holds = {("profile", entry.id) for entry in store.profile()}
        now = {("turn", turn.id) for turn in store.turns("turn_id = ?", turn_id)}
        mentions = about(store, name)
        lines = [m.text for m in mentions if m.row in holds]
        said = [m.text for m in mentions if m.kind == "turn" and m.row not in now and _tells(m.text)]
        return (lines or said or [""])[-1]

    def _said_at(self, place: str, now: datetime) -> str:
        """What the wearer last told at ``place`` on an earlier day."""
        today = datetime.combine(now.date(), time())
        turns = self._memory.store.turns(
            "location = ? AND speaker = ? AND time < ?", place, WEARER, today.isoformat()
        )[-MOST_TURNS:]  # fmt: skip
        return next((t.heard for t in reversed(turns) if _tells(t.heard)), "")


LEAST_WORDS = 4
"""Of something worth saying again."""


def _tells(said: str) -> bool:
    """Whether ``said`` tells something: no question, no greeting, no "all right then"."""
    return len(said.split()) >= LEAST_WORDS and kind_of(said) == "statement" and not small_talk(said)


def _quiet(hours: str) -> tuple[time, time]:
    begin, end = hours.split("-")
    return _time(begin), _time(end)


def _time(text: str) -> time:
    hour, minute = text.split(":")
    return time(int(hour), int(minute))
