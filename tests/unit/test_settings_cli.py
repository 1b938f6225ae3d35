"""``os1 config``: a file that a person can read and change."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from os1_edge.config import Config, load_config
from os1_edge.settings_cli import PROFILES, commented, config
from os1_edge.tomlfile import BadFile


def uncommented(text: str) -> str:
    """Every setting set."""
    lines = [line for line in text.splitlines() if not line.startswith("# ") and not line.endswith("=")]
    return "\n".join(line.removeprefix("#") for line in lines)


def leaves(found: dict[str, object], at: str = "") -> set[str]:
    out = set()
    for key, value in found.items():
        out |= leaves(value, f"{at}{key}.") if isinstance(value, dict) else {f"{at}{key}"}
    return out


def test_the_file_holds_every_setting_and_changes_none(tmp_path: Path) -> None:
    text = commented()
    (tmp_path / "a.toml").write_text(text)
    assert load_config(tmp_path / "a.toml") == Config()
    told = {line.removeprefix("#").split(" =")[0] for line in text.splitlines() if " =" in line}
    assert {leaf.rpartition(".")[2] for leaf in leaves(Config().model_dump())} <= told


def test_every_line_of_it_can_be_uncommented(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(uncommented(commented()))
    assert load_config(tmp_path / "a.toml") == Config()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_holds_where_the_file_says_nothing(tmp_path: Path, profile: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(f'profile = "{profile}"\n')
    alone = load_config(file)
    assert alone != Config()
    file.write_text(f'profile = "{profile}"\n[hear]\nthreads = 7\n')
    mixed = load_config(file)
    assert mixed.hear.threads == 7
    assert mixed.converse == alone.converse


def test_a_small_device_gets_the_small_model(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('profile = "wear4100"\n')
    assert load_config(file).converse.model == "smollm2-135m"
    file.write_text('profile = "toaster"\n')
    with pytest.raises(BadFile, match="profile"):
        load_config(file)


def test_init_writes_once_show_prints_what_holds_and_check_names_the_line(tmp_path: Path) -> None:
    file, run = tmp_path / "sub" / "config.toml", CliRunner()
    assert run.invoke(config, ["init", "--file", str(file), "--profile", "phone"]).exit_code == 0
    again = run.invoke(config, ["init", "--file", str(file)])
    assert again.exit_code == 1
    assert "--force" in again.output
    shown = run.invoke(config, ["show", "--file", str(file)])
    assert Config.model_validate(tomllib.loads(shown.output)).hear.threads == 4
    assert run.invoke(config, ["check", "--file", str(file)]).output.strip() == f"{file} is right"
    file.write_text("[hear]\nthreads = 900\n")
    broken = run.invoke(config, ["check", "--file", str(file)])
    assert isinstance(broken.exception, BadFile)
    assert broken.exception.line == 2
