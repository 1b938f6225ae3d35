"""What quantising Whisper costs: word error rate, speed, memory and size, on labelled speech.

    python -m os1_models.measure_whisper DATA_DIR CT2_DIR [--out result.json] [--clips N] [--rounds N]
        [--variants f16 q8_0 q5_1 q5_0] [--threads N]

`DATA_DIR` holds `audio/manifest.jsonl` (one clip a line: kind, path, seconds, transcript) and its 16 kHz
mono 16-bit WAV files; `CT2_DIR` a CTranslate2 Whisper (`model.bin`, `tokenizer.json`). Each variant runs in
a process of its own, so that its peak memory is its own; the variants take turns clip by clip, so that other
load on the machine falls on all of them alike. Words are counted after Whisper's English normaliser.

Needs pywhispercpp and whisper-normalizer. Progress goes to stderr, a table to stdout, and the JSON is written
anew after every clip, so that a run that is stopped has not been in vain.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from os1_models.whisper_ggml import convert_whisper

VARIANTS = ("f16", "q8_0", "q5_1", "q5_0")
SAMPLE_RATE_HZ = 16_000
FRAMES_PER_S = 50
CONTEXT_STEP = 256
"""Seen elsewhere: with flash attention on, the default, a window that is no multiple of this lets an
utterance leak into the transcript of the next."""
CONTEXT_FLOOR = 512
"""Seen elsewhere: below it, some clips of 1.5 to 3 s repeat themselves for many seconds."""
CONTEXT_FULL = 1500


def audio_context(seconds: float) -> int:
    """Encoder frames for a clip: a multiple of 256 that holds it; 0, the full 30 s, past 1280."""
    needed = math.ceil(seconds * FRAMES_PER_S / CONTEXT_STEP) * CONTEXT_STEP
    return max(CONTEXT_FLOOR, needed) if needed < CONTEXT_FULL else 0


def read_wav(path: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Samples in -1..1, float32, of a 16 kHz mono 16-bit file."""
    with wave.open(str(path)) as clip:
        if (clip.getframerate(), clip.getnchannels(), clip.getsampwidth()) != (SAMPLE_RATE_HZ, 1, 2):
            raise ValueError(f"{path.name} is not 16 kHz mono 16-bit")
        raw = clip.readframes(clip.getnframes())
    return np.frombuffer(raw, dtype="<i2").astype(np.float32) / np.float32(32768)


def word_errors(reference: Sequence[str], heard: Sequence[str]) -> int:
    """Fewest insertions, deletions and substitutions from one word list to the other."""
    row = list(range(len(heard) + 1))
    for i, expected in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, got in enumerate(heard, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (expected != got))
    return row[-1]


