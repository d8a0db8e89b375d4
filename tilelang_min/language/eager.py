"""``T.const`` and ``T.empty``: what stands in front of ``with T.Kernel(...)`` where the jitted function is the kernel itself.

These lines are Python.  They run once more whenever the kernel is made for other arguments, with :class:`Lines` as what the two
names talk to.  What the lines leave behind, with the kernel's parameters, is a :class:`Made`, which the front end reads.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tilelang_min.errors import LanguageError
from tilelang_min.language.prim_func import Tensor


class NotKnownYet(TypeError):
    """Something would have to know an :class:`Unknown`."""


class Unknown:
    """A number that is not known yet: a dimension by ``T.const`` whose tensor has not been annotated, or what is computed of one.

    It may be passed on and computed with; whatever would have to know it raises NotKnownYet.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    def _computed(self, *others: Any) -> Unknown:
        return Unknown()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _computed
    __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __pos__ = _computed
    __lshift__ = __rshift__ = __and__ = __or__ = __xor__ = _computed

    def _needed(self, *others: Any) -> bool:
        raise NotKnownYet(f"the dimension {self.name or 'computed here'} is not known yet")

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __index__ = __int__ = __float__ = _needed
    __hash__ = None  # type: ignore[assignment]


class Named(int):
    """A dimension whose number is known, while it is still of interest which ``T.const`` it is."""

    name: str

    def __new__(cls, name: str, number: int) -> Named:
        made = super().__new__(cls, number)
        made.name = name
        return made


class Unannotated:
    """A tensor parameter in front of its annotation: nothing is known of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        raise LanguageError(
            f"{self._name}.{attribute} is asked for in front of the annotation of {self._name}",
            remedy=f"write {self._name}: T.Tensor((M, N), 'float16') first, and name dimensions with T.const",
        )


@dataclass(eq=False)
class Output:
    """A tensor that a call allocates and returns.  ``place`` is the statement that made it."""

    shape: Any
    dtype: Any
    place: Any = field(default=None, repr=False)

    @property
    def tensor(self) -> Tensor:
        """The annotation that it would have as a parameter."""
        return Tensor(self.shape, self.dtype)


@dataclass(frozen=True, slots=True)
class Made:
    """A kernel's function for certain arguments.

    ``tensors``: its tensor parameters in order.  ``outputs``: those that a call allocates, in the order in which it returns them;
    they stand behind the others.  ``values``: the compile-time arguments, and the dimensions of ``T.const``.
    """

    tensors: tuple[tuple[str, Tensor], ...]
    outputs: tuple[tuple[str, Tensor], ...]
    values: dict[str, Any] = field(compare=False)

    @property
    def parameters(self) -> tuple[tuple[str, Tensor], ...]:
        """All parameters of the kernel in order."""
        return self.tensors + self.outputs


class Lines:
    """The lines of one function while they run.

    ``dimension`` says what stands for the dimension of a name.
    """

    def __init__(self, dimension: Callable[[str], Any]) -> None:
        self.dimension = dimension
        self.place: Any = None
        self.constants: dict[str, Any] = {}
        self.outputs: list[Output] = []


running: ContextVar[Lines | None] = ContextVar("running", default=None)
"""The lines that run in this context, if any."""

_REMEDY = "write it in front of `with T.Kernel(...)`, in a function under @tilelang.jit whose body is the kernel"


def const(names: str, dtype: str = "int32") -> Any:
    """Dimensions that are known when the kernel is compiled: those of the tensors that a call is given.

    ``names``: one or several, separated by commas or blanks (``M, N = T.const("M, N")``).  Each must be a dimension of an annotated
    tensor as it stands, or be passed by keyword.  Raises LanguageError elsewhere than in such a function, and for what is no name.
    """
    lines = running.get()
    if lines is None:
        raise LanguageError(f"T.const({names!r}) was called where no arguments are known", remedy=_REMEDY)
    found = names.replace(",", " ").split()
    for name in found:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise LanguageError(
                f"T.const({names!r}): {name!r} is no name", remedy="use letters, digits and _, and no word of Python"
            )
    if not found:
        raise LanguageError("T.const needs a name", remedy='write M = T.const("M")')
    if not str(dtype).removeprefix("u").startswith("int"):
        raise LanguageError(f"T.const({names!r}, {dtype!r}): dimensions are integers", remedy="leave the type out")
    for name in found:
        lines.constants.setdefault(name, lines.place)
    made = tuple(lines.dimension(name) for name in found)
    return made if len(made) > 1 else made[0]


def empty(*shape: Any, dtype: Any = None) -> Any:
    """A tensor that the kernel writes, and that a call allocates and returns: ``T.empty((M, N), "float16")``.

    As in TileLang the extents may also be arguments of their own, with ``dtype=`` by name; without it the type is float32.  Raises
    LanguageError elsewhere than in a function whose body is the kernel, and for what is no shape.
    """
    lines = running.get()
    if lines is None:
        raise LanguageError("T.empty was called where no kernel is made", remedy=_REMEDY)
    extents: Any = shape
    if shape and isinstance(shape[0], (tuple, list)):
        extents, *rest = shape
        if len(rest) > 1 or (rest and dtype is not None):
            raise LanguageError("T.empty takes a shape and a data type", remedy="write C = T.empty((M, N), 'float16')")
        dtype = rest[0] if rest else dtype
    elif shape and isinstance(shape[-1], str):
        raise LanguageError(
            f"T.empty has {shape[-1]!r} among its extents",
            remedy="write the shape in brackets: T.empty((M, N), 'float16')",
        )
    made = Output(tuple(extents), "float32" if dtype is None else dtype, lines.place)
    lines.outputs.append(made)
    return made


__all__ = ["Lines", "Made", "Named", "NotKnownYet", "Output", "Unannotated", "Unknown", "const", "empty", "running"]
