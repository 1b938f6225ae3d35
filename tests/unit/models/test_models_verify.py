"""Verifying what is installed."""

from __future__ import annotations

import json

import models_fakes as fakes
import pytest

from os1_models.errors import UnknownModel
from os1_models.manifest import Manifest
from os1_models.puller import Puller
from os1_models.store import Store
from os1_models.verifier import verify_models

BODY = fakes.noise(20_000)
WHEEL = fakes.wheel("toy", "1.0", {"toy/x.bin": BODY})
HUB = "hf:owner/toy@main/x.bin"


@pytest.fixture
def manifest() -> Manifest:
    part = {"origin": "pypi:toy==1.0", "member": "toy/x.bin"}
    return fakes.manifest(
        {"artefacts": [fakes.artefact("pypi:toy==1.0", WHEEL)], "files": [fakes.file("x.bin", BODY, part)]},
        {"artefacts": [{"origin": HUB}], "files": [{"name": "x.bin", "parts": [{"origin": HUB}]}]},
    )


@pytest.fixture
def pulled(manifest: Manifest, store: Store) -> Store:
    Puller(manifest, store, fetchers={"pypi": fakes.Shelf({"toy==1.0": WHEEL})}).pull("toy")
    return store


def whats(store: Store, manifest: Manifest) -> list[str]:
    return [str(problem) for problem in verify_models(store, manifest, ["toy"])]


def test_a_whole_model_has_no_problem(pulled: Store, manifest: Manifest) -> None:
    assert whats(pulled, manifest) == []


def test_a_single_flipped_bit_is_found(pulled: Store, manifest: Manifest) -> None:
    path = pulled.path("toy")
    path.write_bytes(bytes([BODY[0] ^ 1]) + BODY[1:])
    assert pulled.state("toy") == "installed"  # the cheap look cannot see it
    assert whats(pulled, manifest)[0].startswith("toy: x.bin: has sha256 ")


def test_a_file_and_receipt_changed_together_are_found_by_the_manifest(
    pulled: Store, manifest: Manifest
) -> None:
    pulled.path("toy").write_bytes(bytes(len(BODY)))
    receipt = pulled.directory("toy") / "receipt.json"
    document = json.loads(receipt.read_text())
    document["files"][0]["sha256"] = fakes.sha256(bytes(len(BODY)))
    receipt.write_text(json.dumps(document))
    assert whats(pulled, manifest) == [
        f"toy: x.bin: manifest says sha256 {fakes.sha256(BODY)}, receipt {fakes.sha256(bytes(len(BODY)))}"
    ]


def test_a_deleted_file_is_found(pulled: Store, manifest: Manifest) -> None:
    pulled.path("toy").unlink()
    assert whats(pulled, manifest) == ["toy: x.bin: missing"]


def test_a_lost_receipt_is_found(pulled: Store, manifest: Manifest) -> None:
    (pulled.directory("toy") / "receipt.json").unlink()
    assert "receipt is gone" in whats(pulled, manifest)[0]


def test_a_model_that_was_never_pulled_is_a_problem(store: Store, manifest: Manifest) -> None:
    assert whats(store, manifest) == ["toy: not installed; run: os1 models pull toy"]


def test_a_source_that_left_the_manifest_is_a_problem(pulled: Store, manifest: Manifest) -> None:
    model = manifest.models[0]
    without = manifest.model_copy(
        update={"models": (model.model_copy(update={"sources": model.sources[1:]}),)}
    )
    assert "no longer in the manifest" in whats(pulled, without)[0]


def test_a_pinned_hub_file_is_held_to_its_pin(store: Store, manifest: Manifest) -> None:
    shelves = {
        "pypi": fakes.Shelf({"toy==1.0": b""}),
        "hf": fakes.Shelf({"owner/toy@main/x.bin": b"first seen"}),
    }
    receipt = Puller(manifest, store, fetchers=shelves).pull("toy")
    assert receipt.hash_state == "pinned"
    assert whats(store, manifest) == []
    store.path("toy").write_bytes(b"other data")
    assert "pulled as" in whats(store, manifest)[0]


def test_an_unknown_name_is_refused(store: Store, manifest: Manifest) -> None:
    with pytest.raises(UnknownModel):
        verify_models(store, manifest, ["nothing"])
