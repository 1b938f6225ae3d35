"""`os1 gaze` and `os1 calibrate`: eye frames to gaze, and the calibration that it rests on."""

from __future__ import annotations

import json
import re
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from os1_edge.config import load_config

if TYPE_CHECKING:
    from os1_edge.see.gaze.looks import Frame, Looks
    from os1_edge.see.gaze.track import EyeSample, GazeTracker

_PATH = click.Path(path_type=Path)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_config = click.option(
    "--config", "config_file", type=_PATH, help="Settings (TOML); default: the wearer's own, if any."
)


@click.command()
@click.argument("files", metavar="FRAME...|VIDEO...", type=_PATH, nargs=-1, required=True)
@click.option("--calibration", "calibration_file", type=_PATH, help="File that os1 calibrate made.")
@click.option(
    "--fps", type=click.FloatRange(0.1, 1000), default=30.0, show_default=True, help="Of single pictures."
)
@_config
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line a frame.")
def gaze(
    files: tuple[Path, ...],
    calibration_file: Path | None,
    fps: float,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Say where an eye looks, in near-eye pictures or videos.

    Pictures are taken as one sequence, FPS a second; every video is one of its own.
    """
    from os1_edge.see.gaze.calibration import CalibrationError, load
    from os1_edge.see.gaze.looks import VIDEO
    from os1_edge.see.gaze.track import GazeTracker
    from os1_edge.see.image import UnreadableImage

    settings = load_config(config_file).see.gaze
    calibration = load(calibration_file) if calibration_file else None
    pictures = GazeTracker(settings, calibration)
    show = _print_json if as_json else _print_line
    count = bad = 0
    for path in files:
        try:
            if path.suffix.lower() in VIDEO:
                _follow(path, GazeTracker(settings, calibration), show)
            else:
                show(path, pictures.step(_picture(path), count / fps))
                count += 1
        except (UnreadableImage, CalibrationError) as error:
            bad += 1
            reason = str(error) if isinstance(error, UnreadableImage) else f"{path}: {error}"
            click.echo(f"os1: {_plain(reason)}", err=True)
    if bad:
        sys.exit(1)


@click.command()
@click.argument("recording", type=_PATH, required=False)
@click.option("--out", type=_PATH, default=Path("calibration.json"), show_default=True, help="File to write.")
@click.option("--report", type=_PATH, help="Quality report with a plot (HTML) to write.")
@click.option("--live", is_flag=True, help="Use the cameras of this machine, and the printed marker.")
@click.option("--eye-camera", type=click.IntRange(0, 63), default=0, show_default=True)
@click.option("--scene-camera", type=click.IntRange(0, 63), default=1, show_default=True)
@click.option("--marker", type=_PATH, help="Only write the marker, a PNG picture to print, and stop.")
@_config
@click.option("--json", "as_json", is_flag=True, help="Print the quality as JSON.")
def calibrate(
    recording: Path | None,
    out: Path,
    report: Path | None,
    live: bool,
    eye_camera: int,
    scene_camera: int,
    marker: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Fit gaze to looks at known targets: a RECORDING, or --live.

    RECORDING is a folder with targets.csv (columns file,x,y, or start_s,end_s,x,y beside eye.mp4), or with
    eye.mp4 and scene.mp4 that shows the marker. x and y are pixels of the scene picture.
    """
    from os1_edge.see.gaze import calibration as kept
    from os1_edge.see.gaze.looks import read_looks
    from os1_edge.see.gaze.quality import report_html, verdict
    from os1_edge.see.gaze.scene_camera import SceneCamera

    if marker:
        _write_marker(marker)
        return
    if live == (recording is not None):
        raise click.UsageError("give a RECORDING, or --live")
    settings = load_config(config_file).see.gaze
    looks = _live(eye_camera, scene_camera) if recording is None else read_looks(recording)
    width, height = looks.scene_size or (settings.scene_width, settings.scene_height)
    made = kept.calibrate(looks.looks, looks.eye_size, SceneCamera(width, height, settings.scene_fov_deg))
    kept.save(made, out)
    if report:
        report.write_text(report_html(made), "utf-8")
    if as_json:
        click.echo(json.dumps({"calibration": str(out), **made.quality.model_dump()}))
    else:
        click.echo(verdict(made))
        click.echo(f"calibration: {out}" + (f"\nreport: {report}" if report else ""))


def _picture(path: Path) -> Frame:
    from os1_edge.see.image import load_image

    return load_image(path)


def _follow(path: Path, tracker: GazeTracker, show: Any) -> None:
    from os1_edge.see.gaze.looks import EVERY_FRAME
    from os1_edge.see.image import UnreadableImage, iter_video

    seen = False
    for at_s, frame in iter_video(path, EVERY_FRAME):
        seen = True
        show(path, tracker.step(frame, at_s))
    if not seen:
        raise UnreadableImage(path, "a video without frames that can be read")


def _live(eye_index: int, scene_index: int) -> Looks:
    from os1_edge.see.gaze.live import Device, gather

    with closing(Device(eye_index, "eye")) as eye, closing(Device(scene_index, "scene")) as scene:
        return gather(eye, scene, lambda line: click.echo(line, err=True))


def _write_marker(path: Path) -> None:
    import cv2

    from os1_edge.see.gaze.marker import draw_marker

    good, data = cv2.imencode(".png", draw_marker())
    if good:
        path.write_bytes(data.tobytes())


def _record(path: Path, sample: EyeSample) -> dict[str, Any]:
    pupil, look = sample.pupil, sample.gaze
    return {
        "file": str(path),
        "t_s": round(sample.at_s, 6),
        "pupil": {
            "cx": round(pupil.cx, 3),
            "cy": round(pupil.cy, 3),
            "major": round(pupil.major, 3),
            "minor": round(pupil.minor, 3),
            "angle_deg": round(pupil.angle_deg, 2),
            "confidence": round(pupil.confidence, 4),
        }
        if pupil
        else None,
        "blink": sample.blink,
        "gaze": {"x": round(look.x, 2), "y": round(look.y, 2), "confidence": round(look.confidence, 4)}
        if look
        else None,
        "fixation": sample.fixation,
    }


def _print_json(path: Path, sample: EyeSample) -> None:
    click.echo(json.dumps(_record(path, sample)))


def _print_line(path: Path, sample: EyeSample) -> None:
    pupil, look = sample.pupil, sample.gaze
    where = f"pupil {pupil.cx:.1f}, {pupil.cy:.1f} ({pupil.confidence:.2f})" if pupil else "no pupil"
    state = "closed" if sample.blink else "fixation" if sample.fixation else "open"
    seen = f"; gaze {look.x:.0f}, {look.y:.0f}, off by about {look.error_deg:.0f} degrees" if look else ""
    click.echo(f"{_plain(str(path))} {sample.at_s:.3f} s: {where}, {state}{seen}")
    if sample.drift:
        click.echo(f"os1: {sample.drift.reason}; {sample.drift.advice}", err=True)


def _plain(text: str) -> str:
    """``text`` without control characters: a file's name must not steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
