"""How a thread program says an atomic: the name of a call that each code generator defines and the simulator executes.

``Evaluate(call_extern("void", "__tl_atomic_shared_add_float32", address_of(buffer[i]), value))`` adds a value to an element; of
pairs (``float16x2``) both values are passed, the one for the lower address first.  No order between threads is promised, and
nothing is returned.
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "__tl_atomic_"
"""Begin of the names of atomic calls."""


@dataclass(frozen=True, slots=True)
class AtomicCall:
    """``operation`` is ``add``, ``max`` or ``min``; ``dtype`` the type of an element as the instruction takes it (that of the
    buffer, or one of the same size); ``lanes`` 1, or 2 for a pair of 16-bit floats."""

    space: str
    operation: str
    dtype: str
    lanes: int = 1

    @property
    def kind(self) -> str:
        """``add.float16x2``: what tables of targets are keyed by."""
        return f"{self.operation}.{self.dtype}" + (f"x{self.lanes}" if self.lanes > 1 else "")

    @property
    def name(self) -> str:
        """The name that is called."""
        return f"{PREFIX}{self.space}_{self.kind.replace('.', '_')}"

    @classmethod
    def parse(cls, name: str) -> AtomicCall:
        """The inverse of :attr:`name`.  Raises ValueError for other names."""
        if not name.startswith(PREFIX):
            raise ValueError(name)
        space, operation, dtype = name.removeprefix(PREFIX).split("_", 2)
        pair = dtype.endswith("x2")
        return cls(space, operation, dtype.removesuffix("x2"), 2 if pair else 1)


__all__ = ["PREFIX", "AtomicCall"]
