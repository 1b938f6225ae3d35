"""What an utterance states: facts of the wearer and of those near to them, in plain rules. Pure.

Only what is stated in the first person and the present counts: no question, nothing supposed, planned, quoted
or joked, nothing that somebody else said or thought. A statement stands at the start of a clause, after no
more than a lead-in ("well", "please remember that"), in a sentence without a hedge; a fact missed can be said
again, a fact invented makes every other one doubtful. A relative's matter is a fact of the relative: "my
sister is allergic to nuts" becomes "The wearer has a sister who is allergic to nuts.", never an allergy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from os1_edge.remember.facts import DIED, ENDED, FACTS, GIVEN_UP, NOT_CALLED, NOT_NAMED, OTHERS
from os1_edge.remember.grammar import WHEN, plural, third_person, told_of
from os1_edge.remember.wording import sentences


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact that was stated, as a line of the profile; or an end that was stated, without a new line."""

    kind: str
    text: str
    """Third person: "The wearer likes tea.", or for an end: what ended, see ``contradict``."""
    words: str
    """The clause that it was said in."""
    only_ends: bool = False
    """Nothing new is known, something old is over: "I quit my job"."""
    denies: str = ""
    """The line that was said to be wrong in the same breath: "Anna, not Emma"."""


LONGEST = 120
"""Characters of what a fact is about; beyond that it is a story, which the turn itself keeps."""

_HEDGE = re.compile(
    r"\b(?:if|unless|whether|would|could|might|maybe|perhaps|probably|possibly|used to|almost|nearly"
    r"|says?|said|saying|tells|told|thinks?|thought|believes?|claims?|claimed|hears?|heard|according"
    r"|suppos(?:e|ing)|assum(?:e|ing)|imagin(?:e|ing)|pretend(?:ing)?|wish|hope|guess|doubt|dream(?:t|ed)?"
    r"|wonder|lie|lying|not (?:sure|true)|untrue|once i|some ?day|one day|as though|as if"
    r"|translate|repeat|lyrics?|quot(?:e|es|ing)|(?:he|she|it|they|song|line|text|sign|book) (?:goes|reads?)"
    r"|(?:song|line|text|sign|book|message) (?:is|says)|sings?|plan(?:ning)? (?:to|on)|going to|want to)\b"
    r"|[\"“”«»]",
    re.I,
)
"""Reported, conditional, imagined, planned, denied or past: a sentence with one of these states nothing."""

_JOKE = re.compile(
    r"\b(?:jok(?:e|es|ing)|kidding|only teasing|made that up|not serious|pulling your leg|sarcas\w+"
    r"|scratch that|i was lying)\b",
    re.I,
)
"""Takes back all that was said with it."""

_QUESTION = re.compile(
    r"(?:(?:and|but|so|ok|okay|hey|well|please|now)[, ]+)*"
    r"(?:(?:what|when|where|who|whom|whose|which|why|how)\b"
    r"|(?:am|are|is|was|were|do|does|did|can|should|has|have|had|may)(?:n't)? "
    r"(?:i|you|we|he|she|it|they|my|your|our)\b)",
    re.I,
)
"""How a question begins; recognition may leave out its mark."""

_CLAUSE_END = re.compile(
    r"[,;:]|\b(?:and|but|because|so)\b(?= (?:now )?(?:i|i'm|i've|my|we)\b)"
    r"(?! i (?:have )?(?:broke|broken|split)\b)",
    re.I,
)

_NOT_AFTER_COMMA = re.compile(
    r", (?:and |but )?(not (?!(?:i|my|far|very|really|too|so|only|just|yet|that|even|much)\b)"
    r"(?:(?:in|at|as|with|to|an?|the) )*[\w'-]+(?: [\w'-]+)?(?=\s*(?:[.!?,;]|$| and | but | because )))",
    re.I,
)
"""Belongs to what came before it: "Anna, not Emma"."""

_LEAD_IN = re.compile(
    r"(?:(?:well|so|and|but|also|yes|yeah|no|oh|okay|ok|hi|hey|hello|actually|honestly|please|by the way"
    r"|unfortunately|sadly|luckily|finally|these days|nowadays|now|you know|anyway|because) )*"
    r"(?:(?:(?:remember|note|know|keep in mind|do not forget|don't forget)"
    r"|you (?:should |must )?know|i (?:have|want|need) to tell you|i(?:'m| am) telling you) (?:that )?)?",
    re.I,
)

_NO_FACT = re.compile(
    r"(?:not|it|this|that|these|those|you|your|him|his|he|her|she|them|their|they|one|ones|some|to be|how"
    r"|when|what|where|who|why|nothing|everything|anything|something|here|there)\b",
    re.I,
)
"""What the object of a fact cannot begin with: without the talk around it, nobody knows what it means."""

_POINTS = re.compile(r"^\w+ (?:it|this|that|them|so|those|these)\b", re.I)
"""A verb whose object only points: "eat it every day"."""

_TAIL = re.compile(
    r"(?: (?:any ?more|any longer|at all|after all|very much|so much|a lot|too|as well|these days|now"
    rf"|right now|though|by the way|you know|really|again|{WHEN}))+$",
    re.I,
)


_PASSING = re.compile(
    r"\b(?:today|tonight|yesterday|right now|at the moment|for now"
    r"|this (?:morning|afternoon|evening|week|weekend|month))$",
    re.I,
)
_BEGAN = re.compile(r"i(?:'ve| have)?(?: just| recently)? (?:stopped|quit|gave up|given up|switched)\b", re.I)
"""What came to be at that time and lasts: "I quit smoking yesterday"."""

