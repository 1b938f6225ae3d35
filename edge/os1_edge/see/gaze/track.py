"""Eye frames in, gaze out: pupil, blink, map, smoothing, fixations, one frame after the other."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from os1_edge.config import GazeSettings
from os1_edge.events import Blink, Fixation, Gaze
from os1_edge.see.gaze.blink import BlinkWatch
from os1_edge.see.gaze.calibration import Calibration, CalibrationError
from os1_edge.see.gaze.drift import Drift, OutsideShare, judge_drift
from os1_edge.see.gaze.filter import OneEuro
from os1_edge.see.gaze.fixation import FixationFinder
from os1_edge.see.gaze.free import FreeStart
from os1_edge.see.gaze.pupil import Pupil, find_pupil
from os1_edge.see.gaze.scene_camera import SceneCamera
from os1_edge.see.gaze.slip import SlipWatch
from os1_edge.see.gaze.steady import SizeWatch

_TAP = 15
"""Frames that a tap looks back on: half a second at 30 a second."""
_NEAR_DEG = 5.0


@dataclass(frozen=True, slots=True)
class EyeSample:
    """What one eye frame told."""

    at_s: float
    pupil: Pupil | None
    """In pixels of that frame."""
    blink: bool
    """The eye is closed, or so far covered that its gaze cannot be told."""
    gaze: Gaze | None
    fixation: bool
    """The gaze rests."""
    events: tuple[Fixation | Blink, ...]
    """What ended with this frame."""
    drift: Drift | None


class GazeTracker:
    """Follows one eye. Not thread-safe; memory does not grow with the frames.

    With a ``calibration`` gaze is told on its scene picture; without one on the scene picture of the
    settings, from the wearer's own middle and with a large error.
    """

    def __init__(self, settings: GazeSettings, calibration: Calibration | None = None) -> None:
        self.settings = settings
        self.calibration = calibration
        self.scene = (
            calibration.scene
            if calibration
            else SceneCamera(settings.scene_width, settings.scene_height, settings.scene_fov_deg)
        )
        self._blinks = BlinkWatch()
        self._smooth = OneEuro(settings.smooth_hz, settings.smooth_beta)
        self._fixations = FixationFinder(settings.saccade_deg_s, settings.fixation_reach_deg)
        self._free: FreeStart | None = None
        self._slip = SlipWatch(*calibration.eyeball) if calibration and calibration.eyeball else None
        self._sizes = SizeWatch()
        self._outside = OutsideShare()
        self._last: Pupil | None = None
        self._size: tuple[int, int] | None = None
        self._recent: deque[Pupil | None] = deque(maxlen=_TAP)

    def step(self, frame: NDArray[np.uint8], at_s: float) -> EyeSample:
        """Takes one frame, grey or BGR uint8, taken at ``at_s`` seconds.

        Raises `CalibrationError` when the frame's shape is not the one that was calibrated with.
        """
        size = (frame.shape[1], frame.shape[0])
        self._scale(size)
        return self.follow(find_pupil(frame, self._last if size == self._size else None), size, at_s)

    def follow(self, pupil: Pupil | None, size: tuple[int, int], at_s: float) -> EyeSample:
        """`step` for a pupil that was found elsewhere, in a frame of ``size`` (width, height)."""
        scale = self._scale(size)
        if size != self._size:
            # Another camera, or another mode of it: pixels of the frames before mean nothing in these.
            self._sizes, self._free = SizeWatch(), None
        self._size = size
        if pupil is not None:
            pupil = self._sizes.step(pupil, self.settings.least_confidence)
        self._last = pupil if pupil and pupil.confidence >= self.settings.least_confidence else None
        events: list[Fixation | Blink] = []
        ended = self._blinks.step(at_s, pupil)
        if ended:
            events.append(ended)
        if self._blinks.closed or pupil is None or self._last is None:
            # Nothing to smooth over: the eye may look anywhere when it opens.
            self._smooth.reset()
            events += self._fixations.stop()
            self._recent.append(None)
            return EyeSample(at_s, pupil, self._blinks.closed, None, False, tuple(events), None)
        known = _scaled(pupil, scale)
        self._recent.append(known)
        right, down, error_deg, drift = self._look(known, size)
        events += self._fixations.step(at_s, right, down)
        x, y = self.scene.pixel(*self._smooth.step(at_s, (right, down)))
        gaze = Gaze(at_s, x, y, pupil.confidence * within(_NEAR_DEG, error_deg), error_deg)
        return EyeSample(at_s, pupil, False, gaze, self._fixations.current is not None, tuple(events), drift)

    def finish(self) -> tuple[Fixation, ...]:
        """Ends what goes on, at the end of the recording."""
        return tuple(self._fixations.stop())

    def recentre(self, x: float | None = None, y: float | None = None) -> Calibration:
        """One tap: the wearer looks at the scene pixel ``(x, y)``, by default the picture's middle, and has
        done so for the last frames. The corrected calibration is used from now on and returned, to be kept.

        Raises `CalibrationError` when there is no calibration, or no steady look.
        """
        if self.calibration is None:
            raise CalibrationError("there is no calibration to put right; run os1 calibrate first")
        slip = self._slip.shift if self._slip else (0.0, 0.0)
        self.calibration = self.calibration.recentred(
            [_moved(p, slip) if p else None for p in self._recent],
            self.scene.width / 2 if x is None else x,
            self.scene.height / 2 if y is None else y,
        )
        self._smooth.reset()
        return self.calibration

    def _look(self, pupil: Pupil, size: tuple[int, int]) -> tuple[float, float, float, Drift | None]:
        """Degrees right, degrees down, expected error, and whether the calibration still holds."""
        if self.calibration is None:
            if self._free is None:
                self._free = FreeStart(max(size), self.settings.eye_turn_deg, self.settings.eye_mirrored)
            return (*self._free.step(pupil), None)
        slip = (0.0, 0.0)
        if self._slip:
            self._slip.step(pupil)
            slip = self._slip.shift
        x, y = self.calibration.gaze(pupil, slip)
        outside = not (0 <= x < self.scene.width and 0 <= y < self.scene.height)
        eyeball = self.calibration.eyeball
        slip_deg = math.degrees(math.hypot(*slip) / eyeball[2]) if eyeball else 0.0
        # A third of a slip is what the correction was seen to leave (docs/gaze.md).
        error = math.hypot(max(self.calibration.quality.median_deg, 0.5), slip_deg / 3)
        drift = judge_drift(slip_deg, *self._outside.step(outside))
        return (*self.scene.direction(x, y), error, drift)

    def _scale(self, size: tuple[int, int]) -> float:
        """What a pixel of such a frame is in pixels of the calibration's eye frames."""
        if self.calibration is None:
            return 1.0
        wanted = (self.calibration.eye_width, self.calibration.eye_height)
        scale = wanted[0] / size[0]
        if abs(scale * size[1] - wanted[1]) > 0.02 * wanted[1]:
            raise CalibrationError(
                f"the calibration was made with eye frames of {wanted[0]}x{wanted[1]}, "
                f"not {size[0]}x{size[1]}; run os1 calibrate with this camera"
            )
        return scale


def within(near_deg: float, median_deg: float) -> float:
    """Probability that a gaze with this median error is off by at most ``near_deg`` (Rayleigh's
    distribution)."""
    ratio = near_deg / max(median_deg, 1e-6)
    return 1.0 - math.exp(-math.log(2) * ratio * ratio)


def _scaled(pupil: Pupil, scale: float) -> Pupil:
    if scale == 1.0:
        return pupil
    return Pupil(
        cx=(pupil.cx + 0.5) * scale - 0.5,
        cy=(pupil.cy + 0.5) * scale - 0.5,
        major=pupil.major * scale,
        minor=pupil.minor * scale,
        angle_deg=pupil.angle_deg,
        confidence=pupil.confidence,
    )


def _moved(pupil: Pupil, slip: tuple[float, float]) -> Pupil:
    return Pupil(
        pupil.cx - slip[0], pupil.cy - slip[1], pupil.major, pupil.minor, pupil.angle_deg, pupil.confidence
    )
