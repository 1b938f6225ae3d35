"""bench.html in a real browser: it opens without a network and without an error, and says what it holds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from test_report_opens import browse, complaints

from os1_edge.bench.page import page, waterfall
from os1_edge.bench.result import LinkRun, Machine, Ratio, Result, Skipped, series

HOSTILE = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"


def full() -> Result:
    machine = Machine(
        cpu=HOSTILE, cores=2, pinned=[0], memory_mb=1000, free_mb=500, system="Linux", python="3.11",
        load_before=2.0, load_after=3.0,
    )  # fmt: skip
    times = [[3.0, 3.5, 2.9, 3.3], [3.2, 3.1, 4.0, 3.0]]
    return Result(
        made=datetime(2026, 3, 2, tzinfo=UTC), os1_version="0", command="os1 bench", mode="full", threads=2,
        rounds=2, seconds=1.0, interrupted=True, machine=machine,
        series=(
            series("end of turn, a pause judged", "hear", "ms", times),
            series(HOSTILE, "hear", "ms", times),
            series("memory of a", "process", "MB", [[20.0, 21.0]], of={"figure": "memory"}),
            series("voice", "speak", "ms", times, of={"figure": "first clause"}),
        ),
        skipped=(Skipped(name="peer", why=HOSTILE),),
        peers=(Ratio(name="asr", peer="p", unit="ms", ours=1, theirs=2, ratio=2, low=1.8, high=2.2, n=5),),
        links=(
            LinkRun(
                link=HOSTILE, turns=3, voice_to_voice_s=(1.0, 1.2, 1.4, 1.1, 1.3), checks=4, checks_passed=3,
                parts_s={"recall": 0.1, HOSTILE: 0.9},
                routes={"local": 2, HOSTILE: 1}, cpu_s_a_minute=30.0,
            ),
        ),
        warnings=("busy",),
    )  # fmt: skip


def test_the_page_opens_and_nothing_in_it_is_run(chromium_path: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.html"
    path.write_text(page(full()), "utf-8")
    dom, log = browse(chromium_path, path, tmp_path / "profile", "--dump-dom")
    assert complaints(log) == []
    assert "<title>OS-1 bench, 2026-03-02</title>" in dom
    assert "It was interrupted" in dom
    # Waterfall, routes, parts, memory; a distribution for the link's waits and each series of times.
    assert dom.count("<svg") == 4 + 4
    assert "1.20 s, 3 of 4 right" in dom
    assert "<script" not in dom


def test_the_page_refers_to_nothing_outside_itself() -> None:
    text = page(full())
    assert "http" not in text.replace("http-equiv", "")
    assert "src=x" not in text.replace("&lt;img src=x", "")


def test_the_waterfall_is_of_what_was_measured() -> None:
    steps = waterfall(full())
    assert [name for name, _ in steps] == ["pause judged", "first clause spoken"]
