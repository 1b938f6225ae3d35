"""The note that a pull leaves beside a model: where its bytes came from and what they hash to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

RECEIPT_NAME = "receipt.json"
RECEIPT_FORMAT = 1

HashState = Literal["checked", "pinned"]
"""`checked` against the manifest, or `pinned` at the first pull because the manifest has none."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One installed file."""

    name: str
    size: int
    """Bytes."""
    sha256: str
    hash_state: HashState


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is installed for one model."""

    model: str
    main: str
    """The file that `path(model)` answers with."""
    source: str
    """The source's short name, for people."""
    origins: tuple[str, ...]
    """Every artefact that was fetched, pinned to its version."""
    files: tuple[FileRecord, ...]
    pulled_at: datetime
    """When the pull was complete, in UTC."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(record.size for record in self.files)

    @property
    def hash_state(self) -> HashState:
        """`pinned` if any file is."""
        return "pinned" if any(record.hash_state == "pinned" for record in self.files) else "checked"

    def record(self, file: str) -> FileRecord | None:
        """The record of a file, if the model has it."""
        return next((record for record in self.files if record.name == file), None)

    def document(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"format": RECEIPT_FORMAT, **asdict(self), "pulled_at": self.pulled_at.isoformat()}


def parse_receipt(text: str) -> Receipt:
    """Read a receipt; raises `ValueError` if it is none, or of a later format."""
    try:
        document = json.loads(text)
        if document["format"] != RECEIPT_FORMAT:
            raise ValueError(f"receipt format {document['format']}")
        return Receipt(
            model=document["model"],
            main=document["main"],
            source=document["source"],
            origins=tuple(document["origins"]),
            files=tuple(FileRecord(**record) for record in document["files"]),
            pulled_at=datetime.fromisoformat(document["pulled_at"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a receipt: {error!r}") from error
