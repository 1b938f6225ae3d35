"""What leaves the device for a server that holds a memory, and what is noted here. No server is needed."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from memories import MONDAY, at, event, know, meaning, new, say, see, summary

from os1_edge.remember import derived, forget
from os1_edge.remember.hosted.content import KEPT, Content, canonical, read, sql_name
from os1_edge.remember.hosted.courier import sealed
from os1_edge.remember.hosted.seal import NotSealed, Seal
from os1_edge.remember.hosted.shelf import collection_of
from os1_edge.remember.hosted.state import Place, counts, new_secret, place_of, settle, unsettle, waiting
from os1_edge.remember.store import Store
from os1_edge.remember.vectors import unpack

SECRET = bytes(range(32))
LEFT_OUT = {"meta", "embedders", "items", "item_vectors", "trash", "trash_batches"}
"""Tables that do not leave: notes of this device, the index, what the wearer wants gone."""


def lived(folder: Path) -> Store:
    """Something of everything."""
    store = new(folder)
    first = say(store, "t1", "I live in Oslo.", 0)
    store.add_turn("t1", 1, at(0), "I live in Oslo, yes.", "", "", meaning("Oslo"), session_id="s1")
    event(store, [see(store, "gym", 1)], "Trained in Oslo.", 1)
    summary(store, "s1", "About Oslo.", 1)
    know(store, "The wearer likes Oslo.", [first])
    derived.add_job(store, "summarise", "turn", first)
    with store.transaction() as db:
        db.execute("INSERT INTO turn_used VALUES (2, 'turn', 1, 'similar')")
        db.execute("INSERT INTO forgotten VALUES (randomblob(16), '2026-03-02T08:00:00')")
    return store


def names(store: Store) -> list[str]:
    return [canonical(name) for t in KEPT for (name,) in store.rows(f"SELECT {sql_name(t, 'r')} FROM {t} r")]


def noted(store: Store) -> set[str]:
    return {canonical(name) for _, name in waiting(store, 10_000)}


def test_every_table_of_a_memory_either_leaves_or_is_named_as_staying(tmp_path: Path) -> None:
    store = new(tmp_path)
    tables = {
        name
        for (name,) in store.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not re.match(r"sqlite_|items_fts|item_bits", name)
    }
    assert tables == set(KEPT) | LEFT_OUT  # a new table: decide, or a memory loses it on the way home


def test_a_row_comes_back_as_it_was_bytes_and_vector_and_all(tmp_path: Path) -> None:
    store = lived(tmp_path)
    with store.reading() as db:
        for name in names(store):
            row = read(db, name)
            assert row is not None
            assert Content.decode(row.encode()) == row
            assert row.name == name
    assert len(names(store)) == 11


@pytest.mark.parametrize(
    "said", ['"quoted", [list]', "back\\slash\n\ttab\x01", "naïve – 日本 🙂", "x" * 200_000]
)
def test_whatever_a_key_says_names_its_row_the_same_here_and_in_the_file(tmp_path: Path, said: str) -> None:
    store = new(tmp_path)
    row = say(store, "t1", said)
    derived.put_keys(store, "turn", row, MONDAY, [("semantic", said, meaning(said))])
    with store.reading() as db:
        for name in names(store):
            found = read(db, name)
            assert found is not None
            assert found.name == name


def test_only_the_wearers_key_opens_a_row_and_only_in_its_own_place() -> None:
    seal, other = Seal(SECRET, "ann", turned=False), Seal(new_secret(), "ann", turned=False)
    row, another = seal.row_id("a"), seal.row_id("b")
    box = seal.seal(row, 0, b"tea with Ben")
    assert seal.open(row, 0, box) == b"tea with Ben"
    for who, where, shelf, given in (
        (other, row, 0, box),  # another key
        (Seal(SECRET, "ben", turned=False), row, 0, box),  # the same key, another wearer
        (seal, another, 0, box),  # put in another row's place
        (seal, row, 1, box),  # put on another shelf
        (seal, row, 3000, box),  # on one that there is not
        (seal, row, 0, box[:-1] + bytes([box[-1] ^ 1])),
        (seal, row, 0, box[:20]),
        (seal, row, 0, b""),
    ):
        with pytest.raises(NotSealed):
            who.open(where, shelf, given)


def test_the_server_learns_no_word_and_hardly_the_length(tmp_path: Path) -> None:
    store = new(tmp_path)
    seal = Seal(SECRET, "ann", turned=False)
    lengths = set()
    for number, text in enumerate(["I had tea" + " with Ben" * n + "." for n in range(12)]):
        name = f'["turns",{say(store, f"t{number}", text)}]'
        with store.reading() as db:
            content = read(db, name)
        assert content is not None
        row, _ = sealed(seal, content)
        assert text.encode() not in row.sealed
        assert seal.seal(row.row_id, 0, b"x") != seal.seal(row.row_id, 0, b"x")
        lengths.add(len(row.sealed))
    assert len(lengths) == 2  # of twelve


def test_turned_vectors_keep_every_likeness_and_hide_their_values() -> None:
    seal, other = Seal(SECRET, "ann"), Seal(SECRET, "ben")
    a, b = meaning("tea"), meaning("coffee")
    turned = seal.leaving(a), seal.leaving(b)
    assert abs(float(turned[0] @ turned[1]) - float(a @ b)) < 1e-6
    assert abs(float(np.linalg.norm(turned[0])) - 1) < 1e-6
    assert abs(float(turned[0] @ a)) < 0.3  # no more alike than any two directions
    assert abs(float(turned[0] @ other.leaving(a))) < 0.3  # two wearers' vectors cannot be compared
    assert np.array_equal(Seal(SECRET, "ann").leaving(a), turned[0])  # on another day, another device


def test_vectors_leave_on_the_shelf_of_their_kind_and_what_is_not_searched_has_none(tmp_path: Path) -> None:
    store = lived(tmp_path)
    seal = Seal(SECRET, "ann")
    shelves = []
    with store.reading() as db:
        for name in names(store):
            content = read(db, name)
            assert content is not None
            row, vector = sealed(seal, content)
            shelves.append(row.shelf)
            if row.shelf < 0:
                assert vector is None
            else:
                assert content.item is not None
                assert vector is not None
                assert float(vector @ seal.leaving(unpack([content.item.vector])[0])) > 0.999
    assert sorted(shelves) == [-1, -1, -1, -1, -1, -1, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "wearer", ["", "ann", "a' or 1==1 --", "../../x", 'x" in ["', "名前", "\ud800", "a" * 9999]
)
def test_a_wearers_collection_has_a_plain_name_whatever_the_wearers(wearer: str) -> None:
    assert re.fullmatch(r"os1_[0-9a-f]{32}", collection_of(wearer))


def test_every_change_is_noted_with_the_change_itself(tmp_path: Path) -> None:
    store = lived(tmp_path)
    settle(store, Place("x.db", "ann", SECRET))
    assert noted(store) == set(names(store))  # all that was there
    with store.transaction() as db:
        db.execute("DELETE FROM hosted_outbox")
    third = say(store, "t3", "I like figs.", 5)
    assert noted(store) == {f'["turns",{third}]'}
    with suppress(RuntimeError), store.transaction():
        say(store, "t4", "I never said this.", 6)
        raise RuntimeError
    assert noted(store) == {f'["turns",{third}]'}
    with store.transaction() as db:
        db.execute("DELETE FROM hosted_outbox")
    item = store.rows("SELECT id FROM items WHERE kind = 'event'")[0][0]
    store.set_vector(item, meaning("another"))  # the embedder came by
    assert noted(store) == {'["events",1]'}
    forget.carry_out(store, forget.foresee(store, [("turn", third)]))
    gone = {canonical(name) for _, name in waiting(store, 100)} - {'["events",1]'}
    assert f'["turns",{third}]' in gone
    assert any(name.startswith('["forgotten"') for name in gone)


def test_a_change_while_another_is_sent_stays_noted(tmp_path: Path) -> None:
    from os1_edge.remember.hosted.state import sent

    store = new(tmp_path)
    row = say(store, "t1", "I like tea.")
    settle(store, Place("x.db", "ann", SECRET))
    entries = waiting(store, 10)
    derived.set_importance(store, "turn", row, 9)
    sent(store, entries, forgot=False)
    assert noted(store) == {f'["turns",{row}]'}
    sent(store, waiting(store, 10), forgot=False)
    assert counts(store) == (0, 0)


def test_a_memory_that_was_never_moved_has_nothing_of_it(tmp_path: Path) -> None:
    store = lived(tmp_path)
    before = sorted(store.rows("SELECT type, name FROM sqlite_master"))
    assert place_of(store) is None
    place = Place("https://m.example", "ann", SECRET, True, "/t", "/c", 3, 7.5)
    settle(store, place)
    assert place_of(store) == place
    unsettle(store)
    assert place_of(store) is None
    assert sorted(store.rows("SELECT type, name FROM sqlite_master")) == before
