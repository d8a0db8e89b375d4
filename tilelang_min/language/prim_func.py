"""``@T.prim_func`` and ``T.Tensor``: a kernel before anything has been compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Tensor:
    """Annotation of a kernel parameter: a dense, row-major tensor in the memory of the kernel's device.

    ``shape``: integers (elements); ``dtype``: a data type name such as ``"float16"``.
    """

    shape: Any
    dtype: Any = "float32"


@dataclass(frozen=True, slots=True)
class PrimFunc:
    """A kernel as its author wrote it: the Python function and the names it sees.

    ``scope`` holds the local variables of the place where the function was defined, so that annotations kept as text
    (``from __future__ import annotations``) can name them.
    """

    function: Callable[..., Any]
    scope: dict[str, Any] = field(repr=False, compare=False)
    label: str | None = None

    @property
    def name(self) -> str:
        """Name of the kernel: the Python function's, or ``label`` where a factory gives its own name to a plain ``main``."""
        return self.label or self.function.__name__


def prim_func(function: Callable[..., Any]) -> PrimFunc:
    """Mark ``function`` as a kernel.  Its source is read when it is compiled; the function itself is never called."""
    return PrimFunc(function, dict(sys._getframe(1).f_locals))
