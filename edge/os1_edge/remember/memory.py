"""The memory as the rest of the runtime sees it: keep, recall, learn. Works in one worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TypeVar

from os1_edge.events import RealtimeContext
from os1_edge.remember.cluster import THRESHOLD, DailyEvent, EventClusterer, place_key
from os1_edge.remember.embed import Embedder
from os1_edge.remember.profile import STATED, ProfileProposal, ended_by, propose, reinforced, said_again
from os1_edge.remember.recall import Hit, RecallRules, rank
from os1_edge.remember.store import ProfileEntry, Store, Vector

T = TypeVar("T")

SAME_AMONG = 3
"""Nearest profile lines among which to look for the one that is said again: the nearest of all may be its
contrary."""


class Memory:
    """One wearer's memory."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        rules: RecallRules | None = None,
        event_threshold: float = THRESHOLD,
    ) -> None:
        self.store = store
        self._embedder = embedder
        self._rules = rules or RecallRules()
        self._event_threshold = event_threshold
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="memory")

    def close(self) -> None:
        """Ends the worker and closes the file."""
        self._worker.shutdown()
        self.store.close()

    async def recall(self, heard: str, now: datetime, in_view: Collection[str]) -> list[Hit]:
        """What to remember for ``heard``; texts ``in_view`` of the prompt already are left out."""
        return await self._run(self._recall, heard, now, in_view)

    async def keep_turn(
        self, turn_id: str, revision: int, time: datetime, heard: str, reply: str, location: str
    ) -> None:
        """Remembers a turn and what the wearer said of themselves in it: all of it, or nothing."""
        await self._run(self._keep_turn, turn_id, revision, time, heard, reply, location)

    async def keep_context(self, context: RealtimeContext, time: datetime) -> None:
        """Remembers a real-time context."""
        await self._run(self.store.add_context, context, time)

    async def profile(self) -> list[ProfileEntry]:
        """The profile as it stands."""
        return await self._run(self.store.profile)

    async def events(self) -> list[DailyEvent]:
        """The daily events of all contexts, oldest first."""
        return await self._run(self._events)

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work, *args)

    def _recall(self, heard: str, now: datetime, in_view: Collection[str]) -> list[Hit]:
        vector = self._embedder.one(heard)
        turns = self.store.nearest_turns(vector, self._rules.candidates)
        profile = self.store.nearest_profile(vector, self._rules.candidates)
        return rank(turns, profile, now, in_view, self._rules)

    def _keep_turn(
        self, turn_id: str, revision: int, time: datetime, heard: str, reply: str, location: str
    ) -> None:
        vector = self._embedder.one(heard)
        learned = [(proposal, self._embedder.one(proposal.text)) for proposal in propose(heard)]
        with self.store.transaction():
            self.store.add_turn(turn_id, revision, time, heard, reply, location, vector)
            for proposal, meaning in learned:
                self._learn(proposal, meaning, time, turn_id)

    def _learn(self, proposal: ProfileProposal, vector: Vector, time: datetime, turn_id: str) -> None:
        """Enters a line; what it repeats or contradicts stays as history only."""
        ended = ended_by(proposal.text)
        wrong = [e for e in self.store.profile() if e.text.casefold() in ended]
        same = [
            entry
            for entry, similarity in self.store.nearest_profile(vector, SAME_AMONG)
            if entry.kind == proposal.kind and said_again(proposal.text, entry.text, similarity)
        ][:1]
        confidence = reinforced(same[0].confidence) if same else STATED
        entry = ProfileEntry(0, proposal.kind, proposal.text, confidence, time, turn_id)
        self.store.add_profile(entry, vector, supersedes=[e.id for e in (*same, *wrong)])

    def _events(self) -> list[DailyEvent]:
        clusterer = EventClusterer(self._event_threshold)
        events = []
        for context, time in self.store.contexts():
            vector = self._embedder.one(place_key(context.location, context.activity))
            events.append(clusterer.add(context, time, vector))
        return [e for e in [*events, clusterer.close()] if e is not None]
