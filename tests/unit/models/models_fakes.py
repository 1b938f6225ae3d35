"""Stand-ins for the tests of `os1_models`: wheels, tarballs, manifests, a file server, a tiny Whisper."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import re
import struct
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from os1_models.manifest import Manifest


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that do not compress, the same every time."""
    return np.random.default_rng(seed).bytes(size)


def wheel(name: str, version: str, members: Mapping[str, bytes]) -> bytes:
    """A wheel that pip accepts, as bytes."""
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    files = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}"
        for path, data in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path), data)
    return out.getvalue()


def tarball(members: Mapping[str, bytes]) -> bytes:
    """What `npm pack` leaves."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, data in members.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def artefact(origin: str, data: bytes) -> dict[str, Any]:
    return {"origin": origin, "size": len(data), "sha256": sha256(data)}


def file(name: str, data: bytes, *parts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "size": len(data), "sha256": sha256(data), "parts": list(parts), **more}


def manifest(*sources: Mapping[str, Any], name: str = "toy") -> Manifest:
    """A manifest of one model whose main file is the first one of its first source."""
    return Manifest.model_validate(
        {
            "models": [
                {
                    "name": name,
                    "job": "test",
                    "description": "a toy",
                    "licence": "MIT",
                    "sets": ["extra"],
                    "main": sources[0]["files"][0]["name"],
                    "sources": list(sources),
                }
            ]
        }
    )


@dataclass
class Shelf:
    """A fetcher that hands out artefacts from memory and counts what it was asked for."""

    artefacts: Mapping[str, bytes | Exception]
    asked: list[str] = field(default_factory=list)

    def __call__(self, rest: str, into: Path, report: Callable[[int], None]) -> Path:
        self.asked.append(rest)
        data = self.artefacts[rest]
        if isinstance(data, Exception):
            raise data
        path = into / "download"
        path.write_bytes(data)
        report(len(data))
        return path


@dataclass
class FileServer:
    """A loopback HTTP server with ranges, whose connections can be cut or held up."""

    files: dict[str, bytes]
    ranges: bool = True
    cut_after: dict[str, int] = field(default_factory=dict)
    """Close the connection after so many bytes of a path's answer, once."""
    hold_after: dict[str, int] = field(default_factory=dict)
    """Send so many bytes, then wait for `release`."""
    release: threading.Event = field(default_factory=threading.Event)
    held: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """(method, path, Range header)"""
    address: str = ""

    def asked(self, path: str) -> list[str | None]:
        """The range of each GET of a path."""
        return [ranged for method, asked, ranged in self.requests if (method, asked) == ("GET", path)]

    def answer(self, handler: http.server.BaseHTTPRequestHandler, method: str) -> None:
        path, ranged = handler.path, handler.headers.get("Range")
        self.requests.append((method, path, ranged))
        if path not in self.files:
            handler.send_error(404)
            return
        data, start, etag = self.files[path], 0, f'"{sha256(self.files[path])[:16]}"'
        if ranged and self.ranges and handler.headers.get("If-Range") in (None, etag):
            found = re.fullmatch(r"bytes=(\d+)-(\d*)", ranged)
            assert found is not None
            start = int(found[1])
            if start >= len(data):
                handler.send_error(416)
                return
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        handler.send_header("Content-Length", str(len(data) - start))
        handler.send_header("ETag", etag)
        handler.send_header("X-Repo-Commit", "0" * 40)
        handler.end_headers()
        if method == "GET":
            self._body(handler, path, data[start:])

    def _body(self, handler: http.server.BaseHTTPRequestHandler, path: str, body: bytes) -> None:
        cut = self.cut_after.pop(path, None)
        hold = self.hold_after.pop(path, None)
        if cut is not None:
            handler.wfile.write(body[:cut])
            handler.close_connection = True
        elif hold is not None:
            handler.wfile.write(body[:hold])
            handler.wfile.flush()
            self.held.set()
            self.release.wait(60)
            handler.wfile.write(body[hold:])
        else:
            handler.wfile.write(body)


@contextmanager
def serving(files: Mapping[str, bytes], **options: Any) -> Iterator[FileServer]:
    """A `FileServer` on a free loopback port."""
    shelf = FileServer(dict(files), **options)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            try:
                shelf.answer(self, "GET")
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def do_HEAD(self) -> None:
            shelf.answer(self, "HEAD")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    shelf.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield shelf
    finally:
        shelf.release.set()
        server.shutdown()
        server.server_close()


