"""What may be typed, piped or put into a script for ``os1 chat``, and what is said of what may not."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from os1_edge.app import TurnTrace
from os1_edge.chat.cli import Show, chat
from os1_edge.chat.lines import LONGEST, Line, line_of, of_input
from os1_edge.chat.show import reply_line
from os1_edge.cli import main
from os1_edge.events import TurnEnded


def read(path: Path) -> list[Line]:
    async def all_lines(descriptor: int) -> list[Line]:
        return [line async for line in of_input(descriptor)]

    with path.open("rb") as file:
        return asyncio.run(all_lines(file.fileno()))


def test_a_script_of_any_making_is_read(tmp_path: Path) -> None:
    script = tmp_path / "talk.txt"
    script.write_bytes(b"\xef\xbb\xbfhello  there\r\n\r\ngr\xc3\xbc\xc3\x9f dich\nthe last")
    assert [line.text for line in read(script)] == ["hello there", "", "grüß dich", "the last"]
    script.write_bytes(b"")
    assert read(script) == []


@pytest.mark.parametrize("data", [b"\xff\xfe\xc3(", b"are you\x00there?", b"\x1b[A", b"caf\xe9"])
def test_what_is_no_text_is_left_out_with_the_reason(data: bytes) -> None:
    line = line_of(data)
    assert line.text == ""
    assert "left out" in line.problem


@pytest.mark.parametrize("letter", ["a", "ü", "語", "🙂"])
def test_a_line_without_end_is_taken_as_far_as_it_can_be(letter: str, tmp_path: Path) -> None:
    script = tmp_path / "long.txt"
    script.write_text(f"x{letter * 300_000}\nhello", "utf-8")
    long, after = read(script)
    assert long.text == "x" + letter * (LONGEST - 1)
    assert "is long" in long.problem
    assert after == Line("hello")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--script", "nowhere.txt"), "nowhere.txt: No such file"),
        (("--script", "."), ".: Is a directory"),
        (("--now", "0001-01-01T00:00"), "from 1970 to 2099"),
        (("--now", "2026-03-02T08:30+02:00"), "without a zone"),
        (("--now", "yesterday"), "2026-03-02T08:30"),
        (("--persona", "nobody"), "no such persona"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_line_before_a_model_is_loaded(
    options: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OS1_MODELS_DIR", str(tmp_path / "no models"))
    ran = CliRunner().invoke(main, ["chat", *options])
    assert ran.exit_code in (1, 2)
    assert told in ran.output
    assert "Traceback" not in ran.output
    assert "is not here yet" not in ran.output


def test_without_standard_input_nothing_else_is_read_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Exception, match=r"standard input: it is closed.*--script"):
        chat.main([], standalone_mode=False)


def test_a_script_that_was_not_taken_whole_does_not_end_well(capsys: pytest.CaptureFixture[str]) -> None:
    show = Show(trace=False, as_json=False, asks=False)
    show.end()
    show.leave_out(3, "is not UTF-8 text and is left out")
    show.leave_out(4, "is not UTF-8 text and is left out")
    with pytest.raises(SystemExit, match="1"):
        show.end()
    shown = capsys.readouterr()
    assert shown.out == "      (line 3 is not UTF-8 text and is left out)\n", "and not one line for each"
    assert shown.err == "os1: of the lines, 2 not taken whole\n"


def test_an_answer_that_could_not_be_kept_is_shown_with_what_to_do() -> None:
    trace = TurnTrace(
        TurnEnded("t1", 0, 0, 1, 1, "typed", np.zeros(0, np.float32), 1), heard="I like tea.", reply="Nice."
    )
    trace.failed = "OperationalError"
    assert reply_line(trace).startswith("os-1  Nice. (not kept: the memory cannot be written: make room")
