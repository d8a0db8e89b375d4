"""Pieces of Markdown: escaped text, tables and lists that are cut where they would be too long."""

from __future__ import annotations

import re

from tileprof.report import numbers

MOST_ROWS = 40
"""Rows of a table before the rest is only counted."""


def escape(text: str, longest: int = 200) -> str:
    """Text that means nothing to Markdown or HTML, on one line, cut to ``longest`` characters."""
    text = " ".join(str(text).split())
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]|#~@])", r"\\\1", text)


def table(header: list[str], rows: list[list[str]], numeric_from: int | None = None) -> str:
    """A table of cells that are escaped already; columns from ``numeric_from`` on stand to the right."""
    rule = ["---:" if numeric_from is not None and column >= numeric_from else "---" for column in range(len(header))]
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, rule, *rows[:MOST_ROWS])]
    if len(rows) > MOST_ROWS:
        lines += ["", f"and {numbers.count(len(rows) - MOST_ROWS)} more rows"]
    return "\n".join(lines)


def cut(lines: list[str]) -> str:
    """The first lines, and how many more there are."""
    rest = len(lines) - MOST_ROWS
    return "\n".join(lines[:MOST_ROWS] + ([f"- and {numbers.count(rest)} more"] if rest > 0 else []))
