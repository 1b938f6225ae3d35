"""A Piper voice's model file with one more output: how long each phoneme lasts.

The durations are in the model, as what its one ``Ceil`` node gives; they only need to be named as an output.
In Protocol Buffers a message that follows another of its kind is merged into it, so the few bytes that name
the output are put behind the file's. Piper does the same with the ``onnx`` package
(``piper/patch_voice_with_alignment.py``), which is 18 MB that the glasses need for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

_GRAPH = 7  # ModelProto.graph
_NODE, _OUTPUT = 1, 12  # GraphProto.node, GraphProto.output
_NODE_OUTPUT, _OP_TYPE = 2, 4  # NodeProto
_NAME = 1  # ValueInfoProto.name


def with_durations(model: bytes) -> bytes:
    """``model``, an ONNX file, with the durations as its last output; unchanged when it has none, or has them
    already.

    Raises:
        ValueError: the file is cut off or not ONNX.
    """
    view = memoryview(model)
    names: set[bytes] = set()
    outputs: set[bytes] = set()
    for graph in _messages(view, _GRAPH):
        for node in _messages(graph, _NODE):
            if any(bytes(op) == b"Ceil" for op in _messages(node, _OP_TYPE)):
                names |= {bytes(name) for name in _messages(node, _NODE_OUTPUT)}
        outputs |= {bytes(n) for output in _messages(graph, _OUTPUT) for n in _messages(output, _NAME)}
    if len(names) != 1 or names & outputs:
        return model
    return model + _message(_GRAPH, _message(_OUTPUT, _message(_NAME, names.pop())))


def _messages(view: memoryview, wanted: int) -> Iterator[memoryview]:
    """The length-delimited fields numbered ``wanted``."""
    at = 0
    while at < len(view):
        key, at = _varint(view, at)
        kind = key & 7
        if kind == 2:
            length, at = _varint(view, at)
            if at + length > len(view):
                raise ValueError("the file is cut off")
            if key >> 3 == wanted:
                yield view[at : at + length]
            at += length
        elif kind == 0:
            _, at = _varint(view, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("not an ONNX file")


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(view) or shift > 63:
            raise ValueError("the file is cut off")
        byte = view[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at


def _message(number: int, content: bytes) -> bytes:
    return _encoded(number << 3 | 2) + _encoded(len(content)) + content


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
