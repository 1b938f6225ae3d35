"""The page of a replay: complete, well formed, closed to the network, and never run by what it shows."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from os1_edge.replay.page import render, scale_for, segments, stages, write_page
from os1_edge.replay.report import Latency, Report

START = datetime(2026, 5, 12, 8, 14)
SCENES = [
    "a desk with a laptop and a mug",
    "a street with two cars",
    "a kitchen, a bottle on the table",
    "a dark room",
]
SAID = [
    ("Good morning, what's on for today?", "Good morning. You meet Ana at ten, and the bread is out."),
    ("Remind me to call my sister Lena tonight.", "I will. You said she likes calls after eight."),
    ("Where did I leave my keys?", "I last saw them beside the blue mug on your desk."),
    ("I really don't like coriander.", "Noted: no coriander for you."),
    ("Is this the bus to the harbour?", "The sign says line 12, so yes, it goes to the harbour."),
    ("How is the weather looking?", "I cannot look that up offline; the sky ahead of you is grey."),
    ("I go running by the river on Tuesdays.", "That is a good habit, I will keep Tuesdays in mind."),
    ("What did Ana say about the budget?", "She asked you to send the new numbers before Friday."),
    ("Which wine should I bring for dinner?", "Lena likes dry white wine, and you wanted something light."),
    ("Thank you, good night.", "Good night. You did well today."),
]
HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)> ' onload='x",
    "</title></style></script><b>&amp; $title ${n} <!-- part: page -->",
    "emoji 👩🏽‍🚀🔥, RTL שלום עולם مرحبا \u202egnp.exe, NUL \x00 and \x1b[31m",
    "w" * 5000,
    "many words " * 455,
]


def latency(n: int, realtime: bool = True) -> dict[str, float]:
    known = {"pause_s": 0.42 + n % 3 * 0.11, "asr_s": 0.21 + n % 4 * 0.05, "recall_s": 0.006 + n * 0.001}
    known |= {"first_token_s": 0.31 + n % 5 * 0.12, "first_clause_s": 0.14 + n % 3 * 0.06}
    known |= {"first_audio_s": 0.09 + n % 2 * 0.03}
    return known | ({"voice_to_voice_s": sum(known.values()) + 0.05 * (n % 3)} if realtime else {})


def turn(n: int, **other: Any) -> dict[str, Any]:
    at = 6.0 + n * 16
    said, reply = SAID[n % len(SAID)]
    fields = {
        "turn_id": f"t{n:04d}",
        "time": START + timedelta(seconds=at, hours=2 * (n // 4)),
        "start_s": at,
    }
    fields |= {"end_s": at + 2.6, "heard": said, "reference": said, "reply": reply, "route": "local"}
    fields |= {
        "route_reason": "no link: the local model fits the budget",
        "scene": SCENES[n // 4],
        "recalled": [],
    }
    fields |= {"reply_file": f"replies/{n + 1:02d}.wav", "reply_s": 3.4, "latency": latency(n)}
    return fields | {"reply_start_s": at + 2.6 + latency(n)["voice_to_voice_s"]} | other


def day(**other: Any) -> Report:
    """A normal day of ten turns: two jumps of the clock, one misheard turn, memories, profile, events."""
    turns = [turn(n) for n in range(10)]
    turns[2]["recalled"] = [{"kind": "turn", "text": "My keys are next to the blue mug.", "score": 2.41}]
    turns[8]["recalled"] = [{"kind": "profile", "text": "Prefers dry white wine.", "score": 1.9}]
    turns[8]["recalled"] += [{"kind": "event", "text": "Spoke with Lena about dinner.", "score": 1.2}]
    turns[4] |= {
        "heard": "Is this the bus to the harbor",
        "route": "fallback",
        "route_reason": "the link was lost",
    }
    turns[5] |= {"route": "cloud", "route_reason": "predicted 0.4 s, within the budget of 1.5 s"}
    frames = [
        {"at_s": float(s), "time": START + timedelta(seconds=s, hours=2 * min(int((s + 2) // 64), 2))}
        | {"file": f"frames/{s:04d}.jpg", "scene": SCENES[min(int((s + 2) // 64), 2)], "usable": s % 37 != 0}
        for s in range(0, 170, 2)
    ]
    contexts = [
        {"at_s": t["start_s"], "time": t["time"], "scene": t["scene"], "utterance": t["heard"]}
        | {
            "location": ["home", "street", "home"][n // 4],
            "activity": ["planning", "travelling", "cooking"][n // 4],
        }
        for n, t in enumerate(turns)
    ]
    events = [
        {"start": turns[a]["time"], "end": turns[b]["time"], "location": place, "activity": "talking"}
        | {"summary": f"Talked at {place} about the day.", "contexts": b - a + 1}
        for a, b, place in ((0, 3, "home"), (4, 7, "the street"), (8, 9, "home"))
    ]
    profile = [
        {"kind": kind, "text": text, "confidence": sure, "learned": turns[n]["time"], "source_turn": source}
        for kind, text, sure, n, source in (
            ("preference", "Does not like coriander.", 0.9, 3, "t0003"),
            ("habit", "Runs by the river on Tuesdays.", 0.75, 6, "t0006"),
            ("social background", "Has a sister, Lena.", 0.6, 1, "of an earlier day"),
        )
    ]
    fields: dict[str, Any] = {
        "os1_version": "0.1.0",
        "session": {"title": "A wearer's day", "start": START, "seconds": 172.0, "mode": "realtime"},
        "machine": {
            "cpu": "Cortex-A76",
            "cores": 4,
            "memory_gb": 7.8,
            "system": "Linux 6.6",
            "python": "3.11.2",
        },
        "models": {"asr": {"file": "ggml-tiny.en-q5_1.bin", "sha256": "c77c5766f1cef09b6b7d47f21b546cbd" * 2}}
        | {
            "llm": {
                "file": "qwen2.5-0.5b-instruct-q4_k_m.gguf",
                "sha256": "1d9614638d18024d0fbb36575a15f130" * 2,
            }
        },
        "turns": turns,
        "frames": frames,
        "contexts": contexts,
        "events": events,
        "summaries": [{"start": turns[0]["time"], "end": turns[3]["time"], "text": "Planning the day."}],
        "profile": profile,
        "resources": {"rss_max_mb": 1312.4, "cpu_s": 201.3, "wall_s": 174.9},
        "word_error_rate": 0.017,
    }
    return Report.model_validate(fields | other)


class Page(HTMLParser):
    """What a browser would find: elements with their attributes, and text; raises where unbalanced."""

    VOID = frozenset({"meta", "img", "br", "link", "input", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in {tag}"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def having(self, name: str) -> list[str]:
        return [attrs[name] for _, attrs in self.elements if name in attrs]

    def count(self, tag: str, **attrs: str) -> int:
        return sum(t == tag and attrs.items() <= found.items() for t, found in self.elements)


def checked(report: Report, **options: Any) -> Page:
    """The page, after what holds of every page."""
    text = render(report, **options)
    page = Page(text)
    ids = page.having("id")
    assert len(ids) == len(set(ids))
    for link in page.having("href"):
        assert link.removeprefix("#") in ids or link.startswith("data:image/"), link
    for name, value in (pair for _, attrs in page.elements for pair in attrs.items()):
        assert not name.startswith("on")
        assert name != "style"
        assert name not in ("href", "src") or not re.match(r"[a-z]+:(?!image/|audio/)|//|/", value), value
    style = text[text.index("<style>") : text.index("</style>")]
    assert not re.search(r"url\(|@import|//", style)
    assert [t for t, _ in page.elements].count("script") == 1
    assert page.count("main") == page.count("h1") == 1
    assert not re.search(r"\bNone\b(?! in this replay)|\bnan\b", page.text)
    return page


def test_a_normal_day_shows_every_turn_with_its_reply_player_and_place_on_the_timeline() -> None:
    report = day()
    page = checked(report)
    for n, said in enumerate(report.turns, 1):
        assert said.reply in page.text
        assert said.heard in page.text or said.reference != said.heard
        assert (
            page.count("article", id=f"turn-{n}") == page.count("a", id=f"mark-{n}", href=f"#turn-{n}") == 1
        )
        assert page.count("audio", src=f"replies/{n:02d}.wav", preload="none") == 1
    assert page.text.count("same words as the reference") == 9
    assert "words that differ: 1" in page.text
    assert "$" not in page.text
    for word in (
        "1.7",
        "Has a sister, Lena.",
        "of an earlier day",
        "Planning the day.",
        "c77c5766f1ce",
        "1312.4",
    ):
        assert word in page.text


def test_twelve_turns_stay_small() -> None:
    turns = [turn(n) for n in range(12)]
    assert len(render(day(turns=turns, frames=[]))) < 64_000


def test_a_jump_of_the_clock_cuts_the_timeline_where_the_new_stretch_begins() -> None:
    found = segments(day())
    assert [(s.at_s, s.jump_s) for s in found] == [(0.0, 0.0), (62.0, 7200.0), (126.0, 7200.0)]
    assert "10:15, 2 h later" in checked(day()).text


def test_times_with_and_without_a_zone_do_not_break_the_timeline() -> None:
    aware = [turn(0, time="2026-05-12T08:14:06+02:00"), turn(1)]
    assert len(segments(day(turns=aware, frames=[]))) == 1


def test_an_empty_replay_is_a_page_that_says_so() -> None:
    nothing: dict[str, Any] = {"turns": [], "frames": [], "contexts": [], "events": [], "profile": []}
    nothing |= {"models": {}, "machine": {}, "word_error_rate": None, "summaries": None}
    page = checked(day(**nothing, session={"title": "", "start": START, "seconds": 0, "mode": "fast"}))
    assert page.text.count("None in this replay.") == 5
    assert "Word error rate" not in page.text
    assert "Summaries" not in page.text


def test_a_fast_replay_says_what_it_did_not_measure() -> None:
    turns = [turn(n, reply_start_s=None, latency=latency(n, realtime=False)) for n in range(3)]
    page = checked(day(turns=turns, session={"title": "x", "start": START, "seconds": 60, "mode": "fast"}))
    assert page.text.count("not measured in a fast replay") == 2 * 3 + 3
    assert page.having("data-c").count("hollow") == 3 + 1
    assert "reply, as it was spoken" not in page.text


def test_a_turn_of_which_little_is_known_shows_only_that() -> None:
    bare = dict.fromkeys(("reference", "scene", "reply_file", "reply_s", "reply_start_s"))
    page = checked(day(turns=[turn(0, **bare, latency={}, reply="", heard="")], frames=[]))
    for absent in ("Reference", "In view", "Recalled", "audio"):
        assert absent not in page.text
    assert "(nothing)" in page.text
    assert "(no reply)" in page.text
    assert page.count("svg", **{"class": "bar"}) == page.count("audio") == 0


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_was_said_is_shown_and_never_run(text: str) -> None:
    other = HOSTILE[(HOSTILE.index(text) + 1) % len(HOSTILE)]
    memory = {"kind": "turn", "text": text, "score": 0.5}
    said = turn(0, turn_id=text, heard=text, reference=other, reply=text, scene=text, route_reason=text)
    said |= {"recalled": [memory], "reply_file": text, "failed": text}
    place = {"time": START, "scene": text, "at_s": 0}
    span = {"start": START, "end": START}
    places = {"location": text, "activity": text}
    line = {"kind": text, "text": text, "confidence": 2, "learned": START, "source_turn": text}
    page = checked(
        day(
            os1_version=text,
            session={"title": text, "start": START, "seconds": 9, "mode": "fast"},
            machine={text: text},
            models={text: {"file": text, "sha256": text}},
            turns=[said],
            frames=[place | {"file": text, "usable": True, "thumbnail": text}],
            contexts=[place | {"utterance": text} | places],
            events=[span | places | {"summary": text, "contexts": 1}],
            summaries=[span | {"text": text}],
            profile=[line],
            unheard=[text],
        )
    )
    assert {tag for tag, _ in page.elements}.isdisjoint({"img", "b0", "iframe", "object", "image"})
    shown = " ".join(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f]", "\N{REPLACEMENT CHARACTER}", text).split())
    assert page.text.count(shown) >= 14


def test_broken_numbers_do_not_break_the_page() -> None:
    for broken in (float("inf"), float("nan"), -5.0, 1e300):
        said = turn(0, start_s=broken, end_s=broken, reply_start_s=broken, reply_s=broken)
        said |= {"latency": dict.fromkeys(latency(0), broken)}
        frame = {"at_s": broken, "time": START, "file": "f", "scene": "s", "usable": True}
        text = render(day(turns=[said, turn(1)], frames=[frame]))
        assert not re.search(r'="[^"]*\b(nan|inf)\b', text)
        assert Page(text).count("article") == 2


@pytest.mark.parametrize(
    "path", ["https://example.org/a.wav", "//example.org/a.wav", "/etc/a.wav", "../a.wav", ""]
)
def test_a_reply_outside_the_folder_is_not_linked(path: str) -> None:
    sources = checked(day(turns=[turn(0, reply_file=path)])).having("src")
    assert all(source.startswith("https%3A") for source in sources)


def test_given_sound_is_held_in_the_page() -> None:
    page = checked(day(turns=[turn(0)]), audio={"replies/01.wav": b"RIFF"})
    assert page.having("src") == ["data:audio/wav;base64,UklGRg=="]


def test_thumbnails_are_drawn_only_if_they_are_pictures() -> None:
    frame = {"at_s": 1.0, "time": START, "file": "f", "scene": "s", "usable": True}
    good, bad = "data:image/jpeg;base64,/9j/4AA=", "data:text/html;base64,PGI+"
    frames = [frame | {"thumbnail": bad}, frame | {"at_s": 4.0, "thumbnail": good}]
    assert checked(day(frames=frames)).count("image") == 1


def test_the_policy_names_the_style_and_the_script_of_this_page_alone() -> None:
    policy = next(v for v in checked(day()).having("content") if "default-src" in v)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search("https?:", policy)


def test_the_jumps_reach_the_script_as_json() -> None:
    (cuts,) = checked(day()).having("data-cuts")
    assert json.loads(cuts)[1] == [62.0, "2026-05-12T10:15:02"]


def test_stages_that_overlap_leave_no_rest() -> None:
    assert stages(Latency(asr_s=0.4, recall_s=0.1, voice_to_voice_s=0.3)).keys() == {
        "asr",
        "recall",
        "voice to voice",
    }
    assert stages(Latency(asr_s=0.2, voice_to_voice_s=0.5))["other"] == pytest.approx(0.3)
    assert stages(Latency()) == {}


def test_the_time_from_the_first_token_to_the_first_clause_is_a_stage_of_its_own() -> None:
    whole = Latency.model_validate(latency(0))
    assert list(stages(whole))[3:6] == ["first token", "first clause", "first audio"]
    assert "other" not in stages(whole)
    page = checked(day(turns=[turn(0)]))
    assert page.having("data-c").count("first clause") == 3  # in the bar, its legend and the table
    assert "first token to the first clause complete" in page.text
    for palette in (style := render(day()).split("<style>")[1]).split("--token:")[1:]:
        assert palette.split(";")[1].startswith("--clause:#")
    assert '[data-c="first clause"]{fill:var(--clause)' in style


def test_what_no_turn_heard_is_shown_and_else_nothing_is_said_of_it() -> None:
    missed = ["Where did I put my umbrella?", "<b>Stop.</b>"]
    page = checked(day(unheard=missed))
    assert "Said, but not heard: 2" in page.text
    for said in missed:
        assert said in page.text
    assert "not heard" not in checked(day()).text
    assert "not heard: 1" in checked(day(turns=[], frames=[], unheard=["Hello."])).text


def test_a_turn_that_failed_says_why_on_its_card() -> None:
    nothing = {"heard": "", "reply": "", "reply_file": None, "reply_s": None, "reply_start_s": None}
    dropped = turn(1, **nothing, latency={}, route_reason="", failed="more than 8 turns waited")
    broken = turn(2, latency={}, failed="MemoryError")
    page = checked(day(turns=[turn(0), dropped, broken]))
    assert "1 local, 2 failed" in page.text
    assert "Failed more than 8 turns waited" in page.text
    assert "Failed MemoryError" in page.text
    assert page.text.count("Failed") == 2
    assert page.count("b", **{"class": "route"}) == 2, "no route was chosen for the dropped turn"
    assert page.count("article") == 3


def test_a_reply_by_rule_is_counted_as_such() -> None:
    assert "1 local, 1 rule" in checked(day(turns=[turn(0), turn(1, route="rule")])).text


@pytest.mark.parametrize("top", [0.0, 0.004, 0.3, 1.0, 1.72, 7.3, 99.0])
def test_a_scale_holds_what_it_must_in_few_steps(top: float) -> None:
    scale = scale_for(top)
    assert top <= scale.top
    assert 1 <= round(scale.top / scale.step) <= 6


def test_the_page_lies_beside_the_replies(tmp_path: Path) -> None:
    assert write_page(day(), tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text("utf-8") == render(day())
