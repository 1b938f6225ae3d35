"""Front doors that are processes of their own, so that one can be killed in the middle of an answer.

``python tests/faults/doors.py CERT KEY NODE PORT`` is one: the real server over TLS with the scripted model.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from turns import Scripted

from os1_cloud.core import Answerer
from os1_cloud.server import Address, Server, read_tls

FIRST_S, WORD_S = 0.05, 0.06
"""An answer takes most of a second: there is a middle to be killed in."""
START_S = 60.0


@dataclass
class Door:
    """One running front door."""

    process: asyncio.subprocess.Process
    port: int

    @property
    def address(self) -> str:
        """As it stands in the settings."""
        return f"localhost:{self.port}"

    async def end(self, number: int = signal.SIGKILL) -> None:
        """Signals it and waits for its end."""
        self.process.send_signal(number)
        await self.process.wait()


@asynccontextmanager
async def door(tls: tuple[Path, Path], node: str, port: int = 0) -> AsyncIterator[Door]:
    """A front door, ended by its id."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, *map(str, tls), node, str(port), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), START_S)).split()
        assert line[:1] == [b"ready"], f"the front door {node} did not start"
        yield Door(process, int(line[1]))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _serve(cert: str, key: str, node: str, port: str) -> None:
    server = Server(Answerer(Scripted(FIRST_S, WORD_S)), tls=read_tls(Path(cert), Path(key)), node=node)
    print("ready", await server.start(Address("127.0.0.1", int(port))), flush=True)
    ends = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ends.set)
    await ends.wait()
    await server.drain(30.0)


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
