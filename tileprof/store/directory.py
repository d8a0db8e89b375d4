"""The run directory: what may be written where, and who is writing.

A finished run is not overwritten without force, an unfinished one is continued only on request, and a directory that holds
anything else is never touched.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from types import TracebackType

from tileprof.errors import StoreError
from tileprof.store.reader import read_header

STORE = "run.sqlite"
KERNELS = "kernels"
RAW = "raw"
TEMPORARY = "temporary"
_LOCK = ".lock"

OWN_NAMES = frozenset(
    {
        STORE, f"{STORE}-wal", f"{STORE}-shm", f"{STORE}-journal", KERNELS, RAW, TEMPORARY, _LOCK, "index.html",
        "result.json", "summary.md", "metrics.csv", "junit.xml", "findings.sarif", "flame.speedscope.json",
        "flame.folded", "trace.json", "check.md", "check.json",
    }
)  # fmt: skip
"""Everything that tileprof itself puts into a run directory."""

_ELSEWHERE = "choose another directory with -o"


class RunDirectory:
    """A run directory locked for writing; a context manager that unlocks it and removes its temporary files.

    ``resumed`` is true where it holds an unfinished run that is continued.
    """

    def __init__(self, path: Path, *, force: bool = False, resume: bool = False) -> None:
        """Create or claim ``path``; raises StoreError with the way out where that is not possible."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(f"cannot write to {path}: {error.strerror}", remedy=_ELSEWHERE) from None
        try:
            self._claim()
            self.resumed = self._judge(force, resume)
            for name in (KERNELS, RAW, TEMPORARY):
                (path / name).mkdir(exist_ok=True)
        except OSError as error:
            os.close(self._lock)
            raise StoreError(f"cannot write to {path}: {error.strerror}", remedy=_ELSEWHERE) from None
        except StoreError:
            os.close(self._lock)
            raise

    def _claim(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"another tileprof is writing to {self.path}", remedy=f"wait for it, or {_ELSEWHERE}"
            ) from None
        except OSError:
            return  # a file system without locks

    def _judge(self, force: bool, resume: bool) -> bool:
        """Whether an unfinished run is continued; clears what may be cleared; raises StoreError otherwise."""
        foreign = sorted(entry.name for entry in self.path.iterdir() if entry.name not in OWN_NAMES)
        store = self.path / STORE
        if not store.exists():
            if foreign:
                message = f"{self.path} holds other files ({', '.join(foreign[:3])}) and no run of tileprof"
                raise StoreError(message, remedy=_ELSEWHERE)
            if resume:
                raise StoreError(f"there is no run to resume in {self.path}", remedy="leave out --resume")
            self._clear()
            return False
        if force:
            self._clear()
            return False
        finished = read_header(store).get("finished")
        if finished is not None:
            remedy = f"render it with `tileprof report {self.path}`, overwrite it with --force, or {_ELSEWHERE}"
            raise StoreError(f"{self.path} holds a finished run", remedy=remedy)
        if not resume:
            remedy = f"continue it with --resume, overwrite it with --force, or {_ELSEWHERE}"
            raise StoreError(f"{self.path} holds an unfinished run", remedy=remedy)
        return True

    def _clear(self) -> None:
        """Remove what tileprof wrote; nothing else."""
        for entry in self.path.iterdir():
            if entry.name == _LOCK or entry.name not in OWN_NAMES:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    @property
    def store(self) -> Path:
        """The SQLite file."""
        return self.path / STORE

    @property
    def kernels(self) -> Path:
        """Where bundles go."""
        return self.path / KERNELS

    @property
    def raw(self) -> Path:
        """Where profilers' own files go."""
        return self.path / RAW

    @property
    def temporary(self) -> Path:
        """Where child processes leave arrays and logs; removed at the end."""
        return self.path / TEMPORARY

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.temporary, ignore_errors=True)
        for folder in (self.kernels, self.raw):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        (self.path / _LOCK).unlink(missing_ok=True)
        os.close(self._lock)
