"""A packet relay between two network namespaces: delay, jitter and loss of real packets, for root on Linux.

Each namespace has one end of a TUN pair; this process carries the packets between them. Rates come from
``tc tbf`` on the device, in the kernel. The server runs on one side (10.77.0.2), the client on the other.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import shutil
import struct
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
NEAR, FAR = "10.77.0.1", "10.77.0.2"
AHEAD = 2000
"""Packets under way in one direction; beyond that they are dropped, as a router's queue does."""


def missing() -> str | None:
    """Why there can be no relay here; None: there can."""
    if os.geteuid() != 0:
        return "needs root to make network namespaces"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    for command in ("ip", "tc"):
        if shutil.which(command) is None:
            return f"needs the {command} command (iproute2)"
    name = f"os1try{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return None


@dataclass
class Weather:
    """What happens to packets now. Seconds each way."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    hole: bool = False


class Relay:
    """Two namespaces and the packets between them. Use as an async context manager."""

    def __init__(self, weather: Weather, bits_s: float = 0.0, seed: int = 0) -> None:
        self.weather, self._bits_s = weather, bits_s
        self._chance = random.Random(seed)
        self.near, self.far = f"os1near{os.getpid()}", f"os1far{os.getpid()}"
        self._fds: list[int] = []

    async def __aenter__(self) -> Relay:
        for space, address in ((self.near, NEAR), (self.far, FAR)):
            _ip("netns", "add", space)
            device = f"tun{space[3:]}"[:15]
            fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            self._fds.append(fd)
            fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
            _ip("link", "set", device, "netns", space)
            _ip("-n", space, "addr", "add", f"{address}/24", "dev", device)
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", space, "link", "set", device, "mtu", "1400", "up")
            if self._bits_s:
                rate = ["rate", f"{round(self._bits_s)}bit", "burst", "10kb", "latency", "400ms"]
                tc = ["ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", device, "root", "tbf", *rate]
                _run(*tc)
        loop = asyncio.get_running_loop()
        a, b = self._fds
        loop.add_reader(a, self._carry, a, b)
        loop.add_reader(b, self._carry, b, a)
        return self

    async def __aexit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for fd in self._fds:
            loop.remove_reader(fd)
            os.close(fd)
        for space in (self.near, self.far):
            _ip("netns", "del", space)

    _under_way = 0

    def _carry(self, source: int, to: int) -> None:
        loop, weather = asyncio.get_running_loop(), self.weather
        while True:
            try:
                packet = os.read(source, 2048)
            except BlockingIOError:
                return
            if weather.hole or self._chance.random() < weather.loss or self._under_way >= AHEAD:
                continue
            self._under_way += 1
            delay = weather.delay_s + weather.jitter_s * self._chance.random()
            loop.call_later(delay, self._arrive, to, packet)

    def _arrive(self, to: int, packet: bytes) -> None:
        self._under_way -= 1
        with suppress(OSError):  # the other end is gone, or its queue is full: a lost packet
            os.write(to, packet)


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
