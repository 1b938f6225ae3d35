"""Progress of a pull on a terminal: bars where there is one, plain lines where there is none. On stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from os1_models.progress import ProgressSink, Stage


class PlainLines:
    """A line a stage; for logs, pipes and CI."""

    def stage(self, model: str, stage: Stage, total: int | None) -> None:
        size = f" {total / 1e6:.1f} MB" if total else ""
        click.echo(f"{model}: {stage}{size}", err=True)

    def advance(self, model: str, done: int) -> None:
        pass

    def note(self, model: str, text: str) -> None:
        click.echo(f"{model}: {text}", err=True)

    def finish(self, model: str, ok: bool) -> None:
        click.echo(f"{model}: {'done' if ok else 'failed'}", err=True)


class Bars:
    """A bar a model, with the stage's word, bytes and speed."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def stage(self, model: str, stage: Stage, total: int | None) -> None:
        task = self._tasks.get(model)
        if task is None:
            self._tasks[model] = self._progress.add_task(model, total=total, stage=stage)
        else:
            self._progress.reset(task, total=total, stage=stage)

    def advance(self, model: str, done: int) -> None:
        if model in self._tasks:
            self._progress.update(self._tasks[model], completed=done)

    def note(self, model: str, text: str) -> None:
        self._progress.console.print(f"{model}: {text}", markup=False, highlight=False)

    def finish(self, model: str, ok: bool) -> None:
        task = self._tasks.pop(model, None)
        if task is not None:
            total = next(one.total for one in self._progress.tasks if one.id == task)
            self._progress.update(task, stage="done" if ok else "failed")
            if ok:
                self._progress.update(task, total=total or 1, completed=total or 1)
            self._progress.stop_task(task)


@contextmanager
def progress_sink() -> Iterator[ProgressSink]:
    """The sink that suits stderr."""
    if not sys.stderr.isatty():
        yield PlainLines()
        return
    columns = (
        TextColumn("{task.description:<16}"),
        TextColumn("{task.fields[stage]:<8}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield Bars(progress)
