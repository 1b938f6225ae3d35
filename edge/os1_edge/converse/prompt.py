"""The reply's prompt. Pure. Its beginning stays the same byte for byte from turn to turn, so that the model
reads only what is new: persona and profile first, then the conversation as it was sent, then this turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files

from os1_edge.converse.address import addressed
from os1_edge.converse.evidence import TELLING, for_outside, likings, named, options, things, worth_a_word
from os1_edge.converse.jobs import parts
from os1_edge.converse.mention import Mention
from os1_edge.converse.question import Kind, cheers, feels_bad, greets, in_view, kind_of, leaves, seeks
from os1_edge.converse.sight import NO_SIGHT, Sight, asks_before, view_lines
from os1_edge.converse.strategy import LISTEN, Strategy
from os1_edge.offload.engine import Message
from os1_edge.remember.profile import propose
from os1_edge.remember.recall import Hit
from os1_edge.remember.rows import ProfileEntry
from os1_edge.remember.sessions import content_words

ANSWER = "Answer the wearer with the fact that answers this."

UNKNOWN = "I do not know that yet."
NOTHING_IN_VIEW = "I cannot make out anything right now."
NOTED = "I will remember that."
NO_IDEA = "I do not know what to say to that."
I_SEE = "I see."
SORRY = "I am sorry to hear that."
GLAD = "I am glad to hear that."


WORTH_NOTING = 3
"""Content words of a statement that is promised to be remembered: "nothing much" is not."""

_OF_SELF = re.compile(r"\b(?:do|did|am|was|have) i\b|\bmy\b", re.I)
"""A question about the wearer's ways is none about a meal."""

_WHO_IS = re.compile(r"(?i:(?:(?:and|so|hey|please)\W+)*who(?:'s|’s| is)) (?P<name>[A-Z][\w'’-]+)\W*")

_MEAL = re.compile(
    r"\b(?:eat|drink|cook|order|hungry|thirsty|starving|peckish|lunch|dinner|breakfast)\b", re.I
)

_OWN = re.compile(r"\b(?:I|I'm|(?<!tell )(?<!remind )(?<!help )me|my|mine|we|us|our)\b", re.I)
"""A question with one of these is about the wearer: without a fact there is no answer to it."""


def rules() -> str:
    """What every persona keeps to: ``prompts/reply.md``."""
    return files("os1_edge.converse").joinpath("prompts/reply.md").read_text("utf-8").strip()


@dataclass(frozen=True, slots=True)
class Notes:
    """What the reply may rest on."""

    time: datetime
    scene: str
    recalled: tuple[Hit, ...] = ()
    health: tuple[str, ...] = ()
    """Profile lines that must not be forgotten in this turn: allergies, when it is about food."""
    profile: tuple[ProfileEntry, ...] = ()
    """All that is known of the wearer now; the reply is given what has to do with the turn."""
    proposed: tuple[Hit, ...] = ()
    """What was recalled for the queries of the retrieval agent."""
    strategy: Strategy | None = None
    """What the dialogue strategy wants of this reply."""
    report: str = ""
    """What the retrieval agent's reporter made of the memories; it may be a turn old."""
    replied: str = ""
    """The replies that the prompt holds: what they name is not brought up again."""
    sight: Sight = NO_SIGHT
    """What the wearer looks at, and what was in view before."""


def system_message(
    persona: str = "You are OS-1, a warm companion who lives in the wearer's glasses.",
) -> Message:
    """The persona and the rules that it keeps to."""
    return Message("system", f"{persona} {rules()}")


