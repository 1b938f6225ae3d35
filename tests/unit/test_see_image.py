"""Pictures and videos from glasses, phone or folder: upright and bounded, or refused in one clear line."""

import base64
import struct
import tracemalloc
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest

from os1_edge.see import image as see_image
from os1_edge.see.image import UnreadableImage, image_size, iter_video, load_image

CMYK_JPEG = base64.b64decode(
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAoHB4jHhkoIyEjLSsoMDxkQTw3Nzx7WF1JZJGAmZaPgIyKoLTmw6Cq2q2KjMj/y9ru"
    "9f///5vB////+v/m/f/4/8AAFAgACAAQBEMRAE0RAFkRAEsRAP/EABUAAQEAAAAAAAAAAAAAAAAAAAAF/8QAFBABAAAAAAAA"
    "AAAAAAAAAAAAAP/aAA4EQwBNAFkASwAAPwCyioqyAP/Z"
)
"""16 x 8 pixels without cyan or black ink: red."""


def picture(height: int = 40, width: int = 60) -> np.ndarray:
    """Left half blue, right half red, as BGR."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2, 0] = 255
    pixels[:, width // 2 :, 2] = 255
    return pixels


def encoded(pixels: np.ndarray, suffix: str) -> bytes:
    done, data = cv2.imencode(suffix, pixels)
    assert done
    return data.tobytes()


def with_orientation(jpeg: bytes, orientation: int) -> bytes:
    """The JPEG with an EXIF block that holds only the orientation (tag 0x0112)."""
    tiff = b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
    body = b"Exif\0\0" + tiff
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def png_claiming(width: int, height: int) -> bytes:
    """A few bytes of PNG that claim to be this large."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    end = b"IEND"
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + end + struct.pack(">I", zlib.crc32(end))


def refusal(path: Path) -> str:
    with pytest.raises(UnreadableImage) as caught:
        load_image(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.path == path
    return caught.value.reason


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".bmp"])
def test_a_plain_picture_comes_as_bgr_bytes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plain{suffix}"
    path.write_bytes(encoded(picture(), suffix))
    pixels = load_image(path)
    assert pixels.shape == (40, 60, 3)
    assert pixels.dtype == np.uint8
    assert pixels[20, 10, 0] > 200  # blue on the left
    assert pixels[20, 50, 2] > 200  # red on the right


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".bmp"])
def test_the_header_alone_tells_the_size(suffix: str) -> None:
    assert image_size(encoded(picture(), suffix))[1:] == (60, 40)


def test_a_phone_held_upright_gives_an_upright_picture(tmp_path: Path) -> None:
    path = tmp_path / "turned.jpg"
    path.write_bytes(with_orientation(encoded(picture(), ".jpg"), 6))  # 6: turn a quarter clockwise to see it
    pixels = load_image(path)
    assert pixels.shape == (60, 40, 3)
    assert pixels[10, 20, 0] > 200  # what was left is now at the top


def test_a_grey_picture_gets_three_channels(tmp_path: Path) -> None:
    path = tmp_path / "grey.png"
    path.write_bytes(encoded(np.full((30, 30), 77, np.uint8), ".png"))
    assert load_image(path).tolist() == np.full((30, 30, 3), 77).tolist()


def test_a_16_bit_picture_keeps_its_brightness_in_8_bits(tmp_path: Path) -> None:
    path = tmp_path / "deep.png"
    path.write_bytes(encoded(np.full((30, 30, 3), 0x8000, np.uint16), ".png"))
    pixels = load_image(path)
    assert pixels.dtype == np.uint8
    assert abs(int(pixels[0, 0, 0]) - 128) <= 1


@pytest.mark.parametrize("depth", [np.uint8, np.uint16])
def test_what_is_transparent_is_white_not_what_hides_beneath(tmp_path: Path, depth: type) -> None:
    top = np.iinfo(depth).max
    pixels = np.zeros((30, 30, 4), depth)
    pixels[:, 15:, 3] = top  # left: invisible black, right: solid black
    path = tmp_path / "clear.png"
    path.write_bytes(encoded(pixels, ".png"))
    shown = load_image(path)
    assert shown.shape == (30, 30, 3)
    assert shown[5, 5].tolist() == [255, 255, 255]
    assert shown[5, 25].tolist() == [0, 0, 0]


def test_a_cmyk_picture_is_converted(tmp_path: Path) -> None:
    path = tmp_path / "print.jpg"
    path.write_bytes(CMYK_JPEG)
    pixels = load_image(path)
    assert pixels.shape == (8, 16, 3)
    assert pixels[4, 8, 2] > 150 > pixels[4, 8, 0]


def test_a_large_transparent_picture_takes_no_more_room_than_it_must(tmp_path: Path) -> None:
    side = 1500
    (tmp_path / "clear.png").write_bytes(encoded(np.full((side, side, 4), 128, np.uint8), ".png"))
    tracemalloc.start()
    try:
        load_image(tmp_path / "clear.png")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The decoded picture (4 bytes a pixel, where numpy holds it), the result (3) and a strip.
    assert peak < 9 * side * side


