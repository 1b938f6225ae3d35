"""The journal in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from os1_edge.config import Offload
from os1_edge.offload.journal import Journal
from os1_edge.offload.taken import Taken

WHERE = {"local": "on the device", "cloud": "by the server", "both": "by the server, then on the device"}
"""Sides in words."""


def sentences(settings: Offload, journal: Journal) -> Iterator[str]:
    """What was decided lately and on what grounds, a line each."""
    yield _rule(settings)
    if journal.status:
        yield from _status(journal.status)
        yield from _totals(journal.status.get("totals", {}))
    for taken in journal.taken:
        yield _decision(taken)


def _rule(settings: Offload) -> str:
    if settings.server is None:
        return "No offload server is set: everything is answered on the device."
    if settings.policy == "prefer-private":
        return f"The server {settings.server} is set, but nothing leaves the device (prefer-private)."
    stays = [*settings.local_only, *([] if settings.pictures else ["whatever shows pictures"])]
    kept = f" {', '.join(stays)} stay{'s' if len(stays) == 1 else ''} on the device." if stays else ""
    return (
        f"The server {settings.server} is asked by the policy {settings.policy}; a reply's first word is due "
        f"after {settings.first_token_s:g} s.{kept}"
    )


def _status(status: dict[str, Any]) -> Iterator[str]:
    costs = ", it costs by the byte" if status.get("metered") else ""
    yield f"The link is {status.get('link')} ({status.get('why')}){costs}."
    if status.get("breaker_open"):
        yield "The server failed too often; a probe has to succeed before it is asked again."
    if server := status.get("server"):
        node, version, *models = server
        yield f"The server {node or 'there'} has version {version} and answers with {', '.join(models)}."
    if (rtt := status.get("rtt_s")) is not None:
        deviation, up = status.get("rtt_deviation_s", 0.0), status.get("uplink_bytes_s", 0)
        yield (
            f"A round trip takes {rtt * 1000:.0f} ms, give or take {deviation * 1000:.0f}; "
            f"{up / 1000:,.0f} kB go up in a second."
        )
    for kind, (middle, high, count) in status.get("first_text_s", {}).items():
        yield f"The server thinks {middle:.2f} s ({kind}), seldom over {high:.2f} s; {count} answers seen."


def _totals(totals: dict[str, Any]) -> Iterator[str]:
    for task, sides in totals.get("answered", {}).items():
        made = ", ".join(f"{count} {WHERE.get(side, 'not at all')}" for side, count in sides.items())
        late = sum(totals.get("late", {}).get(task, {}).values())
        yield f"Since {totals['since'][:19].replace('T', ' ')}, {task}: answered {made}; {late} came late."
    if both := totals.get("both_at_work"):
        first = " and ".join(f"{count} times {WHERE.get(side, 'nobody')}" for side, count in both.items())
        yield f"Both sides were at work for {sum(both.values())}; the first word was said {first}."


def _decision(taken: Taken) -> str:
    made = f"answered {WHERE[taken.answered]}" if taken.answered in WHERE else "not answered"
    first = f", first word after {taken.first_s:.2f} s" if taken.first_s is not None else ""
    due = f"due {taken.within_s:.2f} s"
    local = f"the device's own by {taken.local_s:.2f} s" if taken.local_s is not None else "not by the device"
    cloud = f", the server's by {taken.cloud_s:.2f} s" if taken.cloud_s is not None else ""
    more = "".join(
        f"; {words}"
        for words in (
            taken.outcome,
            "both sides were at work" if taken.both else "",
            f"picture {taken.picture}" if taken.picture else "",
        )
        if words
    )
    return (
        f"{taken.at[:19].replace('T', ' ')} {taken.task} ({taken.link}): {made}{first} "
        f"({due}; {local}{cloud}), because {taken.why}{more}."
    )
