"""Who the companion is: a plain file, so that a wearer can write their own.

::

    ---
    name: Samantha
    tone: warm, curious, plain
    length: 2
    questions: some
    ---
    You are {name}, …

``name`` is what it is called, ``tone`` goes into the prompt, ``length`` is the most sentences of a reply,
``questions`` how many of its replies may ask something (none, few, some, many, or a share from 0 to 1). Below
the header stands who it is, as said to the model; ``{name}`` and ``{tone}`` are filled in. What every persona
keeps to (facts, never inventing) is not its file's: the rules stand behind it in the prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from os1_edge.converse.balance import SHARES
from os1_edge.tomlfile import BadFile

LONGEST = 1200
"""Characters of a persona: about 300 tokens, read once and kept in the engine's cache."""

MOST_SENTENCES = 8


@dataclass(frozen=True, slots=True)
class Persona:
    """Who the companion is, and how much it speaks."""

    name: str
    tone: str
    length: int
    """Sentences of a reply, at most."""
    questions: float
    """Share of its replies that may end with a question."""
    text: str
    """As the prompt says it."""


def names() -> list[str]:
    """The personas that come with OS-1."""
    return sorted(
        p.name.removesuffix(".md") for p in files("os1_edge.converse").joinpath("personas").iterdir()
        if p.name.endswith(".md")
    )  # fmt: skip


def load(which: str) -> Persona:
    """The persona ``which``: one of ``names()``, or the path of a file.

    Raises:
        BadFile: there is none, or it cannot be read as one.
    """
    if which in names():
        path = Path(str(files("os1_edge.converse").joinpath(f"personas/{which}.md")))
    else:
        path = Path(which).expanduser()
        if not path.is_file():
            known = ", ".join(names())
            raise BadFile(path, f"no such persona; these come with OS-1: {known}; or name a file of your own")
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise BadFile(path, "is not a text file in UTF-8") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Persona:
    """The persona that ``text`` describes; ``path`` is named where it does not.

    Raises:
        BadFile: the header or the text is not right.
    """
    found = re.match(r"\s*---[ \t]*\n(?P<header>.*?)\n---[ \t]*\n(?P<body>.*)", text, re.S)
    if found is None:
        raise BadFile(path, "needs a header between two lines of ---, and a text below it", 1)
    header: dict[str, str] = {}
    for number, line in enumerate(found["header"].splitlines(), 2):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not colon or key not in ("name", "tone", "length", "questions") or not value:
            raise BadFile(path, f"expected name, tone, length or questions with a value, not: {line}", number)
        header[key] = value
    if "name" not in header:
        raise BadFile(path, "the header lacks a name")
    name, tone = header["name"], header.get("tone", "")
    body = " ".join(found["body"].split()).replace("{name}", name).replace("{tone}", tone)
    if not 10 <= len(body) <= LONGEST:
        raise BadFile(path, f"the text below the header has {len(body)} characters; give 10 to {LONGEST}")
    return Persona(name, tone, _length(header, path), _questions(header, path), body)


def share_of(questions: str | float) -> float | None:
    """The share that a setting means: a word of ``balance.SHARES`` or a number; ``None``: neither."""
    if isinstance(questions, str) and questions in SHARES:
        return SHARES[questions]
    try:
        share = float(questions)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _length(header: dict[str, str], path: Path) -> int:
    given = header.get("length", "2")
    if not given.isdecimal() or not 1 <= int(given) <= MOST_SENTENCES:
        raise BadFile(path, f"length: give 1 to {MOST_SENTENCES} sentences, not {given}")
    return int(given)


def _questions(header: dict[str, str], path: Path) -> float:
    given = header.get("questions", "some")
    share = share_of(given)
    if share is None:
        raise BadFile(path, f"questions: give {', '.join(SHARES)}, or a share from 0 to 1, not {given}")
    return share
