"""Writes all files of a run that are rendered from its store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from tileprof.errors import StoreError
from tileprof.report import html, result, summary, table
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


def replace_file(path: Path, text: str) -> Path:
    """Write ``text`` to ``path`` whole or not at all.  Raises StoreError."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, 0o644)  # mkstemp makes it private, a report is for others too
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        remedy = "free some space, and render again with `tileprof report`"
        raise StoreError(f"cannot write {path}: {error.strerror}", remedy=remedy) from error
    return path
