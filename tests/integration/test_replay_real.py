"""A wearer's morning through the real models: what is heard, answered, remembered and written down."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from bisect import bisect
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from os1_edge.cli import main
from os1_edge.config import Config
from os1_edge.faculties import model_names
from os1_edge.remember.store import BadMemory, Store
from os1_edge.replay.run import replay

pytestmark = pytest.mark.models

KEY = bytes(range(32))

FIELDS: dict[str, tuple[set[str], set[str]]] = {
    # part: (always there, there where it applies)
    "": (
        {
            "schema", "os1_version", "session", "machine", "models", "turns", "frames", "contexts", "events",
            "profile", "resources",
        },
        {"summaries", "word_error_rate", "unheard", "eye"},
    ),
    "session": ({"title", "start", "seconds", "mode"}, set()),
    "resources": ({"rss_max_mb", "cpu_s", "wall_s"}, set()),
    "turns": (
        {
            "turn_id", "revision", "time", "start_s", "end_s", "heard", "reply", "route", "route_reason",
            "recalled", "latency",
        },
        {
            "reference", "scene", "looked_at", "reply_file", "reply_s", "reply_start_s", "failed", "took_up",
            "interrupted",
        },
    ),
    "frames": ({"at_s", "time", "file", "scene", "usable", "why"}, {"looked_at", "motion"}),
    "eye": ({"frames", "pupils", "fixations", "blinks", "skipped"}, set()),
    "contexts": ({"at_s", "time", "scene", "utterance", "location", "activity"}, set()),
    "events": ({"start", "end", "location", "activity", "summary", "contexts"}, set()),
    "profile": ({"kind", "text", "confidence", "learned", "source_turn"}, set()),
}  # fmt: skip

LATENCY = {"pause_s", "endpoint_s", "asr_s", "final_text_s", "recall_s", "first_audio_s"}
OF_THE_MODEL = {"first_token_s", "first_clause_s"}


@pytest.fixture(scope="module")
def report(demo_replay: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(demo_replay.json)
    return found


@pytest.fixture(scope="module")
def expect(demo_morning: Path) -> dict[str, Any]:
    return tomllib.loads((demo_morning / "expect.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def morning(demo_morning: Path) -> dict[str, Any]:
    return tomllib.loads((demo_morning / "session.toml").read_text("utf-8"))


def test_the_morning_is_heard_as_it_was_said(report: dict[str, Any], morning: dict[str, Any]) -> None:
    assert len(report["turns"]) >= 8
    assert report["word_error_rate"] <= 0.10
    assert "unheard" not in report
    said = [u["text"] for u in morning["utterance"]]
    assert [turn["reference"] for turn in report["turns"]] == said, (
        "each utterance is heard in a turn of its own"
    )
    for turn in report["turns"]:
        assert "failed" not in turn
        assert turn["reference"], turn["heard"]
        assert turn["start_s"] < turn["end_s"]
        assert 0 < turn["latency"]["pause_s"] <= turn["latency"]["endpoint_s"] < 1.2


def test_every_question_of_the_morning_is_answered_rightly(
    report: dict[str, Any], expect: dict[str, Any]
) -> None:
    replies = {turn["reference"]: turn["reply"] for turn in report["turns"]}
    wrong = {
        q["text"]: replies.get(q["text"])
        for q in expect["question"]
        if not any(re.search(p, replies.get(q["text"], ""), re.I) for p in q["reply"])
    }
    assert wrong == {}


def test_of_two_things_in_view_the_one_looked_at_is_the_answer(report: dict[str, Any]) -> None:
    """The same desk, asked about twice: only the eye tells which is meant."""
    looked = {turn["reference"]: turn.get("looked_at") for turn in report["turns"] if "looked_at" in turn}
    assert looked == {"What is this?": "a laptop", "And what is that over there?": "a computer monitor"}
    assert report["eye"]["skipped"] == 0
    assert report["eye"]["pupils"] > 0.8 * report["eye"]["frames"]


def test_what_must_be_remembered_was_not_in_view(report: dict[str, Any], expect: dict[str, Any]) -> None:
    """A memory question is given what was said then, or has it in the profile; a view question, a view."""
    turns = {turn["reference"]: turn for turn in report["turns"]}
    health = {line["source_turn"] for line in report["profile"] if line["kind"] == "health"}
    for question in expect["question"]:
        turn = turns[question["text"]]
        if question["kind"] == "view-only":
            assert turn["scene"]
        else:
            needed = [report["turns"][n - 1] for n in question["rests_on"]]
            assert needed
            assert all(then["time"] < turn["time"] for then in needed)
            given = [hit["text"] for hit in turn["recalled"]]
            lost = [t["heard"] for t in needed if t["heard"] not in given and t["turn_id"] not in health]
            assert not lost, (question["text"], given)


def test_the_morning_goes_through_four_places_and_back_to_two(
    report: dict[str, Any], expect: dict[str, Any]
) -> None:
    visits = expect["visit"]
    places = [v["place"] for v in visits]
    assert len(set(places)) == 4
    assert len(places) - len(set(places)) == 2
    for visit in visits:
        frames = [f for f in report["frames"] if visit["start_s"] <= f["at_s"] < visit["end_s"]]
        contexts = [c for c in report["contexts"] if visit["start_s"] <= c["at_s"] < visit["end_s"]]
        assert all(visit["place"] in f["file"] for f in frames)
        assert any(f["usable"] for f in frames), visit
        assert any(c["utterance"] for c in contexts), visit
        named = {c["location"] for c in contexts} - {"somewhere"}
        assert named <= {visit["place"]}, "a place is named rightly or not at all"


def test_events_follow_each_other_and_hold_every_context(report: dict[str, Any]) -> None:
    events = report["events"]
    assert len(events) >= 4
    assert sum(e["contexts"] for e in events) == len(report["contexts"])
    assert all(e["start"] <= e["end"] for e in events)
    assert all(a["end"] <= b["start"] for a, b in pairwise(events))
    assert {"street", "office"} <= {e["location"] for e in events}


def test_no_event_spans_two_visits(
    report: dict[str, Any], morning: dict[str, Any], expect: dict[str, Any]
) -> None:
    cuts = [(c["at_s"], c["time"]) for c in morning["cut"]]
    begins = [morning["start"], *(c[1] for c in cuts)]
    assert [0.0, *(c[0] for c in cuts)] == [v["start_s"] for v in expect["visit"]], "a cut begins each visit"
    for event in report["events"]:
        start, end = (datetime.fromisoformat(event[at]) for at in ("start", "end"))
        assert bisect(begins, start) == bisect(begins, end), event


def test_the_allergy_is_in_the_profile_with_the_turn_that_told_it(report: dict[str, Any]) -> None:
    (line,) = [p for p in report["profile"] if "peanut" in p["text"]]
    source = next(t for t in report["turns"] if t["turn_id"] == line["source_turn"])
    assert "allergic to peanuts" in source["heard"]
    assert line["kind"] == "health"
    assert line["learned"].startswith(source["time"][:16])


def test_the_wearers_clock_follows_the_cuts(report: dict[str, Any]) -> None:
    times = [datetime.fromisoformat(t["time"]) for t in report["turns"]]
    assert times == sorted(times)
    assert (times[-1] - times[0]).total_seconds() > 3 * 3600


def test_every_reply_can_be_heard(demo_replay: Any, report: dict[str, Any]) -> None:
    for turn in report["turns"]:
        samples, rate = soundfile.read(str(demo_replay.out / turn["reply_file"]))
        assert len(samples) / rate == pytest.approx(turn["reply_s"], abs=0.01)
        assert turn["reply_s"] > 0.4
        assert 0.05 < np.abs(samples).max() <= 1.0
        assert np.sqrt((samples**2).mean()) > 0.01
    assert len(list((demo_replay.out / "replies").iterdir())) == len(report["turns"])


def test_the_report_has_the_documented_fields_and_no_other(report: dict[str, Any]) -> None:
    def check(part: dict[str, Any], name: str) -> None:
        always, sometimes = FIELDS[name]
        assert always <= set(part), (name, always - set(part))
        assert set(part) <= always | sometimes, (name, set(part) - always - sometimes)
        assert None not in part.values()

    check(report, "")
    assert report["schema"] == 1
    for name in FIELDS:
        found = report.get(name, [])
        for part in found if isinstance(found, list) else [found]:
            check(part, name)
    for turn in report["turns"]:
        # No voice-to-voice without a wall clock, no token without a model.
        asked_none = turn["route"] == "rule"
        assert set(turn["latency"]) == LATENCY | (set() if asked_none else OF_THE_MODEL)
        for hit in turn["recalled"]:
            assert set(hit) == {"kind", "text", "score"}
    assert set(report["models"]) == set(model_names(Config()))
    assert all(re.fullmatch(r"[0-9a-f]{64}", m["sha256"]) for m in report["models"].values())
    assert {"cpu", "cores"} <= set(report["machine"])
    assert "data:image" not in json.dumps(report)


def test_the_page_lies_beside_the_report_and_needs_no_network(demo_replay: Any) -> None:
    page = (demo_replay.out / "report.html").read_text("utf-8")
    assert "peanuts" in page
    assert not re.search(r"""(?:src|href)=["']?https?:""", page)
    assert page.count("data:audio/wav;base64,") == len(list((demo_replay.out / "replies").iterdir()))


