"""When a difference between two measurements is called real, and what is said of files that are none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from os1_edge.bench.cli import bench
from os1_edge.bench.compare import compare, judge, mann_whitney, own_noise, ratio_interval
from os1_edge.bench.result import Better, LinkRun, Machine, Result, Series, load_result, series
from os1_edge.tomlfile import BadFile

SEEDS = 100
MACHINE = Machine(
    cpu="a", cores=2, pinned=[0, 1], memory_mb=4000, free_mb=3000, system="Linux", python="3.11",
    load_before=0.0, load_after=1.0,
)  # fmt: skip


def result(*rows: Series, machine: Machine = MACHINE) -> Result:
    return Result(
        made=datetime(2026, 3, 2, tzinfo=UTC), os1_version="0", command="os1 bench", mode="full", threads=2,
        rounds=2, seconds=1.0, interrupted=False, machine=machine, series=rows,
    )  # fmt: skip


def measured(
    rng: np.random.Generator,
    middle: float,
    n: int = 8,
    drift: float = 0.0,
    name: str = "x",
    better: Better = "lower",
) -> Series:
    """Two rounds of noisy times about ``middle``, the rounds apart by about ``drift``."""
    blocks = [middle * (1 + drift * rng.normal()) * rng.lognormal(0, 0.05, n) for _ in range(2)]
    return series(name, "hear", "ms", [list(map(float, b)) for b in blocks], better)


@pytest.mark.parametrize("n", [3, 8, 30])
def test_two_measurements_of_the_same_are_not_called_different(n: int) -> None:
    kinds = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        kinds.append(judge(measured(rng, 10.0, n), measured(rng, 10.0, n)).kind)
    assert kinds.count("same") >= 0.95 * len(kinds)


def test_a_machine_that_drifts_between_rounds_does_not_make_a_difference() -> None:
    """Within a round the samples agree to 5 %, so that ranks alone would call most pairs different."""
    called, by_rank = 0, 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        others = [measured(rng, 10.0, 30, drift=0.08, name=f"s{i}") for i in range(9)]
        a = result(measured(rng, 10.0, 30, drift=0.08), *others)
        b = result(measured(rng, 10.0, 30, drift=0.08))
        called += compare(a, b).verdicts[0].kind != "same"
        by_rank += mann_whitney(a.series[0].samples, b.series[0].samples) < 0.01
    assert called <= 0.15 * SEEDS
    assert by_rank > 3 * called


@pytest.mark.parametrize(("better", "kind"), [("lower", "worse"), ("higher", "better")])
def test_a_fifth_more_is_found_and_told_as_better_or_worse(better: Better, kind: str) -> None:
    found = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        verdict = judge(measured(rng, 10.0, better=better), measured(rng, 12.0, better=better))
        found += verdict.kind == kind
        assert 1.05 < verdict.ratio < 1.4
    assert found >= 0.95 * SEEDS


def test_too_few_samples_are_said_to_be_too_few() -> None:
    few = series("x", "hear", "ms", [[1.0, 1.1], [1.05, 1.0]])
    many = series("x", "hear", "ms", [[9.0, 9.1, 9.2], [9.0, 9.1, 9.3]])
    assert judge(few, many).kind == "too few"


def test_bytes_that_always_come_out_the_same_are_compared_exactly() -> None:
    """However restless the machine is: one per cent more bytes is one per cent more."""
    a = series("size", "see", "kB", [[40.0] * 5, [40.0] * 5])
    b = series("size", "see", "kB", [[40.4] * 5, [40.4] * 5])
    assert judge(a, b, pooled=0.5).kind == "worse"
    assert judge(a, a, pooled=0.5).kind == "same"


def test_ranks_are_counted_out_as_in_the_published_tables() -> None:
    for n, m in ((3, 4), (5, 5), (4, 7)):
        values = list(range(n + m))
        for chosen in combinations(values, n):
            others = [v for v in values if v not in chosen]
            u = sum(x > y for x in chosen for y in others)
            assert mann_whitney(chosen, others) == pytest.approx(_by_hand(n, m, min(u, n * m - u)))


def _by_hand(n: int, m: int, u: int) -> float:
    counts = []
    for chosen in combinations(range(n + m), n):
        others = [v for v in range(n + m) if v not in chosen]
        counts.append(sum(x > y for x in chosen for y in others))
    return min(1.0, 2 * sum(c <= u for c in counts) / len(counts))


def test_the_interval_holds_the_true_ratio() -> None:
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        low, high = ratio_interval(rng.normal(10, 1, 25).tolist(), rng.normal(13, 1, 25).tolist())
        held += low <= 1.3 <= high
    assert held >= 90


def test_a_machine_that_others_work_on_is_held_to_be_as_restless_as_its_worst_series() -> None:
    rng = np.random.default_rng(0)
    calm = [measured(rng, 10.0, name=f"calm{n}") for n in range(8)]
    hit = [series(f"hit{n}", "hear", "ms", [[10.0, 10.1, 9.9], [20.0, 20.2, 19.8]]) for n in range(2)]
    busy = MACHINE.model_copy(update={"load_before": 5.0})
    slower = measured(rng, 13.0, name="calm0")
    for machine, kind in ((MACHINE, "worse"), (busy, "same")):
        found = compare(
            result(*calm, *hit, machine=machine), result(slower, *calm[1:], *hit, machine=machine)
        )
        assert found.verdicts[0].kind == kind


def test_a_round_that_was_a_tenth_slower_is_that_much_noise() -> None:
    assert own_noise(series("x", "hear", "ms", [[10.0] * 3, [11.0] * 3])) == pytest.approx(0.1)
    assert own_noise(series("x", "hear", "ms", [[11.0] * 3, [10.0] * 3])) == pytest.approx(0.1)


def written(folder: Path, name: str, *rows: Series) -> str:
    path = folder / name
    result(*rows).write(path)
    return str(path)


def two(folder: Path, a: Sequence[float], b: Sequence[float]) -> list[str]:
    return [
        written(folder, "a.json", series("vad", "hear", "ms", [a, a])),
        written(folder, "b.json", series("vad", "hear", "ms", [b, b])),
    ]


def test_fail_over_ends_with_one_where_something_is_really_worse(tmp_path: Path) -> None:
    steady, slow = [1.0, 1.01, 1.02, 0.99], [1.3, 1.31, 1.33, 1.29]
    files = two(tmp_path, steady, slow)
    worse = CliRunner().invoke(bench, ["compare", *files, "--fail-over", "10%"])
    assert worse.exit_code == 1
    assert "worse by 30%: vad" in worse.output
    assert CliRunner().invoke(bench, ["compare", *files, "--fail-over", "0.5"]).exit_code == 0
    assert CliRunner().invoke(bench, ["compare", *reversed(files), "--fail-over", "10%"]).exit_code == 0
    assert CliRunner().invoke(bench, ["compare", *files]).exit_code == 0


def test_a_gate_that_cannot_see_says_so(tmp_path: Path) -> None:
    restless = series("vad", "hear", "ms", [[1.0, 1.1, 1.05], [2.0, 2.1, 2.05]])
    files = [written(tmp_path, name, restless) for name in ("a.json", "b.json")]
    told = CliRunner().invoke(bench, ["compare", *files, "--fail-over", "10%"])
    assert told.exit_code == 0
    assert "too noisy to see a change of 10%: vad" in told.output


def test_a_gate_says_what_only_one_of_them_measured(tmp_path: Path) -> None:
    vad, asr = (series(name, "hear", "ms", [[1.0] * 3, [1.0] * 3]) for name in ("vad", "asr"))
    files = [written(tmp_path, "a.json", vad, asr), written(tmp_path, "b.json", vad)]
    told = CliRunner().invoke(bench, ["compare", *files, "--fail-over", "10%"])
    assert "so not looked at: asr" in told.stderr
    told = CliRunner().invoke(
        bench, ["compare", files[1], written(tmp_path, "c.json", asr)], standalone_mode=False
    )
    assert isinstance(told.exception, BadFile)
    assert "has nothing that" in str(told.exception)


@pytest.mark.parametrize("share", ["ten", "-5%", "nan%"])
def test_a_share_that_is_none_is_refused(tmp_path: Path, share: str) -> None:
    files = two(tmp_path, [1.0] * 3, [1.0] * 3)
    told = CliRunner().invoke(bench, ["compare", *files, "--fail-over", share])
    assert told.exit_code == 2
    assert "10%" in told.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON.*run os1 bench again"),
        ('{"schema": 2}', r"another version of OS-1 wrote it \(schema 2, this one reads 1\)"),
        ('{"schema": 1}', "made: is missing"),
        ("[]", "it is JSON of something else"),
        (b"\xff\xfe\x00", "not a text file"),
        (None, "no such file"),
    ],
)
def test_what_is_no_bench_json_is_named_with_what_to_do(
    tmp_path: Path, text: str | bytes | None, said: str
) -> None:
    path = tmp_path / "broken.json"
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(BadFile, match=said) as bad:
        load_result(path)
    assert str(path) in str(bad.value)


@pytest.mark.parametrize("blocks", [[], [[]], [[1.0, float("nan")]]])
def test_a_series_without_samples_to_compare_is_refused(tmp_path: Path, blocks: list[list[float]]) -> None:
    path = tmp_path / "bench.json"
    result(series("vad", "hear", "ms", [[1.0, 2.0]])).write(path)
    made = json.loads(path.read_text())
    made["series"][0]["blocks"] = blocks
    path.write_text(json.dumps(made))
    with pytest.raises(BadFile, match=r"series\.0\.blocks"):
        load_result(path)


def test_a_folder_given_for_a_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="Is a directory"):
        load_result(tmp_path)


def test_a_result_comes_back_as_it_was_written(tmp_path: Path) -> None:
    made = result(series("vad", "hear", "ms", [[1.0, 2.0, 3.0], [2.0]], of={"chunk": 512}))
    made.write(tmp_path / "bench.json")
    assert load_result(tmp_path / "bench.json") == made
    assert json.loads((tmp_path / "bench.json").read_text())["schema"] == 1


def lived(link: str) -> LinkRun:
    return LinkRun(
        link=link, turns=2, voice_to_voice_s=(1.0, 2.0), parts_s={}, routes={"cloud": 1, "local": 1},
        checks_passed=1, checks=2, cpu_s_a_minute=30.0,
    )  # fmt: skip


def test_stages_and_links_of_one_machine_are_one_page_and_one_table(tmp_path: Path) -> None:
    vad, other = (series(name, "hear", "ms", [[1.0] * 3]) for name in ("vad, a chunk of 32 ms", "other"))
    file = written(tmp_path, "bench.json", vad, other)
    links = result().model_copy(update={"command": "os1 bench system", "links": (lived("wifi"), lived("3g"))})
    links.write(tmp_path / "system.json")
    files = [file, str(tmp_path / "system.json")]
    told = CliRunner().invoke(bench, ["show", *files, "--markdown"]).stdout
    assert "`os1 bench; os1 bench system`, 2026-03-02, on a, 2 cores" in told
    assert "| vad, a chunk of 32 ms | 1.00 ms | 0 ms | 3 |" in told
    assert "| other |" not in told
    assert "| wifi | 1.50 s | 2.00 s | cloud 1, local 1 | 1 of 2 | 30.0 | - |" in told
    assert "| other |" in CliRunner().invoke(bench, ["show", *files, "--markdown", "--every"]).stdout
    assert CliRunner().invoke(bench, ["show", *files, "--html", str(tmp_path / "page.html")]).exit_code == 0
    assert "Who answered over each link" in (tmp_path / "page.html").read_text()
    assert CliRunner().invoke(bench, ["show", *files, "--markdown", "--only", "hats"]).exit_code == 2


def test_two_machines_are_not_one_table(tmp_path: Path) -> None:
    file = written(tmp_path, "bench.json", series("vad", "hear", "ms", [[1.0]]))
    result(machine=MACHINE.model_copy(update={"cpu": "b"})).write(tmp_path / "other.json")
    told = CliRunner().invoke(bench, ["show", file, str(tmp_path / "other.json")])
    assert told.exit_code == 2
    assert "two machines" in told.output


def test_two_machines_and_a_single_round_are_pointed_at() -> None:
    other = MACHINE.model_copy(update={"cpu": "b"})
    one_round = series("vad", "hear", "ms", [[1.0] * 6])
    told = " ".join(compare(result(one_round), result(one_round, machine=other)).cautions)
    assert "two machines" in told
    assert "A has one round only" in told
