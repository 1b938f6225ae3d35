"""Still images and video files as BGR arrays: bounded, upright, and refused with one clear line when broken.

The size is read from the file's own header before anything is decoded, so that a small file that claims a
huge picture costs no memory. Formats: JPEG, PNG, WebP and BMP (what cameras and screens write).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from os1_edge.events import Image

Format = Literal["jpeg", "png", "webp", "bmp"]

MAX_PIXELS = 50_000_000
"""50 MP decode to 150 MB; no glasses camera is near it."""
STRIP = 64
"""Rows that are converted at a time."""
MAX_BYTES = 128 * 1024 * 1024
"""No picture of 50 MP needs more; guards against being pointed at a film or a disk image."""


class UnreadableImage(Exception):
    """A file that cannot be shown as a picture; `str()` is one line for the wearer or the log."""

    def __init__(self, path: Path | str, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class _BadHeader(Exception):
    """Why the header cannot be used, without the path."""


def load_image(path: Path | str) -> Image:
    """Read one picture upright (EXIF rotation applied) as uint8 BGR of shape (height, width, 3).

    Grey, 16-bit and CMYK pictures are converted; transparent pixels are laid over white.
    Raises `UnreadableImage` for a file that is missing, empty, cut short, no picture, or above `MAX_PIXELS`.
    """
    path = Path(path)
    return decode_image(_read(path), path)


def decode_image(data: bytes, name: Path | str = "picture") -> Image:
    """The same of an encoded picture that is no file; ``name`` stands in the error."""
    try:
        form, width, height = image_size(data)
        if width == 0 or height == 0:
            raise _BadHeader("has no pixels")
        if width * height > MAX_PIXELS:
            limit = MAX_PIXELS // 1_000_000
            raise _BadHeader(f"too large: {width}x{height} pixels, more than {limit} megapixels")
        if not is_complete(data, form):
            raise _BadHeader(f"cut short: the {form.upper()} data ends before the picture does")
        return _decode(data, alpha=has_alpha(data, form))
    except _BadHeader as error:
        raise UnreadableImage(name, str(error)) from None


def iter_video(path: Path | str, every_s: float) -> Iterator[tuple[float, Image]]:
    """Yield `(seconds from the start, frame)`: the first frame, then one every `every_s` seconds or later.

    Frames between are skipped without being decoded to pixels. Raises `ValueError` for `every_s` <= 0 and
    `UnreadableImage` for a file that is missing, no video, or above `MAX_PIXELS` a frame.
    """
    if not every_s > 0:
        raise ValueError(f"every_s must be above 0 seconds, not {every_s}")
    path = Path(path)
    if not path.is_file():
        raise UnreadableImage(path, "no such file")
    capture = cv2.VideoCapture(str(path))
    try:
        size = capture.get(cv2.CAP_PROP_FRAME_WIDTH) * capture.get(cv2.CAP_PROP_FRAME_HEIGHT)
        if not capture.isOpened() or size <= 0:
            raise UnreadableImage(path, "not a video that can be read")
        if size > MAX_PIXELS:
            raise UnreadableImage(path, f"too large: more than {MAX_PIXELS // 1_000_000} megapixels a frame")
        yield from _sampled(capture, every_s)
    finally:
        capture.release()


def _sampled(capture: cv2.VideoCapture, every_s: float) -> Iterator[tuple[float, Image]]:
    rate = capture.get(cv2.CAP_PROP_FPS)
    index, due = 0, 0.0
    while capture.grab():
        # A container without frame times says 0 throughout: then the frame count and the rate tell the time.
        stamp = capture.get(cv2.CAP_PROP_POS_MSEC) / 1000.0
        at_s = index / rate if stamp <= 0.0 and rate > 0 else stamp
        index += 1
        if at_s + 1e-6 < due:
            continue
        good, frame = capture.retrieve()
        if good:
            due = at_s + every_s
            yield at_s, _as_bgr(frame)


def image_size(data: bytes) -> tuple[Format, int, int]:
    """(format, width, height) from the header alone, before rotation; raises on a header that is none."""
    try:
        if data[:3] == b"\xff\xd8\xff":
            return ("jpeg", *_jpeg_size(data))
        if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR":
            return "png", _number(data, 16, 4), _number(data, 20, 4)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return ("webp", *_webp_size(data))
        if data[:2] == b"BM" and _number(data, 14, 4, "little") >= 40:
            return "bmp", _number(data, 18, 4, "little"), abs(_number(data, 22, 4, "little", signed=True))
    except IndexError:
        raise _BadHeader("cut short: the header is incomplete") from None
    raise _BadHeader("not a JPEG, PNG, WebP or BMP picture")


def is_complete(data: bytes, form: Format) -> bool:
    """Does the data reach the picture's own end mark? Bytes after it (a motion photo's film) are fine."""
    if form == "jpeg":
        return data.find(b"\xff\xd9", _jpeg_scan(data)) >= 0
    if form == "png":
        return b"IEND" in data[-4096:]
    if form == "webp":
        return len(data) >= _number(data, 4, 4, "little") + 8
    # BMP: many writers leave the size field at 0, and the decoder itself refuses one that is cut short.
    return len(data) >= _number(data, 2, 4, "little")


def has_alpha(data: bytes, form: Format) -> bool:
    """Does the header announce transparency (PNG colour types 4 and 6 or tRNS, extended WebP)?"""
    if form == "png":
        return data[25] in (4, 6) or b"tRNS" in data[:4096]
    if form == "webp":
        return data[12:16] == b"VP8L" or (data[12:16] == b"VP8X" and bool(data[20] & 0x10))
    return False


def _read(path: Path) -> bytes:
    try:
        if not path.exists():
            raise UnreadableImage(path, "no such file")
        if not path.is_file():
            raise UnreadableImage(path, "not a file")
        size = path.stat().st_size
        if size == 0:
            raise UnreadableImage(path, "empty file")
        if size > MAX_BYTES:
            raise UnreadableImage(path, f"too large: {size} bytes, more than {MAX_BYTES}")
        return path.read_bytes()
    except OSError as error:
        raise UnreadableImage(path, error.strerror or "cannot be read") from None


def _decode(data: bytes, alpha: bool) -> Image:
    # IMREAD_COLOR: 8 bits, three channels, EXIF rotation applied; IMREAD_UNCHANGED keeps the alpha channel.
    flags = cv2.IMREAD_UNCHANGED if alpha else cv2.IMREAD_COLOR
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error:
        pixels = None
    if pixels is None:
        raise _BadHeader("damaged: the picture cannot be decoded")
    return _as_bgr(pixels)


def _as_bgr(pixels: NDArray[Any]) -> Image:
    """Any decoded picture (1, 3 or 4 channels, 8 or 16 bits) as 8-bit BGR; alpha is laid over white."""
    if pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] == 3:
        return np.ascontiguousarray(pixels, np.uint8)
    made = np.empty((*pixels.shape[:2], 3), np.uint8)
    # In strips: blending takes several times the room of the picture itself.
    for top in range(0, len(pixels), STRIP):
        made[top : top + STRIP] = _strip_as_bgr(pixels[top : top + STRIP])
    return made


def _strip_as_bgr(pixels: NDArray[Any]) -> NDArray[Any]:
    if pixels.dtype == np.uint16:
        pixels = pixels >> 8
    pixels = pixels.astype(np.uint8, copy=False)
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        return np.repeat(pixels.reshape(*pixels.shape[:2], 1), 3, axis=2)
    if pixels.shape[2] == 2:
        pixels = np.concatenate([np.repeat(pixels[:, :, :1], 3, axis=2), pixels[:, :, 1:]], axis=2)
    if pixels.shape[2] == 4:
        cover = pixels[:, :, 3:].astype(np.float32) / 255.0
        blend = pixels[:, :, :3] * cover + 255.0 * (1.0 - cover)
        return np.asarray(np.rint(blend))
    return pixels


def _number(
    data: bytes, at: int, size: int, order: Literal["big", "little"] = "big", signed: bool = False
) -> int:
    if at + size > len(data):
        raise IndexError(at)
    return int.from_bytes(data[at : at + size], order, signed=signed)


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """(marker, offset of its length field) up to and with the first start of scan."""
    at = 2
    while True:
        if data[at] != 0xFF:
            raise _BadHeader("damaged: the JPEG header is broken")
        while data[at] == 0xFF:  # any number of fill bytes
            at += 1
        marker = data[at]
        at += 1
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:  # stand-alone marks without a length
            continue
        yield marker, at
        if marker == 0xDA:
            return
        at += max(2, _number(data, at, 2))


def _jpeg_size(data: bytes) -> tuple[int, int]:
    for marker, at in _jpeg_segments(data):
        # Start-of-frame marks are C0..CF but for the Huffman (C4), reserved (C8) and arithmetic (CC) tables.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _number(data, at + 5, 2), _number(data, at + 3, 2)
    raise _BadHeader("damaged: the JPEG header names no size")


def _jpeg_scan(data: bytes) -> int:
    """Offset of the first start of scan: after it FF D9 is the picture's end, not a thumbnail's."""
    try:
        return next(at for marker, at in _jpeg_segments(data) if marker == 0xDA)
    except (IndexError, StopIteration):
        return len(data)


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8 ":
        return _number(data, 26, 2, "little") & 0x3FFF, _number(data, 28, 2, "little") & 0x3FFF
    if kind == b"VP8L":
        bits = _number(data, 21, 4, "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return _number(data, 24, 3, "little") + 1, _number(data, 27, 3, "little") + 1
    raise _BadHeader("damaged: the WebP header names no picture")
