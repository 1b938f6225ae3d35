"""Forgetting: what was chosen goes with all that rested on it alone; the rest is made again without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from memories import MONDAY, at, event, know, meaning, new, say, see, summary, texts

from os1_edge.remember import derived, forget
from os1_edge.remember.about import about, foresee_about, words
from os1_edge.remember.backup import Lock, backup
from os1_edge.remember.edit import edit
from os1_edge.remember.erase import has_traces
from os1_edge.remember.mend import compare
from os1_edge.remember.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = new(tmp_path)
    yield store
    with store.reading() as db:
        assert not compare(db)
    assert store.rows("PRAGMA foreign_key_check") == []
    store.close()


def forgotten(store: Store, *rows: forget.Row) -> forget.Receipt:
    return forget.carry_out(store, forget.foresee(store, rows))


def test_a_turn_goes_with_its_context_its_lines_and_its_key(store: Store) -> None:
    row = say(store, "t1", "My sister is ill.")
    context = see(store, "kitchen", 0.5, "My sister is ill.")
    e = event(store, [context], 'You said: "My sister is ill."', 0)
    summary(store, "s1", "The sister is ill.", 1)
    know(store, "The wearer has an ill sister.", [row])
    say(store, "t2", "It rains.", 30, session="s2")
    receipt = forgotten(store, ("turn", row))
    assert receipt.gone == {"context": 1, "event": 1, "profile": 1, "summary": 1, "turn": 1}
    assert (receipt.remade, receipt.left) == ({}, "")
    assert texts(store) == ["It rains."]
    assert store.rows("SELECT count(*) FROM index_keys") == [(0,)]
    assert derived.events(store, "id = ?", e) == []
    assert store.profile_history() == []


def test_what_rests_on_other_things_too_is_made_again_without_it(store: Store) -> None:
    secret, other = (
        say(store, "t1", "Anna has a secret lover."),
        say(store, "t2", "I will bake bread today.", 1),
    )
    seen = [see(store, "kitchen", 0, "Anna has a secret lover."), see(store, "kitchen", 5)]
    e = event(store, seen, "The wearer spoke of a lover.", 0, "kitchen")
    summary(store, "s1", "A lover, and bread.", 2)
    line = know(store, "The wearer likes bread.", [secret, other])
    receipt = forgotten(store, ("turn", secret))
    assert receipt.remade == {"event": 1, "profile": 1, "summary": 1}
    (kept,) = derived.events(store, "id = ?", e)
    assert (kept.summary_by, kept.contexts, kept.start) == ("rule", 1, at(5))
    assert not any("lover" in text or "secret" in text for text in texts(store))
    (told,) = derived.summaries(store)
    assert (told.text, told.text_by, told.turns) == ("The wearer said: I will bake bread today.", "rule", 1)
    (entry,) = store.profile()
    assert (entry.id, entry.evidence, entry.confidence) == (line, 1, 0.8)
    assert [s.id for s in store.sources(line)] == [other]
    jobs = {(job[0], job[1]) for job in store.rows("SELECT kind, target_kind FROM jobs")}
    assert jobs == {("summarise", "event"), ("summarise", "turn")}


def test_forgetting_what_ended_a_line_makes_it_true_again(store: Store) -> None:
    tea = know(store, "The wearer likes tea.", [say(store, "t1", "I like tea.")])
    row = say(store, "t2", "I do not like tea.", 60)
    know(store, "The wearer does not like tea.", [row], 60, (tea,))
    forgotten(store, ("turn", row))
    (entry,) = store.profile()
    assert (entry.id, entry.valid_to) == (tea, None)
    assert [e.id for e, _ in store.nearest_profile(meaning("x"), 5)] == []  # its vector is made again later
    assert [text for _, text in store.without_vector(9)] == ["The wearer likes tea."]


def test_deleting_a_line_itself_brings_nothing_back(store: Store) -> None:
    tea = know(store, "The wearer likes tea.", [say(store, "t1", "I like tea.")])
    no_tea = know(store, "The wearer does not like tea.", [say(store, "t2", "I do not.", 60)], 60, (tea,))
    forgotten(store, ("profile", no_tea))
    assert store.profile() == []
    assert [(e.id, e.superseded_by) for e in store.profile_history()] == [(tea, None)]
    assert len(store.turns()) == 2


def test_forgetting_two_changes_of_mind_brings_back_what_was_before_both(store: Store) -> None:
    rows = [say(store, f"t{n}", text, 60 * n) for n, text in enumerate(("tea", "no tea", "some tea"))]
    lines: list[int] = []
    for n, row in enumerate(rows):
        lines.append(know(store, f"The wearer thinks {n} of tea.", [row], 60 * n, tuple(lines[-1:])))
    forgotten(store, ("turn", rows[1]), ("turn", rows[2]))
    assert [(e.id, e.valid_to, e.superseded_by) for e in store.profile_history()] == [(lines[0], None, None)]


def test_all_revisions_of_a_turn_go(store: Store) -> None:
    for revision, text in enumerate(("I love", "I love Bob", "I love Bobby")):
        store.add_turn("t1", revision, MONDAY, text, "", "", meaning(text))
    (last,) = store.turns()
    forgotten(store, ("turn", last.id))
    assert store.rows("SELECT count(*) FROM turns") == [(0,)]


def test_the_last_hour_goes_and_the_one_before_stays(store: Store) -> None:
    say(store, "early", "Good morning.", 0, "s1")
    say(store, "late", "That was embarrassing.", 90, "s2")
    contexts = [see(store, "gym", 5), see(store, "gym", 15), see(store, "pub", 95)]
    event(store, contexts[:2], "Trained.", 5)
    event(store, contexts[2:], "Drank.", 95, "pub")
    rows = forget.within(store, at(60), at(120))
    receipt = forgotten(store, *rows)
    assert receipt.gone == {"context": 1, "event": 1, "turn": 1}
    assert texts(store) == ["Good morning.", "Trained.", "key of Trained."]


def test_an_event_that_reaches_into_the_hour_ends_before_it(store: Store) -> None:
    contexts = [see(store, "gym", 50), see(store, "gym", 58), see(store, "gym", 65)]
    event(store, contexts, "Trained for long.", 50)
    forgotten(store, *forget.within(store, at(60), None))
    (kept,) = derived.events(store)
    assert (kept.start, kept.end, kept.contexts) == (at(50), at(58), 2)


def test_everything_about_somebody_is_found_wherever_it_stands(store: Store) -> None:
    heard = say(store, "t1", "Jack's birthday is near.", 0)
    replied = say(store, "t2", "Who was that?", 1, reply="That was Jack.")
    say(store, "t3", "The jacket is new.", 2)
    old = store.add_turn("t4", 0, at(3), "Call jack", "", "", meaning("c"))
    store.add_turn("t4", 1, at(3), "Call Jane", "", "", meaning("d"))
    seen = see(store, "kitchen", 4, "jack!")
    line = know(store, "The wearer has a brother.", [heard])
    with store.transaction() as db:
        db.execute("UPDATE profile_sources SET quote = 'my brother Jack'")
    found = about(store, "Jack")
    assert {m.row for m in found} == {
        ("turn", heard), ("turn", replied), ("turn", old), ("context", seen), ("profile", line),
    }  # fmt: skip
    assert {m.why for m in found} == {"says"}
    forgotten(store, *(m.row for m in found))
    assert about(store, "Jack") == []
    assert [t.heard for t in store.turns()] == ["The jacket is new."]


def test_what_may_mean_it_is_shown_apart_and_stays(store: Store) -> None:
    same = np.float32(0.8) * meaning("the doctor") + np.float32(0.6) * meaning("something")
    row = store.add_turn("t1", 0, MONDAY, "My GP called.", "", "", same / np.linalg.norm(same))
    say(store, "t2", "It rains.")
    (mention,) = about(store, "the doctor", meaning)
    assert (mention.row, mention.why) == (("turn", row), "means")
    assert mention.similarity == pytest.approx(0.8, abs=0.1)
    assert about(store, "the doctor") == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [("running", "run"), ("Jack's", "jack"), ("peanuts", "peanut"), ("parties", "party"), ("kissed", "kiss")],
)
def test_a_word_is_found_in_any_of_its_forms(said: str, meant: str) -> None:
    assert words(said) == words(meant)


@pytest.mark.parametrize("nothing", ["", "  ", "?!"])
def test_forgetting_needs_a_word(nothing: str, store: Store) -> None:
    say(store, "t1", "It rains.")
    with pytest.raises(ValueError, match="words"):
        about(store, nothing)


def test_foreseeing_changes_nothing(store: Store) -> None:
    row = say(store, "t1", "It rains.")
    plan = forget.foresee(store, [("turn", row), ("turn", 999), ("event", 5)])
    assert plan.gone == {"turn": 1}
    assert texts(store) == ["It rains."]
    assert not forget.foresee(store, [("turn", 999)])


def test_what_fails_on_the_way_forgets_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [say(store, "t1", "It rains."), say(store, "t2", "I bake bread.")]
    summary(store, "s1", "Rain, bread.", 2)
    with monkeypatch.context() as broken:
        broken.setattr(forget, "extract", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            forgotten(store, ("turn", rows[0]))
    assert texts(store) == ["I bake bread.", "It rains.", "Rain, bread."]
    assert store.rows("SELECT count(*) FROM forgotten") == [(0,)]
    forgotten(store, ("turn", rows[0]))
    assert "It rains." not in texts(store)


def test_the_wearer_is_told_where_copies_lie(store: Store, tmp_path: Path) -> None:
    row = say(store, "t1", "It rains.")
    backup(store, tmp_path / "copy.db", Lock(bytes(32)))
    (tmp_path / "memory.db.v1.bak").write_bytes(b"x")
    receipt = forgotten(store, ("turn", row))
    assert receipt.copies == (str(tmp_path / "copy.db"), str(tmp_path / "memory.db.v1.bak"))


def test_another_process_that_reads_is_told_of(store: Store, tmp_path: Path) -> None:
    from memories import KEY

    from os1_edge.remember.connection import unlock

    row = say(store, "t1", "It rains.")
    reader = unlock(tmp_path / "memory.db", KEY)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM turns").fetchone()
    with store.reading() as db:
        db.execute("PRAGMA busy_timeout = 50")
    assert forgotten(store, ("turn", row)).left != ""
    assert has_traces(store)  # the next one clears it
    reader.execute("COMMIT")
    reader.close()
    assert forget.clear(store) == ""


def test_the_wearers_own_words_for_an_event_stay_as_long_as_it_does(store: Store) -> None:
    contexts = [see(store, "gym", 5), see(store, "gym", 65)]
    row = event(store, contexts, "Trained.", 5)
    summary(store, "s1", "Small talk.", 2)
    said = [say(store, "t1", "How are you?", 5), say(store, "t2", "Thanks.", 65)]
    edit(store, ("event", row), "My first marathon training.", MONDAY, meaning)
    edit(store, ("summary", 1), "We were polite.", MONDAY, meaning)
    forgotten(store, ("context", contexts[1]), ("turn", said[1]))
    (kept,) = derived.events(store)
    assert (kept.summary, kept.summary_by, kept.contexts) == ("My first marathon training.", "wearer", 1)
    assert [(s.text, s.turns) for s in derived.summaries(store)] == [("We were polite.", 1)]
    forgotten(store, ("context", contexts[0]), ("turn", said[0]))
    assert texts(store) == []


def test_a_day_that_jack_came_into_is_told_again_without_him(store: Store) -> None:
    say(store, "t1", "Jack broke his arm.")
    say(store, "t2", "I will bake bread today.", 1)
    seen = [see(store, "kitchen", 0, "Jack broke his arm."), see(store, "kitchen", 5)]
    e = event(store, seen, "Baked while Jack moaned.", 0, "kitchen")
    summary(store, "s1", "Jack, and bread.", 2)
    say(store, "t3", "Call Jack.", 60, "s2")
    summary(store, "s2", "About Jack.", 1, 60)
    plan = foresee_about(store, "Jack", about(store, "Jack"))
    assert plan.remade == {"event": 1, "summary": 1}
    assert plan.gone == {"context": 1, "summary": 1, "turn": 2}
    forget.carry_out(store, plan)
    assert about(store, "Jack") == []
    assert [kept.id for kept in derived.events(store)] == [e]
    assert [s.text for s in derived.summaries(store)] == ["The wearer said: I will bake bread today."]


def test_the_wearers_own_words_go_where_they_say_it_and_stay_where_not(store: Store) -> None:
    own = ["With Jack at the gym.", "Just me, training."]
    for n, text in enumerate(own):
        contexts = [see(store, "gym", 100 * n), see(store, "gym", 100 * n + 5, "Jack!")]
        edit(store, ("event", event(store, contexts, f"Jack {n}.", 100 * n)), text, MONDAY, meaning)
    forget.carry_out(store, foresee_about(store, "Jack", about(store, "Jack")))
    assert about(store, "Jack") == []
    assert [e.summary_by for e in derived.events(store)] == ["rule", "wearer"]
    assert own[1] in texts(store)


def test_what_only_the_rest_together_says_goes_too(store: Store) -> None:
    say(store, "t1", "The surgeon called this morning.")
    say(store, "t2", "Berlin looks wonderful in spring.", 1)
    summary(store, "s1", "A surgeon in Berlin.", 2)
    forget.carry_out(store, foresee_about(store, "surgeon Berlin", about(store, "surgeon Berlin")))
    assert about(store, "surgeon Berlin") == []
    assert len(store.turns()) == 2


def test_an_event_of_which_only_the_rest_together_says_it_goes_too(store: Store) -> None:
    seen = [see(store, "gym", 0), see(store, "gym", 1), see(store, "park", 2, "Berlin looks wonderful.")]
    event(store, seen, "At the gym, thinking of Berlin.", 0)
    forget.carry_out(store, foresee_about(store, "gym Berlin", about(store, "gym Berlin")))
    assert about(store, "gym Berlin") == []
    assert len(store.stored_contexts()) == 3
