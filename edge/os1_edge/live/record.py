"""What a live companion tells: to whoever watches (a page, a terminal), and a log of its turns in numbers."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from os1_edge.app import Observer, TurnTrace
from os1_edge.events import RATE, PartialTranscript, SeenFrame
from os1_edge.see.scene import SceneDescription

log = logging.getLogger(__name__)

Watcher = Callable[[dict[str, Any]], None]
"""Is given each event; must return at once."""

WATCHERS = 8
"""Pages and terminals that may watch at once."""

LOG_BYTES = 1_000_000
"""The log of turns: about five thousand of them; the older half goes when it is full."""

DURATIONS = ("asr_s", "final_text_s", "recall_s", "first_token_s", "first_clause_s", "first_audio_s")


KEPT = ("scene", "looking", "link", "power")
"""Kinds of events of which the newest is kept, for a page that is opened now."""


class Watched(Observer):
    """``app.Observer`` that passes everything on to watchers and keeps the numbers."""

    def __init__(self, log_file: Path | None = None) -> None:
        """``log_file``: one JSON object a turn: when, route and seconds; never what was said."""
        self._watchers: list[Watcher] = []
        self._log_file = log_file
        self.newest: deque[TurnTrace] = deque(maxlen=20)
        """The last turns, for a page that is opened now."""
        self.latest: dict[str, dict[str, Any]] = {}
        """The newest event of each kind in ``KEPT``."""

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """``watcher`` is told from now on, until the function that this returns is called.

        Raises:
            TooManyWatchers: there are enough.
        """
        if len(self._watchers) >= WATCHERS:
            raise TooManyWatchers(f"{WATCHERS} are watching already; close a page")
        self._watchers.append(watcher)

        def leave() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return leave

    def tell(self, event: dict[str, Any]) -> None:
        """Passes ``event`` on. A watcher that fails is left out."""
        if event["kind"] in KEPT:
            self.latest[event["kind"]] = event
        for watcher in tuple(self._watchers):
            try:
                watcher(event)
            except Exception as e:
                log.warning("a watcher failed and is left out: %s", type(e).__name__)
                self._watchers.remove(watcher)

    def frame_described(self, frame: SeenFrame, description: SceneDescription) -> None:
        """See ``Observer``."""
        self.tell({"kind": "scene", "at_s": frame.at_s, "sentence": description.sentence})

    def partly_heard(self, partial: PartialTranscript) -> None:
        """See ``Observer``."""
        words = f"{partial.stable} {partial.tentative}".strip()
        self.tell({"kind": "partial", "turn_id": partial.turn_id, "text": words})

    def being_said(self, trace: TurnTrace, clauses: Sequence[str]) -> None:
        """See ``Observer``."""
        words = {"heard": trace.heard, "reply": " ".join(clauses)}
        self.tell({"kind": "saying", "turn_id": trace.ended.turn_id, **words})

    def turn_answered(self, trace: TurnTrace) -> None:
        """See ``Observer``."""
        self.newest.append(trace)
        self.tell(self.told(trace))
        self._note(trace)

    def forgot(self) -> None:
        """See ``Observer``."""
        self.newest.clear()
        self.latest.pop("scene", None)
        self.tell({"kind": "forgot"})

    @staticmethod
    def told(trace: TurnTrace) -> dict[str, Any]:
        """A turn as a watcher is told of it."""
        return {
            "kind": "turn",
            "turn_id": trace.ended.turn_id,
            "heard": trace.heard,
            "reply": trace.reply,
            "interrupted": trace.interrupted,
            "route": trace.route,
            "reason": trace.route_reason,
            "voice_to_voice_s": voice_to_voice_s(trace),
            "failed": trace.failed,
        }

    def _note(self, trace: TurnTrace) -> None:
        if self._log_file is None:
            return
        row: dict[str, Any] = {"time": datetime.now().isoformat(timespec="seconds"), "route": trace.route}
        row |= {"voice_to_voice_s": voice_to_voice_s(trace), "failed": trace.failed}
        row |= {name: getattr(trace, name) for name in DURATIONS}
        try:
            append_bounded(self._log_file, json.dumps(_rounded(row)), LOG_BYTES)
        except OSError as e:
            log.warning("the log of turns cannot be written: %s", e.strerror)


class TooManyWatchers(Exception):
    """No more can watch."""


def voice_to_voice_s(trace: TurnTrace) -> float | None:
    """Seconds from the wearer's last sample to the reply's first; ``None`` where nothing was spoken."""
    return None if trace.spoke_at_s is None else trace.spoke_at_s - trace.ended.end / RATE


def append_bounded(file: Path, line: str, most_bytes: int) -> None:
    """Appends ``line``; the older half of the file goes when it is above ``most_bytes``."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and file.stat().st_size > most_bytes:
        lines = file.read_text("utf-8", "replace").splitlines()
        kept = file.with_name(file.name + ".new")
        kept.write_text("\n".join(lines[len(lines) // 2 :]) + "\n", "utf-8")
        kept.replace(file)
    with file.open("a", encoding="utf-8") as out:
        out.write(line + "\n")


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items() if v is not None}
