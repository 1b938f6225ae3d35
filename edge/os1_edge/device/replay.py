"""A recorded session as a microphone and a camera: every sample and frame at its session second."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from heapq import merge
from pathlib import Path

import numpy as np

from os1_edge.clock import Clock
from os1_edge.device.session import Recording, Session, sound_seconds
from os1_edge.device.sound import blocks
from os1_edge.events import RATE, AudioFrame, EyeFrame, Image, Samples, SceneFrame
from os1_edge.framing import frames
from os1_edge.tomlfile import BadFile

log = logging.getLogger(__name__)

TAIL_S = 3.0
"""Silence after the last recording: long enough for the last turn to end."""

ImageLoader = Callable[[Path], Image]
_Source = tuple[float, str, Callable[[], Image]]
"""(session second, name, how to get the picture)."""

VideoReader = Callable[[Path, float], Iterator[tuple[float, Image]]]

EYE_EVERY_S = 1 / 61
"""Time between two frames of an eye video, at least: 60 a second are enough for gaze, and those of a faster
camera cost as much each."""


def session_seconds(session: Session) -> float:
    """Length of the session: the end of the last sound or frame, and a tail of silence."""
    file = session.file
    ends = [r.at_s + sound_seconds(session.path(r.file), file.audio.rate) for r in file.microphone]
    return max([*ends, *(f.at_s for f in (*file.frame, *file.video))]) + TAIL_S


def has_eye(session: Session) -> bool:
    """Whether an eye camera was recorded."""
    return bool(session.file.eye_frame or session.file.eye_video)


def microphone_blocks(session: Session) -> Iterator[Samples]:
    """The session's whole sound from second 0, silence where there is no recording; blocks of any length."""
    position = 0
    for recording in sorted(session.file.microphone, key=lambda r: r.at_s):
        start = round(recording.at_s * RATE)
        yield from _silence(start - position)
        position = max(position, start)
        for block in blocks(session.path(recording.file)):
            position += len(block)
            yield block
    yield from _silence(round(session_seconds(session) * RATE) - position)


async def microphone(session: Session, clock: Clock) -> AsyncIterator[AudioFrame]:
    """Gives each frame when its last sample has been heard."""
    for frame in frames(microphone_blocks(session)):
        await clock.sleep_until((frame.start + len(frame.samples)) / RATE)
        yield frame


async def camera(
    session: Session, clock: Clock, load: ImageLoader, read_video: VideoReader
) -> AsyncIterator[SceneFrame]:
    """Gives each scene frame at its second; one that cannot be read is told of and skipped."""
    file = session.file
    films = [_film(session, video, video.every_s, read_video) for video in file.video]
    async for at_s, name, image in _pictures("scene", _sources(session, file.frame, films, load), clock):
        yield SceneFrame(at_s, name, image)


async def eye_camera(
    session: Session, clock: Clock, load: ImageLoader, read_video: VideoReader
) -> AsyncIterator[EyeFrame]:
    """Gives each near-eye frame at its second; one that cannot be read is told of and skipped."""
    file = session.file
    films = [_film(session, video, EYE_EVERY_S, read_video) for video in file.eye_video]
    async for at_s, name, image in _pictures("eye", _sources(session, file.eye_frame, films, load), clock):
        yield EyeFrame(at_s, name, image)


async def _pictures(
    what: str, sources: Iterator[_Source], clock: Clock
) -> AsyncIterator[tuple[float, str, Image]]:
    loop = asyncio.get_running_loop()
    # Reading and decoding take a thread: on the loop they would stall the microphone and the speaker.
    while (source := await loop.run_in_executor(None, next, sources, None)) is not None:
        at_s, name, get = source
        await clock.sleep_until(at_s)
        try:
            image = await loop.run_in_executor(None, get)
        except Exception as e:
            log.warning("skipped %s frame: %s", "an eye" if what == "eye" else "a scene", e)
            continue
        yield at_s, name, image


def _sources(
    session: Session, stills: Sequence[Recording], films: Sequence[Iterator[_Source]], load: ImageLoader
) -> Iterator[_Source]:
    """Frames and video frames in the order of time: (second, name, how to get it)."""
    alone: list[_Source] = [
        (frame.at_s, frame.file, partial(load, session.path(frame.file))) for frame in stills
    ]
    yield from merge(sorted(alone, key=_when), *films, key=_when)


def _film(session: Session, video: Recording, every_s: float, read_video: VideoReader) -> Iterator[_Source]:
    try:
        for at_s, image in read_video(session.path(video.file), every_s):
            yield video.at_s + at_s, video.file, partial(_same, image)
    except Exception as e:
        log.warning("skipped the rest of a video: %s", e)


def _when(source: _Source) -> float:
    return source[0]


def _same(image: Image) -> Image:
    return image


def seed_memory(session: Session) -> list[tuple[datetime, str]]:
    """What the wearer said before the session: (time, words).

    Raises:
        BadFile: a line is not right; names file and line.
    """
    if session.file.memory is None:
        return []
    path = session.path(session.file.memory.seed)
    out = []
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except UnicodeDecodeError as e:
        raise BadFile(path, f"not UTF-8 text (byte {e.start})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            time, text = datetime.fromisoformat(row["time"]).replace(tzinfo=None), row["text"]
        except (ValueError, KeyError, TypeError, RecursionError):
            time, text = None, None
        if time is None or not isinstance(text, str) or not text.isprintable():
            problem = 'not {"time": "2026-03-01T19:00:00", "text": "one line of plain text"}'
            raise BadFile(path, problem, number)
        out.append((time, text))
    return out


def _silence(samples: int) -> Iterator[Samples]:
    while samples > 0:
        size = min(samples, RATE)
        yield np.zeros(size, np.float32)
        samples -= size
