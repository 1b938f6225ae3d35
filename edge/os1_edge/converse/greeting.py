"""Who greets whom, and who says their name. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

_GREETING = re.compile(
    r"(?i:(?:(?:oh|ah|well|look|and)[,! ]+)*(?:hi|hello|hey|good (?:morning|afternoon|evening)"
    r"|nice to (?:see|meet) you|hallo|hola|bonjour|salut)(?: there)?),? (?P<name>[A-Z][\w'’-]+)\b"
    r"(?! (?:is|was|has|said)\b)"
)
_NOBODY = frozenset(
    """os os-1 samantha everyone everybody all guys folks you my the there darling dear honey mate and how
    what it i this that nice good thanks sir madam""".split()  # noqa: SIM905
)
_NAME = re.compile(
    r"(?i:(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|hallo|hola|bonjour)[^.!?]{0,12}[,.!]+ ?)?"
    r"(?:my name is|my name's|i am called|i'm called|you can call me|please call me|call me|ich heiße"
    r"|mein name ist|me llamo|mi nombre es|je m'appelle)) (?P<name>[A-Z][\w'’-]+)"
    r"(?:(?i:,? and i(?:'m| am| live| work| come| like| love| study)) [\w' -]{2,60})?[.!]?$"
)


def greeted(heard: str, own: Collection[str] = ()) -> str | None:
    """The name of somebody whom the wearer greets; ``own`` are the companion's names."""
    found = _GREETING.match(heard.strip())
    if found is None:
        return None
    name = found["name"].rstrip("'’-")
    own_names = {word for n in own for word in n.casefold().split()}
    return None if name.casefold() in _NOBODY | own_names else name


def introduced(heard: str) -> str | None:
    """The name by which the wearer says that they are called, where that is all they say."""
    found = _NAME.match(heard.strip().replace("’", "'"))
    return found["name"] if found is not None else None
