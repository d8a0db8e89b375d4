"""``T.dynamic``: dimensions that are known when a kernel is launched, not when it is compiled."""

from __future__ import annotations

import keyword
from dataclasses import dataclass

from tilelang_min.errors import LanguageError


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A dimension of that name.  Arithmetic with it is written inside a kernel, where it stands for an int32 expression."""

    name: str


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
