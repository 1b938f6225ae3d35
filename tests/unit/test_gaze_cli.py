"""`os1 gaze` and `os1 calibrate` as they are typed: lines in order, one clear line for every bad file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result

from os1_edge.bench.rendered_wearer import FIVE, RenderedWearer
from os1_edge.cli import main
from os1_edge.see.gaze.calibration import CalibrationError, calibrate
from os1_edge.see.gaze.live import FRAMES, gather
from os1_edge.see.gaze.looks import pair
from os1_edge.see.gaze.marker import draw_marker, find_marker
from os1_edge.see.gaze.scene_camera import SceneCamera


def os1(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args])


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eye pictures of five looks, with their targets."""
    folder = tmp_path_factory.mktemp("recording")
    wearer = RenderedWearer(3)
    rows = ["file,x,y"]
    for number, (right, down) in enumerate(FIVE):
        for frame, shown in enumerate(wearer.look(right, down, frames=5)):
            name = f"{number}_{frame}.png"
            cv2.imwrite(str(folder / name), shown.frame)
            rows.append(f"{name},{shown.x},{shown.y}")
    (folder / "targets.csv").write_text("\n".join(rows) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def calibration(recording: Path) -> Path:
    made = os1(
        "calibrate", recording, "--out", recording / "gaze.json", "--report", recording / "report.html"
    )
    assert made.exit_code == 0, made.output
    return recording / "gaze.json"


def test_every_frame_is_a_line_in_the_order_given(recording: Path) -> None:
    files = [recording / "3_0.png", recording / "0_0.png", recording / "1_2.png"]
    result = os1("gaze", *files, "--json")
    assert result.exit_code == 0
    told = lines(result)
    assert [line["file"] for line in told] == [str(f) for f in files]
    for line in told:
        assert list(line) == ["file", "t_s", "pupil", "blink", "gaze", "fixation"]
        assert list(line["pupil"]) == ["cx", "cy", "major", "minor", "angle_deg", "confidence"]
        assert list(line["gaze"]) == ["x", "y", "confidence"]
        assert line["blink"] is False
    assert [round(line["t_s"], 3) for line in told] == [0.0, 0.033, 0.067]


def test_with_a_calibration_gaze_is_where_the_wearer_looked(recording: Path, calibration: Path) -> None:
    rows = (recording / "targets.csv").read_text("utf-8").splitlines()[1::5]
    files = [recording / row.split(",")[0] for row in rows]
    told = lines(os1("gaze", *files, "--calibration", calibration, "--fps", "1", "--json"))
    for line, row in zip(told, rows, strict=True):
        x, y = map(float, row.split(",")[1:])
        assert np.hypot(line["gaze"]["x"] - x, line["gaze"]["y"] - y) < 19  # three degrees
        assert line["gaze"]["confidence"] > 0.6


def test_calibrating_tells_the_quality_and_writes_a_report(recording: Path, calibration: Path) -> None:
    told = json.loads(os1("calibrate", recording, "--out", recording / "again.json", "--json").stdout)
    assert told["median_deg"] < 3
    assert len(told["targets"]) == 5
    assert "<svg" in (recording / "report.html").read_text("utf-8")
    assert json.loads(calibration.read_text("utf-8"))["version"] == 1


def bad_files(folder: Path, good: Path) -> dict[Path, str]:
    """Files that are no eye frame, each with a word of what is told of it."""
    frame = cv2.imread(str(good))
    whole = cv2.imencode(".jpg", frame)[1].tobytes()
    huge = bytearray(cv2.imencode(".png", frame)[1].tobytes())
    huge[16:24] = (40_000).to_bytes(4, "big") * 2
    contents = {
        "empty.png": (b"", "empty"),
        "cut.jpg": (whole[: len(whole) // 2], "cut short"),
        "huge.png": (bytes(huge), "too large"),
        "moving.gif": (b"GIF89a" + bytes(40), "not a"),
        "words.txt": (b"hello", "not a"),
        "film.mp4": (b"\0\0\0\x18ftypmp42" + bytes(50), "video"),
    }
    out = {}
    for name, (data, word) in contents.items():
        (folder / name).write_bytes(data)
        out[folder / name] = word
    out[folder / "none.png"] = "no such file"
    out[folder] = "not a file"
    return out


def test_a_bad_file_is_one_clear_line_and_the_rest_goes_on(recording: Path, tmp_path: Path) -> None:
    good = recording / "0_0.png"
    for path, word in bad_files(tmp_path, good).items():
        result = os1("gaze", good, path, good, "--json")
        assert result.exit_code == 1, path
        assert len(lines(result)) == 2, path
        assert result.stderr.startswith(f"os1: {path}: "), result.stderr
        assert word in result.stderr
        assert result.stderr.count("\n") == 1


def test_sixteen_bits_and_colour_are_read(recording: Path, tmp_path: Path) -> None:
    grey = cv2.imread(str(recording / "0_0.png"), cv2.IMREAD_GRAYSCALE)
    assert grey is not None
    cv2.imwrite(str(tmp_path / "deep.png"), grey.astype(np.uint16) * 257)
    cv2.imwrite(str(tmp_path / "twelve.png"), grey.astype(np.uint16) * 16)
    cv2.imwrite(str(tmp_path / "plain.png"), cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR))
    told = lines(os1("gaze", *(tmp_path / f"{n}.png" for n in ("plain", "deep", "twelve")), "--json"))
    assert [line["pupil"]["cx"] for line in told] == pytest.approx([told[0]["pupil"]["cx"]] * 3, abs=1)
    assert min(line["pupil"]["confidence"] for line in told) > 0.6


def video(path: Path, frames: list[np.ndarray], fps: float = 30.0) -> Path:  # type: ignore[type-arg]
    size = (frames[0].shape[1], frames[0].shape[0])
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), fps, size)
    for frame in frames:
        writer.write(cv2.cvtColor(frame, cv2.COLOR_GRAY2BGR) if frame.ndim == 2 else frame)
    writer.release()
    return path


