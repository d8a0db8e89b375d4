"""A machine listing: instructions of the generated binary with the tile operation each belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

INSTRUCTION_CLASSES = (
    "matrix",  # mma, HMMA, MFMA
    "fma",  # fused multiply-add, scalar, packed or vector
    "float",  # other floating-point arithmetic
    "integer",  # integer, address and logic arithmetic
    "convert",  # conversions between types
    "special",  # transcendental functions, reciprocals
    "move",  # moves, permutes, shuffles, selects
    "global_load",
    "global_store",
    "shared_load",
    "shared_store",
    "ldmatrix",
    "async_copy",  # cp.async, its commit and its waits
    "local_load",  # local or scratch memory: spills and indexed arrays
    "local_store",
    "barrier",
    "wait",  # s_waitcnt, DEPBAR
    "branch",
    "constant_load",  # scalar and constant-bank loads
    "other",
)
"""Classes by which instructions are counted, the same on every target."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction.

    ``offset`` is the byte offset from the start of the kernel (None where the listing has no addresses), ``operation`` the
    id of its tile operation or None when unattributed, ``line`` the line of the author's source.
    """

    text: str
    opcode: str
    klass: str
    operation: int | None
    line: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Listing:
    """All instructions of one kernel in program order, and the text they were read from."""

    instructions: tuple[Instruction, ...]
    syntax: str  # "sass", "gcn" or "x86"
    text: str = field(repr=False, default="")

    @property
    def attributed_fraction(self) -> float:
        """Share of instructions that belong to a tile operation, 0 to 1 (1 for an empty listing)."""
        if not self.instructions:
            return 1.0
        return sum(i.operation is not None for i in self.instructions) / len(self.instructions)

    def by_class(self, operation: int | None | str = "all") -> dict[str, int]:
        """Instruction counts by class, for the whole kernel or for one operation id (None: the unattributed)."""
        chosen = (i for i in self.instructions if operation == "all" or i.operation == operation)
        return dict(sorted(Counter(i.klass for i in chosen).items()))

    def by_operation(self) -> dict[int | None, dict[str, int]]:
        """Instruction counts by class for each operation id; key None holds the unattributed."""
        counts: dict[int | None, Counter[str]] = {}
        for instruction in self.instructions:
            counts.setdefault(instruction.operation, Counter())[instruction.klass] += 1
        return {key: dict(sorted(value.items())) for key, value in counts.items()}

    def to_json(self) -> dict[str, Any]:
        """Column-wise JSON, without ``text`` (stored as its own file in a bundle)."""
        return {
            "syntax": self.syntax,
            "columns": ["text", "opcode", "class", "operation", "line", "offset"],
            "rows": [[i.text, i.opcode, i.klass, i.operation, i.line, i.offset] for i in self.instructions],
        }

    @classmethod
    def from_json(cls, record: dict[str, Any], text: str = "") -> Listing:
        """The listing that :meth:`to_json` wrote."""
        rows: Sequence[Sequence[Any]] = record["rows"]
        return cls(tuple(Instruction(*row) for row in rows), record["syntax"], text)
