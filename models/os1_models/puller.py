"""Gets models: fetch, check, assemble, convert, install; the first source that works wins."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from os1_models.assemble import build_file
from os1_models.checks import require, require_space
from os1_models.errors import (
    FULL_DISK_CODES,
    Attempt,
    DiskFull,
    FetchFailed,
    ModelError,
    SourceFailed,
    Unreachable,
    WrongHash,
)
from os1_models.fetch import FETCHERS, Fetcher, Report
from os1_models.manifest import Artefact, FileSpec, Manifest, Model, Source
from os1_models.progress import ProgressSink, Silent
from os1_models.receipt import RECEIPT_NAME, FileRecord, HashState, Receipt
from os1_models.store import Store, fsync_path


def agrees(receipt: Receipt, model: Model) -> bool:
    """Whether what is installed is still what the manifest lists."""
    source = model.source_of(receipt.origins)
    if source is None or {file.name for file in source.files} != {record.name for record in receipt.files}:
        return False
    known = {file.name: file.sha256 for file in source.files}
    return all(known[record.name] in (None, record.sha256) for record in receipt.files)


@contextmanager
def _disk_faults(root: Path) -> Iterator[None]:
    """Faults of the local disk as `ModelError`s."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_DISK_CODES:
            raise DiskFull(root, None, shutil.disk_usage(root).free) from error
        raise ModelError(f"cannot use {error.filename or root}: {error.strerror or error}") from error


