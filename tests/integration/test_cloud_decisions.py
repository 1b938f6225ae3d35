"""What the server decides, without a server: budgets, admission, tokens, addresses, requests."""

import hashlib
from pathlib import Path

import pytest

from os1_cloud import wire
from os1_cloud.admission import (
    Budget,
    Class,
    Load,
    Refused,
    Why,
    budget_left,
    has_room,
    late_at_its_turn,
    refusal,
    smoothed,
)
from os1_cloud.auth import BadTokens, Tokens, load_tokens
from os1_cloud.server import ServeError, binding_problem, parse_address
from os1_proto.assist.v1 import assist_pb2 as pb

IDLE = Load(busy=0, waiting=0, answer_s=4.0, first_token_s=0.5)
BUSY = Load(busy=1, waiting=1, answer_s=4.0, first_token_s=0.5)
NEW = Load(busy=1, waiting=1, answer_s=None, first_token_s=None)
LAX = Budget(first_token_s=None, total_s=100.0)


def why(refused: Refused | None) -> Why | None:
    return refused.why if refused else None


# --- budgets


@pytest.mark.parametrize(
    ("first_ms", "total_ms", "elapsed_ms", "deadline_s", "left"),
    [
        (800, 5000, 300, None, Budget(0.5, 4.7)),
        (800, 5000, 300, 2.0, Budget(0.5, 2.0)),
        (800, 5000, 0, 0.3, Budget(0.3, 0.3)),
        (0, 0, 0, None, Budget(None, 120.0)),
        (0, 0, 0, 1e9, Budget(None, 120.0)),
        (0, 4_000_000, 0, None, Budget(None, 120.0)),
        (100, 1000, 400, None, Budget(-0.3, 0.6)),
    ],
)
def test_what_is_left_of_a_budget(
    first_ms: int, total_ms: int, elapsed_ms: int, deadline_s: float | None, left: Budget
) -> None:
    found = budget_left(first_ms, total_ms, elapsed_ms, deadline_s)
    assert found.total_s == pytest.approx(left.total_s)
    assert found.first_token_s == (left.first_token_s and pytest.approx(left.first_token_s))


@pytest.mark.parametrize(
    ("budget", "load", "room", "draining", "expected"),
    [
        (LAX, BUSY, True, False, None),
        (LAX, BUSY, True, True, "draining"),
        (Budget(None, 0.0), IDLE, True, False, "expired"),
        (Budget(0.0, 9.0), IDLE, True, False, "expired"),
        (LAX, BUSY, False, False, "queue_full"),
        (LAX, IDLE, False, False, None),  # no queue at all: an idle server still answers
        (LAX, Load(1, 0, None, None), False, False, "queue_full"),
        (LAX, Load(1, 0, None, None, slots=2), False, False, None),  # there is a place
        (Budget(8.4, 100.0), BUSY, True, False, "too_late"),  # 2 answers of 4 s and 0.5 s
        (Budget(8.6, 100.0), BUSY, True, False, None),
        (Budget(4.6, 100.0), Load(2, 1, 4.0, 0.5, slots=2), True, False, None),  # two at a time
        (Budget(None, 8.4), BUSY, True, False, "too_late"),
        (Budget(0.1, 100.0), IDLE, True, False, None),  # only an answer can correct a bad guess
        (Budget(0.1, 100.0), NEW, True, False, None),  # nothing is known
    ],
)
def test_admission(budget: Budget, load: Load, room: bool, draining: bool, expected: Why | None) -> None:
    assert why(refusal(budget, load, room, draining)) == expected


def test_a_full_queue_says_when_to_come_back() -> None:
    for load, seconds in ((BUSY, 4.0), (NEW, 1.0)):
        refused = refusal(LAX, load, False, False)
        assert refused is not None
        assert refused.retry_after_s == seconds


def test_who_comes_too_late_is_told_how_late() -> None:
    refused = refusal(Budget(1.0, 9.0), BUSY, True, False)
    assert refused is not None
    assert refused.expected_s == 8.5


