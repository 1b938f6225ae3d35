"""How much of the annotated evidence recall finds: LoCoMo conversations (Maharana et al., 2024).

Each conversation becomes an encrypted memory of its own, filled through the store and asked through
``Recall`` as in a run, one day after its last session, without a language model. Recall@k is LoCoMo's own:
the share of a question's evidence turns among the best k, averaged over the questions.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from os1_edge.remember.embed import Embedder
from os1_edge.remember.importance import importance_by_rule
from os1_edge.remember.ranking import Weights
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.rows import OTHER, WEARER
from os1_edge.remember.store import Store

DEPTHS = (5, 10, 20)

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""LoCoMo's numbers; 5, adversarial, has no evidence to find."""

RULES = RecallRules(limit=max(DEPTHS), min_similarity=-1.0, tokens=1_000_000, questions=True)
"""All that recall ranks: neither cut off where too little alike, nor by what fits a prompt."""

_KEY = bytes(range(32))
"""Of the memories made to measure, which are deleted at once."""

_TURN_S = 20.0
"""LoCoMo dates sessions only; turns are laid this far apart."""


class BadConversation(Exception):
    """A file is no LoCoMo conversation; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a conversation."""

    dialog_id: str
    speaker: str
    text: str
    """What was said, with the caption of a picture that was shown."""
    time: datetime
    session: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the lines that answer it."""

    question: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A LoCoMo conversation."""

    wearer: str
    """Whose memory it is: the first speaker."""
    lines: tuple[Line, ...]
    questions: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """What recall found for one question: the share of its evidence among the best k, for each depth."""

    conversation: int
    category: str
    found: tuple[float, ...]


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a LoCoMo file: a list, or one.

    Raises:
        BadConversation: the file cannot be read as such.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
        found = [_conversation(item) for item in (data if isinstance(data, list) else [data])]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as e:
        raise BadConversation(f"{path}: {e}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise BadConversation(f"{path}: not a LoCoMo conversation ({type(e).__name__}: {e})") from None
    if not found:
        raise BadConversation(f"{path}: holds no conversation")
    return found


def _conversation(item: dict[str, Any]) -> Conversation:
    talk = item["conversation"]
    lines = []
    for session in sorted(int(m[1]) for key in talk if (m := re.fullmatch(r"session_(\d+)", key))):
        time = datetime.strptime(talk[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y")
        for i, turn in enumerate(talk[f"session_{session}"]):
            caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
            lines.append(
                Line(
                    dialog_id=turn["dia_id"],
                    speaker=turn["speaker"],
                    text=turn["text"] + caption,
                    time=time + timedelta(seconds=_TURN_S * i),
                    session=session,
                )
            )
    known = {line.dialog_id for line in lines}
    questions = []
    for asked in item["qa"]:
        named = {e for text in asked["evidence"] for e in re.findall(r"D\d+:\d+", text)}
        if asked["category"] in CATEGORIES and (evidence := frozenset(named & known)):
            questions.append(Asked(asked["question"], CATEGORIES[asked["category"]], evidence))
    return Conversation(talk["speaker_a"], tuple(lines), tuple(questions))


def fill(store: Store, conversation: Conversation, embedder: Embedder) -> dict[int, str]:
    """Puts a conversation into an empty memory; returns the dialog id of each turn."""
    vectors = embedder.embed([line.text for line in conversation.lines])
    out = {}
    with store.transaction() as db:
        for line, vector in zip(conversation.lines, vectors, strict=True):
            row = store.add_turn(
                line.dialog_id,
                0,
                line.time,
                line.text,
                "",
                "",
                vector,
                speaker=WEARER if line.speaker == conversation.wearer else f"{OTHER}{line.speaker}",
                session_id=f"session {line.session}",
            )
            db.execute("UPDATE turns SET importance = ? WHERE id = ?", (importance_by_rule(line.text), row))
            out[row] = line.dialog_id
    return out


def measure(
    conversations: Sequence[Conversation],
    embedder: Embedder,
    rules: RecallRules = RULES,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Answered]:
    """Asks every question of every conversation.

    Args:
        conversations: see ``read_conversations``.
        embedder: of texts and questions.
        rules: how to rank.
        tell: called with a line of progress for each conversation.
    """
    return [a for run in runs(conversations, embedder, tell) for a in run(rules)]


def runs(
    conversations: Sequence[Conversation], embedder: Embedder, tell: Callable[[str], None] = lambda text: None
) -> Iterator[Callable[[RecallRules], list[Answered]]]:
    """For each conversation what asks all its questions under any rules; of use until the next is taken."""
    for number, conversation in enumerate(conversations):
        tell(f"conversation {number + 1} of {len(conversations)}: {len(conversation.lines)} turns")
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder) / "memory.db", _KEY)
            try:
                dialog = fill(store, conversation, embedder)
                now = conversation.lines[-1].time + timedelta(days=1)

                def ask(rules: RecallRules, n: int = number, c: Conversation = conversation,
                        store: Store = store, dialog: dict[int, str] = dialog,
                        now: datetime = now) -> list[Answered]:  # fmt: skip
                    recall = Recall(store, embedder, rules, wearer_name=c.wearer)
                    return [_answered(n, q, recall, dialog, now) for q in c.questions]

                yield ask
            finally:
                store.close()


def _answered(number: int, asked: Asked, recall: Recall, dialog: dict[int, str], now: datetime) -> Answered:
    hits = [dialog.get(hit.ref_id) for hit in recall.recall(asked.question, now)]
    found = tuple(len(asked.evidence & set(hits[:k])) / len(asked.evidence) for k in DEPTHS)
    return Answered(number, asked.category, found)


def table(answers: Sequence[Answered]) -> dict[str, Any]:
    """Percent of evidence found, by depth and category; what ``os1 bench recall --json`` prints."""
    return {
        "questions": len(answers),
        "recall": {
            str(depth): {
                **{c: _mean([a.found[i] for a in answers if a.category == c]) for c in CATEGORIES.values()},
                "all": _mean([a.found[i] for a in answers]),
            }
            for i, depth in enumerate(DEPTHS)
        },
    }


def _mean(shares: Sequence[float]) -> float | None:
    return round(100 * sum(shares) / len(shares), 1) if shares else None


def without(feature: str, rules: RecallRules = RULES) -> RecallRules:
    """``rules`` without one feature of similarity, to see what it brings."""
    return replace(rules, weights=replace(rules.weights, **{feature: 0.0}))


def only(rules: RecallRules = RULES, **weights: float) -> RecallRules:
    """``rules`` with the weights named and no others."""
    none = dict.fromkeys(Weights.__dataclass_fields__, 0.0)
    return replace(rules, weights=Weights(**{**none, **weights}))