def peak_kib() -> int:
    """Largest resident set of this process, in KiB.

    From `/proc`, as `getrusage` of a child starts at what its parent weighed when it forked.
    """
    fields = (line.split() for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    return next(int(words[1]) for words in fields if words[0] == "VmHWM:")


def serve(model_path: str, threads: int) -> None:
    """One variant's process: a WAV path a line in, a JSON answer a line out, until the input ends."""
    from pywhispercpp.model import Model

    whisper = Model(
        model_path, redirect_whispercpp_logs_to=None, n_threads=threads, no_context=True,
        single_segment=False, suppress_nst=True, print_progress=False, print_realtime=False, language="en",
    )  # fmt: skip
    for line in sys.stdin:
        samples = read_wav(Path(line.strip()))
        begun, worked = time.perf_counter(), time.process_time()
        segments = whisper.transcribe(samples, audio_ctx=audio_context(len(samples) / SAMPLE_RATE_HZ))
        answer = {
            "text": " ".join(segment.text.strip() for segment in segments),
            "seconds": time.perf_counter() - begun,
            "cpu_seconds": time.process_time() - worked,
            "peak_kib": peak_kib(),
        }
        print(json.dumps(answer), flush=True)


@dataclass(slots=True)
class Variant:
    """One quantisation's running sums."""

    name: str
    file_bytes: int
    errors: int = 0
    words: int = 0
    peak_kib: int = 0
    factors: list[float] = field(default_factory=list)
    """Real-time factors: seconds that pass a second of speech."""
    cpu_factors: list[float] = field(default_factory=list)
    """Seconds of processor time a second of speech: what other load on the machine hardly moves."""

    def row(self) -> dict[str, Any]:
        ordered = sorted(self.factors)
        return {
            "variant": self.name,
            "wer_percent": round(100 * self.errors / self.words, 2),
            "errors": self.errors,
            "words": self.words,
            "rtf_median": round(statistics.median(ordered), 4),
            "rtf_p95": round(ordered[int(0.95 * (len(ordered) - 1))], 4),
            "cpu_median": round(statistics.median(self.cpu_factors), 4),
            "file_mb": round(self.file_bytes / 1e6, 1),
            "peak_rss_mib": round(self.peak_kib / 1024),
        }


@dataclass(frozen=True, slots=True)
class Clip:
    """One labelled utterance."""

    path: Path
    seconds: float
    transcript: str


def read_clips(data: Path, limit: int | None) -> list[Clip]:
    """The speech clips of a data folder."""
    lines = (data / "audio" / "manifest.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["kind"] == "speech"]
    return [Clip(data / "audio" / row["path"], row["seconds"], row["transcript"]) for row in rows[:limit]]


class _Worker:
    def __init__(self, name: str, model: Path, threads: int) -> None:
        self.variant = Variant(name, model.stat().st_size)
        module = [sys.executable, "-m", "os1_models.measure_whisper"]
        argv = [*module, "--serve", str(model), "--threads", str(threads)]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hear(self, clip: Clip, normalise: Any, *, count_words: bool) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(clip.path, file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        self.variant.factors.append(answer["seconds"] / clip.seconds)
        self.variant.cpu_factors.append(answer["cpu_seconds"] / clip.seconds)
        self.variant.peak_kib = answer["peak_kib"]
        if count_words:
            reference = normalise(clip.transcript).split()
            self.variant.words += len(reference)
            self.variant.errors += word_errors(reference, normalise(answer["text"]).split())

    def close(self) -> None:
        self._process.communicate(timeout=30)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    clips: Sequence[Clip]
    ct2: Path
    variants: Sequence[str]
    rounds: int
    """Times over the clips; words are counted in the first, speed in all."""
    threads: int
    out: Path | None


def measure(plan: Plan) -> list[dict[str, Any]]:
    """Convert every variant, run all of them over the clips, and return a row for each."""
    from whisper_normalizer.english import EnglishTextNormalizer

    normalise = EnglishTextNormalizer()
    with tempfile.TemporaryDirectory() as folder:
        workers = []
        for name in plan.variants:
            model = Path(folder) / f"{name}.bin"
            convert_whisper(plan.ct2 / "model.bin", plan.ct2 / "tokenizer.json", model, name)
            workers.append(_Worker(name, model, plan.threads))
        count = len(plan.clips)
        for step in range(plan.rounds * count):
            # Rotate who goes first: the first after a pause finds colder caches.
            for worker in workers[step % len(workers) :] + workers[: step % len(workers)]:
                worker.hear(plan.clips[step % count], normalise, count_words=step < count)
            print(f"\r{step + 1}/{plan.rounds * count} clips", end="", file=sys.stderr, flush=True)
            save(plan, [worker.variant for worker in workers], step + 1)
        print(file=sys.stderr)
        for worker in workers:
            worker.close()
    return [worker.variant.row() for worker in workers]


def save(plan: Plan, variants: Sequence[Variant], clips: int) -> None:
    """Write the rows and every factor as JSON, if that was asked for."""
    if plan.out is not None:
        rows = [variant.row() for variant in variants]
        document = {"clips": clips, "threads": plan.threads, "rows": rows, "raw": [*map(asdict, variants)]}
        plan.out.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    heads = list(rows[0])
    lines = [heads, ["---"] * len(heads), *([str(row[head]) for head in heads] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m os1_models.measure_whisper", description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("ct2", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, help="also write the rows, and every factor, as JSON")
    parser.add_argument("--clips", type=int, help="only the first N")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--serve", metavar="MODEL", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.serve:
        serve(options.serve, options.threads)
        return
    if options.data is None or options.ct2 is None:
        parser.error("DATA_DIR and CT2_DIR are needed")
    clips = read_clips(options.data, options.clips)
    plan = Plan(clips, options.ct2, options.variants, options.rounds, options.threads, options.out)
    print(table(measure(plan)))


if __name__ == "__main__":
    main()