@pytest.mark.parametrize(
    ("kind", "waiting", "room"),
    [
        ("reply", {}, True),
        ("background", {}, True),
        ("background", {"background": 1}, False),  # two are kept for replies, one for routine
        ("routine", {"routine": 1}, True),
        ("routine", {"routine": 2}, False),
        ("reply", {"background": 1, "routine": 1}, True),
        ("reply", {"background": 1, "routine": 1, "reply": 1}, True),
        ("reply", {"reply": 3}, False),  # one is kept for routine
        ("routine", {"reply": 3}, True),
        ("routine", {"reply": 3, "routine": 1}, False),
    ],
)
def test_every_class_finds_its_share_of_the_queue(kind: Class, waiting: dict[Class, int], room: bool) -> None:
    assert has_room(kind, waiting, 4) == room


def test_a_question_whose_time_ran_out_in_the_queue_is_dropped() -> None:
    assert late_at_its_turn(Budget(1.0, 9.0), 0.9) is None
    assert why(late_at_its_turn(Budget(1.0, 9.0), 1.0)) == "expired"
    assert late_at_its_turn(Budget(None, 9.0), 8.9) is None
    assert why(late_at_its_turn(Budget(None, 9.0), 9.0)) == "expired"


def test_the_first_time_counts_whole_and_later_ones_a_quarter() -> None:
    assert smoothed(None, 8.0) == 8.0
    assert smoothed(8.0, 4.0) == 7.0


# --- tokens


def test_a_token_has_a_name_and_a_wrong_one_has_none(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# glasses\nann {hashlib.sha256(b'secret').hexdigest()}  # lent\n\n")
    tokens = load_tokens(file)
    assert tokens.who([("authorization", "Bearer secret")]) == "ann"
    for metadata in (
        None,
        [],
        [("authorization", "Bearer Secret")],
        [("authorization", "Bearer ")],
        [("authorization", "secret")],
        [("authorization", b"Bearer secret")],
        [("authorization", "Bearer wrong"), ("authorization", "Bearer secret")],
        [("authorization", "Bearer secret"), ("authorization", "Bearer wrong")],
        [("authorization", "Bearer " + hashlib.sha256(b"secret").hexdigest())],
    ):
        assert tokens.who(metadata) is None, metadata


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "ann secret\n", f"ann {'A' * 64}\n", f"ann x {'a' * 64}\n", f"{'a' * 64}\n"]
)
def test_a_bad_file_of_tokens_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(BadTokens) as found:
        load_tokens(tmp_path / "tokens")
    assert "secret" not in str(found.value)


def test_a_missing_file_of_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTokens, match="cannot be read"):
        load_tokens(tmp_path / "none")


def test_no_token_is_known_by_its_hash_alone() -> None:
    assert Tokens({"a" * 64: "ann"}).who([("authorization", "Bearer " + "a" * 64)]) is None


# --- addresses


@pytest.mark.parametrize(
    "text", ["50051", "127.0.0.1", ":1", "127.0.0.1:x", "h:65536", "::1:50051", "[::1]", "h:-1"]
)
def test_a_bad_address_is_refused(text: str) -> None:
    with pytest.raises(ServeError):
        parse_address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:0", "[::1]:50051", "glasses.example:65535"])
def test_an_address_reads_as_it_is_written(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    ("text", "tls", "tokens", "word"),
    [
        ("127.0.0.1:1", False, False, None),
        ("127.9.9.9:1", False, False, None),
        ("[::1]:1", False, False, None),
        ("localhost:1", False, False, None),
        ("0.0.0.0:1", False, True, "TLS"),
        ("[::]:1", False, True, "TLS"),
        ("192.0.2.1:1", True, False, "--tokens"),
        ("localhost.example:1", False, True, "TLS"),
        ("192.0.2.1:1", True, True, None),
    ],
)
def test_what_leaves_the_machine_is_encrypted_and_needs_a_token(
    text: str, tls: bool, tokens: bool, word: str | None
) -> None:
    problem = binding_problem(parse_address(text), tls, tokens)
    assert (problem is None) == (word is None)
    assert word is None or word in (problem or "")


