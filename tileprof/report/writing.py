"""Writing a file in one step, so that a reader never meets half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tileprof.errors import StoreError

RENDER_AGAIN = "free some space, and render again with `tileprof report`"


def replace_file(path: Path, text: str, remedy: str = RENDER_AGAIN) -> Path:
    """Write ``text`` to ``path`` whole or not at all.  Raises StoreError with ``remedy``."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, 0o644)  # mkstemp makes it private, a report is for others too
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", remedy=remedy) from error
    return path
