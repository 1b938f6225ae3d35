"""Whether the network costs by the byte, as NetworkManager knows it: told by the wearer, or guessed from a
phone's hotspot (org.freedesktop.NetworkManager, property ``Metered``)."""

from __future__ import annotations

import asyncio
import logging
import shutil

from os1_edge.device.processes import end

log = logging.getLogger(__name__)

ASK = (
    "busctl", "--system", "--no-pager", "get-property", "org.freedesktop.NetworkManager",
    "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager", "Metered",
)  # fmt: skip
"""Prints "u 1"; the service must not be started for the question, which busctl does not do by itself."""

ANSWERS = {"u 1": True, "u 2": False, "u 3": True, "u 4": False}
"""NMMetered: yes, no, guessed yes, guessed no; 0 is unknown. A guess counts: to be wrong costs money."""

WITHIN_S = 2.0


async def metered() -> bool | None:
    """What NetworkManager says; ``None``: it does not know, or is not here. Never raises."""
    if shutil.which(ASK[0]) is None:
        return None
    try:
        process = await asyncio.create_subprocess_exec(
            *ASK,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    try:
        out, _ = await asyncio.wait_for(process.communicate(), WITHIN_S)
    except TimeoutError:
        await end(process)
        return None
    except BaseException:
        await end(process)
        raise
    return ANSWERS.get(out.decode("ascii", "replace").strip())