@dataclass(slots=True)
class Puller:
    """Pulls models of a manifest into a store. One at a time; other processes may pull too."""

    manifest: Manifest
    store: Store
    progress: ProgressSink = field(default_factory=Silent)
    fetchers: Mapping[str, Fetcher] = field(default_factory=lambda: FETCHERS)
    _silent_schemes: set[str] = field(default_factory=set)
    """Schemes whose far side gave no answer; not asked again by this puller."""

    def pull(self, name: str, *, force: bool = False) -> Receipt:
        """Install a model unless it is there; `force` fetches it anew.

        Raises `UnknownModel`, `SourceFailed`, `DiskFull`, or `ModelError` for a store that cannot be
        written. Whatever was installed before stays usable until the new files are complete.
        """
        model = self.manifest.model(name)
        started = datetime.now(UTC)
        ok = False
        try:
            with _disk_faults(self.store.root):
                self.store.root.mkdir(parents=True, exist_ok=True)
                with self._locked(name):
                    self.store.recover(name)
                    receipt = self._current(model, started, force) or self._first_that_works(model)
            ok = True
            return receipt
        finally:
            self.progress.finish(name, ok)

    @contextmanager
    def _locked(self, name: str) -> Iterator[FileLock]:
        lock = self.store.lock(name)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self.progress.stage(name, "wait", None)
            self.progress.note(name, "another pull is at work on it; waiting")
            lock.acquire()
        try:
            yield lock
        finally:
            lock.release()

    def _current(self, model: Model, started: datetime, force: bool) -> Receipt | None:
        """What is installed, if that will do; a pull that finished while this one waited always does."""
        receipt = self.store.installed(model.name)
        if receipt is None or not agrees(receipt, model):
            return None
        return receipt if not force or receipt.pulled_at >= started else None

    def _first_that_works(self, model: Model) -> Receipt:
        attempts: list[Attempt] = []
        for source in model.sources:
            try:
                return self._from_source(model, source)
            except DiskFull:
                raise
            except ModelError as error:
                attempts.append(Attempt(source.label, error))
                self.progress.note(model.name, f"{source.label}: {error}")
            finally:
                shutil.rmtree(self.store.stage(model.name), ignore_errors=True)
        raise SourceFailed(model.name, attempts)

    def _from_source(self, model: Model, source: Source) -> Receipt:
        self._require_space(model, source)
        artefacts = self._obtain(model, source)
        stage = self.store.stage(model.name)
        stage.mkdir(parents=True)
        report = self._assembly_report(model, source)
        try:
            records = tuple(
                self._record(model, source, spec, build_file(spec, artefacts, stage, report))
                for spec in source.files
            )
        except (WrongHash, FetchFailed):
            # Verified downloads that do not give the promised file are no use to the next pull either.
            for path in artefacts.values():
                shutil.rmtree(path.parent, ignore_errors=True)
            raise
        now = datetime.now(UTC)
        receipt = Receipt(model.name, model.main, source.label, source.origins, records, now)
        text = json.dumps(receipt.document(), indent=2)
        (stage / RECEIPT_NAME).write_text(text + "\n", "utf-8")
        self.progress.stage(model.name, "install", None)
        self.store.install(model.name)
        return receipt

    def _require_space(self, model: Model, source: Source) -> None:
        """Downloads not here yet, the largest of them twice (pip copies it once), the files, and what a
        converted one is made of."""
        missing = [
            artefact.size or 0
            for artefact in source.artefacts
            if not (self._room(model, artefact) / "artefact").exists()
        ]
        files = sum(file.size or 0 for file in source.files)
        inputs = source.download_size or 0 if any(file.convert for file in source.files) else 0
        require_space(self.store.root, sum(missing) + max(missing, default=0) + files + inputs)

    def _room(self, model: Model, artefact: Artefact) -> Path:
        key = hashlib.sha256(artefact.origin.encode()).hexdigest()[:16]
        return self.store.work(model.name) / "artefacts" / key

    def _obtain(self, model: Model, source: Source) -> dict[str, Path]:
        """Every artefact of a source, verified, by origin; those of an earlier pull are used again."""
        self.progress.stage(model.name, "fetch", source.download_size)
        found: dict[str, Path] = {}
        before = 0

        def report(done: int) -> None:
            self.progress.advance(model.name, before + done)

        for artefact in source.artefacts:
            found[artefact.origin] = self._obtain_one(model, artefact, report)
            before += found[artefact.origin].stat().st_size
            report(0)
        return found

    def _obtain_one(self, model: Model, artefact: Artefact, report: Report) -> Path:
        room = self._room(model, artefact)
        target = room / "artefact"
        if target.exists():
            try:
                require(target, artefact.origin, artefact.size, artefact.sha256)
                return target
            except WrongHash as error:
                self.progress.note(model.name, f"leftover of an earlier pull dropped: {error}")
        if artefact.scheme in self._silent_schemes:
            raise Unreachable("no answer a moment ago")
        room.mkdir(parents=True, exist_ok=True)
        _drop_leftovers(room)
        try:
            fetched = self.fetchers[artefact.scheme](artefact.rest, room, report)
        except Unreachable:
            if artefact.scheme == "hf":
                self._silent_schemes.add(artefact.scheme)
            raise
        try:
            require(fetched, artefact.origin, artefact.size, artefact.sha256)
        except WrongHash:
            shutil.rmtree(room, ignore_errors=True)
            raise
        # Flushed before it gets its name: a hub file without a known hash is trusted by that name alone.
        fsync_path(fetched)
        fetched.replace(target)
        _drop_leftovers(room)
        shutil.rmtree(room / "resume", ignore_errors=True)
        return target

    def _assembly_report(self, model: Model, source: Source) -> Report:
        """Begin the stage of making files, and return what counts its bytes."""
        converts = any(spec.convert for spec in source.files)
        self.progress.stage(
            model.name, "convert" if converts else "verify", None if converts else source.size
        )
        done = 0

        def report(more: int) -> None:
            nonlocal done
            done += more
            self.progress.advance(model.name, done)

        return report

    def _record(self, model: Model, source: Source, spec: FileSpec, path: Path) -> FileRecord:
        """Check a finished file against the manifest, or against its pin."""
        sha256 = require(path, spec.name, spec.size, spec.sha256)
        if spec.sha256 is None:
            self._require_pin(model, source, spec, sha256)
        hash_state: HashState = "pinned" if spec.sha256 is None else "checked"
        return FileRecord(spec.name, path.stat().st_size, sha256, hash_state)

    def _require_pin(self, model: Model, source: Source, spec: FileSpec, sha256: str) -> None:
        """A file that the manifest has no hash for must be what the first pull brought."""
        former = self.store.receipt(model.name)
        if former is None or former.origins != source.origins:
            return
        record = former.record(spec.name)
        if record is not None and record.sha256 != sha256:
            raise WrongHash(
                f"{spec.name} has sha256 {sha256}, the first pull pinned {record.sha256}; deleted. "
                f"If the change is meant, remove {self.store.directory(model.name)} and pull again"
            )


def _drop_leftovers(room: Path) -> None:
    """Remove all but the finished artefact and what a broken-off transfer can go on from."""
    for path in room.iterdir():
        if path.name in ("artefact", "resume"):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def pull_all(puller: Puller, names: Sequence[str], *, force: bool = False) -> list[Receipt]:
    """Pull several, in order, each once. An unknown name is refused before anything is fetched."""
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        puller.manifest.model(name)
    return [puller.pull(name, force=force) for name in wanted]
