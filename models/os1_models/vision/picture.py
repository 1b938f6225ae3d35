"""Is this a picture that may be decoded? Told from its header, before a byte of it is unpacked.

llama.cpp decodes whatever ``stb_image`` knows, and sound besides, in memory that the header asks for. A model
looks at two megapixels at most, so that more is a mistake or an attack.
"""

from __future__ import annotations

from os1_models.vision.terms import VisionError

MOST_PIXELS = 16_000_000
"""48 MB once decoded; the glasses' camera has 8 megapixels (OS-1 paper)."""
_PNG = b"\x89PNG\r\n\x1a\n"
_SIZED = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""JPEG markers of a frame header: SOF0 to SOF15, without DHT, JPG and DAC."""
_BARE = {0x01, *range(0xD0, 0xD9)}
"""JPEG markers without a length: TEM, RST0 to RST7, SOI."""


class BadPicture(VisionError):
    """Not a picture that the model can be shown."""


def picture_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels of a whole JPEG or PNG file.

    Raises:
        BadPicture: it is neither, was cut off, or is too big to be decoded.
    """
    if data.startswith(_PNG):
        size, end = _png_size(data), b"IEND"
    elif data.startswith(b"\xff\xd8"):
        size, end = _jpeg_size(data), b"\xff\xd9"
    else:
        raise BadPicture("a picture is neither JPEG nor PNG")
    if size is None or end not in data[-64:]:  # some cameras pad the file's end
        raise BadPicture("a picture is cut off")
    width, height = size
    if not width or not height:
        raise BadPicture("a picture is empty")
    if width * height > MOST_PIXELS:
        raise BadPicture(f"a picture of {width} x {height} is too big: {MOST_PIXELS:,} pixels at most")
    return width, height


def _png_size(data: bytes) -> tuple[int, int] | None:
    if len(data) < 24:
        return None
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # fill byte
            at += 1
        elif marker in _BARE:
            at += 2
        elif marker in _SIZED:
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        else:
            at += 2 + max(int.from_bytes(data[at + 2 : at + 4], "big"), 2)
    return None
