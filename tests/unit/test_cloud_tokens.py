"""`os1 token`, and a running server that notices what it did."""

import re
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from os1_cloud.auth import TokenFile, Tokens
from os1_cloud.token_cli import token


def ran(*arguments: str) -> str:
    done = CliRunner().invoke(token, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def bearer(secret: str) -> list[tuple[str, str | bytes]]:
    return [("authorization", f"Bearer {secret.strip()}")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def test_a_new_token_opens_the_door_and_its_file_does_not_hold_it(file: Path) -> None:
    secret = ran("create", "ann", "--file", str(file))
    assert len(secret.strip()) >= 43
    assert secret.strip() not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert TokenFile(file).who(bearer(secret)) == "ann"


def test_the_list_shows_whose_tokens_there_are_and_until_when(file: Path) -> None:
    ran("create", "ann", "--file", str(file))
    ran("create", "bob", "--file", str(file), "--days", "1")
    lines = ran("list", "--file", str(file)).splitlines()
    assert re.fullmatch(r"ann  [0-9a-f]{12}  no end", lines[0])
    assert re.fullmatch(r"bob  [0-9a-f]{12}  \d{4}-\d\d-\d\d \d\d:\d\d UTC", lines[1])


def test_a_withdrawn_token_stops_working_on_a_running_server_also_the_last_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os1_cloud.auth.LOOK_S", 0.0)
    ann, bob = (ran("create", who, "--file", str(file)) for who in ("ann", "bob"))
    running = TokenFile(file)
    assert (running.who(bearer(ann)), running.who(bearer(bob))) == ("ann", "bob")
    ran("revoke", "ann", "--file", str(file))
    assert (running.who(bearer(ann)), running.who(bearer(bob))) == (None, "bob")
    ran("revoke", "bob", "--file", str(file))
    assert running.who(bearer(bob)) is None


def test_one_of_two_tokens_is_withdrawn_by_the_beginning_of_its_hash(file: Path) -> None:
    old, new = (ran("create", "ann", "--file", str(file)) for _ in range(2))
    first = ran("list", "--file", str(file)).split()[1]
    ran("revoke", first, "--file", str(file))
    tokens = TokenFile(file)
    assert (tokens.who(bearer(old)), tokens.who(bearer(new))) == (None, "ann")


def test_a_token_ends_when_its_days_are_over() -> None:
    now = [99.0]
    tokens = Tokens(
        {"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b": "ann"}, now=lambda: now[0]
    )
    assert tokens.who(bearer("secret")) == "ann"
    hash_ = next(iter(tokens._names))
    ends = Tokens({hash_: "ann"}, {hash_: 100.0}, now=lambda: now[0])
    assert ends.who(bearer("secret")) == "ann"
    now[0] = 100.0
    assert ends.who(bearer("secret")) is None


def test_a_file_that_went_bad_leaves_the_tokens_that_were_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os1_cloud.auth.LOOK_S", 0.0)
    ann, said = ran("create", "ann", "--file", str(file)), list[str]()
    running = TokenFile(file, said.append)
    file.write_text("ann half a li")
    assert running.who(bearer(ann)) == "ann"
    assert len(said) == 1
    assert "half" not in said[0]


@pytest.mark.parametrize(
    "arguments", [("create", "two words"), ("create", "ann", "--days", "0"), ("revoke", "nobody")]
)
def test_what_makes_no_sense_is_refused(file: Path, arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(token, [*arguments, "--file", str(file)])
    assert done.exit_code != 0
    assert "Traceback" not in done.output