def test_the_wearer_sees_each_turn_as_it_is_answered(demo_replay: Any, report: dict[str, Any]) -> None:
    told = "\n".join(demo_replay.lines)
    for turn in report["turns"]:
        assert turn["heard"] in told
        assert turn["reply"] in told


def test_the_memory_opens_with_its_key_alone(
    demo_replay: Any, report: dict[str, Any], tmp_path: Path
) -> None:
    copy = shutil.copy(demo_replay.out / "memory.db", tmp_path / "memory.db")
    assert b"peanuts" not in copy.read_bytes()
    with pytest.raises(BadMemory):
        Store(copy, bytes(32))
    store = Store(copy, KEY)
    assert store._rows("SELECT count(*) FROM turns") == [(len(report["turns"]),)]
    store.close()


SHORT = """\
schema = 1
title = "Two sentences"
start = 2026-03-02T08:00:00
[[microphone]]
file = "mic/02.wav"
at_s = 0.5
[[microphone]]
file = "mic/12.wav"
at_s = 8.0
[[frame]]
file = "scene/kitchen-2.jpg"
at_s = 0.0
[[frame]]
file = "broken.jpg"
at_s = 1.0
[[frame]]
file = "scene/cafe-2.jpg"
at_s = 6.0
[memory]
seed = "earlier.jsonl"
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory, demo_morning: Path) -> Path:
    """A cut of the morning: one statement, one question about it, a damaged frame, an earlier memory."""
    folder = tmp_path_factory.mktemp("short")
    for name in ("mic/02.wav", "mic/12.wav", "scene/kitchen-2.jpg", "scene/cafe-2.jpg"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(demo_morning / name, folder / name)
    (folder / "broken.jpg").write_bytes((folder / "scene/cafe-2.jpg").read_bytes()[:500])
    (folder / "earlier.jsonl").write_text('{"time": "2026-02-26T19:00:00", "text": "I moved to Bath."}\n')
    (folder / "session.toml").write_text(SHORT)
    return folder


def without_durations(report: dict[str, Any]) -> dict[str, Any]:
    out = {k: v for k, v in report.items() if k not in ("resources", "machine")}
    out["session"] = {k: v for k, v in report["session"].items() if k != "mode"}
    out["turns"] = [
        {k: v for k, v in turn.items() if k not in ("latency", "reply_start_s")} for turn in report["turns"]
    ]
    return out


def without_replies(report: dict[str, Any]) -> dict[str, Any]:
    """Nor the length of a reply's sound, which differs a little each time the voice speaks."""
    out = without_durations(report)
    out["turns"] = [
        {k: v for k, v in turn.items() if k not in ("reply", "reply_s", "interrupted")}
        for turn in out["turns"]
    ]
    return out


