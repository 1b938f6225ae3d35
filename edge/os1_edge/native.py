"""What native libraries do to the process: how their threads wait, what memory they leave."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def let_threads_sleep() -> None:
    """Call before the first import of a library on OpenMP (whisper.cpp, llama.cpp).

    OpenMP threads spin at every barrier by default. When anything else wants a core, a spinning thread burns
    the time slice that the thread it waits for needs: with two busy processes beside it, a reply was seen to
    take 75 s instead of 7. Sleeping costs about a sixth of the speed on an idle machine. A wearer's device is
    never idle. Set OMP_WAIT_POLICY yourself to choose otherwise.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


_MMAP_THRESHOLD = -3  # mallopt(3)
LOADED_APART = 128 * 1024
"""Bytes from which a block allocated while models load lies in pages of its own: glibc's first threshold,
which it would raise to ``WORKED_APART`` with the first model that is freed."""

WORKED_APART = 32 * 1024 * 1024
"""The same at work, where such blocks come and go with each clause and asking the kernel for them costs time:
the highest that glibc lets it rise to."""


@contextmanager
def loading() -> Iterator[None]:
    """What models leave free of what they took to load goes back to the system at once, and leaves no holes
    between the weights: 15 MB of a small device's. Where the C library cannot, nothing happens."""
    _set_malloc(_MMAP_THRESHOLD, LOADED_APART)
    try:
        yield
    finally:
        _set_malloc(_MMAP_THRESHOLD, WORKED_APART)


def _set_malloc(setting: int, value: int) -> None:
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").mallopt(setting, value)


def give_back() -> None:
    """Gives memory that is free inside this process back to the system: after loading models, some tens of
    megabytes. Where the C library cannot, nothing happens."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


_MADV_DONTNEED = 4


def forget_pages(file: Path) -> None:
    """Takes the pages of ``file`` that are mapped for reading out of this process; what is still needed comes
    back when it is touched, mostly from the page cache. Of a language model some never are: matrices that
    llama.cpp keeps in a layout of its own, and words that nobody says. Where the system cannot, nothing
    happens.
    """
    import ctypes

    with suppress(OSError, AttributeError):
        name, madvise = str(file.resolve()), ctypes.CDLL(None).madvise
        for line in Path("/proc/self/maps").read_text("utf-8", "surrogateescape").splitlines():
            span, rights, *_, mapped = line.split(maxsplit=5)
            if mapped == name and "w" not in rights:
                begin, end = (int(part, 16) for part in span.split("-"))
                madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_DONTNEED)
