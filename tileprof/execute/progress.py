"""What a sweep tells while it runs, to whoever shows it."""

from __future__ import annotations

from typing import Protocol

from tileprof.store.records import CaseResult


class Progress(Protocol):
    """Called from the sweep's main thread only, but ``stage`` and ``say``, which any thread may call."""

    def begin(self, total: int, kept: int) -> None:
        """``total`` cases, of which ``kept`` are finished since an earlier run."""

    def stage(self, case_id: str, stage: str) -> None:
        """A case has reached a stage, such as ``compiling``."""

    def say(self, text: str) -> None:
        """Something that the user should know now, such as why nothing moves."""

    def finished(self, result: CaseResult) -> None:
        """A case is done."""

    def end(self) -> None:
        """The sweep is over, whether all cases ran or not."""
