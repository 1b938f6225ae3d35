"""The scene camera: usable or not, the main thing, faces taken out, milliseconds and memory.

    os1 bench scene [--shared-data DIR] [--every K] [--frames N] [--threads N] [--json]

- *quality*: the labelled glasses photos (``scene/openglass``) judged as labelled; and what the same usable
  photos are judged to be once they are blurred, smeared, darkened or blown out.
- *main thing*: photos whose labelled content is among what the detector knows; right where it is named, wrong
  where another thing is named with a higher score.
- *faces*: pictures with a face; where one is found again after the blur, by the same network at another size.
- *milliseconds* of one thread's own time (the networks': wall time), median and 95th percentile.
- *memory*: growth of the process over N frames through take, blur and JPEG, after a tenth of them.

Without the labelled photos only the times are measured, on the frames of the bundled session.
"""

from __future__ import annotations

import csv
import json
import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import click
import cv2
import numpy as np
from numpy.typing import NDArray

import os1_models
from os1_edge.config import See
from os1_edge.events import Image
from os1_edge.see.camera import FrameTaker
from os1_edge.see.faces import LONG_SIDE, SURE, FaceFinder, FaceStays, blur_faces, shrink
from os1_edge.see.frames import look_of
from os1_edge.see.image import load_image
from os1_edge.see.indicator import Ask, Indicator
from os1_edge.see.jpeg import JpegEncoder
from os1_edge.see.objects import ObjectDetector
from os1_edge.see.quality import judge_picture
from os1_edge.see.scene import SceneDescriber
from os1_edge.see.text import TextReader

MAIN_THING = {
    "astronaut.png": {"person"},
    "camera.png": {"person", "camera"},
    "chelsea.png": {"cat"},
    "coffee.png": {"coffee cup", "mug"},
    "page.png": {"book", ""},
}
"""What the captions of ``scene/scikit-image`` name, as the detector would say it; "" where it need not."""
PEOPLE = ("man at a table", "face of a man", "hall with arch, board and people")
"""How the labels of ``scene/openglass`` begin where a person is the main thing."""


class Lamp:
    """A capture light in memory."""

    on = False

    def set(self, on: bool) -> None:
        self.on = on

    def is_on(self) -> bool:
        return self.on


def openglass(folder: Path, every: int) -> Iterator[tuple[dict[str, str], Image]]:
    """Every ``every``-th labelled photo."""
    with (folder / "openglass" / "content.csv").open(encoding="utf-8", newline="") as lines:
        for row in list(csv.DictReader(lines))[::every]:
            yield row, load_image(folder / "openglass" / row["file"])


def _noise(image: Image, gain: float, level: float) -> Image:
    random = np.random.default_rng(0)
    return np.clip(image * gain + random.normal(0, level, image.shape), 0, 255).astype(np.uint8)


