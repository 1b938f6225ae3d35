"""What a live companion tells, and keeps in numbers."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import numpy as np
import pytest

from os1_edge.app import TurnTrace
from os1_edge.events import RATE, TurnEnded, turn_ids
from os1_edge.live.notify import Notifier
from os1_edge.live.record import WATCHERS, TooManyWatchers, Watched, append_bounded


def answered(heard: str = "what is this") -> TurnTrace:
    ended = TurnEnded("t1", 0, 0, 2 * RATE, 2 * RATE, "silence", np.zeros(4, np.float32), 0)
    return TurnTrace(ended, heard=heard, reply="A mug.", spoke_at_s=2.9, first_token_s=0.25)


def test_the_log_of_turns_holds_numbers_and_no_words(tmp_path: Path) -> None:
    Watched(tmp_path / "turns.jsonl").turn_answered(answered("a secret word"))
    text = (tmp_path / "turns.jsonl").read_text("utf-8")
    row = json.loads(text)
    assert row["voice_to_voice_s"] == pytest.approx(0.9)
    assert row["first_token_s"] == 0.25
    assert "secret" not in text
    assert "mug" not in text


def test_the_log_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    file = tmp_path / "log"
    for n in range(100):
        append_bounded(file, f"line {n:03d}", 200)
    assert file.stat().st_size < 300
    assert file.read_text().splitlines()[-1] == "line 099"


def test_a_log_that_cannot_be_written_costs_no_turn(tmp_path: Path) -> None:
    (tmp_path / "turns.jsonl").mkdir()
    Watched(tmp_path / "turns.jsonl").turn_answered(answered())


def test_a_watcher_that_fails_does_not_stop_the_others() -> None:
    watched = Watched()
    got: list[str] = []

    def broken(_event: dict[str, object]) -> None:
        raise RuntimeError

    watched.watch(broken)
    leave = watched.watch(lambda event: got.append(str(event["kind"])))
    watched.turn_answered(answered())
    watched.turn_answered(answered())
    leave()
    watched.turn_answered(answered())
    assert got == ["turn", "turn"]


def test_only_so_many_watch() -> None:
    watched = Watched()
    for _ in range(WATCHERS):
        watched.watch(lambda _event: None)
    with pytest.raises(TooManyWatchers, match="close a page"):
        watched.watch(lambda _event: None)


def test_ids_of_turns_are_those_of_no_other_run() -> None:
    from datetime import datetime

    one, two = turn_ids(lambda: datetime(2026, 3, 1, 8)), turn_ids(lambda: datetime(2026, 3, 1, 9))
    made = [one(), one(), two(), two()]
    assert len(set(made)) == 4
    assert made == sorted(made)


def test_systemd_is_told_that_it_is_up(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        Notifier({"NOTIFY_SOCKET": path}).tell("READY=1")
        assert manager.recv(64) == b"READY=1"
    Notifier({"NOTIFY_SOCKET": path}).tell("READY=1")  # the manager is gone: nothing happens
    Notifier({}).tell("READY=1")
