"""Finding a kernel's source and turning syntax nodes into places in the author's file."""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilelang_min.errors import LanguageError
from tilelang_min.language.source_lines import source_lines
from tilelang_min.program import SourceLocation


@dataclass(frozen=True)
class KernelSource:
    """The syntax tree of one function, with what is needed to name places in its file.

    ``file`` is the file's name in texts, ``path`` what opens it: they differ where its bytes are not in the system's encoding.
    ``lines`` are the function's lines as they stand in the file, the first of them being the file's line ``first_line``;
    ``shift`` is how many lines stand before them in ``text``, which was parsed.
    """

    file: str
    path: str
    first_line: int
    lines: tuple[str, ...]
    function: ast.FunctionDef
    text: str = field(repr=False)
    shift: int

    def location(self, node: ast.AST) -> SourceLocation:
        """Where ``node`` stands in the author's file."""
        line = getattr(node, "lineno", 1 + self.shift) - self.shift
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        # Python counts columns in bytes of UTF-8, people and carets in characters.
        column = len(text.encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore"))
        return SourceLocation(self.file, self.first_line + line - 1, column, text)

    def segment(self, node: ast.AST, limit: int = 100) -> str:
        """The source text of ``node`` on one line, shortened to ``limit`` characters."""
        text = ast.get_source_segment(self.text, node) or ast.unparse(node)
        text = " ".join(text.split())
        return text if len(text) <= limit else text[: limit - 1] + "…"


def read_source(function: Callable[..., Any]) -> KernelSource:
    """Source and syntax tree of ``function``.

    Raises LanguageError when Python cannot show the source (a function made by ``exec``, or an edited interactive cell).
    """
    raw, first_line = source_lines(function)
    source = "".join(raw)
    # An indented function is parsed inside a block: cutting the indentation off would be wrong for comments and strings
    # that begin further to the left.
    shift = 1 if raw[0][:1].isspace() else 0
    text = "if True:\n" + source if shift else source
    node: ast.AST | None = None
    try:
        node = ast.parse(text).body[0]
        if shift and isinstance(node, ast.If):
            node = node.body[0]
    except SyntaxError:
        pass  # the lines of a lambda need not be a statement of their own
    if not isinstance(node, ast.FunctionDef):
        raise LanguageError(
            f"kernel {function.__name__!r} is not a plain function", remedy="use def, not lambda or async def"
        )
    file = inspect.getsourcefile(function) or function.__code__.co_filename
    if not file.startswith("<"):
        file = os.path.abspath(file)
    # Python holds bytes of a name that are not in its encoding as lone surrogates, which nothing can print or store
    shown = file.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return KernelSource(shown, file, first_line, tuple(line.rstrip("\r\n") for line in raw), node, text, shift)
