"""What a worker process and its server say to each other: frames of a small JSON object and bytes.

    u32 length of the JSON, u32 length of the bytes (both little-endian), the JSON (UTF-8), the bytes

To a worker: ``{"op": "do", "id": N, ...}`` and ``{"op": "stop", "id": N}``. From it: once
``{"op": "ready", ...}`` or ``{"op": "failed", "why": ...}``, then for each ``do`` any number of
``{"op": "part", "id": N, ...}`` and one ``{"op": "end", "id": N, "error": KIND or ""}``. worker and child
import this.
"""

from __future__ import annotations

import json
import struct
from typing import Any

HEAD = struct.Struct("<II")
MOST = 64 * 1024 * 1024
"""Bytes of one frame: four pictures and a long dialogue are far below."""
Frame = tuple[dict[str, Any], bytes]


def pack(message: dict[str, Any], blob: bytes = b"") -> bytes:
    """One frame."""
    text = json.dumps(message).encode()
    return HEAD.pack(len(text), len(blob)) + text + blob


def lengths(head: bytes) -> tuple[int, int]:
    """The lengths of JSON and bytes in a frame's first eight bytes.

    Raises:
        ValueError: it cannot be a frame.
    """
    text, blob = HEAD.unpack(head)
    if text + blob > MOST:
        raise ValueError("a frame is longer than any can be")
    return text, blob
