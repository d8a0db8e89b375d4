"""Every error that tileprof raises on purpose, each with the exit status it leads to.

Statuses are those of ``docs/cli.md``: 2 wrong usage or configuration, 3 invalid measurement, 4 a case failed.
"""

from __future__ import annotations


class TileprofError(Exception):
    """Root of all errors of tileprof: what is wrong, and ``remedy``, what to do about it."""

    exit_status = 2

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(message if remedy is None else f"{message}\n  help: {remedy}")


class UsageError(TileprofError):
    """The command line asks for something that does not exist or does not fit together."""


class WorkloadError(TileprofError):
    """The workload file is wrong; the message lists every problem with file, line and column."""


class StoreError(TileprofError):
    """A run directory cannot be written or read, or holds something else."""


class ProfilerUnavailable(TileprofError):
    """A profiler that was asked for by name is missing or denied."""


class ProfileFormatError(TileprofError):
    """A profiler's file is damaged or has a form that no reader here knows."""


class MeasurementInvalid(TileprofError):
    """The measurement is worthless for a passing reason; trying again may help."""

    exit_status = 3


class CaseFailed(TileprofError):
    """At least one case failed: compile error, wrong numerics, crash or time limit."""

    exit_status = 4
