"""What else people use, on the same work in the same run, turn about: each as a ratio.

A peer that is not installed is left out with a word; none of them is ever downloaded here.
"""

from __future__ import annotations

import asyncio
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

import os1_models
from os1_edge.bench.asr import stock
from os1_edge.bench.recall import MEASURING_KEY
from os1_edge.bench.recall_peers import DEPTH, PEERS, Peer
from os1_edge.bench.recall_scale import Rows, keep, made_up
from os1_edge.bench.result import Ratio, Skipped
from os1_edge.bench.stage import Setting, Unavailable, timed
from os1_edge.bench.stages.clips import utterances
from os1_edge.bench.stages.loop import runner
from os1_edge.bench.stages.offload import connected, server
from os1_edge.events import Samples
from os1_edge.hear.asr import Whisper
from os1_edge.hear.recogniser import EngineMissing, make_recogniser
from os1_edge.remember.store import Store
from os1_edge.replay.measure import word_error_rate

Transcribe = Callable[[Samples], str]
Stopped = Callable[[], bool]

FASTER = "OS1_FASTER_WHISPER"
"""Where faster-whisper's model lies, if not where it puts it itself."""

ROWS = 10_000
QUESTIONS = 40
ECHOES = 300
LEAST, PATIENCE_S = 5, 15.0
"""Clips in any case, and the seconds that a peer may spend on them beyond those."""
DRAWS = 1000


def peers(setting: Setting, stopped: Stopped) -> tuple[list[Ratio], list[Skipped]]:
    """All of them, and those that are not here."""
    ratios: list[Ratio] = []
    absent: list[Skipped] = []
    for name, work in {"asr": _asr, "recall": _recall, "grpc": _echo}.items():
        if stopped():
            absent.append(Skipped(name=f"peers of {name}", why="interrupted before it"))
            continue
        try:
            for found in work(setting, stopped):
                if isinstance(found, Ratio):
                    ratios.append(found)
                else:
                    absent.append(found)
        except (Unavailable, os1_models.ModelError) as e:
            absent.append(Skipped(name=f"peers of {name}", why=str(e)))
        except Exception as e:
            # A peer that breaks is told of; what was measured before it is not lost for it.
            absent.append(Skipped(name=f"peers of {name}", why=f"failed: {type(e).__name__}: {e}"))
    return ratios, absent


