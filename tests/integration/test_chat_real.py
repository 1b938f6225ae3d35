"""``os1 chat`` with the real language model and the real memory, as somebody at a terminal has it."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from os1_edge.remember.key import load_or_make
from os1_edge.remember.store import Store

pytestmark = pytest.mark.models

OS1 = (sys.executable, "-c", "from os1_edge.cli import main; main()", "chat")


@pytest.fixture
def machine(tmp_path: Path, pulled: Callable[[str], Path]) -> dict[str, str]:
    """An environment with the models and a home of its own."""
    pulled("qwen2.5-0.5b")
    pulled("minilm-l6")
    (tmp_path / "tmp").mkdir()
    return {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "OS1_KEY_FILE": str(tmp_path / "key"),
        "TMPDIR": str(tmp_path / "tmp"),
    }


def chatted(machine: dict[str, str], *options: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OS1, *options], input=typed, capture_output=True, text=True, env=machine, timeout=200, check=False
    )


SCRIPT = """# What is told is known, what was forgotten is not.
I am allergic to peanuts.
What am I allergic to?
repeat that
What do you know about me?
forget everything about peanuts
yes
What am I allergic to?
mute
Can you hear me?
unmute
Was weißt du über mich?
"""


def test_a_script_is_talked_through_with_the_real_model(machine: dict[str, str], tmp_path: Path) -> None:
    script, memory = tmp_path / "talk.txt", tmp_path / "memory.db"
    script.write_text(SCRIPT)
    ran = chatted(
        machine,
        "--script",
        str(script),
        "--memory",
        str(memory),
        "--json",
        "--trace",
        "--now",
        "2026-03-02T10:00",
    )
    assert ran.returncode == 0, ran.stderr
    turns = [json.loads(line) for line in ran.stdout.splitlines()]
    replies = [turn["reply"] for turn in turns]
    assert [turn["heard"] for turn in turns] == [
        line for line in SCRIPT.splitlines()[1:] if line not in ("unmute", "Can you hear me?")
    ]
    assert "peanut" in replies[1].lower()
    assert turns[1]["recalled"][0]["text"] == "I am allergic to peanuts."
    assert [call["task"] for call in turns[1]["calls"] if call["task"] == "reply"] == ["reply"]
    assert replies[2] == replies[1]
    assert replies[3] == "You are allergic to peanuts."
    assert "Say yes" in replies[4]
    assert replies[5].startswith("Forgotten.")
    assert "peanut" not in replies[6].lower(), "forgotten: also by the conversation"
    assert "unmute" in replies[7]
    assert "hears nothing" in ran.stderr
    assert replies[8] == "Ich weiß noch nichts über dich."
    store = Store(memory, load_or_make(Path(machine["OS1_KEY_FILE"])))
    assert not any("peanut" in turn.heard + turn.reply for turn in store.turns())
    store.close()


def test_lines_piped_in_are_answered_and_the_end_of_them_ends_it(
    machine: dict[str, str], tmp_path: Path
) -> None:
    ran = chatted(machine, "--persona", "plain", typed="Are you online?\nWhat is your name?")
    assert ran.returncode == 0, ran.stderr
    assert "os-1  No. I have no server" in ran.stdout
    assert "I am Watson" in ran.stdout, "the last line needs no end of line"
    assert list((tmp_path / "tmp").iterdir()) == [], "the memory of a passing chat is gone"


def test_ctrl_c_at_a_terminal_ends_it_too(machine: dict[str, str]) -> None:
    terminal, theirs = pty.openpty()
    chat = subprocess.Popen(OS1, stdin=theirs, stdout=theirs, stderr=theirs, env=machine)
    os.close(theirs)
    try:
        shown = b""
        while shown.count(b"you ") < 1:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"are you online?\n")
        while b"os-1  No." not in shown or not shown.endswith(b"you   "):
            shown += os.read(terminal, 4096)
        chat.send_signal(signal.SIGINT)
        assert chat.wait(timeout=60) == 0
    finally:
        chat.kill()
        os.close(terminal)
    assert b"Traceback" not in shown


def test_ctrl_c_ends_it_without_a_word_of_complaint(machine: dict[str, str], tmp_path: Path) -> None:
    chat = subprocess.Popen(
        OS1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=machine
    )
    try:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write("Are you online?\n")
        chat.stdin.flush()
        assert chat.stdout.readline() == "you   Are you online?\n"
        assert chat.stdout.readline().startswith("os-1  No.")
        chat.send_signal(signal.SIGINT)
        _, complaint = chat.communicate(timeout=60)
    finally:
        chat.kill()
    assert (chat.returncode, complaint) == (0, "")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_reader_that_goes_away_ends_it_and_what_was_said_is_kept(
    machine: dict[str, str], tmp_path: Path
) -> None:
    memory = tmp_path / "memory.db"
    chat = subprocess.Popen(
        [*OS1, "--memory", str(memory)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=machine,
    )  # fmt: skip
    try:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write("What time is it?\nWho are you?\nWhat day is it?\n")
        chat.stdin.flush()
        assert chat.stdout.readline() == "you   What time is it?\n"
        chat.stdout.close()
        _, complaint = chat.communicate(timeout=60)
    finally:
        chat.kill()
    assert (chat.returncode, complaint) == (1, "")
    store = Store(memory, load_or_make(Path(machine["OS1_KEY_FILE"])))
    assert [turn.heard for turn in store.turns()][:1] == ["What time is it?"]
    store.close()


def test_on_a_full_disk_what_is_not_kept_is_told_and_what_was_kept_stays(
    machine: dict[str, str], tmp_path: Path
) -> None:
    memory = tmp_path / "memory.db"
    assert chatted(machine, "--memory", str(memory), typed="What time is it?").returncode == 0
    room = memory.stat().st_size
    ran = subprocess.run(
        [*OS1, "--memory", str(memory)], input="Who are you?\n" * 12, capture_output=True, text=True,
        env=machine, timeout=200, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )  # fmt: skip
    assert ran.returncode == 1
    assert "not kept: the memory cannot be written: make room" in ran.stdout
    assert "os1: of the lines, " in ran.stderr
    assert "Traceback" not in ran.stderr
    store = Store(memory, load_or_make(Path(machine["OS1_KEY_FILE"])))
    heard = [turn.heard for turn in store.turns()]
    assert heard[0] == "What time is it?"
    assert len(heard) == 1 + ran.stdout.count("os-1") - ran.stdout.count("not kept")
    store.close()
