"""The suite on made-up stages and a clock of its own: what is kept, what is left out, how long it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from os1_edge.bench.machine import chosen_cores, warnings
from os1_edge.bench.result import Machine
from os1_edge.bench.stage import Reading, Setting, Stage, Unavailable, Work
from os1_edge.bench.suite import LIMIT_S, Done, Step, Stop, run, time_left
from os1_edge.bench.table import MAIN
from os1_edge.bench.whole import all_stages, chosen, progress


@dataclass
class World:
    """A clock that only work moves, and the stages on it."""

    now_s: float = 0.0
    told: list[Step] = field(default_factory=list)
    stop: Stop = field(default_factory=Stop)

    def stage(
        self,
        name: str,
        takes_s: float = 0.1,
        *,
        ready_s: float = 0.0,
        values: Sequence[float] = (1.0,),
        breaks: BaseException | None = None,
        stops_at: int = -1,
        within_s: float = 1.0,
    ) -> Stage:
        done = iter(range(10**6))

        @contextmanager
        def prepare(_: Setting) -> Iterator[Work]:
            self.now_s += ready_s

            def work() -> Sequence[float]:
                self.now_s += takes_s
                number = next(done)
                if breaks is not None and number >= 2:
                    raise breaks
                self.stop.asked = self.stop.asked or number == stops_at
                return values

            yield work

        return Stage(
            name, "hear", (Reading(name),), prepare, repeats=5, warm=0, within_s=within_s, ready_s=ready_s
        )

    def slower(self, stage: Stage, times: float) -> Stage:
        """``stage`` on this clock: made ready in ``times`` what it expects, a sample as long as its share."""
        takes_s = times * stage.within_s / (stage.repeats + stage.warm)

        @contextmanager
        def prepare(_: Setting) -> Iterator[Work]:
            self.now_s += times * stage.ready_s

            def work() -> Sequence[float]:
                self.now_s += takes_s
                return (1.0,) * len(stage.readings)

            yield work

        return replace(stage, prepare=prepare)

    def run(self, *stages: Stage, rounds: int = 2, limit_s: float = 1000.0) -> Done:
        return run(
            stages, Setting(), rounds, self.stop, self.told.append, lambda: self.now_s, limit_s=limit_s
        )


def test_each_stage_is_measured_once_a_round_with_the_others_between() -> None:
    world = World()
    done = world.run(world.stage("a"), world.stage("b"))
    assert [step.stage for step in world.told] == ["a", "b", "a", "b", ""]
    assert [block.n for block in done.blocks["a"]] == [5, 5]
    assert not done.left_out()


def test_ctrl_c_keeps_what_was_measured_by_then() -> None:
    world = World()
    stages = [world.stage("a"), world.stage("b", stops_at=2), world.stage("c")]
    done = world.run(*stages, rounds=1)
    assert done.interrupted
    assert [(s.name, s.n) for s in done.series(stages)] == [("a", 5), ("b", 3)]
    assert [(s.name, s.why) for s in done.left_out()] == [("c", "interrupted before it")]


def test_a_second_ctrl_c_in_the_middle_of_a_sample_keeps_those_before_it() -> None:
    world = World()
    stages = [world.stage("a"), world.stage("b", breaks=KeyboardInterrupt()), world.stage("c")]
    done = world.run(*stages)
    assert done.interrupted
    assert [(s.name, s.n) for s in done.series(stages)] == [("a", 5), ("b", 2)]


def test_a_stage_that_breaks_keeps_its_samples_and_the_others_go_on() -> None:
    world = World()
    stages = [world.stage("a", breaks=ValueError("odd")), world.stage("b")]
    done = world.run(*stages)
    assert [(s.name, s.n) for s in done.series(stages)] == [("a", 2), ("b", 10)]
    assert done.skipped["a"] == "failed: ValueError: odd"


def test_what_cannot_run_here_is_said_with_its_reason() -> None:
    @contextmanager
    def prepare(_: Setting) -> Iterator[Work]:
        raise Unavailable("no such camera")
        yield lambda: (0.0,)

    world = World()
    done = world.run(Stage("a", "see", (Reading("a"),), prepare), world.stage("b"))
    assert [(s.name, s.why) for s in done.left_out()] == [("a", "no such camera")]
    assert "b" in done.blocks


def test_the_time_is_kept_and_what_is_long_is_left_out_first() -> None:
    world = World()
    stages = [world.stage("slow", 30.0, within_s=60.0), *(world.stage(f"s{n}", 0.2) for n in range(5))]
    done = world.run(*stages, limit_s=50.0)
    assert world.now_s <= 50.0
    assert [s.name for s in done.left_out()] == ["slow"]
    assert all(len(done.blocks[f"s{n}"]) == 2 for n in range(5))


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("times", [1.0, 3.0, 10.0, 30.0])
def test_a_device_so_many_times_as_slow_gives_fewer_samples_not_a_longer_run(
    times: float, quick: bool
) -> None:
    """The suite's own stages, each as slow as it would be at worst; the limit is the one promised."""
    world = World()
    stages = [world.slower(stage, times) for stage in chosen(all_stages(), quick, [])]
    done = run(stages, Setting(quick=quick), 2, world.stop, world.told.append, lambda: world.now_s)
    assert world.now_s <= LIMIT_S["quick" if quick else "full"]
    assert len(done.blocks) >= (len(stages) if times == 1.0 else 3)
    assert {s.name for s in done.left_out()} == {s.name for s in stages} - set(done.blocks)


