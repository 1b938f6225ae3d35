"""What leaves the device: rows sealed with the wearer's own key, names that tell nothing, vectors turned.

All keys come from one secret of 32 bytes by HKDF-SHA256 (RFC 5869), salted with the wearer's name. A row is
AES-256-GCM with a random nonce; wearer, row name and shelf are its associated data, so that no row can be
given in place of another. Its length is rounded up, so that it tells little of the words.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from functools import lru_cache

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.vectors import Vector

SECRET_BYTES = 32

_NONCE = 12
"""Bytes; random. NIST SP 800-38D allows 2^32 seals under one key so: a million a year for 4,000 years."""

_PAD = 256
"""Sealed lengths are multiples of this: most turns then have one of two lengths."""

_ID = 16
"""Bytes of a row's name on the server, and of its digest."""


class NotSealed(Exception):
    """What the server gave was not sealed by this wearer for this row: changed, exchanged, or another's."""


class Seal:
    """Seals one wearer's rows and opens them again. Pure but for the random nonces."""

    def __init__(self, secret: bytes, wearer: str, *, turned: bool = True) -> None:
        """
        Args:
            secret: 32 bytes, known to the wearer's devices only.
            wearer: any text that names the wearer to the operator.
            turned: whether vectors leave the device turned by a secret rotation.
        """
        if len(secret) != SECRET_BYTES:
            raise ValueError(f"a secret of {SECRET_BYTES} bytes is needed, not {len(secret)}")
        self._salt = hashlib.sha256(wearer.encode(errors="surrogatepass")).digest()
        self._secret = secret
        self._box = AESGCM(self._key("rows"))
        self._names = self._key("names")
        self._digests = self._key("digests")
        self._turn = rotation(self._key("vectors")) if turned else None

    def row_id(self, name: str) -> bytes:
        """What the server calls the row ``name``, 16 bytes; without the key nobody can tell which it is."""
        return hmac.digest(self._names, name.encode(), "sha256")[:_ID]

    def digest(self, content: bytes) -> bytes:
        """16 bytes that only a holder of the key can make of ``content``."""
        return hmac.digest(self._digests, content, "sha256")[:_ID]

    def seal(self, row_id: bytes, shelf: int, content: bytes) -> bytes:
        """``content`` so that only the key opens it, and only as this row on this shelf."""
        nonce = secrets.token_bytes(_NONCE)
        framed = struct.pack(">I", len(content)) + content
        framed += bytes(-len(framed) % _PAD)
        return nonce + self._box.encrypt(nonce, framed, self._bound(row_id, shelf))

    def open(self, row_id: bytes, shelf: int, sealed: bytes) -> bytes:
        """What ``seal`` sealed for this row.

        Raises:
            NotSealed: it was not.
        """
        try:
            framed = self._box.decrypt(sealed[:_NONCE], sealed[_NONCE:], self._bound(row_id, shelf))
        except (InvalidTag, ValueError, struct.error):  # the last: a shelf that there is none of
            raise NotSealed("a row on the server was not sealed by this memory; it is not used") from None
        (length,) = struct.unpack(">I", framed[:4])
        return framed[4 : 4 + length]

    def leaving(self, vector: Vector) -> Vector:
        """``vector`` as the server sees it, shape (384,), float32: the same cosines, another basis."""
        return vector if self._turn is None else np.asarray(self._turn @ vector)

    def _bound(self, row_id: bytes, shelf: int) -> bytes:
        return self._salt + row_id + struct.pack(">b", shelf)

    def _key(self, purpose: str) -> bytes:
        info = f"os1 hosted memory 1: {purpose}".encode()
        return HKDF(SHA256(), length=32, salt=self._salt, info=info).derive(self._secret)


@lru_cache(4)  # it takes a moment, and search and courier need the same
def rotation(key: bytes) -> NDArray[np.float32]:
    """An orthogonal matrix, shape (384, 384), that follows from ``key``: the same on every machine.

    Normal deviates (Box-Muller over SHAKE-256), orthogonalised, the signs of R's diagonal made positive: one
    drawn evenly from all rotations and reflections (Mezzadri, 2007).
    """
    n = DIMENSIONS * DIMENSIONS
    raw = np.frombuffer(hashlib.shake_256(key).digest(16 * n), "<u8").reshape(2, n)
    first, second = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    normal = np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)
    q, r = np.linalg.qr(normal.reshape(DIMENSIONS, DIMENSIONS))
    return (q * np.sign(np.diag(r))).astype(np.float32)
