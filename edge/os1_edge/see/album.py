"""The few pictures that a vision model is shown: JPEGs without faces, in memory, gone when they have been
summarised.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import cv2
import numpy as np

from os1_edge.see.faces import shrink

MOST = 5
"""The paper's four in the prompt, and one that comes in while the first are being summarised."""


class Album:
    """Pictures by name, the newest `MOST`. Takes only what `FrameTaker.release` gave out."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._pictures: OrderedDict[str, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pictures)

    def put(self, key: str, jpeg: bytes) -> None:
        """Takes a picture; the oldest goes when there are too many."""
        self._pictures[key] = jpeg
        while len(self._pictures) > self._most:
            self._pictures.popitem(last=False)

    def drop(self, keys: Iterable[str]) -> None:
        """They have been summarised."""
        for key in keys:
            self._pictures.pop(key, None)

    def picture(self, key: str, scale: float = 1.0) -> bytes | None:
        """The JPEG of that name, its sides times `scale`; None where it is gone."""
        jpeg = self._pictures.get(key)
        if jpeg is None or scale >= 1.0:
            return jpeg
        whole = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
        if whole is None:  # it was made here: this cannot be
            return None
        small = shrink(np.asarray(whole, np.uint8), round(scale * max(whole.shape[:2])))
        return bytes(cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 85])[1].tobytes())
