"""LoCoMo conversations (Maharana et al. 2024) as turns, so that anybody can measure recall."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from os1_edge.remember.merge import BadImport
from os1_edge.remember.migrate import uid_of
from os1_edge.remember.rows import OTHER, searched
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import Vector

ORIGIN = "locomo"

TURN_S = 20
"""Between two turns of a session: the data give a time for each session only, and turns keep their order."""

BATCH = 64
"""Turns embedded at once."""


@dataclass(frozen=True, slots=True)
class LocomoTurn:
    """A turn of a conversation; its id reads ``conv-26:D1:3``."""

    turn_id: str
    session_id: str
    time: datetime
    speaker: str
    text: str


def read_locomo(path: Path) -> list[LocomoTurn]:
    """All turns of a file of the form of ``locomo10.json``; of a shared picture, its caption in brackets.

    Raises:
        BadImport: it is not of that form.
    """
    try:
        whole = json.loads(path.read_text("utf-8"))
        return [turn for item in whole for turn in _turns(item)]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise BadImport(
            f"{path} is not a LoCoMo file ({type(e).__name__}: {e}); nothing was imported"
        ) from None


def import_locomo(
    store: Store,
    path: Path,
    embed: Callable[[Sequence[str]], Vector] | None,
    tell: Callable[[int, int], None] = lambda _a, _b: None,
) -> int:
    """Imports a LoCoMo file in one transaction; what is there already stays, what was
    forgotten stays forgotten. Returns how many turns are new.

    Args:
        store: the memory.
        path: the JSON file.
        embed: texts -> embeddings, shape (n, dimensions); without it they are made later.
        tell: called now and then with the turns done and their total.

    Raises:
        BadImport: it is not a LoCoMo file; nothing was changed.
    """
    turns = read_locomo(path)
    known = {row[0] for row in store.rows("SELECT turn_id FROM turns WHERE origin = ?", ORIGIN)}
    gone = {bytes(row[0]) for row in store.rows("SELECT uid FROM forgotten")}
    new = [t for t in turns if t.turn_id not in known and uid_of(ORIGIN, t.turn_id) not in gone]
    with store.transaction():
        for start in range(0, len(new), BATCH):
            batch = new[start : start + BATCH]
            texts = [searched(turn.speaker, turn.text) for turn in batch]
            vectors: Sequence[Vector | None] = [None] * len(batch) if embed is None else list(embed(texts))
            for turn, vector in zip(batch, vectors, strict=True):
                store.add_turn(
                    turn.turn_id, 0, turn.time, turn.text, "", "", vector,
                    speaker=turn.speaker, session_id=turn.session_id, origin=ORIGIN,
                    uid=uid_of(ORIGIN, turn.turn_id),
                )  # fmt: skip
            tell(start + len(batch), len(new))
    return len(new)


def _turns(item: dict[str, Any]) -> Iterator[LocomoTurn]:
    sample, talk = item["sample_id"], item["conversation"]
    numbers = sorted(int(m[1]) for name in talk if (m := re.fullmatch(r"session_(\d+)", name)))
    for number in numbers:
        begins = _date(talk[f"session_{number}_date_time"])
        for place, turn in enumerate(talk[f"session_{number}"]):
            caption = turn.get("blip_caption")
            yield LocomoTurn(
                f"{sample}:{turn['dia_id']}",
                f"{sample}:S{number}",
                begins + timedelta(seconds=TURN_S * place),
                f"{OTHER}{turn['speaker']}",
                turn["text"] + (f" [{caption}]" if caption else ""),
            )


def _date(text: str) -> datetime:
    """Reads "1:56 pm on 8 May, 2023"."""
    return datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y")
