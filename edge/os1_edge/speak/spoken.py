"""Text as it should be read aloud: without markup and emoji. Pure; a later stage deepens it."""

from __future__ import annotations

import re

_EMOJI = re.compile("[\U0001f000-\U0001faff☀-➿️‍]")
_MARKUP = re.compile(r"[*_`#>|~]+")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def spoken(text: str) -> str:
    """``text`` without Markdown marks and emoji; empty when nothing speakable is left."""
    text = _LINK.sub(r"\1", text)
    text = _MARKUP.sub("", _EMOJI.sub("", text))
    text = " ".join(text.split())
    return text if re.search(r"\w", text) else ""
