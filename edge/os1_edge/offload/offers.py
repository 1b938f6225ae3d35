"""What a server says that it is: values, and what follows from them for a question. Pure."""

from __future__ import annotations

from dataclasses import dataclass

RESUME, PREFIX, NEWEST, PRIME = "resume", "answer_prefix", "latest_only", "prime"
SCHEMA, IMAGES = "json_schema", "images"
"""Names in HelloReply.features (edge.proto)."""


@dataclass(frozen=True, slots=True)
class Offers:
    """A HelloReply; a bound of 0 is none."""

    version: str = ""
    node: str = ""
    """Which of several servers this is."""
    features: frozenset[str] = frozenset()
    models: tuple[str, ...] = ()
    """Those that answer, best first."""
    request_bytes: int = 0
    """Of one question with its pictures."""
    turns: int = 0
    images: int = 0

    def lacks(self, *, schema: bool, images: int, turns: int, up_bytes: int) -> str:
        """Why the server cannot take such a question, whatever its load is; "": it can."""
        if schema and SCHEMA not in self.features:
            return "the server obeys no schema"
        if images and IMAGES not in self.features:
            return "the server does not look at pictures"
        for there, most, what in (
            (images, self.images, "pictures"),
            (turns, self.turns, "turns"),
            (up_bytes, self.request_bytes, "bytes"),
        ):
            if 0 < most < there:
                return f"the server takes {most} {what} at most, not {there}"
        return ""