# A Whisper small enough to build in a test. whisper.cpp takes any width; four layers make it "tiny".
STATE, HEADS, LAYERS, TEXT_VOCABULARY, VOCABULARY = 64, 1, 4, 50_256, 51_864
CODES = {np.dtype("<f4"): 0, np.dtype("i1"): 1, np.dtype("<i2"): 2, np.dtype("<f2"): 4}


def ct2_bytes(
    variables: Mapping[str, Any],
    *,
    spec: str = "WhisperSpec",
    version: int = 6,
    aliases: Sequence[tuple[str, str]] = (),
) -> bytes:
    """A CTranslate2 `model.bin`."""

    def text(value: str) -> bytes:
        raw = value.encode() + b"\0"
        return struct.pack("<H", len(raw)) + raw

    out = [struct.pack("<I", version), text(spec), struct.pack("<II", 3, len(variables))]
    for name, value in variables.items():
        array = np.asarray(value)
        out += [text(name), struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)]
        out += [struct.pack("<BI", CODES[array.dtype], array.nbytes), array.tobytes()]
    out.append(struct.pack("<I", len(aliases)))
    out += [text(part) for pair in aliases for part in pair]
    return b"".join(out)


def tiny_whisper(seed: int = 0) -> dict[str, Any]:
    """Random float16 weights under CTranslate2's names."""
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> Any:
        return (rng.standard_normal(shape) * 0.05).astype("<f2")

    found: dict[str, Any] = {
        "encoder/conv1/weight": random(STATE, 80, 3),
        "encoder/conv1/bias": random(STATE),
        "encoder/conv2/weight": random(STATE, STATE, 3),
        "encoder/conv2/bias": random(STATE),
        "encoder/num_heads": np.int16(HEADS),
        "encoder/position_encodings/encodings": random(1500, STATE),
        "decoder/embeddings/weight": random(VOCABULARY, STATE),
        "decoder/num_heads": np.int16(HEADS),
        "decoder/position_encodings/encodings": random(448, STATE),
    }

    def norm(scope: str) -> None:
        found[f"{scope}/gamma"] = np.ones(STATE, "<f2")
        found[f"{scope}/beta"] = random(STATE)

    def linear(scope: str, rows: int, columns: int) -> None:
        found[f"{scope}/weight"], found[f"{scope}/bias"] = random(rows, columns), random(rows)

    for side in ("encoder", "decoder"):
        norm(f"{side}/layer_norm")
        for layer in range(LAYERS):
            scope = f"{side}/layer_{layer}"
            linear(f"{scope}/self_attention/linear_0", 3 * STATE, STATE)
            linear(f"{scope}/self_attention/linear_1", STATE, STATE)
            norm(f"{scope}/self_attention/layer_norm")
            if side == "decoder":
                linear(f"{scope}/attention/linear_0", STATE, STATE)
                linear(f"{scope}/attention/linear_1", 2 * STATE, STATE)
                linear(f"{scope}/attention/linear_2", STATE, STATE)
                norm(f"{scope}/attention/layer_norm")
            linear(f"{scope}/ffn/linear_0", 4 * STATE, STATE)
            linear(f"{scope}/ffn/linear_1", STATE, 4 * STATE)
            norm(f"{scope}/ffn/layer_norm")
    return found


def tiny_tokenizer() -> bytes:
    """A `tokenizer.json` with as many byte-level tokens as whisper.cpp expects of an English model."""
    alphabet = [chr(code) for code in range(0x21, 0x7F)]
    count = len(alphabet)
    words = [
        *alphabet,
        *(a + b for a in alphabet for b in alphabet),
        *(a + b + c for a in alphabet for b in alphabet for c in alphabet),
    ][:TEXT_VOCABULARY]
    # The stand-in of the space is a remapped character; whisper.cpp looks for the space itself.
    words[count : count + 2] = ["\u0120", "\u0120the"]
    vocabulary = {word: number for number, word in enumerate(words)}
    document = {
        "added_tokens": [{"id": TEXT_VOCABULARY, "content": "<|endoftext|>"}],
        "model": {"vocab": {**vocabulary, "<|endoftext|>": TEXT_VOCABULARY}},
    }
    return json.dumps(document).encode()
