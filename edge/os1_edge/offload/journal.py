"""The newest decisions and what came of them, in one small file. No word of a question or an answer."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import platformdirs

from os1_edge.offload.taken import Taken
from os1_edge.offload.totals import Totals

KEPT = 20
"""Decisions: as many as somebody reads who wants to know why it answered like that."""

LARGEST = 262_144
"""Bytes of a file that is read at most: one that is larger is not ours."""


@dataclass(slots=True)
class Journal:
    """The newest decisions; with a ``file`` they outlive the process."""

    file: Path | None = None
    status: dict[str, Any] = field(default_factory=dict)
    """The link and the estimates at the last write."""
    taken: deque[Taken] = field(default_factory=lambda: deque(maxlen=KEPT))
    totals: Totals = field(default_factory=Totals)
    """Of all since the start."""

    def note(self, taken: Taken, status: dict[str, Any]) -> None:
        """Keeps a decision."""
        self.taken.append(taken)
        self.totals.note(taken)
        self.status = status | {"totals": self.totals.told()}

    def write(self) -> None:
        """To the file, whole or not at all. Blocking; a disk that is full costs the journal, not a turn."""
        if self.file is None:
            return
        body = json.dumps({"schema": 1, "status": self.status, "taken": [asdict(t) for t in self.taken]})
        beside = self.file.with_name(self.file.name + ".new")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(body, "utf-8")
            beside.replace(self.file)
        except OSError:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


class BadJournal(Exception):
    """The file is not a journal."""


def read(file: Path) -> Journal:
    """The journal in ``file``; an empty one where there is none.

    Raises:
        BadJournal: it cannot be read or is something else.
    """
    journal = Journal(file)
    try:
        if file.stat().st_size > LARGEST:
            raise BadJournal(f"{file} is no journal of routes: too large; move it away")
        found = json.loads(file.read_text("utf-8"))
        known = {f.name for f in fields(Taken)}
        rows: Sequence[dict[str, Any]] = found["taken"]
        journal.taken.extend(Taken(**{k: v for k, v in row.items() if k in known}) for row in rows)
        journal.status = dict(found["status"])
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as e:
        raise BadJournal(f"{file} cannot be read ({type(e).__name__})") from e
    except (ValueError, KeyError, TypeError) as e:
        raise BadJournal(f"{file} is no journal of routes; move it away") from e
    return journal


def default_file() -> Path:
    """``$OS1_ROUTES_FILE``, else in the wearer's state folder."""
    named = os.environ.get("OS1_ROUTES_FILE")
    return Path(named) if named else platformdirs.user_state_path("os1") / "routes.json"


def stamp(now: datetime) -> str:
    """``now`` as it stands in a journal."""
    return now.isoformat(timespec="milliseconds")
