"""What native libraries do to the process: how their threads wait, what memory they leave."""

from __future__ import annotations

import os
from contextlib import suppress


def let_threads_sleep() -> None:
    """Call before the first import of a library on OpenMP (whisper.cpp, llama.cpp).

    OpenMP threads spin at every barrier by default. When anything else wants a core, a spinning thread burns
    the time slice that the thread it waits for needs: with two busy processes beside it, a reply was seen to
    take 75 s instead of 7. Sleeping costs about a sixth of the speed on an idle machine. A wearer's device is
    never idle. Set OMP_WAIT_POLICY yourself to choose otherwise.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def give_back() -> None:
    """Gives memory that is free inside this process back to the system: after loading models, some tens of
    megabytes. Where the C library cannot, nothing happens."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
