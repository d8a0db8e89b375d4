"""The disk cache of compiled kernels, for people: ``python -m tilelang_min.cache [show | list | clear | path]``.

``show`` (the default) says where the cache is, what it holds and its limit, ``list`` names the kernels, the last used first,
``clear`` removes them all, ``path`` prints the folder alone.  ``TILELANG_CACHE_DIR`` and ``TILELANG_CACHE_SIZE`` set folder and
limit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from tilelang_min.errors import BundleError, TileLangError
from tilelang_min.runtime import cache
from tilelang_min.runtime.bundle import read_archive
from tilelang_min.streams import steady_streams


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (2: a setting cannot be understood, or the output not written)."""
    parser = argparse.ArgumentParser(prog="python -m tilelang_min.cache", description=__doc__.splitlines()[0])
    parser.add_argument("command", nargs="?", default="show", choices=tuple(_COMMANDS))
    with steady_streams() as streams:
        command = parser.parse_args(arguments).command
        try:
            print(_COMMANDS[command]())
        except TileLangError as error:
            print(error, file=sys.stderr)
            return 2
    if streams.output_lost is not None:
        print(f"standard output cannot be written: {streams.output_lost.strerror}", file=sys.stderr)
        return 2
    return 0


def _show() -> str:
    entries = cache.entries()
    limit = cache.size_limit()
    lines = [
        f"folder   {cache.cache_directory()}",
        f"kernels  {len(entries)}",
        f"size     {_size(sum(entry.size for entry in entries))}, limit {_size(limit)} (TILELANG_CACHE_SIZE)",
    ]
    if entries:
        lines.append(f"used     last {_age(entries[-1].used)}, longest unused {_age(entries[0].used)}")
    return "\n".join(lines)


def _list() -> str:
    lines = []
    for entry in reversed(cache.entries()):
        try:
            record = read_archive(entry.path.read_bytes(), sealed=True).record
            kernel = f"{record['target']:<14} {record['name']} grid {'x'.join(map(str, record['grid']))}"
        except (OSError, BundleError):
            kernel = "damaged: it is rebuilt when it is asked for"
        lines.append(f"{entry.key[:12]}  {_size(entry.size):>9}  {_age(entry.used):>11}  {kernel}")
    return "\n".join(lines) if lines else "the cache is empty"


def _clear() -> str:
    removed = cache.clear()
    return f"{removed} kernel{'' if removed == 1 else 's'} removed from {cache.cache_directory()}"


def _size(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _age(moment: float) -> str:
    seconds = max(0.0, time.time() - moment)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def _path() -> str:
    return str(cache.cache_directory())


_COMMANDS: dict[str, Callable[[], str]] = {"show": _show, "list": _list, "clear": _clear, "path": _path}


if __name__ == "__main__":
    sys.exit(main())
