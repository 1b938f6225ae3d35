"""A memory on a Milvus server: what is forgotten there, and who else has one. See test_hosted_memory."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner, Result
from hosted_world import (
    EMBEDDER,
    LITE,
    NOW,
    Server,
    exported,
    lived,
    no_hurry,
    options,
    place,
    recalled,
    server,
    token_file,
)
from memories import KEY, meaning

from os1_edge.cli import main
from os1_edge.remember import forget
from os1_edge.remember.about import about, foresee_about
from os1_edge.remember.hosted import move
from os1_edge.remember.hosted.courier import purge, send_all
from os1_edge.remember.hosted.move import move_home, move_out
from os1_edge.remember.hosted.open import reach
from os1_edge.remember.hosted.owner import owner
from os1_edge.remember.hosted.shelf import MilvusShelf, NotReached, SealedRow, collection_of
from os1_edge.remember.hosted.state import Place, new_secret, place_of, settle
from os1_edge.remember.store import Store
from os1_edge.remember.trash import Window
from os1_edge.remember.undo import undo

__all__ = ["no_hurry", "place", "server"]


# Forgetting -------------------------------------------------------------------------------------------------


def test_what_is_forgotten_is_gone_from_the_server_and_its_files(
    tmp_path: Path, place: Place, server: Server
) -> None:
    store = lived(tmp_path / "m.db")
    seal = place.seal()
    ((number,),) = store.rows("SELECT id FROM turns WHERE heard LIKE 'Ben likes % on day 7.'")
    move_out(store, place, NOW)
    old = [seal.row_id(f'["turns",{number}]')]
    shelf = reach(store)
    (before,) = shelf.get([old[0]]).values()
    forgotten = about(store, "day 7")
    forget.carry_out(store, foresee_about(store, "day 7", forgotten))
    assert forgotten
    send_all(store, seal, shelf)
    while not purge(store, seal, shelf):  # Milvus passes over what was just written
        time.sleep(5)
    shelf.close()
    shelf = reach(store)
    assert (place_of(store) != place) == LITE  # that had to be given a new collection
    assert shelf.get([old[0]]) == {}
    assert not any("day 7." in text for _, text in recalled(store, "What was on day 7?"))
    (stays,) = shelf.get([seal.row_id('["turns",1]')]).values()
    shelf.close()
    for _ in range(120):  # Milvus lets go of files in its own time, and of its log later still: sealed
        left = server.data()
        traces = [old[0].hex().encode() in left, base64.b85encode(before.sealed)[:200] in left]
        if not any(traces):
            break
        time.sleep(0.5)
    assert not any(traces)
    assert base64.b85encode(stays.sealed)[:200] in left  # the search does find what is there


def test_a_forgetting_that_is_undone_is_undone_on_the_server_too(tmp_path: Path, place: Place) -> None:
    store = lived(tmp_path / "m.db")
    before = exported(store, vectors=False)
    move_out(store, place, NOW)
    window = Window(NOW, NOW + timedelta(hours=1))
    forget.carry_out(store, foresee_about(store, "chess", about(store, "chess")), undo=window)
    shelf = reach(store)
    send_all(store, place.seal(), shelf)
    undo(store)
    send_all(store, place.seal(), shelf)
    held = shelf.count()
    shelf.close()
    assert sorted(exported(store, vectors=False).splitlines()) == sorted(before.splitlines())
    assert held == 2 + sum(
        store.rows(f"SELECT count(*) FROM {t}")[0][0]
        for t in ("turns", "contexts", "events", "summaries", "index_keys", "profile", "profile_sources",
                  "turn_used", "jobs", "forgotten")
    )  # fmt: skip


# Isolation --------------------------------------------------------------------------------------------------

HOSTILE = (
    'ann" or id != "',
    "ann') or 1 == 1 --",
    "shelf >= -5",
    "*",
    "",
    "ann\x00",
    "../ann",
    "id in ['x']",
    "名",
)


def test_no_wearer_sees_counts_or_deletes_anothers_rows_whatever_their_name(
    tmp_path: Path, server: Server
) -> None:
    server.start()
    shelves = {}
    for wearer in ("ann", *HOSTILE):
        theirs = Place(server.url, wearer, new_secret(), token_file=server.token_file, ca_file=server.ca_file)
        seal, shelf = theirs.seal(), MilvusShelf(theirs, make=True)
        rows = [(n := seal.row_id(f"{wearer} {i}"), seal.seal(n, 0, b"secret")) for i in range(5)]
        shelf.put([(SealedRow(n, 0, box), seal.leaving(meaning(str(i)))) for i, (n, box) in enumerate(rows)])
        shelves[wearer] = shelf, seal, [n for n, _ in rows]
    assert len({collection_of(wearer) for wearer in shelves}) == len(shelves)
    for wearer, (shelf, seal, mine) in shelves.items():
        theirs = [n for other, (_, _, rows) in shelves.items() if other != wearer for n in rows]
        assert shelf.count() == 5
        assert {row.row_id for row in shelf.every()} == set(mine)
        assert {n for n, _ in shelf.nearest(0, seal.leaving(meaning("3")), 1000, 5.0)} == set(mine)
        assert shelf.get([*theirs, mine[0]]).keys() == {mine[0]}
        shelf.delete(theirs)
    assert [shelf.count() for shelf, _, _ in shelves.values()] == [5] * len(shelves)
    ann, ben = shelves["ann"], shelves[HOSTILE[0]]
    ben[0].drop()
    assert ann[0].count() == 5
    for shelf, _, _ in shelves.values():
        if shelf is not ben[0]:
            shelf.drop()
        shelf.close()


ROWS_ALONE = ("Insert", "Upsert", "Delete", "Search", "Query", "Load", "Flush", "GetFlushState")
"""What a wearer's token needs of a Milvus before 2.5; docs/hosted.md."""


