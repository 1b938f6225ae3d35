"""The page as the glasses, in headless Chromium: a spoken question is answered aloud, and the memory page
shows the turn. The microphone is a recording, the companion the real one. Screenshots of every state are kept
in ``build/browser``."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'os1[dev]'")

ROOT = Path(__file__).resolve().parents[2]
MIC = ROOT / "edge" / "os1_edge" / "demo" / "morning" / "mic"
SHOTS = ROOT / "build" / "browser"
WAIT_MS = 60_000
"""A slow machine takes its time; a page that never comes there fails."""

EAR = """
// What the page plays is kept, as 16 bit samples at the context's rate; a microphone that the test feeds; and
// the page's sockets.
(() => {
  const connect = AudioNode.prototype.connect;
  window.heard = [];
  AudioNode.prototype.connect = function (to, ...rest) {
    if (to instanceof AudioDestinationNode && !(this instanceof ScriptProcessorNode)) {
      const ear = this.context.createScriptProcessor(4096, 1, 1);
      window.heardRate = this.context.sampleRate;
      ear.onaudioprocess = (e) => {
        const block = e.inputBuffer.getChannelData(0);
        if (block.some((s) => s !== 0) || window.heard.length) {
          window.heard.push(Array.from(block, (s) => Math.round(s * 32767)));
        }
      };
      connect.call(this, ear);
      connect.call(ear, to);
    }
    return connect.call(this, to, ...rest);
  };
  window.sockets = [];
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      window.sockets.push(this);
    }
  };
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    if (wanted.video) {
      const canvas = document.createElement("canvas");
      canvas.width = 640; canvas.height = 480;
      const pen = canvas.getContext("2d");
      setInterval(() => {
        pen.fillStyle = `hsl(${Date.now() / 50 % 360} 60% 60%)`;
        pen.fillRect(0, 0, 640, 480);
        pen.fillStyle = "#222";
        pen.fillRect(200, 150, 200, 150);
      }, 200);
      return canvas.captureStream(5);
    }
    const context = new AudioContext({ sampleRate: 16000 });
    const out = context.createMediaStreamDestination();
    const hum = context.createConstantSource();
    hum.offset.value = 0;
    connect.call(hum, out);
    hum.start();
    window.say = async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      const sound = await context.decodeAudioData(bytes.buffer);
      const source = context.createBufferSource();
      source.buffer = sound;
      connect.call(source, out);
      source.start();
    };
    return out.stream;
  };
})();
"""


@pytest.fixture
def page(chromium: Any, companion: str) -> Iterator[Any]:
    """A page on the companion, paired; it must not complain."""
    context = chromium.new_context(viewport={"width": 1100, "height": 800})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.add_init_script(EAR)
    page.goto(companion)
    page.wait_for_selector("#start:visible")
    page.set_default_timeout(WAIT_MS)
    yield page
    context.close()
    assert complaints == []


def shot(page: Any, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SHOTS / f"{name}.png"), full_page=True)


def say(page: Any, name: str) -> None:
    page.evaluate("s => window.say(s)", base64.b64encode((MIC / name).read_bytes()).decode())


def put_on(page: Any) -> None:
    page.click("#start")
    page.wait_for_selector("#orb[data-state=listening]")


def lines(page: Any) -> list[str]:
    return [text.replace("\n", " ") for text in page.locator("#lines li").all_inner_texts()]


def spoken(page: Any, tmp_path: Path, pulled: Callable[..., Path]) -> str:
    """What the page has played, by the recogniser."""
    from os1_edge.device.sound import blocks
    from os1_edge.hear.files import transcript
    from os1_edge.hear.recogniser import make_recogniser
    from os1_edge.hear.vad import SileroVad

    sound = np.asarray(page.evaluate("window.heard.flat()"), np.int16)
    wav = tmp_path / "heard.wav"
    soundfile.write(wav, sound, page.evaluate("window.heardRate"))
    ears = make_recogniser("whisper", pulled("whisper-tiny.en"), "en", 2)
    _, segments = transcript(blocks(wav), ears, SileroVad(pulled("silero-vad")))
    return " ".join(s.text for s in segments)


def test_a_spoken_question_is_answered_aloud_shown_remembered_and_can_be_forgotten(
    page: Any, tmp_path: Path, pulled: Callable[..., Path]
) -> None:
    shot(page, "1-ready")
    put_on(page)
    shot(page, "2-listening")
    say(page, "02.wav")  # "Please remember that I am allergic to peanuts."
    page.wait_for_selector("#orb[data-state=hearing]")
    shot(page, "3-hearing")
    page.wait_for_selector("#orb[data-state=speaking]")
    page.wait_for_function("document.querySelector('#saying').textContent")
    shot(page, "4-speaking")
    assert "allergic to peanuts" in lines(page)[-1]  # before the reply is over
    page.wait_for_selector("#lines .it")
    assert not page.text_content("#saying")
    page.wait_for_selector("#orb[data-state=listening]")
    shot(page, "5-answered")
    me, it = lines(page)[-2:]
    assert "allergic to peanuts" in me
    assert page.evaluate("window.heardRate") == 24_000
    aloud = spoken(page, tmp_path, pulled)
    reply = it.removeprefix("OS-1:").split("  ")[0]
    first = re.sub(r"[^a-z ]", "", reply.lower()).split()[:3]
    assert first == re.sub(r"[^a-z ]", "", aloud.lower()).split()[: len(first)], (it, aloud)

    page.click("nav button:has-text('About you')")
    page.wait_for_selector("#views .turn:has-text('allergic to peanuts')")
    assert "% sure" in page.locator("#views .turn").first.inner_text()
    shot(page, "6-profile")
    page.click("nav button:has-text('Days')")
    page.locator("details.day > summary").first.click()
    page.wait_for_selector(".turn:has-text('allergic to peanuts')")
    shot(page, "7-days")

    held = page.locator("details.day > summary").first.inner_text()
    page.locator(".turn:has-text('allergic to peanuts') button:has-text('Forget')").first.click()
    page.wait_for_selector("dialog[open]")
    shot(page, "8-asks")
    page.click("dialog button:has-text('Forget')")
    page.wait_for_selector("#toast:has-text('Forgotten')")
    page.wait_for_function(
        "before => document.querySelector('.day > summary').innerText !== before", arg=held
    )
    shot(page, "9-forgotten")
    page.click("nav button:has-text('Now')")
    page.wait_for_function("!document.querySelector('#lines').children.length")
    page.click("nav button:has-text('Search')")
    page.fill("#query", "peanuts")
    page.click("form[role=search] button")
    page.wait_for_selector("[role=status]:has-text('ound')")
    assert page.locator(".turn:has-text('peanuts')").count() == 0
    page.click("#toast button:has-text('Undo')")
    page.wait_for_selector("#toast:has-text('Back again')")
    page.click("form[role=search] button")
    page.wait_for_selector(".turn:has-text('peanuts')")
    shot(page, "10-search")
    page.locator(".turn:has-text('peanuts') button:has-text('Forget')").first.click()
    page.click("dialog button:has-text('Forget')")
    page.wait_for_selector("#toast:has-text('Forgotten')")
    page.click("#toast button:has-text('Close')")
    page.click("nav button:has-text('Forget and keep')")
    page.click("button:has-text('Make it final now')")
    page.wait_for_selector("dialog[open]")  # the last way back is not shut by one slip
    shot(page, "17-asks-to-make-final")
    page.click("dialog button:has-text('Keep')")
    page.click("#views p button:has-text('Undo')")
    page.wait_for_selector("#views p:has-text('Nothing.')")
    for tab, name in (("Forget and keep", "11-keeping"), ("Numbers", "12-numbers")):
        page.click(f"nav button:has-text('{tab}')")
        page.wait_for_selector("#views h3")
        shot(page, name)


def test_speaking_over_the_reply_cuts_it(page: Any) -> None:
    put_on(page)
    before = page.locator("#lines .it").count()
    say(page, "02.wav")
    page.wait_for_selector("#orb[data-state=speaking]")
    say(page, "03.wav")
    page.locator("#lines .it").nth(before).wait_for()
    assert "interrupted" in lines(page)[-1]


def test_mute_is_shown_and_nothing_is_heard_while_it_holds(page: Any) -> None:
    put_on(page)
    page.click("#mute")
    page.wait_for_selector("#orb[data-state=muted]")
    shot(page, "13-muted")
    before = lines(page)
    say(page, "02.wav")
    time.sleep(6)
    assert page.inner_text("#state") == "Muted"
    assert page.inner_text("#mute") == "Unmute"
    assert lines(page) == before
    page.click("#mute")
    page.wait_for_selector("#orb[data-state=listening]")


def test_an_old_page_that_finds_its_connection_again_leaves_the_glasses_to_the_new_one(
    page: Any, companion: str
) -> None:
    put_on(page)
    page.evaluate(
        """() => {
          window.later = [];
          window.setTimeout = (work) => window.later.push(work);
          window.sockets.at(-1).close();
        }"""
    )
    page.wait_for_selector("#link:has-text('trying again')")
    new = page.context.new_page()
    new.add_init_script(EAR)
    new.goto(companion)
    put_on(new)
    page.evaluate("window.later.forEach((work) => work())")
    page.wait_for_selector("#now-problem:has-text('Another page is the glasses now')")
    assert new.inner_text("#state") == "Listening"
    assert new.inner_text("#link") == "Connected"


def test_the_camera_is_dark_when_it_is_off_and_the_page_says_so(page: Any) -> None:
    assert not page.is_visible("#video")  # no black picture before there is a camera
    put_on(page)
    page.wait_for_selector("#video:visible")
    page.wait_for_selector("#route:has-text('On the device alone')")
    page.click("#capture")
    page.wait_for_selector("#state:has-text('looking away')")
    assert not page.is_visible("#video")
    assert page.inner_text("#scene") == "It looks away."
    assert page.evaluate("document.querySelector('#video').srcObject.getVideoTracks()[0].enabled") is False
    shot(page, "16-looking-away")
    page.click("#capture")
    page.wait_for_selector("#video:visible")
    assert page.inner_text("#state") == "Listening"


def test_the_page_works_on_a_phone_and_by_keyboard(chromium: Any, companion: str) -> None:
    context = chromium.new_context(viewport={"width": 375, "height": 667}, has_touch=True)
    page = context.new_page()
    page.add_init_script(EAR)
    page.goto(companion)
    page.wait_for_selector("#start:visible")
    shot(page, "14-phone")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id")
        )
    assert "Put the glasses on" in reached
    assert "Days" in reached
    context.close()


def test_the_page_is_small_and_tells_when_it_was_first_usable(chromium: Any, companion: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(companion)
    page.wait_for_selector("#start:visible")
    numbers = page.evaluate(
        """() => {
          const loaded = performance.getEntries().filter((entry) => "transferSize" in entry);
          return {
            bytes: loaded.reduce((sum, entry) => sum + entry.transferSize, 0),
            first_usable_s: performance.getEntriesByName("usable")[0].startTime / 1000,
          };
        }"""
    )
    context.close()
    SHOTS.mkdir(parents=True, exist_ok=True)
    (SHOTS / "page.json").write_text(json.dumps(numbers))
    print(f"page: {numbers['bytes'] / 1000:.0f} kB, first usable after {numbers['first_usable_s']:.2f} s")
    assert 20_000 < numbers["bytes"] <= 300_000


def test_who_has_no_code_is_asked_for_it(chromium: Any, companion: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(companion.partition("#")[0])
    page.wait_for_selector("#code:visible")
    page.fill("#code", "aaaa-aaaa")
    page.click("#pair-form button")
    page.wait_for_selector("#pair-problem:has-text('not the code')")
    shot(page, "15-pairing")
    page.fill("#code", companion.partition("#")[2])
    page.click("#pair-form button")
    page.wait_for_selector("#start:visible")
    context.close()


def test_no_serious_fault_of_accessibility(page: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'os1[dev]'").Axe()
    views = ["Now", "Days", "About you", "Search", "Forget and keep", "Numbers"]
    for view in views:
        page.click(f"nav button:has-text('{view}')")
        page.wait_for_timeout(300)
        found = axe.run(
            page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]}
        ).response
        serious = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
        assert serious == [], (view, [(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in serious])


def test_the_browsers_own_microphone_and_camera_once_they_are_allowed(
    launch: Callable[..., Any], companion: str, tmp_path: Path
) -> None:
    speech, rate = soundfile.read(MIC / "02.wav", dtype="float32")
    quiet = np.zeros(4 * rate, np.float32)
    soundfile.write(tmp_path / "mic.wav", np.concatenate([quiet, speech, quiet]), rate, "PCM_16")
    browser = launch(
        "--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={tmp_path}/mic.wav%noloop"
    )
    try:
        context = browser.new_context(viewport={"width": 1100, "height": 800})
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.goto(companion)
        page.click("#start")
        page.wait_for_selector("#now-problem:has-text('was not allowed to use the microphone')")
        shot(page, "18-not-allowed")
        before = page.locator("#lines .it").count()
        context.grant_permissions(["microphone", "camera"])
        page.click("#start")
        page.wait_for_selector("#orb[data-state=hearing]")
        assert page.evaluate("document.querySelector('#video').videoWidth") > 0
        page.locator("#lines .it").nth(before).wait_for()
        assert "allergic to peanuts" in lines(page)[-2]
        shot(page, "19-its-own-devices")
    finally:
        browser.close()
