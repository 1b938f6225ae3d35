"""The sentences by which a wearer states a fact, and the profile line of each. Data for `statements`.

A pattern is matched against a whole clause, without lead-in and tail. ``{x}`` and ``{v}`` are its groups;
``{x:-s}`` is a verb in the third person, ``{x:-ing}`` without its ending, ``{x:-pl}`` a thing in the plural.
The first that fits counts. Names begin with a capital, everything else in either case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from os1_edge.remember.grammar import ANIMALS, OCCUPATIONS, RELATIVES, SUBJECTS, THINGS

_BE = r"i(?:'m| am)"
_HAVE = r"i(?:'ve| have)?(?: just| recently)?"
_DENY = r"i (?:really |still )?(?:do not|don't|never|no longer)"
_NO_MORE = r"i (?:do not|don't|never|no longer)"
_QUIT = r"i(?:'ve| have)? (?:stopped|quit|gave up|given up)"
_ALSO = r"i (?:really |still |just |also |now |currently )*"
_VERY = r"(?: very| badly| severely| highly| quite| really| a bit| rather| also| so| still)*"
_STATE = (
    r"vegan|vegetarian|diabetic|coeliac|celiac|pregnant|epileptic|asthmatic|deaf|colou?r ?blind|blind"
    r"|(?:lactose|gluten)[ -]intolerant"
)
_ILLNESS = (
    r"diabetes|asthma|epilepsy|(?:high|low) blood pressure|a heart condition|migraines|hay fever|arthritis"
    r"|(?:coeliac|celiac) disease|a pacemaker|vertigo|insomnia|tinnitus"
)
_TEMPER = (
    r"shy|(?:an )?introvert(?:ed)?|(?:an )?extrovert(?:ed)?|(?:a )?perfectionist|(?:an )?optimist(?:ic)?"
    r"|(?:a )?pessimist(?:ic)?|impatient|patient|stubborn|curious|organi[sz]ed|disorgani[sz]ed|sociable"
    r"|(?:a )?night owl|(?:an )?early (?:riser|bird)|(?:a )?morning person|(?:a )?people person|forgetful"
)
_OFTEN = r"always|usually|often|normally|regularly|generally|mostly"
_FREQUENCY = r"(?:every|each|once a|twice a|three times a) \w+"
_NAME = r"(?-i:[A-Z])[\w'-]*(?: (?-i:[A-Z])[\w'-]*){0,2}"
_ROLE = "|".join(OCCUPATIONS)
_MANY = "an?|one|two|three|four|five"
_PARTED = r"(?:broke|broken|split) up"
_PLACE = r"(?:in|at|near|with) .+"
_SOMEWHERE = (
    r"(?-i:[A-Z]).*|(?:the|an?|my) (?:\w+ )*(?:countryside|country|city|coast|suburbs?|mountains|village|town"
    r"|north|south|east|west|seaside|island|farm|house|flat|apartment|place)(?: (?:in|near|by|of) .+)?"
)
"""Where one may move to and live: not "to the window"."""

_WORK = r"(?:as|at|for) .+"
_DRINK = "(?:black |green )?(?:coffee|tea|alcohol|beer|wine|milk|soda|cola|juice|caffeine)"
_FOOD = "meat|fish|sugar|bread|chocolate|sweets|dairy|cheese|eggs|gluten|pork|beef|chicken|carbs|fast food"
_ROLE_OF = rf"an? (?:[\w-]+ ){{0,2}}(?:{'|'.join(OCCUPATIONS)})"

_MOVED_ON = r"(?:switched|changed|transferred)"
_GAVE_UP = r"(?:i|we)(?:'ve| have)?(?: just| recently)? (?:had to )?"
_AWAY = r"(?:give|gave|given|sell|sold|rehomed?)"

_HEALTH = (
    (rf"{_BE}{_VERY} allergic to (?P<x>.+)", "is allergic to {x}"),
    (rf"{_BE} (?:not|no longer) allergic to anything", "has no allergies"),
    (rf"{_NO_MORE} have any allergies|i(?:'ve| have)(?: got)? no(?: more)? allergies", "has no allergies"),
    (rf"{_BE} (?:not|no longer) allergic to (?P<x>.+)", "is not allergic to {x}"),
    (
        rf"{_HAVE} (?:outgrew|outgrown|lost|got over|gotten over) my (?P<x>[\w ]+) allergy",
        "is not allergic to {x:-pl}",
    ),
    (
        r"my (?P<x>[\w ]+) allergy (?:is|has) (?:gone|over|gone away)",
        "is not allergic to {x:-pl}",
    ),
    (rf"{_NO_MORE} have an? (?P<x>[\w ]+) allergy", "is not allergic to {x:-pl}"),
    (
        rf"{_HAVE}(?: got)? an?(?: bad| severe| strong| terrible)? (?P<x>[\w ]+) allergy",
        "is allergic to {x:-pl}",
    ),
    (rf"{_BE}{_VERY}(?: now)? (?:an? )?(?P<x>{_STATE})", "is {x}"),
    (rf"{_HAVE} (?:became|become|turned|went|gone) (?:an? )?(?P<x>vegan|vegetarian)", "is {x}"),
    (rf"{_BE} (?:not|no longer) (?:an? )?(?P<x>{_STATE})", "is not {x}"),
    (rf"{_QUIT} being (?:an? )?(?P<x>{_STATE})", "is not {x}"),
    (rf"{_HAVE}(?: got)? (?P<x>{_ILLNESS})", "has {x}"),
    (rf"{_NO_MORE} have (?P<x>{_ILLNESS})", "does not have {x}"),
)

_PREFERENCES = (
    (rf"{_ALSO}prefer (?P<x>.+ (?:to|over) .+)", "prefers {x}"),
    (rf"{_ALSO}(?:like|love|enjoy|prefer|adore) (?P<x>.+)", "likes {x}"),
    (rf"{_BE} (?:really |very )?(?:fond of|into|keen on|a (?:big |huge )?fan of) (?P<x>.+)", "likes {x}"),
    (
        rf"{_BE} not (?:very |really )?(?:fond of|into|keen on|a (?:big )?fan of) (?P<x>.+)",
        "does not like {x}",
    ),
    (rf"{_DENY} (?:like|love|enjoy) (?P<x>.+)", "does not like {x}"),
    (rf"{_DENY} eat (?P<x>.+)", "does not eat {x}"),
    (rf"{_DENY} drink (?P<x>.+)", "does not drink {x}"),
    (rf"{_QUIT} (?P<v>eating|drinking) (?P<x>.+)", "does not {v} {x}"),
    (rf"{_QUIT} (?P<x>{_DRINK})|{_BE} (?:now )?off (?P<x2>{_DRINK})", "does not drink {x}"),
    (rf"{_HAVE} switched from (?P<x>{_DRINK}) to .+", "does not drink {x}"),
    (rf"{_QUIT} (?P<x>{_FOOD})|{_BE} (?:now )?off (?P<x2>{_FOOD})", "does not eat {x}"),
    (r"i (?:really )?(?:hate|dislike|detest|can't stand|cannot stand) (?P<x>.+)", "does not like {x}"),
    (r"my favou?rite (?P<v>[\w ]{2,30}) (?:is|are) (?P<x>.+)", "has {x} as favourite {v}"),
)

_HABITS = (
    (rf"{_NO_MORE} (?P<x>smoke|drink|drive|snore|gamble)", "does not {x}"),
    (rf"{_QUIT} (?P<x>smoking|drinking|driving|gambling)", "does not {x:-ing}"),
    (r"i (?P<x>smoke)", "{x:-s}"),
    (rf"i (?:{_OFTEN}) (?P<x>[a-z]+(?: .+)?)", "usually {x:-s}"),
    (rf"i (?P<x>[a-z]+ (?:.+ )?{_FREQUENCY}(?: .+)?)", "{x:-s}"),
    (r"i (?P<x>(?:drink|eat) .+)", "{x:-s}"),
)

_PERSONALITY = (
    (rf"{_BE}{_VERY} (?P<x>{_TEMPER})", "is {x}"),
    (rf"{_BE} (?:not|no longer){_VERY} (?P<x>{_TEMPER})", "is not {x}"),
    (rf"{_BE}{_VERY} (?:afraid|scared|terrified) of (?P<x>.+)", "is afraid of {x}"),
    (rf"{_BE} (?:not|no longer) (?:afraid|scared) of (?P<x>.+)", "is not afraid of {x}"),
)

_BACKGROUND = (
    (rf"(?:my name is|{_BE} called|i go by|{_HAVE} changed my name to) (?P<x>{_NAME})", "is called {x}"),
    (rf"(?:everyone calls|(?:just |please )?call) me (?P<x>{_NAME})", "is called {x}"),
    (rf"{_ALSO}work (?P<x>{_WORK})", "works {x}"),
    (rf"{_BE} (?:now |currently )?working (?P<x>{_WORK})", "works {x}"),
    (rf"{_BE} (?:now )?(?P<x>{_ROLE_OF})", "works as {x}"),
    (rf"{_BE} (?:not|no longer) (?P<x>{_ROLE_OF})", "does not work as {x}"),
    (rf"{_QUIT} working (?P<x>{_WORK})", "does not work {x}"),
    (rf"{_HAVE} (?:got|started|found|took) (?:a|my) new job (?P<x>{_WORK})", "works {x}"),
    (rf"{_HAVE} (?:started|begun|began)(?: working| work)? (?P<x>{_WORK})", "works {x}"),
    (rf"{_NO_MORE} work (?P<x>{_WORK})", "does not work {x}"),
    (rf"{_HAVE} retired|{_BE}(?: now)? retired", "is retired"),
    (rf"{_BE} (?:now |currently )?(?:unemployed|out of work|between jobs)", "is unemployed"),
    (rf"{_ALSO}live (?P<x>{_PLACE})", "lives {x}"),
    (rf"{_BE} (?:now |currently )?living (?P<x>{_PLACE})", "lives {x}"),
    (
        rf"(?:{_HAVE}|we(?:'ve| have)?(?: just)?) (?:moved|relocated) (?:house |back )?(?:from .+ )?to "
        rf"(?P<x>{_SOMEWHERE})",
        "lives in {x}",
    ),
    (r"my (?:new )?(?:home|address) is (?:now )?in (?P<x>.+)", "lives in {x}"),
    (rf"{_ALSO}live (?:alone|by myself|on my own)|{_BE} (?:now )?living alone", "lives alone"),
    (rf"{_HAVE} moved in with (?P<x>.+)", "lives with {x}"),
    (rf"{_NO_MORE} live (?P<x>{_PLACE})", "does not live {x}"),
    (r"i(?:'m| am| come) (?:originally )?from (?P<x>.+)", "comes from {x}"),
    (r"i was born in (?P<x>.+)", "was born in {x}"),
    (r"i (?:can )?speak (?P<x>(?-i:[A-Z])\w+(?:(?:,| and)+ (?-i:[A-Z])\w+)*)", "speaks {x}"),
    (r"i (?:now )?study (?P<x>.+)", "studies {x}"),
    (rf"{_HAVE} {_MOVED_ON}(?: from .+)? to (?:studying )?(?P<x>{SUBJECTS})", "studies {x}"),
    (
        rf"{_HAVE} {_MOVED_ON} (?:my )?(?:majors?|subjects?|course|degree|studies)(?: from .+)? to (?P<x>.+)",
        "studies {x}",
    ),
    (rf"{_BE} (?:now )?(?P<x>\d{{1,3}})(?: years old)?", "is {x} years old"),
    (rf"{_HAVE} turned (?P<x>\d{{1,3}})", "is {x} years old"),
    (r"my birthday is (?:on )?(?P<x>.+)", "has a birthday on {x}"),
    (rf"{_BE} (?:now )?(?P<x>(?:married|engaged) to .+)", "is {x}"),
    (rf"{_BE} (?:now )?(?:dating|seeing|going out with) (?P<x>{_NAME})", "is dating {x}"),
    (rf"{_HAVE} (?:got|became) (?P<x>(?:married|engaged) to .+)", "is {x}"),
    (rf"{_BE} (?:now )?(?P<x>married|single|divorced|engaged|widowed)", "is {x}"),
    (rf"{_BE} (?:not|no longer) (?P<x>married|engaged)(?: to .+)?", "is not {x}"),
    (rf"{_HAVE} got (?P<x>married|divorced|engaged)", "is {x}"),
    (rf"{_HAVE} {_PARTED} with (?P<x>.+)", "is no longer with {x}"),
    (rf"(?P<x>{_NAME}) and i (?:have )?{_PARTED}", "is no longer with {x}"),
    (rf"{_HAVE}(?: got)? (?P<x>(?:{_MANY}) (?:{RELATIVES})(?: (?:called|named) .+)?)", "has {x}"),
    (rf"we(?:'ve| have)(?: got)? (?P<x>(?:{_MANY}) (?:{ANIMALS})(?: (?:called|named) .+)?)", "has {x}"),
    (rf"(?:{_HAVE}(?: got| bought)?|i(?: just)? bought) (?P<x>an? (?:[\w-]+ )?(?:{THINGS}))", "has {x}"),
    (rf"{_NO_MORE} have (?P<x>(?:an?|any) (?:{RELATIVES}|{THINGS}))", "does not have {x}"),
)

_ENDED = (
    (rf"{_HAVE} (?:quit|left|lost|resigned from) my job(?: .*)?", "has no job"),
    (r"i (?:was|got|have been) (?:fired|laid off)(?: .*)?", "has no job"),
    (rf"{_HAVE} moved (?:out|away)(?: .*)?", "has moved away"),
    (rf"we (?:have |just )*{_PARTED}|we(?:'re| are) no longer together", "has no partner"),
    (rf"{_BE} (?:not|no longer) allergic", "is over an allergy"),
    (
        rf"{_HAVE} (?:graduated|dropped out|finished (?:my studies|university|college|school))(?: .*)?",
        "has left school",
    ),
    (rf"{_HAVE} left (?P<x>{_NAME})", "has left {x}"),
    (rf"{_GAVE_UP}{_AWAY} (?P<x>{_NAME})(?: away)?(?: to .+)?", "has given away {x}"),
    (
        rf"{_GAVE_UP}{_AWAY} (?:away )?(?:my|our) (?:old )?(?P<x>(?:{ANIMALS}|{THINGS})(?: {_NAME})?)"
        r"(?: away)?(?: to .+)?",
        "has given away {x}",
    ),
)

_GIVEN_UP = (
    (rf"{_NO_MORE} (?P<x>[a-z]+(?: .+)?)", "has given up: {x}"),
    (rf"{_QUIT} (?P<x>[a-z]+ing(?: .+)?)", "has given up: {x}"),
)
"""Of whatever else is done no longer. Only ends, so nothing is learned where it was not known."""

_MY = rf"my (?P<who>(?:(?:older|younger|elder|little|big|best|twin) )?(?:{RELATIVES}))"
_CALLED = r"(?:,? (?P<name>(?-i:[A-Z])[\w'-]+),?)?"

_NOT_CALLED = (
    (rf"{_MY}(?:'s| is)(?:n't| not) (?:called|named) (?P<x>{_NAME})", "called {x}"),
    (rf"{_MY}'s name is(?:n't| not) (?P<x>{_NAME})", "called {x}"),
)
NOT_NAMED = re.compile(rf"(?:my name is(?:n't| not)|{_BE} not called) (?P<x>{_NAME})", re.I)
"""A name that the wearer does not have."""

_OTHERS = (
    (rf"{_MY}(?:(?:'s| is)? (?:called|named)|'s name is) (?P<x>{_NAME})", "called {x}"),
    (rf"{_MY} is (?P<x>{_NAME})", "called {x}"),
    (
        rf"{_MY}{_CALLED}(?:'s| is){_VERY} (?P<x>(?:not )?(?:allergic to .+|(?:{_STATE})|an? .+))",
        "who is {x}",
    ),
    (rf"{_MY}{_CALLED} (?P<x>(?:lives|works|studies|likes|loves|hates|does not|doesn't) .+)", "who {x}"),
    (
        rf"{_MY}{_CALLED} (?:has |just |recently )*(?:moved|relocated) (?:back )?to (?P<x>{_SOMEWHERE})",
        "who lives in {x}",
    ),
)


def _compiled(rules: Iterable[tuple[str, str]]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.I), text) for pattern, text in rules)


FACTS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (pattern, kind, text)
    for kind, rules in (
        ("health", _HEALTH),
        ("preference", _PREFERENCES),
        ("habit", _HABITS),
        ("personality", _PERSONALITY),
        ("social background", _BACKGROUND),
    )
    for pattern, text in _compiled(rules)
)
"""Facts of the wearer: (pattern, kind, predicate)."""

ENDED = _compiled(_ENDED)
"""What is over, without a new fact; the predicate is one that `contradict` knows."""

GIVEN_UP = _compiled(_GIVEN_UP)
"""The same, looked at when nothing else fits."""

NOT_CALLED = _compiled(_NOT_CALLED)
"""A name that somebody whom the wearer calls "my" does not have."""

OTHERS = _compiled(_OTHERS)
"""Facts of somebody whom the wearer calls "my", as what follows "has a sister"."""

DIED = re.compile(rf"{_MY}(?: (?P<name>{_NAME}))? (?:has )?(?:just )?(?:died|passed away)", re.I)
