"""Transcripts of whole recordings, for scripts and for trying. ``spans`` tells where they hold speech."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain

import numpy as np

from os1_edge.events import RATE, Samples, TurnEnded
from os1_edge.framing import frames
from os1_edge.hear.recogniser import Recogniser, Segment
from os1_edge.hear.spans import speaks, speech_spans
from os1_edge.hear.turn import TurnDetector, TurnRules
from os1_edge.hear.vad import SileroVad

__all__ = ["speech_spans", "transcript"]

WHOLE = 28 * RATE
"""A recording up to this long goes to Whisper in one piece; a longer one is cut at pauses."""

TELL_EVERY = 60 * RATE
"""Samples (a minute) between two words of progress."""


Progress = Callable[[float], None]
"""Told how many seconds of a long recording are done."""


def transcript(
    blocks: Iterable[Samples], recogniser: Recogniser, vad: SileroVad, progress: Progress | None = None
) -> tuple[float, list[Segment]]:
    """(length in seconds, segments) of a recording of any length. Where nobody speaks, nothing is written.

    Of sound, no more than a turn and a block are held; ``progress`` is told every ``TELL_EVERY`` samples of a
    recording longer than ``WHOLE``.
    """
    blocks = iter(blocks)
    head: list[Samples] = []
    while sum(map(len, head)) <= WHOLE and (block := next(blocks, None)) is not None:
        head.append(block)
    samples = sum(map(len, head))
    if samples <= WHOLE:
        audio = np.concatenate([*head, np.zeros(0, np.float32)])
        return samples / RATE, recogniser.segments(audio) if speaks(audio, vad) else []
    return _long_transcript(chain(head, blocks), recogniser, vad, progress)


def _long_transcript(
    blocks: Iterable[Samples], recogniser: Recogniser, vad: SileroVad, progress: Progress | None
) -> tuple[float, list[Segment]]:
    vad.reset()
    detector = TurnDetector(TurnRules(silence=6 * RATE // 10, max_turn=WHOLE))
    segments: list[Segment] = []
    end = 0

    def write(turn: TurnEnded) -> None:
        offset = turn.audio_start / RATE
        for s in recogniser.segments(turn.audio):
            segments.append(replace(s, start_s=offset + s.start_s, end_s=offset + s.end_s))

    for frame in frames(blocks):
        end = frame.start + len(frame.samples)
        event = detector.step(frame, vad.probability(frame.samples))
        if isinstance(event, TurnEnded):
            write(event)
        if progress is not None and end % TELL_EVERY < len(frame.samples):
            progress(end / RATE)
    if (last := detector.close()) is not None:
        write(last)
    return end / RATE, segments