def _moved(image: Image, length: int) -> Image:
    kernel = np.zeros((length, length), np.float32)
    kernel[length // 2] = 1 / length
    return np.asarray(cv2.filter2D(image, -1, kernel), np.uint8)


def _blurred(image: Image, sigma: float, share: float = 1.0) -> Image:
    soft = cv2.GaussianBlur(image, (0, 0), sigma)
    return np.asarray(cv2.addWeighted(soft, share, image, 1 - share, 0), np.uint8)


SPOILT: dict[str, Callable[[Image], Image]] = {
    "as it is": lambda image: image,
    "a quarter of the light": lambda image: _noise(image, 0.25, 0),
    "an eighth, with noise": lambda image: _noise(image, 0.12, 4),
    "defocus 3 px": lambda image: _blurred(image, 3),
    "defocus 5 px": lambda image: _blurred(image, 5),
    "motion 21 px": lambda image: _moved(image, 21),
    "motion 41 px": lambda image: _moved(image, 41),
    "smeared": lambda image: _blurred(image, 8, 0.85),
    "blown out": lambda image: np.clip(image * 3.0 + 60, 0, 255).astype(np.uint8),
}


def measure_quality(photos: list[tuple[dict[str, str], Image]]) -> dict[str, Any]:
    """Agreement with the labels, and the share refused of usable photos that were spoilt."""
    wrong = [row["file"] for row, image in photos if judge_picture(image).usable != (row["usable"] == "1")]
    usable = [shrink(image, LONG_SIDE) for row, image in photos if row["usable"] == "1"]
    refused = {
        name: round(float(np.mean([not judge_picture(spoil(image)).usable for image in usable])), 3)
        for name, spoil in SPOILT.items()
    }
    return {"photos": len(photos), "wrongly_judged": wrong, "refused": refused}


def measure_main_thing(
    folder: Path, photos: list[tuple[dict[str, str], Image]], eyes: SceneDescriber
) -> dict[str, Any]:
    """Share of the photos with the main thing named, and with a wrong one named first."""
    wanted = [(row["file"], {"person"}, image) for row, image in photos if row["content"].startswith(PEOPLE)]
    others = [(row["file"], {""}, image) for row, image in photos if not row["content"].startswith(PEOPLE)]
    for name, labels in MAIN_THING.items():
        picture = load_image(folder / "scikit-image" / name)
        (others if "" in labels else wanted).append((name, labels, picture))
    right, wrong, missed = 0, [], []
    for name, labels, image in wanted:
        named = [thing.label for thing in eyes.look(image).objects]
        right += bool(set(named) & labels)
        if not set(named) & labels:
            missed.append(name)
        if named and named[0] not in labels:
            wrong.append(name)
    # People stand about in the hall without being its content: only things count as wrong there.
    for name, labels, image in others:
        if any(thing.label not in labels | {"person"} for thing in eyes.look(image).objects):
            wrong.append(name)
    shown = len(wanted)
    return {
        "photos": shown,
        "right": round(right / max(shown, 1), 3),
        "missed": missed,
        "wrong": round(len(wrong) / max(shown + len(others), 1), 3),
        "wrongly_named": wrong,
    }


def measure_faces(pictures: list[tuple[str, Image]], finder: FaceFinder) -> dict[str, Any]:
    """Faces taken out, and what is found again: at the same size and at another."""
    shown = again = kept_back = 0
    for _, image in pictures:
        faces = finder.find(image)
        if not faces:
            continue
        shown += len(faces)
        try:
            clean = blur_faces(image, finder).image
        except FaceStays:
            kept_back += 1
            continue
        # The longer side pads to another size: every face lies on other cells, at another scale.
        high, wide = clean.shape[:2]
        framed = cv2.copyMakeBorder(clean, high // 8, high // 8, wide // 8, wide // 8, cv2.BORDER_CONSTANT)
        again += len(finder.find(clean)) + len(finder.find(np.asarray(framed, np.uint8), SURE))
    gone = round(1 - again / max(shown, 1), 4)
    return {"faces": shown, "gone": gone, "found_again": again, "kept_back": kept_back}


def _times(work: Callable[[Image], object], images: list[Image], clock: Callable[[], float]) -> list[float]:
    taken = []
    for image in images:
        begun = clock()
        work(image)
        taken.append(1000 * (clock() - begun))
    return [round(float(value), 2) for value in np.percentile(taken, (50, 95))]


def measure_times(
    photos: list[Image], detector: ObjectDetector, finder: FaceFinder, reader: TextReader
) -> dict[str, Any]:
    """[median, 95th percentile] in milliseconds at 640 x 480."""
    frames = [np.asarray(cv2.resize(image, (640, 480)), np.uint8) for image in photos]
    encoder = JpegEncoder()
    jpeg = {
        f"jpeg to {budget} bytes": _times(partial(encoder.encode, budget=budget), frames, thread_time)
        for budget in (60_000, 30_000, 15_000, 8_000)
    }
    return {
        **jpeg,
        "hash": _times(look_of, frames, thread_time),
        "quality": _times(judge_picture, frames, thread_time),
        "objects (wall)": _times(detector.detect, frames[:20], perf_counter),
        "faces taken out (wall)": _times(partial(_without_faces, finder), frames[:8], perf_counter),
        "words, 224 px crop (wall)": _times(
            lambda f: reader.read(f[128:352, 208:432]), frames[:8], perf_counter
        ),
    }


def _without_faces(finder: FaceFinder, frame: Image) -> None:
    with suppress(FaceStays):
        blur_faces(frame, finder)


def measure_memory(photos: list[Image], frames: int, finder: FaceFinder | None) -> dict[str, Any]:
    """Megabytes of resident memory at its peak, after a tenth of the frames and after all."""
    indicator = Indicator(Lamp())
    indicator.ask(Ask.START)
    taker = FrameTaker(See(blur_faces=finder is not None), indicator, finder)
    small = [np.asarray(cv2.resize(image, (640, 480)), np.uint8) for image in photos]
    first = 0
    for number in range(frames):
        taken = taker.take(small[number % len(small)], number * 10.0)
        if taken.image is not None:
            taker.release(taken.image, 20_000 + 1_000 * (number % 30))
        if number == frames // 10:
            first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    last = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"frames": frames, "mb_after_a_tenth": first // 1024, "mb_after_all": last // 1024}


def measure(folder: Path | None, every: int = 1, frames: int = 10_000, threads: int = 2) -> dict[str, Any]:
    """All of it; of a ``folder`` of labelled photos, or without one the times alone.

    Raises:
        os1_models.ModelMissing: a network has not been pulled.
    """
    cv2.setNumThreads(threads)
    labels = os1_models.path("objects-ssd", "labels.txt")
    detector = ObjectDetector(os1_models.path("objects-ssd"), labels, threads)
    finder = FaceFinder(os1_models.path("centerface"))
    reader = TextReader(os1_models.path("ppocr", "PP-OCRv6_det_small.onnx"), os1_models.path("ppocr"))
    if folder is None:
        demo = Path(str(files("os1_edge") / "demo" / "morning"))
        bundled = [load_image(path) for path in sorted(demo.rglob("*.jpg"))]
        return {"ms": measure_times(bundled, detector, finder, reader)}
    photos = list(openglass(folder, every))
    images: list[NDArray[np.uint8]] = [image for _, image in photos]
    found: dict[str, Any] = {"memory": measure_memory(images[:8], frames, None)} if frames else {}
    found["quality"] = measure_quality(photos)
    found["main thing"] = measure_main_thing(folder, photos, SceneDescriber(detector, finder))
    pictures = [(row["file"], image) for row, image in photos if row["usable"] == "1"]
    pictures += [
        (path.name, load_image(path))
        for path in (*folder.glob("egoblur/*.jpg"), *folder.glob("scikit-image/[ac][sa]*.png"))
    ]
    found["faces"] = measure_faces(pictures, finder)
    found["ms"] = measure_times(images, detector, finder, reader)
    return found


def told(found: dict[str, Any]) -> Iterator[str]:
    """The figures as lines for a person, with what is asked of them."""
    if "quality" in found:
        quality, main, faces = found["quality"], found["main thing"], found["faces"]
        wrong = len(quality["wrongly_judged"])
        yield f"usable or not: {wrong} of {quality['photos']} photos judged other than labelled"
        spoilt = ", ".join(f"{name} {100 * share:.0f} %" for name, share in quality["refused"].items())
        yield f"refused of the usable ones: {spoilt}"
        yield (
            f"main thing: right in {100 * main['right']:.1f} % of {main['photos']} photos (80 wanted), "
            f"a wrong one named in {100 * main['wrong']:.1f} % (5 at most)"
        )
        yield (
            f"faces: {100 * faces['gone']:.1f} % of {faces['faces']} not found again (98 wanted), "
            f"{faces['kept_back']} pictures kept back"
        )
    for name, (median, tail) in found["ms"].items():
        yield f"{name}: {median:.2f} ms (p95 {tail:.1f})"
    if "memory" in found:
        memory = found["memory"]
        yield (
            f"memory: {memory['mb_after_a_tenth']} MB after {memory['frames'] // 10} frames, "
            f"{memory['mb_after_all']} MB after {memory['frames']}"
        )


@click.command()
@click.option(
    "--shared-data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    envvar="OS1_SHARED_DATA",
    help="Holds scene/openglass and the other labelled photos; without it, times only. $OS1_SHARED_DATA.",
)
@click.option(
    "--every", type=click.IntRange(1), default=1, show_default=True, help="Take every K-th labelled photo."
)
@click.option(
    "--frames",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    help="Frames of the memory's measure.",
)
@click.option(
    "--threads", type=click.IntRange(1, 64), default=2, show_default=True, help="Threads of the networks."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def scene(shared_data: Path | None, every: int, frames: int, threads: int, as_json: bool) -> None:
    """What the scene camera's pictures become, and in which time.

    On the labelled photos of --shared-data: usable or not, the main thing, faces taken out. Times are
    milliseconds a frame of 640 x 480.
    """
    folder = shared_data / "scene" if shared_data else None
    if folder and not (folder / "openglass" / "content.csv").is_file():
        raise click.ClickException(f"no labelled photos in {folder}; see --shared-data")
    try:
        found = measure(folder, every, frames, threads)
    except os1_models.ModelMissing as missing:
        raise click.ClickException(str(missing)) from None
    for line in [json.dumps(found)] if as_json else told(found):
        click.echo(line)


if __name__ == "__main__":
    scene()
