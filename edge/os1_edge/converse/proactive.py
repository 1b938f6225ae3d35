"""Whether the companion speaks first, and of what. Pure: what there is to say, and how things stand, go in; a
decision and its reason come out.

Wearers missed it ("OS-1 does not initiate conversations with me", paper 1) and a voice in the ear that talks
unasked is worse than none. So it speaks first only of what the wearer themselves said, at most once an hour
and a few times a day, never at night, never over anybody; and of the same thing once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Literal

from os1_edge.converse.address import addressed
from os1_edge.converse.plainly import spoken_time
from os1_edge.converse.reminders import Reminder
from os1_edge.converse.texts import text

Kind = Literal["asked reminder", "reminder", "distress", "person", "place"]

URGENCY: tuple[Kind, ...] = ("asked reminder", "reminder", "distress", "person", "place")
"""What goes first."""

SILENCE_AFTER_DISTRESS = timedelta(minutes=20)
"""Nobody spoke for so long after the wearer felt bad: time to ask."""

DISTRESS_LASTS = timedelta(hours=6)
"""After that, asking would bring back a day that is over."""

PERSON_LASTS = timedelta(minutes=2)
"""What is known of somebody helps while they are there."""

PLACE_LASTS = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Occasion:
    """Something to speak of first."""

    kind: Kind
    key: str
    """Names it, so that it is spoken of once."""
    words: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Rules:
    """When the companion may speak first at all."""

    on: bool = True
    quiet: tuple[time, time] = (time(22), time(7))
    """Nothing is said between these, but for what the wearer asked to be reminded of."""
    apart: timedelta = timedelta(hours=1)
    a_day: int = 6
    still: timedelta = timedelta(seconds=8)
    """Silence before it speaks: nobody is in the middle of something."""


@dataclass(frozen=True, slots=True)
class State:
    """How things stand."""

    now: datetime
    wearer_speaks: bool
    busy: bool
    """A turn is being answered, or a reply sounds."""
    muted: bool
    last_sound: datetime | None
    """When somebody spoke last, the wearer or the companion."""
    spoken: tuple[datetime, ...] = ()
    """When it spoke first today."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to say, if anything, and why."""

    say: Occasion | None
    reason: str


def decide(occasions: Iterable[Occasion], state: State, rules: Rules) -> Decision:
    """Whether to speak first now, and of what."""
    if not rules.on:
        return Decision(None, "it was told to speak only when spoken to")
    due = [o for o in occasions if o.since <= state.now <= o.until]
    if not due:
        return Decision(None, "there is nothing to speak of")
    if state.muted:
        return Decision(None, "it is muted: who cannot answer is not spoken to")
    if state.wearer_speaks or state.busy:
        return Decision(None, "somebody speaks")
    if state.last_sound is not None and state.now - state.last_sound < rules.still:
        return Decision(None, "somebody spoke a moment ago")
    best = min(due, key=lambda o: (URGENCY.index(o.kind), o.since))
    if best.kind == "asked reminder":
        return Decision(best, "the wearer asked to be reminded")
    if within(state.now.time(), rules.quiet):
        return Decision(None, "quiet hours")
    if any(state.now - at < rules.apart for at in state.spoken):
        return Decision(None, "it spoke first not long ago")
    if sum(at.date() == state.now.date() for at in state.spoken) >= rules.a_day:
        return Decision(None, "it spoke first often enough today")
    return Decision(best, f"a {best.kind}" if best.kind != "distress" else "a long silence after distress")


def within(at: time, span: tuple[time, time]) -> bool:
    """Whether ``at`` lies in ``span``, which may reach over midnight; an empty span holds nothing."""
    begin, end = span
    return begin <= at < end if begin <= end else at >= begin or at < end


def of_reminder(reminder: Reminder, key: str, language: str = "en") -> Occasion:
    """The occasion that a reminder is."""
    what = reminder.what[:1].upper() + reminder.what[1:]
    if reminder.asked:
        words = text("reminder", language, what=reminder.what)
    elif reminder.timed:
        words = text("due at", language, what=what, time=spoken_time(reminder.due, language))
    else:
        words = text("due today", language, what=what)
    kind: Kind = "asked reminder" if reminder.asked else "reminder"
    return Occasion(kind, key, words, reminder.speak_from, reminder.speak_until)


def of_distress(said: datetime, last_sound: datetime, language: str = "en") -> Occasion:
    """The occasion that a long silence is, after the wearer said at ``said`` that they feel bad."""
    begin = max(said, last_sound) + SILENCE_AFTER_DISTRESS
    words = text("how are you now", language)
    return Occasion("distress", f"distress {said:%Y-%m-%dT%H:%M}", words, begin, said + DISTRESS_LASTS)


def of_person(name: str, known: str, now: datetime, language: str = "en") -> Occasion:
    """Somebody was greeted of whom something is known: ``known`` is the wearer's own words, or the
    profile's."""
    words = text("of a person", language, name=name, what=_once(addressed(known)))
    key = f"person {name.casefold()} {now:%Y-%m-%d}"
    return Occasion("person", key, words, now, now + PERSON_LASTS)


def of_place(place: str, said: str, now: datetime, language: str = "en") -> Occasion:
    """The wearer has come to a place at which they ``said`` something on an earlier day."""
    words = text("at this place", language, what=_once(addressed(said)))
    return Occasion("place", f"place {place} {now:%Y-%m-%d}", words, now, now + PLACE_LASTS)


def _once(line: str) -> str:
    return line if line.endswith((".", "!", "?")) else f"{line}."
