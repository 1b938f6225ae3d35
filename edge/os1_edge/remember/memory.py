"""The memory as the rest of the runtime sees it: keep, recall, learn. Works in one worker thread; in another
the file is written anew, beside which recall goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from os1_edge.events import RealtimeContext
from os1_edge.remember import derived
from os1_edge.remember.about import about, foresee_about
from os1_edge.remember.choices import Choices
from os1_edge.remember.cluster import THRESHOLD, DailyEvent
from os1_edge.remember.embed import Embedder
from os1_edge.remember.erase import clear
from os1_edge.remember.forget import SAME_WORDS_S, Forgetting, Receipt, Row, carry_out, foresee, within
from os1_edge.remember.importance import importance_by_rule
from os1_edge.remember.learning import learn_turn, withdraw
from os1_edge.remember.recall import BUDGET_S, Hit, Recall, RecallRules
from os1_edge.remember.reembed import embedding_missing
from os1_edge.remember.rows import WEARER, ProfileEntry, StoredTurn, readable
from os1_edge.remember.rows import now as machine_time
from os1_edge.remember.sessions import GAP_S, session_of
from os1_edge.remember.shorten import choose
from os1_edge.remember.store import Store
from os1_edge.remember.timeline import Timeline
from os1_edge.remember.trash import UNDO_S, Undoable, Window, end_all, end_due, undoable
from os1_edge.remember.undo import Restored, undo
from os1_edge.remember.used import keep_used

if TYPE_CHECKING:
    from os1_edge.remember.hosted.courier import Courier

T = TypeVar("T")


class Memory:
    """One wearer's memory."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        rules: RecallRules | None = None,
        event_threshold: float = THRESHOLD,
        session_gap_s: float = GAP_S,
    ) -> None:
        """
        Args:
            store: an open memory file; ``close`` closes it.
            embedder: makes the vectors.
            rules: how much to recall.
            event_threshold: see ``cluster.THRESHOLD``.
            session_gap_s: idle time after which a new conversation begins.
        """
        self.store = store
        self.timeline = Timeline(store, embedder.one, event_threshold)
        self.embedder = embedder
        self._recall = Recall(store, embedder, rules)
        self.session_gap_s = session_gap_s
        self.embed = embedder.one
        """Text -> embedding; for work in the memory's thread."""
        self.vectors_missing = True
        """Whether there may be items without a vector: another model was chosen, or something was forgotten
        and the rest made again."""
        self._embedding = embedding_missing(store, self.embed)
        self.news = asyncio.Event()
        """Set when something was kept; ``Consolidator`` clears it."""
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="memory")
        self._cleaner = ThreadPoolExecutor(1, thread_name_prefix="memory-file")
        self._cleaning = asyncio.Lock()
        self._calm = asyncio.Event()
        """Nothing writes the file anew."""
        self._calm.set()
        self._closing = False
        self.settle: Callable[[], Awaitable[None]] | None = None
        """Brings in what is still on its way into the memory: else it would come after it was forgotten."""
        self._courier = _courier_of(store)
        self._worker.submit(self._recall.warm)

    def close(self) -> None:
        """Ends the workers and closes the file."""
        self._closing = True
        self._cleaner.shutdown()
        self._worker.shutdown()
        self._recall.close()
        if self._courier is not None:
            self._courier.close()
        self.store.close()

    async def recall(
        self, heard: str, now: datetime, in_view: Collection[str], budget_s: float | None = BUDGET_S
    ) -> list[Hit]:
        """What to remember for ``heard``; texts ``in_view`` of the prompt already are left out, and what is
        only linked where ``budget_s`` seconds do not suffice."""
        return await self._at_once(lambda: self._recall.recall(heard, now, in_view, budget_s=budget_s))

    @property
    def word(self) -> str:
        """What to tell where the last recall was not of all of the memory, as its server is out of reach; ""
        where it was."""
        return self._recall.word

    async def keep_turn(
        self,
        turn_id: str,
        revision: int,
        time: datetime,
        heard: str,
        reply: str,
        location: str,
        speaker: str = WEARER,
        used: Sequence[Hit] = (),
    ) -> None:
        """Remembers a turn and what the wearer said of themselves in it: all of it, or nothing.

        Args:
            turn_id: the run's name of the turn.
            revision: a later one takes the place of an earlier; the same again changes nothing.
            time: the wearer's local time.
            heard: what ``speaker`` said. Nothing else teaches: not the reply, not what was recalled.
            reply: what OS-1 answered, as far as it was spoken.
            location: where.
            speaker: "wearer", or "other:NAME"; only the wearer's words are about the wearer.
            used: the memories that the reply rested on.
        """
        await self.run(self._keep_turn, turn_id, revision, time, heard, reply, location, speaker, used)
        self.news.set()

    async def keep_context(self, context: RealtimeContext, time: datetime, speaker: str = WEARER) -> None:
        """Remembers a real-time context, and the daily event that it closes.

        Args:
            context: what was seen and said.
            time: the wearer's local time.
            speaker: of its utterance, as for ``keep_turn``. Another's is left to its turn: an event quotes
                what it holds as the wearer's words.
        """
        if await self.run(self._keep_context, context, time, speaker):
            self.news.set()

    async def profile(self) -> list[ProfileEntry]:
        """The profile as it stands."""
        return await self._at_once(self.store.profile)

    async def events(self) -> list[DailyEvent]:
        """The daily events, oldest first; the one that still goes on as it stands."""
        return await self.run(self._events)

    async def would_forget_span(self, since: datetime, until: datetime | None = None) -> Forgetting:
        """What ``forget_span`` would forget, to be told before; nothing is changed."""
        await self._settled()
        return await self.run(self._foresee_span, since, until)

    async def would_forget_about(self, what: str) -> Forgetting:
        """What ``forget_about`` would forget, to be told before; nothing is changed.

        Raises:
            ValueError: there is no word in ``what``.
        """
        await self._settled()
        return await self.run(self._foresee_about, what)

    async def forget_span(
        self,
        since: datetime,
        until: datetime | None = None,
        *,
        now: datetime | None = None,
        undo_for_s: float = UNDO_S,
    ) -> Receipt:
        """Forgets what was said and seen from ``since`` on and before ``until``, and what rests on it alone.

        Args:
            since: the wearer's local time.
            until: the same; ``None``: up to the present.
            now: the same; the window to undo it begins then. ``None``: this machine's.
            undo_for_s: how long ``undo_forget`` can take it back; 0: it is gone at once, and with it what
                could be undone before, which takes seconds in a big file (``clear``).

        Raises:
            ValueError: ``undo_for_s`` is below 0 or more than a week.
        """
        return await self._forget(lambda: self._foresee_span(since, until), now, undo_for_s)

    async def forget_about(
        self, what: str, *, now: datetime | None = None, undo_for_s: float = UNDO_S
    ) -> Receipt:
        """Forgets everything that speaks of ``what``; what may only mean it stays. Otherwise as
        ``forget_span``.

        Raises:
            ValueError: there is no word in ``what``, or as there.
        """
        return await self._forget(lambda: self._foresee_about(what), now, undo_for_s)

    async def forget_rows(
        self, rows: Iterable[Row], *, now: datetime | None = None, undo_for_s: float = UNDO_S
    ) -> Receipt:
        """Forgets rows (kind, id), such as the wearer points at. Otherwise as ``forget_span``."""
        return await self._forget(lambda: foresee(self.store, rows), now, undo_for_s)

    async def choose(self, before: Choices, wanted: Choices, undo_for_s: float = UNDO_S) -> dict[str, int]:
        """Keeps the wearer's choices; what goes by them can be undone for ``undo_for_s`` seconds
        (``shorten.choose``). Returns how many rows went, by kind.

        Raises:
            ValueError: ``undo_for_s`` is 0, below, or more than a week.
        """
        undo = Window.of(machine_time(), undo_for_s)
        if undo is None:
            raise ValueError("what goes by a choice can be undone for a while")
        return await self.run(self._choose, before, wanted, undo)

    async def undo_forget(self, now: datetime | None = None) -> Restored | None:
        """Takes the latest forgetting back; ``None``: there is none, or its time was over at ``now``."""
        restored = await self.run(self._undo, now)
        self.news.set()
        return restored

    async def undoable(self) -> list[Undoable]:
        """The forgettings that can be undone, the latest first."""
        return await self.run(undoable, self.store)

    async def purge(self) -> str:
        """Makes what was forgotten final, now; returns why traces may still be in the file, if so."""
        await self.run(end_all, self.store)
        return await self.clear()

    async def clear(self, stop: Callable[[], bool] = lambda: False) -> str:
        """Leaves nothing of what was forgotten in the file; returns why that was not possible, if so. It
        takes 10 s after ten years, in which recall goes on and all else waits. ``stop``: see ``erase``."""
        async with self._cleaning:
            self._calm.clear()
            try:
                return await asyncio.get_running_loop().run_in_executor(
                    self._cleaner, clear, self.store, lambda: self._closing or stop()
                )
            finally:
                self._calm.set()

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Does ``work`` in the memory's thread, after what waits there."""
        await self._calm.wait()
        return await self._at_once(work, *args)

    async def _at_once(self, work: Callable[..., T], *args: object) -> T:
        """The same for what only reads: not even the file's being written anew is waited for."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work, *args)

    def embed_missing(self) -> int:
        """Makes some of the vectors that are missing or another embedder's; returns how many, 0: none was."""
        if (done := next(self._embedding, 0)) == 0:  # at the end; from the newest on, if more came meanwhile
            self._embedding = embedding_missing(self.store, self.embed)
            done = next(self._embedding, 0)
        return done

    def _keep_turn(
        self,
        turn_id: str,
        revision: int,
        time: datetime,
        heard: str,
        reply: str,
        location: str,
        speaker: str,
        used: Sequence[Hit],
    ) -> None:
        vector = self.embedder.one(readable(heard))
        with self.store.transaction() as db:
            newest = int(db.execute("SELECT coalesce(max(id), 0) FROM turns").fetchone()[0])
            session = self._session(time)
            row = self.store.add_turn(
                turn_id, revision, time, heard, reply, location, vector, speaker=speaker, session_id=session
            )
            if row <= newest:
                return  # kept already
            keep_used(self.store, row, used)
            for (before,) in db.execute("SELECT id FROM turns WHERE superseded_by = ?", (row,)).fetchall():
                withdraw(self.store, before, time)
            derived.set_importance(self.store, "turn", row, importance_by_rule(heard))
            learn_turn(self.store, self.embedder.one, *self.store.turns("t.id = ?", row))

    def _keep_context(self, context: RealtimeContext, time: datetime, speaker: str) -> list[int]:
        utterance = readable(context.utterance)
        if speaker != WEARER or self._said_by_another(utterance, time):
            utterance = ""
        context = replace(
            context,
            scene=readable(context.scene),
            utterance=utterance,
            location=readable(context.location),
            activity=readable(context.activity),
        )
        return self.timeline.add(context, time)

    def _said_by_another(self, utterance: str, time: datetime) -> bool:
        """Whether these words were another's in the turn kept of them, and not the wearer's too."""
        around = timedelta(seconds=SAME_WORDS_S)
        span = (time - around).isoformat(), (time + around).isoformat()
        turns = self.store.turns("time BETWEEN ? AND ? AND heard = ?", *span, utterance) if utterance else []
        return bool(turns) and all(turn.speaker != WEARER for turn in turns)

    def _session(self, time: datetime) -> str:
        """The session of a turn at ``time``; when it opens one, the one before is to be summarised."""
        last = self._newest_turn()
        began = None
        if last is not None and last.session_id:
            first = self.store.rows("SELECT min(time) FROM turns WHERE session_id = ?", last.session_id)
            began = datetime.fromisoformat(first[0][0])
        session = session_of(last, began, time, self.store.origin, self.session_gap_s)
        if last is not None and last.session_id and session != last.session_id:
            derived.add_job(self.store, "summarise", "turn", last.id)
        return session

    def _newest_turn(self) -> StoredTurn | None:
        found = self.store.rows("SELECT max(id) FROM turns WHERE superseded_by IS NULL")[0][0]
        return next(iter(self.store.turns("id = ?", found)), None) if found is not None else None

    def _foresee_span(self, since: datetime, until: datetime | None) -> Forgetting:
        return foresee(self.store, within(self.store, since, until))

    def _foresee_about(self, what: str) -> Forgetting:
        return foresee_about(self.store, what, about(self.store, what))

    async def _forget(
        self, plan: Callable[[], Forgetting], now: datetime | None, undo_for_s: float
    ) -> Receipt:
        await self._settled()
        undo = Window.of(now or machine_time(), undo_for_s)
        receipt = await self.run(self._carry_out, plan, undo)
        return receipt if undo else replace(receipt, left=await self.clear())

    async def _settled(self) -> None:
        if self.settle is not None:
            await self.settle()

    def _carry_out(self, plan: Callable[[], Forgetting], undo: Window | None) -> Receipt:
        self.timeline.forget_state()
        receipt = carry_out(self.store, plan(), clear_file=False, undo=undo)
        self.vectors_missing = True
        return receipt

    def _choose(self, before: Choices, wanted: Choices, undo: Window) -> dict[str, int]:
        self.timeline.forget_state()
        return choose(self.store, before, wanted, undo)

    def _undo(self, now: datetime | None) -> Restored | None:
        if now is not None:
            end_due(self.store, now)
        self.timeline.forget_state()
        restored = undo(self.store)
        self.vectors_missing = True
        return restored

    def _events(self) -> list[DailyEvent]:
        kept = [
            DailyEvent(e.start, e.end, e.location, e.activity, e.contexts, text=e.summary)
            for e in derived.events(self.store)
        ]
        return sorted([*kept, *self.timeline.open_events()], key=lambda event: event.start)


def _courier_of(store: Store) -> Courier | None:
    """What sends changes to the server that holds the memory, if it was moved to one."""
    if not store.hosted:
        return None
    from os1_edge.remember.hosted.open import courier  # only where a memory was moved

    return courier(store)
