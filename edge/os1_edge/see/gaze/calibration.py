"""A calibration: fitted from looks at known targets, kept as a file, put right again by one tap."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from os1_edge.see.gaze import mapping
from os1_edge.see.gaze.ball import Ball
from os1_edge.see.gaze.pupil import Pupil
from os1_edge.see.gaze.rim import Floats, Mask
from os1_edge.see.gaze.scene_camera import SceneCamera
from os1_edge.see.gaze.slip import fit_eyeball

VERSION = 1
CONFIDENT = 0.6
"""Pupils below this confidence are not calibrated with."""
LEAST_TARGETS = 3
_LEAST_SPREAD_DEG = 8.0
"""Targets closer together than this, in either direction, say nothing about the rest of the picture."""
_GROSS_DEG = 6.0
"""A target further than this from a linear map through the others was not looked at: a linear map alone is
off by some two degrees at the edges."""
_STILL_SHARE = 0.08
"""A tap counts when the pupil stays within this share of its own diameter."""
_TAP_FRAMES = 5

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class CalibrationError(Exception):
    """A calibration that cannot be made, read or used; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Look:
    """One frame of a look at a target."""

    target: int
    """Which target; frames of one target belong together."""
    x: float
    """Where it is on the scene picture, in pixels."""
    y: float
    pupil: Pupil | None


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TargetResult(_Part):
    """What became of one target."""

    x: Finite
    y: Finite
    predicted_x: Finite
    """Where gaze was put when the map was fitted without this target."""
    predicted_y: Finite
    frames: int
    used: bool
    error_deg: Finite


class Quality(_Part):
    """How good the calibration is, by targets left out of the fit; never by the fit's own residuals."""

    median_deg: Finite
    worst_deg: Finite
    precision_deg: Finite
    """Root mean square of the frames' distances from their own target's mean."""
    frames_used: Annotated[float, Field(ge=0, le=1)]
    """Share of the frames that had a trustworthy pupil and a target that fitted."""
    targets: tuple[TargetResult, ...]


class PolynomialMap(_Part):
    """`mapping.Polynomial` as it is kept."""

    kind: Literal["polynomial"] = "polynomial"
    terms: Literal["linear", "bilinear", "quadratic", "cubic"]
    middle: tuple[Finite, Finite]
    scale: Positive
    weights: tuple[tuple[Finite, Finite], ...]

    @model_validator(mode="after")
    def _complete(self) -> PolynomialMap:
        wanted = len(mapping.TERMS[self.terms](np.zeros(1), np.zeros(1)))
        if len(self.weights) != wanted:
            raise ValueError(f"a {self.terms} map has {wanted} weights, not {len(self.weights)}")
        return self


class BallMap(_Part):
    """`ball.Ball` as it is kept."""

    kind: Literal["ball"] = "ball"
    middle: tuple[Finite, Finite]
    radius: Positive
    nearness: Annotated[float, Field(gt=-1, lt=1)]
    view: tuple[tuple[Finite, Finite, Finite], tuple[Finite, Finite, Finite], tuple[Finite, Finite, Finite]]


