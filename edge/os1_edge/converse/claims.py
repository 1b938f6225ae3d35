"""Whether a reply claims to remember what it was not told. Pure.

Nothing hurts a companion more than a memory that never was. So a sentence that speaks as from memory ("you
told me", "last week you", "I remember"), or that tells the wearer of their own life ("you love mango", "your
sister Anna"), may say only what stands in the prompt's facts, in what was recalled, or in what was just said.
"""

from __future__ import annotations

import re

from os1_edge.converse.question import kind_of
from os1_edge.remember.grounding import near
from os1_edge.remember.sessions import content_words
from os1_edge.remember.wording import WEEKDAY

_CLAIM = re.compile(
    r"\byou(?:'ve| have| had)?(?: (?:once|also|already|just|often|always|recently|earlier))?"
    r" (?:told|said|mentioned|shared|asked me|talked|spoke|promised|described|explained)\b"
    r"|\bI(?:'ve| have)?(?: already| just)? (?:told|asked|promised|showed|reminded) you\b"
    r"|\bI (?:still |do |can |also )*(?:remember|recall)(?: how| when| that| you| your|,)"
    r"|\bI(?:'ve| have) not forgotten|\bI haven't forgotten"
    r"|\b(?:as|like) (?:you|we) (?:said|told|mentioned|discussed|talked|agreed)"
    r"|\b(?:yesterday|the other day|last (?:night|week|weekend|month|year|time|summer|winter"
    rf"|{WEEKDAY})|earlier (?:today|this \w+)|this morning|\w+ (?:days?|weeks?"
    rf"|months?|years?) ago|on (?:{WEEKDAY})),? (?:you|we)\b"
    r"|\b(?:you|we) (?:\w+ ){1,8}(?:yesterday|the other day|last (?:night|week|weekend|month|year|time"
    r"|summer|winter)|\w+ (?:days?|weeks?|months?|years?) ago)\b"
    r"|\b(?:when|since|remember when) we (?:last |first )?(?:met|spoke|talked|went|were)\b"
    r"|\bwe (?:talked|spoke|chatted|discussed|went|met)\b|\b(?:our|your) (?:last|previous) (?:talk|chat"
    r"|conversation|session)\b",
    re.I,
)

_SAYING = frozenset(
    """told tell tells mentioned mention shared remember recall talked talk spoke spoken speak chatted chat
    discussed discuss conversation yesterday earlier ago last week weekend month year night day days weeks
    months years time once often always recently already forgotten promised described explained first met
    asked today morning previous session wearer fact still know said""".split()  # noqa: SIM905
)
"""Words of the claim itself; they say nothing of what is claimed."""

OWN_SHARE = 0.25
"""Share of what is claimed that may be the reply's own words: "going to" for "will go to"."""


def claims(sentence: str) -> bool:
    """Whether ``sentence`` speaks as from memory."""
    return _CLAIM.search(sentence.replace("’", "'")) is not None


_ASKS_FACT = re.compile(
    r"^\W*(?:(?:and|so|hey|ok|okay|please|tell me|do you know|can you tell me)\W+)*"
    r"(?:where|when|who|whose|what|which)(?:'s|\b)(?!.*\b(?:can|could|should|would|might|may|to do)\b)",
    re.I,
)
_OF_THE_WEARER = re.compile(
    r"\byour\b|\byou(?:'re|'ve)?(?: (?:have|had|are|were|live|work|went|put|left|parked|bought|met|like|love"
    r"|prefer|keep|kept|lost|gave|ate|saw|always|usually|often))\b",
    re.I,
)


def presumes(sentence: str, heard: str) -> bool:
    """Whether ``sentence`` answers a question about the wearer with a fact of the wearer's: where their key
    is, whom they met. It is as good as a claim to remember."""
    asked = heard.replace("’", "'")
    return _ASKS_FACT.search(asked) is not None and _OF_THE_WEARER.search(sentence) is not None


_JUST_SAID = re.compile(r"\byou (?:just )?(?:said|asked)\b", re.I)
"""What was asked was said: "you asked about Paris" is true of it, "you told me about Paris" is not."""


