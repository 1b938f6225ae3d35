"""`os1 recall`: what comes to mind for a question, with the reason for each. A skin."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import click

import os1_models
from os1_edge.config import load_config
from os1_edge.remember import rows
from os1_edge.remember.cli_common import Access, access, as_json, plain, put, say, time_of
from os1_edge.remember.embed import Embedder
from os1_edge.remember.recall import Hit, Recall, rules_of


@click.command("recall")
@click.argument("query")
@access
@as_json
@click.option("--limit", type=click.IntRange(0, 100), default=5, show_default=True, help="Memories at most.")
@click.option(
    "--associate",
    type=click.IntRange(0, 20),
    default=0,
    show_default=True,
    help="Memories more that are linked to them.",
)
@click.option("--now", help="Ask as if it were this local time (2026-03-02T08:30); default: now.")
@click.option("--name", default="", help="What others call the wearer.")
def recall(
    query: str, memory: Access, as_json: bool, limit: int, associate: int, now: str | None, name: str
) -> None:
    """What comes to mind for QUERY, the best first, with the reason for each."""
    asked = time_of(now) or rows.now()
    embedder = Embedder(os1_models.path("minilm-l6"), os1_models.path("minilm-l6", "tokenizer.json"))
    rules = replace(
        rules_of(load_config().remember),
        limit=limit,
        associated=associate,
        fitting=False,
        derived=True,
        tokens=100_000,
    )
    with memory.opened() as store:
        asking = Recall(store, embedder, rules, wearer_name=name)
        hits, word = asking.recall(query, asked), asking.word
        asking.close()
    if as_json:
        put({"query": query, "now": asked.isoformat(), "hits": [_as_json(hit) for hit in hits], "word": word})
        return
    for hit in hits:
        say(f"{hit.score:.3f}  {hit.time:%Y-%m-%d %H:%M}  {plain(hit.text)}")
        say(f"       {hit.kind}:{hit.ref_id}, {plain(hit.reason)}")
    if not hits:
        say("nothing comes to mind")
    if word:
        say(word)


def _as_json(hit: Hit) -> dict[str, str | float | datetime]:
    return {
        "id": f"{hit.kind}:{hit.ref_id}",
        "kind": hit.kind,
        "text": hit.text,
        "speaker": hit.speaker,
        "time": hit.time.isoformat(),
        "location": hit.location,
        "score": hit.score,
        "reason": hit.reason,
    }
