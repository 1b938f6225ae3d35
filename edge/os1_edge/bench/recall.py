"""How much of the annotated evidence recall finds: LoCoMo conversations (Maharana et al., 2024).

Each conversation becomes an encrypted memory of its own, filled and asked as in a run, one day after its
last session, without a language model. Recall@k is LoCoMo's own: the share of a question's evidence turns
among the best k, averaged over the questions.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from os1_edge.remember.connection import BadMemory
from os1_edge.remember.embed import Embedder
from os1_edge.remember.importance import importance_by_rule
from os1_edge.remember.locomo import LocomoTurn, read_locomo
from os1_edge.remember.merge import BadImport
from os1_edge.remember.ranking import NOTHING
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.rows import searched
from os1_edge.remember.store import Store

DEPTHS = (5, 10, 20)

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""LoCoMo's numbers; 5, adversarial, has no evidence to find."""

RULES = RecallRules(limit=max(DEPTHS), min_similarity=-1.0, tokens=1_000_000, questions=True)
"""All that recall ranks: neither cut off where too little alike, nor by what fits a prompt."""

MEASURING_KEY = bytes(range(32))
"""Of memories made to measure, which are deleted at once."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its category, and the turn ids that answer it."""

    question: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A LoCoMo conversation."""

    turns: tuple[LocomoTurn, ...]
    questions: tuple[Asked, ...]

    @property
    def now(self) -> datetime:
        """When it is asked about: a day after its last turn."""
        return self.turns[-1].time + timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Answered:
    """What recall found for one question: the share of its evidence among the best k, for each depth."""

    conversation: int
    category: str
    found: tuple[float, ...]


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a file of the form of ``locomo10.json``.

    Raises:
        BadImport: it is not of that form, or holds no question with evidence.
    """
    by_sample: dict[str, list[LocomoTurn]] = defaultdict(list)
    try:
        for turn in read_locomo(path):
            by_sample[turn.turn_id.split(":")[0]].append(turn)
        out = [
            Conversation(tuple(turns), tuple(_questions(item, {turn.turn_id for turn in turns})))
            for item in json.loads(path.read_text("utf-8"))
            if (turns := by_sample[item["sample_id"]])
        ]
    except OSError as e:
        raise BadImport(f"{path}: {e.strerror}") from None
    except (KeyError, TypeError, AttributeError) as e:
        raise BadImport(f"{path} is not a LoCoMo file ({type(e).__name__}: {e})") from None
    if not any(conversation.questions for conversation in out):
        raise BadImport(f"{path} holds no question with evidence")
    return out


def _questions(item: dict[str, Any], turns: set[str]) -> Iterator[Asked]:
    for asked in item["qa"]:
        named = {d for text in asked["evidence"] for d in re.findall(r"D\d+:\d+", text)}
        evidence = frozenset(f"{item['sample_id']}:{dialog}" for dialog in named) & turns
        if asked["category"] in CATEGORIES and evidence:
            yield Asked(str(asked["question"]), CATEGORIES[asked["category"]], evidence)


def fill(store: Store, conversation: Conversation, embedder: Embedder) -> dict[int, str]:
    """Puts a conversation into a memory; returns the turn id of each row."""
    turns = conversation.turns
    vectors = embedder.embed([searched(turn.speaker, turn.text) for turn in turns])
    out = {}
    with store.transaction() as db:
        for turn, vector in zip(turns, vectors, strict=True):
            row = store.add_turn(
                turn.turn_id, 0, turn.time, turn.text, "", "", vector,
                speaker=turn.speaker, session_id=turn.session_id,
            )  # fmt: skip
            importance = importance_by_rule(turn.text)
            db.execute("UPDATE turns SET importance = ? WHERE id = ?", (importance, row))
            out[row] = turn.turn_id
    return out


@contextmanager
def remembered(conversation: Conversation, embedder: Embedder) -> Iterator[tuple[Store, dict[int, str]]]:
    """A memory of its own that holds ``conversation``, with the turn id of each row; gone at the end."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "memory.db", MEASURING_KEY)
        try:
            yield store, fill(store, conversation, embedder)
        finally:
            store.close()


def measure(
    conversations: Sequence[Conversation],
    embedder: Embedder,
    rules: Sequence[RecallRules] = (RULES,),
    tell: Callable[[str], None] = lambda text: None,
    prepare: Callable[[Store, datetime], None] = lambda store, now: None,
) -> list[list[Answered]]:
    """Asks every question of every conversation, once under each of the ``rules``.

    Args:
        conversations: see ``read_conversations``.
        embedder: of texts and questions.
        rules: how to rank.
        tell: called with a line of progress for each conversation.
        prepare: what is done with each memory before it is asked, such as moving it to a server.
    """
    out: list[list[Answered]] = [[] for _ in rules]
    for number, conversation in enumerate(conversations):
        tell(f"conversation {number + 1} of {len(conversations)}: {len(conversation.turns)} turns")
        with remembered(conversation, embedder) as (store, turn_ids):
            prepare(store, conversation.now)
            for answers, rule in zip(out, rules, strict=True):
                recall = Recall(store, embedder, rule)
                for asked in conversation.questions:
                    hits = recall.recall(asked.question, conversation.now)
                    if recall.word:
                        raise BadMemory(f"recall was not measured: {recall.word}")
                    found = _shares(asked, [turn_ids.get(hit.ref_id, "") for hit in hits])
                    answers.append(Answered(number, asked.category, found))
                recall.close()
    return out


def _shares(asked: Asked, best: Sequence[str]) -> tuple[float, ...]:
    return tuple(len(asked.evidence & set(best[:k])) / len(asked.evidence) for k in DEPTHS)


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


def only(rules: RecallRules = RULES, **weights: float) -> RecallRules:
    """``rules`` with the weights of similarity named and no others."""
    return replace(rules, weights=NOTHING._replace(**weights))


def without(*features: str, rules: RecallRules = RULES) -> RecallRules:
    """``rules`` without some features of similarity, to see what they bring."""
    return replace(rules, weights=rules.weights._replace(**dict.fromkeys(features, 0.0)))
