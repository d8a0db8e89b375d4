"""``T.dynamic``: dimensions that are known when a kernel is launched, not when it is compiled."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from typing import Any

from tilelang_min.errors import LanguageError


class _Arithmetic:
    """Whole-number arithmetic outside of kernels: what it gives is computed where it is used, inside one."""

    def __add__(self, other: Any) -> Computed:
        return _computed("+", self, other)

    def __radd__(self, other: Any) -> Computed:
        return _computed("+", other, self)

    def __sub__(self, other: Any) -> Computed:
        return _computed("-", self, other)

    def __rsub__(self, other: Any) -> Computed:
        return _computed("-", other, self)

    def __mul__(self, other: Any) -> Computed:
        return _computed("*", self, other)

    def __rmul__(self, other: Any) -> Computed:
        return _computed("*", other, self)

    def __floordiv__(self, other: Any) -> Computed:
        return _computed("//", self, other)

    def __rfloordiv__(self, other: Any) -> Computed:
        return _computed("//", other, self)

    def __mod__(self, other: Any) -> Computed:
        return _computed("%", self, other)

    def __rmod__(self, other: Any) -> Computed:
        return _computed("%", other, self)

    def _needed(self, *others: Any) -> bool:
        raise LanguageError(
            f"{self} is known at launch alone and cannot decide anything before", remedy="compare it inside the kernel"
        )

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __index__ = _needed


@dataclass(frozen=True, slots=True)
class Dynamic(_Arithmetic):
    """A dimension of that name; inside a kernel it stands for an int32 expression, and so does what is computed of it."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Computed(_Arithmetic):
    """``left operator right``, of runtime dimensions and integers."""

    operator: str
    left: Any
    right: Any

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


def _computed(operator: str, left: Any, right: Any) -> Computed:
    if all(isinstance(item, (int, _Arithmetic)) and not isinstance(item, bool) for item in (left, right)):
        return Computed(operator, left, right)
    return NotImplemented  # type: ignore[no-any-return]


def dynamic(names: str, dtype: str = "int32") -> Dynamic | tuple[Dynamic, ...]:
    """A runtime dimension for shapes of ``T.Tensor``; a tuple of them for several names (``"m, n"``).

    Two dimensions of one name are the same size.  Raises LanguageError for what is no name, and for other types than int32.
    """
    made = tuple(Dynamic(name) for name in names.replace(",", " ").split())
    for item in made:
        if not (item.name.isidentifier() and item.name.isascii()) or keyword.iskeyword(item.name):
            raise LanguageError(
                f"T.dynamic({names!r}): {item.name!r} is no name",
                remedy="use letters, digits and _, and no word of Python",
            )
    if not made:
        raise LanguageError("T.dynamic needs a name", remedy='write M = T.dynamic("m")')
    if dtype not in ("int32", "int"):
        raise LanguageError(
            f"T.dynamic({names!r}, {dtype!r}): runtime dimensions are int32", remedy="leave the type out"
        )
    return made if len(made) > 1 else made[0]


symbolic = dynamic
"""TileLang's other name of it."""
