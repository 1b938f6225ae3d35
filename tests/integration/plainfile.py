"""The plain pages of an encrypted memory file, as whoever has the key could read them: for tests that search
what a deletion left behind. Decrypts page by page, so free pages and gaps within pages are there as well.

SQLCipher 4: pages of 4096 bytes, AES-256-CBC, the last 80 bytes of each hold its IV (16) and seal (64); the
first 16 bytes of the file are the salt. Frames of a write-ahead log are 24 bytes of header and a page.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
from pathlib import Path

import pytest

PAGE, RESERVED = 4096, 80


def plain_bytes(memory: Path, key: bytes) -> bytes:
    """All of the file and its write-ahead log, decrypted."""
    whole = memory.read_bytes()
    pages = [whole[at : at + PAGE] for at in range(0, len(whole), PAGE)]
    out = [_decrypted(page[16:] if number == 0 else page, key) for number, page in enumerate(pages)]
    log = memory.with_name(f"{memory.name}-wal")
    if log.exists():
        frames = log.read_bytes()[32:]
        for at in range(0, len(frames), PAGE + 24):
            head, page = frames[at : at + 24], frames[at + 24 : at + 24 + PAGE]
            first = int.from_bytes(head[:4], "big") == 1
            out.append(_decrypted(page[16:] if first else page, key))
    return b"".join(out)


def _decrypted(page: bytes, key: bytes) -> bytes:
    body, iv = page[:-RESERVED], page[-RESERVED : -RESERVED + 16]
    crypto = _libcrypto()
    for name in ("EVP_CIPHER_CTX_new", "EVP_aes_256_cbc"):
        getattr(crypto, name).restype = ctypes.c_void_p
    context = ctypes.c_void_p(crypto.EVP_CIPHER_CTX_new())
    out, length = ctypes.create_string_buffer(len(body) + 32), ctypes.c_int()
    cipher = ctypes.c_void_p(crypto.EVP_aes_256_cbc())
    assert crypto.EVP_DecryptInit_ex(context, cipher, None, key, iv) == 1
    crypto.EVP_CIPHER_CTX_set_padding(context, 0)
    assert crypto.EVP_DecryptUpdate(context, out, ctypes.byref(length), body, len(body)) == 1
    crypto.EVP_CIPHER_CTX_free(context)
    return out.raw[: length.value]


@functools.cache
def _libcrypto() -> ctypes.CDLL:
    found = ctypes.util.find_library("crypto")
    if not found:
        pytest.skip("no libcrypto here to decrypt pages with")
    return ctypes.CDLL(found)
