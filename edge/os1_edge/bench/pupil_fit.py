"""The weights of a pupil's confidence, fitted and cross-validated: how those in `see.gaze.judge` were made.

    python -m os1_edge.bench.pupil_fit --shared-data DIR

Every labelled picture of ``eye/mrgaze`` is taken as it is and three times distorted; crops without a pupil
and distorted closed eyes are further counter-examples. The candidates that the detector makes are labelled by
the picture's own ellipse, and a ridge logistic regression tells them apart. Recordings, not pictures, are
dealt into seven parts: pictures of one eye are alike.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.see.gaze import judge, pupil

Grey = NDArray[np.uint8]
Floats = NDArray[np.float64]
Label = tuple[float, float, float] | None
"""Middle and mean radius of the pupil, in pixels; ``None`` where there is none."""

_PARTS = 7
_RIDGE = 2.0
_CONFIDENT = 0.6


@dataclass(frozen=True, slots=True)
class Example:
    """One picture, its recording and how it came about: ``as is``, ``distorted`` or ``crop``."""

    grey: Grey
    label: Label
    recording: str
    kind: str


def examples(folder: Path, seed: int = 1) -> Iterator[Example]:
    """The labelled pictures and what is made of them."""
    rng = np.random.default_rng(seed)
    with (folder / "pupil_ellipses.csv").open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["status"] in ("ok", "partial", "absent")]
    for row in rows:
        read = cv2.imread(str(folder / row["file"]), cv2.IMREAD_GRAYSCALE)
        if read is None:
            continue
        grey, recording = np.asarray(read, np.uint8), Path(row["file"]).name.split("_Cal")[0]
        label: Label = None
        if row["status"] != "absent":
            radius = float(np.sqrt(float(row["minor_px"]) * float(row["major_px"]))) / 2
            label = (float(row["cx"]), float(row["cy"]), radius)
        yield Example(grey, label, recording, "as is")
        for _ in range(3 if label else 8):
            yield Example(*distorted(grey, label, rng), recording, "distorted")
        for _ in range(1 if label else 3):
            crop = without_pupil(grey, label, rng)
            if crop is not None:
                yield Example(crop, None, recording, "crop")


def distorted(grey: Grey, label: Label, rng: np.random.Generator) -> tuple[Grey, Label]:
    """``grey`` turned, squeezed, scaled, moved, darkened, blurred and made noisy at random."""
    height, width = grey.shape
    quarter = 90 * int(rng.integers(0, 4)) if rng.random() < 0.4 else 0
    affine = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-20, 20) + quarter, 1)
    squeeze, along = (rng.uniform(0.6, 1.0) if rng.random() < 0.6 else 1.0), rng.uniform(0, np.pi)
    axes = np.asarray([[np.cos(along), -np.sin(along)], [np.sin(along), np.cos(along)]])
    side = int(rng.choice([192, 240, 320, 400, 640]))
    size = (side, int(side * rng.choice([1, 0.75, 0.75, 0.67])))
    scale = float(np.exp(rng.uniform(np.log(0.8), np.log(1.5)))) * side / max(width, height)
    matrix = scale * axes @ np.diag([1 / np.sqrt(squeeze), np.sqrt(squeeze)]) @ axes.T @ affine
    middle = label[:2] if label else (width / 2, height / 2)
    place = rng.uniform(0.3, 0.7, 2) * size
    matrix[:, 2] += place - matrix @ np.asarray([*middle, 1.0])
    source = cv2.GaussianBlur(grey, (0, 0), 0.4 / scale) if scale < 0.5 else grey
    moved = cv2.warpAffine(source, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    light = (np.asarray(moved, float) / 255) ** np.exp(rng.uniform(-0.7, 0.7))
    light = light * rng.uniform(0.4, 1.1) + rng.uniform(0, 0.08)
    if rng.random() < 0.4:
        light = np.asarray(cv2.GaussianBlur(light, (0, 0), rng.uniform(0.5, 1.6) * side / 320), float)
    light = light + rng.normal(0, rng.choice([0, 0.01, 0.025]), light.shape)
    out = np.asarray(np.clip(light, 0, 1) * 255, np.uint8)
    return out, ((float(place[0]), float(place[1]), label[2] * scale) if label else None)


def without_pupil(grey: Grey, label: Label, rng: np.random.Generator) -> Grey | None:
    """A part of ``grey`` that the pupil does not reach into, 320x240, or ``None``."""
    height, width = grey.shape
    for _ in range(30):
        w = int(width * rng.uniform(0.35, 0.6))
        h = int(0.75 * w)
        if h >= height:
            continue
        x, y = int(rng.integers(0, width - w + 1)), int(rng.integers(0, height - h + 1))
        if label:
            px, py, reach = label[0], label[1], 1.05 * label[2]
            if x - reach < px < x + w + reach and y - reach < py < y + h + reach:
                continue
        return np.asarray(cv2.resize(grey[y : y + h, x : x + w], (320, 240)), np.uint8)
    return None


def candidates(example: Example) -> tuple[Floats, NDArray[np.int_]]:
    """Evidence (K, 9) of the detector's candidates; and 1 for a right, 0 for a wrong one, -1 for neither."""
    found = pupil.candidates(example.grey)
    if found is None:
        return np.zeros((0, len(judge.EVIDENCE))), np.zeros(0, int)
    smooth, ellipses, scale = found
    evidence = np.asarray(judge.evidence(smooth, ellipses), float)
    if example.label is None:
        return evidence, np.zeros(len(ellipses), int)
    x, y, radius = example.label
    middles = (ellipses[:, :2] + 0.5) * scale - 0.5
    away = np.hypot(middles[:, 0] - x, middles[:, 1] - y) * 192 / example.grey.shape[1]
    size = np.sqrt(ellipses[:, 2] * ellipses[:, 3]) * scale / radius
    right = (away <= 5) & (size > 0.8) & (size < 1.25)
    return evidence, np.where(right, 1, np.where(away <= 5, -1, 0))


