"""`os1 memory`: the wearer reads, corrects, takes along and forgets, and what it prints can be used again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from memories import KEY, MONDAY, event, know, meaning, say, see, summary

from os1_edge.cli import main
from os1_edge.remember import cli, cli_change, cli_files, rows
from os1_edge.remember import key as keys
from os1_edge.remember.store import Store

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wearer's data folder with a small memory in it."""
    for name in ("OS1_PASSPHRASE", "OS1_PASSPHRASE_FILE", "OS1_NEW_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OS1_KEY_FILE", str(tmp_path / "memory.key"))
    monkeypatch.setenv("OS1_MEMORY", str(tmp_path / "memory.db"))
    monkeypatch.setattr(keys, "_SCRYPT_N", 1 << 8)
    for module in (cli, cli_change, cli_files):
        monkeypatch.setattr(module, "embedder", lambda: meaning)
    (tmp_path / "memory.key").write_text(KEY.hex())
    (tmp_path / "memory.key").chmod(0o600)
    store = Store(tmp_path / "memory.db", KEY)
    first = say(store, "t1", "I am allergic to peanuts.", 0)
    say(store, "t2", "The bus was late.", 30, "s2")
    event(store, [see(store, "gym", 10)], "Trained at the gym.", 10)
    summary(store, "s1", "About an allergy.", 1)
    know(store, "The wearer is allergic to peanuts.", [first])
    store.close()
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    def run(*args: str, text: str | None = None, ok: bool = True) -> Result:
        result = CliRunner().invoke(main, ["memory", *args], input=text)
        assert (result.exit_code == 0) is ok, result.output
        return result

    return run


def told(result: Result) -> Any:
    return json.loads(result.stdout)


def test_ids_that_are_listed_can_be_shown_corrected_and_deleted(run: Run) -> None:
    listed = told(run("list", "--json"))["memories"]
    assert [m["kind"] for m in listed] == ["profile", "summary", "turn", "event", "turn"]
    bus = listed[-1]
    assert (bus["text"], bus["time"]) == ("The bus was late.", "2026-03-02T08:30:00")
    assert told(run("show", bus["id"], "--json"))["heard"] == "The bus was late."
    new = told(run("edit", bus["id"], "The train was late.", "--json"))["id"]
    shown = told(run("show", new, "--json"))
    assert (shown["heard"], shown["revisions"]) == (
        "The train was late.", [{"id": bus["id"], "text": "The bus was late."}],
    )  # fmt: skip
    assert new in [m["id"] for m in told(run("search", "train", "--json"))["memories"]]
    assert told(run("delete", new, "--yes", "--json"))["forgotten"] == {"turn": 2}
    assert "no turn" in run("show", new, ok=False).stderr


def test_a_correction_of_the_profile_keeps_the_old_line_and_its_words(run: Run) -> None:
    new = told(run("edit", "profile:1", "The wearer is allergic to cashews.", "--json"))["id"]
    shown = told(run("show", new, "--json"))
    assert (shown["made_by"], shown["confidence"]) == ("wearer", 1.0)
    assert [r["id"] for r in shown["revisions"]] == ["profile:1"]
    assert [s["id"] for s in shown["sources"]] == ["turn:1"]
    assert "cashews" in run("list", "--kind", "profile").output
    assert "peanuts" not in run("list", "--kind", "profile").output


def test_deleting_asks_first(run: Run) -> None:
    assert "Forget" in run("delete", "turn:2", text="n\n", ok=False).output
    assert len(told(run("list", "--kind", "turn", "--json"))["memories"]) == 2
    run("delete", "turn:2", text="y\n")
    assert len(told(run("list", "--kind", "turn", "--json"))["memories"]) == 1


def test_one_wrong_id_deletes_none(run: Run) -> None:
    run("delete", "turn:1", "turn:99", "--yes", ok=False)
    assert len(told(run("list", "--kind", "turn", "--json"))["memories"]) == 2


def test_forgetting_about_something_shows_it_and_takes_all_of_it(run: Run) -> None:
    seen = run("forget", "--about", "peanut", "--dry-run")
    assert "turn:1" in seen.output
    assert "would forget" in seen.output
    done = told(run("forget", "--about", "peanut", "--yes", "--json"))
    assert done["forgotten"] == {"profile": 1, "summary": 1, "turn": 1}
    assert done["left"] == ""
    assert "peanut" not in run("list").output
    assert "nothing to forget" in run("forget", "--about", "peanut", "--yes").output


def test_the_last_hour_is_counted_from_now(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_change, "now", lambda: MONDAY.replace(hour=9, minute=15))
    assert told(run("forget", "--last", "1h", "--yes", "--json"))["forgotten"] == {"turn": 1}
    assert "bus" not in run("list").output
    assert "peanuts" in run("list").output


