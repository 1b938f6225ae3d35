"""`os1 doctor --live`: what it says of a microphone, with programs that stand in for one."""

from __future__ import annotations

import asyncio
import sys

import numpy as np
import pytest

from os1_edge.config import Config
from os1_edge.config import Device as DeviceSettings
from os1_edge.live.checks import examine_live, level_db, meter

SOUND = "import sys,numpy as n; r=n.random.default_rng(1).normal(0,float(sys.argv[1]),64000)"
WRITE = "; b=r.clip(-1,1)*32767; sys.stdout.buffer.write(b.astype('<i2').tobytes())"


def settings(loudness: float | None) -> Config:
    code = f"{SOUND}{WRITE}"
    record = "false" if loudness is None else f'{sys.executable} -c "{code}" {loudness}'
    device = DeviceSettings(microphone=record, speaker="cat", scene_camera="none")
    return Config(device=device)


@pytest.mark.parametrize(
    ("loudness", "ok", "told"),
    [
        (0.05, True, "loudest -2"),
        (0.0, False, "silence"),
        (0.9, False, "distorted"),
        (None, False, "gives no sound"),
    ],
)
def test_the_microphone_is_judged_by_what_it_gives(loudness: float | None, ok: bool, told: str) -> None:
    said: list[str] = []
    microphone, speaker, power = asyncio.run(examine_live(settings(loudness), said.append))
    assert microphone.ok == ok
    assert told in microphone.found
    assert microphone.ok or microphone.fix
    assert speaker.ok
    assert power.ok
    assert (loudness is None) or any("dB" in line for line in said)


def test_the_meter_fills_with_the_level() -> None:
    assert level_db(np.zeros(10, np.float32)) == -120
    assert level_db(np.ones(10, np.float32)) == pytest.approx(0, abs=0.1)
    assert [meter(db, 10).count("#") for db in (-90, -60, -30, 0)] == [0, 0, 5, 10]
