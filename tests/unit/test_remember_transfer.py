"""A memory taken along: exported, imported, laid over another one."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from memories import KEY, MONDAY, at, event, know, meaning, new, say, see, summary, texts

from os1_edge.remember import derived, forget
from os1_edge.remember.about import about, foresee_about
from os1_edge.remember.backup import Lock, backup
from os1_edge.remember.export import export
from os1_edge.remember.key import from_passphrase, salt_of
from os1_edge.remember.locomo import import_locomo, read_locomo
from os1_edge.remember.merge import BadImport, Imported, import_lines
from os1_edge.remember.rows import ProfileEntry
from os1_edge.remember.store import BadMemory, Store


def lines(store: Store, vectors: bool = True) -> list[str]:
    out = io.StringIO()
    export(store, out, vectors=vectors)
    return out.getvalue().splitlines()


def content(store: Store) -> list[str]:
    """The rows of an export in an order of their own."""
    return sorted(lines(store)[1:])


def lived(folder: Path, name: str, home: str, days: int) -> Store:
    """A memory with something of everything."""
    store = new(folder, name)
    since = MONDAY + timedelta(days=days)
    row = say(store, "t1", f"I live in {home}.", 0, f"{name}-s1")
    store.add_turn("t1", 1, at(0), f"I live in {home}, yes.", "", "", meaning(home), session_id=name)
    event(store, [see(store, "gym", 1)], f"Trained in {home}.", 1)
    summary(store, f"{name}-s1", f"About {home}.", 1)
    for text, kind in (
        (f"The wearer lives in {home}.", "social background"),
        ("The wearer likes tea.", "habit"),
    ):
        store.add_profile(ProfileEntry(0, kind, text, 0.8, since, "t1"), meaning(text + name))
    know(store, f"The wearer likes {home}.", [row])
    return store


def test_an_export_brought_into_an_empty_memory_is_that_memory(tmp_path: Path) -> None:
    a, b = lived(tmp_path, "a", "Oslo", 0), new(tmp_path, "b")
    done = import_lines(b, lines(a), "a.jsonl")
    assert done.new == {
        "event": 1,
        "context": 1,
        "turn": 2,
        "summary": 1,
        "profile": 3,
        "key": 1,
        "source": 1,
    }
    assert content(b) == content(a)
    assert texts(b) == texts(a)
    assert b.nearest_turns(meaning("Oslo"), 1)[0][1] == pytest.approx(1, abs=1e-3)
    assert b.without_vector(9) == []


@pytest.mark.parametrize("vectors", [True, False])
def test_importing_twice_changes_nothing(vectors: bool, tmp_path: Path) -> None:
    a, b = lived(tmp_path, "a", "Oslo", 0), lived(tmp_path, "b", "Bergen", 30)
    import_lines(b, lines(a, vectors), "a")
    before = content(b)
    done = import_lines(b, lines(a, vectors), "a")
    assert (done.new, done.changed, done.profile_ended) == ({}, {}, 0)
    assert content(b) == before


def test_two_devices_agree_after_they_have_exchanged_memories(tmp_path: Path) -> None:
    a, b = lived(tmp_path, "a", "Oslo", 0), lived(tmp_path, "b", "Bergen", 30)
    import_lines(b, lines(a), "a")
    import_lines(a, lines(b), "b")
    assert content(a) == content(b)
    assert sorted(e.text for e in a.profile()) == [
        "The wearer likes Bergen.", "The wearer likes Oslo.", "The wearer likes tea.",
        "The wearer lives in Bergen.",
    ]  # fmt: skip


def test_of_two_homes_the_later_one_stands_whichever_device_knew_it(tmp_path: Path) -> None:
    for here, there in ((0, 30), (30, 0)):
        folder = tmp_path / str(here)
        folder.mkdir()
        a, b = lived(folder, "a", "Oslo", here), lived(folder, "b", "Bergen", there)
        import_lines(a, lines(b), "b")
        homes = {e.text: e.valid_to for e in a.profile_history() if "lives" in e.text}
        late, early = ("Bergen", "Oslo") if there else ("Oslo", "Bergen")
        assert homes[f"The wearer lives in {late}."] is None
        assert homes[f"The wearer lives in {early}."] == MONDAY + timedelta(days=30)


def test_what_was_ended_or_corrected_elsewhere_is_so_here(tmp_path: Path) -> None:
    a, b = lived(tmp_path, "a", "Oslo", 0), new(tmp_path, "b")
    import_lines(b, lines(a), "a")
    (tea,) = [e for e in b.profile() if "tea" in e.text]
    b.end_profile(tea.id, at(5000))
    (turn,) = b.turns()
    with b.reading() as db:
        (origin,) = db.execute("SELECT origin FROM turns WHERE id = ?", (turn.id,)).fetchone()
    b.add_turn("t1", 2, turn.time, "Corrected.", "", "", meaning("c"), origin=origin)
    done = import_lines(a, lines(b), "b")
    assert done.changed == {"turn": 1, "profile": 1}
    assert [t.heard for t in a.turns()] == ["Corrected."]
    assert not any("tea" in e.text for e in a.profile())
    assert "The wearer likes tea." not in texts(a)


def test_what_was_forgotten_here_does_not_come_back(tmp_path: Path) -> None:
    a, b = lived(tmp_path, "a", "Oslo", 0), new(tmp_path, "b")
    whole = lines(a)
    import_lines(b, whole, "a")
    (turn,) = b.turns()
    forget.carry_out(b, forget.foresee(b, [("turn", turn.id)]))
    before = content(b)
    done = import_lines(b, whole, "a")
    assert done.forgotten > 0
    assert content(b) == before
    assert import_lines(a, lines(b), "b").forgotten_there > 0  # told, not done: nobody asked for it here


def older_and_remade(folder: Path) -> tuple[Store, list[str]]:
    """An event and a session made again without Jack, and an export from before."""
    store = new(folder, "a")
    say(store, "t1", "Jack broke his arm.")
    line = know(store, "The wearer likes bread.", [say(store, "t2", "I will bake bread today.", 1)])
    row = event(store, [see(store, "kitchen", 0, "Jack!"), see(store, "kitchen", 5)], "Jack moaned.", 0)
    about_jack = summary(store, "s1", "Jack, and bread.", 2)
    derived.put_keys(store, "summary", about_jack, at(0), [("semantic", "Jack's arm", meaning("arm"))])
    with store.transaction() as db:
        db.execute(
            "INSERT INTO profile_sources VALUES (?,'event',?,?,'bread and a moan')",
            (line, row, MONDAY.isoformat()),
        )
    before = lines(store)
    forget.carry_out(store, foresee_about(store, "Jack", about(store, "Jack")))
    return store, before


def test_an_older_export_does_not_bring_back_the_words_of_what_was_made_again(tmp_path: Path) -> None:
    store, before = older_and_remade(tmp_path)
    without = content(store)
    assert import_lines(store, before, "before").forgotten > 0
    assert content(store) == without
    assert about(store, "Jack") == []


def test_nor_into_a_memory_that_was_restored_from_a_newer_one(tmp_path: Path) -> None:
    store, before = older_and_remade(tmp_path)
    restored = new(tmp_path, "b")
    done = import_lines(restored, lines(store), "after")
    assert done.forgotten_there == 0
    assert content(restored) == content(store)
    import_lines(restored, before, "before")
    assert about(restored, "Jack") == []
    assert content(restored) == content(store)


def test_what_was_forgotten_on_one_device_does_not_come_from_a_third(tmp_path: Path) -> None:
    store, before = older_and_remade(tmp_path)
    other = lived(tmp_path, "b", "Bergen", 30)
    import_lines(other, lines(store), "after")
    import_lines(other, before, "before")
    assert about(other, "Jack") == []


Spoil = Callable[[list[str]], list[str]]


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda ls: [*ls[:-2], "{", *ls[-1:]], "line 10"),
        (lambda ls: [*ls[:-2], '{"row":"turn"}', *ls[-1:]], "line 10: turn.uid"),
        (lambda ls: [*ls[:-2], '{"row":"nonsense"}', *ls[-1:]], "line 10"),
        (lambda ls: ls[:-3], "cut short"),
        (lambda ls: ls[1:], "line 1: not an exported memory"),
        (lambda ls: [], "not an exported memory"),
        (lambda ls: [ls[0].replace('"os1_memory": 1', '"os1_memory": 9'), *ls[1:]], "newer release"),
        (lambda ls: [x.replace("2026-03-02T08", "2026-33-02T08") for x in ls], "line 2"),
        (lambda ls: [x.replace('T08:01:00"', 'T08:01:00+02:00"') for x in ls], "line 2: .*offset"),
        (lambda ls: [ls[0] + "\udcfc", *ls[1:]], "line 1: .*not UTF-8"),
        (lambda ls: [ls[0], *(x for x in ls[1:] if '"row": "event"' not in x), ls[1]], "names a row"),
        (lambda ls: [x.replace('"vector": "', '"vector": "x') for x in ls], "line 2"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_half_imported(spoil: Spoil, word: str, tmp_path: Path) -> None:
    a, b = lived(tmp_path, "a", "Oslo", 0), lived(tmp_path, "b", "Bergen", 0)
    before = content(b)
    with pytest.raises(BadImport, match=word):
        import_lines(b, spoil(lines(a)), "a.jsonl")
    assert content(b) == before


def test_vectors_of_another_embedder_are_not_mixed_in(tmp_path: Path) -> None:
    a, b = lived(tmp_path, "a", "Oslo", 0), new(tmp_path, "b")
    b.set_embedder("another model")
    import_lines(b, lines(a), "a")
    assert b.nearest_turns(meaning("Oslo"), 5) == []
    assert {text for _, text in b.without_vector(99)} == set(texts(a))


def test_an_export_without_vectors_holds_none(tmp_path: Path) -> None:
    a = lived(tmp_path, "a", "Oslo", 0)
    assert not any("vector" in json.loads(line) for line in lines(a, vectors=False)[1:])
    assert sum("vector" in json.loads(line) for line in lines(a)[1:]) == len(texts(a))


def test_turns_numbered_alike_on_two_devices_are_both_kept(tmp_path: Path) -> None:
    a, b = new(tmp_path, "a"), new(tmp_path, "b")
    for store, text in ((a, "from a"), (b, "from b")):
        store.add_turn("t1", 0, MONDAY, text, "", "", meaning(text), origin="session")
    done: Imported = import_lines(a, lines(b), "b")
    assert done.new == {"turn": 1}
    assert [t.heard for t in a.turns()] == ["from a", "from b"]


def test_a_backup_opens_with_the_same_key_while_the_memory_is_in_use(tmp_path: Path) -> None:
    a = lived(tmp_path, "a", "Oslo", 0)
    with a.transaction():  # in the middle of something
        pass
    size = backup(a, tmp_path / "deep" / "copy.db", Lock(KEY, salt_of(tmp_path / "a")))
    say(a, "t9", "Later.")
    copy = Store(tmp_path / "deep" / "copy.db", KEY)
    assert "Later." not in texts(copy)
    assert len(texts(copy)) == len(texts(a)) - 1
    assert size == (tmp_path / "deep" / "copy.db").stat().st_size
    with pytest.raises(FileExistsError):
        backup(a, tmp_path / "deep" / "copy.db", Lock(KEY))
    assert sorted(p.name for p in (tmp_path / "deep").iterdir() if "copy.db-" not in p.name) == ["copy.db"]


def test_a_backup_with_a_passphrase_needs_nothing_else(tmp_path: Path) -> None:
    a, copy = lived(tmp_path, "a", "Oslo", 0), tmp_path / "copy.db"
    backup(a, copy, Lock.of("correct horse battery"))
    with pytest.raises(BadMemory):
        Store(copy, KEY)
    assert texts(Store(copy, from_passphrase("correct horse battery", salt_of(copy)))) == texts(a)


LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Bob",
            "session_10_date_time": "9:00 am on 1 June, 2023",
            "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "Bye."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a red boat"},
                {"speaker": "Bob", "dia_id": "D2:2", "text": "Nice."},
            ],
        },
    }
]  # fmt: skip


def test_a_locomo_conversation_becomes_turns_with_dates_and_dialog_ids(tmp_path: Path) -> None:
    file = tmp_path / "locomo.json"
    file.write_text(json.dumps(LOCOMO))
    turns = read_locomo(file)
    assert [t.turn_id for t in turns] == ["conv-1:D2:1", "conv-1:D2:2", "conv-1:D10:1"]
    store, seen = new(tmp_path), []

    def embed(batch: list[str]) -> np.ndarray:
        seen.extend(batch)
        return np.array([meaning(text) for text in batch])

    assert import_locomo(store, file, embed) == 3
    assert seen == ["Ann: Look! [a red boat]", "Bob: Nice.", "Ann: Bye."] == store_texts(store)
    first = store.turns()[0]
    assert (first.speaker, first.session_id) == ("other:Ann", "conv-1:S2")
    assert first.time.isoformat() == "2023-05-08T13:56:00"
    assert import_locomo(store, file, embed) == 0
    assert len(store.turns()) == 3


def test_a_forgotten_turn_of_a_conversation_does_not_come_back(tmp_path: Path) -> None:
    file = tmp_path / "locomo.json"
    file.write_text(json.dumps(LOCOMO))
    store = new(tmp_path)
    import_locomo(store, file, None)
    forget.carry_out(store, forget.foresee(store, [("turn", store.turns()[0].id)]))
    assert import_locomo(store, file, None) == 0
    assert store_texts(store) == ["Bob: Nice.", "Ann: Bye."]


def store_texts(store: Store) -> list[str]:
    return [row[0] for row in store.rows("SELECT text FROM items ORDER BY time, id")]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"sample_id": "x", "conversation": {"session_1": []}}]'])
def test_what_is_no_locomo_file_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    if text == "{}":
        assert read_locomo(file) == []
        return
    with pytest.raises(BadImport, match=r"x\.json"):
        read_locomo(file)


@pytest.mark.shared_data
def test_the_given_locomo_conversations_can_be_read(shared_data: Path) -> None:
    turns = read_locomo(shared_data / "locomo" / "locomo-6.json")
    assert len(turns) == len({t.turn_id for t in turns}) == 3584
    pairs = [(a, b) for a, b in itertools.pairwise(turns) if a.session_id == b.session_id]
    assert all(a.time < b.time for a, b in pairs)
