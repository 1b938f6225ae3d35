"""Can anything be said of a picture? Tells covered, black, blown out, blank and blurred ones apart.

The variance of the Laplacian alone does not tell: sensor noise makes a black frame look sharp, and a sharp
strip beside a finger saves a frame that is three quarters finger. What is measured here is scaled by the
picture's own contrast, so that a dim room is not taken for a covered lens. The thresholds stand in the gap
between the labelled glasses photos (OpenGlass) and the same photos blurred, smeared, darkened and blown out
by hand (see `bench/scene.py`).
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.events import Image

Floats = NDArray[np.float32]

MEASURED_SIDE = 320
"""Longer side, in pixels, of the picture that is measured: sensor noise is averaged away, edges are not."""
BLOCK = 16
"""Side of the blocks that count as smooth or not."""
DARK_GREY, DIM_GREY = 25.0, 55.0
"""Mean grey (0..255) below which a picture is dark, or dim."""
LEAST_CONTRAST = 12.0
"""Grey levels between the darkest and the brightest parts; below it there is nothing to see."""
BLOWN_OUT = 0.6
"""Share of white pixels from which the rest tells nothing."""
LEAST_CRISPNESS = 0.075
"""Strong gradients over contrast, per pixel. Usable glasses photos: 0.085 at least; wobbled: 0.064; covered
with sensor noise: at most 0.074."""
WIDEST_EDGE = 6.0
"""Pixels over which a strong edge rises. Usable photos: at most 5.6; defocused by 5 pixels: at least 6.5."""
LEAST_RELIEF = 3.6
"""Strong gradients over the median one, in dim light. Sensor noise alone: 2.4; fingers over the lens with
noise: at most 3.4; photos darkened to an eighth with noise added: 3.7 at least, but for a lawn."""
SMOOTH_GRADIENT = 2.0
"""Grey levels a pixel; a block whose strong gradients stay below it is smooth."""
COVERED_SHARE = 0.6
"""Share of smooth blocks. Usable photos: at most 0.46 (a night sky); half covered by a finger: 0.74."""
COVERED_SHADING = 60.0
"""Grey levels by which the smooth blocks differ among themselves: skin before the lens is shaded from the
light's side to the dark; a wall of one colour is not."""
WHITE, BLACK = 250.0, 8.0


@dataclass(frozen=True, slots=True)
class Measures:
    """What `judge` rests on."""

    mean: float
    """Mean grey, 0..255."""
    contrast: float
    """Grey levels between the 1st and the 99th percentile of a thumbnail."""
    crispness: float
    """98th percentile of the gradient over the contrast, per pixel of the measured picture."""
    relief: float
    """98th percentile of the gradient over its median."""
    edge_width: float
    """Median over the strong edges of local contrast over gradient, in pixels."""
    smooth: float
    """Share of smooth blocks, 0..1."""
    shading: float
    """Grey levels between the darkest and the brightest tenth of the smooth blocks."""
    white: float
    """Share of white pixels."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Whether a picture may be described, and why (not)."""

    usable: bool
    reason: str
    """One clause, also where it is usable."""
    light: str
    """One of "bright", "dim" and "dark"."""
    sharpness: float
    """Crispness over edge width: compares frames of one camera, higher is sharper; 0 where unusable."""


def judge_picture(image: Image) -> Quality:
    """Measures and judges `image` (uint8 BGR, height x width x 3). About 6 ms on one x86 core."""
    return judge(measure(image))


