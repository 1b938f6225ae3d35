"""Battery and heat, from files like the kernel's."""

from __future__ import annotations

from pathlib import Path

from os1_edge.device.power import STEPS, Power, pace, read_power


def step(power: Power, now: int = 0) -> str:
    return pace(power, STEPS[now]).step.name


def test_a_device_that_tells_nothing_goes_at_full_speed() -> None:
    assert step(Power()) == "full"


def test_less_is_done_as_the_battery_falls_and_charging_ends_that() -> None:
    assert [step(Power(p)) for p in (80, 40, 39, 19, 7)] == ["full", "full", "saving", "low", "critical"]
    assert step(Power(7, charging=True)) == "full"


def test_heat_counts_also_while_charging() -> None:
    assert [step(Power(90, True, c)) for c in (41.0, 43.0, 49.0, 56.0)] == [
        "full",
        "saving",
        "low",
        "critical",
    ]
    assert pace(Power(None, False, 49.0)).reason == "the device is at 49 °C"


def test_the_worse_of_battery_and_heat_decides() -> None:
    assert step(Power(30, False, 56.0)) == "critical"
    assert step(Power(5, False, 43.0)) == "critical"


def test_a_level_at_the_border_does_not_flap() -> None:
    assert step(Power(41), now=1) == "saving"
    assert step(Power(44), now=1) == "full"
    assert step(Power(None, False, 41.0), now=1) == "saving"
    assert step(Power(None, False, 38.0), now=1) == "full"


def test_the_kernels_files_are_read_and_nonsense_is_not(tmp_path: Path) -> None:
    supplies, zones = tmp_path / "power", tmp_path / "thermal"
    for name, files in {
        "BAT0": {"type": "Battery", "capacity": "57\n", "status": "Discharging"},
        "mouse": {"type": "Battery", "scope": "Device", "capacity": "3"},
        "AC": {"type": "Mains", "online": "0"},
    }.items():
        (supplies / name).mkdir(parents=True)
        for file, text in files.items():
            (supplies / name / file).write_text(text)
    for n, text in enumerate(("45500\n", "-274000", "no number", "")):
        (zones / f"thermal_zone{n}").mkdir(parents=True)
        (zones / f"thermal_zone{n}" / "temp").write_text(text)
    assert read_power(supplies, zones) == Power(57.0, False, 45.5)
    (supplies / "BAT0" / "status").write_text("Charging")
    assert read_power(supplies, zones).charging
    assert read_power(tmp_path / "none", tmp_path / "none") == Power()


def test_the_lowest_step_looks_only_when_asked() -> None:
    assert STEPS[-1].frames_slower == float("inf")
    assert [s.ahead for s in STEPS] == [True, True, False, False]