@cache
def examples() -> tuple[Message, ...]:
    """How a reply sounds, as a small model needs to be shown: ``prompts/reply_examples.md``."""
    return parts("reply_examples")[1:]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a turn is to be answered."""

    message: str
    """The user message for the model: facts, what was heard, what to do."""
    fixed: str | None
    """The whole reply, where no model is needed: nothing known or in view answers the question."""
    fallback: str
    """What to say when the model gives nothing that can be spoken."""
    health: tuple[str, ...] = ()
    """The profile lines that the reply must mind."""
    closing: str = ""
    """Said at the end, unless the reply sends the wearer to somebody itself."""
    reason: str = "nothing known or in view answers it"
    """Why ``fixed`` is the reply."""
    mentions: tuple[Mention, ...] = ()
    """What the reply should name; the first that it does not is said at its end."""
    likely: str = ""
    """The fact that the model most often gives back as it stands."""


def plan(heard: str, notes: Notes) -> Plan:
    """Decides how to answer ``heard`` from ``notes``."""
    kind = kind_of(heard)
    minded = tuple(addressed(line) for line in notes.health)
    if seeks(heard):
        return _advice(heard, notes, kind)
    if kind == "statement":
        return _remark(heard, notes)
    known = [addressed(hit.text) for hit in notes.recalled]
    facts = [f"Fact from {_when(h, notes.time)}: {k}" for h, k in zip(notes.recalled, known, strict=True)]
    health = [line for line in minded if line not in known]
    view = view_lines(heard, notes.scene, notes.sight)
    about_view = kind == "view question" or asks_before(heard, notes.sight) or in_view(heard, notes.scene)
    if view and about_view:
        known, facts = [line for _, line in view], [f"Fact {when}: {line}" for when, line in view]
    elif kind == "view question":
        known, facts = [], []
    if (who := _WHO_IS.fullmatch(heard.strip())) is not None:
        # Told who Anna is, a small model says "Anna is Anna".
        told = [line for line in known if re.search(rf"\b{re.escape(who['name'])}\b", line)]
        if told:
            return Plan(heard, told[0], told[0], reason="who it is was told")
    facts = [*(f"Fact: {line}" for line in health), *facts]
    at_stake = [
        line for line in health if not _OF_SELF.search(heard) or named(line, f"{heard} {notes.scene}")
    ]
    if facts:
        # What to do first: it is read ahead while the wearer still speaks.
        message = "\n".join([ANSWER, *facts, f"The wearer asks: {heard}"])
        best, warnings = (at_stake or known or health)[0], _warnings(at_stake)
        return Plan(message, None, best, notes.health, mentions=warnings, likely=(known or health)[0])
    if kind == "view question":
        return Plan(heard, NOTHING_IN_VIEW, NOTHING_IN_VIEW)
    return Plan(heard, UNKNOWN if _OWN.search(heard) else None, NO_IDEA)


def _advice(heard: str, notes: Notes, kind: Kind) -> Plan:
    """The wearer wants to be told what to do: from what is in view and may be offered, and what they like."""
    found = options(notes.scene, [*notes.health, *(e.text for e in notes.profile)])
    deciding = [addressed(line) for line in dict.fromkeys((*notes.health, *found.lines))]
    warnings = _warnings(addressed(line) for line in notes.health)
    offered = found.fit if found.fit else things(notes.scene)
    facts = [f"Fact: {line}" for line in deciding]
    if offered:
        seen = f"You see {_listed(offered)}."
        facts.insert(0, f"Fact in view now: {seen}")
        if found.fit:
            warnings += (Mention.of(f"How about {_the(offered[0])}?", heard),)
        else:
            warnings += _warnings(addressed(line) for line in found.lines if line not in notes.health)
    else:
        seen = ""
        likes = likings(notes.profile) if cheers(heard) else []
        warnings += _suggestion(likes, heard)
        facts += [f"Fact: {addressed(hit.text)}" for hit in notes.recalled if hit.kind != "summary"][:2]
        facts += _reported(notes)
    fallback = " ".join([*deciding[:1], seen] if deciding or seen else [NO_IDEA]).strip()
    if minded := [addressed(line) for line in notes.health if named(line, heard)]:
        fallback = f"Better not: {_low(minded[0])}"
    elif notes.health and not seen and _MEAL.search(heard):
        fallback = f"Whatever you feel like, but mind that {_low(addressed(notes.health[0]))}"
    if kind == "statement":
        return Plan(f"The wearer says: {heard}", None, _kind_word(heard), notes.health, mentions=warnings)
    if not facts:
        return Plan(heard, None, fallback, mentions=warnings)
    message = "\n".join([ANSWER, *facts, f"The wearer asks: {heard}"])
    return Plan(message, None, fallback, notes.health, mentions=warnings)


def _remark(heard: str, notes: Notes) -> Plan:
    """The wearer tells something: a kind word, and what it reminds of."""
    # Who tells what they like, or what is so, is not about to eat it.
    tells = bool(propose(heard))
    minded = [line for line in notes.health if not tells or named(line, f"{heard} {notes.scene}")]
    facts = [f"Fact: {addressed(line)}" for line in minded]
    warnings = _warnings(addressed(line) for line in minded)
    known = list(map(addressed, minded))
    reminded = [m for m in _reminded(heard, notes) if m.sentence not in notes.replied]
    mentions = (*warnings, *(m for m in reminded if not any(_low(line) in m.sentence for line in known)))
    lines = [*facts, *_reported(notes), f"The wearer says: {heard}"]
    if notes.strategy is not None and notes.strategy.by == "model":
        lines.append(f"(Now: {notes.strategy.action}.)")
    return Plan("\n".join(lines), None, _kind_word(heard), notes.health, mentions=mentions)


def _reminded(heard: str, notes: Notes) -> tuple[Mention, ...]:
    """What a statement brings to mind: what would do good, what was told before, what is in view."""
    if notes.strategy is not None and notes.strategy.objective == LISTEN:
        return ()
    bad = feels_bad(heard)
    near = [h for h in notes.recalled if h.kind == "turn" and h.score >= TELLING]
    hits = [*notes.proposed, *near] if bad else [*near, *notes.proposed]
    if bad and not notes.proposed and (comforts := _suggestion(likings(notes.profile), heard)):
        return comforts
    if hits:
        said = re.split(r"(?<=[.!?])\s", addressed(hits[0].text))[0]
        return (Mention.of(f"I remember that {_low(said)}", heard),)
    seen = [thing for thing in things(notes.scene) if worth_a_word(thing)]
    if greets(heard) and seen:
        return (Mention.of(f"What a nice {_bare(seen[0])} you have there!", heard),)
    if leaves(heard) and (take := [thing for thing in seen if for_outside(thing)]):
        return (Mention.of(f"Do not forget {_the(take[0])}.", heard),)
    return ()


def _reported(notes: Notes) -> list[str]:
    """What the retrieval agent reports, turned to the wearer."""
    return [f"Fact: {addressed(notes.report)}"] if notes.report else []


def _when(hit: Hit, now: datetime) -> str:
    if hit.time.date() == now.date():
        return f"today at {hit.time:%H:%M}"
    return f"{hit.time:%A} {hit.time.day} {hit.time:%B}"


def _warnings(lines: Iterable[str]) -> tuple[Mention, ...]:
    """What must not be left unsaid: the wearer's allergies and the like."""
    return tuple(Mention.warning(f"Mind that {_low(line)}", line) for line in lines)


def _suggestion(likes: Sequence[str], heard: str) -> tuple[Mention, ...]:
    """What might do the wearer good."""
    return (Mention.of(f"How about {' or '.join(likes[:2])}?", heard),) if likes else ()


def _bare(thing: str) -> str:
    return re.sub(r"^(?:an?|the|some|two|three|\d+) ", "", thing, flags=re.I)


def _the(thing: str) -> str:
    """ "an umbrella by the door" -> "the umbrella"."""
    bare = re.sub(r" (?:on|in|at|by|near|under|beside) .*$", "", _low(thing))
    return re.sub(r"^(?:an?|the|some) ", "the ", bare, flags=re.I)


def _listed(items: Sequence[str]) -> str:
    low = [_low(item) for item in items]
    return " and ".join([", ".join(low[:-1]), low[-1]] if len(low) > 1 else low)


def _low(text: str) -> str:
    return text[:1].lower() + text[1:]


def _kind_word(heard: str) -> str:
    """What can be said to a statement without a model."""
    if feels_bad(heard):
        return SORRY
    if heard.rstrip().endswith("!"):
        return GLAD
    return NOTED if len(content_words(heard)) >= WORTH_NOTING or propose(heard) else I_SEE
