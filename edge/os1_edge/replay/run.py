"""``os1 replay``: a session through the real pipeline, on the wall clock or the virtual one."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from time import perf_counter

import os1_models
from os1_edge import clock
from os1_edge.app import Os1
from os1_edge.config import Config, overridden
from os1_edge.device.replay import camera, microphone, seed_memory, session_seconds
from os1_edge.device.session import load_session
from os1_edge.device.speaker import ReplaySpeaker
from os1_edge.faculties import load, model_names
from os1_edge.remember.memory import Memory
from os1_edge.replay.page import write_page
from os1_edge.replay.recorder import Recorder, Told
from os1_edge.replay.report import Report
from os1_edge.see.image import iter_video, load_image
from os1_edge.tomlfile import BadFile


def replay(folder: Path, out: Path, config: Config, key: bytes, *, realtime: bool, tell: Told) -> Report:
    """Replays the session in ``folder``; writes report.json, report.html, replies/ and memory.db to ``out``.

    Raises:
        BadFile: the session is broken, or ``out`` holds something that is not a replay's.
        os1_models.ModelMissing: a model has not been pulled.
    """
    session = load_session(folder)
    config = overridden(config, session.file.config, folder / "session.toml")
    seeds = seed_memory(session)
    _make_place(out)
    for name in model_names(config):
        os1_models.path(name)  # a missing model is told before an earlier replay is removed
    _clear(out)
    began = perf_counter()
    faculties = load(config, out / "memory.db", key)
    tell(f"models loaded in {perf_counter() - began:.1f} s; {session_seconds(session):.0f} s to replay")

    async def live() -> Report:
        await _remember(faculties.memory, seeds)
        ticking = clock.Clock()
        recorder = Recorder(session, realtime=realtime, tell=tell)
        speaker = ReplaySpeaker(ticking, out / "replies")
        os1 = Os1(config, faculties, ticking, session.calendar, speaker, recorder)
        await os1.warm()
        ticking.restart()
        await os1.run(microphone(session, ticking), camera(session, ticking, load_image, iter_video))
        return await recorder.make(config, faculties.memory, perf_counter() - began)

    try:
        made = clock.run(live(), virtual=not realtime)
    finally:
        faculties.close()
    made.write(out / "report.json")
    write_page(made, out)
    return made


async def _remember(memory: Memory, seeds: list[tuple[datetime, str]]) -> None:
    for number, (time, text) in enumerate(seeds, 1):
        await memory.keep_turn(f"seed{number:04d}", 0, time, text, "", "")


def _make_place(out: Path) -> None:
    """Makes the folder ``out``; it may be there already, empty or with an earlier replay."""
    if out.exists() and not out.is_dir():
        raise BadFile(out, "is a file; name a folder for the replay's output")
    if (
        out.exists()
        and any(out.iterdir())
        and not (out / "report.json").exists()
        and not (out / "memory.db").exists()
    ):
        raise BadFile(out, "holds other files; name an empty or new folder for the replay's output")
    out.mkdir(parents=True, exist_ok=True)


def _clear(out: Path) -> None:
    """Removes an earlier replay's files, nothing else."""
    shutil.rmtree(out / "replies", ignore_errors=True)
    for name in ("report.json", "report.html", "memory.db", "memory.db-wal", "memory.db-shm"):
        (out / name).unlink(missing_ok=True)
