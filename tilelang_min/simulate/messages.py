"""How tile operations are named where a simulation fails."""

from __future__ import annotations

from tilelang_min.errors import SimulationError
from tilelang_min.program import SourceLocation, ThreadProgram


def label_of(program: ThreadProgram, operation: int) -> str:
    """A tile operation as shown in messages."""
    found = next((o for o in program.operations if o.id == operation), None)
    return f"operation {operation}" if found is None else f"{found.label} (line {found.location.line})"


class Messages:
    """What speaks of the operations of ``program``: a machine, a cluster."""

    program: ThreadProgram

    def location(self, operation: int) -> SourceLocation | None:
        """The source location of a tile operation."""
        return next((o.location for o in self.program.operations if o.id == operation), None)

    def label(self, operation: int) -> str:
        """See :func:`label_of`."""
        return label_of(self.program, operation)

    def error(self, message: str, operation: int, remedy: str | None = None) -> SimulationError:
        """An error at the source line of an operation."""
        return SimulationError(message, location=self.location(operation), remedy=remedy)


__all__ = ["Messages", "label_of"]
