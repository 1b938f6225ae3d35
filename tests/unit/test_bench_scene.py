"""What `os1 bench scene` and `os1 bench gaze` tell, and what they say where something is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from os1_edge.bench.cli import bench
from os1_edge.bench.gaze import Tally
from os1_edge.bench.scene import told

FOUND = {
    "quality": {"photos": 57, "wrongly_judged": ["a.jpg"], "refused": {"as it is": 0.0, "smeared": 1.0}},
    "main thing": {"photos": 40, "right": 0.85, "wrong": 0.025},
    "faces": {"faces": 100, "gone": 0.99, "found_again": 1, "kept_back": 2},
    "ms": {"objects (wall)": [31.25, 40.0]},
    "memory": {"frames": 1000, "mb_after_a_tenth": 200, "mb_after_all": 201},
}


def test_the_scene_bench_tells_each_figure_beside_what_is_asked() -> None:
    lines = list(told(FOUND))
    assert lines[0] == "usable or not: 1 of 57 photos judged other than labelled"
    assert lines[2] == (
        "main thing: right in 85.0 % of 40 photos (80 wanted), a wrong one named in 2.5 % (5 at most)"
    )
    assert lines[3].startswith("faces: 99.0 % of 100 not found again (98 wanted)")
    assert lines[4] == "objects (wall): 31.25 ms (p95 40.0)"
    assert lines[5] == "memory: 200 MB after 100 frames, 201 MB after 1000"
    assert len(list(told({"ms": FOUND["ms"]}))) == 1


@pytest.mark.parametrize("command", ["scene", "gaze"])
def test_a_folder_without_labelled_pictures_is_told(command: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(bench, [command, "--shared-data", str(tmp_path)])
    assert result.exit_code == 1
    assert "--shared-data" in result.output


def test_a_network_that_was_not_pulled_is_told_with_the_command_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS1_MODELS_DIR", str(tmp_path))
    result = CliRunner().invoke(bench, ["scene"], env={"OS1_SHARED_DATA": ""})
    assert result.exit_code == 1
    assert "os1 models pull" in result.output


def test_a_pupil_found_far_off_counts_as_a_miss_only_when_it_was_sure() -> None:
    tally = Tally()
    row = {"status": "ok", "cx": "100", "cy": "100"}
    tally.add((104.0, 100.0, 0.9), row, 192, 2.0)
    tally.add((106.0, 100.0, 0.9), row, 192, 4.0)
    tally.add((106.0, 100.0, 0.2), row, 192, 6.0)
    tally.add((1.0, 1.0, 0.7), {"status": "absent"}, 192, 8.0)
    assert tally.told() == {
        "within_5px": 0.3333,
        "confident_misses": 0.3333,
        "labelled": 3,
        "on_closed": 1,
        "closed": 1,
        "ms_median": 5.0,
        "ms_p95": 7.7,
    }
