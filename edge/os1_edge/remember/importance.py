"""How much a memory moves: 1 (a plain moment) to 10 (the worst or best of days), by emotional arousal. Pure.

The paper has a language model rate it (3.2.3); this is the floor beneath: a word list, read by arousal and
not by pleasure, so that a wedding counts as a funeral does. No word of it is looked up in what was recalled.
"""

from __future__ import annotations

import re

LEAST, MOST = 1, 10

PLAIN = 2
"""Something was said or done, and nothing tells that it moved anybody."""

_LEVELS: tuple[tuple[int, str], ...] = (
    (
        9,
        r"died|death|dead|dying|funeral|passed away|killed|suicid\w+|cancer|tumou?r|heart attack|"
        r"stroke|miscarriage|raped?|assault\w*|murder\w*|earthquake|"
        r"house (?:is )?(?:on fire|burn\w+)|ambulance|gave birth|was born|newborn",
    ),
    (
        8,
        r"accident|crash\w*|emergency|hospital|surgery|operation|divorc\w+|broke up|pregnan\w+|"
        r"wedding|married|marry|engaged|proposed|fired|laid off|lost my job|robbed|mugged|attacked|"
        r"panick?\w*|terrif\w+|devastat\w+|heartbroken|anaphyla\w+",
    ),
    (
        7,
        r"allerg\w+|scared|frightened|afraid|furious|horr\w+|crying|cried|tears|ecstatic|thrilled|"
        r"overjoyed|desperate|grief|won|graduat\w+|promot(?:ed|ion)|broke (?:my|his|her)|bleeding|"
        r"stolen|lost my",
    ),
    (
        6,
        r"hate\w*|angry|anger|excited|exciting|amazing|love[ds]?|adore|anxious|anxiety|nervous|"
        r"ashamed|jealous|depress\w+|lonely|painful|pain|hurts?|argu(?:ed|ment)|fight|fought|"
        r"shout\w*|screamed|surprise\w*|birthday|moved (?:house|to)|new job|exam|interview|secret",
    ),
    (
        5,
        r"happy|sad|worried|worry|upset|annoyed|proud|glad|sorry|miss(?:ed|es)?|disappoint\w+|"
        r"stress\w*|ill|sick|fever|late for|forgot|promise[ds]?|remember|important|urgent|deadline|"
        r"appointment|doctor|dentist",
    ),
    (
        4,
        r"tired|enjoy\w*|nice|fun|bored|hope|hungry|cold|favou?rite|party|holiday|travel\w*|trip|"
        r"friend",
    ),
    (
        3,
        r"meeting|plan\w*|buy|bought|cook\w*|lunch|dinner|breakfast|shopping|call(?:ed)?|finish\w*|"
        r"start\w*",
    ),
)
"""Words by how much they move, in our own judgement; a model's rating, where there is one, goes before."""

_WORDS = tuple((level, re.compile(rf"\b(?:{words})\b", re.I)) for level, words in _LEVELS)
_VERY = re.compile(
    r"\b(?:very|so|really|extremely|terribly|incredibly|absolutely|never ever|badly)\b|!", re.I
)
_CALM = re.compile(r"\b(?:a bit|a little|slightly|not (?:very|so|really|too))\b", re.I)
_NOT_MOVED = re.compile(
    r"\b(?:not|never|no longer|don't|doesn't|isn't|wasn't|aren't) (?:\w+ ){0,1}"
    r"(?:afraid|scared|worried|angry|sad|happy|hurt|excited|nervous|ill|sick|tired|upset)\b",
    re.I,
)


def importance_by_rule(text: str) -> int:
    """1 to 10 for a memory in words. 1: nothing at all in it; one step up for "very" or "!", one down for "a
    bit"; a feeling that is denied moves less than the feeling."""
    if not re.search(r"\w", text):
        return LEAST
    felt = _NOT_MOVED.sub(" ", text)
    level = next((level for level, words in _WORDS if words.search(felt)), PLAIN)
    if level > PLAIN:
        level += (1 if _VERY.search(felt) else 0) - (1 if _CALM.search(felt) else 0)
    return max(LEAST, min(MOST, level))
