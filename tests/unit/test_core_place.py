"""The output folder: an earlier replay stays until the new one is whole, and nobody else's files go."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from os1_edge.replay.place import staged
from os1_edge.replay.run import PAGE_SOUND, sounds
from os1_edge.tomlfile import BadFile


def write_replay(out: Path, word: str) -> None:
    with staged(out) as work:
        (work / "replies").mkdir()
        (work / "replies" / "01.wav").write_text(word)
        (work / "report.json").write_text(f'{{"schema": 1, "os1_version": "0", "word": "{word}"}}')
        (work / "report.html").write_text(word)
        (work / "memory.db").write_text(word)


def test_a_replay_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    write_replay(tmp_path / "out", "first")
    write_replay(tmp_path / "out", "second")
    assert (tmp_path / "out" / "report.html").read_text() == "second"
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "memory.db", "replies", "report.html", "report.json",
    ]  # fmt: skip


def test_a_replay_that_fails_leaves_the_earlier_one(tmp_path: Path) -> None:
    write_replay(tmp_path / "out", "first")

    def fail() -> None:
        with staged(tmp_path / "out") as work:
            (work / "report.html").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "out" / "report.html").read_text() == "first"
    assert not list((tmp_path / "out").glob(".replay-*"))


def test_a_killed_replay_is_cleared_away_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "out" / ".replay-killed").mkdir(parents=True)
    write_replay(tmp_path / "out", "next")
    assert not list((tmp_path / "out").glob(".replay-*"))


@pytest.mark.parametrize("name", ["report.json", "memory.db", "replies", "thesis.txt"])
def test_what_is_not_a_replay_is_not_touched(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"mine": true}')
    with pytest.raises(BadFile, match="holds other files"), staged(tmp_path):
        pass
    assert (tmp_path / name).read_text() == '{"mine": true}'


def test_a_file_among_the_replies_that_is_no_reply_stays(tmp_path: Path) -> None:
    write_replay(tmp_path / "out", "first")
    (tmp_path / "out" / "replies" / "thesis.txt").write_text("mine")
    write_replay(tmp_path / "out", "second")
    assert (tmp_path / "out" / "replies" / "thesis.txt").read_text() == "mine"


def test_the_page_holds_replies_until_it_is_full(tmp_path: Path) -> None:
    (tmp_path / "replies").mkdir()
    for name in ("01.wav", "02.wav", "03.wav"):
        (tmp_path / "replies" / name).write_bytes(bytes(PAGE_SOUND // 2))
    turns = [SimpleNamespace(reply_file=f"replies/0{n}.wav") for n in (1, 2, 3)]
    made: Any = SimpleNamespace(turns=[SimpleNamespace(reply_file=None), *turns])
    assert list(sounds(made, tmp_path)) == ["replies/01.wav", "replies/02.wav"]


def test_the_routes_of_an_earlier_replay_do_not_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for routes in ("{}", None):
        with staged(out) as work:
            for name in ("report.html", "memory.db"):
                (work / name).write_text("x")
            (work / "report.json").write_text('{"schema": 1, "os1_version": "0"}')
            (work / "replies").mkdir()
            if routes is not None:
                (work / "routes.json").write_text(routes)
        assert (out / "routes.json").exists() == (routes is not None)
