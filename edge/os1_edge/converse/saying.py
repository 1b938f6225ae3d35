"""From what the language model writes to what is spoken: clause by clause, edited, with what must be named at
the end of it, and never nothing."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, Protocol

from os1_edge.converse.editing import Editor
from os1_edge.converse.mention import Mention, unnamed
from os1_edge.converse.prompt import I_SEE, NOTED
from os1_edge.converse.reply import Asked
from os1_edge.offload.engine import EngineError


class Splitter(Protocol):
    """Cuts a text into clauses while it comes; ``speak.clauses.ClauseSplitter`` is one."""

    def add(self, text: str) -> list[str]:
        """Takes more text; the clauses that are now complete."""
        ...

    def finish(self) -> list[str]:
        """The text has ended; the clauses that are left."""
        ...


@dataclass(slots=True)
class Outcome:
    """How an answer came about, where it is not the language model's from end to end."""

    route: Literal["", "rule", "fallback"] = ""
    """Empty: the model's."""
    reason: str = ""
    error: EngineError | None = None
    """What the engine failed with."""


async def split(stream: AsyncGenerator[str, None], splitter: Splitter) -> AsyncGenerator[str, None]:
    """The clauses of a text that is still being written.

    Raises:
        EngineError: the engine gave out.
    """
    async with aclosing(stream):
        async for text in stream:
            for clause in splitter.add(text):
                yield clause
    for clause in splitter.finish():
        yield clause


_EVADES = re.compile(
    r"\b(?:I|we) (?:can't|cannot|can not|am unable to|am not able to|don't know how to) (?:help|assist)\b"
    r"|\b(?:not sure what you mean|provide more (?:context|information)|clarify your|any information about)\b"
    r"|\bI(?:'m| am) (?:sorry|afraid),?(?: but)? I (?:do not|don't|can't|cannot) (?:know|answer|tell)\b"
    r"|\bI(?:'m| am) (?:sorry|afraid),?(?: but)?[,.]?$|\bI apologi[sz]e,?(?: but)?,?$|\blanguage model\b",
    re.I,
)
"""How small models get out of an answer; a companion has a better word even where it has no help."""


def _enough(editor: Editor, lacking: Sequence[Mention]) -> bool:
    """Whether the model's part is over: what the reply lacks needs the last of its sentences."""
    ended = len(re.findall(r"[.!?…](?=\s|$)", editor.said))
    return bool(lacking) and ended >= max(1, editor.limits.sentences - 1)


async def sayable(
    asked: Asked, clauses: AsyncGenerator[str, None], editor: Editor, outcome: Outcome
) -> AsyncGenerator[str, None]:
    """The clauses of a reply that may be spoken; always at least one, whatever the engine does.

    Args:
        asked: what is answered.
        clauses: what the model writes; not asked for where a rule answers.
        editor: decides clause by clause.
        outcome: is told what became of it.
    """
    plan = asked.plan
    if plan.fixed is not None:
        outcome.route, outcome.reason = "rule", plan.reason
        yield plan.fixed
        if plan.closing:
            yield plan.closing
        return
    wrong = "the language engine said nothing"
    try:
        async with aclosing(clauses):
            async for clause in clauses:
                if _EVADES.search(clause):
                    wrong = "it evades"
                    break
                edit = editor.take(clause)
                if edit.kind == "say":
                    yield edit.text
                    if _enough(editor, unnamed(plan.mentions, editor.said)):
                        break
                    continue
                wrong = edit.reason
                if edit.kind != "leave off":
                    break
    except EngineError as e:
        outcome.error = e
        wrong = outcome.reason = "the language engine failed"
        outcome.route = "fallback"
    if not editor.said:
        outcome.route, outcome.reason = "fallback", wrong
    # "Good morning," whose rest may not be said: something ends the sentence that was begun.
    if (not editor.said or editor.said.endswith(",")) and (
        plan.fallback not in (NOTED, I_SEE) or not plan.mentions
    ):
        editor.said = f"{editor.said} {plan.fallback}".lstrip()
        yield plan.fallback
    for mention in unnamed(plan.mentions, editor.said):
        editor.said = f"{editor.said} {mention.sentence}".lstrip()
        yield mention.sentence
    if last := editor.last():
        yield last
