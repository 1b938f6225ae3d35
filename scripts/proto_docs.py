"""Writes the reference of the wire from the comments in the .proto files.

    protoc --include_source_info --descriptor_set_out=SET ... && proto_docs.py SET > docs/protocol.md

`scripts/gen-proto` runs it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from google.protobuf import descriptor_pb2 as d

HEAD = """# The wire: os1.assist.v1

Written by `scripts/gen-proto` from the comments under `proto/os1`; change it there.
"""
FILE_MESSAGE, FILE_ENUM, FILE_SERVICE = 4, 5, 6
FIELD, VALUE, METHOD = 2, 2, 2
"""Field numbers of descriptor.proto, of which a source location's path is made."""
SCALARS = {number: name.removeprefix("TYPE_").lower() for name, number in d.FieldDescriptorProto.Type.items()}


def reference(files: d.FileDescriptorSet) -> str:
    """All files as one page of Markdown."""
    return "\n".join([HEAD, *(line for file in files.file for line in _file(file))]).rstrip() + "\n"


def _file(file: d.FileDescriptorProto) -> list[str]:
    said = {tuple(place.path): place.leading_comments for place in file.source_code_info.location}

    def text(*path: int) -> str:
        lines = [line.removeprefix(" ").rstrip() for line in said.get(path, "").strip("\n").splitlines()]
        return "\n".join(lines)

    def cell(*path: int) -> str:
        return " ".join(text(*path).split()).replace("|", "\\|")

    out: list[str] = [f"## {file.name.rpartition('/')[2]}", ""]
    for s, service in enumerate(file.service):
        out += [f"### service {service.name}", "", text(FILE_SERVICE, s), ""]
        for m, method in enumerate(service.method):
            out += [f"#### {_call(service.name, method)}", "", text(FILE_SERVICE, s, METHOD, m), ""]
    for n, message in enumerate(file.message_type):
        out += [f"### {message.name}", "", text(FILE_MESSAGE, n), ""]
        if message.field:
            out += ["| field | type | |", "| --- | --- | --- |"]
            for f, field in enumerate(message.field):
                about = cell(FILE_MESSAGE, n, FIELD, f)
                out.append(f"| {field.number} `{field.name}` | {_type(message, field)} | {about} |")
            out.append("")
    for n, enum in enumerate(file.enum_type):
        out += [f"### {enum.name}", "", text(FILE_ENUM, n), "", "| value | |", "| --- | --- |"]
        for v, value in enumerate(enum.value):
            out.append(f"| {value.number} `{value.name}` | {cell(FILE_ENUM, n, VALUE, v)} |")
        out.append("")
    return out


def _call(service: str, method: d.MethodDescriptorProto) -> str:
    def side(name: str, streams: bool) -> str:
        return f"{'stream ' if streams else ''}{name.rpartition('.')[2]}"

    sent = side(method.input_type, method.client_streaming)
    return f"{service}.{method.name}({sent}) → {side(method.output_type, method.server_streaming)}"


def _type(message: d.DescriptorProto, field: d.FieldDescriptorProto) -> str:
    name = field.type_name.rpartition(".")[2] or SCALARS[field.type]
    if field.label == field.LABEL_REPEATED:
        return f"{name}, any number"
    if field.HasField("oneof_index"):
        return f"{name}, one of `{message.oneof_decl[field.oneof_index].name}`"
    return name


if __name__ == "__main__":
    sys.stdout.write(reference(d.FileDescriptorSet.FromString(Path(sys.argv[1]).read_bytes())))