def fit(evidence: Floats, right: NDArray[np.int_]) -> tuple[Floats, float]:
    """Weights and bias of a logistic regression with ridge on standardised columns, by Newton's method."""
    mean, spread = evidence.mean(0), evidence.std(0) + 1e-6
    columns = np.column_stack([(evidence - mean) / spread, np.ones(len(evidence))])
    weights, ridge = np.zeros(columns.shape[1]), _RIDGE * np.eye(columns.shape[1])
    slope = np.append(np.ones(evidence.shape[1]), 0.0)
    for _ in range(60):
        p = 1 / (1 + np.exp(-columns @ weights))
        curve = (columns * (p * (1 - p))[:, None]).T @ columns + ridge
        weights += np.linalg.solve(curve, columns.T @ (right - p) - _RIDGE * weights * slope)
    scaled = weights[:-1] / spread
    return scaled, float(weights[-1] - scaled @ mean)


def cross_validated(made: list[tuple[Example, Floats, NDArray[np.int_]]]) -> dict[str, dict[str, Any]]:
    """How the pictures fare when their recording was not fitted to, by kind."""
    parts = {name: i % _PARTS for i, name in enumerate(sorted({e.recording for e, _, _ in made}))}
    told: dict[str, dict[str, Any]] = {}
    for part in range(_PARTS):
        kept = [(x, y) for e, x, y in made if parts[e.recording] != part]
        evidence, right = np.vstack([x for x, _ in kept]), np.concatenate([y for _, y in kept])
        weights, bias = fit(evidence[right >= 0], right[right >= 0])
        for example, x, y in made:
            if parts[example.recording] != part:
                continue
            counts = {"pupils": 0, "found": 0, "confident_misses": 0, "none": 0, "false": 0}
            row = told.setdefault(example.kind, counts)
            score = 1 / (1 + np.exp(-(x @ weights + bias))) if len(x) else np.zeros(1)
            best, sure = int(score.argmax()), bool(score.max() >= _CONFIDENT)
            near = len(y) > 0 and y[best] != 0
            if example.label:
                row["pupils"] += 1
                row["found"] += bool(near)
                row["confident_misses"] += sure and not near
            else:
                row["none"] += 1
                row["false"] += sure
    return told


@click.command()
@click.option("--shared-data", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True)
def pupil_fit(shared_data: Path) -> None:
    """Fit the confidence of pupils again, and cross-validate it."""
    made = [(e, *candidates(e)) for e in examples(shared_data / "eye" / "mrgaze")]
    for kind, row in cross_validated(made).items():
        click.echo(f"{kind}: " + ", ".join(f"{name} {count}" for name, count in row.items()))
    evidence, right = np.vstack([x for _, x, _ in made]), np.concatenate([y for _, _, y in made])
    weights, bias = fit(evidence[right >= 0], right[right >= 0])
    for name, weight in zip(judge.EVIDENCE, weights, strict=True):
        click.echo(f"{name}: {weight:.3f}")
    click.echo(f"bias: {bias:.3f}")


if __name__ == "__main__":
    pupil_fit()
