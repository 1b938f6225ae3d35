"""``os1 replay``: a session through the real pipeline, on the wall clock or the virtual one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from time import perf_counter

import os1_models
from os1_edge import clock
from os1_edge.app import Os1, front_end
from os1_edge.config import Config, overridden
from os1_edge.device.replay import camera, eye_camera, has_eye, microphone, seed_memory, session_seconds
from os1_edge.device.session import Session, load_session
from os1_edge.device.speaker import ReplaySink
from os1_edge.faculties import load, model_names
from os1_edge.offload.journal import Journal
from os1_edge.remember.memory import Memory
from os1_edge.replay.page import write_page
from os1_edge.replay.place import staged
from os1_edge.replay.recorder import Recorder, Told
from os1_edge.replay.report import ModelFile, Report
from os1_edge.see.gaze.calibration import load as load_calibration
from os1_edge.see.gaze.track import GazeTracker
from os1_edge.see.image import iter_video, load_image
from os1_edge.tomlfile import BadFile
from os1_models.checks import sha256_of

PAGE_SOUND = 8_000_000
"""Bytes of speech (three minutes) that the page holds itself, so that it can be moved alone; replies beyond
that are played from the folder beside it."""


def replay(folder: Path, out: Path, config: Config, key: bytes, *, realtime: bool, tell: Told) -> Report:
    """Replays the session in ``folder``; writes report.json, report.html, replies/ and memory.db to ``out``.

    Raises:
        BadFile: the session is broken, or ``out`` holds something that is not a replay's.
        os1_models.ModelMissing: a model has not been pulled.
    """
    session = load_session(folder)
    config = overridden(config, session.file.config, folder / "session.toml")
    config = for_replay(config, realtime=realtime)
    seeds, gaze = seed_memory(session), tracker(session, config)
    with staged(out) as work:
        digests = checked_models(model_names(config))
        began = perf_counter()
        # In a thread: a library's callback in the middle of loading would swallow the main thread's Ctrl-C.
        with ThreadPoolExecutor(1) as loader:
            faculties = loader.submit(load, config, work / "memory.db", key).result()
        tell(f"models loaded in {perf_counter() - began:.1f} s; {session_seconds(session):.0f} s to replay")

        async def live() -> Report:
            await _remember(faculties.memory, seeds)
            ticking = clock.Clock()
            recorder = Recorder(session, realtime=realtime, tell=tell)
            ears = front_end(config, in_a_room=False)
            sink = ReplaySink(work / "replies")
            thumbnails = session.file.thumbnails
            os1 = Os1(
                config,
                faculties,
                ticking,
                session.calendar,
                sink,
                recorder,
                *ears,
                gaze=gaze,
                thumbnails=thumbnails,
                routes=Journal(work / "routes.json"),
            )
            await os1.warm()
            ticking.restart()
            await os1.run(
                microphone(session, ticking),
                camera(session, ticking, load_image, iter_video),
                eye_camera(session, ticking, load_image, iter_video),
            )
            recorder.eye_followed(os1.gazing.followed)
            return await recorder.make(digests, faculties.memory, perf_counter() - began)

        try:
            made = clock.run(live(), virtual=not realtime)
        finally:
            faculties.close()
        made.write(work / "report.json")
        write_page(made, work, sounds(made, work))
    return made


def tracker(session: Session, config: Config) -> GazeTracker | None:
    """Follows the session's eye camera, where it has one.

    Raises:
        CalibrationError: the session's calibration cannot be used.
    """
    if not has_eye(session):
        return None
    kept = session.file.gaze
    return GazeTracker(config.see.gaze, load_calibration(session.path(kept.calibration)) if kept else None)


def for_replay(config: Config, *, realtime: bool) -> Config:
    """What a recording needs no more: the same session is to give the same answers on both clocks."""
    # When the model gets to write on the memory depends on how fast the machine is.
    # Nobody is there to be spoken to, and a second sooner or later would be another answer.
    changes: dict[str, dict[str, bool]] = {
        "remember": {"written_by_model": False},
        "converse": {"proactive": False},
    }
    if not realtime:
        # Hearing along while the wearer speaks saves time at the end of a turn; here there is none to save.
        changes["hear"] = {"partials": False}
    updated = {name: getattr(config, name).model_copy(update=values) for name, values in changes.items()}
    return config.model_copy(update=updated)


def sounds(made: Report, folder: Path) -> dict[str, bytes]:
    """The spoken replies by their name in the report, as far as a page can hold them."""
    held, room = {}, PAGE_SOUND
    for name in (turn.reply_file for turn in made.turns if turn.reply_file):
        sound = (folder / name).read_bytes()
        room -= len(sound)
        if room < 0:
            break
        held[name] = sound
    return held


def checked_models(names: Sequence[str]) -> dict[str, ModelFile]:
    """The main file of each model with its SHA-256, compared with what was pulled.

    Raises:
        os1_models.ModelMissing: a model has not been pulled.
        BadFile: a model's file is not the one that was pulled.
    """
    found = {}
    for name in names:
        path = os1_models.path(name)
        digest = sha256_of(path)
        receipt = os1_models.installed(name)
        pulled = receipt.record(path.name) if receipt else None
        if pulled is not None and pulled.sha256 != digest:
            raise BadFile(path, f"is damaged; run: os1 models pull --force {name}")
        found[name] = ModelFile(file=path.name, sha256=digest)
    return found


async def _remember(memory: Memory, seeds: list[tuple[datetime, str]]) -> None:
    for number, (time, text) in enumerate(seeds, 1):
        await memory.keep_turn(f"seed{number:04d}", 0, time, text, "", "")