def test_a_stage_that_a_slow_device_could_not_make_ready_in_time_is_not_begun() -> None:
    """Making ready, such as loading a model, cannot be cut short: the pace of the stages before tells."""
    world = World()
    short, long = world.stage("short", ready_s=1.0), world.stage("long", ready_s=10.0)
    done = world.run(world.slower(short, 10.0), world.slower(long, 10.0), rounds=1, limit_s=60.0)
    assert world.now_s <= 60.0
    assert [s.name for s in done.left_out()] == ["long"]


def test_a_stage_ends_with_the_samples_it_has_where_the_time_is_over() -> None:
    world = World()
    done = world.run(world.stage("a", 9.0, within_s=40.0), limit_s=45.0, rounds=1)
    assert [block.n for block in done.blocks["a"]] == [5]
    late = World()
    done = late.run(late.stage("a", 9.0, ready_s=5.0, within_s=15.0), limit_s=20.0, rounds=1)
    assert [block.n for block in done.blocks["a"]] == [2]
    assert late.now_s == 23.0


def test_a_stage_that_took_long_is_not_begun_again_where_time_is_short() -> None:
    """The second round knows what the first one took."""
    world = World()
    done = world.run(world.stage("a", 30.0, within_s=1.0), limit_s=45.0)
    assert [block.n for block in done.blocks["a"]] == [1]
    assert world.now_s == 30.0


def test_the_time_left_follows_the_pace_and_the_limit() -> None:
    assert time_left([10, 10, 10, 10], 0, 0.0, 100.0) == 40
    assert time_left([10, 10, 10, 10], 2, 40.0, 100.0) == 40
    assert time_left([10, 10, 10, 10], 2, 90.0, 100.0) == 10
    assert time_left([10, 10], 2, 20.0, 100.0) == 0


def test_only_takes_rooms_and_parts_of_names_beyond_the_quick_ones() -> None:
    stages = all_stages()
    assert {s.group for s in chosen(stages, True, ["speak"])} == {"speak"}
    assert [s.name for s in chosen(stages, True, ["100k"])] == ["recall of 100k memories"]
    assert all(s.quick for s in chosen(stages, True, []))
    with pytest.raises(Unavailable, match="rooms are hear"):
        chosen(stages, True, ["hears"])


def test_no_two_stages_give_figures_of_one_name() -> None:
    names = [reading.name for stage in all_stages() for reading in stage.readings]
    assert len(names) == len(set(names))


def test_the_main_figures_of_a_readme_are_figures_that_there_are() -> None:
    assert set(MAIN) <= {reading.name for stage in all_stages() for reading in stage.readings}


def test_without_a_terminal_each_stage_is_a_line_with_the_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress(quiet=False) as tell:
        tell(Step("vad", 3, 90, 125.4))
        tell(Step("", 90, 90, 0.0))
    assert capsys.readouterr().err == "4 of 90  vad  2:05 left\n"
    with progress(quiet=True) as tell:
        tell(Step("vad", 3, 90, 125.4))
    assert capsys.readouterr().err == ""


def test_threads_get_cores_of_their_own_before_they_share_one() -> None:
    siblings = {0: 0, 1: 0, 2: 2, 3: 2}
    assert chosen_cores([0, 1, 2, 3], siblings, 2) == [1, 3]
    assert chosen_cores([0, 1, 2, 3], siblings, 3) == [1, 2, 3]
    assert chosen_cores([0, 1], {}, 4) == [0, 1]


def test_a_busy_hot_or_slowed_machine_is_warned_of() -> None:
    calm = Machine(
        cpu="a", cores=2, pinned=[], memory_mb=1, free_mb=1, system="", python="", load_before=0.1,
        load_after=3.0, mhz_before=2000, mhz_after=1990,
    )  # fmt: skip
    assert warnings(calm) == []
    changed = {"load_before": 3.0, "governor": "powersave", "hottest_c": 80.0, "mhz_after": 1000.0}
    assert len(warnings(calm.model_copy(update={**changed, "battery_percent": 50.0}))) == 5
