"""Versions of everything that decides about generated code, found in a millisecond: they are part of each kernel's key.

The compiler's own version is a digest of its files' contents.  Reading them takes ten milliseconds, so the digest is kept in
the cache folder under a digest of their names, sizes and times; whoever edits a file, even with its times put back, changes
that one.  Versions of packages are read off the names of their ``dist-info`` folders: ``importlib.metadata`` takes 30 ms to
import.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from tilelang_min.runtime.cache import cache_directory

TOOLS = (
    "apache-tvm",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-cuda-runtime",
    "nvidia-cuda-nvdisasm",
    "ziglang",
    "capstone",
    "pyelftools",
    "numpy",
)
"""Packages that decide about binaries, listings and the texts they are made from."""

_FOLDER = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.!+]+?)(?:-py[\d.]+)?\.(?:dist|egg)-info")
_DIGEST = re.compile(r"[0-9a-f]{16}")


@cache
def tool_versions() -> dict[str, str]:
    """Version by package; ``absent`` for one that is not installed.  ``tilelang_min`` stands for the compiler's own files."""
    found = installed_versions()
    return {
        "tilelang_min": own_version(),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        **{name: found.get(name, "absent") for name in TOOLS},
    }


@cache
def installed_versions() -> dict[str, str]:
    """Versions of the :data:`TOOLS` that are installed; of several on the path the first is the one that is imported."""
    wanted = {name.replace("-", "_"): name for name in TOOLS}
    versions: dict[str, str] = {}
    for place in sys.path:
        with suppress(OSError):
            for name in os.listdir(place or "."):
                folder = _FOLDER.fullmatch(name) if name.endswith((".dist-info", ".egg-info")) else None
                tool = wanted.get(folder["name"].replace(".", "_").lower()) if folder else None
                if folder is not None and tool is not None:
                    versions.setdefault(tool, folder["version"])
    return versions


@cache
def own_version() -> str:
    """A short digest of the contents of the compiler's own files, so that an edited compiler never meets old results."""
    return version_of(Path(__file__).parent.parent)


def version_of(root: Path) -> str:
    """:func:`own_version` of the package in folder ``root``."""
    files = sorted(_files(str(root)))
    state = hashlib.sha256()
    for name, status in files:
        times = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
        state.update(f"{name}\0{times}\n".encode(errors="surrogateescape"))
    note = cache_directory() / "versions" / state.hexdigest()[:32]
    with suppress(OSError, ValueError):
        kept = note.read_text(encoding="ascii")
        if _DIGEST.fullmatch(kept):
            return kept
    content = hashlib.sha256()
    for name, _ in files:
        path = Path(name)
        content.update(f"{path.relative_to(root)}\0".encode(errors="surrogateescape"))
        content.update(hashlib.sha256(path.read_bytes()).digest())
    made = content.hexdigest()[:16]
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=note.parent, prefix=".tlk-")
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(made)
        os.replace(temporary, note)
    return made


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Every file below a folder with its status, byte code left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif not entry.name.endswith(".pyc"):
                yield entry.path, entry.stat()
