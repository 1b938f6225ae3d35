"""`url:https://…`: a plain download that resumes with an HTTP range where the server can."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from os1_models.errors import FULL_DISK_CODES, FetchFailed, Unreachable

TIMEOUT_S = 15.0
"""For connecting and for each read."""
TRIES = 3
PAUSE_S = 0.5
CHUNK_BYTES = 256 << 10


class _Partial:
    """The bytes so far, and the validator that says whether the server still has the same file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.data = folder / "data"
        self._note = folder / "validator.json"

    def validator(self) -> str | None:
        try:
            value = json.loads(self._note.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return value if isinstance(value, str) else None

    def size(self) -> int:
        return self.data.stat().st_size if self.data.exists() else 0

    def restart(self, validator: str | None) -> None:
        """Empty file first, note second: a note never describes bytes of another answer."""
        self._note.unlink(missing_ok=True)
        self.data.write_bytes(b"")
        if validator is not None:
            self._note.write_text(json.dumps(validator), "utf-8")


def _validator(headers: http.client.HTTPMessage) -> str | None:
    """What `If-Range` may carry: a strong ETag, else the date of the last change (RFC 9110, 13.1.5)."""
    etag = headers.get("ETag")
    if etag is not None and not etag.startswith("W/"):
        return etag
    return headers.get("Last-Modified")


def _transfer(address: str, partial: _Partial, report: Callable[[int], None]) -> None:
    """One request, from where the last one stopped if it is still the same file."""
    have, validator = partial.size(), partial.validator()
    request = urllib.request.Request(address)
    if have and validator is not None:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", validator)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        if answer.status != http.client.PARTIAL_CONTENT:
            have = 0
            partial.restart(_validator(answer.headers))
        length = answer.headers.get("Content-Length")
        expected = have + int(length) if length is not None else None
        # Unbuffered, and `read1` hands on what has come: bytes that a kill finds in a buffer are lost.
        with partial.data.open("ab", buffering=0) as out:
            while block := answer.read1(CHUNK_BYTES):
                out.write(block)
                have += len(block)
                report(have)
    if expected is not None and have != expected:
        raise http.client.IncompleteRead(b"", expected - have)


def fetch_url(rest: str, into: Path, report: Callable[[int], None]) -> Path:
    """Download `rest` and return the file. Bytes so far stay in `into/resume` for the next try."""
    partial = _Partial(into / "resume")
    last: Exception | None = None
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_S * attempt)
        try:
            _transfer(rest, partial, report)
            return partial.data
        except urllib.error.HTTPError as error:
            if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise FetchFailed(f"HTTP {error.code} {error.reason}") from error
            partial.restart(None)
            last = error
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.errno in FULL_DISK_CODES:
                raise
            last = error
    if isinstance(last, urllib.error.URLError) and partial.size() == 0:
        raise Unreachable(f"no answer: {last.reason}") from last
    raise FetchFailed(f"broke off {TRIES} times: {last!r}") from last