def test_what_is_forgotten_for_a_while_can_be_taken_back(run: Run) -> None:
    before = told(run("list", "--json"))["memories"]
    done = told(run("forget", "--about", "peanut", "--undo-for", "10m", "--yes", "--json"))
    assert done["undo_until"] is not None
    assert len(told(run("list", "--json"))["memories"]) < len(before)
    assert "back again" in run("undo").output
    assert told(run("list", "--json"))["memories"] == before
    assert "nothing can be undone" in run("undo").output
    bus = before[-1]["id"]
    assert "os1 memory undo" in run("delete", bus, "--undo-for", "1d", "--yes").output
    run("forget", "--clear")
    assert told(run("undo", "--json")) == {"restored": {}}
    for wrong in ("8d", "soon"):
        run("forget", "--last", "1h", "--undo-for", wrong, "--yes", ok=False)
    run("forget", "--expired", "--undo-for", "1h", "--yes", ok=False)


@pytest.mark.parametrize(
    "args",
    [
        (), ("--about", "x", "--last", "1h"), ("--last", "soon"), ("--since", "yesterday"), ("--about", "?!"),
        ("--last", "1h", "--since", "2026-03-02"),
    ],
)  # fmt: skip
def test_forgetting_needs_to_be_told_one_thing(args: tuple[str, ...], run: Run) -> None:
    run("forget", *args, "--yes", ok=False)
    assert len(told(run("list", "--json"))["memories"]) == 5


def test_what_the_settings_let_go_goes_when_asked(run: Run, folder: Path) -> None:
    settings = folder / "config.toml"
    settings.write_text("[remember]\nkeep_contexts_days = 7\n")
    args = ("forget", "--expired", "--config", str(settings), "--json")
    assert told(run(*args, "--dry-run"))["would_forget"] == {"context": 1}
    assert told(run(*args))["forgotten"] == {"context": 1}
    assert told(run(*args))["forgotten"] == {}


def test_what_is_exported_can_be_imported_on_another_device(run: Run, folder: Path) -> None:
    run("export", str(folder / "all.jsonl"), "--vectors")
    assert (folder / "all.jsonl").stat().st_mode & 0o777 == 0o600
    other = ("--memory", str(folder / "other.db"))
    done = told(run("import", str(folder / "all.jsonl"), *other, "--json"))
    assert done["new"] == {
        "event": 1, "context": 1, "turn": 2, "summary": 1, "profile": 1, "key": 1, "source": 1,
    }  # fmt: skip
    assert told(run("list", *other, "--json")) == told(run("list", "--json"))
    assert told(run("stats", *other, "--json"))["without_vector"] == 0


def test_an_export_to_the_terminal_warns_that_it_is_plain_text(run: Run) -> None:
    result = run("export")
    assert "plain text" in result.stderr
    assert json.loads(result.stdout.splitlines()[0])["rows"]["turn"] == 2


def test_a_bad_import_leaves_everything(run: Run, folder: Path) -> None:
    run("export", str(folder / "all.jsonl"))
    text = (folder / "all.jsonl").read_text().splitlines()
    text[3] = text[3][:-5]
    (folder / "all.jsonl").write_text("\n".join(text))
    result = run("import", str(folder / "all.jsonl"), "--memory", str(folder / "other.db"), ok=False)
    assert "line 4" in result.stderr
    assert [path.name for path in folder.iterdir() if "other.db" in path.name] == []
    before = told(run("list", "--json"))
    run("import", str(folder / "all.jsonl"), ok=False)
    assert told(run("list", "--json")) == before


def test_a_backup_is_listed_and_opens(run: Run, folder: Path) -> None:
    copy = str(folder / "copy.db")
    run("backup", copy)
    assert told(run("stats", "--json"))["backups"] == [copy]
    assert told(run("list", "--memory", copy, "--json")) == told(run("list", "--json"))
    assert "was left as it is" in run("backup", copy, ok=False).stderr
    gone = told(run("delete", "turn:2", "--yes", "--json"))
    assert gone["copies"] == [copy]


