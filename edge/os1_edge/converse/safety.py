"""What a companion must not get wrong: somebody in danger, a question for a doctor or a lawyer, and what the
wearer must not have. Pure, and no model is asked: a small one cannot be trusted with it.

Words are not a diagnosis. A false alarm costs one caring sentence, so "I want to die" counts whatever the
tone; idioms ("this heat is killing me") do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from os1_edge.converse.food import concerns_food, food_in
from os1_edge.converse.texts import text
from os1_edge.remember.rows import ProfileEntry
from os1_edge.remember.sessions import content_words

Danger = Literal["crisis", "emergency"]
Advice = Literal["medical", "legal"]

_CRISIS = re.compile(
    r"\bkill(?:ing)? my ?self\b|\b(?:end|ending|take|taking) my (?:own )?life\b(?! (?:story|insurance"
    r"|savings|lessons?))|\bend it all\b"
    r"|\b(?:want|wanted|wish|going|ready|rather|like) to (?:die|be dead|disappear forever)\b"
    r"|\b(?:don't|do not|can't|cannot|no longer) (?:want|wanna) to (?:live|be alive|go on living|wake up)\b"
    r"|\bwanna die\b|\bwish i (?:was|were|had never been) (?:dead|born)\b|\bi(?:'d"
    r"| would) be better off dead\b"
    r"|\bbetter off without me\b|\bsuicidal\b|\b(?:commit(?:ting)?|attempt(?:ed)?|thinking (?:of"
    r"|about)) suicide\b"
    r"|\b(?:hurt|hurting|harm|harming|cut|cutting) my ?self (?:again|on purpose|because|to feel|tonight)\b"
    r"|\b(?:want|wanted|going|need|urge|feel like|thinking about|thinking of) (?:to )?"
    r"(?:hurt|hurting|harm|harming|cut|cutting) my ?self\b|\bself[- ]harm(?:ing|ed)?\b"
    r"|\bno reason (?:left )?to (?:live|go on)\b|\bnothing (?:left )?to live for\b"
    r"|\bcan't (?:go on|take it) any ?more\b"
    r"|\b(?:mich|mir) (?:selbst )?umbringen\b|\bnicht mehr leben\b|\bwill sterben\b|\bmir das leben nehmen\b"
    r"|\bquiero morir(?:me)?\b|\bquitarme la vida\b|\bsuicidarme\b|\bno quiero (?:seguir )?vivi(?:r|endo)\b"
    r"|\b(?:veux|envie de) mourir\b|\bme suicider\b|\bme tuer\b|\bplus envie de vivre\b|\bveux plus vivre\b",
    re.I,
)
_NOT_MINE = re.compile(
    r"\b(?:song|lyrics|film|movie|book|novel|play|character|episode|quote|the (?:article|news)|game)\b", re.I
)
"""Talk of a story: with one of these and no "I feel", nobody is in danger."""
_FEELS = re.compile(r"\bi(?:'m| am| feel| just| really| can't| don't)\b", re.I)

_EMERGENCY = re.compile(
    r"\b(?:i|he|she|they|somebody|someone|my \w+)(?:'s| has| have| is| am|'m|'ve| got)? (?:\w+ )?"
    r"(?:having|had|having|have) (?:a |an )?(?:heart attack|stroke|seizure|chest pains?)\b"
    r"|\b(?:can't|cannot|hard to|trouble|not|isn't|stopped) breath(?:e|ing)\b"
    r"|\b(?:took|taken|swallowed|drank) (?:too many|a whole|an overdose|bleach|poison)\b|\boverdos(?:e|ed"
    r"|ing)\b"
    r"|\b(?:is|are|was|am) (?:unconscious|not responding|choking|bleeding (?:a lot|badly|heavily))\b"
    r"|\bchest pain\b|\banaphyla\w+|\bthroat is (?:closing|swelling)\b"
    r"|\b(?:herzinfarkt|schlaganfall|keine luft|infarto|no puedo respirar|crise cardiaque|n'arrive pas à"
    r" respirer)\b",
    re.I,
)
_PAST = re.compile(
    r"\b(?:years?|months?|weeks?) ago|\blast (?:year|month|week)|\bin (?:19|20)\d\d\b|\bused to\b", re.I
)

_MEDICAL = re.compile(
    r"\b(?:symptoms?|diagnos\w+|doses?|dosage|medicines?|medication|pills?|tablets?|ibuprofen|paracetamol"
    r"|aspirin|antibiotics?|antidepressants?|insulin|prescri\w+|side effects?|vaccin\w+|blood pressure|fever"
    r"|rash|infection|infected|tumou?r|lump|mole|dizzy|faint(?:ed)?|miscarriage|pregnan\w+|migraines?"
    r"|concussion|sprain\w*|swollen|bleeding|vomit\w*|diarrh\w+|painkillers?|melatonin|supplements?|wound"
    r"|medikament\w*|tabletten|dosis|medicamentos?|pastillas|médicaments?|comprimés?)\b"
    r"|\b(?:my|his|her|the) (?:\w+ )?(?:chest|head|stomach|back|knee|ear|eye|throat|tooth"
    r"|heart) (?:hurts?|aches?)",
    re.I,
)
_LEGAL = re.compile(
    r"\b(?:lawyer|attorney|sue|suing|lawsuit|legal|illegal|legally|contract|landlord|evict\w*|tenant|custody"
    r"|divorce papers|last will|inherit\w*|copyright|liable|liability|court|arrested|police charge"
    r"|charged with"
    r"|tax(?:es| return)?|visa|immigration|employment law|notice period|fired unfairly|anwalt|vertrag"
    r"|kündig\w+"
    r"|abogado|contrato|avocat|contrat)\b",
    re.I,
)
_ASKS_ADVICE = re.compile(
    r"\?|\b(?:can|may|should|could|must|do|am|is|are|how|what|which|when|why) (?:i|we|my|he|she|it|they"
    r"|much|many"
    r"|long|often|the|this)\b|\b(?:tell me|advise|help me)\b|\bsoll(?:te)? ich|\bdarf ich|\bpuedo\b|\bdebo\b"
    r"|\bje peux\b|\bpuis-je\b|\bdois-je\b",
    re.I,
)
_REFERS = re.compile(
    r"\b(?:doctors?|gp|pharmacists?|nurse|clinic|hospital|emergency|lawyers?|attorney|advice centre"
    r"|ärzt\w+|arzt|apotheke|médicos?|farmacéutic\w+|médecins?|pharmacien\w*|anwält\w+|anwalt|abogad\w+"
    r"|avocat\w*|professional)\b",
    re.I,
)
_DOSE = re.compile(
    r"\b(?:\d+(?:[.,]\d+)?|one|two|three|four|five|six|eight|ten)(?:-| )?"
    r"(?:mg|milligrams?|g|grams?|ml|millilit\w+|mcg|micrograms?|pills?|tablets?|capsules?|drops|units)\b",
    re.I,
)

CAREFUL = {
    "medical": "This is a medical question. Give no diagnosis and no dose. Be careful and kind.",
    "legal": "This is a legal question. Do not promise how it will end. Be careful.",
}
"""What the prompt asks for."""

_DISTRESS = re.compile(
    r"\bi(?:'m| am| feel| was| have been|'ve been)(?: \w+){0,2} (?:sad|lonely|alone|anxious|scared|afraid"
    r"|overwhelmed|depressed|hopeless|miserable|exhausted|heartbroken|devastated|worthless|desperate"
    r"|panicking"
    r"|crying|stressed(?: out)?|burn(?:t|ed) out|so down|in pieces)\b"
    r"|\bi(?:'ve| have)? (?:just )?(?:cried|broke down|had a panic attack|can't stop crying|can't sleep)\b"
    r"|\b(?:we broke up|broke up with me|he left me|she left me|has died|passed away|died (?:today"
    r"|yesterday|last"
    r" night))\b|\bjust comfort me\b|\beverything is too much\b|\bterrible day\b|\bworst day\b"
    r"|\bich bin (?:so )?(?:traurig|einsam|verzweifelt|am ende)\b|\bestoy (?:muy )?(?:triste|sol[oa]"
    r"|desesperad[oa])\b|\bje suis (?:très |si )?(?:triste|seule?|désespérée?)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Care:
    """How a turn is to be minded."""

    fixed: str = ""
    """The whole reply, where no model is to write it."""
    instruction: str = ""
    """What the prompt asks for besides."""
    closing: str = ""
    """The last sentence, unless the reply itself sends the wearer to somebody."""
    reason: str = ""


def danger(heard: str) -> Danger | None:
    """Whether somebody seems to be in danger now."""
    heard = heard.replace("’", "'")
    if _CRISIS.search(heard) and not (_NOT_MINE.search(heard) and not _FEELS.search(heard)):
        return "crisis"
    if _EMERGENCY.search(heard) and not _PAST.search(heard) and not _NOT_MINE.search(heard):
        return "emergency"
    return None


def advice(heard: str) -> Advice | None:
    """Whether ``heard`` asks what only a doctor or a lawyer should answer."""
    if not _ASKS_ADVICE.search(heard):
        return None
    return "medical" if _MEDICAL.search(heard) else "legal" if _LEGAL.search(heard) else None


def distress(heard: str) -> bool:
    """Whether the wearer seems to feel bad enough that a friend would ask again later."""
    heard = heard.replace("’", "'")
    return danger(heard) == "crisis" or _DISTRESS.search(heard) is not None


def care(heard: str, language: str = "en", helpline: str = "") -> Care:
    """How the turn ``heard`` is to be minded.

    Args:
        heard: what the wearer said.
        language: the fixed lines' language.
        helpline: the sentence that names help, from the settings; empty: one that names no number.
    """
    if (found := danger(heard)) == "crisis":
        line = text("crisis", language, helpline=helpline.strip() or text("helpline", language))
        return Care(line, reason="the wearer may be in danger")
    if found == "emergency":
        return Care(text("emergency", language), reason="it may be an emergency")
    asked = advice(heard)
    if asked is None:
        return Care()
    closing = text("ask a doctor" if asked == "medical" else "ask a lawyer", language)
    return Care("", CAREFUL[asked], closing, f"a {asked} question")


def refers(reply: str) -> bool:
    """Whether ``reply`` sends the wearer to somebody who knows."""
    return _REFERS.search(reply) is not None


def doses(clause: str, evidence: str) -> str | None:
    """The dose in ``clause`` that ``evidence`` does not hold; ``None``: there is none."""
    known = evidence.lower()
    return next((d for d in map(str, _DOSE.findall(clause)) if d.lower() not in known), None)


_NEVER = re.compile(
    r"\bnever\b|\b(?:does not|doesn't|cannot|can't|must not|mustn't|is not allowed to|avoids?) (?:\w+ )?"
    r"(?:eats?|drinks?|takes?|have|uses?|smokes?|touch|drive|go|be)?\b|\ballerg|\bintoleran|\bvegan\b"
    r"|\bvegetarian\b|\bkosher\b|\bhalal\b|\bco?eliac\b|\bdiabet|\bpregnan|\bepilep|\basthma",
    re.I,
)
_DISLIKE = re.compile(r"\b(?:does not|doesn't) (?:like|love|enjoy)\b", re.I)
_FOOD_LINE = re.compile(
    r"\ballerg|\bintoleran|\bvegan\b|\bvegetarian\b|\bkosher\b|\bhalal\b|\bco?eliac\b|\bdiabet|\bpregnan"
    r"|\b(?:eats?|drinks?)\b",
    re.I,
)
MOST_LINES = 6
"""Lines that a turn is told to mind; whoever has more of them hears the surest first."""


def must_mind(heard: str, scene: str, profile: Iterable[ProfileEntry]) -> tuple[str, ...]:
    """The profile's lines that this turn must not forget: allergies, and what the wearer never does.

    About food, in talk or in view, all lines that have to do with it; besides, each line that names something
    spoken of or seen: an allergy to cats where there is a cat.
    """
    food = concerns_food(heard) or food_in(scene)
    about = {_root(word) for word in content_words(f"{heard} {scene}")}
    lines = []
    for entry in sorted(profile, key=lambda e: -e.confidence):
        rule = entry.kind == "health" or (_NEVER.search(entry.text) and not _DISLIKE.search(entry.text))
        named = about & ({_root(word) for word in content_words(entry.text)} - _EVERYWHERE)
        if rule and ((food and (entry.kind == "health" or _FOOD_LINE.search(entry.text))) or named):
            lines.append(entry.text)
    return tuple(lines[:MOST_LINES])


_EVERYWHERE = frozenset("wearer never allergic eat drink take have use like".split())  # noqa: SIM905


def _root(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


_BARRED = re.compile(
    r"\b(?:allergic to|intolerant to|never (?:eats?|drinks?|takes?|has|uses?|smokes?)|does not (?:eat|drink"
    r"|take|use|smoke)|cannot (?:eat|drink|take|have)|must not (?:eat|drink|take|have)|avoids?"
    r"|you (?:never|do not|cannot) (?:eat|drink|take|have))(?: any)? (?P<what>[^.;]+)",
    re.I,
)
_DIETS: Sequence[tuple[str, str]] = (
    (r"\bvegan\b", "meat chicken beef pork ham bacon fish salmon tuna shrimp cheese egg milk butter steak"
        " burger"
                   " sausage yogurt cream honey"),
    (r"\bvegetarian\b", "meat chicken beef pork ham bacon fish salmon tuna shrimp steak sausage"),
    (r"\bkosher\b|\bhalal\b", "pork ham bacon"),
    (r"\blactose", "milk cheese yogurt cream butter latte"),
    (r"\bco?eliac\b|\bgluten", "bread pasta pizza cake beer"),
    (r"\bpregnan", "wine beer alcohol whisky vodka sushi"),
)  # fmt: skip
"""What a word for a diet bars, as far as it goes without saying."""


_NOT_SO = re.compile(r"\bnot (?:an? )?(?:vegan|vegetarian|lactose|gluten|pregnant|co?eliac)", re.I)


def barred(line: str) -> frozenset[str]:
    """The things that a profile line says the wearer must not have, in the singular."""
    words: set[str] = set()
    if (found := _BARRED.search(line)) is not None:
        words |= {_root(w) for w in re.findall(r"[a-zà-ÿ]{3,}", found["what"].lower())} - _SMALL
    for pattern, things in _DIETS:
        if re.search(pattern, line, re.I) and not _NOT_SO.search(line):
            words |= set(things.split())
    return frozenset(words)


_SMALL = frozenset("and the any all with from for his her their kind anything something other some".split())  # noqa: SIM905
