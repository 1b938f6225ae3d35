"""The page of a replay in a real browser: it opens from a folder, without a network and without an error."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import wave
from datetime import datetime, timedelta
from pathlib import Path

from os1_edge.replay.page import write_page
from os1_edge.replay.report import Report

START = datetime(2026, 5, 12, 8, 14)
HOSTILE = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=4000",
]


def browse(chromium: str, page: Path, profile: Path, *flags: str) -> tuple[str, str]:
    """What Chromium prints and logs about the page; the browser is ended whatever happens."""
    command = [chromium, *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True) as browser:
        try:
            out, log = browser.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            os.killpg(browser.pid, signal.SIGKILL)
            raise
    return out.decode(), log.decode()


def complaints(log: str) -> list[str]:
    return [line for line in log.splitlines() if "CONSOLE" in line or "Content Security Policy" in line]


def replay(folder: Path) -> Path:
    """A page of three turns, one of them hostile, with one spoken reply beside it."""
    (folder / "replies").mkdir()
    with wave.open(str(folder / "replies" / "01.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16000)
        sound.writeframes(bytes(2 * 16000))
    turns = [
        {"turn_id": f"t{n}", "time": START + timedelta(seconds=9 * n, hours=n), "start_s": 9.0 * n + 1}
        | {
            "end_s": 9.0 * n + 3,
            "heard": said,
            "reply": f"Answer {n}.",
            "route": "local",
            "route_reason": said,
        }
        | {
            "recalled": [{"kind": "turn", "text": said, "score": 0.7}],
            "latency": {"asr_s": 0.2, "recall_s": 0.01},
        }
        | {"reply_file": f"replies/{n + 1:02d}.wav", "reply_s": 1.0, "scene": said}
        for n, said in enumerate(("Good morning.", HOSTILE, "Good night."))
    ]
    picture = "data:image/gif;base64,R0lGODlhAQABAAAAACw="
    frame = {"at_s": 1, "time": START, "file": "f", "scene": HOSTILE, "usable": True, "thumbnail": picture}
    fields = {
        "os1_version": "0",
        "session": {"title": "A day", "start": START, "seconds": 30, "mode": "fast"},
        "machine": {},
        "models": {},
        "turns": turns,
        "frames": [frame],
        "contexts": [],
        "events": [],
        "profile": [],
        "resources": {"rss_max_mb": 1, "cpu_s": 1, "wall_s": 1},
    }
    return write_page(Report.model_validate(fields), folder)


def test_the_page_opens_with_its_turns_and_no_error(chromium_path: str, tmp_path: Path) -> None:
    dom, log = browse(chromium_path, replay(tmp_path), tmp_path / "profile", "--dump-dom")
    assert complaints(log) == []
    assert len(re.findall(r'<article id="turn-\d+"', dom)) == 3
    assert "<title>A day</title>" in dom
    assert 'id="playall"' in dom, "the page's own script did not run"


def test_the_page_may_play_the_replies_beside_it_and_runs_nothing_else(
    chromium_path: str, tmp_path: Path
) -> None:
    page = replay(tmp_path)
    text = page.read_text("utf-8").replace(
        'preload="none" src="replies/01.wav"', 'preload="auto" src="replies/01.wav"'
    )
    page.write_text(text.replace("<main", "<script>document.title='run'</script><main"), "utf-8")
    dom, log = browse(chromium_path, page, tmp_path / "profile", "--dump-dom")
    assert "<title>A day</title>" in dom
    refused = [line for line in complaints(log) if "Content Security Policy" in line]
    assert refused, "the strange script was not refused"
    assert not any("media" in line or ".wav" in line for line in refused)


def test_the_page_can_be_drawn_on_a_phone_and_on_paper(chromium_path: str, tmp_path: Path) -> None:
    page = replay(tmp_path)
    shot, paper = tmp_path / "phone.png", tmp_path / "page.pdf"
    browse(chromium_path, page, tmp_path / "profile", f"--screenshot={shot}", "--window-size=390,844")
    browse(chromium_path, page, tmp_path / "profile", f"--print-to-pdf={paper}")
    assert shot.stat().st_size > 5_000
    assert paper.read_bytes().startswith(b"%PDF")
