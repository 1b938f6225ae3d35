"""A finger on the picture stands in for the eyes."""

from __future__ import annotations

import asyncio

from os1_edge import clock
from os1_edge.app.gazing import POINTED_S, Gazing
from os1_edge.clock import Clock


def test_where_the_wearer_points_is_where_they_look_for_a_while() -> None:
    told: list[float] = []

    async def go() -> None:
        time = Clock()
        gazing = Gazing(None, time, told.append)
        assert gazing.rested(0.0, 1.0) is None
        await asyncio.sleep(5.0)
        gazing.point(0.25, 0.5)
        found = gazing.rested(4.0, 6.0)
        assert found is not None
        assert (found.x, found.y) == (gazing.scene.width / 4, gazing.scene.height / 2)
        assert gazing.rested(0.0, 4.0) is None  # what was asked before it is not about it
        assert gazing.rested(0.0, 5.0 + POINTED_S + 1) is None
        gazing.close()

    clock.run(go(), virtual=True)
    assert told == [5.0]  # a picture is taken at once