def ratio(
    name: str,
    peer: str,
    unit: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    quality: dict[str, float] | None = None,
) -> Ratio:
    """Of samples taken in pairs, one right after the other: what the machine did meanwhile is in both."""
    pairs = np.asarray(theirs, float) / np.maximum(np.asarray(ours, float), 1e-12)
    drawn = np.median(np.random.default_rng(0).choice(pairs, (DRAWS, len(pairs))), axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return Ratio(
        name=name,
        peer=peer,
        unit=unit,
        ours=round(statistics.median(ours), 6),
        theirs=round(statistics.median(theirs), 6),
        ratio=round(float(np.median(pairs)), 3),
        low=round(float(low), 3),
        high=round(float(high), 3),
        n=len(pairs),
        quality=quality or {},
    )


def _asr(setting: Setting, stopped: Stopped) -> Iterator[Ratio | Skipped]:
    path = os1_models.path("whisper-tiny.en")
    ours: Transcribe = Whisper(path, threads=setting.threads).text
    others: dict[str, Callable[[], Transcribe]] = {
        "whisper.cpp as pywhispercpp sets it up": lambda: stock(path, setting.threads),
        "faster-whisper, int8": lambda: _faster(setting.threads),
        "moonshine-base on sherpa-onnx": lambda: _moonshine(setting.threads),
    }
    for name, load in others.items():
        if stopped():
            return
        try:
            theirs = load()
        except (Unavailable, os1_models.ModelError) as e:
            yield Skipped(name=name, why=str(e))
            continue
        yield _heard(name, ours, theirs, stopped)


def _heard(name: str, ours: Transcribe, theirs: Transcribe, stopped: Stopped) -> Ratio:
    clips = utterances()
    ours(clips[0][1])
    theirs(clips[0][1])
    texts: dict[str, list[tuple[str, str]]] = {"ours": [], "theirs": []}
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for number, (said, audio) in enumerate(clips):
        if number and (stopped() or (number >= LEAST and sum(times["theirs"]) > 1000 * PATIENCE_S)):
            break
        order = (("ours", ours), ("theirs", theirs))
        for which, transcribe in order if number % 2 else order[::-1]:
            began = perf_counter()
            heard = transcribe(audio)
            times[which].append(1000 * (perf_counter() - began))
            texts[which].append((said, heard))
    wrong = {f"WER {which} %": round(100 * (word_error_rate(t) or 0.0), 2) for which, t in texts.items()}
    return ratio("asr, an utterance", name, "ms", times["ours"], times["theirs"], wrong)


def _faster(threads: int) -> Transcribe:
    if find_spec("faster_whisper") is None:
        raise Unavailable("not installed; run: pip install 'os1[peers]'")
    from faster_whisper import WhisperModel

    try:
        model: Any = WhisperModel(
            os.environ.get(FASTER, "tiny.en"), compute_type="int8", cpu_threads=threads, local_files_only=True
        )
    except Exception as e:
        raise Unavailable(
            f"its model is not here ({type(e).__name__}); run: "
            "python -c 'import faster_whisper; faster_whisper.download_model(\"tiny.en\")', "
            f"or put the folder of a CTranslate2 model into {FASTER}"
        ) from None
    return lambda audio: " ".join(segment.text for segment in model.transcribe(audio)[0])


def _moonshine(threads: int) -> Transcribe:
    try:
        return make_recogniser("sherpa", os1_models.path("moonshine-base"), "en", threads).text
    except EngineMissing as missing:
        raise Unavailable(str(missing)) from None


def _recall(_: Setting, _stopped: Stopped) -> Iterator[Ratio | Skipped]:
    here = {name: make for name, make in PEERS.items() if find_spec(name) is not None}
    yield from (
        Skipped(name=name, why="not installed; run: pip install 'os1[peers]'")
        for name in PEERS
        if name not in here
    )
    if not here:
        return
    rows = made_up(ROWS, QUESTIONS)
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "memory.db", MEASURING_KEY)
        try:
            keep(store, rows)
            for name, make in here.items():
                peer = make(Path(folder) / name, rows.texts, rows.vectors)
                yield ratio(f"nearest of {ROWS // 1000}k memories", name, "ms", *_asked(store, peer, rows))
        finally:
            store.close()


def _asked(store: Store, peer: Peer, rows: Rows) -> tuple[list[float], list[float]]:
    """Milliseconds of each question, ours and theirs in turn."""
    ours: list[float] = []
    theirs: list[float] = []
    for question, vector in zip(rows.questions, rows.asked, strict=True):
        ours.append(timed(partial(store.nearest_turns, vector, DEPTH)))
        theirs.append(timed(partial(peer.nearest, question, vector)))
    return ours, theirs


def _echo(_: Setting, stopped: Stopped) -> Iterator[Ratio]:
    with server() as served:
        ours, theirs = runner().run(_trips(served.address, served.echo, stopped))
    yield ratio("round trip with token and load", "a bare grpc.aio echo", "ms", ours, theirs)


async def _trips(address: str, echo: str, stopped: Stopped) -> tuple[list[float], list[float]]:
    import grpc

    far = await connected(address)
    ours: list[float] = []
    theirs: list[float] = []
    try:
        async with grpc.aio.insecure_channel(echo) as channel:
            one: Any = channel.unary_unary("/Echo/One")
            await one(b"x")
            loop = asyncio.get_running_loop()
            for number in range(ECHOES):
                if number and stopped():
                    break
                ours.append(1000 * (await far.probe(0, 5.0)).rtt_s)
                began = loop.time()
                await one(b"x")
                theirs.append(1000 * (loop.time() - began))
    finally:
        await far.close()
    return ours, theirs
