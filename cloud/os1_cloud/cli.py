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
@click.option("--threads", type=click.IntRange(1), default=os.cpu_count() or 1, help="CPU threads [all].")
@click.option("--grace", "grace_s", type=click.FloatRange(0), help="Seconds to drain  [10]")
@click.option("--reflection", is_flag=True, default=None, help="Let clients list the services.")
def serve(config: Path | None, model: str | None, threads: int, **given: object) -> None:
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
        chosen = ModelSettings(kind="llama", name=model or MODEL, threads=threads)
        settings = settings.model_copy(update={"models": (chosen,)})
    try:
        asyncio.run(_run(settings, lambda: read_settings(config, **texts)))
    except (ServeError, BadTokens, EngineError, os1_models.ModelError) as e:
        click.echo(f"os1 serve: {e}", err=True)
        sys.exit(1)


async def _run(settings: Settings, again: Callable[[], Settings]) -> None:
    """Builds, serves, frees. `again` reads the settings anew."""
    from os1_cloud.address import Address, ServeError, parse_address
    from os1_cloud.auth import TokenFile
    from os1_cloud.build import build
    from os1_cloud.core import UNBOUNDED, Answerer
    from os1_cloud.metrics import Metrics, Page
    from os1_cloud.server import Server
    from os1_cloud.server import serve as run
    from os1_cloud.speech import Ears, Mouth
    from os1_cloud.tls import read_tls
    from os1_cloud.wearers import WearerLimits

    tokens = TokenFile(settings.tokens, log.warning) if settings.tokens else None
    tls = None
    if settings.tls_cert is not None and settings.tls_key is not None:
        tls = read_tls(settings.tls_cert, settings.tls_key, settings.client_ca)
    known = tokens is not None or settings.client_ca is not None
    limits = WearerLimits(**settings.limits.model_dump()) if known else UNBOUNDED
    engines, metrics = build(settings), Metrics()
    spans = _spans(settings)
    answerer = Answerer(engines.language, queue=settings.queue, limits=limits, watchers=[metrics, *spans])
    metrics.watch(answerer, engines.workers)
    ears = Ears(engines.recognizer, answerer.wearers) if engines.recognizer is not None else None
    mouth = Mouth(engines.voice, answerer.wearers) if engines.voice is not None else None
    server = Server(
        answerer,
        tokens,
        tls,
        certificates=settings.client_ca is not None,
        ears=ears,
        mouth=mouth,
        node=settings.node,
        reflection=settings.reflection,
        watchers=[metrics],
        balancer_s=settings.balancer_s,
    )
    page = Page(metrics.registry)

    def reload() -> None:
        """On SIGHUP. Certificates need no telling; all else is for a restart."""
        if tokens is not None:
            tokens.reload()
        try:
            answerer.wearers.limits = WearerLimits(**again().limits.model_dump()) if known else UNBOUNDED
            log.info("limits and tokens were read again")
        except ServeError as e:
            log.error("the settings read before stay: %s", e)

    def ready(real: Address) -> None:
        how = "mutual TLS" if settings.client_ca else "TLS" if settings.tls_cert else "no TLS"
        who = "tokens" if settings.tokens else "no tokens"
        only = ", this machine only" if real.loopback else ""
        names = " ".join(engine.name for engine in engines.all())
        click.echo(f"os1 serve: ready on {real} ({how}, {who}{only}), model {names}")
        sys.stdout.flush()

    try:
        await engines.start()
        if settings.metrics:
            await page.start(parse_address(settings.metrics))
        await run(
            server,
            parse_address(settings.listen),
            ready,
            grace_s=settings.grace_s,
            reload=reload,
        )
    finally:
        await page.close()
        await engines.close()
        for exporter in spans:
            exporter.close()


def _spans(settings: Settings) -> list[Spans]:
    if not settings.spans:
        return []
    from os1_cloud.address import ServeError
    from os1_cloud.tracing import Spans

    try:
        return [Spans()]
    except ImportError as e:
        raise ServeError("spans need OpenTelemetry; run: pip install 'os1[otel]'") from e
