"""TOML read into a pydantic model, with errors that name the file and the line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)
Loc = tuple[int | str, ...]


class BadFile(Exception):
    """A file that a person wrote or named is not usable; the message names it, and the line where known."""

    def __init__(self, path: Path, problem: str, line: int | None = None) -> None:
        self.path = path
        self.problem = problem
        self.line = line
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")


def line_of(text: str, loc: Loc) -> int | None:
    """The 1-based line of a value in TOML ``text``.

    ``loc`` is pydantic's path, as ``("microphone", 2, "at_s")``: the key ``at_s`` of the third
    ``[[microphone]]``. When the key itself is absent, the line of its table, or the line where an inline
    table begins; ``None`` when neither is found.
    """
    table = [str(part) for part in loc if isinstance(part, str)]
    index = next((part for part in loc if isinstance(part, int)), 0)
    key = table[-1] if table else ""
    header = re.compile(rf"^\s*\[\[?\s*{re.escape(table[0])}\s*\]\]?") if table else None
    seen = -1
    table_line: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header and header.match(line):
            seen += 1
            if seen == index:
                table_line = number
        elif re.match(r"^\s*\[", line) and table_line:
            return table_line
        elif re.match(rf"^\s*{re.escape(key)}\s*=", line) and (table_line or len(table) == 1):
            return number
    return table_line or (line_of(text, loc[:1]) if len(table) > 1 else None)


def read_toml(path: Path, model: type[Model]) -> tuple[Model, str]:
    """Parses ``path`` into ``model``; returns it with the file's text.

    Raises:
        BadFile: the file is absent, not UTF-8, not TOML, or does not fit the model.
    """
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise BadFile(path, "no such file") from None
    except UnicodeDecodeError as e:
        raise BadFile(path, f"not UTF-8 text (byte {e.start})") from None
    except OSError as e:
        raise BadFile(path, e.strerror or str(e)) from None
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as e:
        where = re.search(r"at line (\d+)", str(e))
        last = len(text.splitlines()) if "at end of document" in str(e) else None
        raise BadFile(path, f"not TOML: {e}", int(where[1]) if where else last) from None
    try:
        return model.model_validate(data), text
    except ValidationError as e:
        first = e.errors()[0]
        name = ".".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"])
        problem = (f"{name}: " if name else "") + plain_problem(first["type"], first["msg"])
        raise BadFile(path, problem, line_of(text, first["loc"])) from None


def plain_problem(kind: str, message: str) -> str:
    """Pydantic's message in a wearer's words."""
    if kind == "extra_forbidden":
        return "no such setting"
    if kind == "missing":
        return "is missing"
    return message.removeprefix("Value error, ")
