"""What a measurement writes down: the schema of ``bench.json``, explained in docs/bench.md."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from os1_edge.tomlfile import BadFile, plain_problem

Better = Literal["lower", "higher"]
Samples = Annotated[tuple[float, ...], Field(min_length=1)]
Shape = Literal["packets", "proxy"]
SCHEMA = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Series(_Part):
    """One thing measured, with every sample of it."""

    name: str
    group: str
    """The room it belongs to: hear, see, remember, converse, speak, offload, process, system."""
    unit: str
    better: Better
    blocks: Annotated[tuple[Samples, ...], Field(min_length=1)]
    """Samples in the order they were taken, one block a round. Rounds are minutes apart, with everything
    else measured between them: how far their medians lie apart is this machine's noise."""
    median: float
    p95: float
    iqr: float
    """The middle half of the samples lies within so much."""
    mad: float
    """Median distance from the median."""
    n: int
    of: dict[str, str | int | float] = Field(default_factory=dict)
    """What it was measured with, for a program: model, threads, seconds, rows."""

    @property
    def samples(self) -> tuple[float, ...]:
        """All of them."""
        return tuple(value for block in self.blocks for value in block)


class Skipped(_Part):
    """What was not measured, and why."""

    name: str
    why: str


class Ratio(_Part):
    """Another program on the same work in the same run, turn about with ours."""

    name: str
    peer: str
    unit: str
    ours: float
    theirs: float
    """Medians."""
    ratio: float
    """Median over the pairs of theirs by ours: above 1, ours takes less."""
    low: float
    high: float
    """Where the ratio lies, 95 % (bootstrap over the pairs)."""
    n: int
    quality: dict[str, float] = Field(default_factory=dict)
    """What is not time, such as word error rates of both."""


class Machine(_Part):
    """What it ran on, and the state it was in."""

    cpu: str
    cores: int
    """That this process may use."""
    pinned: list[int]
    """The cores that it kept to; empty: none were chosen."""
    memory_mb: int
    free_mb: int
    system: str
    python: str
    governor: str | None = None
    load_before: float
    load_after: float
    """Runnable processes, mean of a minute (``os.getloadavg``); our own work counts in the second."""
    hottest_c: float | None = None
    battery_percent: float | None = None
    charging: bool = False
    mhz_before: float | None = None
    mhz_after: float | None = None
    versions: dict[str, str] = Field(default_factory=dict)


class LinkRun(_Part):
    """The session lived once over one kind of link."""

    link: str
    turns: int
    voice_to_voice_s: tuple[float, ...]
    """Of each turn that was answered aloud."""
    parts_s: dict[str, float]
    """Medians of where a turn's time went, in order."""
    routes: dict[str, int]
    checks_passed: int
    checks: int
    cpu_s_a_minute: float
    joules: float | None = None
    """Absent where the machine does not tell."""
    energy_by: Literal["rapl", "battery"] | None = None
    shaped_by: Shape | None = None
    """Packets that are late and lost, or a proxy that delays and stalls; absent where there was no server."""


class Result(_Part):
    """The whole of ``bench.json``."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    made: datetime
    os1_version: str
    command: str
    mode: Literal["quick", "full"]
    threads: int
    rounds: int
    seconds: float
    interrupted: bool
    machine: Machine
    series: tuple[Series, ...]
    skipped: tuple[Skipped, ...] = ()
    peers: tuple[Ratio, ...] = ()
    links: tuple[LinkRun, ...] = ()
    warnings: tuple[str, ...] = ()
    """Why the numbers are to be taken with care."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)

    def write(self, path: Path) -> None:
        """Writes the JSON to ``path``; what stood there stays until the new file is whole."""
        text = self.model_dump_json(indent=1, by_alias=True, exclude_none=True) + "\n"
        beside = path.with_name(f"{path.name}.part")
        beside.write_text(text, "utf-8")
        beside.replace(path)


def series(
    name: str,
    group: str,
    unit: str,
    blocks: Sequence[Sequence[float]],
    better: Better = "lower",
    of: dict[str, str | int | float] | None = None,
) -> Series:
    """A series with its figures.

    Raises:
        ValueError: there is no sample.
    """
    kept = tuple(tuple(round(float(value), 6) for value in block) for block in blocks if len(block))
    values = [value for block in kept for value in block]
    if not values:
        raise ValueError(f"{name}: no samples")
    middle = statistics.median(values)
    low, high, tail = (float(v) for v in np.percentile(values, (25, 75, 95)))
    return Series(
        name=name,
        group=group,
        unit=unit,
        better=better,
        blocks=kept,
        median=round(middle, 6),
        p95=round(tail, 6),
        iqr=round(high - low, 6),
        mad=round(statistics.median(abs(value - middle) for value in values), 6),
        n=len(values),
        of=of or {},
    )


def joined(results: Sequence[Result]) -> Result:
    """What several commands measured on one machine, as one: the first's head, the series, peers and links of
    all. What was left out by one and measured by another is measured.

    Raises:
        ValueError: they are of two machines.
    """
    first = results[0]
    if any((r.machine.cpu, r.machine.cores) != (first.machine.cpu, first.machine.cores) for r in results):
        raise ValueError("they are of two machines; os1 bench compare takes those")
    rows: dict[str, Series] = {}
    links: dict[str, LinkRun] = {}
    for result in results:
        for row in result.series:
            rows.setdefault(row.name, row)
        for run in result.links:
            links.setdefault(run.link, run)
    told = [warning for r in results for warning in r.warnings]
    return first.model_copy(
        update={
            "command": "; ".join(dict.fromkeys(r.command for r in results)),
            "seconds": round(sum(r.seconds for r in results), 1),
            "interrupted": any(r.interrupted for r in results),
            "series": tuple(rows.values()),
            "links": tuple(links.values()),
            "peers": tuple(peer for r in results for peer in r.peers),
            "skipped": tuple(s for r in results for s in r.skipped if s.name not in {*rows, *links}),
            "warnings": tuple(dict.fromkeys(told)),
        }
    )


def load_result(path: Path) -> Result:
    """Reads a ``bench.json``.

    Raises:
        BadFile: there is none, or it is something else; says what to do.
    """
    try:
        text = path.read_text("utf-8")
        if (other := _other_schema(text)) is not None:
            told = f"another version of OS-1 wrote it (schema {other}, this one reads {SCHEMA})"
            raise BadFile(path, f"{told}; run os1 bench again")
        return Result.model_validate_json(text)
    except FileNotFoundError:
        raise BadFile(path, "no such file; os1 bench writes one") from None
    except UnicodeDecodeError:
        raise BadFile(path, "not a text file; give the bench.json that os1 bench wrote") from None
    except OSError as e:
        raise BadFile(
            path, f"cannot be read ({e.strerror}); give the bench.json that os1 bench wrote"
        ) from None
    except ValidationError as e:
        raise BadFile(path, f"not a bench.json ({_problem(e)}); run os1 bench again") from None


def _other_schema(text: str) -> object | None:
    """The schema that the file names, where it is not this version's."""
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        schema = found.get("schema", SCHEMA) if isinstance(found, dict) else SCHEMA
        return None if schema == SCHEMA else schema
    return None


def _problem(e: ValidationError) -> str:
    first = e.errors()[0]
    if first["type"] == "json_invalid":
        return "it is not JSON"
    if not first["loc"]:
        return "it is JSON of something else"
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return f"{where}: nothing of that name is in one"
    return f"{where}: {plain_problem(first['type'], first['msg'])}"