# --- requests


def request(**changes: object) -> pb.AskRequest:
    fields: dict[str, object] = {"request_id": "r-1", "turns": [pb.Turn(role=pb.ROLE_USER, text="hi")]}
    return pb.AskRequest(**{**fields, **changes})  # type: ignore[arg-type]


def turn(role: int, text: str = "SECRET") -> pb.Turn:
    return pb.Turn(role=role, text=text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"request_id": ""}, "bad_request"),
        ({"request_id": "two\nlines"}, "bad_request"),
        ({"request_id": "x" * 65}, "bad_request"),
        ({"session_id": "x" * 129}, "bad_request"),
        ({"task": 99}, "bad_request"),
        ({"turns": []}, "bad_request"),
        ({"turns": [turn(pb.ROLE_USER)] * 65}, "bad_request"),
        ({"turns": [turn(pb.ROLE_UNSPECIFIED)]}, "bad_request"),
        ({"turns": [turn(pb.ROLE_USER, "")]}, "bad_request"),
        ({"turns": [turn(pb.ROLE_USER), turn(pb.ROLE_ASSISTANT)]}, "bad_request"),
        ({"turns": [turn(pb.ROLE_USER), turn(pb.ROLE_SYSTEM), turn(pb.ROLE_USER)]}, "bad_request"),
        ({"json_schema": "x" * (wire.SCHEMA_BYTES + 1)}, "bad_request"),
        ({"task": pb.TASK_TRANSCRIBE}, "bad_request"),
        ({"json_schema": "{}", "answer_prefix": "SECRET"}, "bad_request"),
        ({"images": [pb.Image(data=b"x")] * 5}, "bad_request"),
        ({"images": [pb.Image(data=b"x", sha256=b"short")]}, "bad_request"),
        ({"images": [pb.Image()]}, "bad_image"),
    ],
)
def test_a_bad_request_is_refused_without_quoting_it(changes: dict[str, object], expected: Why) -> None:
    with pytest.raises(Refused) as found:
        wire.read_ask(request(**changes), None, "")
    assert found.value.why == expected
    assert "SECRET" not in str(found.value)


def test_a_good_request_is_read_and_its_answer_bounded() -> None:
    turns = [
        turn(pb.ROLE_SYSTEM, "a"),
        turn(pb.ROLE_USER, "b"),
        turn(pb.ROLE_ASSISTANT, "c"),
        turn(pb.ROLE_USER, "d"),
    ]
    ask = wire.read_ask(request(turns=turns, max_tokens=10**6, task=pb.TASK_PLAN), None, "")
    assert [(t.role, t.text) for t in ask.prompt.turns] == [
        ("system", "a"), ("user", "b"), ("assistant", "c"), ("user", "d")
    ]  # fmt: skip
    assert (ask.task, ask.prompt.max_tokens) == ("plan", wire.MAX_TOKENS)
    assert wire.read_ask(request(), None, "").prompt.max_tokens == wire.DEFAULT_TOKENS


def test_sessions_of_two_wearers_never_meet() -> None:
    ann, bob = (wire.read_ask(request(session_id="s"), None, who).prompt.session for who in ("ann", "bob"))
    assert ann != bob
    assert wire.read_ask(request(), None, "ann").prompt.session == ""


def test_every_refusal_has_its_own_reason_on_the_wire() -> None:
    reasons = [reason for _, reason in wire.CODES.values()]
    assert len(set(reasons)) == len(reasons)
    assert set(reasons) | {pb.REASON_UNSPECIFIED, pb.REASON_BAD_TOKEN} == set(pb.Reason.values())


def test_times_on_the_wire_tell_unknown_from_short() -> None:
    assert [wire.ms(s) for s in (None, 0.0, -1.0, 0.0001, 1.5, 1e12)] == [0, 0, 0, 1, 1500, 2**32 - 1]
