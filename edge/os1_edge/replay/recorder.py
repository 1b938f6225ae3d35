"""Watches a replay and makes its report."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

from os1_edge import __version__
from os1_edge.app import Followed, TurnTrace
from os1_edge.device.replay import session_seconds
from os1_edge.device.session import Session, Utterance
from os1_edge.events import RATE, PartialTranscript, SeenFrame
from os1_edge.remember.memory import Memory
from os1_edge.replay import measure, report
from os1_edge.see.scene import SceneDescription

Told = Callable[[str], None]
"""Takes one line of progress."""


class Recorder:
    """The app's observer in a replay."""

    def __init__(self, session: Session, *, realtime: bool, tell: Told) -> None:
        self._session, self._realtime, self._told = session, realtime, tell
        self._calendar = session.calendar
        self._turns: list[report.Turn] = []
        self._frames: list[report.Frame] = []
        self._eye: report.Eye | None = None

    def frame_described(self, frame: SeenFrame, description: SceneDescription) -> None:
        """See ``Observer``."""
        self._frames.append(
            report.Frame(
                at_s=frame.at_s,
                time=self._calendar.at(frame.at_s),
                file=frame.source,
                scene=description.sentence or description.reason,
                usable=description.usable,
                why=frame.why,
                looked_at=description.attended or None,
                motion=description.motion or None,
                thumbnail=_data_url(frame.thumbnail),
            )
        )

    def eye_followed(self, followed: Followed) -> None:
        """What was made of the eye camera, at the end."""
        if followed.frames or followed.skipped:
            self._eye = report.Eye(**asdict(followed))

    def partly_heard(self, partial: PartialTranscript) -> None:
        """See ``Observer``."""

    def being_said(self, trace: TurnTrace, clauses: Sequence[str]) -> None:
        """See ``Observer``."""

    def forgot(self) -> None:
        """See ``Observer``. A report tells of the whole session, the forgetting included."""

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # who listened is gone; the report is still to be written
            self._told(line)

    def turn_answered(self, trace: TurnTrace) -> None:
        """See ``Observer``."""
        turn = self._turn(trace)
        self._turns.append(turn)
        waited = turn.latency.voice_to_voice_s
        self._tell(f"{turn.time:%H:%M:%S}  wearer  {turn.heard}")
        answer = turn.reply if turn.failed is None else f"{turn.reply} (failed: {turn.failed})".lstrip()
        self._tell(f"          os-1    {answer}" + (f"  ({waited:.2f} s)" if waited is not None else ""))

    async def make(
        self, models: Mapping[str, report.ModelFile], memory: Memory, wall_s: float
    ) -> report.Report:
        """Everything that happened."""
        # A turn that was dropped is told of before those that were answered meanwhile.
        in_order = sorted(self._turns, key=lambda t: t.start_s)
        turns, unheard, wrong = scored(in_order, self._session.file.utterance)
        rss_mb, cpu_s = measure.spent()
        return report.Report(
            os1_version=__version__,
            session=report.SessionInfo(
                title=self._session.file.title,
                start=self._session.file.start,
                seconds=round(session_seconds(self._session), 2),
                mode="realtime" if self._realtime else "fast",
            ),
            machine=measure.machine(),
            models=dict(models),
            turns=turns,
            frames=self._frames,
            eye=self._eye,
            contexts=_contexts(memory),
            events=await _events(memory),
            profile=await _profile(memory),
            resources=report.Resources(
                rss_max_mb=round(rss_mb, 1), cpu_s=round(cpu_s, 2), wall_s=round(wall_s, 2)
            ),
            word_error_rate=_rounded(wrong),
            unheard=unheard or None,
        )

    def _turn(self, trace: TurnTrace) -> report.Turn:
        ended = trace.ended
        start_s, end_s = ended.start / RATE, ended.end / RATE
        spoke = trace.spoke_at_s is not None
        return report.Turn(
            turn_id=ended.turn_id,
            revision=ended.revision,
            time=self._calendar.at(start_s),
            start_s=round(start_s, 3),
            end_s=round(end_s, 3),
            heard=trace.heard,
            reply=trace.reply,
            route=trace.route,
            route_reason=trace.route_reason,
            failed=trace.failed,
            took_up=trace.took_up or None,
            interrupted=trace.interrupted or None,
            scene=trace.scene or None,
            looked_at=trace.looked_at or None,
            recalled=[report.Recalled(kind=h.kind, text=h.text, score=h.score) for h in trace.hits],
            reply_file=f"replies/{trace.spoken_file}" if trace.spoken_file else None,
            reply_s=round(trace.spoken_s, 3) if spoke else None,
            reply_start_s=_rounded(trace.spoke_at_s) if self._realtime else None,
            latency=self._latency(trace, measure.last_speech_s(ended, self._session.file.utterance)),
        )

    def _latency(self, trace: TurnTrace, speech_end_s: float) -> report.Latency:
        spoke_at = trace.spoke_at_s if self._realtime else None
        return report.Latency(
            pause_s=_rounded(trace.paused_at / RATE - speech_end_s) if trace.paused_at is not None else None,
            endpoint_s=_rounded(trace.ended.decided / RATE - speech_end_s),
            final_text_s=_rounded(trace.final_text_s),
            asr_s=_rounded(trace.asr_s),
            recall_s=_rounded(trace.recall_s),
            first_token_s=_rounded(trace.first_token_s),
            first_clause_s=_rounded(trace.first_clause_s),
            first_audio_s=_rounded(trace.first_audio_s),
            voice_to_voice_s=_rounded(spoke_at - speech_end_s) if spoke_at is not None else None,
        )


def scored(
    turns: Sequence[report.Turn], said: Sequence[Utterance]
) -> tuple[list[report.Turn], list[str], float | None]:
    """The turns with their references, the references that no turn heard, and the word error rate.

    Each reference belongs to the one turn that heard most of it, or to none.
    """
    spans = [(t.start_s, t.end_s) for t in turns]
    texts: dict[int | None, list[str]] = {}
    unheard: list[str] = []
    for utterance in sorted(said, key=lambda u: u.start_s):
        number = measure.turn_of(utterance, spans)
        texts.setdefault(number, []).append(utterance.text)
        if number is None or not turns[number].heard.strip():
            unheard.append(utterance.text)
    references = [" ".join(texts.get(number, ())) for number in range(len(turns))]
    pairs = [(reference, turn.heard) for reference, turn in zip(references, turns, strict=True)]
    pairs += [(text, "") for text in texts.get(None, ())]
    told = [t.model_copy(update={"reference": r or None}) for t, r in zip(turns, references, strict=True)]
    return told, unheard, measure.word_error_rate(pairs)


def _contexts(memory: Memory) -> list[report.Context]:
    return [
        report.Context(
            at_s=round(c.at_s, 3),
            time=time,
            scene=c.scene,
            utterance=c.utterance,
            location=c.location,
            activity=c.activity,
        )
        for c, time in memory.store.contexts()
    ]


async def _events(memory: Memory) -> list[report.Event]:
    return [
        report.Event(
            start=e.start,
            end=e.end,
            location=e.location,
            activity=e.activity,
            summary=e.summary,
            contexts=e.contexts,
        )
        for e in await memory.events()
    ]


async def _profile(memory: Memory) -> list[report.ProfileLine]:
    return [
        report.ProfileLine(
            kind=p.kind,
            text=p.text,
            confidence=p.confidence,
            learned=p.learned,
            source_turn=p.source_turn,
        )
        for p in await memory.profile()
    ]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


def _data_url(jpeg: bytes | None) -> str | None:
    return None if jpeg is None else "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