def test_a_video_gives_a_line_for_every_frame_with_its_time(tmp_path: Path) -> None:
    wearer = RenderedWearer(1)
    path = video(tmp_path / "eye.avi", [look.frame for look in wearer.look(4, 2, frames=6)])
    told = lines(os1("gaze", path, "--json"))
    assert [round(line["t_s"] * 30) for line in told] == [0, 1, 2, 3, 4, 5]
    assert told[-1]["fixation"] is True


def test_two_videos_with_the_marker_calibrate(tmp_path: Path) -> None:
    wearer = RenderedWearer(3)
    eyes, scenes = [], []
    for right, down in FIVE:
        for shown in wearer.look(right, down, frames=10):
            eyes.append(shown.frame)
            scenes.append(scene_with_marker(shown.x, shown.y))
    video(tmp_path / "eye.avi", eyes)
    video(tmp_path / "scene.avi", scenes)
    made = os1("calibrate", tmp_path, "--out", tmp_path / "gaze.json", "--json")
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert len(told["targets"]) == 5
    assert told["median_deg"] < 3


def test_times_of_an_eye_video_calibrate(tmp_path: Path) -> None:
    wearer = RenderedWearer(3)
    frames, rows = [], ["start_s,end_s,x,y"]
    for number, (right, down) in enumerate(FIVE[:4]):
        shown = list(wearer.look(right, down, frames=10))
        frames += [s.frame for s in shown]
        rows.append(f"{number / 3},{number / 3 + 0.3},{shown[0].x},{shown[0].y}")
    video(tmp_path / "eye.avi", frames)
    (tmp_path / "targets.csv").write_text("\n".join(rows), "utf-8")
    made = os1("calibrate", tmp_path, "--out", tmp_path / "gaze.json", "--json")
    assert made.exit_code == 0, made.output
    assert all(
        target["frames"] <= 7 for target in json.loads(made.stdout)["targets"]
    )  # without the way there


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "needs the columns"),
        ("file,x\na.png,3\n", "needs the columns"),
        ("file,x,y\nnone.png,3,4\n", "no such file"),
        ("file,x,y\nnone.png,abc,4\n", "targets.csv:2: x is not a number"),
        ("start_s,end_s,x,y\n0,1,3,4\n", "no eye.mp4"),
    ],
)
def test_a_recording_that_cannot_be_used_is_refused(tmp_path: Path, table: str, said: str) -> None:
    (tmp_path / "targets.csv").write_text(table, "utf-8")
    result = os1("calibrate", tmp_path, "--out", tmp_path / "gaze.json")
    assert result.exit_code == 1
    assert said in result.stderr
    assert not (tmp_path / "gaze.json").exists()


