"""``@T.prim_func`` and ``T.Tensor``: a kernel before anything has been compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from tilelang_min.errors import LanguageError
from tilelang_min.language.source_lines import remember_source
from tilelang_min.language.types import normal_dtype

if TYPE_CHECKING:
    from tilelang_min.language.eager import Made


@dataclass(frozen=True, slots=True)
class Tensor:
    """Annotation of a kernel parameter: a dense, row-major tensor in the memory of the kernel's device.

    ``shape``: integers (elements) and runtime dimensions (``T.dynamic``); ``dtype``: a data type name such as ``"float16"``.
    """

    shape: Any
    dtype: Any = "float32"

    def __class_getitem__(cls, item: Any) -> Tensor:
        """Also ``T.Tensor[(M, N), "float32"]``, ``T.Tensor[[M, N], "float32"]``, ``T.Tensor[M, N]``, ``T.Tensor[M]``."""
        if not isinstance(item, tuple):
            return cls(item)
        if isinstance(item[0], (tuple, list)) or normal_dtype(item[-1]) or isinstance(item[-1], str):
            return cls(*item)
        return cls(item)


Buffer = Tensor
"""TVM's name of the same annotation."""
SharedBuffer = FragmentBuffer = LocalBuffer = Tensor
"""TileLang's annotations of a macro's parameters; a macro takes what it is given."""


@dataclass(frozen=True, slots=True)
class PrimFunc:
    """A kernel as its author wrote it: the Python function and the names it sees.

    ``scope`` holds the local variables of the place where the function was defined, so that annotations kept as text
    (``from __future__ import annotations``) can name them.  ``made`` is set where the jitted function itself is the kernel, made
    for certain arguments; ``scope`` then holds what the lines in front of its ``with T.Kernel(...)`` left behind.
    """

    function: Callable[..., Any]
    scope: dict[str, Any] = field(repr=False, compare=False)
    label: str | None = None
    made: Made | None = None

    @property
    def name(self) -> str:
        """Name of the kernel: the Python function's, or ``label`` where a factory gives its own name to a plain ``main``."""
        return self.label or self.function.__name__


@dataclass(frozen=True, slots=True)
class Macro:
    """A function whose statements stand in kernels in place of calls of it."""

    function: Callable[..., Any]
    scope: dict[str, Any] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The Python function's name."""
        return self.function.__name__

    @property
    def launches(self) -> bool:
        """Whether ``with T.Kernel(...)`` stands in it: its call is then all of a kernel."""
        return "Kernel" in self.function.__code__.co_names

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Macros only mean something in the source of a ``@T.prim_func``."""
        raise LanguageError(
            f"macro {self.name} was called outside a kernel, or inside an expression",
            remedy="write the call as a statement of its own inside a kernel",
        )


def macro(function: Callable[..., Any]) -> Macro:
    """Mark ``function`` as a macro: a kernel that calls it has its statements in place of the call."""
    return Macro(function, _names_around(function, sys._getframe(1)))


def prim_func(function: Callable[..., Any]) -> PrimFunc:
    """Mark ``function`` as a kernel.  Its source is read when it is compiled; the function itself is never called."""
    return PrimFunc(function, _names_around(function, sys._getframe(1)))


def _names_around(function: Callable[..., Any], frame: FrameType) -> dict[str, Any]:
    """Names where a function is defined; in a module, which is being imported, its source is remembered."""
    if frame.f_locals is frame.f_globals:
        remember_source(function)
    return dict(frame.f_locals)
