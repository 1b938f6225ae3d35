"""`os1 serve`: a skin over server.

Exit codes: 0 after a drain, 1 when it cannot start, 2 for wrong use.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from os1_cloud.events import Watcher
    from os1_cloud.ray.pool import Pool
    from os1_cloud.settings import Settings
    from os1_cloud.tracing import Spans

FILE = click.Path(path_type=Path, dir_okay=False)
MODEL = "qwen2.5-1.5b"
log = logging.getLogger(__name__)


@click.command()
@click.option("--config", type=FILE, help="Settings (TOML); options go before them.")
@click.option("--listen", help="HOST:PORT; port 0 takes a free one  [127.0.0.1:50051]")
@click.option("--model", help=f"A pulled language model  [{MODEL}]")
@click.option("--tokens", type=FILE, help="Who may call: a file that os1 token writes.")
@click.option("--tls-cert", type=FILE, help="Certificate chain (PEM).")
@click.option("--tls-key", type=FILE, help="Its private key (PEM).")
@click.option("--client-ca", type=FILE, help="Who signs clients' certificates (PEM); they then need one.")
@click.option("--metrics", help="HOST:PORT of a page for Prometheus.")
@click.option("--threads", type=click.IntRange(1), help="CPU threads  [all]")
@click.option("--grace", "grace_s", type=click.FloatRange(0), help="Seconds to drain  [10]")
@click.option(
    "--ray",
    is_flag=False,
    flag_value="auto",
    metavar="[ADDRESS]",
    help="Let a Ray cluster answer: auto (if left out) or HOST:PORT; a node of it must run on this machine.",
)
@click.option("--reflection", is_flag=True, default=None, help="Let clients list the services.")
def serve(config: Path | None, model: str | None, threads: int | None, **given: object) -> None:
    """Answer glasses over gRPC until SIGTERM. docs/operate.md tells more."""
    # Workers are started while gRPC runs; its fork handlers are known to hang then (grpc#22624).
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    import os1_models
    from os1_cloud.address import ServeError, binding_problem, parse_address
    from os1_cloud.auth import BadTokens
    from os1_cloud.engines import EngineError
    from os1_cloud.settings import ModelSettings, read_settings

    try:
        texts = {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}
        settings = read_settings(config, **texts)
        address = parse_address(settings.listen)
        credential = settings.tokens is not None or settings.client_ca is not None
        problem = binding_problem(address, settings.tls_cert is not None, credential)
        if problem is not None:
            raise ServeError(problem)
    except ServeError as e:
        raise click.UsageError(str(e)) from e
    if model is not None or not settings.models:
        chosen = ModelSettings(kind="llama", name=model or MODEL)
        if threads is not None:
            chosen = chosen.model_copy(update={"threads": threads})
        settings = settings.model_copy(update={"models": (chosen,)})
    try:
        asyncio.run(_run(settings, lambda: read_settings(config, **texts)))
    except (ServeError, BadTokens, EngineError, os1_models.ModelError) as e:
        click.echo(f"os1 serve: {e}", err=True)
        sys.exit(1)


async def _run(settings: Settings, again: Callable[[], Settings]) -> None:
    """Builds, serves, frees. `again` reads the settings anew."""
    from os1_cloud.address import Address, ServeError, parse_address
    from os1_cloud.build import build, credentials, served, wearer_limits
    from os1_cloud.metrics import Metrics, Page
    from os1_cloud.server import serve as run

    known = credentials(settings)  # first: they are wrong more often than the models
    pool = await _pool(settings)
    engines = pool.gathered() if pool is not None else build(settings)
    metrics, spans = Metrics(), _spans(settings)
    watchers: list[Watcher] = [*spans, *([pool.missed] if pool is not None else [])]
    parts, page = served(settings, known, engines, metrics, watchers), Page(metrics.registry)

    def ready(real: Address) -> None:
        how = "mutual TLS" if settings.client_ca else "TLS" if settings.tls_cert else "no TLS"
        who = "tokens" if settings.tokens else "no tokens"
        only = ", this machine only" if real.loopback else ""
        names = " ".join(engine.name for engine in engines.all())
        click.echo(f"os1 serve: ready on {real} ({how}, {who}{only}), model {names}")
        sys.stdout.flush()

    def reload() -> None:
        """On SIGHUP. Certificates need no telling; all else is for a restart."""
        if parts.tokens is not None:
            parts.tokens.reload()
        try:
            parts.answerer.wearers.limits = wearer_limits(settings, again())
            log.info("limits and tokens were read again")
        except ServeError as e:
            log.error("the settings read before stay: %s", e)

    try:
        await engines.start()
        if pool is not None:
            pool.follow(parts.places)
        if settings.metrics:
            await page.start(parse_address(settings.metrics))
        address = parse_address(settings.listen)
        await run(parts.server, address, ready, grace_s=settings.grace_s, reload=reload)
    finally:
        await page.close()
        if pool is not None:
            await pool.close()
        await engines.close()
        for exporter in spans:
            exporter.close()


async def _pool(settings: Settings) -> Pool | None:
    if not settings.ray:
        return None
    from os1_cloud.address import ServeError

    try:
        from os1_cloud.ray.pool import joined
    except ImportError as e:
        raise ServeError("--ray needs Ray Serve; run: pip install 'os1[ray]'") from e
    return await joined(settings)


def _spans(settings: Settings) -> list[Spans]:
    if not settings.spans:
        return []
    from os1_cloud.address import ServeError
    from os1_cloud.tracing import Spans

    try:
        return [Spans()]
    except ImportError as e:
        raise ServeError("spans need OpenTelemetry; run: pip install 'os1[otel]'") from e
