"""The part of the scene picture that the wearer looks at: as large as gaze is uncertain, snapped to a thing.

Pure. Gaze comes with its median error in degrees; over the picture that is a round normal distribution, and
each box holds some of its probability. The smallest box that clearly holds the gaze is what is looked at (the
cup, not the table under it, nor the person behind it). Where two boxes hold it alike, nothing is claimed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, sqrt

from os1_edge.events import Gaze
from os1_edge.see.objects import DetectedObject

Box = tuple[int, int, int, int]

LEAST_CONFIDENCE = 0.3
"""Gaze below it is no better than the whole picture."""
LEAST_HALF = 0.175
"""Least half side of a crop, as a share of the picture's width: 112 pixels of 640, which holds a target at
twice the error of a calibration-free eye tracker (about 5 degrees)."""
ERRORS_HELD = 2.0
"""Median errors that fit between the gaze and the crop's edge: 94 % of the looks are inside."""
SNAP_MARGIN = 0.15
"""Share of a thing's size left around it."""
CLEARLY, AT_LEAST = 0.35, 0.15
"""Probability held by a box that is clearly looked at, and by one that may be when no other is."""
TOO_CLOSE = 0.6
"""A second box apart from the first that holds this share of its probability leaves the matter open."""
SURFACES = frozenset({"table", "desk"})
_SIGMAS = 1.1774
"""Median distance from the middle of a round normal distribution, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Crop:
    """What to cut out, what it shows, and why."""

    box: Box
    """x, y, width, height inside the picture; the whole picture where gaze does not help."""
    looked_at: DetectedObject | None
    reason: str
    whole: bool


def choose_crop(
    gaze: Gaze | None, objects: Sequence[DetectedObject], width: int, height: int, fov_deg: float = 82.0
) -> Crop:
    """Where to look in a picture of `width` x `height`; gaze in its pixels, `fov_deg` its field across."""
    everything: Box = (0, 0, width, height)
    if gaze is None:
        return Crop(everything, None, "gaze is unknown", True)
    if gaze.confidence < LEAST_CONFIDENCE:
        return Crop(everything, None, f"gaze is too uncertain ({gaze.confidence:.2f})", True)
    if not (0 <= gaze.x < width and 0 <= gaze.y < height):
        return Crop(everything, None, "the gaze is outside the picture", True)
    error = max(gaze.error_deg * width / fov_deg, 1.0)
    thing, reason = looked_at(gaze.x, gaze.y, error, objects)
    half = max(LEAST_HALF * width, ERRORS_HELD * error)
    left, top, right, bottom = gaze.x - half, gaze.y - half, gaze.x + half, gaze.y + half
    if thing is not None:
        x, y, wide, high = thing.box
        rim = SNAP_MARGIN * max(wide, high)
        # The gaze stays inside: the thing may be the wrong one.
        left, right = min(x - rim, gaze.x - error), max(x + wide + rim, gaze.x + error)
        top, bottom = min(y - rim, gaze.y - error), max(y + high + rim, gaze.y + error)
        left, right = _at_least(left, right, LEAST_HALF * width)
        top, bottom = _at_least(top, bottom, LEAST_HALF * width)
    box = _inside(left, top, right, bottom, width, height)
    return Crop(box, thing, reason, box == everything)


def looked_at(
    x: float, y: float, error: float, objects: Sequence[DetectedObject]
) -> tuple[DetectedObject | None, str]:
    """The thing under a gaze at (`x`, `y`) with a median error of `error` pixels, or None; and why."""
    held = sorted(((held_by(thing.box, x, y, error), thing) for thing in objects), key=lambda pair: -pair[0])
    things = [(share, thing) for share, thing in held if thing.label not in SURFACES and share >= AT_LEAST]
    if not things:
        surface = next((thing for share, thing in held if share >= 0.5), None)
        if surface is not None:
            return surface, f"nothing but the {surface.label} is under the gaze"
        return None, "no known thing is under the gaze"
    clear = [pair for pair in things if pair[0] >= CLEARLY]
    share, best = min(clear, key=lambda pair: pair[1].box[2] * pair[1].box[3]) if clear else things[0]
    for other_share, other in things:
        if other is not best and other_share >= TOO_CLOSE * share and not holds_middle(other.box, best.box):
            return None, f"the gaze lies between a {best.label} and a {other.label}"
    return best, f"the {best.label} holds {100 * share:.0f} % of the gaze"


def held_by(box: Box, x: float, y: float, error: float) -> float:
    """Probability that a gaze told at (`x`, `y`) with median error `error` is inside `box`."""
    sigma = max(error, 1e-6) / _SIGMAS

    def between(low: float, high: float, at: float) -> float:
        return 0.5 * (erf((high - at) / (sigma * sqrt(2))) - erf((low - at) / (sigma * sqrt(2))))

    left, top, wide, high = box
    return between(left, left + wide, x) * between(top, top + high, y)


def holds_middle(box: Box, other: Box) -> bool:
    """Does the middle of ``other`` lie in ``box``: are both of the same place?"""
    x, y, wide, high = other
    return box[0] <= x + wide / 2 <= box[0] + box[2] and box[1] <= y + high / 2 <= box[1] + box[3]


def _at_least(low: float, high: float, half: float) -> tuple[float, float]:
    middle = (low + high) / 2
    return min(low, middle - half), max(high, middle + half)


def _inside(left: float, top: float, right: float, bottom: float, width: int, height: int) -> Box:
    """Shifted, not cut, where it reaches over the picture's edge; cut only where it is larger."""
    wide, high = min(round(right - left), width), min(round(bottom - top), height)
    x = min(max(round(left), 0), width - wide)
    y = min(max(round(top), 0), height - high)
    return x, y, wide, high