class Calibration(_Part):
    """From pupils to gaze on the scene picture, for one wearer and one seat of the glasses."""

    version: Literal[1] = 1
    kind: Literal["os1-gaze-calibration"] = "os1-gaze-calibration"
    eye_width: Annotated[int, Field(ge=1)]
    eye_height: Annotated[int, Field(ge=1)]
    scene_width: Annotated[int, Field(ge=1)]
    scene_height: Annotated[int, Field(ge=1)]
    scene_fov_deg: Annotated[float, Field(gt=0, lt=170)]
    map: PolynomialMap | BallMap = Field(discriminator="kind")
    eyeball: tuple[Finite, Finite, Positive] | None = None
    """Middle and turning radius of the eyeball in the eye picture, where the pupils' shapes told them."""
    shift: tuple[Finite, Finite] = (0.0, 0.0)
    """Pixels by which a tap moved the pupil's place; (0, 0) as calibrated."""
    quality: Quality

    @property
    def scene(self) -> SceneCamera:
        """The scene camera that gaze is told on."""
        return SceneCamera(self.scene_width, self.scene_height, self.scene_fov_deg)

    @property
    def mapped(self) -> mapping.Map:
        """The fitted map, without `shift`."""
        kept = self.map
        if isinstance(kept, BallMap):
            return Ball(kept.middle, kept.radius, kept.nearness, kept.view)
        return mapping.Polynomial(kept.terms, kept.middle, kept.scale, kept.weights)

    def gaze(self, pupil: Pupil, slip: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float]:
        """Scene pixel that the wearer looks at; ``slip`` is how far the eyeball has moved in the eye
        picture."""
        at = np.asarray([[pupil.cx - self.shift[0] - slip[0], pupil.cy - self.shift[1] - slip[1]]])
        x, y = self.mapped(at)[0]
        return float(x), float(y)

    def recentred(self, pupils: Sequence[Pupil | None], x: float, y: float) -> Calibration:
        """The calibration put right by one look at the scene pixel ``(x, y)``: the newest frames of that
        look.

        The pupil's place is shifted, not the gaze: slipped glasses move the pupil.
        Raises `CalibrationError` when no steady pupil was seen.
        """
        seen = [p for p in pupils if p is not None and p.confidence >= CONFIDENT]
        if len(seen) < _TAP_FRAMES:
            raise CalibrationError(
                f"the pupil was seen in {len(seen)} frames, {_TAP_FRAMES} are needed; "
                "look at the point and tap again"
            )
        at = np.asarray([(p.cx, p.cy) for p in seen])
        middle = np.median(at, axis=0)
        if np.median(np.hypot(*(at - middle).T)) > _STILL_SHARE * np.median([p.major for p in seen]):
            raise CalibrationError("the eye moved; look at the point until the tap is over, and tap again")
        near = (float(middle[0]) - self.shift[0], float(middle[1]) - self.shift[1])
        wanted = mapping.pupil_for(self.mapped, (x, y), near)
        if wanted is None:
            raise CalibrationError("that point is too far from the calibrated ones; choose a nearer one")
        shift = (float(middle[0] - wanted[0]), float(middle[1] - wanted[1]))
        return self.model_copy(update={"shift": shift})


def calibrate(looks: Sequence[Look], eye_size: tuple[int, int], scene: SceneCamera) -> Calibration:
    """Fits a calibration to looks at targets; ``eye_size`` is (width, height) of the eye frames.

    Works for five points as for many natural targets: frames of a target are brought to their median,
    targets that do not fit the others are left out and told of. Raises `CalibrationError` when too little
    is left.
    """
    rows = _per_target(looks)
    if len(rows) < LEAST_TARGETS:
        raise CalibrationError(
            f"{len(rows)} targets were looked at with the pupil in view, at least {LEAST_TARGETS} "
            "are needed; five are better"
        )
    pupils = np.asarray([row[0] for row in rows])
    targets = np.asarray([row[1] for row in rows])
    weight = np.sqrt(np.minimum([row[2] for row in rows], 10))
    gross_px = scene.focal_px * np.tan(np.radians(_GROSS_DEG))
    agreed = mapping.consistent(pupils, targets, weight, float(gross_px))
    _demand_spread(targets[agreed], scene)
    seen = [look.pupil for look in looks if look.pupil and look.pupil.confidence >= CONFIDENT]
    eyeball = fit_eyeball(seen)
    best, left_out = mapping.choose(pupils[agreed], targets[agreed], weight[agreed], eyeball, scene)
    predicted = best(pupils)
    predicted[agreed] = left_out
    return Calibration(
        eye_width=eye_size[0],
        eye_height=eye_size[1],
        scene_width=scene.width,
        scene_height=scene.height,
        scene_fov_deg=scene.fov_deg,
        map=_kept(best),
        eyeball=eyeball,
        quality=_quality(looks, rows, agreed, predicted, best, scene),
    )


