"""Does what the wearer commands, once the turn is over, and says in a few words that it is done.

What forgets more than one exchange is asked about first ("That is 12 memories. Say yes."): a name that was
misheard must not take a friend out of a memory. All of it can be taken back for an hour ("undo that"), and is
then gone for good. The words of a command are kept nowhere: "forget everything about Tom" would keep Tom.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Literal

from os1_edge.app.trace import tell_failure
from os1_edge.converse.address import addressed
from os1_edge.converse.commands import Command, Kind
from os1_edge.converse.manners import Manners
from os1_edge.converse.texts import text
from os1_edge.offload.link import Link, works
from os1_edge.offload.watch import Watch
from os1_edge.remember.forget import Forgetting
from os1_edge.remember.hosted.shelf import NotReached
from os1_edge.remember.memory import Memory
from os1_edge.remember.rows import WEARER, StoredTurn

Online = Literal["no server", "not asked yet", "online", "offline", "captive"]

CONFIRM_WITHIN = timedelta(seconds=60)
"""How long a "shall I forget that?" waits for its yes."""

JUST_NOW = timedelta(minutes=30)
"""How old the exchange may be that "forget that" means."""

TOLD_AT_ONCE = 5
"""Profile lines told to "what do you know about me?": what can be listened to."""


@dataclass(frozen=True, slots=True)
class Links:
    """What commands reach besides the memory."""

    forgot: Callable[[], Awaitable[None]]
    """The memory lost or got back something: whatever else holds words of it drops them."""
    mute: Callable[[], None]
    online: Callable[[], Online]
    back: str = "press the button"
    """The line in ``texts`` that says how to have it listen again."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """What is forgotten when the wearer says yes."""

    command: Command
    since: datetime | None


class Commanding:
    """One companion's. Use it in one loop."""

    def __init__(self, memory: Memory, manners: Manners, links: Links) -> None:
        self._memory, self._manners, self._links = memory, manners, links
        self._pending: _Pending | None = None
        self._said = ""
        """The last reply, as far as it was heard."""

    def said(self, reply: str) -> None:
        """``reply`` was heard: it is what "repeat that" means."""
        self._said = reply or self._said

    def forget(self) -> None:
        """Nothing is left to repeat, and no question waits for its yes."""
        self._said, self._pending, self._manners.confirm_until = "", None, None

    async def carry_out(self, command: Command, heard: str, now: datetime) -> str:
        """Does it.

        Args:
            command: what was recognised in ``heard``.
            heard: the wearer's words; only their language counts.
            now: the wearer's local time.

        Returns:
            What to say; empty: nothing. Never raises: what fails is logged, and said.
        """
        manners = self._manners
        manners.spoken = language = manners.language(heard)
        pending, self._pending, manners.confirm_until = self._pending, None, None
        try:
            if command.kind == "yes" and pending is not None:
                return await self._forget(pending, now, language)
            return await self._doing[command.kind](self, command, now, language)
        except Exception as e:
            tell_failure(f"the command {command.kind}", e)
            return text("out of reach" if isinstance(e, NotReached) else "failed", language)

    async def _repeat(self, _command: Command, _now: datetime, language: str) -> str:
        return self._said or text("nothing to repeat", language)

    async def _nothing(self, _command: Command, _now: datetime, _language: str) -> str:
        return ""

    async def _keep(self, _command: Command, _now: datetime, language: str) -> str:
        return text("kept", language)

    async def _forget_that(self, _command: Command, now: datetime, language: str) -> str:
        turn = await self._memory.run(self._last_turn)
        if turn is None or now - turn.time > JUST_NOW:
            return text("nothing to forget", language)
        return await self._forget(_Pending(Command("forget since"), turn.time), now, language)

    async def _forget_since(self, command: Command, now: datetime, language: str) -> str:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        since = midnight if command.span is None else now - command.span
        plan = await self._memory.would_forget_span(since)
        what = text("today", language) if command.span is None else _span(command.span, language)
        return self._ask(plan, _Pending(command, since), what, now, language)

    async def _forget_about(self, command: Command, now: datetime, language: str) -> str:
        plan = await self._memory.would_forget_about(command.what)
        turned = addressed(command.what)  # "my sister" is "your sister"; names keep their capitals
        name = turned if command.what[:1].isupper() else turned[:1].lower() + turned[1:]
        what = text("about", language, name=name)
        return self._ask(plan, _Pending(command, None), what, now, language)

    def _ask(self, plan: Forgetting, pending: _Pending, what: str, now: datetime, language: str) -> str:
        if not plan:
            return text("nothing to forget", language)
        self._pending, self._manners.confirm_until = pending, now + CONFIRM_WITHIN
        n = sum(plan.gone.values()) or sum(plan.remade.values())
        count = text("memory" if n == 1 else "memories", language, n=n)
        return text("forget span?", language, what=what, count=count)

    async def _forget(self, pending: _Pending, now: datetime, language: str) -> str:
        if pending.since is not None:
            await self._memory.forget_span(pending.since, now=now)
        else:
            await self._memory.forget_about(pending.command.what, now=now)
        await self._links.forgot()
        return text("forgotten, undo", language)

    async def _forget_all(self, _command: Command, _now: datetime, language: str) -> str:
        return text("forget all", language)

    async def _undo(self, _command: Command, now: datetime, language: str) -> str:
        if await self._memory.undo_forget(now) is None:
            return text("nothing to undo", language)
        await self._links.forgot()
        return text("undone", language)

    async def _known(self, _command: Command, _now: datetime, language: str) -> str:
        entries = sorted(await self._memory.profile(), key=lambda e: (-e.confidence, -e.evidence, e.id))
        if not entries:
            return text("know nothing", language)
        lines = [addressed(e.text) for e in entries[:TOLD_AT_ONCE]]
        if (more := len(entries) - len(lines)) > 0:
            lines.append(text("and more", language, n=more))
        return " ".join(lines)

    async def _mute(self, _command: Command, _now: datetime, language: str) -> str:
        self._links.mute()
        return text("muted", language, back=text(self._links.back, language))

    async def _online(self, _command: Command, _now: datetime, language: str) -> str:
        return text(self._links.online(), language)

    def _last_turn(self) -> StoredTurn | None:
        store = self._memory.store
        found = store.rows("SELECT max(id) FROM turns WHERE superseded_by IS NULL AND speaker = ?", WEARER)[
            0
        ][0]
        return next(iter(store.turns("t.id = ?", found)), None) if found is not None else None

    _Doing = Callable[["Commanding", Command, datetime, str], Awaitable[str]]
    _doing: ClassVar[dict[Kind, _Doing]] = {
        "repeat": _repeat,
        "stop": _nothing,
        "yes": _nothing,
        "no": _keep,
        "remember": _nothing,
        "forget that": _forget_that,
        "forget since": _forget_since,
        "forget about": _forget_about,
        "forget all": _forget_all,
        "undo": _undo,
        "known": _known,
        "mute": _mute,
        "online": _online,
    }


