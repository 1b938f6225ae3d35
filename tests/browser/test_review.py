"""The memory's page without a companion, in headless Chromium: what a choice would lose is asked first."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import memories
import numpy as np
import pytest
from memories import KEY, say

from os1_edge.remember.choices import Choices
from os1_edge.remember.memory import Memory
from os1_edge.remember.store import Store
from os1_edge.review.api import Review
from os1_edge.see.image import decode_image
from os1_edge.web.glasses import BrowserGlasses
from os1_edge.web.pairing import Doors
from os1_edge.web.run import HERE
from os1_edge.web.server import make_app, served

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install 'os1[dev]'"
)
WAIT_MS = 60_000


class Meanings:
    """An embedder to which no two texts are alike."""

    name = "fake"

    def one(self, text: str) -> Any:
        return memories.meaning(text)

    def many(self, texts: list[str]) -> Any:
        return np.stack([memories.meaning(text) for text in texts])


@contextmanager
def reviewed(folder: Path) -> Iterator[tuple[str, Review]]:
    """The address, code included, of the page of a memory of two turns, years old; served by a thread."""
    store = memories.new(folder)
    say(store, "t1", "The key is in the jar.", 0)
    say(store, "t2", "The car is on level three.", 5)
    store.close()
    embedder: Any = Meanings()
    file = folder / "memory.db"
    memory = Memory(Store(file, KEY), embedder)
    review = Review.of(memory, embedder, file, KEY, folder / "turns.jsonl", Choices())
    doors, loop, up = Doors(), asyncio.new_event_loop(), threading.Event()
    found: list[str] = []

    async def serve() -> None:
        app = make_app(None, BrowserGlasses(decode_image), doors, frozenset(HERE), review)
        async with served(app, ["127.0.0.1"], 0, None) as port:
            found.append(f"http://localhost:{port}/#{doors.code}")
            up.set()
            await asyncio.Event().wait()

    task = loop.create_task(serve())
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.wait([task])))
    thread.start()
    try:
        assert up.wait(60)
        yield found[0], review
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
        memory.close()


def test_a_shorter_keeping_says_what_goes_and_can_be_undone_on_the_spot(
    chromium_path: str, tmp_path: Path
) -> None:
    with (
        reviewed(tmp_path) as (address, review),
        sync_api.sync_playwright() as play,
        play.chromium.launch(
            executable_path=chromium_path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        ) as browser,
    ):

        def kept() -> int:
            return len(review.memory.store.turns())

        page = browser.new_page()
        page.set_default_timeout(WAIT_MS)
        page.goto(address)
        page.click("nav button:has-text('Forget and keep')")
        page.select_option("#keep_turns_days", "30")
        page.click("form button:has-text('Save')")
        page.wait_for_selector("dialog[open]:has-text('This goes: 2 turns.')")
        assert kept() == 2
        page.click("dialog button:has-text('Keep')")
        assert kept() == 2
        page.click("form button:has-text('Save')")
        page.click("dialog button:has-text('Forget')")
        page.wait_for_selector("#toast:has-text('Saved. Forgotten: 2 turns.')")
        assert kept() == 0
        page.click("#toast button:has-text('Undo')")
        page.wait_for_selector("#toast:has-text('Back again: 2 turns.')")
        page.wait_for_function("document.getElementById('keep_turns_days')?.value === ''")
        assert kept() == 2
        page.select_option("#keep_events_days", "30")  # nothing of it is there to be lost: nothing is asked
        page.click("form button:has-text('Save')")
        page.wait_for_selector("#toast:has-text('Saved.')")
