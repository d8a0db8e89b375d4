"""The tile operation: the unit to which every fact is attributed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in the kernel author's source.

    ``line`` counts from 1, ``column`` from 0 (as Python's ``ast`` does); ``text`` is the source line without its newline.
    """

    file: str
    line: int
    column: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class TileOperation:
    """One statement of the kernel that moves or computes a tile, or a loop or kernel that holds such statements.

    ``id`` is stable for one source: 0 is the kernel itself (index arithmetic, prologue), others count in source order.
    ``kind`` is one of ``kernel``, ``loop``, ``copy``, ``gemm``, ``fill``, ``parallel``, ``reduce``, ``store``, ``barrier``.
    ``parent`` is the id of the enclosing loop or kernel (None for the kernel).  ``reads`` and ``writes`` are buffer names.
    """

    id: int
    kind: str
    label: str
    location: SourceLocation
    parent: int | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary; :meth:`from_json` is its inverse."""
        record = asdict(self)
        record["reads"] = list(self.reads)
        record["writes"] = list(self.writes)
        return record

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> TileOperation:
        """The operation that :meth:`to_json` wrote."""
        return cls(
            id=record["id"],
            kind=record["kind"],
            label=record["label"],
            location=SourceLocation(**record["location"]),
            parent=record["parent"],
            reads=tuple(record["reads"]),
            writes=tuple(record["writes"]),
        )
