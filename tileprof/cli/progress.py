"""Live progress on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from tileprof.analyse.figures import noisy_time
from tileprof.report.words import STATUS_WORDS
from tileprof.store.records import FAILED_STATUSES, CaseResult


def make_progress() -> BarProgress | LineProgress:
    """The progress that fits standard error."""
    console = Console(stderr=True)
    return BarProgress(console) if console.is_terminal else LineProgress()


def outcome(result: CaseResult) -> str:
    """One line on how a case ended: status, time, and the reason of a failure."""
    parts = [STATUS_WORDS.get(result.status, result.status)]
    if result.timing is not None and result.timing.samples_ns:
        parts.append(f"{result.timing.median_ns / 1e6:.3f} ms")
        parts += ["noisy"] * noisy_time(result)
    slower = next((metric for metric in result.metrics if metric.metric == "cycles.slowdown"), None)
    if slower is not None:
        known = slower.flag is None
        parts.append(f"{slower.value - 1:+.1%} with clock reads" if known else "too noisy to say what clock reads cost")
    if result.reason and result.status != "not_run":
        parts.append(result.reason.splitlines()[0])
    return ": ".join(parts)


class LineProgress:
    """A line for each finished case."""

    def __init__(self) -> None:
        self._done = 0
        self._total = 0

    def begin(self, total: int, kept: int) -> None:
        """Say how many cases are kept from an earlier run."""
        self._done, self._total = kept, total
        if kept:
            self._print(f"{kept} of {total} cases are kept from before")

    def stage(self, case_id: str, stage: str) -> None:
        """Nothing: lines are for results."""

    def say(self, text: str) -> None:
        """Print it."""
        self._print(text)

    def finished(self, result: CaseResult) -> None:
        """Print the outcome."""
        self._done += 1
        self._print(f"[{self._done}/{self._total}] {result.id}: {outcome(result)} ({result.seconds:.1f} s)")

    def end(self) -> None:
        """Nothing."""

    @staticmethod
    def _print(text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class BarProgress:
    """A bar, what is being worked on, and a line for each failure above it."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._stages: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def begin(self, total: int, kept: int) -> None:
        """Show the bar."""
        self._progress.start()
        self._task = self._progress.add_task("starting", total=total, completed=kept)

    def stage(self, case_id: str, stage: str) -> None:
        """Show the newest stage."""
        with self._lock:
            self._stages[case_id] = (time.monotonic(), stage)
        self._describe()

    def say(self, text: str) -> None:
        """A line above the bar."""
        self._progress.console.print(escape(text), highlight=False)

    def finished(self, result: CaseResult) -> None:
        """Advance the bar; a failure gets a line."""
        with self._lock:
            self._stages.pop(result.id, None)
        if result.status in FAILED_STATUSES or result.status == "invalid_measurement":
            self._progress.console.print(f"[red]{escape(result.id)}[/]: {escape(outcome(result))}", highlight=False)
        if self._task is not None:
            self._progress.advance(self._task)
        self._describe()

    def _describe(self) -> None:
        with self._lock:
            newest = max(self._stages.items(), key=lambda item: item[1], default=None)
        if self._task is None:
            return
        text = "" if newest is None else f"{newest[1][1]} [dim]{escape(newest[0])}[/]"
        self._progress.update(self._task, description=text)

    def end(self) -> None:
        """Remove the bar."""
        self._progress.stop()
