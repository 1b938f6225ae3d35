"""How native worker threads wait for each other."""

from __future__ import annotations

import os


def let_threads_sleep() -> None:
    """Call before the first import of a library on OpenMP (whisper.cpp, llama.cpp).

    OpenMP threads spin at every barrier by default. When anything else wants a core, a spinning thread burns
    the time slice that the thread it waits for needs: with two busy processes beside it, a reply was seen to
    take 75 s instead of 7. Sleeping costs about a sixth of the speed on an idle machine. A wearer's device is
    never idle. Set OMP_WAIT_POLICY yourself to choose otherwise.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
