"""Who may open the page: whoever knows the code that the companion's terminal shows. Pure: time is passed in.

A page is let in once by the code and then by a cookie. The code is long enough that guessing is hopeless at
the rate allowed, and changes when somebody tries.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""None that look alike on a screen."""

CODE_LENGTH = 8
"""Forty bits: at five tries a minute 200,000 years."""

TRIES = 5
"""Wrong codes, from anywhere, before the code changes and nobody is let in for a while."""

CLOSED_S = 60.0

PAGES = 8
"""Browsers paired at once; the one unseen for longest goes."""

IDLE_S = 30 * 86_400.0
"""A browser not seen for so long must pair again."""


class NotPaired(Exception):
    """The code is not right, or too many were tried; the message says which."""


def new_code(choose: Callable[[str], str] = secrets.choice) -> str:
    """A fresh code, in two halves."""
    letters = "".join(choose(LETTERS) for _ in range(CODE_LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


class Doors:
    """Code and paired browsers of one run; nothing of it is written anywhere."""

    def __init__(self, changed: Callable[[str], None] = lambda code: None) -> None:
        """``changed`` is told each new code."""
        self.code = new_code()
        self._changed = changed
        self._wrong = 0
        self._closed_until = float("-inf")
        self._paired: OrderedDict[str, float] = OrderedDict()
        """Digest of the cookie -> when it was last seen."""

    def pair(self, code: str, now_s: float) -> str:
        """The cookie of a browser that knows the code.

        Raises:
            NotPaired: it does not, or too many were tried.
        """
        if now_s < self._closed_until:
            wait = max(1, round(self._closed_until - now_s))
            raise NotPaired(f"Too many wrong codes. Wait {wait} seconds; the companion shows a new code.")
        said = "".join(c for c in code.lower() if c in LETTERS)
        if not hmac.compare_digest(said.encode(), self.code.replace("-", "").encode()):
            self._wrong += 1
            if self._wrong >= TRIES:
                self._wrong, self._closed_until = 0, now_s + CLOSED_S
                self.code = new_code()
                self._changed(self.code)
            raise NotPaired("That is not the code that the companion shows.")
        self._wrong = 0
        cookie = secrets.token_urlsafe(32)
        self._paired[_digest(cookie)] = now_s
        while len(self._paired) > PAGES:
            self._paired.popitem(last=False)
        return cookie

    def knows(self, cookie: str, now_s: float) -> bool:
        """Whether the browser with ``cookie`` is paired."""
        digest = _digest(cookie)
        seen = self._paired.get(digest)
        if seen is None:
            return False
        if now_s - seen > IDLE_S:
            del self._paired[digest]
            return False
        self._paired[digest] = now_s
        self._paired.move_to_end(digest)
        return True

    def leave(self, cookie: str) -> None:
        """The browser with ``cookie`` has to pair again."""
        self._paired.pop(_digest(cookie), None)


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
