"""The eyes of a vision model: llama.cpp's ``mtmd`` with a projector file (mmproj).

Follows ``mtmd.h`` and ``mtmd-helper.cpp`` of llama.cpp. llama-cpp-python's chat handlers stand on the same
calls, but cannot be stopped while a picture is being read, and read every picture anew with every question.
"""

from __future__ import annotations

import ctypes
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from os1_models.vision.picture import BadPicture, picture_size
from os1_models.vision.terms import Stopped, VisionError

LOOKED_AT = 8
"""Nodes of the picture's network computed between two looks at ``stop``, of some 600 that LLaVA 1.5 has: a
hundredth of the time that a look takes."""
KEPT_BYTES = 48_000_000
"""Pictures kept as the model sees them: five of LLaVA 1.5; a prompt holds four at most (Furhat paper)."""

Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest thing that a prompt is read by: a token of text, or a picture (of a large one: a part)."""

    key: int | str
    """The token; or the picture's hash and the number of its part. Equal keys are equal units."""
    tokens: int = 1
    """Places taken in the context."""
    positions: int = 1
    """How far the text behind it moves on; less than ``tokens`` where positions have two dimensions."""
    chunk: int | None = None
    """llama.cpp's own picture; lives as long as the prompt that it is part of."""


class Projector:
    """A loaded projector. Blocking; one call at a time."""

    def __init__(self, file: Path, model: Any, threads: int) -> None:
        """Loads ``file`` for llama.cpp's ``model``.

        Raises:
            VisionError: it is no projector with vision, or not one for this model.
        """
        import llama_cpp
        from llama_cpp import mtmd_cpp

        self._c: Any = llama_cpp
        self._m: Any = mtmd_cpp
        self._stop: Stop = lambda: False
        self._nodes = 0
        # A marker that no text can contain by chance or on purpose. Both are held: C keeps pointers to them.
        self.marker = f"<__media_{secrets.token_hex(8)}__>"
        self._marker = self.marker.encode()
        self._watch = llama_cpp.ggml_backend_sched_eval_callback(self._seen_node)
        settings = mtmd_cpp.mtmd_context_params_default()
        settings.use_gpu = False
        settings.print_timings = settings.warmup = False
        settings.n_threads = threads
        settings.media_marker = self._marker
        settings.cb_eval = self._watch
        self._context: Any = mtmd_cpp.mtmd_init_from_file(str(file).encode(), model, settings)
        if not self._context:
            raise VisionError(f"{file.name}: not a projector (mmproj) of this model")
        if not mtmd_cpp.mtmd_support_vision(self._context):
            self.close()
            raise VisionError(f"{file.name}: this projector sees nothing")
        self._width = int(llama_cpp.llama_model_n_embd_inp(model))
        self._seen: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        """By unit key, the least used first; bounded by KEPT_BYTES."""

    def close(self) -> None:
        """Frees everything; twice is once."""
        if self._context:
            self._m.mtmd_free(self._context)
        self._context = None

    def forget(self) -> None:
        """Keeps no picture."""
        self._seen.clear()

    @contextmanager
    def units(
        self, text: str, pictures: Sequence[bytes], add_special: bool, parse_special: bool = True
    ) -> Iterator[list[Unit]]:
        """The units of ``text`` with a ``pictures`` for every marker in it, in order; ``parse_special``:
        whether control words in it are meant.

        Raises:
            BadPicture: one of them cannot be decoded.
            VisionError: llama.cpp cannot take the prompt apart.
        """
        m, data = self._m, text.encode()
        with ExitStack() as stack:
            bitmaps = []
            for picture in pictures:
                bitmaps.append(self._bitmap(picture))
                stack.callback(m.mtmd_bitmap_free, bitmaps[-1])
            chunks = m.mtmd_input_chunks_init()
            stack.callback(m.mtmd_input_chunks_free, chunks)
            given = m.mtmd_input_text(
                text=data, text_len=len(data), add_special=add_special, parse_special=parse_special
            )
            array = (m.mtmd_bitmap_p_ctypes * len(bitmaps))(*bitmaps)
            if m.mtmd_tokenize(self._context, chunks, ctypes.byref(given), array, len(bitmaps)) != 0:
                raise VisionError("llama.cpp could not take the prompt apart")
            yield list(self._parts(chunks))

    def _parts(self, chunks: Any) -> Iterator[Unit]:
        m = self._m
        times: dict[str, int] = {}
        for i in range(m.mtmd_input_chunks_size(chunks)):
            chunk = m.mtmd_input_chunks_get(chunks, i)
            if m.mtmd_input_chunk_get_type(chunk) == m.MTMD_INPUT_CHUNK_TYPE_TEXT:
                count = ctypes.c_size_t()
                tokens = m.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(count))
                found = [int(tokens[k]) for k in range(count.value)]
                if min(found, default=0) < 0:
                    raise VisionError("the model has no words for what its projector puts round a picture")
                yield from map(Unit, found)
                continue
            name = m.mtmd_input_chunk_get_id(chunk).decode()
            part = times[name] = times.get(name, -1) + 1
            yield Unit(
                f"{name}/{part}",
                m.mtmd_input_chunk_get_n_tokens(chunk),
                m.mtmd_input_chunk_get_n_pos(chunk),
                chunk,
            )

    def _bitmap(self, picture: bytes) -> Any:
        picture_size(picture)
        buffer = (ctypes.c_uint8 * len(picture)).from_buffer_copy(picture)
        bitmap = self._m.mtmd_helper_bitmap_init_from_buf(self._context, buffer, len(picture), False)
        if not bitmap:
            raise BadPicture("a picture cannot be decoded")
        return bitmap

    def put(self, unit: Unit, context: Any, slot: int, at: int, batch: int, stop: Stop) -> int:
        """Has llama.cpp's ``context`` read the picture ``unit`` at position ``at``; its result, 0 for well.

        Raises:
            Stopped: while the picture was looked at.
            VisionError: llama.cpp cannot look at it.
        """
        seen = self._look(unit, stop)
        end = self._c.llama_pos(at)
        return int(
            self._m.mtmd_helper_decode_image_chunk(
                self._context,
                context,
                unit.chunk,
                seen.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                at,
                slot,
                batch,
                ctypes.byref(end),
                self._m.mtmd_helper_post_decode_callback(),
                None,
            )
        )

    def _look(self, unit: Unit, stop: Stop) -> NDArray[np.float32]:
        """The picture as the model sees it, (tokens, width)."""
        key = str(unit.key)
        if key in self._seen:
            self._seen.move_to_end(key)
            return self._seen[key]
        self._stop, self._nodes = stop, 0
        result = self._m.mtmd_encode_chunk(self._context, unit.chunk)
        if stop():  # llama.cpp takes an aborted look for a finished one
            raise Stopped
        if result != 0:
            raise VisionError(f"llama.cpp could not look at a picture ({result})")
        found = np.ctypeslib.as_array(
            self._m.mtmd_get_output_embd(self._context), (unit.tokens, self._width)
        ).copy()
        self._seen[key] = found
        while len(self._seen) > 1 and sum(each.nbytes for each in self._seen.values()) > KEPT_BYTES:
            self._seen.popitem(last=False)
        return found

    def _seen_node(self, _tensor: Any, ask: bool, _data: Any) -> bool:
        """Before a node (``ask``): shall the network pause behind it? In the pause: shall it go on?"""
        if not ask:
            return not self._stop()
        self._nodes += 1
        return self._nodes % LOOKED_AT == 0
