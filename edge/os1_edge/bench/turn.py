"""Voice to voice: the runtime in real time against the plain sequence, on one session in one run."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click
import numpy as np

from os1_edge.bench.plain import PlainTurn, plain_turns
from os1_edge.config import Config, load_config
from os1_edge.device.session import Session, load_session
from os1_edge.events import RATE
from os1_edge.remember.key import wearers_key
from os1_edge.replay import measure
from os1_edge.replay.report import Report
from os1_edge.replay.run import replay


def plain_seconds(turns: list[PlainTurn], session: Session) -> list[float]:
    """Last speech sample -> first sample of the reply, a turn."""
    return [
        turn.ended.decided / RATE - measure.last_speech_s(turn.ended, session.file.utterance) + turn.work_s
        for turn in turns
    ]


def compared(folder: Path, config: Config, key: bytes, rounds: int) -> dict[str, object]:
    """Alternates real-time replays with the plain sequence; medians, percentiles and their ratio.

    Raises:
        BadFile: the session is broken.
        os1_models.ModelMissing: a model has not been pulled.
    """
    session = load_session(folder)
    ours: list[float] = []
    texts: list[float] = []
    plain: list[float] = []
    ratios: list[float] = []
    for number in range(1, rounds + 1):
        click.echo(f"round {number} of {rounds}: the session in real time", err=True)
        with tempfile.TemporaryDirectory() as out:
            made = replay(folder, Path(out) / "out", config, key, realtime=True, tell=lambda _line: None)
        click.echo(f"round {number} of {rounds}: the plain sequence", err=True)
        theirs = plain_seconds(plain_turns(session, config, key), session)
        mine = _voice_to_voice(made)
        ours, plain = ours + mine, plain + theirs
        texts += [t.latency.final_text_s for t in made.turns if t.latency.final_text_s is not None]
        ratios.append(float(np.median(theirs) / np.median(mine)))
    return {
        "machine": measure.machine(),
        "session": session.file.title,
        "rounds": rounds,
        "turns": len(ours),
        "voice_to_voice_s": _percentiles(ours),
        "final_text_s": _percentiles(texts),
        "plain_voice_to_voice_s": _percentiles(plain),
        "times_faster": round(float(np.median(ratios)), 2),
    }


def _voice_to_voice(made: Report) -> list[float]:
    return [t.latency.voice_to_voice_s for t in made.turns if t.latency.voice_to_voice_s is not None]


def _percentiles(values: list[float]) -> dict[str, float]:
    return {f"p{q}": round(float(np.percentile(values, q)), 3) for q in (50, 95)} | {
        "max": round(max(values), 3)
    }


@click.command("turn", help="Voice-to-voice latency of a session in real time, against the plain sequence.")
@click.argument("session", type=click.Path(path_type=Path), required=False)
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(1, 20))
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Settings (TOML).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
def turn(session: Path | None, rounds: int, config_file: Path | None, as_json: bool) -> None:
    """``os1 bench turn``."""
    from importlib.resources import files

    folder = session or Path(str(files("os1_edge") / "demo" / "morning"))
    key = wearers_key()
    found = compared(folder, load_config(config_file), key, rounds)
    if as_json:
        click.echo(json.dumps(found))
        return
    for name in ("voice_to_voice_s", "plain_voice_to_voice_s", "final_text_s"):
        row = found[name]
        assert isinstance(row, dict)
        click.echo(f"{name:24}" + "".join(f"  {k} {v:.3f}" for k, v in row.items()))
    click.echo(f"times faster            {found['times_faster']}")


if __name__ == "__main__":
    turn()
