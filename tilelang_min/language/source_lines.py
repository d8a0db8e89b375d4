"""The lines of a function as its author wrote them: what the front end reads and what a kernel's key is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tilelang_min.errors import LanguageError


def source_lines(function: Callable[..., Any]) -> tuple[list[str], int]:
    """Lines of ``function``, with their ends, and the number of the first in its file.

    Raises LanguageError when Python cannot show the source (a function made by ``exec``, or an edited interactive cell).
    """
    try:
        return inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise LanguageError(
            f"the source of kernel {function.__name__!r} cannot be read ({error})",
            remedy="define the kernel in a file or a notebook cell; functions made by exec() have no source",
        ) from error
