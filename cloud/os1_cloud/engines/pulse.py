"""Whether a server that answers for us is well: one cheap question, and what its answer means.

upstream and command import it. vLLM, llama-server and SGLang have a health page beside `/v1`. Of what has
none (llama-cpp-python's server, a gateway) any answer shows that it is there; while it starts it is asked for
its models too, which all of them list. Not later: llama-cpp-python's server breaks an answer off for that.
"""

from __future__ import annotations

from typing import Literal

from os1_cloud.engines.http import Endpoint, HttpError, status

LOOK_S = 3.0
"""For an answer: a page of some bytes, from this machine room."""
FRESH_S = 5.0
"""A server that said something to a question of ours so lately is not asked whether it is well."""
MUTE = 2
"""Answers that never came: one may be the question's fault."""
NO_PAGE = frozenset({404, 405, 501})
Look = int | Literal["unreachable", "silent"]
"""The status of the page, or why there is none."""


async def look(
    to: Endpoint, headers: list[tuple[str, str]], within_s: float = LOOK_S, *, starts: bool = False
) -> Look:
    """Asks a server for its health page.

    Args:
        to: with the path before `/chat/completions`.
        headers: sent with it.
        within_s: seconds that it may take.
        starts: whether it may not have loaded its model yet; where it has no such page, it is asked for its
            models too.
    """
    try:
        found = await status(to, to.path.removesuffix("/v1") + "/health", headers, within_s)
        if starts and found in NO_PAGE:
            found = await status(to, to.path + "/models", headers, within_s)
        return found
    except HttpError:
        return "unreachable"
    except TimeoutError:
        return "silent"


def ill(seen: Look, at_work: int = 0, mute: int = 0) -> str:
    """Why a server cannot answer now; "": nothing speaks against it.

    Args:
        seen: from `look`.
        at_work: questions of ours that it works on. A server that reads a long prompt may be slow to show a
            page; its answers have a bound of their own.
        mute: the last answers, in a row, in which it said nothing until they were given up.
    """
    if mute >= MUTE:
        return f"its last {mute} answers never came"
    match seen:
        case "unreachable":
            return "it cannot be reached"
        case "silent":
            return "" if at_work else f"it shows no page within {LOOK_S:.0f} s"
        case _ if seen >= 500 and seen not in NO_PAGE:
            return f"it says itself that it is not well (status {seen})"
        case _:
            return ""  # also where it wants a key for the page, or is asked too often: it is there