def online(watch: Watch | None) -> Online:
    """What is known of the way to the server, as a line of ``texts``."""
    if watch is None:
        return "no server"
    if watch.state is Link.CAPTIVE:
        return "captive"
    if not watch.probes:
        return "not asked yet"
    return "online" if works(watch.state) and not watch.breaker.open else "offline"


_UNITS = {
    "en": (("minute", "minutes"), ("hour", "hours"), ("day", "days")),
    "de": (("Minute", "Minuten"), ("Stunde", "Stunden"), ("Tag", "Tage")),
    "es": (("minuto", "minutos"), ("hora", "horas"), ("día", "días")),
    "fr": (("minute", "minutes"), ("heure", "heures"), ("jour", "jours")),
}


def _span(span: timedelta, language: str) -> str:
    """As in "the last hour", "the last 2 days"; the count stays a figure, which the voice reads."""
    minutes = max(1, round(span.total_seconds() / 60))
    sizes = [(unit, size) for unit, size in enumerate((1, 60, 1440)) if minutes % size == 0]
    if language != "en":  # where the gender of one hour is not that of one day, it is 60 minutes
        sizes = [(unit, size) for unit, size in sizes if minutes > size] or sizes
    unit, size = sizes[-1]
    one, many = _UNITS.get(language, _UNITS["en"])[unit]
    number = minutes // size
    return text("last", language, span=one if number == 1 else f"{number} {many}")