def test_a_folder_without_anything_and_no_folder_are_refused(tmp_path: Path) -> None:
    assert "neither targets.csv" in os1("calibrate", tmp_path).stderr
    assert "not a folder" in os1("calibrate", tmp_path / "none").stderr
    assert "give a RECORDING" in os1("calibrate").stderr


class Reel:
    """A camera that shows given frames one after the other, and then the last one for ever."""

    def __init__(self, frames: list[Any]) -> None:
        self.frames = frames
        self.at = 0

    def read(self) -> tuple[bool, Any]:
        frame = self.frames[min(self.at, len(self.frames) - 1)]
        self.at += 1
        return True, frame


def scene_with_marker(x: float, y: float) -> Any:
    scene = np.full((480, 640), 120, np.uint8)
    left, top = round(x) - 24, round(y) - 24
    scene[top : top + 48, left : left + 48] = cv2.resize(
        draw_marker(400), (48, 48), interpolation=cv2.INTER_AREA
    )
    return scene


def test_the_live_flow_asks_for_five_places_and_calibrates() -> None:
    wearer, told = RenderedWearer(3), list[str]()
    shown = [next(iter(wearer.look(right, down))) for right, down in FIVE]
    eye = Reel([s.frame for s in shown for _ in range(FRAMES)])
    scene = Reel([scene_with_marker(s.x, s.y) for s in shown for _ in range(FRAMES)])
    looks = gather(eye, scene, told.append, clock=lambda: 0.0)
    assert len(told) == 5
    assert looks.scene_size == (640, 480)
    assert calibrate(looks.looks, looks.eye_size, SceneCamera(640, 480)).quality.median_deg < 3


def test_the_live_flow_says_what_is_missing_while_it_goes_on() -> None:
    ticks = iter(range(1000))
    shut = Reel([RenderedWearer(3).blink()])
    seen, bare = Reel([scene_with_marker(320, 240)]), Reel([np.full((480, 640), 120, np.uint8)])
    with pytest.raises(CalibrationError, match="the pupil was not seen"):
        gather(shut, seen, lambda line: None, clock=lambda: float(next(ticks)))
    with pytest.raises(CalibrationError, match="the marker"):
        gather(shut, bare, lambda line: None, clock=lambda: float(next(ticks)))


def test_live_without_a_camera_says_so() -> None:
    result = os1("calibrate", "--live", "--eye-camera", "62", "--scene-camera", "63")
    assert result.exit_code == 1
    assert "no eye camera at index 62" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_damaged_calibration_is_one_clear_line(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "gaze.json").write_text("{", "utf-8")
    result = os1("gaze", recording / "0_0.png", "--calibration", tmp_path / "gaze.json")
    assert result.exit_code == 1
    assert "not JSON" in result.stderr
    assert result.stdout == ""


def test_frames_of_another_camera_are_told_of_one_by_one(
    recording: Path, calibration: Path, tmp_path: Path
) -> None:
    cv2.imwrite(str(tmp_path / "square.png"), np.zeros((300, 300), np.uint8))
    result = os1(
        "gaze", tmp_path / "square.png", recording / "0_0.png", "--calibration", calibration, "--json"
    )
    assert result.exit_code == 1
    assert "300x300" in result.stderr
    assert len(lines(result)) == 1


def test_the_marker_that_is_written_is_found(tmp_path: Path) -> None:
    assert os1("calibrate", "--marker", tmp_path / "marker.png").exit_code == 0
    page = cv2.imread(str(tmp_path / "marker.png"))
    assert page is not None
    assert find_marker(page.astype(np.uint8)) == pytest.approx((page.shape[1] / 2, page.shape[0] / 2), abs=2)


def test_frames_just_after_the_marker_appeared_are_left_out() -> None:
    times = [i / 30 for i in range(60)]
    markers = [(t, None if 1.0 <= t < 1.3 else (100.0 if t < 1 else 400.0, 50.0)) for t in times]
    looks = list(pair([(t, None) for t in times], markers, 640))
    assert {look.target for look in looks} == {0, 1}
    assert len([look for look in looks if look.target == 0]) == 24
    assert len([look for look in looks if look.target == 1]) == 14