def test_a_passphrase_locks_the_memory_and_opens_it(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS1_NEW_PASSPHRASE", "correct horse battery")
    run("rekey", "--to-passphrase")
    assert "OS1_PASSPHRASE" in run("list", ok=False).stderr  # nobody is asked where there is no terminal
    monkeypatch.setenv("OS1_PASSPHRASE", "something else")
    assert "another key" in run("list", ok=False).stderr
    monkeypatch.setenv("OS1_PASSPHRASE", "correct horse battery")
    assert "bus" in run("list").output
    run("backup", str(folder / "copy.db"))
    assert "bus" in run("list", "--memory", str(folder / "copy.db")).output
    run("rekey")
    monkeypatch.delenv("OS1_PASSPHRASE")
    assert "bus" in run("list").output


def test_check_tells_and_repair_mends(run: Run, folder: Path) -> None:
    assert "is sound" in run("check").output
    store = Store(folder / "memory.db", KEY)
    store.rows("DELETE FROM items WHERE kind = 'turn'")
    store.close()
    assert not told(run("check", "--json", ok=False))["ok"]
    assert "no memory was lost" in run("repair").output
    assert told(run("check", "--json")) == {"ok": True, "problems": [], "index_only": True}
    assert "nothing was done" in run("repair").output


@pytest.mark.parametrize("command", ["list", "stats", "check", "export", "repair", "rekey"])
def test_where_there_is_no_memory_none_is_begun(command: str, run: Run, folder: Path) -> None:
    nowhere = folder / "nowhere.db"
    result = run(command, "--memory", str(nowhere), ok=False)
    assert "no memory" in result.stderr
    assert not nowhere.exists()


@pytest.mark.parametrize("bad", ["12", "turn", "turn:x", "key:1", "table:1", "turn:1;DROP"])
def test_what_is_no_id_is_told(bad: str, run: Run) -> None:
    assert "looks like turn:12" in run("show", bad, ok=False).stderr


def test_what_was_said_does_not_steer_the_terminal(run: Run, folder: Path) -> None:
    store = Store(folder / "memory.db", KEY)
    say(store, "t9", "red \x1b[31m\nnext line", 60)
    store.close()
    line = run("list").output.splitlines()[-2]
    assert "\x1b" not in line
    assert "next line" in line


def test_the_time_of_what_is_done_by_hand_is_the_wearers_own() -> None:
    assert rows.now().tzinfo is None
    assert rows.moment(rows.seconds(MONDAY)) == MONDAY


def test_an_export_takes_no_name_that_is_there_unless_told(run: Run, folder: Path) -> None:
    file = folder / "all.jsonl"
    file.write_text("mine")
    assert "was left as it is" in run("export", str(file), ok=False).stderr
    assert file.read_text() == "mine"
    run("export", str(file), "--force")
    assert json.loads(file.read_text().splitlines()[0])["rows"]["turn"] == 2
    assert f"{folder}: is a folder" in run("export", str(folder), "--force", ok=False).stderr
    assert f"{folder / 'no'}: there is no such" in run("export", str(folder / "no" / "x"), ok=False).stderr
    assert not list(folder.glob(".*"))


def test_no_export_takes_the_place_of_the_memory_or_its_key(run: Run, folder: Path) -> None:
    run("rekey")
    (folder / "link.db").symlink_to(folder / "memory.db")
    (new_key,) = folder.glob("memory.db-*.key")
    names = ["memory.db", "memory.db-wal", "memory.db-shm", "memory.db.key-source", "memory.key", "link.db"]
    for name in [*names, new_key.name]:
        was = (folder / name).read_bytes() if (folder / name).exists() else None
        result = run("export", str(folder / name), "--force", ok=False)
        assert "the memory itself" in result.stderr, name
        assert was is None or (folder / name).read_bytes() == was
    assert "bus" in run("list").output


@pytest.mark.parametrize("model", [meaning, None])
def test_what_is_found_is_printed_for_people_too(
    model: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "embedder", lambda: model)
    assert "The bus was late." in run("search", "bus").output


def test_a_time_with_an_offset_means_that_moment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Oslo")
    time.tzset()
    try:  # the bus came at 8:30 in Oslo, in winter
        args = ("list", "--kind", "turn", "--json", "--since")
        assert len(told(run(*args, "2026-03-02T07:20:00+00:00"))["memories"]) == 1
        assert len(told(run(*args, "2026-03-02T09:29:00+02:00"))["memories"]) == 1
        assert len(told(run(*args, "2026-03-02T08:31:00+00:00"))["memories"]) == 0
        assert "is no time" in run(*args, "0001-01-01T00:00+14:00", ok=False).stderr
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("from_stdin", [True, False])
def test_an_import_that_is_not_utf8_names_the_line(from_stdin: bool, run: Run, folder: Path) -> None:
    file = folder / "all.jsonl"
    run("export", str(file))
    file.write_bytes(file.read_bytes().replace(b"The bus", b"The b\xfcs"))
    number = 1 + next(n for n, line in enumerate(file.read_bytes().splitlines()) if b"\xfc" in line)
    if from_stdin:
        args = ["memory", "import", "-"]
        result = CliRunner().invoke(main, args, input=file.read_bytes())
    else:
        result = run("import", str(file), ok=False)
    assert result.exit_code == 1
    assert f"line {number}: not UTF-8" in result.stderr


def test_a_number_that_no_row_can_have_is_told(run: Run) -> None:
    assert "looks like turn:12" in run("show", "turn:" + 20 * "9", ok=False).stderr
