"""The page of a memory that a passphrase opens asks for it too, and bounds who guesses."""

from __future__ import annotations

import asyncio
import hmac
import time
from dataclasses import dataclass, field
from pathlib import Path

from os1_edge.remember.key import from_passphrase, read_source, salt_of, source_file

UNLOCKED_S = 15 * 60.0
"""A page left alone for so long asks for the passphrase again."""

TRIES = 5
"""Wrong passphrases before nobody may try for ``CLOSED_S``."""

CLOSED_S = 60.0


class WrongPassphrase(Exception):
    """It is not the memory's."""


class TooManyTries(Exception):
    """Nobody may try for a while."""


@dataclass
class PageLock:
    """Which browsers gave the passphrase of the memory in ``file``."""

    file: Path
    key: bytes = field(repr=False)
    locked: bool
    """The memory is opened by a passphrase, and so is the page."""
    unlocked: dict[str, float] = field(default_factory=dict)
    """Cookie -> when it was last used; bounded by the paired browsers."""
    wrong: int = 0
    closed_until: float = float("-inf")
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One guess is checked at a time: each takes tens of megabytes."""

    @classmethod
    def of(cls, file: Path, key: bytes) -> PageLock:
        """For the memory in ``file``, which ``key`` opens."""
        source = read_source(source_file(file))
        return cls(file, key, source is not None and source.kind == "passphrase")

    def open(self, cookie: str) -> bool:
        """Whether the browser with ``cookie`` may read; if so, it was used now."""
        if not self.locked:
            return True
        at = time.monotonic()
        seen = self.unlocked.get(cookie)
        if seen is None or at - seen > UNLOCKED_S:
            self.unlocked.pop(cookie, None)
            return False
        self.unlocked[cookie] = at
        return True

    async def unlock(self, cookie: str, passphrase: str) -> None:
        """Opens the page to the browser with ``cookie``.

        Raises:
            WrongPassphrase: it is not the memory's.
            TooManyTries: there were too many of those.
        """
        async with self._one:
            if time.monotonic() < self.closed_until:
                raise TooManyTries
            self.wrong += 1  # until it is known to be right: who hangs up meanwhile has tried too
            if last := self.wrong >= TRIES:
                self.wrong, self.closed_until = 0, time.monotonic() + CLOSED_S
            key = await asyncio.to_thread(lambda: from_passphrase(passphrase, salt_of(self.file)))
            if not hmac.compare_digest(key, self.key):
                raise WrongPassphrase
            self.wrong = 0
            if last:
                self.closed_until = float("-inf")
            if len(self.unlocked) >= 16:
                self.unlocked.clear()
            self.unlocked[cookie] = time.monotonic()
