"""A memory of which part lies on a server that is not reached: what the wearer is told of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from companion import KEY, MONDAY, Bag, Companion, Engine

from os1_edge.remember.hosted.content import read
from os1_edge.remember.hosted.state import Place, mark_away, new_secret, quiet, settle
from os1_edge.remember.store import Store

PLACE = Place("http://127.0.0.1:9", "ann", new_secret())
"""Nobody answers there."""
QUESTIONS = ("When is my flight?", "Who is Anna?")


def lived(folder: Path, *, away: bool) -> None:
    """One thing was said a month ago; ``away``: it left for the server."""
    store = Store(folder / "memory.db", KEY)
    said = "I had lunch with Ben."
    row = store.add_turn("t0", 0, MONDAY - timedelta(days=30), said, "", "", Bag().one(said))
    if away:
        settle(store, PLACE)
        with store.transaction() as db:
            content = read(db, f'["turns",{row}]')
            assert content is not None
            quiet(db, True)
            mark_away(db, PLACE.seal(), [content])
            db.execute("DELETE FROM turns")
            quiet(db, False)
    store.close()


def replies(folder: Path, *lines: str) -> list[tuple[str, str, str]]:
    told = Companion(folder, Engine(lambda _: "From the model."))
    for number, line in enumerate(lines):
        told.say(1.0 + 10 * number, line)
    return [(turn.heard, turn.route, turn.reply) for turn in told.live().turns]


@pytest.mark.parametrize(
    ("away", "reply"),
    [(True, "I do not know. I cannot reach all of my memory right now."), (False, "I do not know that yet.")],
)
def test_what_nothing_here_answers_is_not_said_to_be_unknown_while_some_of_the_memory_is_out_of_reach(
    tmp_path: Path, away: bool, reply: str
) -> None:
    lived(tmp_path, away=away)
    assert replies(tmp_path, *QUESTIONS) == [(asked, "rule", reply) for asked in QUESTIONS]


def test_what_needs_no_old_memory_is_answered_as_ever(tmp_path: Path) -> None:
    lived(tmp_path, away=True)
    told = replies(tmp_path, "My flight leaves at noon.", "What is the time?", "When does my flight leave?")
    assert [route for _, route, _ in told] == ["local", "rule", "local"]
    assert "memory" not in " ".join(reply for *_, reply in told)
