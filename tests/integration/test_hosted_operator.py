"""A Milvus server whose operator is no friend: what is given, held back or exchanged. See test_hosted_memory.

Deeds to rows are done as the server's administrator, deeds to answers between it and the glasses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from hosted_between import Between, between
from hosted_world import (
    EMBEDDER,
    NOW,
    Server,
    exported,
    here,
    lived,
    no_hurry,
    place,
    recalled,
    server,
    sound,
)
from memories import KEY

from os1_edge.remember import forget
from os1_edge.remember.hosted import open as opening
from os1_edge.remember.hosted import search
from os1_edge.remember.hosted.courier import send_all
from os1_edge.remember.hosted.move import adopt, move_home, move_out
from os1_edge.remember.hosted.open import reach
from os1_edge.remember.hosted.shelf import LARGEST, MilvusShelf, NotReached
from os1_edge.remember.hosted.state import Place, counts, new_secret, place_of
from os1_edge.remember.hosted.window import Incomplete
from os1_edge.remember.recall import Recall, RecallRules
from os1_edge.remember.store import BadMemory, Store

__all__ = ["no_hurry", "place", "server"]

milvus_pb2 = pytest.importorskip("pymilvus.grpc_gen.milvus_pb2")


@pytest.fixture
def moved(tmp_path: Path, server: Server, place: Place) -> Iterator[tuple[Store, Between]]:
    """A memory most of which is away, on a server between."""
    with between(server) as (url, operator):
        store = lived(tmp_path / "m.db")
        move_out(store, replace(place, url=url, ca_file=""), NOW)
        yield store, operator
        store.close()


def garbage(method: str, answer: bytes) -> bytes:
    return random.Random(7).randbytes(900)


def nothing(method: str, answer: bytes) -> bytes:
    return b""


def far_too_much(method: str, answer: bytes) -> bytes:
    return bytes(LARGEST + 1)


def nonsense(method: str, answer: bytes) -> bytes:
    """What reads as an answer, with values that there are none of."""
    if method == "Query":
        found = milvus_pb2.QueryResults.FromString(answer)
        for field in found.fields_data:
            strings, numbers = field.scalars.string_data.data, field.scalars.int_data.data
            strings[:] = ["no hex" for _ in strings]
            numbers[:] = [3000 for _ in numbers]
        return bytes(found.SerializeToString())
    if method == "Search":
        hits = milvus_pb2.SearchResults.FromString(answer)
        ids = hits.results.ids.str_id.data
        ids[:] = ["'); DROP" for _ in ids]
        return bytes(hits.SerializeToString())
    return answer


def likes_all_the_same(method: str, answer: bytes) -> bytes:
    if method != "Search":
        return answer
    found = milvus_pb2.SearchResults.FromString(answer)
    scores = found.results.scores
    scores[:] = [float("nan") if n % 2 else 1e30 for n in range(len(scores))]
    return bytes(found.SerializeToString())


def keeps_rows_back(method: str, answer: bytes) -> bytes:
    if method != "Query":
        return answer
    found = milvus_pb2.QueryResults.FromString(answer)
    if not any(field.field_name == "sealed" for field in found.fields_data):
        return answer
    for field in found.fields_data:
        if field.field_name == "id":
            del field.scalars.string_data.data[3:]
        elif field.field_name == "shelf":
            del field.scalars.int_data.data[3:]
        else:
            del field.scalars.array_data.data[3:]
    return bytes(found.SerializeToString())


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """pymilvus asks again and again for as long as it may."""
    monkeypatch.setattr(search, "ANSWER_S", 0.6)
    monkeypatch.setattr(opening, "CONNECT_S", 0.6)
    monkeypatch.setattr(MilvusShelf.get, "__defaults__", (0.6,))


@pytest.mark.parametrize("makes", [garbage, nothing, far_too_much, nonsense])
def test_an_answer_that_is_none_costs_the_wearer_what_is_away_and_nothing_else(
    moved: tuple[Store, Between], makes: Callable[[str, bytes], bytes], request: pytest.FixtureRequest
) -> None:
    store, operator = moved
    assert any("day 7." in text for _, text in recalled(store, "What was on day 7?"))
    recall = Recall(store, EMBEDDER, RecallRules(limit=5, min_similarity=-1, tokens=10_000))
    recall.warm()
    request.getfixturevalue("hurry")
    operator.makes = lambda method, answer: makes(method, answer) if method in ("Search", "Query") else answer
    assert any("day 37" in hit.text.casefold() for hit in recall.recall("What was on day 37?", NOW))
    assert recall.word
    before = counts(store)
    with pytest.raises(BadMemory):
        move_home(store)
    assert counts(store) == before
    recall.close()


@pytest.mark.parametrize("hangs", ["Connect", "LoadCollection", "Query", "Search"])
def test_a_server_that_never_answers_keeps_nobody_waiting_for_ever(
    moved: tuple[Store, Between], hurry: None, hangs: str
) -> None:
    store, operator = moved
    recall = Recall(store, EMBEDDER, RecallRules(limit=5, min_similarity=-1, tokens=10_000))
    if hangs == "Search":
        recall.warm()  # it has a connection
    over, gave_up = Event(), list[bool]()

    def never(method: str, answer: bytes) -> bytes:
        if method == hangs:
            gave_up.append(not over.wait(20))
        return answer

    operator.makes = never
    assert any("day 37" in hit.text.casefold() for hit in recall.recall("What was on day 37?", NOW))
    assert "not reached" in recall.word
    assert gave_up == []  # it hangs yet
    over.set()
    recall.close()


def test_how_alike_the_server_calls_rows_counts_for_nothing(moved: tuple[Store, Between]) -> None:
    store, operator = moved
    asked = ("What did Ben say about chess?", "pottery of day 4", "What happened on day 17?", "bread")
    honest = {q: recalled(store, q) for q in asked}
    operator.makes = likes_all_the_same
    assert {q: recalled(store, q) for q in asked} == honest


def test_rows_that_the_server_keeps_back_are_missed(moved: tuple[Store, Between]) -> None:
    store, operator = moved
    recall = Recall(store, EMBEDDER, RecallRules(limit=5, min_similarity=-1, tokens=10_000))
    recall.warm()
    operator.makes = keeps_rows_back
    recall.recall("What was on day 7?", NOW)
    assert "not there as it was sent" in recall.word
    recall.close()
    with pytest.raises(Incomplete, match="are not on the server as they were sent"):
        move_home(store)
    operator.makes = lambda method, answer: answer
    move_home(store)
    assert sound(store)


def test_rows_exchanged_between_two_wearers_or_two_places_are_not_believed(
    tmp_path: Path, server: Server, place: Place
) -> None:
    ann, ben = lived(tmp_path / "ann.db"), lived(tmp_path / "ben.db")
    before = exported(ann)
    theirs = replace(place, wearer=place.wearer + " & ben", secret=new_secret())
    move_out(ann, place, NOW)
    move_out(ben, theirs, NOW)
    row = dict(ann.rows("SELECT json_extract(name, '$[1]'), row_id FROM hosted_away WHERE kind = 'turn'"))
    mine, other, bens = row[3].hex(), row[4].hex(), theirs.seal().row_id('["turns",3]').hex()
    here, there = reach(ann), reach(ben)
    operator = server.client()
    fields = ["id", "shelf", "sealed", "vector"]
    held = {e["id"]: e for e in operator.get(here.collection, [mine, other], fields)}
    (his,) = operator.get(there.collection, [bens], fields)
    for forged in ({**held[other], "id": mine}, {**his, "id": mine}, {**held[mine], "sealed": ["~~~"]}):
        operator.upsert(here.collection, [dict(forged)])
        recall = Recall(ann, EMBEDDER, RecallRules(limit=5, min_similarity=-1, tokens=10_000))
        hits = recall.recall("Day 1 began with figs.", NOW)
        assert "Day 1 began with figs." not in [hit.text for hit in hits]
        assert recall.word
        recall.close()
        with pytest.raises(BadMemory):
            move_home(ann)
        assert row[3] in {r[0] for r in ann.rows("SELECT row_id FROM hosted_away")}
    operator.upsert(here.collection, [dict(held[mine])])
    move_home(ann)
    assert exported(ann) == before
    there.drop()
    for line in (here, there, operator):
        line.close()


def test_glasses_that_take_over_a_collection_with_rows_missing_say_so(
    tmp_path: Path, server: Server, place: Place
) -> None:
    store, seal = lived(tmp_path / "m.db", 15), place.seal()
    move_out(store, place, NOW)
    shelf = reach(store)
    ((number,),) = store.rows("SELECT max(id) FROM turns")
    forget.carry_out(store, forget.foresee(store, [("turn", number)]))  # fewer, and rightly so
    send_all(store, seal, shelf)
    whole, other = Store(tmp_path / "whole.db", KEY), Store(tmp_path / "other.db", KEY)
    adopt(whole, place)
    ((summary,),) = store.rows("SELECT row_id FROM hosted_away WHERE kind = 'summary' LIMIT 1")
    shelf.delete([summary])
    with pytest.raises(Incomplete, match="sent it more"):
        adopt(other, place)
    shelf.delete([seal.row_id("rows")])
    with pytest.raises(Incomplete, match="unknown"):
        adopt(other, place)
    adopt(other, place, as_is=True)
    assert here(other) == here(whole) - 1
    shelf.close()


def test_a_server_that_gives_the_same_rows_for_ever_is_not_listened_to_for_ever(
    tmp_path: Path, moved: tuple[Store, Between], place: Place
) -> None:
    store, operator = moved
    first: list[bytes] = []

    def again(method: str, answer: bytes) -> bytes:
        if method != "Query" or not (first or len(answer) > 100_000):  # a page of rows
            return answer
        first.append(answer)
        return first[0]

    operator.makes = again
    other = Store(tmp_path / "other.db", KEY)
    there = place_of(store)
    assert there is not None
    with pytest.raises(NotReached, match="again and again"):
        adopt(other, there)
    assert len(first) == 2
    operator.makes = lambda method, answer: answer
    adopt(other, there)
    assert sound(other)


def test_what_the_server_lost_for_good_can_be_given_up(tmp_path: Path, place: Place) -> None:
    store = lived(tmp_path / "m.db")
    rows = here(store)
    move_out(store, place, NOW)
    shelf = reach(store)
    lost = store.rows("SELECT row_id FROM hosted_away WHERE kind IN ('turn', 'event') LIMIT 9")
    shelf.delete([row[0] for row in lost])
    shelf.close()
    with pytest.raises(Incomplete, match="as-is"):
        move_home(store)
    move_home(store, as_is=True)
    assert rows - 9 >= here(store) >= rows - 18
    assert sound(store)
    assert recalled(store, "bread")
