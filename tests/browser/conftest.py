"""A Chromium, and a living companion whose page it opens."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Where there is one."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium on PATH: install the Debian package `chromium` to test the page in a browser")


@pytest.fixture(scope="module")
def launch(chromium_path: str) -> Iterator[Callable[..., Any]]:
    """Starts a Chromium, with more arguments."""
    args = ["--no-sandbox", "--autoplay-policy=no-user-gesture-required", "--disable-dev-shm-usage"]
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install 'os1[dev]'"
    )
    with sync_api.sync_playwright() as play:
        yield lambda *more: play.chromium.launch(executable_path=chromium_path, args=[*args, *more])


@pytest.fixture(scope="module")
def chromium(launch: Callable[..., Any]) -> Iterator[Any]:
    browser = launch()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def companion(tmp_path_factory: pytest.TempPathFactory, pulled: Callable[..., Path]) -> Iterator[str]:
    """The address of a living companion's page, code included."""
    for name in (
        "silero-vad",
        "smart-turn-v3.2",
        "whisper-tiny.en",
        "qwen2.5-0.5b",
        "piper-joe",
        "minilm-l6",
    ):
        pulled(name)
    folder = tmp_path_factory.mktemp("wearer")
    command = [sys.executable, "-m", "os1_edge", "run", "--browser", "--port", "0"]
    environ = {**os.environ, "OS1_KEY_FILE": str(folder / "key"), "PYTHONUNBUFFERED": "1"}
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--memory", str(folder / "memory.db")], stdout=out, stderr=out, env=environ
        )
    try:
        address = None
        for _ in range(600):
            if (address := re.search(r"open (http://\S+)", log.read_text("utf-8", "replace"))) is not None:
                break
            assert process.poll() is None, log.read_text("utf-8", "replace")
            time.sleep(0.2)
        assert address is not None
        yield address[1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, log.read_text("utf-8", "replace")[-2000:]
