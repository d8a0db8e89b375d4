"""Which source line stands for which tile operation in the line table of a cubin.

A line table knows a file and a line, no operation.  An operation gets its own line of the author's file where it is the
first on that line; every later operation of the same line gets the file name with ``#op<id>`` behind it, so that two
statements on one line stay apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilelang_min.program import TileOperation

_UNSAFE = re.compile(r'["\\\x00-\x1f\x7f]')


class OperationLines:
    """Both directions of the mapping between operations and (file, line)."""

    def __init__(self, operations: Iterable[TileOperation]) -> None:
        self._places: dict[int, tuple[str, int]] = {}
        self._operations: dict[tuple[str, int], int] = {}
        for operation in sorted(operations, key=lambda item: item.id):
            file, line = _file_name(operation.location.file), operation.location.line
            if (file, line) in self._operations:
                file = f"{file}#op{operation.id}"
            self._places[operation.id] = (file, line)
            self._operations[file, line] = operation.id

    def place(self, operation: int) -> tuple[str, int]:
        """File name and line that stand for an operation (KeyError for one that the program does not have)."""
        return self._places[operation]

    def operation(self, file: str, line: int) -> int | None:
        """The operation that a row of the line table belongs to, or None."""
        return self._operations.get((file, line))


def _file_name(file: str) -> str:
    """A name that survives NVRTC, ptxas and nvdisasm.

    ptxas takes a relative name for one in the current directory, and cannot read back quotes and backslashes.
    """
    name = _UNSAFE.sub("_", file)
    return name if name.startswith("/") else f"/{name}"
