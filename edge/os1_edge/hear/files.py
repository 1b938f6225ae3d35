"""Voice activity and transcripts of whole recordings, for scripts and for trying."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from os1_edge.events import CHUNK, RATE, Samples, TurnEnded
from os1_edge.framing import frames
from os1_edge.hear.asr import Segment, Whisper
from os1_edge.hear.turn import TurnDetector, TurnRules
from os1_edge.hear.vad import SileroVad

WHOLE = 28 * RATE
"""A recording up to this long goes to Whisper in one piece; a longer one is cut at pauses."""

LAG_S = CHUNK / RATE
"""Silero answers about one chunk late; the spans are moved forward by it."""


@dataclass(frozen=True, slots=True)
class SpanRules:
    """When a chunk belongs to speech; lengths in chunks of 32 ms."""

    start_above: float = 0.5
    stop_below: float = 0.35
    min_speech: int = 3
    min_silence: int = 4


def spans(probabilities: Iterable[float], rules: SpanRules = SpanRules()) -> list[tuple[int, int]]:
    """Runs of speech as (first chunk, one after the last), by hysteresis. Pure."""
    out: list[tuple[int, int]] = []
    start: int | None = None
    end = 0
    for i, p in enumerate(probabilities):
        if start is None:
            if p >= rules.start_above:
                start, end = i, i + 1
        elif p >= rules.stop_below:
            end = i + 1
        elif i + 1 - end >= rules.min_silence:
            out.append((start, end))
            start = None
    if start is not None:
        out.append((start, end))
    return [(a, b) for a, b in out if b - a >= rules.min_speech]


def speech_spans(blocks: Iterable[Samples], vad: SileroVad) -> tuple[float, list[tuple[float, float]]]:
    """(length, [(start, end), …]) in seconds of a recording and the speech in it."""
    vad.reset()
    length = 0

    def counted() -> Iterator[Samples]:
        nonlocal length
        for block in blocks:
            length += len(block)
            yield block

    found = spans(vad.probability(frame.samples) for frame in frames(counted()))
    seconds = length / RATE
    moved = [(max(0.0, a * CHUNK / RATE - LAG_S), min(seconds, b * CHUNK / RATE - LAG_S)) for a, b in found]
    return round(seconds, 3), [(round(a, 3), round(b, 3)) for a, b in moved if b > a]


def transcript(blocks: Iterable[Samples], whisper: Whisper, vad: SileroVad) -> tuple[float, list[Segment]]:
    """(length in seconds, segments) of a recording of any length. Where nobody speaks, nothing is written."""
    blocks = iter(blocks)
    head: list[Samples] = []
    while sum(map(len, head)) <= WHOLE and (block := next(blocks, None)) is not None:
        head.append(block)
    samples = sum(map(len, head))
    if samples <= WHOLE:
        audio = np.concatenate([*head, np.zeros(0, np.float32)])
        speaks = bool(speech_spans([audio], vad)[1])
        return samples / RATE, whisper.segments(audio) if speaks else []
    return _long_transcript(chain(head, blocks), whisper, vad)


def _long_transcript(
    blocks: Iterable[Samples], whisper: Whisper, vad: SileroVad
) -> tuple[float, list[Segment]]:
    vad.reset()
    detector = TurnDetector(TurnRules(silence=6 * RATE // 10, max_turn=WHOLE))
    segments: list[Segment] = []
    end = 0

    def write(turn: TurnEnded) -> None:
        offset = turn.audio_start / RATE
        for s in whisper.segments(turn.audio):
            segments.append(replace(s, start_s=offset + s.start_s, end_s=offset + s.end_s))

    for frame in frames(blocks):
        end = frame.start + len(frame.samples)
        event = detector.step(frame, vad.probability(frame.samples))
        if isinstance(event, TurnEnded):
            write(event)
    if (last := detector.close()) is not None:
        write(last)
    return end / RATE, segments
