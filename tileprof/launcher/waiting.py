"""How long the threads of this process waited for a processor: time that a wall clock counts and that is not the kernel's.

Linux counts it for each thread (``/proc/self/task/*/schedstat``: nanoseconds on a processor, nanoseconds ready and waiting for
one).  Samples that are all held up alike lie close together, and nothing else tells that they are wrong.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

TASKS = Path("/proc/self/task")


class Waiting:
    """Inside the block threads are watched; :meth:`summary` says what they did, None where the system does not tell."""

    def __init__(self, tasks: Path = TASKS) -> None:
        self._tasks = tasks
        self._before: dict[str, tuple[int, int]] = {}
        self._after: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        self._before = _times(self._tasks)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._after = _times(self._tasks)

    def summary(self) -> dict[str, int] | None:
        """``ran_ns`` and ``waited_ns``, sums over the threads that were there at both ends or began in between."""
        ran = waited = 0
        for thread, (ran_ns, waited_ns) in self._after.items():
            ran_before, waited_before = self._before.get(thread, (0, 0))
            ran += max(0, ran_ns - ran_before)
            waited += max(0, waited_ns - waited_before)
        return {"ran_ns": ran, "waited_ns": waited} if ran else None


def _times(tasks: Path) -> dict[str, tuple[int, int]]:
    """Nanoseconds that each thread ran and waited; none where the kernel keeps no such figures."""
    found: dict[str, tuple[int, int]] = {}
    with suppress(OSError):
        for task in tasks.iterdir():
            with suppress(OSError, ValueError):  # it ended meanwhile
                ran, waited, *_ = (task / "schedstat").read_text().split()
                found[task.name] = int(ran), int(waited)
    return found