@pytest.fixture(scope="module")
def three_times(
    tmp_path_factory: pytest.TempPathFactory, short: Path, pulled: Callable[[str], Path]
) -> list[dict[str, Any]]:
    """The short session replayed fast, fast again by the command line, and on the wall clock."""
    for name in model_names(Config()):
        pulled(name)
    out = tmp_path_factory.mktemp("three")
    (out / "key").write_text(KEY.hex())
    (out / "key").chmod(0o600)
    found: list[dict[str, Any]] = []
    for name, realtime in (("a", False), ("c", True)):
        replay(short, out / name, Config(), KEY, realtime=realtime, tell=lambda line: None)
        found.append(json.loads((out / name / "report.json").read_text("utf-8")))
    command = CliRunner(env={"OS1_KEY_FILE": str(out / "key")})
    result = command.invoke(main, ["replay", str(short), "--out", str(out / "b"), "--json"])
    assert result.exit_code == 0, result.output
    assert result.stdout == (out / "b" / "report.json").read_text("utf-8")
    found.insert(1, json.loads(result.stdout))
    return found


def test_the_same_recording_gives_the_same_answers(three_times: list[dict[str, Any]]) -> None:
    assert without_durations(three_times[0]) == without_durations(three_times[1])


def test_the_wall_clock_gives_the_same_answers_and_the_latency_that_the_wearer_feels(
    three_times: list[dict[str, Any]],
) -> None:
    fast, _, real = three_times
    assert without_replies(fast) == without_replies(real)
    for turn, same in zip(real["turns"], fast["turns"], strict=True):
        # On a machine so slow that the wearer speaks into the reply, they have heard less of it.
        assert turn["reply"] == same["reply"] or turn.get("interrupted")
        assert same["reply"].startswith(turn["reply"])
        assert turn["latency"]["voice_to_voice_s"] > turn["latency"]["endpoint_s"] > 0
        assert turn["reply_start_s"] > turn["end_s"]