def measure(image: Image) -> Measures:
    """The measures of `image` (uint8 BGR of any size)."""
    grey = _measured_grey(image)
    right, down = cv2.Sobel(grey, cv2.CV_32F, 1, 0) / 8, cv2.Sobel(grey, cv2.CV_32F, 0, 1) / 8
    slope = np.asarray(cv2.magnitude(right, down), np.float32)
    # The thumbnail's percentiles: a single hot pixel or the noise of a dark frame is no contrast.
    thumbnail = cv2.resize(grey, (64, 64), interpolation=cv2.INTER_AREA)
    low, high = np.percentile(thumbnail, (1, 99))
    usual, strong = (float(value) for value in np.percentile(slope, (50, 98)))
    smooth, shading = _smooth_blocks(grey, slope)
    return Measures(
        mean=float(thumbnail.mean()),
        contrast=float(high - low),
        crispness=strong / float(high - low) if high - low > 1e-3 else 0.0,
        relief=strong / usual if usual > 1e-3 else 0.0,
        edge_width=_edge_width(grey, slope, strong),
        smooth=smooth,
        shading=shading,
        white=float((grey > WHITE).mean()),
    )


def judge(seen: Measures) -> Quality:
    """The judgement of a picture with these measures."""
    light = "dark" if seen.mean < DARK_GREY else "dim" if seen.mean < DIM_GREY else "bright"
    trouble = _trouble(seen, light)
    if trouble:
        return Quality(False, trouble, light, 0.0)
    return Quality(True, "sharp and lit enough", light, seen.crispness / max(seen.edge_width, 1.0))


def _trouble(seen: Measures, light: str) -> str:
    if seen.white >= BLOWN_OUT:
        return f"over-exposed: {100 * seen.white:.0f} % of the picture is white"
    if seen.contrast < LEAST_CONTRAST:
        if light == "dark":
            return "the picture is black or nearly so: the lens is covered or it is dark"
        return "the picture has no detail: the lens is covered, or it sees a blank or blurred surface"
    if light != "bright" and 0 < seen.relief < LEAST_RELIEF:
        return "nothing but noise: the lens is covered or it is dark"
    blurred = seen.crispness < LEAST_CRISPNESS or seen.edge_width > WIDEST_EDGE
    if blurred and seen.smooth >= COVERED_SHARE:
        covered = (
            "the lens is covered or smeared" if light == "bright" else "the lens is covered or it is dark"
        )
        return f"no sharp edge anywhere: {covered}"
    if blurred:
        return "blurred: the lens is smeared or moved, or nothing is in focus"
    if seen.smooth >= COVERED_SHARE and seen.shading >= COVERED_SHADING:
        return f"{100 * seen.smooth:.0f} % of the lens is covered"
    return ""


def _measured_grey(image: Image) -> Floats:
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    height, width = grey.shape
    scale = MEASURED_SIDE / max(height, width)
    size = max(BLOCK, round(width * scale)), max(BLOCK, round(height * scale))
    small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    return np.asarray(cv2.GaussianBlur(small.astype(np.float32), (0, 0), 0.8), np.float32)


def _edge_width(grey: Floats, slope: Floats, strong: float) -> float:
    """Local contrast over gradient at the strongest fiftieth of the pixels: how far an edge takes to rise."""
    if strong < 1e-3:
        return 0.0
    near = np.ones((13, 13), np.uint8)
    contrast = cv2.dilate(grey, near) - cv2.erode(grey, near)
    edges = slope >= strong
    return float(np.median(contrast[edges] / np.maximum(slope[edges], 0.1)))


def _smooth_blocks(grey: Floats, slope: Floats) -> tuple[float, float]:
    """(share of smooth blocks, grey levels by which they differ)."""
    rows, columns = grey.shape[0] // BLOCK, grey.shape[1] // BLOCK

    def blocks(values: Floats) -> Floats:
        cut = values[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK)
        return cut.transpose(0, 2, 1, 3).reshape(rows * columns, BLOCK * BLOCK)

    # The 12th strongest of 256 gradients, the 95th percentile: a hair or a dead pixel does not count.
    steep = np.partition(blocks(slope), -13, axis=1)[:, -13]
    smooth = steep < SMOOTH_GRADIENT
    if not smooth.any():
        return 0.0, 0.0
    low, high = np.percentile(blocks(grey)[smooth].mean(axis=1), (10, 90))
    return float(smooth.mean()), float(high - low)