_LIFE = re.compile(
    r"(?:(?P<before>[\w']+) )?\byou(?:'ve| have|'d)?"
    r"(?: (?:really|also|just|still|once|already|always|usually|often|never|do|especially|absolutely|so))*"
    r" (?:(?:love|like|enjoy|hate|dislike|prefer|adore|loved|liked|enjoyed|hated)"
    r"(?! to (?:be|hear|know|see|say)\b)"
    r"|(?:live|lived) (?:in|at|near|with)|(?:work|worked) (?:as|at|in|for)|used to|grew up|went to|moved to"
    r"|visited|bought|studied|met|married|won|quit|gave up|collect|collected"
    r"|(?:are|were) (?:allergic to|afraid of|scared of|married to|from|born)"
    r"|(?:have|had|own|owned) (?:a|an|two|three) (?=(?:\w+ )?(?:brother|sister|son|daughter|dog|cat|pet|child"
    r"|car|house|garden)))",
    re.I,
)
"""Tells the wearer what they like, are, have, or once did."""

_SUPPOSED = frozenset(
    """if do did don't didn't would could can may might will should must hope whatever whenever wherever as
    when what how where which why let help helps make makes whether unless than wish bet until once something
    anything everything things thing whoever sure""".split()  # noqa: SIM905
)
"""Before "you": nothing is told, it is asked, supposed or wished."""

_PART_ENDS = re.compile(r"[,;:.!?\u2013\u2014]|\b(?:so|and|but|because|or|which|when|while|that)\b", re.I)

_KIN = (
    "mother mum mom mama parent", "father dad papa parent", "sister sibling", "brother sibling",
    "wife husband partner spouse fiance", "girlfriend boyfriend partner", "son child kid boy",
    "daughter child kid girl", "aunt", "uncle", "cousin", "grandmother grandma granny", "grandfather grandpa",
    "nephew", "niece", "dog puppy pet", "cat kitten pet",
)  # fmt: skip
"""Who may be told of as the wearer's: a row names the same one."""
_THEIRS = re.compile(
    rf"\byour (?:\w+ )?(?P<who>{'|'.join(dict.fromkeys(' '.join(_KIN).split()))}"
    r"|friend|boss|colleague|neighbou?r)\b"
    r"(?:,? (?:is |called |named )*(?P<name>(?-i:[A-Z][a-z]+)))?",
    re.I,
)
_ADVISES = re.compile(
    r"\b(?:could|can|should|may|might|maybe|perhaps|try|how about|why not|if|call|ask|tell|talk to|let)\b|\?",
    re.I,
)
"""Who advises to call a sister need not know of one."""


def _made_up(sentence: str, known: set[str]) -> str | None:
    """What ``sentence`` tells the wearer of their life that ``known``, in small letters, does not hold."""
    for found in _LIFE.finditer(sentence):
        if (found["before"] or "").casefold() in _SUPPOSED:
            continue
        told = [w for w in content_words(_PART_ENDS.split(sentence[found.end() :])[0]) if w not in _SAYING]
        if 2 * sum(not near(word, known) for word in told) > len(told):
            return "it tells the wearer of themselves what they did not tell"
    for found in _THEIRS.finditer(sentence):
        if found["name"] and not near(found["name"].casefold(), known):
            return "it names somebody of the wearer's who was not named"
        who = found["who"].casefold()
        same = {word for row in _KIN if who in row.split() for word in row.split()}
        if same and not _ADVISES.search(sentence) and not any(near(word, known) for word in same):
            return "it tells of somebody of the wearer's who was not told of"
    return None


def unfounded(sentence: str, evidence: str, heard: str = "") -> str | None:
    """Why ``sentence`` must not be spoken; ``None`` when it claims no memory, or one that ``evidence`` holds,
    and tells nothing of the wearer that is not there.

    Args:
        sentence: a sentence of the reply, as far as it is written.
        evidence: all that the prompt told: facts, what was recalled, the wearer's words.
        heard: what is answered.
    """
    known = set(content_words(evidence))
    asked = kind_of(heard) != "statement"
    told = set(content_words(evidence.replace(heard, " "))) if asked and heard else known
    if not claims(sentence) and not presumes(sentence, heard):
        return _made_up(sentence.replace("’", "'"), told)
    if set(re.findall(r"\d+", sentence)) - set(re.findall(r"\d+", evidence)):
        return "it claims to remember a number that it was not told"
    claimed = [word for word in content_words(sentence) if word not in _SAYING]
    names = {word.casefold() for word in re.findall(r"(?<=[\w,] )[A-Z][a-z]+", sentence)}
    if any(not near(name, known) for name in names & set(claimed)):
        return "it claims to remember a name that it was not told"
    if claimed and not any(near(word, told) for word in claimed) and not _JUST_SAID.search(sentence):
        return "it claims to remember what was only asked"
    own = [word for word in claimed if not near(word, known)]
    if own and len(own) > OWN_SHARE * len(claimed):
        return "it claims to remember what it was not told"
    return None