def test_a_damaged_frame_costs_only_itself(three_times: list[dict[str, Any]]) -> None:
    assert [f["file"] for f in three_times[0]["frames"]] == ["scene/kitchen-2.jpg", "scene/cafe-2.jpg"]
    assert len(three_times[0]["turns"]) == 2
    assert "peanut" in three_times[0]["turns"][1]["reply"].lower()


def test_a_replay_replaces_the_one_before_and_nothing_is_left_of_it(
    tmp_path: Path, short: Path, pulled: Callable[[str], Path]
) -> None:
    for name in model_names(Config()):
        pulled(name)
    silent = tmp_path / "silent"
    shutil.copytree(short, silent)
    (silent / "session.toml").write_text(
        SHORT.split("[[microphone]]")[0] + "[[frame]]\n" + 'file = "scene/cafe-2.jpg"\nat_s = 0.0\n'
    )
    out = tmp_path / "out"
    (out / "replies").mkdir(parents=True)
    (out / "replies" / "07.wav").write_text("old")
    (out / "report.json").write_text('{"schema": 1, "os1_version": "0"}')
    made = replay(silent, out, Config(), KEY, realtime=False, tell=lambda line: None)
    assert made.turns == []
    assert made.word_error_rate is None
    assert list((out / "replies").iterdir()) == []
    assert "word_error_rate" not in json.loads((out / "report.json").read_text("utf-8"))


def test_a_recording_damaged_in_its_middle_is_one_line_that_names_it(
    tmp_path: Path, demo_morning: Path, pulled: Callable[[str], Path]
) -> None:
    """Its header is whole, so that the fault shows only while it is being played."""
    for name in model_names(Config()):
        pulled(name)
    samples, rate = soundfile.read(str(demo_morning / "mic" / "02.wav"))
    noise = np.random.default_rng(1)
    samples = np.tile(samples, 8) + 0.001 * noise.standard_normal(8 * len(samples))
    soundfile.write(str(tmp_path / "a.flac"), samples, rate)
    data = bytearray((tmp_path / "a.flac").read_bytes())
    middle = len(data) // 3
    data[middle : middle + 6000] = noise.bytes(6000)
    (tmp_path / "a.flac").write_bytes(data)
    head = SHORT.split("[[microphone]]")[0]
    (tmp_path / "session.toml").write_text(head + '[[microphone]]\nfile = "a.flac"\nat_s = 0.0\n')
    command = CliRunner(env={"OS1_KEY_FILE": str(tmp_path / "key")})
    result = command.invoke(main, ["replay", str(tmp_path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stderr.splitlines()[-1].startswith(f"os1: {tmp_path / 'a.flac'}: not a sound file")
    assert "Traceback" not in result.output
