"""What a chat prints: the exchange, and with ``--trace`` what it rests on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from os1_edge.app import TurnTrace
from os1_edge.chat.faculties import Call

LETTERS_A_TOKEN = 4
"""Of English, about."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """``text`` without control characters: what was written must not steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


FAILURES = {"OperationalError": "the memory cannot be written: make room on its disk, or end what holds it"}
"""What a turn's error means for who sits here, by its name; the name itself tells no more."""


def reply_line(trace: TurnTrace) -> str:
    """What the companion said."""
    if trace.failed is not None:
        why = FAILURES.get(trace.failed, trace.failed)
        return f"os-1  {plain(trace.reply)} (not kept: {why})" if trace.reply else f"os-1  (no answer: {why})"
    if not trace.reply:
        return "os-1  (says nothing)"
    return f"os-1  {'' if trace.heard else '(unasked) '}{plain(trace.reply)}"


def trace_lines(trace: TurnTrace, calls: Iterable[Call]) -> list[str]:
    """Where the reply was made and why, what was recalled, what the model was asked and answered."""
    lines = [f"      route     {trace.route}: {trace.route_reason}"]
    if trace.scene:
        lines.append(f"      scene     {plain(trace.scene)}")
    lines += [
        f"      recalled  {hit.score:.2f} {hit.kind} of {hit.time:%d %b %H:%M}: {plain(hit.text)}"
        for hit in trace.hits
    ]
    lines += [f"      {line}" for line in map(_of_call, calls)]
    timings = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in timings_of(trace).items())
    return [*lines, f"      timings   {timings or 'no model was asked'}"]


def _of_call(call: Call) -> str:
    first = "nothing came" if call.first_s is None else f"first text after {call.first_s:.2f} s"
    whole = "" if call.total_s is None else f", all after {call.total_s:.2f} s"
    size = (
        f"{call.messages} messages, {call.letters} letters (about {call.letters // LETTERS_A_TOKEN} tokens)"
    )
    return f"{call.task:<9} {size}; {first}{whole}\n                {plain(' '.join(call.answer.split()))}"


def timings_of(trace: TurnTrace) -> dict[str, float]:
    """Seconds by stage, as far as the turn had them."""
    stages = {
        "recall": trace.recall_s,
        "first token": trace.first_token_s,
        "first clause": trace.first_clause_s,
    }
    return {name: round(seconds, 4) for name, seconds in stages.items() if seconds is not None}


def record(trace: TurnTrace, calls: Iterable[Call] | None) -> dict[str, Any]:
    """The exchange for a program; ``calls`` only where they are wanted."""
    out: dict[str, Any] = {
        "heard": trace.heard,
        "reply": trace.reply,
        "route": trace.route,
        "reason": trace.route_reason,
        "scene": trace.scene,
        "recalled": [{"kind": hit.kind, "text": hit.text, "score": hit.score} for hit in trace.hits],
        "seconds": timings_of(trace),
        "failed": trace.failed,
    }
    if calls is not None:
        out["calls"] = [
            {
                "task": call.task,
                "messages": call.messages,
                "letters": call.letters,
                "first_s": call.first_s,
                "total_s": call.total_s,
                "answer": call.answer,
            }
            for call in calls
        ]
    return out
