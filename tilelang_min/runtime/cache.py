"""The disk cache: a folder of bundles, one for each content hash.

``TILELANG_CACHE_DIR`` names the folder (default ``~/.cache/tilelang_min``).  An entry that cannot be read is treated as absent and
replaced.  Entries appear by an atomic rename, so that several processes may fill the cache at once.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tilelang_min.errors import BundleError
from tilelang_min.runtime.bundle import Bundle, load_bundle


def cache_directory() -> Path:
    """Folder of the cache; it need not exist."""
    configured = os.environ.get("TILELANG_CACHE_DIR")
    return Path(configured) if configured else Path.home() / ".cache" / "tilelang_min"


def fetch(key: str) -> Bundle | None:
    """The bundle with content hash ``key``, or None when there is no readable one."""
    path = cache_directory() / key[:2] / key
    if not path.is_dir():
        return None
    try:
        bundle = load_bundle(path)
        if bundle.record.get("hash") != key:
            return None
        bundle.file(bundle.record["binary"]["file"])
    except BundleError:
        return None
    return bundle


def store(key: str, bundle: Bundle) -> None:
    """Put ``bundle`` under ``key``.  A cache that cannot be written is no error: the kernel is compiled again next time."""
    with suppress(OSError):
        bundle.save(cache_directory() / key[:2] / key)