def token_for(server: Server, wearer: str, to: Path) -> str:
    """Makes a user who may use the wearer's collection and nothing else."""
    client, name, collection = server.client(), f"u{secrets.token_hex(6)}", f"{collection_of(wearer)}_0"
    client.create_role(name)
    client.create_user(name, "a password")
    client.grant_role(name, name)
    try:
        client.grant_privilege_v2(name, "CollectionAdmin", collection, "default")
    except grpc.RpcError:  # older than 2.5
        for privilege in ROWS_ALONE:
            client.grant_privilege(name, "Collection", privilege, collection)
    client.close()
    given = replace(server, token_file=token_file(to, f"{name}:a password"), process=None)
    for _ in range(100):  # it is told to all parts of the server in its own time
        user = given.client()
        with suppress(grpc.RpcError):
            user.load_collection(collection)
            user.query(collection, filter="", limit=1)
            break
        time.sleep(0.3)
    user.close()
    return given.token_file


@pytest.mark.skipif(
    LITE, reason="milvus-lite knows no users: OS1_MILVUS_URL, or scripts/test-hosted --milvus"
)
def test_a_wearers_token_is_good_for_the_wearers_own_rows_alone(
    tmp_path: Path, server: Server, place: Place
) -> None:
    ann, ben = lived(tmp_path / "ann.db"), lived(tmp_path / "ben.db", 12)
    before, theirs = exported(ann), replace(place, wearer=f"{place.wearer} & ben", secret=new_secret())
    for store, where in ((ann, place), (ben, theirs)):  # the operator's token makes the collections
        move_out(store, replace(where, keep_days=10_000), NOW)
    ours = replace(place, token_file=token_for(server, place.wearer, tmp_path / "ann"))
    settle(ann, replace(ours, keep_days=10))
    assert move_out(ann, ours, NOW).away > 100
    with pytest.raises(NotReached, match="permission"):
        MilvusShelf(replace(theirs, token_file=ours.token_file))
    line = reach(ann)
    held, others = line._client, f"{collection_of(theirs.wearer)}_0"
    for deed in (
        lambda: held.query(others, filter="", limit=3),
        lambda: held.get(others, ids=["a"]),
        lambda: held.search(others, data=[EMBEDDER.one("tea").tolist()], limit=3),
        lambda: held.upsert(others, [{"id": "a", "shelf": 0, "sealed": ["x"], "vector": [0.1] * 384}]),
        lambda: held.delete(others, ids=["a"]),
        lambda: held.drop_collection(others),
        lambda: held.rename_collection(others, "mine"),
        lambda: held.create_alias(others, "mine"),
        lambda: held.list_users(),
    ):
        with pytest.raises(grpc.RpcError, match="permission deny"):
            deed()
    assert recalled(ann, "What did Ben say about chess?")
    line.close()
    home = move_home(ann)
    assert exported(ann) == before
    if home.left:  # where its token may not drop it, it is empty
        shelf = MilvusShelf(place)
        assert "operator" in home.left
        assert shelf.count() == 0
        shelf.close()
    move_home(ben)


