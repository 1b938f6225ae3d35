"""One honest sentence about what the wearer sees, from the objects, the people and the light.

It says only what the boxes carry: "on a table" when a thing's foot stands inside the table's box, a plural
when there are two boxes, and that nothing can be named when that is so. A covered or featureless picture is
not described at all: small vision models invent rooms there.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import cv2
import numpy as np

from os1_edge.events import Image
from os1_edge.see.objects import DetectedObject

DARK_GREY, DIM_GREY = 25.0, 55.0
"""Mean grey (0..255) below which a picture is dark, or dim."""
MIN_DETAIL = 120.0
"""Least variance of the Laplacian of a 64 x 64 thumbnail. On the OpenGlass photos a finger over the lens
stays below 66 and an uncovered lens above 279; the thumbnail averages away the sensor noise that makes a
full-size Laplacian take a black frame for a sharp one."""
MAX_NAMED = 4
"""More kinds of thing than this make a list, not a sentence."""

SURFACES = ("table", "desk")
STANDS_ON_SURFACES = frozenset(
    {"laptop", "computer mouse", "computer monitor", "box", "mug", "coffee cup", "bottle", "book", "camera"}
)
COUNTS = {1: "a", 2: "two", 3: "three"}
PLURALS = {"person": "people", "computer mouse": "computer mice", "box": "boxes", "cattle": "cattle"}
ALREADY_PLURAL = frozenset({"high heels", "footwear", "cattle"})


@dataclass(frozen=True, slots=True)
class SceneDescription:
    """What can be said of one picture."""

    sentence: str
    """One sentence, empty when the picture is not usable."""
    objects: tuple[DetectedObject, ...]
    people: int
    light: str
    """One of "bright", "dim" and "dark"."""
    usable: bool
    reason: str
    """Why it is not usable, or what the sentence rests on."""


class Detector(Protocol):
    """What `SceneDescriber` needs: `ObjectDetector` has it, so has any fake."""

    def detect(self, image: Image) -> tuple[DetectedObject, ...]: ...


class SceneDescriber:
    """Picture in, `SceneDescription` out; an unusable picture never reaches the detector."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector

    def look(self, image: Image) -> SceneDescription:
        """Describe `image` (uint8 BGR, height x width x 3)."""
        light, detail = measure(image)
        trouble = unusable_reason(light, detail)
        if trouble:
            return SceneDescription("", (), 0, light, False, trouble)
        objects = self._detector.detect(image)
        return describe(objects, light, sum(thing.label == "person" for thing in objects))


def measure(image: Image) -> tuple[str, float]:
    """(light word, detail): mean grey as "dark", "dim" or "bright"; Laplacian variance of a thumbnail."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    small = cv2.resize(grey, (64, 64), interpolation=cv2.INTER_AREA).astype(np.float32)
    mean = float(small.mean())
    light = "dark" if mean < DARK_GREY else "dim" if mean < DIM_GREY else "bright"
    return light, float(cv2.Laplacian(small, cv2.CV_32F).var())


def unusable_reason(light: str, detail: float) -> str:
    """Why a picture with this light and detail must not be described; "" when it may be."""
    if detail >= MIN_DETAIL:
        return ""
    if light == "dark":
        return "the picture is black or nearly so: the lens is covered or it is dark"
    return "the picture has no detail: the lens is covered, or it sees a blank or blurred surface"


def describe(objects: Sequence[DetectedObject], light: str, people: int) -> SceneDescription:
    """The sentence for these objects (best first), this light word and this number of people."""
    things = [thing for thing in objects if thing.label != "person"]
    phrases = [_people_phrase(people)] if people else []
    groups, rest = _on_surfaces(things)
    phrases += [f"{_list(_counted(on))} on {_article(surface)}" for surface, on in groups.items()]
    phrases += _counted(rest)
    if phrases:
        sentence = _capital(_list(phrases[: MAX_NAMED + 1]))
        sentence += "; the light is dim." if light == "dim" else "; it is dark." if light == "dark" else "."
        reason = f"named from {len(objects)} detected objects"
    else:
        sentence = "Nothing I can name" + ("." if light == "bright" else f"; the light is {light}.")
        reason = "no object was detected with enough confidence"
    return SceneDescription(sentence, tuple(objects), people, light, True, reason)


def stands_on(thing: DetectedObject, surface: DetectedObject) -> bool:
    """Do the boxes support "`thing` on `surface`"?

    The middle of the thing's foot must lie inside the surface's box, and the thing be clearly smaller, as a
    cup before a table across the room would otherwise stand on it.
    """
    x, y, width, height = thing.box
    left, top, wide, high = surface.box
    foot_x, foot_y = x + width / 2, y + height
    inside = left <= foot_x <= left + wide and top < foot_y <= top + high
    return inside and width <= wide and width * height < 0.8 * wide * high


def _on_surfaces(
    things: Sequence[DetectedObject],
) -> tuple[dict[str, list[DetectedObject]], list[DetectedObject]]:
    """What stands on which surface word, and everything else in its order."""
    surfaces = [thing for thing in things if thing.label in SURFACES]
    groups: dict[str, list[DetectedObject]] = {}
    rest = []
    for thing in things:
        below = next((surface for surface in surfaces if stands_on(thing, surface)), None)
        if thing.label in STANDS_ON_SURFACES and below is not None:
            groups.setdefault(below.label, []).append(thing)
        else:
            rest.append(thing)
    # A table that was said to carry something is not said again, nor one found twice in one place.
    return groups, [thing for thing in _once(rest) if thing.label not in groups]


def _once(things: Sequence[DetectedObject]) -> list[DetectedObject]:
    """Drop tables and desks that share pixels with one before: its top alone is often a second box."""
    kept: list[DetectedObject] = []
    for thing in things:
        others = [other for other in kept if other.label in SURFACES]
        if thing.label not in SURFACES or not any(share_pixels(thing, other) for other in others):
            kept.append(thing)
    return kept


def share_pixels(one: DetectedObject, other: DetectedObject) -> bool:
    """Do the two boxes overlap at all?"""
    (x, y, width, height), (left, top, wide, high) = one.box, other.box
    return x < left + wide and left < x + width and y < top + high and top < y + height


def _counted(things: Sequence[DetectedObject]) -> list[str]:
    """One phrase a label in order of first mention: "a cat", "two chairs", "several books"."""
    counts = Counter(thing.label for thing in things)
    return [
        _article(label) if count == 1 else f"{COUNTS.get(count, 'several')} {_plural(label)}"
        for label, count in list(counts.items())[:MAX_NAMED]
    ]


def _people_phrase(people: int) -> str:
    return "a person" if people == 1 else f"{COUNTS.get(people, 'several')} people"


def _article(label: str) -> str:
    if label in ALREADY_PLURAL:
        return label
    return f"{'an' if label[0] in 'aeiou' else 'a'} {label}"


def _plural(label: str) -> str:
    return label if label in ALREADY_PLURAL else PLURALS.get(label, f"{label}s")


def _list(phrases: Sequence[str]) -> str:
    if len(phrases) == 1:
        return phrases[0]
    # A comma more where a phrase is itself a list: "a laptop and a book on a desk, and a chair".
    joint = ", and " if any(" and " in phrase for phrase in phrases) else " and "
    return f"{', '.join(phrases[:-1])}{joint}{phrases[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
