"""Where the wearer is and what they do, guessed from words and objects when no language model may run.

The paper's context agent says location and activity in a word or two ("office", "working"). This is its
deterministic fallback: the wearer's own words count first, then the things in view; without evidence it says
"somewhere" and "unknown", and never invents.
"""

import re
from dataclasses import dataclass

from os1_edge.events import UNKNOWN_LOCATION
from os1_edge.see.scene import SceneDescription

UNKNOWN_ACTIVITY = "unknown"

PLACES = (
    "kitchen|living room|bedroom|bathroom|garden|office|meeting room|library|classroom|school|gym|park|"
    "street|cafe|café|coffee shop|restaurant|bar|shop|supermarket|market|bus stop|bus|"
    "train station|station|train|airport|hospital|car|museum|beach|home|work"
)
SAME_PLACE = {"café": "cafe", "coffee shop": "cafe", "work": "office"}
ARTICLE = r"(?:the|my|our|a|this|an)"
SAID_PLACE = (
    rf"\b(?:here|now|am|are|i'm|we're|standing|sitting) (?:in|at|on) (?:{ARTICLE} )?({PLACES})\b",
    rf"\b(?:just )?(?:arrived|got) (?:in|at|to|into) (?:{ARTICLE} )?({PLACES})\b",
    rf"\b(?:this is|welcome to) {ARTICLE} ({PLACES})\b",
    rf"^(?:in|at|on) {ARTICLE} ({PLACES})\b",
)
NOT_HERE = r"\b(?:not|was|were|will|going|go|later|tomorrow|yesterday|never|isn't|aren't)\b"
"""Words beside a place that make it another time's place."""

SAID_ACTIVITY: tuple[tuple[str, str, str], ...] = (
    (r"\bwaiting for (?:the |my |a )?bus\b", "waiting for the bus", "bus stop"),
    (r"\bwaiting for (?:the |my |a )?train\b", "waiting for the train", "station"),
    (r"\b(?:cooking|making (?:breakfast|lunch|dinner))\b", "cooking", "kitchen"),
    (r"\b(?:working|starting work|at work)\b", "working", ""),
    (r"\b(?:having|eating) (?:breakfast|lunch|dinner)\b", "eating", ""),
    (r"\b(?:working out|exercising|lifting weights)\b", "exercising", ""),
    (r"\b(?:having|drinking) (?:a |an |some |my )?(?:coffee|tea|espresso)\b", "having a drink", ""),
    (r"\b(?:driving)\b", "driving", "car"),
    (r"\b(?:walking)\b", "walking", ""),
    (r"\b(?:reading)\b", "reading", ""),
    (r"\b(?:shopping)\b", "shopping", ""),
)
NEGATED = r"(?:\bnot|n't|\bno longer|\bstopped|\bwas|\bwere|\bwill be|\bfinished|\bafter) (?:\w+ ){0,2}$"

SEEN: tuple[tuple[frozenset[str], int, str, str], ...] = (
    (frozenset({"stationary bicycle"}), 1, "gym", UNKNOWN_ACTIVITY),
    (frozenset({"laptop", "computer monitor", "computer mouse", "desk"}), 2, "office", "working"),
    (frozenset({"car", "bicycle", "vehicle"}), 1, "street", UNKNOWN_ACTIVITY),
)
"""(things, how many kinds of them must be in view, location, activity): the first that fits."""


@dataclass(frozen=True, slots=True)
class PlaceGuess:
    """Location and activity in a word or two, and what they rest on."""

    location: str
    activity: str
    reason: str


def guess_place(description: SceneDescription, utterance: str = "") -> PlaceGuess:
    """Guess from what was just said, then from what is in view; each part on its own evidence."""
    text = " ".join(utterance.lower().replace("’", "'").split())
    location, activity = said_place(text), UNKNOWN_ACTIVITY
    reasons = [f"the wearer named the {location}"] if location else []
    doing = said_activity(text)
    if doing:
        activity, implied = doing
        reasons.append(f"the wearer said they are {activity}")
        location = location or implied
    kinds = {thing.label for thing in description.objects} if description.usable else set()
    for wanted, least, place, act in SEEN:
        seen = sorted(wanted & kinds)
        if len(seen) < least or (location and place != location):
            continue
        if not location or (activity == UNKNOWN_ACTIVITY and act != UNKNOWN_ACTIVITY):
            reasons.append(f"in view: {', '.join(seen)}")
        location = location or place
        activity = act if activity == UNKNOWN_ACTIVITY else activity
        break
    return PlaceGuess(location or UNKNOWN_LOCATION, activity, "; ".join(reasons) or "no evidence")


def said_place(text: str) -> str:
    """The place the wearer says they are at now (lower-case `text`), or ""."""
    for pattern in SAID_PLACE:
        for match in re.finditer(pattern, text):
            clause = re.split(r"[.,;!?]", text[: match.end()])[-1]
            if not re.search(NOT_HERE, clause):
                return SAME_PLACE.get(match.group(1), match.group(1))
    return ""


def said_activity(text: str) -> tuple[str, str] | None:
    """(activity, the place it implies or "") the wearer says they are at, or None; a denial is none."""
    if text.endswith("?"):  # "what was I working on?" is about another time
        return None
    for pattern, activity, place in SAID_ACTIVITY:
        match = re.search(pattern, text)
        if match and not re.search(NEGATED, text[: match.start()]):
            return activity, place
    return None
