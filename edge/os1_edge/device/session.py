"""A recorded session: a folder with a ``session.toml``. The format is told in docs/sessions.md."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import soundfile
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from os1_edge.clock import Calendar
from os1_edge.tomlfile import BadFile, line_of, read_toml

Seconds = Annotated[float, Field(ge=0, le=24 * 3600, allow_inf_nan=False)]
"""A session second: 0 is the start of the session."""

MAX_SESSION_S = 24 * 3600.0
"""A session longer than a day is a mistake in a number, or should be several sessions."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Audio(_Table):
    """What all microphone files have in common."""

    rate: Annotated[int, Field(ge=8000, le=192_000)] = 16000
    """Samples a second of every microphone file; other rates than 16000 are resampled."""


class Recording(_Table):
    """A media file with the session second at which it starts."""

    file: str
    at_s: Seconds


class Video(Recording):
    """A video; one frame of it is taken every ``every_s`` seconds."""

    every_s: Annotated[float, Field(gt=0, le=3600)] = 10.0


class Utterance(_Table):
    """A reference: what the wearer said, and when (session seconds of the first and last speech sample)."""

    start_s: Seconds
    end_s: Seconds
    text: str

    @model_validator(mode="after")
    def _in_order(self) -> Utterance:
        if self.end_s <= self.start_s:
            raise ValueError(f"end_s {self.end_s} is not after start_s {self.start_s}")
        return self


class Cut(_Table):
    """The recording pauses at ``at_s``; the wearer's calendar goes on at ``time``."""

    at_s: Seconds
    time: datetime


class Gaze(_Table):
    """The eye camera's calibration."""

    calibration: str


class Memory(_Table):
    """What OS-1 remembers before the session starts."""

    seed: str
    """JSON Lines: ``{"time", "text"}``, each something that the wearer said earlier."""


class SessionFile(_Table):
    """The whole of ``session.toml``."""

    schema_: Literal[1] = Field(alias="schema")
    title: str = "A session"
    start: datetime
    licence: str | None = None
    thumbnails: bool = False
    """Small copies of the scene frames may stand in the report."""
    audio: Audio = Audio()
    microphone: list[Recording] = []
    utterance: list[Utterance] = []
    frame: list[Recording] = []
    video: list[Video] = []
    eye_frame: list[Recording] = []
    eye_video: list[Recording] = []
    gaze: Gaze | None = None
    cut: list[Cut] = []
    memory: Memory | None = None
    config: dict[str, Any] = {}

    @field_validator("start")
    @classmethod
    def _local(cls, start: datetime) -> datetime:
        if not 1900 <= start.year <= 9000:
            raise ValueError(f"the year {start.year} is not one that a recording was made in")
        return start.replace(tzinfo=None)


class Session:
    """A session that was read and found whole: every file it names exists and every sound can be read."""

    def __init__(self, folder: Path, file: SessionFile) -> None:
        self.folder = folder
        self.file = file

    def path(self, name: str) -> Path:
        """The file ``name`` of the session."""
        return self.folder / name

    @property
    def calendar(self) -> Calendar:
        """The wearer's date and time at a session second."""
        cuts = tuple((c.at_s, c.time.replace(tzinfo=None)) for c in self.file.cut)
        return Calendar(self.file.start, cuts)


def load_session(folder: Path) -> Session:
    """Reads and checks ``folder/session.toml`` and the files it names.

    Raises:
        BadFile: one clear line with the file and, where it is the session file's, the line at fault.
    """
    if not folder.is_dir():
        raise BadFile(folder, "no such folder" if not folder.exists() else "not a folder")
    toml = folder / "session.toml"
    file, text = read_toml(toml, SessionFile)
    if not file.microphone and not file.frame and not file.video:
        raise BadFile(toml, "has no [[microphone]], [[frame]] or [[video]]: there is nothing to replay")
    _check_named_files(folder, toml, file, text)
    _check_times(toml, file, text)
    last_end = 0.0
    for i, recording in sorted(enumerate(file.microphone), key=lambda pair: pair[1].at_s):
        line = line_of(text, ("microphone", i, "at_s"))
        if recording.at_s < last_end - 1e-6:
            raise BadFile(
                toml,
                f"{recording.file} starts at {recording.at_s} s, before the one before it "
                f"has ended ({last_end:.2f} s)",
                line,
            )
        try:
            last_end = recording.at_s + sound_seconds(folder / recording.file, file.audio.rate)
        except ValueError as e:
            raise BadFile(toml, f"{recording.file} {e}", line_of(text, ("microphone", i, "file"))) from None
        if last_end > MAX_SESSION_S:
            raise BadFile(toml, f"{recording.file} ends after {MAX_SESSION_S:.0f} s; split the session", line)
    return Session(folder, file)


def _check_named_files(folder: Path, toml: Path, file: SessionFile, text: str) -> None:
    named: list[tuple[str, int, str, str]] = [
        (table, i, "file", recording.file)
        for table in ("microphone", "frame", "video", "eye_frame", "eye_video")
        for i, recording in enumerate(getattr(file, table))
    ]
    if file.gaze:
        named.append(("gaze", 0, "calibration", file.gaze.calibration))
    if file.memory:
        named.append(("memory", 0, "seed", file.memory.seed))
    root = folder.resolve()
    for table, i, key, name in named:
        line = line_of(text, (table, i, key))
        try:
            inside, exists = (folder / name).resolve().is_relative_to(root), (folder / name).is_file()
        except (OSError, ValueError, RuntimeError):
            raise BadFile(toml, f"{key} cannot be a file's name: {name[:40]!r}", line) from None
        if not inside:
            raise BadFile(toml, f"{name} lies outside the session's folder", line)
        if not exists:
            raise BadFile(toml, f"names {name}, which does not exist", line)


def _check_times(toml: Path, file: SessionFile, text: str) -> None:
    """The calendar goes forward only, and nothing starts after a day."""
    last_s, last_time = 0.0, file.start
    for i, cut in enumerate(file.cut):
        time = cut.time.replace(tzinfo=None)
        if cut.at_s < last_s or time < last_time + timedelta(seconds=cut.at_s - last_s):
            line = line_of(text, ("cut", i, "at_s"))
            raise BadFile(toml, f"the cut at {cut.at_s} s ({time}) goes back in time", line)
        last_s, last_time = cut.at_s, time
    for table in ("microphone", "frame", "video", "eye_frame", "eye_video"):
        for i, recording in enumerate(getattr(file, table)):
            if recording.at_s > MAX_SESSION_S:
                problem = f"{recording.file} starts after {MAX_SESSION_S:.0f} s; split the session"
                raise BadFile(toml, problem, line_of(text, (table, i, "at_s")))


def sound_seconds(path: Path, rate: int) -> float:
    """Length of a microphone file in seconds.

    Raises:
        ValueError: it cannot be read, is empty, or has another rate than ``rate``.
    """
    try:
        info = soundfile.info(str(path))
    except (soundfile.SoundFileError, RuntimeError) as e:
        reason = str(e).splitlines()[0].rpartition(": ")[2]
        raise ValueError(f"is not a sound file that can be read ({reason})") from None
    if info.samplerate != rate:
        raise ValueError(
            f"has {info.samplerate} samples a second where the session says {rate}: set "
            f"rate = {info.samplerate} under [audio], or convert it"
        )
    if info.frames == 0:
        raise ValueError("holds no samples")
    return float(info.frames) / rate
