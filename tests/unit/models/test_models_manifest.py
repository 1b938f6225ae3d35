"""The manifest that ships, and what the schema refuses."""

from __future__ import annotations

from typing import Any

import models_fakes as fakes
import pytest
from pydantic import ValidationError

from os1_models.errors import UnknownModel
from os1_models.manifest import Manifest, load_manifest, parse_manifest

EDGE = {
    "silero-vad", "smart-turn-v3.2", "whisper-tiny.en", "piper-joe", "qwen2.5-0.5b", "minilm-l6",
    "objects-ssd", "ppocr", "centerface",
}  # fmt: skip
OTHERS = {
    "smollm2-135m", "whisper-base", "moonshine-base", "qwen2.5-1.5b",
    "smolvlm-500m", "llava-1.5-7b", "qwen2.5-vl-3b",
}  # fmt: skip


@pytest.fixture
def shipped() -> Manifest:
    return load_manifest()


def test_all_models_are_listed_under_their_fixed_names(shipped: Manifest) -> None:
    assert {model.name for model in shipped.models} == EDGE | OTHERS


def test_the_default_set_is_what_the_demo_needs(shipped: Manifest) -> None:
    assert set(shipped.in_set("edge")) == EDGE
    assert set(shipped.in_set("all")) == EDGE | OTHERS
    assert "qwen2.5-1.5b" in shipped.in_set("cloud")


def test_every_model_says_its_licence_and_job(shipped: Manifest) -> None:
    for model in shipped.models:
        assert model.licence, model.name
        assert model.job, model.name
        assert model.description, model.name


def test_only_hub_files_may_lack_a_hash(shipped: Manifest) -> None:
    for model in shipped.models:
        for source in model.sources:
            if any(not origin.startswith("hf:") for origin in source.origins):
                assert source.hashed, source.label
                assert source.size, source.label
                assert source.download_size, source.label


def test_hashes_of_a_source_that_nobody_fetched_are_borrowed_and_marked(shipped: Manifest) -> None:
    borrowed = {one for model in shipped.models for source in model.sources if source.borrowed_hash
                for one in source.origins}  # fmt: skip
    hashed = {one for model in shipped.models for source in model.sources if source.hashed
              for one in source.origins if one.startswith(("hf:", "url:"))}  # fmt: skip
    assert borrowed == hashed, "no hub or URL source could be fetched where the manifest was written"


def test_a_borrowed_hash_must_be_one_that_was_fetched() -> None:
    part = {"origin": "hf:a/b@main/x.bin"}
    hub = {"artefacts": [part], "files": [fakes.file("x.bin", b"y" * 10, part)], "borrowed_hash": True}
    with pytest.raises(ValidationError, match="hashes that no fetched source has"):
        fakes.manifest(_source(), hub)
    fakes.manifest(_source(), {**hub, "files": [fakes.file("x.bin", b"x" * 10, part)]})


def test_every_edge_model_can_be_had_without_a_model_hub(shipped: Manifest) -> None:
    for name in EDGE:
        origins = [source.origins for source in shipped.model(name).sources]
        assert any(all(not one.startswith("hf:") for one in some) for some in origins), name


def test_the_chunked_models_have_the_hashes_of_the_design(shipped: Manifest) -> None:
    hashes = {
        "qwen2.5-0.5b": (6, "328c933d9b7cf1ed8378c4a9f1410490b330400a16b6a9ad6a196e8e55bd7943"),
        "qwen2.5-1.5b": (22, "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
    }
    for name, (chunks, sha256) in hashes.items():
        hub, registry = shipped.model(name).sources
        assert hub.artefacts[0].scheme == "hf"
        assert len(registry.artefacts) == chunks
        assert registry.files[0].sha256 == sha256


def test_a_mistyped_name_brings_a_suggestion(shipped: Manifest) -> None:
    with pytest.raises(UnknownModel, match=r"whisper-tiny\.en"):
        shipped.model("whisper-tiny")


def _source(**changes: Any) -> dict[str, Any]:
    data = b"x" * 10
    part = {"origin": "pypi:toy==1.0", "member": "toy/x.bin"}
    source = {
        "artefacts": [fakes.artefact("pypi:toy==1.0", data)],
        "files": [fakes.file("x.bin", data, part)],
    }
    return {**source, **changes}


def test_a_registry_file_without_a_hash_is_refused() -> None:
    bare = {"name": "x.bin", "parts": [{"origin": "pypi:toy==1.0", "member": "toy/x.bin"}]}
    with pytest.raises(ValidationError, match="needs size and sha256"):
        fakes.manifest(_source(files=[bare]))


def test_a_registry_download_without_a_hash_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs size and sha256"):
        fakes.manifest(_source(artefacts=[{"origin": "pypi:toy==1.0"}]))


def test_a_version_must_be_pinned() -> None:
    with pytest.raises(ValidationError, match="origin"):
        fakes.manifest(_source(artefacts=[fakes.artefact("pypi:toy", b"x")]))


def test_a_part_of_an_unlisted_download_is_refused() -> None:
    stray = {"origin": "pypi:other==1.0", "member": "x"}
    with pytest.raises(ValidationError, match="disagree"):
        fakes.manifest(_source(files=[fakes.file("x.bin", b"x", stray)]))


def test_a_file_name_cannot_leave_the_store() -> None:
    part = {"origin": "pypi:toy==1.0", "member": "x"}
    with pytest.raises(ValidationError, match="name"):
        fakes.manifest(_source(files=[fakes.file("../x.bin", b"x", part)]))


def test_every_source_must_give_the_main_file() -> None:
    part = {"origin": "pypi:toy==1.0", "member": "x"}
    other = _source(files=[fakes.file("y.bin", b"y", part)])
    with pytest.raises(ValidationError, match=r"must give x\.bin"):
        fakes.manifest(_source(), other)


def test_broken_toml_is_a_model_error() -> None:
    from os1_models.errors import ModelError

    with pytest.raises(ModelError, match="not valid"):
        parse_manifest("[[models]")
