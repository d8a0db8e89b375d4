"""Finding a kernel's source and turning syntax nodes into places in the author's file."""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelang_min.errors import LanguageError
from tilelang_min.program import SourceLocation


@dataclass(frozen=True)
class KernelSource:
    """The syntax tree of one function, with what is needed to name places in its file.

    ``first_line`` is the file's line of the function's first source line, ``indent`` the columns cut by dedenting.
    """

    file: str
    first_line: int
    indent: int
    lines: tuple[str, ...]
    function: ast.FunctionDef

    def location(self, node: ast.AST) -> SourceLocation:
        """Where ``node`` stands in the author's file."""
        line = getattr(node, "lineno", 1)
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return SourceLocation(
            self.file,
            self.first_line + line - 1,
            getattr(node, "col_offset", 0) + self.indent,
            " " * self.indent + text,
        )

    def segment(self, node: ast.AST, limit: int = 100) -> str:
        """The source text of ``node`` on one line, shortened to ``limit`` characters."""
        text = ast.get_source_segment("\n".join(self.lines), node) or ast.unparse(node)
        text = " ".join(text.split())
        return text if len(text) <= limit else text[: limit - 1] + "…"


def read_source(function: Callable[..., Any]) -> KernelSource:
    """Source and syntax tree of ``function``.

    Raises LanguageError when Python cannot show the source (a function made by ``exec``, or an edited interactive cell).
    """
    try:
        raw, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise LanguageError(
            f"the source of kernel {function.__name__!r} cannot be read ({error})",
            remedy="define the kernel in a file or a notebook cell; functions made by exec() have no source",
        ) from error
    text = textwrap.dedent("".join(raw))
    indent = len(raw[0]) - len(raw[0].lstrip())
    tree = ast.parse(text)
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise LanguageError(
            f"kernel {function.__name__!r} is not a plain function", remedy="use def, not lambda or async def"
        )
    file = inspect.getsourcefile(function) or "<unknown>"
    if not file.startswith("<"):
        file = os.path.abspath(file)
    return KernelSource(file, first_line, indent, tuple(text.splitlines()), node)