_NOT_BUT = re.compile(
    r"(?P<said>.+?)(?:,? (?:and |but )?| )not (?P<was>(?:(?:in|at|as|with|to) )?[\w'-]+(?: [\w'-]+)?)$", re.I
)
"""A correction: "my sister is called Anna, not Emma"."""

_NO = re.compile(r"(?:no|sorry|i mean|i meant|actually no)\b,? ", re.I)
"""How a correction of what is known may begin."""


def statements(utterance: str) -> list[Statement]:
    """What ``utterance`` states, in the order of its clauses; nothing where it was in jest."""
    if _JOKE.search(utterance):
        return []
    out: list[Statement] = []
    for clause in _clauses(utterance):
        bare = _LEAD_IN.sub("", clause, count=1)
        found = _corrected(bare, clause) or _stated(_TAIL.sub("", bare), clause)
        if found is not None and found not in out and not _is_passing(found, bare):
            out.append(found)
    return out


def _is_passing(found: Statement, bare: str) -> bool:
    """Whether it was said of today: "I don't drink coffee today" is no preference."""
    lasting = found.kind not in ("preference", "habit") or _BEGAN.match(bare)
    return not lasting and _PASSING.search(bare) is not None


def _corrected(bare: str, clause: str) -> Statement | None:
    """A fact with what it is not: the line that would say the latter is wrong."""
    parts = _NOT_BUT.fullmatch(bare)
    found = _stated(_TAIL.sub("", parts["said"]), clause) if parts else None
    if parts is None or found is None or found.only_ends:
        return None
    was = re.sub(r"^(?:in|at|as|with|to) ", "", parts["was"], flags=re.I).split()
    kept = found.text.removesuffix(".").split()[: -len(was)]
    return replace(found, denies=f"{' '.join([*kept, *was])}.") if len(kept) > 2 else None


def asserts(utterance: str, sentence: str) -> bool:
    """Whether ``sentence`` of ``utterance`` asserts: it is not asked, supposed, quoted or in jest."""
    bare = sentence.replace("’", "'").strip()
    return not (_JOKE.search(utterance) or bare.endswith("?") or _HEDGE.search(bare) or _QUESTION.match(bare))


def _clauses(utterance: str) -> Iterator[str]:
    for sentence in sentences(utterance.replace("’", "'")):
        if not asserts("", sentence):
            continue
        corrects = _NO.match(sentence.strip())
        for clause in _CLAUSE_END.split(_NOT_AFTER_COMMA.sub(r" \1", sentence.strip())):
            if words := " ".join(clause.strip(" .!\n\t").split()):
                yield f"no {words}" if corrects and not _NO.match(f"{words} ") else words


def _stated(said: str, clause: str) -> Statement | None:
    for pattern, text in ENDED:
        if found := pattern.fullmatch(said):
            line = _line(text.format(**found.groupdict()))
            return Statement("social background", line, clause, only_ends=True)
    for pattern, kind, text in FACTS:
        if (found := pattern.fullmatch(said)) and _is_fact(found):
            return Statement(kind, _line(_filled(text, found)), clause)
    if found := NOT_NAMED.fullmatch(said):
        line = _line(f"is called {found['x']}")
        return Statement("social background", line, clause, only_ends=True, denies=line)
    for pattern, text in NOT_CALLED:
        if found := pattern.fullmatch(said):
            line = _line(_of_relative(text, found))
            return Statement("social background", line, clause, only_ends=True, denies=line)
    if died := DIED.fullmatch(said):
        name = f" {died['name']}" if died["name"] else ""
        return Statement("social background", _line(f"has lost their {died['who'].lower()}{name}"), clause)
    for pattern, text in OTHERS:
        if (found := pattern.fullmatch(said)) and _is_fact(found):
            return Statement("social background", _line(_of_relative(text, found)), clause)
    for pattern, text in GIVEN_UP:
        if (found := pattern.fullmatch(said)) and _is_fact(found):
            return Statement("habit", _line(text.format(x=found["x"])), clause, only_ends=True)
    return None


def _is_fact(found: re.Match[str]) -> bool:
    about = re.sub(r"^not (?=allergic|an? |\w+ (?:to|of) )", "", (found.groupdict().get("x") or "").strip())
    return len(about) <= LONGEST and not _NO_FACT.match(about) and not _POINTS.search(about)


def _line(predicate: str) -> str:
    return f"The wearer {predicate}."


def _filled(text: str, found: re.Match[str]) -> str:
    parts = {name: told_of((value or "").strip()) for name, value in found.groupdict().items()}
    x = parts["x"] = parts.get("x") or parts.pop("x2", "")
    if x and "{x:-pl}" in text:
        return text.replace("{x:-pl}", plural(x))
    if x and "{x:-s}" in text:
        return text.replace("{x:-s}", third_person(x))
    if x and "{x:-ing}" in text:
        return text.replace("{x:-ing}", {"driving": "drive", "smoking": "smoke"}.get(x.lower(), x[:-3]))
    verb = {"eating": "eat", "drinking": "drink"}.get(parts.get("v", "").lower(), parts.get("v", ""))
    return text.format(x=x, v=verb)


def _of_relative(text: str, found: re.Match[str]) -> str:
    who, x = found["who"].lower(), told_of(found["x"].strip()).replace("doesn't ", "does not ")
    name = found.groupdict().get("name")
    called = f" called {name}" if name else ""
    article = "an" if who[0] in "aeiou" else "a"
    return f"has {article} {who}{called} {text.format(x=x)}"
