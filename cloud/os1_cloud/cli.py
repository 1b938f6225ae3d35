"""`os1 serve`: a skin over server.

Exit codes: 0 after a drain, 1 when it cannot start, 2 for wrong use.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import click

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option(
    "--listen", default="127.0.0.1:50051", show_default=True, help="HOST:PORT; port 0 takes a free one."
)
@click.option("--model", default="qwen2.5-1.5b", show_default=True, help="A pulled language model.")
@click.option("--tokens", "tokens_file", type=FILE, help="Who may call: lines of NAME and a token's SHA-256.")
@click.option("--tls-cert", type=FILE, help="Certificate chain (PEM).")
@click.option("--tls-key", type=FILE, help="Its private key (PEM).")
@click.option("--threads", type=click.IntRange(1), default=os.cpu_count() or 1, help="CPU threads [all].")
@click.option("--grace", type=click.FloatRange(0), default=10.0, show_default=True, help="Seconds to drain.")
def serve(
    listen: str,
    model: str,
    tokens_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    threads: int,
    grace: float,
) -> None:
    """Answer glasses over gRPC until SIGTERM. docs/operate.md tells more."""
    import os1_models
    from os1_cloud.auth import BadTokens, load_tokens
    from os1_cloud.engines import EngineError
    from os1_cloud.engines.llama import Llama
    from os1_cloud.server import Address, ServeError, binding_problem, parse_address, read_tls
    from os1_cloud.server import serve as run

    try:
        address = parse_address(listen)
    except ServeError as e:
        raise click.BadParameter(str(e), param_hint="--listen") from e
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    problem = binding_problem(address, tls_cert is not None, tokens_file is not None)
    if problem is not None:
        raise click.BadParameter(problem, param_hint="--listen")

    def ready(real: Address) -> None:
        who = "tokens" if tokens_file else "no tokens"
        how = "TLS" if tls_cert else "no TLS"
        only = ", this machine only" if address.loopback else ""
        click.echo(f"os1 serve: ready on {real} ({how}, {who}{only}), model {model}")
        sys.stdout.flush()

    try:
        tokens = load_tokens(tokens_file) if tokens_file else None
        tls = read_tls(tls_cert, tls_key) if tls_cert and tls_key else None
        engine = Llama(model, os1_models.path(model), threads)
        asyncio.run(run(engine, address, ready, tokens=tokens, tls=tls, grace_s=grace))
    except (ServeError, BadTokens, EngineError, os1_models.ModelError) as e:
        click.echo(f"os1 serve: {e}", err=True)
        sys.exit(1)
