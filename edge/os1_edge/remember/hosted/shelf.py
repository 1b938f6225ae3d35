"""The server's side: one collection of sealed rows a wearer, on Milvus. A thin shell over pymilvus.

A wearer's rows lie in a collection of their own: there is no filter that a search could forget, a server may
grant each wearer's token that collection alone, and dropping it forgets all of it. Filters hold nothing but
numbers and hex made here, so that no name can speak the server's language.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import grpc
import numpy as np

from os1_edge.remember.connection import BadMemory
from os1_edge.remember.hosted.state import Place
from os1_edge.remember.key import BadKey, passphrase_in
from os1_edge.remember.schema import DIMENSIONS
from os1_edge.remember.vectors import Vector

log = logging.getLogger(__name__)

PIECE = 65_000
"""Characters of sealed text in one string; Milvus allows 65,535. A longer row has more strings."""

PIECES = 4096
"""Strings of one row at most (Milvus's bound): 190 MB."""

BATCH = 256
"""Rows of one request: about a megabyte."""

WRITE_S = 30.0
"""Time for one request that writes or lists; nobody waits for it but a command."""

REACH_S = 10.0
"""Time for each request that opens a connection; a server just started loads the collection first."""

LARGEST = 64 << 20
"""Bytes of an answer that are taken: what a Milvus server sends at most unless set otherwise. Without a bound
a server could fill the device's RAM."""


class NotReached(BadMemory):
    """The server cannot be reached, or refuses; the message says which and what to do."""


class NotThere(NotReached):
    """The server is reached, and has no such collection."""


class Refused(NotReached):
    """The token is not good for this."""


class SealedRow(NamedTuple):
    """A row as the server holds it."""

    row_id: bytes
    shelf: int
    sealed: bytes


class Shelf(Protocol):
    """What is asked of a server; all may raise `NotReached`."""

    def put(self, rows: Sequence[tuple[SealedRow, Vector | None]]) -> None:
        """Keeps rows, in place of those of the same ids."""

    def get(
        self, row_ids: Sequence[bytes], timeout_s: float = WRITE_S, *, newest: bool = True
    ) -> dict[bytes, SealedRow]:
        """Those of the rows that are there; ``newest``: as they are after all that was sent before."""

    def nearest(self, shelf: int, vector: Vector, k: int, timeout_s: float) -> list[tuple[bytes, float]]:
        """The ``k`` rows of a shelf with the highest inner product, highest first: (id, inner product)."""

    def delete(self, row_ids: Sequence[bytes]) -> None:
        """Rows are there no more."""

    def every(self) -> Iterator[SealedRow]:
        """All rows, in no order."""

    def count(self) -> int:
        """How many rows there are."""

    def purge(self) -> int | None:
        """Has the server write anew what held deleted rows; returns the generation that it lies in now.
        ``None``: it has not begun yet; to be asked again in a minute."""

    def drop_before(self) -> None:
        """Lets go of the generation before this one."""

    def drop(self) -> str:
        """All of the wearer's rows are gone; returns what the operator has to do yet, "" mostly."""

    def close(self) -> None:
        """Ends the connection."""


class MilvusShelf:
    """A wearer's collection on Milvus. Any thread."""

    def __init__(self, place: Place, timeout_s: float = REACH_S, *, make: bool = False) -> None:
        """Connects; ``make``: also makes the collection if there is none.

        Raises:
            NotReached: no server there, or it refuses, or pymilvus is missing.
        """
        self._base, self._generation = collection_of(place.wearer), place.generation
        self._asked = False  # to compact
        self._py = _pymilvus()
        with self._told():
            self._client = self._py.MilvusClient(
                uri=place.url,
                token=_token(place.token_file),
                timeout=timeout_s,
                dedicated=True,
                grpc_options={"grpc.max_receive_message_length": LARGEST},
                **({"server_pem_path": place.ca_file, "secure": True} if place.ca_file else {}),
            )
            # Milvus's own package for Python, a whole server, calls itself v2.3.5-lite.
            self._lite = str(self._client.get_server_version(timeout=timeout_s)).startswith("milvus_lite")
            there = self._client.has_collection(self.collection, timeout=timeout_s)
            if not there and self._lite:  # who comes from elsewhere does not know how often it began anew
                there = self._find_generation()
            if there:
                self._client.load_collection(self.collection, timeout=timeout_s)
            elif make:
                self._make(self.collection)
            else:
                raise NotThere(f"the server has no collection {self.collection}; ask its operator")

    @property
    def generation(self) -> int:
        """Of the collection in use."""
        return self._generation

    @property
    def collection(self) -> str:
        """The collection in use: what the wearer's token has to be granted."""
        return f"{self._base}_{self._generation}"

    def put(self, rows: Sequence[tuple[SealedRow, Vector | None]]) -> None:
        """See ``Shelf``."""
        with self._told():
            for at in range(0, len(rows), BATCH):
                data = [_entity(row, vector) for row, vector in rows[at : at + BATCH]]
                self._client.upsert(self.collection, data, timeout=WRITE_S)

    def get(
        self, row_ids: Sequence[bytes], timeout_s: float = WRITE_S, *, newest: bool = True
    ) -> dict[bytes, SealedRow]:
        """See ``Shelf``. For the newest Milvus waits until its log has been read: some 200 ms."""
        found: dict[bytes, SealedRow] = {}
        with self._told():
            for at in range(0, len(row_ids), BATCH):
                some = [row_id.hex() for row_id in row_ids[at : at + BATCH]]
                for entity in self._client.get(
                    self.collection,
                    ids=some,
                    output_fields=_FIELDS,
                    consistency_level="Strong" if newest else "Eventually",
                    timeout=timeout_s,
                ):
                    row = _row(entity)
                    found[row.row_id] = row
        return found

    def nearest(self, shelf: int, vector: Vector, k: int, timeout_s: float) -> list[tuple[bytes, float]]:
        """See ``Shelf``. What was sent in the last moment may be missing: it is on the device too."""
        with self._told():
            (hits,) = self._client.search(
                self.collection,
                data=[vector.tolist()],
                anns_field="vector",
                filter=f"shelf == {int(shelf)}",
                limit=k,
                output_fields=["shelf"],  # without any, milvus-lite gives all of them
                consistency_level="Eventually",
                timeout=timeout_s,
            )
            return [(bytes.fromhex(hit["id"]), float(hit["distance"])) for hit in hits[:k]]

    def delete(self, row_ids: Sequence[bytes]) -> None:
        """See ``Shelf``."""
        with self._told():
            for at in range(0, len(row_ids), BATCH):
                some = [row_id.hex() for row_id in row_ids[at : at + BATCH]]
                self._client.delete(self.collection, ids=some, timeout=WRITE_S)

    def every(self) -> Iterator[SealedRow]:
        """See ``Shelf``."""
        with self._told():
            pages = self._client.query_iterator(
                self.collection, batch_size=BATCH, output_fields=_FIELDS, timeout=WRITE_S
            )
        try:
            while True:
                with self._told():
                    rows = [_row(entity) for entity in pages.next()]
                if not rows:
                    return
                yield from rows
        finally:
            pages.close()

    def count(self) -> int:
        """See ``Shelf``."""
        return self._count(self.collection)

    def _count(self, collection: str) -> int:
        with self._told():
            found = self._client.query(
                collection, "", ["count(*)"], consistency_level="Strong", timeout=WRITE_S
            )
            return int(found[0]["count(*)"])

    def purge(self) -> int | None:
        """See ``Shelf``. Milvus is asked to compact: what was just written it passes over (2.3.5), so that a
        request counts that is not the first and makes it plan something. It lets go of the files that are
        replaced after its ``dataCoord.gc.dropTolerance`` (3 h unless set otherwise). milvus-lite cannot be
        asked, and merges files only when there are many: its rows are copied to a new collection and the
        old one dropped."""
        with self._told():
            self._client.flush(self.collection, timeout=WRITE_S)
        if not self._lite:
            return self._generation if self._compact() else None
        old, new = self.collection, f"{self._base}_{self._generation + 1}"
        with self._told():
            self._client.drop_collection(new, timeout=WRITE_S)  # of an attempt that was cut off
            self._make(new)
            _copy(self._client, old, new)
            self._client.flush(new, timeout=WRITE_S)
        if self._count(new) != self._count(old):
            raise NotReached("the server did not keep a copy whole; what was forgotten stays in its files")
        self._generation += 1
        return self._generation

    def _compact(self) -> bool:
        again, self._asked = self._asked, True
        try:
            with self._told():
                job = self._client.compact(self.collection, timeout=WRITE_S)
                plans = self._client.get_compaction_plans(job, timeout=WRITE_S).plans
        except Refused:
            if not again:
                log.warning("what was forgotten stays in files of the server until its operator compacts")
            return False
        return again and bool(plans)

    def drop_before(self) -> None:
        """Drops the generation before this one, where ``purge`` began a new one."""
        with self._told():
            if self._generation:
                self._client.drop_collection(f"{self._base}_{self._generation - 1}", timeout=WRITE_S)

    def drop(self) -> str:
        """See ``Shelf``. A token may be good for rows alone: then they are deleted one by one."""
        try:
            with self._told():
                self._client.drop_collection(self.collection, timeout=WRITE_S)
        except Refused:
            self.delete([row.row_id for row in self.every()])
            return f"the server's operator has to drop the empty collection {self.collection}"
        self.drop_before()
        return ""

    def close(self) -> None:
        """See ``Shelf``."""
        self._client.close()

    def _find_generation(self) -> bool:
        names = self._client.list_collections(timeout=WRITE_S)
        found = [int(n.rpartition("_")[2]) for n in names if n.rpartition("_")[0] == self._base]
        self._generation = min(found, default=self._generation)  # a later one may be half a copy (purge)
        return bool(found)

    def _make(self, name: str) -> None:
        kinds = self._py.DataType
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", kinds.VARCHAR, max_length=32, is_primary=True)
        schema.add_field("shelf", kinds.INT8)
        schema.add_field(
            "sealed", kinds.ARRAY, element_type=kinds.VARCHAR, max_capacity=PIECES, max_length=65_535
        )
        schema.add_field("vector", kinds.FLOAT_VECTOR, dim=DIMENSIONS)
        index = self._client.prepare_index_params()
        # Exact: a wearer has some hundred thousand memories at most, and a graph would lose a few of them.
        index.add_index("vector", index_type="FLAT", metric_type="IP")
        self._client.create_collection(
            name, schema=schema, index_params=index, consistency_level="Strong", timeout=WRITE_S
        )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turns into `NotReached` what pymilvus raises, what it lets through of gRPC (a deadline, a method
        that an older server lacks), and what an answer that is none makes of it."""
        try:
            yield
        except BadMemory:
            raise
        except Exception as e:
            why = _why(e)
            raise (Refused if "permission deny" in why else NotReached)(
                f"the server that holds the memory cannot be used: {why}"
            ) from None


def _why(e: Exception) -> str:
    if "illegal connection params" in str(e) and isinstance(e.__context__, grpc.RpcError):
        e = e.__context__  # what pymilvus hides: which of the two, and why
    if isinstance(e, grpc.Call):
        text = str(e.details())
    else:
        text = str(getattr(e, "message", f"{type(e).__name__}: {e}"))
    if "unknown method" in text:
        text += "; Milvus 2.3 or newer is needed"
    return text[:300]


_FIELDS = ["id", "shelf", "sealed"]


def _copy(client: Any, source: str, target: str) -> None:
    """All rows of a collection to another, vectors too, a page at a time."""
    pages = client.query_iterator(
        source, batch_size=BATCH, output_fields=[*_FIELDS, "vector"], timeout=WRITE_S
    )
    while page := pages.next():
        client.upsert(target, [dict(entity) for entity in page], timeout=WRITE_S)
    pages.close()


def collection_of(wearer: str) -> str:
    """The beginning of the name of a wearer's collection: hex of a hash, whatever the wearer's name holds."""
    return f"os1_{hashlib.sha256(wearer.encode(errors='surrogatepass')).hexdigest()[:32]}"


def _entity(row: SealedRow, vector: Vector | None) -> dict[str, Any]:
    text = base64.b85encode(row.sealed).decode()
    return {
        "id": row.row_id.hex(),
        "shelf": row.shelf,
        "sealed": [text[at : at + PIECE] for at in range(0, len(text), PIECE)],
        "vector": (_NONE if vector is None else vector).tolist(),
    }


_NONE = np.zeros(DIMENSIONS, np.float32)
"""Stands where a row has no vector; its shelf is never searched."""


def _row(entity: Any) -> SealedRow:
    return SealedRow(
        bytes.fromhex(entity["id"]), int(entity["shelf"]), base64.b85decode("".join(entity["sealed"]))
    )


def _token(file: str) -> str:
    if not file:
        return ""
    try:
        return passphrase_in(Path(file))
    except BadKey as e:
        raise NotReached(str(e)) from None


def _pymilvus() -> ModuleType:
    try:
        found = importlib.import_module("pymilvus")
    except ModuleNotFoundError:
        raise NotReached("a hosted memory needs a package: pip install 'os1[hosted]'") from None
    for name in ("pymilvus", "milvus_lite"):  # they would print what was asked, with a trace, at each outage
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return found