def _kept(best: mapping.Map) -> PolynomialMap | BallMap:
    values = {name: getattr(best, name) for name in best.__slots__}
    return BallMap(**values) if isinstance(best, Ball) else PolynomialMap(**values)


_Row = tuple[tuple[float, float], tuple[float, float], int, int]


def _per_target(looks: Sequence[Look]) -> list[_Row]:
    """(median pupil, target, frames, number of the target) of each target that was seen looked at."""
    grouped: dict[int, list[Look]] = {}
    for look in looks:
        if look.pupil and look.pupil.confidence >= CONFIDENT:
            grouped.setdefault(look.target, []).append(look)
    rows: list[_Row] = []
    for number, group in grouped.items():
        table = np.median([(k.pupil.cx, k.pupil.cy, k.x, k.y) for k in group if k.pupil], axis=0)
        at, target = (float(table[0]), float(table[1])), (float(table[2]), float(table[3]))
        rows.append((at, target, len(group), number))
    return rows


def _demand_spread(targets: Floats, scene: SceneCamera) -> None:
    directions = np.asarray([scene.direction(x, y) for x, y in targets]).reshape(-1, 2)
    if len(targets) < LEAST_TARGETS:
        raise CalibrationError("the targets contradict each other; look at each one until it is done")
    spread = np.ptp(directions, axis=0)
    if spread.min() < _LEAST_SPREAD_DEG:
        raise CalibrationError(
            f"the targets span {spread[0]:.0f} by {spread[1]:.0f} degrees, at least "
            f"{_LEAST_SPREAD_DEG:.0f} are needed both ways; spread them over the picture"
        )


def _quality(
    looks: Sequence[Look],
    rows: list[_Row],
    agreed: Mask,
    predicted: Floats,
    best: mapping.Map,
    scene: SceneCamera,
) -> Quality:
    targets = np.asarray([row[1] for row in rows])
    errors = scene.angles_between(predicted, targets)
    good = {row[3] for row, fits in zip(rows, agreed, strict=True) if fits}
    used = [k for k in looks if k.target in good and k.pupil and k.pupil.confidence >= CONFIDENT]
    at = best(np.asarray([(k.pupil.cx, k.pupil.cy) for k in used if k.pupil]))
    numbers = np.asarray([k.target for k in used])
    own = np.empty_like(at)
    for number in good:
        own[numbers == number] = at[numbers == number].mean(0)
    return Quality(
        median_deg=float(np.median(errors[agreed])),
        worst_deg=float(errors[agreed].max()),
        precision_deg=float(np.sqrt((scene.angles_between(at, own) ** 2).mean())),
        frames_used=len(used) / len(looks),
        targets=tuple(
            TargetResult(
                x=row[1][0],
                y=row[1][1],
                predicted_x=float(place[0]),
                predicted_y=float(place[1]),
                frames=row[2],
                used=bool(fits),
                error_deg=float(error),
            )
            for row, place, fits, error in zip(rows, predicted, agreed, errors, strict=True)
        ),
    )


def save(calibration: Calibration, path: Path) -> None:
    """Writes the calibration as JSON; a file that was there is replaced whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(calibration.model_dump_json(indent=1) + "\n", "utf-8")
    part.replace(path)


def load(path: Path) -> Calibration:
    """Reads a calibration. Raises `CalibrationError` with the reason for a file that is none."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise CalibrationError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        raise CalibrationError(f"{path}: not a calibration file; run os1 calibrate again") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise CalibrationError(f"{path}: damaged: not JSON; run os1 calibrate again") from None
    if not isinstance(data, dict) or data.get("kind") != "os1-gaze-calibration":
        raise CalibrationError(f"{path}: not a calibration file; run os1 calibrate to make one")
    if data.get("version") != VERSION:
        found = data.get("version")
        raise CalibrationError(f"{path}: version {found!r}, not {VERSION}; run os1 calibrate again")
    try:
        return Calibration.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise CalibrationError(
            f"{path}: damaged: {where}: {first['msg'].removeprefix('Value error, ')}; run os1 calibrate again"
        ) from None
