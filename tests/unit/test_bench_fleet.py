"""The simulated fleet, the machines it needs, the links that are lived, and what energy a machine tells."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from test_bench_compare import result

from os1_edge.bench.energy import Meter, spent
from os1_edge.bench.fleet import Habits, Load, drive, knee, next_step, of_the_morning, schedule
from os1_edge.bench.fleet_cli import fill, fleet, knee_in_words, pace_of
from os1_edge.bench.result import series
from os1_edge.bench.scale import STEPS, Assumed, Measured, bottlenecks, filled, plan, table
from os1_edge.bench.stage import Unavailable
from os1_edge.bench.stages.clips import morning
from os1_edge.bench.system import LINKS, Check, checks, link_run
from os1_edge.offload.budget import Allowance
from os1_edge.offload.engine import Message
from os1_edge.replay.report import Report
from os1_edge.tomlfile import BadFile
from os1_proto.assist.v1 import assist_pb2 as pb
from os1_proto.assist.v1.assist_pb2_grpc import AssistServicer, add_AssistServicer_to_server

PLACES = ("inputs", "knee", "front", "machines", "bottlenecks")
SAID = [said.text for said in morning().file.utterance]
HABITS = Habits((8.0, 12.0), (4, 8), ((), ()), 0.25)


def load(wearers: int, first_s: float, ok: int = 100, failed: int = 0) -> Load:
    return Load(wearers, 10.0, [first_s] * ok, Counter({"OK": ok, "RESOURCE_EXHAUSTED": failed}))


def test_wearers_ask_as_often_as_in_the_morning_and_not_all_at_once() -> None:
    asked = schedule(HABITS, 200, 60.0)
    assert len(asked) == pytest.approx(200 * 60 * HABITS.turns_a_second, rel=0.1)
    assert [due.at_s for due in asked] == sorted(due.at_s for due in asked)
    first_ten_seconds = sum(due.at_s < 10 for due in asked)
    assert first_ten_seconds == pytest.approx(len(asked) / 6, rel=0.25)
    assert sum(due.cancelled for due in asked) == pytest.approx(0.25 * len(asked), rel=0.2)
    assert {(due.turn, due.tokens) for due in asked} == {(0, 6), (1, 11)}
    assert asked == schedule(HABITS, 200, 60.0)


def test_the_habits_are_those_of_the_bundled_morning() -> None:
    habits = of_the_morning()
    assert len(habits.gaps_s) == len(habits.words) - 1 == 12
    assert 0.05 < habits.turns_a_second < 0.2
    assert habits.cancels == Allowance()._share
    assert len(habits.prompts) == len(habits.words)
    for text, words, prompt in zip(SAID, habits.words, habits.prompts, strict=True):
        assert len(text.split()) == words
        assert prompt[-1].text.endswith(text)
    sizes = [sum(len(part.text) for part in prompt) for prompt in habits.prompts]
    assert len(set(sizes)) > 10  # a conversation grows, until the runtime remembers no more of it
    assert sizes[6] > sizes[0] + 300
    parts = [len(prompt) for prompt in habits.prompts]
    assert parts[6:] == [parts[0] + 12] * 7


def test_each_question_of_the_fleet_is_sent_with_its_own_turns_prompt() -> None:
    asked: list[pb.AskRequest] = []

    class Keeps(AssistServicer):
        async def Ask(self, request: pb.AskRequest, context: object) -> AsyncIterator[pb.AskEvent]:
            asked.append(request)
            return
            yield

    async def go() -> None:
        server = grpc.aio.server()
        add_AssistServicer_to_server(Keeps(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            habits = Habits((0.02,), (2, 8), ((Message("user", "Hi."),), (Message("user", "Well, " * 8),)), 0)
            await drive(f"127.0.0.1:{port}", habits, 1, 1.0)
        finally:
            await server.stop(None)

    asyncio.run(go())
    sent = {(request.turns[0].text, request.max_tokens) for request in asked[1:]}  # one for the connection
    assert sent == {("Hi.", 3), ("Well, " * 8, 11)}
    ids = {request.request_id for request in asked}
    asyncio.run(go())
    assert not ids & {
        request.request_id for request in asked[len(ids) :]
    }  # else the server has them answered


def test_the_knee_is_the_last_load_before_the_first_that_is_too_much() -> None:
    fine, slow, failing = load(10, 0.1), load(20, 2.0), load(40, 0.1, 90, 10)
    assert knee([slow, fine, load(40, 0.1)]) is fine
    assert knee([fine, failing]) is fine
    assert knee([slow]) is None


def test_a_question_that_failed_counts_as_never_answered() -> None:
    assert load(1, 0.1, ok=90, failed=10).first(50) == 0.1
    assert load(1, 0.1, ok=90, failed=10).first(95) == float("inf")


def climbed(most: int, carries: int) -> list[Load]:
    """The loads tried on a server that keeps up with ``carries`` wearers."""
    loads: list[Load] = []
    while (count := next_step(loads, most)) is not None:
        loads.append(load(count, 0.1 if count <= carries else 5.0))
    return loads


def test_a_load_in_which_nobody_asked_anything_is_no_knee() -> None:
    assert load(1, 0.1, ok=0).kept_up
    assert not load(1, 0.1, ok=0, failed=1).kept_up


def test_loads_double_up_to_all_wearers() -> None:
    assert [some.wearers for some in climbed(400, 1000)] == [50, 100, 200, 400]
    assert [some.wearers for some in climbed(500, 1000)] == [62, 124, 248, 496, 500]
    assert [some.wearers for some in climbed(1, 1000)] == [1]


@pytest.mark.parametrize("carries", [3, 61, 700, 1499, 3199])
def test_the_knee_is_closed_in_on_from_both_sides(carries: int) -> None:
    loads = climbed(3200, carries)
    best = knee(loads)
    assert best is not None
    assert carries / 1.16 <= best.wearers <= carries
    assert len(loads) <= 12


def test_a_server_that_carries_nobody_is_not_tried_for_ever() -> None:
    loads = climbed(3200, 0)
    assert knee(loads) is None
    assert loads[-1].wearers >= 1


def test_the_knee_is_told_with_what_it_does_not_prove() -> None:
    late = load(40, 3.0)
    late.client_late_s = [1.0] * 100
    assert knee_in_words([load(20, 0.1)]).endswith("more were not tried")
    assert "not with 40, where the client was late itself" in knee_in_words([load(20, 0.1), late])
    assert knee_in_words([load(20, 0.1), load(40, 3.0)]).endswith("not with 40")
    assert knee_in_words([late]) == "kept up with none of these"
    assert knee_in_words([]) == "no load was tried to its end"


SLOW = Measured(0.1, 400.0, 200.0, 3.0, 100.0, 20.0)
ASSUMED = Assumed(
    seeing=0.2, hearing=0.1, gpu_prefill=1000.0, gpu_generation=100.0, picture_tokens=550, speech_a_second=2.0
)


def test_machines_are_those_that_one_counts_by_hand() -> None:
    # 1000 x .05 x .6 x .1 = 3 turns a second; text 2.4 of 450/100 + 30/20 = 6 s, 60 % busy: 24, and a spare.
    # Pictures 0.6 of 1000/1000 + 30/100 = 1.3 s: 1.3, so 2. Sound 0.3 of 2 a second: 0.25, so 1.
    found = plan(1_000, SLOW, ASSUMED, gpus=False)
    assert found.turns_a_second == pytest.approx(3.0)
    assert found.machines == {"text": 25, "vision": 3, "speech": 2, "front door": 2, "network": 2}
    # On GPUs 2.4 of 450/1000 + 30/100 = 0.75 s: 1.8, so 3.
    assert plan(1_000, SLOW, ASSUMED, gpus=True).machines["text"] == 4
    assert "| 1,000 | 3.0 | 25 | 4 | 3 | 2 | 2 | 1 |" in table(SLOW, ASSUMED)


def test_machines_grow_with_wearers_and_shrink_with_a_faster_model() -> None:
    fast = Measured(0.1, 400.0, 200.0, 3.0, 10_000.0, 2_000.0)
    counts = [plan(n, SLOW, ASSUMED, gpus=False).machines["text"] for n in (1_000, 10_000, 100_000)]
    assert counts == sorted(counts)
    assert counts[2] == pytest.approx(100 * counts[0], rel=0.1)
    assert plan(100_000, fast, ASSUMED, gpus=False).machines["text"] < counts[2] / 50


def test_no_cluster_has_more_replicas_than_are_watched_nor_more_wearers_than_may_lose_it() -> None:
    many = plan(100_000, SLOW, ASSUMED, gpus=False)  # some 2,500 replicas
    assert many.cells > 1
    replicas = sum(many.machines[kind] for kind in ("text", "vision", "speech"))
    assert replicas / many.cells <= ASSUMED.busy * ASSUMED.replicas_a_cluster
    few = plan(100_000, SLOW, ASSUMED, gpus=True)
    assert few.cells == 1
    assert plan(1_000_000, SLOW, ASSUMED, gpus=True).cells == 10
    assert plan(1_000_000, SLOW, ASSUMED, gpus=True).machines["front door"] == 10 * few.machines["front door"]


def test_the_bottleneck_is_what_is_asked_most_beyond_one_machine() -> None:
    for wearers in STEPS:
        found = plan(wearers, SLOW, ASSUMED, gpus=False).demands
        assert [d.use for d in found] == sorted((d.use for d in found), reverse=True)
        assert found[0].kind == "text"
    rows = bottlenecks(SLOW, ASSUMED).splitlines()[2:]
    assert len(rows) == 2 * len(STEPS)
    assert rows[0].startswith("| 1,000 | processors | text 14 | vision 0.78 | speech 0.15,")
    # A front door carries 200 questions a second, and is asked 300 and twice 30 for sound.
    assert "front door 1.80" in rows[2].split("|")[4]
    slow_door = Measured(0.1, 400.0, 0.5, 3.0, 1e5, 1e5)
    assert "| 1,000 | processors | front door 7.20 |" in bottlenecks(slow_door, ASSUMED)
    idle = Measured(0.001, 400.0, 200.0, 3.0, 100.0, 20.0)
    assert "nothing yet; fullest is" in bottlenecks(idle, ASSUMED, (1_000,))


def test_without_ray_the_fleet_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os1_edge.bench.fleet_ray.find_spec", lambda name: None)
    result = CliRunner().invoke(fleet, ["--ray", "--wearers", "1", "--seconds", "1"])
    assert isinstance(result.exception, Unavailable)
    assert "pip install 'os1[cloud,ray]'" in str(result.exception)


@pytest.mark.parametrize("wrong", [["--server", "h:1", "--ray"], ["--scale", "x.md"], ["--bench", "b.json"]])
def test_what_does_not_go_together_is_said_before_anything_starts(wrong: list[str]) -> None:
    assert CliRunner().invoke(fleet, wrong).exit_code == 2


def test_only_the_named_place_of_a_page_is_filled() -> None:
    page = "a\n<!-- x -->\nold\n<!-- /x -->\nb"
    assert filled(page, "x", "new") == "a\n<!-- x -->\nnew\n<!-- /x -->\nb"
    with pytest.raises(ValueError, match="no place"):
        filled(page, "y", "new")


def test_the_page_holds_what_was_measured_and_the_machines_it_means(tmp_path: Path) -> None:
    page = tmp_path / "scale.md"
    page.write_text("".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in PLACES))
    paces = [("qwen2.5-0.5b", 100.0), ("qwen2.5-1.5b", 50.0)]
    rows = [
        series(f"{model} {figure}", "converse", "tok/s", [[pace]], of={"model": model, "figure": figure})
        for model, pace in paces
        for figure in ("prefill", "generation")
    ]
    alone = {"model": "qwen2.5-1.5b", "figure": "prefill", "threads": 1}
    result(*rows, series("alone", "converse", "tok/s", [[5.0]], of=alone)).write(tmp_path / "bench.json")
    pace = pace_of(tmp_path / "bench.json")
    assert pace[1] == "qwen2.5-1.5b"
    alone, fronted = [load(10, 0.1), load(20, 5.0)], [load(5, 0.1, 30), load(10, 5.0)]
    fronted[0].kb = 60.0
    fill(page, pace, HABITS, alone, fronted, 0.2)
    text = page.read_text()
    assert "`prefill` 50" in text
    assert "`served_a_second` 10" in text
    assert "`front_a_second` 3" in text
    assert "`kb_a_question` 2" in text
    assert "kept up with 10 wearers who talk all the time, 10 questions a second, not with 20" in text
    assert "kept up with 5 wearers who talk all the time, 3 questions a second, not with 10" in text
    assert "| 1,000,000 |" in text
    assert "| 1,000,000 | GPUs |" in text
    for nothing in ([load(20, 5.0)], [load(1, 0.1, ok=0)]):
        with pytest.raises(BadFile, match="no load"):
            fill(page, pace, HABITS, nothing, fronted, 0.2)
        with pytest.raises(BadFile, match="no load"):
            fill(page, pace, HABITS, alone, nothing, 0.2)
    assert page.read_text() == text


def test_the_page_has_each_place_that_is_filled() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "scale.md").read_text()
    for name in PLACES:
        assert filled(page, name, "x") != page


def test_the_tunnels_of_the_train_lie_where_the_session_is() -> None:
    train = next(link for link in LINKS if link.name == "train")
    assert train.timeline(100.0).split("; ")[1:3] == ["30.0 hole", train.timeline(100.0).split("; ")[2]]
    assert train.timeline(100.0).split("; ")[2].startswith("40.0 latency")
    assert next(link for link in LINKS if link.name == "offline").steps == ()


def test_a_link_is_told_with_its_routes_and_the_replies_that_were_right(demo_morning: Path) -> None:
    def turn(number: int, reference: str, reply: str, route: str, wait: float | None) -> dict[str, object]:
        return {
            "turn_id": f"t{number}", "time": "2026-03-02T08:00:00", "start_s": 1.0, "end_s": 2.0,
            "heard": reference, "reference": reference, "reply": reply, "route": route,
            "route_reason": "", "recalled": [], "latency": {"asr_s": 0.2, "voice_to_voice_s": wait},
        }  # fmt: skip

    report = Report.model_validate(
        {
            "os1_version": "0", "machine": {}, "models": {}, "frames": [], "contexts": [], "events": [],
            "profile": [], "resources": {"rss_max_mb": 1, "cpu_s": 30, "wall_s": 60},
            "session": {"title": "m", "start": "2026-03-02T08:00:00", "seconds": 60, "mode": "realtime"},
            "turns": [
                turn(1, "What food am I allergic to?", "Peanuts.", "cloud", 1.2),
                turn(2, "When is my dentist appointment?", "On Monday.", "local", None),
            ],
        }
    )  # fmt: skip
    expected = checks(demo_morning)
    run = link_run("wifi", report, expected, Meter(12.0, "rapl"))
    assert (run.checks_passed, run.checks) == (1, len(expected))
    assert run.routes == {"cloud": 1, "local": 1}
    assert run.voice_to_voice_s == (1.2,)
    assert run.cpu_s_a_minute == 30.0
    assert run.parts_s == {"speech recognised": 0.2}
    assert run.joules == 12.0


def test_a_check_takes_any_of_its_patterns() -> None:
    assert Check("?", ("cup", "mug")).passed("A red Mug.")
    assert not Check("?", ("cup", "mug")).passed("A lamp.")


def zone(folder: Path, name: str, joules: float) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "energy_uj").write_text(f"{joules * 1e6:.0f}\n")
    (folder / name / "max_energy_range_uj").write_text("1000000000\n")


def test_rapl_is_summed_over_packages_and_wraps(tmp_path: Path) -> None:
    zone(tmp_path / "cap", "intel-rapl:0", 900.0)
    zone(tmp_path / "cap", "intel-rapl:0:0", 5000.0)  # a part of the package: not counted twice
    before = spent(tmp_path / "cap", tmp_path / "none")
    assert before == Meter(900.0, "rapl", 1000.0)
    (tmp_path / "cap" / "intel-rapl:0" / "energy_uj").write_text("100000000\n")
    assert spent(tmp_path / "cap", tmp_path / "none") - before == Meter(200.0, "rapl")


def test_a_battery_counts_only_while_it_empties(tmp_path: Path) -> None:
    battery = tmp_path / "supply" / "BAT0"
    battery.mkdir(parents=True)
    (battery / "energy_now").write_text("10000000\n")
    (battery / "status").write_text("Discharging\n")
    before = spent(tmp_path / "none", tmp_path / "supply")
    (battery / "energy_now").write_text("9990000\n")
    assert spent(tmp_path / "none", tmp_path / "supply") - before == Meter(36.0, "battery")
    (battery / "status").write_text("Charging\n")
    assert spent(tmp_path / "none", tmp_path / "supply") - before == Meter(None, None)
