"""The key of the memory file: 32 bytes from a file that only its owner can read, from the OS keyring, or made
of a passphrase. Where a memory's key comes from stands in ``NAME.key-source`` beside it; no such file: the
wearer's key file."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs

from os1_edge.remember.files import new_text

KEY_BYTES = 32
SALT_BYTES = 16

SHORTEST_PASSPHRASE = 8

_SCRYPT_N, _SCRYPT_R, _SCRYPT_P = 1 << 16, 8, 2
"""64 MiB and about half a second on a small core for each guess (OWASP's second choice)."""

SERVICE = "os1"
"""The name of the program in the OS keyring."""

Kind = Literal["file", "keyring", "passphrase"]


class BadKey(Exception):
    """The key cannot be had; the message says what to do."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where a key comes from."""

    kind: Kind
    name: str = ""
    """Of a file, its path; in the keyring, the account."""

    def text(self) -> str:
        """As it stands in ``NAME.key-source``; no secret."""
        return f"{self.kind}:{self.name}\n"

    @staticmethod
    def parse(text: str) -> KeySource:
        """The source that ``text()`` wrote.

        Raises:
            ValueError: it did not write this.
        """
        kind, colon, name = text.strip().partition(":")
        if not colon or kind not in ("file", "keyring", "passphrase") or (kind != "passphrase" and not name):
            raise ValueError(f"unknown key source {text[:40]!r}")
        return KeySource(kind, name)  # type: ignore[arg-type]  # narrowed above


def default_key_file() -> Path:
    """Where the wearer's key lies: ``$OS1_KEY_FILE``, or the user's data folder."""
    named = os.environ.get("OS1_KEY_FILE")
    return Path(named) if named else platformdirs.user_data_path("os1") / "memory.key"


def wearers_key() -> bytes:
    """The key in the wearer's key file, made where there is none.

    Raises:
        BadKey: it is gone though the wearer's memory needs it: no new key would open that; or as ``load``.
    """
    memory, path = default_memory_file(), default_key_file()
    if memory.exists() and read_source(source_file(memory)) is None:
        return load_of(memory, path)
    return load_or_make(path)


def load_of(memory: Path, path: Path) -> bytes:
    """The key of ``memory`` in the file ``path``.

    Raises:
        BadKey: it is gone, or as ``load``.
    """
    if memory.exists() and not os.path.lexists(path):
        raise BadKey(
            f"{path}: there is no such key file, and nothing else opens {memory}. Put your copy of the key "
            "back; if there is none, move the memory away to begin a new one"
        )
    return load(path)


def told_key(memory: Path) -> str:
    """Where the key of ``memory`` is, once it was found there; the wearer's is made if need be. A passphrase
    is not asked for.

    Raises:
        BadKey: it cannot be had.
    """
    source = read_source(source_file(memory))
    if source is None:
        wearers_key()
        return str(default_key_file())
    if source.kind == "passphrase":
        return "made of a passphrase"
    key_from(source, memory)
    return source.name if source.kind == "file" else f"{source.name} in the OS keyring"


def load_or_make(path: Path) -> bytes:
    """Reads the key at ``path``, or makes a new one there with mode 0600.

    The key appears whole or not at all, whatever ends the process meanwhile; of several processes at once,
    the first to finish gives the key and all others read it.

    Raises:
        BadKey: others can read the file, or it is not a key.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not os.path.lexists(path):
        _make(path)
    return load(path)


def load(path: Path) -> bytes:
    """Reads the key at ``path``.

    Raises:
        BadKey: there is none, others can read the file, or it is not a key.
    """
    try:
        text = _owners_only(path)
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKey(f"{path} is not a key of {KEY_BYTES} bytes in hex; move it away to start a new memory")
    return key


def _make(path: Path) -> None:
    with suppress(FileExistsError), new_text(path) as file:  # another process was faster
        file.write(secrets.token_hex(KEY_BYTES) + "\n")


def _owners_only(path: Path) -> bytes:
    if not path.is_file():
        raise BadKey(f"{path}: there is no such key file")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadKey(f"{path} can be read by others; run: chmod 600 {path}")
    return path.read_bytes()


def from_passphrase(passphrase: str, salt: bytes) -> bytes:
    """The key that a passphrase makes with the salt of a memory file (its first 16 bytes), by scrypt.

    Raises:
        BadKey: the passphrase is empty, or no text.
    """
    try:
        words = unicodedata.normalize("NFKC", passphrase).encode()
    except UnicodeEncodeError:
        raise BadKey("the passphrase is not UTF-8 text; set the terminal to UTF-8") from None
    if not words:
        raise BadKey("the passphrase is empty")
    return hashlib.scrypt(
        words, salt=salt, n=_SCRYPT_N, r=_SCRYPT_R, p=_SCRYPT_P, maxmem=1 << 28, dklen=KEY_BYTES
    )


def salt_of(memory: Path) -> bytes:
    """The salt of a memory file, which SQLCipher keeps in its first 16 bytes: file and passphrase are enough.

    Raises:
        BadKey: there is no such file yet, or it is too short.
    """
    try:
        with memory.open("rb") as file:
            salt = file.read(SALT_BYTES)
    except OSError as e:
        raise BadKey(f"{memory}: {e.strerror}") from None
    if len(salt) != SALT_BYTES:
        raise BadKey(f"{memory} is not a memory file: it is too short")
    return salt


def scripted_passphrase() -> str | None:
    """The passphrase that a script gives: ``$OS1_PASSPHRASE``, or the first line of the file that
    ``$OS1_PASSPHRASE_FILE`` names; ``None`` where there is neither.

    Raises:
        BadKey: the file cannot be read, or others can read it too.
    """
    if words := os.environ.get("OS1_PASSPHRASE"):
        return words
    if named := os.environ.get("OS1_PASSPHRASE_FILE"):
        return passphrase_in(Path(named))
    return None


def passphrase_in(path: Path) -> str:
    """The first line of a file with mode 0600.

    Raises:
        BadKey: others can read it, or it holds no text.
    """
    try:
        return _owners_only(path).decode().partition("\n")[0].rstrip("\r")
    except UnicodeDecodeError:
        raise BadKey(f"{path} holds no text") from None


def keyring_key(account: str) -> bytes:
    """The key kept in the OS keyring under ``account``.

    Raises:
        BadKey: there is no keyring here, it is locked, or it holds no such key.
    """
    found = _in_keyring(lambda ring: ring.get_password(SERVICE, account))
    if found is None:
        raise BadKey(f"the OS keyring holds no key {account!r} of {SERVICE}")
    try:
        key = bytes.fromhex(found)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKey(f"what the OS keyring holds as {account!r} of {SERVICE} is no key")
    return key


def make_keyring_key(account: str) -> bytes:
    """Makes a key and keeps it in the OS keyring under ``account``; read back before it is used.

    Raises:
        BadKey: there is no keyring here, or it is locked.
    """
    _in_keyring(lambda ring: ring.set_password(SERVICE, account, secrets.token_hex(KEY_BYTES)))
    return keyring_key(account)


def _in_keyring(work: Callable[[Any], Any]) -> Any:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ModuleNotFoundError:
        raise BadKey(
            "the OS keyring needs a package: pip install 'os1[keyring]'; or use a key file or a passphrase"
        ) from None
    if getattr(keyring.get_keyring(), "priority", 0) <= 0:
        raise BadKey("there is no OS keyring here (no desktop session?); use a key file or a passphrase")
    try:
        return work(keyring)
    except KeyringError as e:
        raise BadKey(
            f"the OS keyring gives no key ({e or type(e).__name__}); unlock it and try again"
        ) from None


def source_file(memory: Path) -> Path:
    """Where it stands where the key of ``memory`` comes from."""
    memory = memory.resolve()  # however the file is named, by a link too
    return memory.with_name(f"{memory.name}.key-source")


def read_source(file: Path) -> KeySource | None:
    """What ``file`` says; ``None`` where there is no such file.

    Raises:
        BadKey: it says nothing sensible.
    """
    try:
        return KeySource.parse(file.read_text())
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as e:
        raise BadKey(f"{file}: {e}; say --key-file, --keyring or --passphrase") from None


def key_from(source: KeySource, memory: Path, ask: Callable[[str], str] | None = None) -> bytes:
    """The key of ``memory``.

    Args:
        source: where it comes from.
        memory: the memory file; a passphrase needs its salt.
        ask: asks a person for the passphrase, without showing it, when no script gives it.

    Raises:
        BadKey: it cannot be had.
    """
    if source.kind == "file":
        return load_of(memory, memory.resolve().parent / source.name)  # an absolute name stays as it is
    if source.kind == "keyring":
        return keyring_key(source.name)
    words = scripted_passphrase()
    if words is None and ask is not None:
        words = ask(f"Passphrase of {memory}")
    if words is None:
        raise BadKey(f"{memory} opens with a passphrase; set OS1_PASSPHRASE or OS1_PASSPHRASE_FILE")
    return from_passphrase(words, salt_of(memory))


def default_memory_file() -> Path:
    """Where the wearer's memory lies: ``$OS1_MEMORY``, or the user's data folder."""
    named = os.environ.get("OS1_MEMORY")
    return Path(named) if named else platformdirs.user_data_path("os1") / "memory.db"
