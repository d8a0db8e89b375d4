"""Writes all files of a run that are rendered from its store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tileprof.report import html, result, summary, table
from tileprof.report.writing import replace_file
from tileprof.store.records import Run

RENDERERS: dict[str, Callable[[Run], str]] = {
    "result.json": result.render,
    "metrics.csv": table.render,
    "summary.md": summary.render,
    "index.html": html.render,
}
"""File name -> what renders it.  The data come first: they are there even where a page cannot be drawn."""


def write_files(run: Run, directory: Path) -> list[Path]:
    """Render every file into ``directory``, replacing older ones in one step each.  Raises StoreError where it cannot write."""
    return [replace_file(directory / name, render(run)) for name, render in RENDERERS.items()]