def test_a_collection_under_another_key_is_refused_and_left_as_it_is(tmp_path: Path, place: Place) -> None:
    store, other = lived(tmp_path / "a.db", 5), lived(tmp_path / "b.db", 5)
    move_out(store, place, NOW)
    with pytest.raises(NotReached, match="another key"):
        move_out(other, replace(place, secret=new_secret()), NOW)
    assert place_of(other) is None
    shelf = reach(store)
    assert owner(shelf, place.seal()) == store.meta("device")
    shelf.close()


# The commands -----------------------------------------------------------------------------------------------


def test_the_wearer_moves_the_memory_and_is_told_where_it_is(tmp_path: Path, place: Place) -> None:
    file, key = tmp_path / "m.db", tmp_path / "key"
    lived(file, 30).close()
    key.write_text(KEY.hex())
    key.chmod(0o600)

    def run(*words: str) -> dict[str, object]:
        done = CliRunner().invoke(
            main, ["memory", *words, "--memory", str(file), "--key-file", str(key), "--json"]
        )
        assert done.exit_code == 0, done.output
        found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        return found

    assert run("hosted") == {"hosted": False}
    to = ["--to", f"milvus:{place.url}", "--wearer", f"{place.wearer} & co", *options(place)]
    away = run("move", *to, "--keep-days", "5")["away"]
    told = run("hosted")
    assert told["away"] == away
    assert told["wearer"] == f"{place.wearer} & co"
    assert run("hosted", "--recovery", str(tmp_path / "rec"))["waiting"] == 0
    assert len(bytes.fromhex((tmp_path / "rec").read_text())) == 32
    assert (tmp_path / "rec").stat().st_mode & 0o77 == 0
    run("move", "--to", "local")
    assert run("hosted") == {"hosted": False}


def commands(tmp_path: Path) -> Callable[..., Result]:
    """Runs `os1 memory` with the key that the memories of these tests have."""
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text(KEY.hex())
    return lambda *words: CliRunner().invoke(main, ["memory", *map(str, words), "--key-file", str(key)])


