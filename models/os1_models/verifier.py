"""Hashes what is installed, against the receipts and against the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from os1_models.checks import sha256_of
from os1_models.manifest import Manifest, Model
from os1_models.progress import ProgressSink, Silent
from os1_models.receipt import FileRecord, Receipt
from os1_models.store import Store


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an installed model."""

    model: str
    file: str | None
    what: str

    def __str__(self) -> str:
        return f"{self.model}{f': {self.file}' if self.file else ''}: {self.what}"


def _against_manifest(receipt: Receipt, model: Model) -> Iterator[Problem]:
    source = model.source_of(receipt.origins)
    if source is None:
        yield Problem(model.name, None, f"its source {receipt.source} is no longer in the manifest")
        return
    for file in source.files:
        record = receipt.record(file.name)
        if record is None:
            yield Problem(model.name, file.name, "in the manifest, not in the receipt")
        elif file.sha256 is not None and file.sha256 != record.sha256:
            what = f"manifest says sha256 {file.sha256}, receipt {record.sha256}"
            yield Problem(model.name, file.name, what)


def _against_disk(
    folder: Path, record: FileRecord, model: str, report: Callable[[int], None]
) -> Problem | None:
    try:
        actual = sha256_of(folder / record.name, report)
    except FileNotFoundError:
        return Problem(model, record.name, "missing")
    except OSError as error:
        return Problem(model, record.name, f"cannot be read: {error.strerror or error}")
    if actual != record.sha256:
        return Problem(model, record.name, f"has sha256 {actual}, pulled as {record.sha256}")
    return None


def _problems(store: Store, model: Model, sink: ProgressSink) -> list[Problem]:
    receipt = store.receipt(model.name)
    if receipt is None:
        missing = store.state(model.name) == "missing"
        what = "not installed" if missing else "its receipt is gone or unreadable"
        return [Problem(model.name, None, f"{what}; run: os1 models pull {model.name}")]
    sink.stage(model.name, "verify", receipt.size)
    before = 0

    def report(done: int) -> None:
        sink.advance(model.name, before + done)

    problems = []
    for record in receipt.files:
        problems.append(_against_disk(store.directory(model.name), record, model.name, report))
        before += record.size
    return [problem for problem in problems if problem] + list(_against_manifest(receipt, model))


def verify_models(
    store: Store, manifest: Manifest, names: Sequence[str], progress: ProgressSink | None = None
) -> list[Problem]:
    """Every problem of the named models; an empty list means that every byte is as pulled.

    Raises `UnknownModel`. Takes no lock: a model that a pull replaced meanwhile is looked at once more.
    """
    sink = progress or Silent()
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        model = manifest.model(name)
        before = store.receipt(name)
        found = _problems(store, model, sink)
        if found and store.receipt(name) != before:
            found = _problems(store, model, sink)
        problems += found
        sink.finish(name, not found)
    return problems
