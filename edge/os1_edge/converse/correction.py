"""What the wearer puts right in the next breath: "No, she comes on Saturday." Pure.

The correction alone does not say who comes, and what it corrects still names Friday; a small model takes the
latter. So the day, the time or the number is put into what was said before, for as long as both stand in the
running conversation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from os1_edge.converse.question import kind_of
from os1_edge.remember.wording import MONTH, WEEKDAY

_CORRECTS = re.compile(
    r"^\W*(?:oh|wait|sorry)?\W*(?:no|nope|actually|sorry|wait|i meant?|correction|that's wrong|not)\b", re.I
)

_VALUES = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\b(?:{WEEKDAY}|tomorrow|today)\b",
        rf"\b(?:{MONTH})\b",
        r"\b(?:\d+(?:[:.,]\d+)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon)\b",
    )
)
"""Days, months, numbers and times: one may stand for another of its kind."""


def _put_right(told: str, by: str) -> str | None:
    """``told`` with the value that ``by`` names; ``None`` where they have none in common."""
    for value in _VALUES:
        old = value.findall(told)
        new = [one for one in value.findall(by) if one.casefold() not in told.casefold()]
        if len(old) == 1 and len(new) == 1:
            return value.sub(new[0], told)
    return None


def corrections(said: Sequence[str]) -> dict[str, str]:
    """What of ``said`` (the wearer's words in a conversation, oldest first) was put right later, as it should
    have been; what put it right is there as an empty text."""
    out: dict[str, str] = {}
    for at, by in enumerate(said):
        if not _CORRECTS.match(by) or kind_of(by) != "statement":
            continue
        for told in reversed(said[:at]):
            if kind_of(told) == "statement" and (now := _put_right(out.get(told) or told, by)) is not None:
                out[told], out[by] = now, ""
                break
    return out
