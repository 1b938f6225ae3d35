"""What the wearer commands, by its phrasing. Pure.

A command is the whole utterance, but for a polite word before or behind it: "stop" is one, "stop at the shop"
is something to talk of. A command taken for talk can be said again; talk taken for a command forgets or
silences what nobody wanted gone. So what is not surely a command is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

Kind = Literal[
    "repeat",
    "stop",
    "forget that",
    "forget since",
    "forget about",
    "forget all",
    "known",
    "remember",
    "mute",
    "online",
    "undo",
    "yes",
    "no",
]


@dataclass(frozen=True, slots=True)
class Command:
    """Something to do instead of a reply."""

    kind: Kind
    span: timedelta | None = None
    """"forget since": how far back; none: since midnight."""
    what: str = ""
    """"forget about": whom or what; "remember": the words to remember."""


_BEFORE = re.compile(
    r"(?:(?:hey|hi|hello|ok|okay|please|so|well|um|uh|now|and|but|oh|sorry|right|just|actually"
    r"|os(?:-| )?(?:1|one)|bitte|por favor|oye|s'il te plaît|s'il vous plaît)[,.! ]+"
    r"|(?:can|could|will|would) you (?:please )?"
    r"|i(?:'d like| would like| want| need) you to |you (?:can|may|should) |let's )*"
)
_BEHIND = re.compile(
    r"(?:[,. ]+(?:please|now|right now|thanks|thank you|for me|will you|would you|okay|ok"
    r"|os(?:-| )?(?:1|one)|bitte|por favor|s'il te plaît|s'il vous plaît))*[.!? ]*$"
)

_NUMBERS = {
    "a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "a couple of": 2.0, "three": 3.0, "a few": 3.0, "four": 4.0,
    "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0, "nine": 9.0, "ten": 10.0, "twenty": 20.0,
    "thirty": 30.0, "half an": 0.5, "half": 0.5,
}  # fmt: skip
_UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_COUNT = "|".join(sorted(map(re.escape, _NUMBERS), key=len, reverse=True))

MOST_SPAN = timedelta(days=31)
"""Further back, forgetting is done by hand: a number that was misheard must not take years."""

_SIMPLE: tuple[tuple[Kind, str], ...] = (
    ("repeat",
     r"repeat(?: that| it| yourself)?(?: again)?|say (?:that|it)(?: once| one)?(?: more time| again| more)"
     r"|(?:what|sorry what) did you(?: just)? say|what was that again|come again|pardon(?: me)?"
     r"|i (?:didn't|did not|couldn't|could not) (?:quite )?(?:catch|hear|get|understand)"
     r"(?: that| you| it| what you(?: just)? said)|one more time|once more"
     r"|(?:wiederhol(?:e)?|sag) das(?: noch ?(?:ein)?mal)?|was hast du gesagt|noch ?einmal"
     r"|rep[ií]te(?:lo|me eso)?|qu[eé] (?:has dicho|dijiste)|otra vez"
     r"|r[eé]p[eè]te(?:[ -](?:ça|le|cela))?|qu'est-ce que tu (?:as|viens de) di[ts]|encore une fois"),
    ("stop",
     r"stop(?: it| that| this| talking| speaking)?(?: now)?|be (?:quiet|silent)|quiet|silence|shush|hush"
     r"|shut up|(?:that's|that is) enough|enough|never ?mind|wait|hold on|hang on|cancel(?: that| it)?"
     r"|forget (?:about )?it"
     r"|stopp|halt|sei (?:still|ruhig|leise)|ruhe|genug|das reicht|egal|hör auf"
     r"|para|basta|silencio|c[aá]llate|ya basta|detente|arrête(?:z)?(?: ça)?|tais-toi|ça suffit|chut"),
    ("forget that",
     r"(?:forget|delete|erase|scratch) (?:that|this|what i(?:'ve| have)?(?: just)? (?:said|told you)"
     r"|(?:the )?last (?:thing|one|sentence|message)(?: i(?:'ve| have)?(?: just)? (?:said|told you))?)"
     r"|forget (?:that|what) i(?: ever| just)? said (?:that|this|anything)|forget about (?:that|this)"
     r"|(?:don't|do not) (?:remember|keep|save|store) (?:that|this)"
     r"|vergiss (?:das|was ich (?:gerade )?gesagt habe)|lösch(?:e)? das"
     r"|olvida (?:eso|esto|lo que (?:he dicho|dije))|borra eso|olv[ií]dalo que dije"
     r"|oublie (?:ça|cela|ce que (?:j'ai|je viens de) di[tre]+)|efface ça"),
    ("forget all",
     r"(?:forget|delete|erase) (?:absolutely )?(?:everything|all(?: of it)?)"
     r"(?: (?:about me|you know(?: about me)?|that you know(?: about me)?|you (?:have|remember)"
     r"|i(?:'ve| have)?(?: ever)? (?:said|told you)))?|forget (?:about )?me|forget who i am"
     r"|vergiss (?:alles(?: über mich)?|mich)|olv[ií]da(?:lo)? todo(?: sobre mí)?|oublie(?:-moi| tout)"),
    ("known",
     r"what (?:else )?(?:do you|have you) (?:know|remember|learn(?:ed|t)|remembered)(?: so far)? about me"
     r"(?: so far)?|(?:tell me|list) (?:everything|what|all)(?: that)? you (?:know|remember)(?: about me)?"
     r"|what do you have on me|what(?:'s| is) in my profile|do you know anything about me"
     r"|was wei(?:ß|ss)t du (?:alles )?über mich|qu[eé] sabes (?:de|sobre) m[ií]"
     r"|qu'est-ce que tu sais (?:de|sur) moi|que sais-tu (?:de|sur) moi"),
    ("mute",
     r"mute|mute (?:yourself|(?:the|your) (?:mic|microphone))|stop listening(?: to (?:me|us|this))?"
     r"|(?:don't|do not) listen(?: to (?:me|us|this))?|(?:turn|switch) off (?:the|your) (?:mic|microphone)"
     r"|(?:turn|switch) (?:the|your) (?:mic|microphone) off|privacy(?: mode)?|go private"
     r"|(?:schalt dich )?stumm|hör nicht (?:mehr )?zu|mikro(?:fon)? aus|deja de escuchar|sil[eé]nciate"
     r"|no escuches|arrête d'écouter|n'écoute(?: plus|z plus)?|coupe le micro"),
    ("online",
     r"are you (?:online|offline|connected)(?: (?:right )?now| at the moment)?"
     r"|are you connected to (?:the |a )?(?:internet|network|server|cloud|web)|are you on the internet"
     r"|(?:do you have|have you got|is there)(?: an?| any)?(?: internet| network| server)?"
     r" (?:connection|internet|network|wi-?fi)|bist du (?:online|offline|verbunden)"
     r"|est[aá]s (?:en l[ií]nea|conectad[oa])|tienes conexi[oó]n|es-tu (?:en ligne|connectée?)"
     r"|tu es (?:en ligne|connectée?)"),
    ("undo",
     r"undo(?: (?:that|it|this))?|(?:bring|get) (?:that|it) back|restore (?:that|it)"
     r"|mach das rückgängig|deshaz(?:lo| eso)|deshacer|annule(?: ça)?"),
)  # fmt: skip

_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _SIMPLE)

_SINCE = re.compile(
    r"(?:forget|delete|erase) (?:(?:everything|all|what|whatever|anything)"
    r"(?: (?:i|we|you|that)(?:'ve| have)?(?: (?:just )?(?:said|did|saw|heard|happened|talked about))?"
    r"|(?: that)? happened)?"
    r" )?(?:(?:from|in|of|during|within|over) )?(?:(?:the |these )?(?:last|past) "
    rf"(?:(?P<count>\d{{1,3}}|{_COUNT}) )?(?P<unit>minute|hour|day|week)s?|(?P<today>today))"
)
_SINCE_ELSEWHERE = re.compile(
    r"vergiss (?:alles aus )?(?:der|die) letzten? (?P<de>stunde|minute|woche)"
    r"|olvida (?:todo )?(?:lo de )?la [uú]ltima (?P<es>hora|semana)"
    r"|oublie (?:tout )?(?:de )?la dernière (?P<fr>heure|minute|semaine)"
)
_SECONDS = {"stunde": 3600, "hora": 3600, "heure": 3600, "minute": 60, "woche": 604_800, "semana": 604_800,
            "semaine": 604_800}  # fmt: skip

_ABOUT = re.compile(
    r"(?:forget|delete|erase) (?:(?:everything|all|anything|whatever|what)(?: (?:that )?(?:you (?:know"
    r"|remember"
    r"|have)|i(?:'ve| have)?(?: ever)? (?:said|told you)|we said))? )?about (?P<what>.{2,60})"
    r"|vergiss alles (?:über|von) (?P<de>.{2,60})|olvida todo (?:sobre|de) (?P<es>.{2,60})"
    r"|oublie tout (?:sur|de) (?P<fr>.{2,60})"
)
_POINTING = frozenset("it that this them him her they those these everything everyone last past".split())  # noqa: SIM905
"""Nobody can be sure whom these mean, so nothing is forgotten by them; "the last 99 weeks" is no name."""

LONGEST_ABOUT = 6
"""Words of a name for what is to be forgotten; more is a sentence about it."""

_REMEMBER = re.compile(
    r"(?:remember|keep in mind|note|make a note|take a note)(?::| that\b|,? (?=(?:i|i'm|i've|my|we|our"
    r"|to)\b))"
    r",? ?(?P<what>.+)"
    r"|(?:merk dir|denk daran),? ?(?:dass )?(?P<de>.+)|recuerda que (?P<es>.+)"
    r"|(?:souviens-toi|rappelle-toi|retiens) que? ?(?P<fr>.+)"
)
_REMINISCING = re.compile(
    r"(?:time|day|days|one|girl|boy|guy|man|woman|lady|night|evening|morning|summer|song|place|trip|movie"
    r"|film|book|thing|story|party|feeling|restaurant|(?:we|i) (?:used|went|were|had|met|saw))\b"
)
"""After "remember that": talk of old days, which asks for company and not for a note."""

LEAST_TO_REMEMBER = 2
"""Words; "remember that" alone is talk."""

_YES = re.compile(
    r"yes|yeah|yep|yup|sure|do it|do that|please do|go ahead|confirm(?:ed)?|i am sure|i'm sure|of course"
    r"|forget (?:it|them) all|ja|ja bitte|mach das|sí|si|hazlo|claro|oui|vas-y|bien sûr"
)


def recognise(heard: str) -> Command | None:
    """The command that ``heard`` is; ``None`` where it is something to talk of."""
    text = _bare(heard)
    for kind, pattern in _PATTERNS:
        if pattern.fullmatch(text):
            return Command(kind)
    return _since(text) or _about(text, heard) or _remember(text, heard)


def confirmed(heard: str) -> bool:
    """Whether ``heard`` says yes to what was just asked, and nothing else."""
    parts = [part for part in re.split(r"[,.!]+", _BEHIND.sub("", _plain(heard))) if part.strip()]
    return bool(parts) and all(_YES.fullmatch(part.strip()) for part in parts)


_NO = re.compile(
    r"(?:no|nope|nah|don't|do not|keep it|never ?mind|nein|non|no gracias|cancel|stop)(?: .{0,24})?"
)


def answer(heard: str) -> Command | None:
    """What ``heard`` says to "shall I forget that?": yes, no, or neither, which is as good as no."""
    if confirmed(heard):
        return Command("yes")
    return Command("no") if _NO.fullmatch(_bare(heard)) else None


def _plain(heard: str) -> str:
    return " ".join(heard.lower().replace("’", "'").split()).strip(" ¡¿\"'“”")


def _bare(heard: str) -> str:
    text = _BEHIND.sub("", _plain(heard))
    text = text[_prefix(text) :]
    return re.sub(r"[,.!?;]+(?= |$)", "", text)


def _prefix(text: str) -> int:
    found = _BEFORE.match(text)
    return found.end() if found is not None and found.end() < len(text) else 0


def _since(text: str) -> Command | None:
    if found := _SINCE.fullmatch(text):
        if found["today"]:
            return Command("forget since")
        count = found["count"] or "one"
        number = float(count) if count.isdigit() else _NUMBERS[count]
        span = timedelta(seconds=number * _UNITS[found["unit"]])
        return Command("forget since", span) if timedelta(0) < span <= MOST_SPAN else None
    if found := _SINCE_ELSEWHERE.fullmatch(text):
        return Command("forget since", timedelta(seconds=_SECONDS[_named(found, ("de", "es", "fr"))]))
    return None


def _about(text: str, heard: str) -> Command | None:
    found = _ABOUT.fullmatch(text)
    if found is None:
        return None
    what = _named(found, ("what", "de", "es", "fr")).strip()
    if what in ("me", "myself", "us", "mich", "mí", "moi"):
        return Command("forget all")
    first, *others = re.sub(r"^(?:the|my|our|a|an) ", "", what).split()
    if first in _POINTING or len(others) >= LONGEST_ABOUT or not re.search(r"\w{2}", what):
        return None
    at = heard.lower().find(what)
    return Command("forget about", what=heard[at : at + len(what)] if at >= 0 else what)


def _remember(text: str, heard: str) -> Command | None:
    found = _REMEMBER.fullmatch(text)
    if found is None or heard.rstrip().endswith("?"):
        return None
    what = _named(found, ("what", "de", "es", "fr")).strip()
    if _REMINISCING.match(what) or len(what.split()) < LEAST_TO_REMEMBER:
        return None
    return Command("remember", what=what)


def _named(found: re.Match[str], names: Sequence[str]) -> str:
    return next(found[name] for name in names if found[name])
