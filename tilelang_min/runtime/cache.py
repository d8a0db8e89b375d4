"""The disk cache: a folder of bundles, one file for each content hash, with a size limit.

``TILELANG_CACHE_DIR`` names the folder (default ``~/.cache/tilelang_min``), ``TILELANG_CACHE_SIZE`` its limit (bytes, or with
``K``, ``M``, ``G``; default 1G; 0 keeps nothing).  Several processes and threads may use one cache at once:

* An entry is one file that appears and disappears whole: it is written beside its place and renamed.  A process that is killed
  meanwhile leaves a temporary file, which is removed an hour later.
* A reader has read all of an entry before it trusts any of it: the file ends in a digest of the rest.  What is cut off, damaged,
  of another kernel or no bundle at all is treated as absent, and replaced.
* A hit sets the file's time; where the limit is passed, the entries that were not used for longest go.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tilelang_min.errors import BundleError
from tilelang_min.runtime.bundle import Bundle, read_archive

DEFAULT_SIZE = 1 << 30
"""Limit of the cache in bytes where ``TILELANG_CACHE_SIZE`` is not set."""

ABANDONED_S = 3600.0
"""A temporary file older than this belongs to a process that was killed: none takes that long to write."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)
_SHARE = 16  # the folder is looked through again when a process has stored this part of the limit
_TEMPORARY = ".tlk-"

_unchecked: dict[Path, int] = {}  # bytes that this process stored in a folder since it looked through it


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the cache: its hash, size in bytes, and when it was last used (seconds since 1970)."""

    key: str
    path: Path
    size: int
    used: float


def cache_directory() -> Path:
    """Folder of the cache; it need not exist."""
    configured = os.environ.get("TILELANG_CACHE_DIR")
    return Path(configured) if configured else Path.home() / ".cache" / "tilelang_min"


def size_limit() -> int:
    """Most bytes that the entries may take.  Raises BundleError where ``TILELANG_CACHE_SIZE`` is no size."""
    configured = os.environ.get("TILELANG_CACHE_SIZE", "").strip()
    if not configured:
        return DEFAULT_SIZE
    size = _SIZE.fullmatch(configured)
    if size is None:
        raise BundleError(
            f"TILELANG_CACHE_SIZE is {configured!r}, which is no size",
            remedy="give bytes, or a number with K, M or G: TILELANG_CACHE_SIZE=500M",
        )
    return int(float(size[1]) * _UNITS[size[2].upper()])


def entry_path(key: str) -> Path:
    """Where the bundle with content hash ``key`` lies, or would."""
    return cache_directory() / key[:2] / f"{key}.tlk"


def fetch(key: str) -> Bundle | None:
    """The bundle with content hash ``key``, or None when there is no sound one.  Its time becomes now."""
    if size_limit() == 0:
        return None
    path = entry_path(key)
    try:
        bundle = read_archive(path.read_bytes(), sealed=True)
        if bundle.record.get("hash") != key:
            return None
    except (OSError, BundleError):
        return None
    with suppress(OSError):
        os.utime(path)
    return bundle


def store(key: str, bundle: Bundle) -> None:
    """Put ``bundle`` under ``key``.  A cache that cannot be written is no error: the kernel is compiled again next time."""
    limit = size_limit()
    if limit == 0:
        return
    path = entry_path(key)
    data = bundle.archive(level=1)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=_TEMPORARY)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            if path.is_dir():  # nothing of ours, and in the way
                shutil.rmtree(path)
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        _watch(path.parent.parent, len(data), limit)


def _watch(folder: Path, stored: int, limit: int) -> None:
    """Trim the cache at the first store of a process, and whenever it has stored a good part of the limit."""
    total = _unchecked.get(folder)
    if total is not None and total + stored < limit // _SHARE:
        _unchecked[folder] = total + stored
        return
    _unchecked[folder] = 0
    trim(limit)


def entries() -> list[Entry]:
    """All entries, the longest unused first."""
    found = []
    for file, status in _files():
        key = file.name.removesuffix(".tlk")
        if file.name.endswith(".tlk") and not file.name.startswith(_TEMPORARY):
            found.append(Entry(key, Path(file.path), status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def trim(limit: int) -> int:
    """Remove what was not used for longest until the rest takes at most ``limit`` bytes, and what killed processes left
    behind.  Returns the number of entries removed; other processes may do the same meanwhile."""
    before = time.time() - ABANDONED_S
    for file, status in _files():
        if file.name.startswith(_TEMPORARY) and status.st_mtime < before:
            _remove(file.path)
    kept = entries()
    total = sum(entry.size for entry in kept)
    removed = 0
    for entry in kept:
        if total <= limit:
            break
        _remove(entry.path)
        total -= entry.size
        removed += 1
    return removed


def clear() -> int:
    """Remove every entry, whoever made it, and what searches found; returns how many kernels.

    Those that were taken from the cache keep working.
    """
    removed = 0
    for file, _ in list(_files()):
        _remove(file.path)
        removed += not file.name.startswith(_TEMPORARY)
    for beside in ("versions", "tuned"):
        shutil.rmtree(cache_directory() / beside, ignore_errors=True)
    for folder in _folders():
        with suppress(OSError):
            os.rmdir(folder)
    return removed


def _folders() -> list[str]:
    """The folders that hold entries: named by the first two digits of their hashes."""
    try:
        with os.scandir(cache_directory()) as found:
            return sorted(folder.path for folder in found if re.fullmatch("[0-9a-f]{2}", folder.name))
    except OSError:
        return []


def _files() -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    """What lies in the folders of entries, with its state; what vanishes meanwhile is left out."""
    for folder in _folders():
        with suppress(OSError), os.scandir(folder) as found:
            for file in found:
                with suppress(OSError):
                    yield file, file.stat(follow_symlinks=False)


def _remove(path: str | Path) -> None:
    """Remove a file or folder, unless somebody else has."""
    try:
        os.unlink(path)
    except IsADirectoryError:
        shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass
