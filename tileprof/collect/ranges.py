"""Which NVTX or ROCTX ranges a launch lies in: they name case and repetition."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Sequence

from tileprof.collect.profile import Range


class RangeIndex:
    """Ranges by thread: those around a moment are found without looking at all of them.

    A range of a thread counts for launches of that thread; where either is not known, for all of its process.
    """

    def __init__(self, ranges: Sequence[Range]) -> None:
        threads: dict[tuple[int | None, int | None], list[Range]] = defaultdict(list)
        for one in ranges:
            if one.start_ns < one.end_ns:
                threads[one.process, one.thread].append(one)
        self._threads = {key: _Nested(found) for key, found in threads.items()}

    def around(self, moment_ns: float, process: int | None, thread: int | None) -> tuple[str, ...]:
        """Names of the ranges around a moment in a thread, outermost first."""
        found: list[Range] = []
        for (own_process, own_thread), nested in self._threads.items():
            if (own_process in (None, process) or process is None) and (own_thread in (None, thread) or thread is None):
                found += nested.around(moment_ns)
        return tuple(one.name for one in sorted(found, key=lambda one: (one.start_ns, -one.end_ns)))


class _Nested:
    """Ranges of one thread, sorted; ``parents`` are the ranges that each lies in."""

    def __init__(self, ranges: list[Range]) -> None:
        self.ranges = sorted(ranges, key=lambda one: (one.start_ns, -one.end_ns))
        self.starts = [one.start_ns for one in self.ranges]
        self.parents: list[int | None] = []
        open_: list[int] = []
        for index, one in enumerate(self.ranges):
            while open_ and self.ranges[open_[-1]].end_ns <= one.start_ns:
                open_.pop()
            self.parents.append(open_[-1] if open_ else None)
            open_.append(index)

    def around(self, moment: float) -> list[Range]:
        index: int | None = bisect.bisect_right(self.starts, moment) - 1
        if index is not None and index < 0:
            return []
        found = []
        while index is not None:
            if moment <= self.ranges[index].end_ns:
                found.append(self.ranges[index])
            index = self.parents[index]
        return found