def test_the_recovery_key_of_a_move_that_failed_and_went_on_opens_what_is_hosted(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, file, rec = commands(tmp_path), tmp_path / "m.db", tmp_path / "rec"
    lived(file, 15).close()
    dead = ("move", "--to", "milvus:http://127.0.0.1:1", "--memory", file, "--recovery", rec)
    out = ("move", "--to", f"milvus:{place.url}", "--wearer", place.wearer, "--keep-days", "0",
           "--memory", file, "--recovery", rec, *options(place))  # fmt: skip
    with monkeypatch.context() as impatient:
        impatient.setattr(move, "MilvusShelf", partial(MilvusShelf, timeout_s=1.0))
        assert "cannot be used" in run(*dead).output
    assert not rec.exists()  # a key of nothing
    rec.write_text("another's\n")
    refused = run(*out)
    assert "left as it is" in refused.output
    assert rec.read_text() == "another's\n"
    assert json.loads(run("hosted", "--memory", file, "--json").output) == {"hosted": False}
    rec.unlink()
    with monkeypatch.context() as cut:
        cut.setattr(move, "send_all", unreached)
        assert run(*out).exit_code == 1
    first = rec.read_text()
    again = run(*out)
    assert again.exit_code == 0, again.output
    assert rec.read_text() == first
    adopted = run("adopt", "--from", f"milvus:{place.url}", "--wearer", place.wearer, "--recovery", rec,
                  "--memory", tmp_path / "new.db", *options(place))  # fmt: skip
    assert adopted.exit_code == 0, adopted.output


def test_a_move_that_was_cut_off_as_the_server_took_it_goes_on_under_its_own_key(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    store = lived(tmp_path / "m.db")
    before = exported(store)
    with monkeypatch.context() as broken:
        broken.setattr(move, "settle", cut)
        with pytest.raises(KeyboardInterrupt):
            move_out(store, place, NOW)
    assert place_of(store) is None
    store.close()
    store = Store(tmp_path / "m.db", KEY)
    assert move_out(store, replace(place, secret=new_secret()), NOW).away
    assert (there := place_of(store)) is not None
    assert there.secret == place.secret
    move_home(store)
    assert exported(store) == before


def test_what_a_later_move_says_of_a_memory_that_was_moved_counts_or_is_refused(
    tmp_path: Path, place: Place
) -> None:
    run, file = commands(tmp_path), tmp_path / "m.db"
    lived(file, 15).close()
    out = ("move", "--to", f"milvus:{place.url}", "--wearer", place.wearer, "--memory", file)

    def told() -> dict[str, object]:
        found: dict[str, object] = json.loads(run("hosted", "--memory", file, "--json").output)
        return found

    assert run(*out, *options(place), "--keep-days", "10000").exit_code == 0
    before = told()
    assert before["away"] == 0
    open_to_all = tmp_path / "token"
    open_to_all.write_text("a:b")
    open_to_all.chmod(0o644)
    for wrong in (
        ("--ca-file", tmp_path / "nope"), ("--token-file", tmp_path / "nope"), ("--token-file", open_to_all),
        ("--plain-vectors",),
    ):  # fmt: skip
        assert run(*out, "--keep-days", "0", *wrong).exit_code != 0
        assert told() == before
    open_to_all.chmod(0o600)
    given = options(place) or ["--token-file", open_to_all]  # milvus-lite takes any
    assert run(*out).exit_code == 0
    assert told() == before  # what is not said stays
    assert run(*out, "--keep-days", "0", *given).exit_code == 0
    after = told()
    assert after["keep_days"] == 0
    assert after["away"] != 0
    store = Store(file, KEY)
    there = place_of(store)
    assert there is not None
    assert there.token_file == str(given[1])
    store.close()


def unreached(*_: object) -> int:
    raise NotReached("the link broke")


@pytest.mark.parametrize(
    "to",
    [
        "http://far.example:19530", "milvus:", "milvus:http://10.0.0.1:19530", "milvus:tcp://10.0.0.1:19530",
        "milvus:http://localhost.far.example:19530", "milvus:http://127.0.0.1@far.example:19530",
        "milvus:HTTP://far.example:19530", "milvus:https://ann:secret@far.example:19530",
    ],
)  # fmt: skip
def test_a_server_over_the_network_without_tls_is_refused(tmp_path: Path, to: str) -> None:
    lived(tmp_path / "m.db", 1).close()
    key = tmp_path / "key"
    key.write_text(KEY.hex())
    key.chmod(0o600)
    done = CliRunner().invoke(
        main, ["memory", "move", "--to", to, "--memory", str(tmp_path / "m.db"), "--key-file", str(key)]
    )
    assert done.exit_code == 2
