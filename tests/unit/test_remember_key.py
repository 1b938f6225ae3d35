"""Keys: from a file, a passphrase, the OS keyring; and a memory locked anew, cut off at any moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from memories import KEY, OTHER, say, texts

from os1_edge.remember import files, rekey
from os1_edge.remember import key as keys
from os1_edge.remember.backup import Lock, backup
from os1_edge.remember.connection import NotThisKey, opens
from os1_edge.remember.key import BadKey, KeySource
from os1_edge.remember.rekey import find_key, new_lock
from os1_edge.remember.store import BadMemory, Store

WORDS = "correct horse battery"


class Cut(BaseException):
    """The process ends here."""


@pytest.fixture(autouse=True)
def _quick_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second for each guess is right for thieves, not for a hundred tests."""
    monkeypatch.setattr(keys, "_SCRYPT_N", 1 << 8)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A memory with one turn, under the wearer's key file."""
    for name in ("OS1_PASSPHRASE", "OS1_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OS1_KEY_FILE", str(tmp_path / "wearer.key"))
    path = tmp_path / "memory.db"
    store = Store(path, find_key(path))
    say(store, "t1", "I like tea.")
    store.close()
    return path


def held(path: Path, ask: Callable[[str], str] | None = None) -> list[str]:
    store = Store(path, find_key(path, ask))
    try:
        return texts(store)
    finally:
        store.close()


def test_a_file_system_without_links_still_gets_one_whole_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    key = keys.load_or_make(tmp_path / "memory.key")
    assert keys.load_or_make(tmp_path / "memory.key") == key
    assert [p.name for p in tmp_path.iterdir()] == ["memory.key"]
    draft = tmp_path / "draft"
    draft.write_text("another")
    assert not files.place_new(draft, tmp_path / "memory.key")
    assert keys.load_or_make(tmp_path / "memory.key") == key
    Store(tmp_path / "memory.db", key).close()
    Store(tmp_path / "memory.db", key).close()


def test_a_passphrase_makes_the_same_key_again_and_another_one_another(tmp_path: Path) -> None:
    salt = bytes(16)
    key = keys.from_passphrase(WORDS, salt)
    assert len(key) == keys.KEY_BYTES
    assert keys.from_passphrase(WORDS, salt) == key
    assert keys.from_passphrase(WORDS + " ", salt) != key
    assert keys.from_passphrase(WORDS, bytes(15) + b"x") != key
    assert keys.from_passphrase("caf\u00e9 caf\u00e9", salt) == keys.from_passphrase(
        "cafe\u0301 cafe\u0301", salt
    )
    with pytest.raises(BadKey, match="empty"):
        keys.from_passphrase("", salt)
    with pytest.raises(BadKey, match="UTF-8"):
        keys.from_passphrase("caf\udce9 in another encoding", salt)


def test_a_memory_locked_with_a_passphrase_asks_for_it_and_for_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rekey.rekey(file, find_key(file), *new_lock(KeySource("passphrase"), file, WORDS))
    (file.parent / "wearer.key").unlink()
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        return WORDS

    assert held(file, answer) == ["I like tea."]
    assert asked == [f"Passphrase of {file}"]
    with pytest.raises(BadKey, match="OS1_PASSPHRASE"):
        find_key(file)
    with pytest.raises(NotThisKey):
        held(file, lambda _: "a wrong passphrase")
    monkeypatch.setenv("OS1_PASSPHRASE", WORDS)
    assert held(file) == ["I like tea."]