def test_an_animated_picture_shows_its_first_frame_and_a_gif_says_what_is_read(tmp_path: Path) -> None:
    if not hasattr(cv2, "Animation"):
        pytest.skip("this OpenCV writes no animations")
    film = cv2.Animation()
    film.frames = [np.full((40, 60, 4), level, np.uint8) for level in (255, 10)]
    film.durations = [100, 100]
    for suffix in (".png", ".webp", ".gif"):
        path = tmp_path / f"film{suffix}"
        assert cv2.imwriteanimation(str(path), film)
        if suffix == ".gif":
            with pytest.raises(UnreadableImage, match=r"film\.gif: not a JPEG, PNG, WebP or BMP"):
                load_image(path)
            continue
        shown = load_image(path)
        assert shown.shape == (40, 60, 3)
        assert shown.min() > 240


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone.jpg") == "no such file"


def test_a_folder_is_no_picture(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "not a file"


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.jpg"
    path.touch()
    assert refusal(path) == "empty file"


@pytest.mark.parametrize("data", [b"hello", b"GIF89a" + bytes(40), b"%PDF-1.4" + bytes(40), bytes(100)])
def test_what_is_no_picture_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "note.jpg"
    path.write_bytes(data)
    assert "not a JPEG, PNG, WebP or BMP" in refusal(path)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".bmp"])
@pytest.mark.parametrize("part", [0.3, 0.8, 0.98])
def test_a_picture_cut_short_is_refused_not_half_grey(tmp_path: Path, suffix: str, part: float) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8)
    data = encoded(noise, suffix)
    path = tmp_path / f"half{suffix}"
    path.write_bytes(data[: int(len(data) * part)])
    assert "cut short" in refusal(path)


def test_a_cut_photo_is_caught_although_its_thumbnail_is_whole(tmp_path: Path) -> None:
    noise = encoded(np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8), ".jpg")
    thumbnail = encoded(picture(), ".jpg")
    data = noise[:2] + b"\xff\xe1" + struct.pack(">H", len(thumbnail) + 2) + thumbnail + noise[2:]
    path = tmp_path / "photo.jpg"
    path.write_bytes(data)
    assert load_image(path).shape == (64, 64, 3)
    path.write_bytes(data[:-40])
    assert "cut short" in refusal(path)


@pytest.mark.parametrize("size", [1, 3, 10, 20, 25])
@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".bmp"])
def test_a_few_bytes_of_header_never_crash(tmp_path: Path, suffix: str, size: int) -> None:
    path = tmp_path / f"stub{suffix}"
    path.write_bytes(encoded(picture(), suffix)[:size])
    assert refusal(path)


def test_a_huge_claim_is_refused_before_anything_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(see_image.cv2, "imdecode", lambda *_: pytest.fail("decoded a 400 MP claim"))
    path = tmp_path / "bomb.png"
    path.write_bytes(png_claiming(20_000, 20_000))
    assert refusal(path) == "too large: 20000x20000 pixels, more than 50 megapixels"


def test_a_huge_file_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(see_image, "MAX_BYTES", 10)
    path = tmp_path / "film.jpg"
    path.write_bytes(encoded(picture(), ".jpg"))
    assert "too large" in refusal(path)


def test_a_picture_without_pixels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flat.png"
    path.write_bytes(png_claiming(0, 10))
    assert refusal(path) == "has no pixels"


def test_a_whole_header_with_damaged_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "damaged.png"
    path.write_bytes(png_claiming(10, 10))
    assert "damaged" in refusal(path)


def test_a_jpeg_header_of_rubbish_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rubbish.jpg"
    path.write_bytes(CMYK_JPEG[:20] + bytes(200))
    assert "damaged" in refusal(path)


@pytest.fixture
def video(tmp_path: Path) -> Path:
    """Three seconds at 10 frames a second; each frame's grey is eight times its number."""
    path = tmp_path / "walk.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10.0, (64, 48))
    if not writer.isOpened():
        pytest.skip("this OpenCV writes no MJPG video")
    for number in range(30):
        writer.write(np.full((48, 64, 3), number * 8, np.uint8))
    writer.release()
    return path


def test_a_video_gives_one_frame_every_second(video: Path) -> None:
    frames = list(iter_video(video, 1.0))
    assert [round(at_s, 2) for at_s, _ in frames] == [0.0, 1.0, 2.0]
    assert all(
        abs(int(frame.mean()) - grey) <= 3 for (_, frame), grey in zip(frames, (0, 80, 160), strict=True)
    )
    assert all(frame.shape == (48, 64, 3) and frame.dtype == np.uint8 for _, frame in frames)


def test_a_video_gives_every_frame_when_asked_for_more_than_it_has(video: Path) -> None:
    assert len(list(iter_video(video, 0.01))) == 30


@pytest.mark.parametrize("every_s", [0.0, -1.0, float("nan")])
def test_a_video_cannot_be_sampled_at_no_interval(video: Path, every_s: float) -> None:
    with pytest.raises(ValueError, match="every_s"):
        next(iter_video(video, every_s))


def test_a_missing_or_broken_video_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UnreadableImage, match="no such file"):
        next(iter_video(tmp_path / "gone.mp4", 1.0))
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"not a film at all")
    with pytest.raises(UnreadableImage, match="not a video"):
        next(iter_video(broken, 1.0))
