"""A value that is computed on a thread of its own and waited for where it is used."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Later(Generic[_T]):
    """The value of ``compute()``, which starts to run at once.

    The thread is no daemon: Python waits for it before it ends.  In a child that was forked meanwhile the thread does not exist,
    and where no thread can be started (Python is ending) there is none either: :meth:`result` then computes the value itself.
    No lock is held while computing, so that none can be inherited held.
    """

    def __init__(self, compute: Callable[[], _T], name: str = "tilelang") -> None:
        self._compute = compute
        self._outcome: tuple[_T | None, BaseException | None] | None = None
        self._process = os.getpid()
        self._thread: threading.Thread | None = threading.Thread(target=self._run, name=name, daemon=False)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def _run(self) -> None:
        try:
            self._outcome = (self._compute(), None)
        except BaseException as error:
            self._outcome = (None, error)

    @property
    def done(self) -> bool:
        """Whether the value is there, so that :meth:`result` does not wait."""
        return self._outcome is not None

    def result(self) -> _T:
        """The value; raises what computing it raised."""
        if self._outcome is None and self._thread is not None and self._process == os.getpid():
            self._thread.join()
        if self._outcome is None:
            self._run()
        value, error = self._outcome  # type: ignore[misc]
        if error is not None:
            raise error
        return value  # type: ignore[return-value]
