"""Who calls: bearer tokens, of which the server knows only the SHA-256, and client certificates.

The file of tokens has one a line, `NAME SHA256HEX [until=YYYY-MM-DDTHH:MM:SSZ]`; `#` begins a comment. `os1
token` writes it; a server notices within a second. guard, server and token_cli import this.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_NAME = r"[A-Za-z0-9._@-]{1,64}"
_LINE = re.compile(rf"({_NAME})\s+([0-9a-f]{{64}})(?:\s+until=(\S+))?")
NAME = re.compile(_NAME)
LOOK_S = 1.0
"""How often the file is looked at for a change."""


class BadTokens(Exception):
    """The file of tokens cannot be used."""


@dataclass(frozen=True, slots=True)
class Token:
    """One line of the file."""

    name: str
    sha256: str
    """In lower-case hex."""
    until: float | None = None
    """Unix time of its end; None: it has none."""

    @property
    def line(self) -> str:
        """As it stands in the file."""
        if self.until is None:
            return f"{self.name} {self.sha256}"
        return f"{self.name} {self.sha256} until={datetime.fromtimestamp(self.until, UTC):%Y-%m-%dT%H:%M:%SZ}"


class Tokens:
    """Names by the hash of their token."""

    def __init__(
        self,
        names: dict[str, str],
        until: dict[str, float] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Args:
        names: SHA-256 in lower-case hex to the name of who holds the token.
        until: the same to the Unix time of its end, where there is one.
        now: Unix time.
        """
        self._names, self._until, self._now = names, until or {}, now

    def who(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
        """The name of the caller with this metadata, None if its token is missing, wrong or too old."""
        sent = [value for key, value in metadata or () if key == "authorization"]
        if len(sent) != 1 or not isinstance(sent[0], str) or not sent[0].startswith("Bearer "):
            return None
        # Looked up by its hash: how long that takes tells nothing about any token.
        digest = hashlib.sha256(sent[0].removeprefix("Bearer ").encode()).hexdigest()
        ends = self._until.get(digest)
        return self._names.get(digest) if ends is None or self._now() < ends else None


class TokenFile(Tokens):
    """The tokens of a file, read again when it changes. When it cannot be read any more the old ones stay,
    and `complain` is told; one without any token lets nobody in."""

    def __init__(self, path: Path, complain: Callable[[str], None] = lambda _: None) -> None:
        """Raises:
        BadTokens: it cannot be used.
        """
        super().__init__({})
        self._path, self._complain = path, complain
        self._looked, self._seen = time.monotonic(), _stamp(path)
        self._take(read_tokens(path))
        if not self._names:
            raise BadTokens(f"{path} holds no token; make one: os1 token create NAME --file {path}")

    def who(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
        """See `Tokens.who`."""
        now = time.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            self.reload()
        return super().who(metadata)

    def reload(self) -> None:
        """Reads the file if it has changed."""
        stamp = _stamp(self._path)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._take(read_tokens(self._path))
        except BadTokens as e:
            self._complain(f"{e}; the tokens read before stay")

    def _take(self, tokens: list[Token]) -> None:
        self._names = {t.sha256: t.name for t in tokens}
        self._until = {t.sha256: t.until for t in tokens if t.until is not None}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def read_tokens(path: Path) -> list[Token]:
    """The tokens of a file, in order.

    Raises:
        BadTokens: it cannot be read, or has a line that is none.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise BadTokens(f"the tokens in {path} cannot be read: {e}") from e
    tokens = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise BadTokens(f"{path}, line {number}: expected NAME and the token's SHA-256 in lower-case hex")
        tokens.append(Token(match[1], match[2], _time(match[3], path, number)))
    return tokens


def _time(text: str | None, path: Path, number: int) -> float | None:
    if text is None:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError as e:
        raise BadTokens(f"{path}, line {number}: until= wants a time like 2026-12-31T00:00:00Z") from e


def load_tokens(path: Path) -> Tokens:
    """Reads the file of tokens, once.

    Raises:
        BadTokens: it cannot be read, holds no token, or has a line that is none.
    """
    return TokenFile(path)
