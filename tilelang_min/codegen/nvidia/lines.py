"""Which source line stands for which tile operation in the line table of a cubin.

A line table knows a file and a line, no operation.  An operation gets the author's file and line where no operation before
it has that line number.  Every other one gets a place of its own: the file name with ``#op<id>`` behind it, and line
``STAND_IN_LINE + id``.  The number must differ too, whatever the file: ptxas starts no new row of its table when the next
instruction comes from another file but from the same line number (ptxas 13.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilelang_min.program import TileOperation

STAND_IN_LINE = 1_000_000
"""Beyond the lines of any author's file."""

_UNSAFE = re.compile(r'[^ -~]|["\\]')


class OperationLines:
    """Both directions of the mapping between operations and (file, line)."""

    def __init__(self, operations: Iterable[TileOperation]) -> None:
        self._places: dict[int, tuple[str, int]] = {}
        self._operations: dict[tuple[str, int], int] = {}
        self._source_lines: dict[int, int] = {}
        operations = list(operations)
        self.products = frozenset(item.id for item in operations if item.kind == "gemm")
        """Operations that are matrix products."""
        taken: set[int] = set()
        for operation in sorted(operations, key=lambda item: item.id):
            file, line = _file_name(operation.location.file), operation.location.line
            self._source_lines[operation.id] = line
            if line in taken:
                file, line = f"{file}#op{operation.id}", STAND_IN_LINE + operation.id
            taken.add(line)
            self._places[operation.id] = (file, line)
            self._operations[file, line] = operation.id

    def place(self, operation: int) -> tuple[str, int]:
        """File name and line that stand for an operation (KeyError for one that the program does not have)."""
        return self._places[operation]

    def operation(self, file: str, line: int) -> int | None:
        """The operation that a row of the line table belongs to, or None."""
        return self._operations.get((file, line))

    def source_line(self, operation: int) -> int:
        """The author's line of an operation."""
        return self._source_lines[operation]


def _file_name(file: str) -> str:
    """A name that survives NVRTC, ptxas and nvdisasm.

    ptxas takes a relative name for one in the current directory, cannot read back quotes, and sees a path separator in
    the backslashes with which NVRTC escapes whatever is not ASCII.
    """
    name = _UNSAFE.sub("_", file)
    return name if name.startswith("/") else f"/{name}"
