"""`os1 scene`: what is to be seen in pictures, one line each."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import os1_models
from os1_edge.config import load_config

if TYPE_CHECKING:
    from os1_edge.see.scene import SceneDescriber, SceneDescription

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PATH = click.Path(path_type=Path)
_Part = TypeVar("_Part")


@click.command()
@click.argument("files", metavar="IMAGE...", type=_PATH, nargs=-1, required=True)
@click.option(
    "--text/--no-text",
    "read",
    default=None,
    help="Read the words, a third of a second a picture; default: see.read_text.",
)
@click.option(
    "--config", "config_file", type=_PATH, help="Settings (TOML); default: the wearer's own, if any."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line a picture.")
def scene(files: tuple[Path, ...], read: bool | None, config_file: Path | None, as_json: bool) -> None:
    """Say what is to be seen in pictures: objects, people, words, light, and whether they can be used.

    A picture that cannot be read is told of, and the others are still done; the exit code is then 1.
    """
    from os1_edge.see.image import UnreadableImage, load_image

    settings = load_config(config_file).see
    read = settings.read_text if read is None else read
    eyes = load_eyes(settings.threads, read)
    bad = 0
    for path in files:
        try:
            seen = eyes.look(load_image(path), read=read)
        except UnreadableImage as error:
            bad += 1
            click.echo(f"os1: {_plain(str(error))}", err=True)
            continue
        except MemoryError:
            bad += 1
            click.echo(f"os1: {_plain(str(path))}: not enough memory for this picture", err=True)
            continue
        click.echo(json.dumps(record(path, seen)) if as_json else _line(path, seen))
    if bad:
        sys.exit(1)


def load_eyes(threads: int, read: bool) -> SceneDescriber:
    """Everything that describes a picture, from the pulled models.

    Without the models for faces or words their part is missing, and one line on standard error says so.

    Raises:
        os1_models.ModelMissing: the object detector has not been pulled.
    """
    import cv2

    from os1_edge.see.faces import FaceFinder
    from os1_edge.see.objects import ObjectDetector
    from os1_edge.see.scene import SceneDescriber
    from os1_edge.see.text import TextReader

    def words() -> TextReader:
        finder = os1_models.path("ppocr", "PP-OCRv6_det_small.onnx")
        return TextReader(finder, os1_models.path("ppocr"), threads)

    cv2.setNumThreads(threads)
    return SceneDescriber(
        ObjectDetector(os1_models.path("objects-ssd"), os1_models.path("objects-ssd", "labels.txt"), threads),
        _if_pulled(lambda: FaceFinder(os1_models.path("centerface"))),
        _if_pulled(words) if read else None,
    )


def _if_pulled(load: Callable[[], _Part]) -> _Part | None:
    try:
        return load()
    except os1_models.ModelMissing as missing:
        click.echo(f"os1: going on without it: {_plain(str(missing))}", err=True)
        return None


def record(path: Path, seen: SceneDescription) -> dict[str, Any]:
    """The JSON line of one picture."""
    return {
        "file": str(path),
        "quality": {"usable": seen.usable, "reason": seen.reason},
        "objects": [
            {"label": thing.label, "score": round(thing.score, 4), "box": list(thing.box)}
            for thing in seen.objects
        ],
        "text": list(seen.text),
        "people": seen.people,
        "light": seen.light,
        "sentence": seen.sentence,
    }


def _line(path: Path, seen: SceneDescription) -> str:
    return _plain(f"{path}: {seen.sentence if seen.usable else f'not usable: {seen.reason}'}")


def _plain(text: str) -> str:
    """``text`` without control characters: a file's name, or a sign, must not steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