def test_a_script_gives_the_passphrase_in_a_file_of_its_owner(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rekey.rekey(file, find_key(file), *new_lock(KeySource("passphrase"), file, WORDS))
    words = file.parent / "words"
    words.write_text(WORDS + "\n")
    words.chmod(0o644)
    monkeypatch.setenv("OS1_PASSPHRASE_FILE", str(words))
    with pytest.raises(BadKey, match="chmod 600"):
        find_key(file)
    words.chmod(0o600)
    assert held(file) == ["I like tea."]


@pytest.mark.parametrize("words", [None, "", "short"])
def test_a_short_passphrase_is_refused_before_anything_changes(words: str | None, file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(BadKey, match="8 characters"):
        new_lock(KeySource("passphrase"), file, words)
    assert file.read_bytes() == before


def test_locking_anew_leaves_the_old_key_good_for_nothing_but_old_copies(file: Path) -> None:
    old = find_key(file)
    store = Store(file, old)
    backup(store, file.with_name("copy.db"), Lock(old))
    store.close()
    lock, source = new_lock(KeySource("file"), file)
    rekey.rekey(file, old, lock, source)
    assert held(file) == ["I like tea."]
    assert not opens(file, old)
    assert opens(file.with_name("copy.db"), old)
    assert Path(source.name).stat().st_mode & 0o777 == 0o600
    assert keys.load(file.parent / "wearer.key") == old


def test_an_existing_key_file_is_never_written_over(file: Path) -> None:
    before = (file.parent / "wearer.key").read_bytes()
    with pytest.raises(FileExistsError):
        new_lock(KeySource("file", str(file.parent / "wearer.key")), file)
    assert (file.parent / "wearer.key").read_bytes() == before


STEPS = ("copy", "write_whole", "replace", "sync_folder")
"""What ``rekey`` does to the disk, in this order; the last rename is ``Path.replace``."""


@pytest.mark.parametrize("kind", ["file", "passphrase"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_change_of_keys_cut_off_anywhere_leaves_a_memory_that_opens(
    step: str, when: str, kind: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "passphrase":
        monkeypatch.setenv("OS1_PASSPHRASE", WORDS)
    source = KeySource(kind)  # type: ignore[arg-type]
    lock, source = new_lock(source, file, WORDS)
    real = getattr(rekey, step)

    def cut(*args: object) -> None:
        if when == "after":
            real(*args)
        raise Cut

    with monkeypatch.context() as power:
        power.setattr(rekey, step, cut)
        with pytest.raises(Cut):
            rekey.rekey(file, find_key(file), lock, source)
    assert held(file) == ["I like tea."]
    assert held(file) == ["I like tea."]
    again, source = new_lock(KeySource("file"), file)
    rekey.rekey(file, find_key(file), again, source)
    assert held(file) == ["I like tea."]


def test_a_memory_in_use_is_not_locked_anew(file: Path) -> None:
    key = find_key(file)
    store = Store(file, key)
    lock, source = new_lock(KeySource("file"), file)
    with pytest.raises(BadMemory, match="another OS-1"):
        rekey.rekey(file, key, lock, source)
    say(store, "t2", "Still here.")
    store.close()
    assert held(file) == ["I like tea.", "Still here."]


def test_a_wrong_key_locks_nothing_anew(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(NotThisKey):
        rekey.rekey(file, OTHER, Lock(KEY), KeySource("passphrase"))
    assert file.read_bytes() == before
    assert held(file) == ["I like tea."]


@pytest.mark.parametrize("text", ["", "file:", "magic:x", "keyring:", "\x00"])
def test_a_spoilt_note_of_where_the_key_is_is_told(text: str, file: Path) -> None:
    keys.source_file(file).write_text(text)
    with pytest.raises(BadKey, match="key-source"):
        find_key(file)


class TestKeyring:
    """The OS keyring, with a keyring of the test's own behind the real library."""

    @pytest.fixture
    def ring(self) -> dict[tuple[str, str], str]:
        keyring = pytest.importorskip("keyring", reason="pip install 'os1[keyring]'")
        from keyring.backend import KeyringBackend

        kept: dict[tuple[str, str], str] = {}

        class Ring(KeyringBackend):
            priority = 1

            def get_password(self, service: str, username: str) -> str | None:
                return kept.get((service, username))

            def set_password(self, service: str, username: str, password: str) -> None:
                kept[service, username] = password

            def delete_password(self, service: str, username: str) -> None:
                del kept[service, username]

        before = keyring.get_keyring()
        keyring.set_keyring(Ring())
        yield kept
        keyring.set_keyring(before)

    def test_a_memory_opens_with_the_key_of_the_keyring(
        self, file: Path, ring: dict[tuple[str, str], str]
    ) -> None:
        lock, source = new_lock(KeySource("keyring"), file)
        rekey.rekey(file, find_key(file), lock, source)
        assert held(file) == ["I like tea."]
        assert [service for service, _ in ring] == ["os1"]
        ring.clear()
        with pytest.raises(BadKey, match="holds no key"):
            find_key(file)

    def test_without_a_desktop_it_is_said_what_to_use_instead(self, file: Path) -> None:
        keyring = pytest.importorskip("keyring", reason="pip install 'os1[keyring]'")
        from keyring.backends.fail import Keyring

        before = keyring.get_keyring()
        keyring.set_keyring(Keyring())
        try:
            with pytest.raises(BadKey, match="key file or a passphrase"):
                new_lock(KeySource("keyring"), file)
        finally:
            keyring.set_keyring(before)


@pytest.mark.parametrize("cut_off", [False, True])
def test_a_lost_key_is_told_and_no_other_takes_its_place(cut_off: bool, file: Path) -> None:
    if cut_off:  # a change of keys that came no further than its note
        _, source = new_lock(KeySource("file"), file)
        file.with_name("memory.db.key-source.new").write_text(source.text())
    wearers = file.parent / "wearer.key"
    wearers.rename(file.parent / "kept")
    with pytest.raises(BadKey, match="there is no such key file"):
        find_key(file)
    assert not wearers.exists()
    (file.parent / "kept").rename(wearers)
    assert held(file) == ["I like tea."]


def test_nothing_makes_a_new_key_while_the_wearers_memory_needs_the_lost_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a replay, nor the doctor, nor another memory that is begun."""
    monkeypatch.setenv("OS1_MEMORY", str(file))
    wearers = file.parent / "wearer.key"
    wearers.rename(file.parent / "kept")
    for look in (keys.wearers_key, lambda: keys.told_key(file), lambda: find_key(file.with_name("new.db"))):
        with pytest.raises(BadKey, match=r"Put your copy of the key back"):
            look()
        assert not wearers.exists()
    (file.parent / "kept").rename(wearers)
    assert keys.told_key(file) == str(wearers)
    assert keys.wearers_key() == find_key(file)


def test_a_wearer_with_a_passphrase_misses_no_key_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS1_MEMORY", str(file))
    lock, source = new_lock(KeySource("passphrase"), file, "correct horse")
    rekey.rekey(file, find_key(file), lock, source)
    (file.parent / "wearer.key").unlink()
    assert keys.told_key(file) == "made of a passphrase"
    assert keys.wearers_key() == keys.wearers_key()  # of a replay: a new one


def test_a_lost_key_file_that_the_memory_names_is_told(file: Path) -> None:
    lock, source = new_lock(KeySource("file"), file)
    rekey.rekey(file, find_key(file), lock, source)
    assert keys.told_key(file) == source.name
    Path(source.name).unlink()
    with pytest.raises(BadKey, match=r"Put your copy of the key back"):
        find_key(file)
    with pytest.raises(BadKey, match=r"Put your copy of the key back"):
        keys.told_key(file)


def test_a_memory_named_by_a_link_is_locked_anew_where_it_lies(file: Path) -> None:
    old = find_key(file)
    link = file.parent / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(file)
    lock, source = new_lock(KeySource("file"), link)
    rekey.rekey(link, find_key(link), lock, source)
    assert link.is_symlink()
    assert not opens(file, old)
    assert held(link) == held(file) == ["I like tea."]
