"""What an operator sets: one TOML file, read by `os1 serve --config`.

cli imports it. docs/operate.md explains each key.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from os1_cloud.address import ServeError, parse_address


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReplicaSettings(_Table):
    """How many replicas a model has in a Ray cluster, and what each takes of its machine."""

    min: int = Field(default=1, ge=1)
    max: int = Field(default=1, ge=1)
    cpus: float = Field(default=1.0, ge=0)
    gpus: float = Field(default=0.0, ge=0)
    resources: dict[str, float] = {}
    """Of the operator's own naming, e.g. {"vision": 1}: only machines that have them take it."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.max < self.min:
            raise ValueError("replicas.max is less than replicas.min")
        return self


class ModelSettings(_Table):
    """One engine."""

    kind: Literal["llama", "vision", "whisper", "piper", "upstream"]
    name: str = Field(min_length=1, max_length=64)
    """What clients know it by; the model of that name is taken from the model store."""
    path: Path | None = None
    """A file instead of one of the model store."""
    projector: Path | None = None
    """Of a vision model given by `path`."""
    threads: int = Field(default=os.cpu_count() or 1, ge=1)
    context: int = Field(default=4096, ge=256)
    gpu_layers: int = 0
    recycle_jobs: int = Field(default=2000, ge=0)
    recycle_growth_mb: int = Field(default=2048, ge=0)
    url: str = ""
    """Of an upstream server, e.g. "http://gpu:8000/v1"; with `command` "{port}" in it, or none."""
    command: tuple[str, ...] = ()
    """Starts the upstream server on this machine; "{port}" in it is a free port of loopback."""
    start_s: float = Field(default=600.0, gt=0)
    """For an upstream server to be ready."""
    model: str = ""
    """Its name there; "": `name`."""
    key_env: str = ""
    """The environment variable that holds its key."""
    slots: int = Field(default=16, ge=1, le=1024)
    """Prompts that an upstream server works on at a time."""
    vision: bool = False
    """Whether an upstream model looks at pictures."""
    replicas: ReplicaSettings = ReplicaSettings()
    """For `ray` only."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.command and self.kind != "upstream":
            raise ValueError("command is for a model of kind upstream")
        if self.command and not any("{port}" in part for part in self.command):
            raise ValueError('command needs "{port}" where the server takes the port that it is to listen on')
        if self.command and self.url and "{port}" not in self.url:
            raise ValueError('url needs "{port}", as command has, or is left out')
        if self.kind == "upstream" and not (self.url or self.command):
            raise ValueError("a model of kind upstream needs its url, or the command that starts it")
        return self


class LimitSettings(_Table):
    """Bounds of one wearer; 0: none."""

    calls: int = Field(default=4, ge=0)
    asks_per_minute: int = Field(default=120, ge=0)
    asks_per_day: int = Field(default=0, ge=0)


class Settings(_Table):
    """The whole file."""

    listen: str = "127.0.0.1:50051"
    metrics: str = ""
    """HOST:PORT of Prometheus' page; "": none."""
    node: str = ""
    """What this server calls itself; "": its host name."""
    tokens: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    grace_s: float = Field(default=10.0, ge=0)
    balancer_s: float = Field(default=0.0, ge=0)
    """Between NOT_SERVING and the refusal of new questions."""
    reflection: bool = False
    spans: bool = False
    """OpenTelemetry, extra `otel`."""
    ray: str = ""
    """The Ray cluster that answers, "auto" or HOST:PORT; "": this process answers by itself."""
    queue: int | None = Field(default=None, ge=0)
    """Questions that may wait for each engine; none: four for each place."""
    limits: LimitSettings = LimitSettings()
    models: tuple[ModelSettings, ...] = ()

    @field_validator("ray")
    @classmethod
    def _joins(cls, ray: str) -> str:
        # Ray takes more: "local" would be a cluster of this process alone, "ray://" one that is not joined.
        if ray not in ("", "auto"):
            try:
                parse_address(ray)
            except ServeError:
                raise ValueError(f'{ray!r} is no cluster; write "auto" or HOST:PORT') from None
        return ray

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = [m.name for m in self.models]
        if len(set(names)) != len(names):
            raise ValueError("two models have the same name")
        for kind in ("whisper", "piper"):
            if sum(m.kind == kind for m in self.models) > 1:
                raise ValueError(f"one model of kind {kind} at most")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert (--tls-cert) and tls_key (--tls-key) belong together")
        if self.client_ca is not None and self.tls_cert is None:
            raise ValueError("client_ca (--client-ca) needs tls_cert and tls_key")
        return self


def read_settings(path: Path | None, **given: object) -> Settings:
    """The file's settings, with what was `given` on the command line in its place (None: was not).

    Raises:
        ServeError: the file cannot be read or says something that cannot be.
    """
    found: dict[str, object] = {}
    if path is not None:
        try:
            found = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
            raise ServeError(f"{path} cannot be read: {e}") from e
    found |= {key: value for key, value in given.items() if value is not None}
    try:
        return Settings.model_validate(found)
    except ValidationError as e:
        where = f"{path}: " if path is not None else ""
        first = e.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ServeError(f"{where}{place + ': ' if place else ''}{first['msg']}") from e
