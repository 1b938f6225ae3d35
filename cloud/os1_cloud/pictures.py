"""Pictures that were sent a short while ago, so that a wearer need not send them again.

core imports it. Kept in memory only.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from os1_cloud.admission import Refused
from os1_cloud.events import Picture

BYTES = 64 * 1024 * 1024
"""Of all wearers together: some hundred pictures as glasses send them."""
EACH = 8
"""Of one wearer: a dialogue's pictures (the Furhat paper keeps four)."""
TTL_S = 120.0
"""A scene is another one after two minutes."""


class Pictures:
    """By wearer and hash; one wearer's hash never finds another's picture."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, bytes], tuple[bytes, float]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def resolve(self, who: str, pictures: tuple[Picture, ...], now: float) -> tuple[bytes, ...]:
        """The bytes of all `pictures`; those that came with their hash are kept.

        Raises:
            Refused: `need_image` or `bad_image`.
        """
        self.forget(now)
        return tuple(self._one(who, picture, now) for picture in pictures)

    def forget(self, now: float) -> None:
        """Drops what is too old."""
        while self._kept and next(iter(self._kept.values()))[1] < now - TTL_S:
            self._drop(next(iter(self._kept)))

    def _one(self, who: str, picture: Picture, now: float) -> bytes:
        key = (who, picture.sha256)
        if picture.data:
            if picture.sha256:
                if hashlib.sha256(picture.data).digest() != picture.sha256:
                    raise Refused("bad_image", "a picture's hash is not that of its bytes")
                self._keep(key, picture.data, now)
            return picture.data
        if key not in self._kept:
            raise Refused("need_image", "a picture named by its hash is not here; send its bytes")
        data = self._kept[key][0]
        self._keep(key, data, now)
        return data

    def _keep(self, key: tuple[str, bytes], data: bytes, now: float) -> None:
        if key in self._kept:
            self._drop(key)
        self._kept[key] = (data, now)
        self._bytes += len(data)
        mine = [k for k in self._kept if k[0] == key[0]]
        for old in mine[: max(0, len(mine) - EACH)]:
            self._drop(old)
        while self._bytes > BYTES and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, bytes]) -> None:
        self._bytes -= len(self._kept.pop(key)[0])
