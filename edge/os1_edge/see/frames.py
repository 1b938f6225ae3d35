"""Which scene frames are taken, and which are kept: the decisions, with their reasons. Pure.

The OS-1 paper takes a frame every 10 s; the vision-dialogue paper found one every 5 s a good compromise while
people talk. A fixation, a change of the scene or a question takes one at once. What looks like the last frame
kept is dropped; a blurred, dark or blown-out one is taken again at once, a few times.
"""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.events import Image
from os1_edge.see.quality import Quality

Prompted = Literal["question", "fixation", "scene change"]

EVERY_S, IN_DIALOGUE_S = 10.0, 5.0
AT_ONCE_GAP_S: dict[Prompted, float] = {"question": 0.5, "fixation": 1.0, "scene change": 2.0}
"""Least time since the last frame for each: a restless eye or a moving bus is no film camera."""
RETAKES = 3
"""Times that a bad frame is taken again: exposure settles in about three frames (0.1 s each)."""
RETAKE_GAP_S = 0.1
SOFTER = 0.55
"""A frame with less than this share of the usual sharpness is blurred by motion: worth another."""
SAME_BITS = 12
"""Of the 63 bits of the hash. Photos of one view from a worn camera differ by up to 12, others by 18 on."""
SAME_LEVELS = 16.0
"""Mean grey levels between 16 x 16 thumbnails of equal brightness: up to 15 for one view."""
CHANGED_BITS = 24
"""From here it is another scene, not the same one a moment later."""


@dataclass(frozen=True, slots=True)
class FrameDecision:
    """Whether to do it, and why (not)."""

    yes: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Look:
    """What is left of a frame to compare the next one with: 8 bytes and a thumbnail, never the picture."""

    bits: int
    """63 bits: the low frequencies of the picture, above or below their median (pHash, Zauner 2010)."""
    thumbnail: NDArray[np.float32]
    """(16, 16) grey less its mean: the camera's exposure does not count."""


class FrameSchedule:
    """When the next frame is due. Time in seconds of one clock, handed in."""

    def __init__(self, every_s: float = EVERY_S, in_dialogue_s: float = IN_DIALOGUE_S) -> None:
        self._every_s = every_s
        self._in_dialogue_s = in_dialogue_s
        self.slower = 1.0
        """Factor on both, as the battery falls; infinite: only what is asked for."""
        self._last_s: float | None = None
        self._retakes = 0

    def due(self, now_s: float, in_dialogue: bool = False, prompted: Prompted | None = None) -> FrameDecision:
        """Is a frame to be taken at `now_s`?"""
        if self._last_s is None:
            return FrameDecision(True, "the first frame")
        since = now_s - self._last_s
        if self._retakes and since >= RETAKE_GAP_S:
            return FrameDecision(True, f"taken again ({self._retakes} of {RETAKES})")
        if prompted is not None and since >= AT_ONCE_GAP_S[prompted]:
            return FrameDecision(True, f"at once: {prompted}")
        period = self._period(in_dialogue)
        if since >= period:
            return FrameDecision(
                True, f"{period:g} s since the last" + (", in dialogue" if in_dialogue else "")
            )
        if prompted is not None:
            return FrameDecision(False, f"{prompted}, but a frame was taken {since:.1f} s ago")
        return FrameDecision(False, f"next in {period - since:.1f} s")

    def next_s(self, in_dialogue: bool = False, prompted: Prompted | None = None) -> float:
        """When `due` will say yes, if nothing else happens."""
        if self._last_s is None:
            return 0.0
        gap = self._period(in_dialogue)
        if prompted is not None:
            gap = min(gap, AT_ONCE_GAP_S[prompted])
        return self._last_s + (RETAKE_GAP_S if self._retakes else gap)

    def _period(self, in_dialogue: bool) -> float:
        return self.slower * (min(self._every_s, self._in_dialogue_s) if in_dialogue else self._every_s)

    def begun(self, at_s: float) -> None:
        """A frame exposed at `at_s` is being judged: until `taken` says more, it counts."""
        self._last_s = at_s if self._last_s is None else max(self._last_s, at_s)

    def taken(self, at_s: float, again: bool = False) -> None:
        """A frame was taken; `again` where `Keeper.judge` wants another in its place."""
        self.begun(at_s)
        self._retakes = self._retakes + 1 if again and self._retakes < RETAKES else 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What becomes of a frame."""

    keep: bool
    """It is new, and good enough to be described."""
    retake: bool
    """Take another at once: nothing can be told from this one, or a better one is likely."""
    reason: str
    changed: bool = False
    """It shows another scene than the last one kept: a reason for a frame at once."""


class Keeper:
    """Keeps what is new and good. Holds one `Look` and two numbers, whatever it has seen."""

    def __init__(self) -> None:
        self._last: Look | None = None
        self._last_soft = False
        self._sharpness: float | None = None
        self._bad = 0

    def judge(self, quality: Quality, look: Look) -> Kept:
        """Keep the frame of this quality and look, drop it, or take it again?

        One that is softer than usual is kept until a better one is there: it may be the only one.
        """
        again = self._bad < RETAKES
        if not quality.usable:
            self._bad = self._bad + 1 if again else 0
            return Kept(False, again, quality.reason)
        usual = self._sharpness
        soft = usual is not None and quality.sharpness < SOFTER * usual
        same = self._last is not None and same_view(self._last, look)
        if soft and again and not (same and not self._last_soft):
            self._bad += 1
            changed = self.changed(look)
            self._last, self._last_soft = look, True
            return Kept(
                not same, True, f"softer than usual ({quality.sharpness / (usual or 1):.2f} of it)", changed
            )
        self._bad = 0
        # Slowly towards what this place is like: rooms differ in how much there is to be sharp.
        self._sharpness = quality.sharpness if usual is None else 0.7 * usual + 0.3 * quality.sharpness
        better = self._last_soft and not soft
        if same and not better:
            return Kept(False, False, "as the last one kept")
        changed = self.changed(look)
        self._last, self._last_soft = look, False
        return Kept(True, False, "another scene" if changed else "sharper" if same else "new", changed)

    def changed(self, look: Look) -> bool:
        """Does it show another scene than the last frame kept?"""
        return self._last is not None and distance(self._last, look) >= CHANGED_BITS


def look_of(image: Image) -> Look:
    """The `Look` of `image` (uint8 BGR of any size)."""
    grey = cv2.resize(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), (32, 32), interpolation=cv2.INTER_AREA)
    waves = cv2.dct(grey.astype(np.float32))[:8, :8].ravel()[1:]
    bits = int("".join("1" if wave > 0 else "0" for wave in waves - np.median(waves)), 2)
    small = cv2.resize(grey, (16, 16), interpolation=cv2.INTER_AREA).astype(np.float32)
    return Look(bits, np.asarray(small - small.mean(), np.float32))


def distance(one: Look, other: Look) -> int:
    """Bits of the hashes that differ, 0..63."""
    return (one.bits ^ other.bits).bit_count()


def same_view(one: Look, other: Look) -> bool:
    """Are they nearly identical? Both must say so: the hash sees shapes alone."""
    levels = float(np.abs(one.thumbnail - other.thumbnail).mean())
    return distance(one, other) <= SAME_BITS and levels <= SAME_LEVELS


def turned(image: Image, clockwise_deg: Literal[0, 90, 180, 270]) -> Image:
    """`image` upright, for a camera that is mounted `clockwise_deg` turned (a property of the device)."""
    # A camera turned clockwise sees the world turned the other way; rot90 turns counter-clockwise.
    return np.ascontiguousarray(np.rot90(image, -clockwise_deg // 90))
