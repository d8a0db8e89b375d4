"""Launches cases once more under Nsight Compute, several in one process, and joins what it counts to the tile operations."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tileprof.analyse.join import join_bundle
from tileprof.collect import ncu, ncu_file
from tileprof.collect.ncu_file import KernelProfile, NcuReport
from tileprof.errors import CaseFailed, MeasurementInvalid, ProfilerUnavailable, TileprofError
from tileprof.execute.child import ChildTimeout
from tileprof.execute.measuring import measuring, run_ncu
from tileprof.execute.results import CaseBuilder
from tileprof.metrics import nvidia
from tileprof.plan.machine import Gpu
from tileprof.store.directory import RunDirectory

MOST_CASES, LONGEST_WAIT_S = 64, 120.0
"""Cases that share a process under ncu, and how long the first may wait for others: the start of the process is then a small part,
and a run that is killed loses no more than these."""

TEXT_EVERY = 8
"""Of each how many instructions the text is read, to see that the binary is the bundle's, beside all that reach memory."""

RECORD = "ncu-phases.json"
"""File in ``raw/`` that says how long profiling took: for each process its cases, its wall time and that of everything."""


@dataclass(frozen=True)
class Waiting:
    """A case to be profiled, and what the launcher was asked for it."""

    builder: CaseBuilder
    request: dict[str, Any]

    @property
    def symbol(self) -> str:
        """Mangled name of the kernel."""
        return str((self.builder.compiled or {})["symbol"])


def symbols_pattern(symbols: Sequence[str]) -> str:
    """The filter of ncu for these kernels: a name, or a regular expression."""
    known = sorted(set(symbols))
    return known[0] if len(known) == 1 else f"regex:^({'|'.join(map(re.escape, known))})$"


class NcuPhase:
    """Profiles cases on ``gpu``; ``raw`` names further counters.  Setting ``stop`` ends it early.

    ``limit_s`` is the longest that ncu may take for one case, or to start and to end.
    """

    def __init__(
        self, directory: RunDirectory, limit_s: float, raw: Sequence[str], gpu: Gpu | None, stop: threading.Event
    ) -> None:
        self.directory = directory
        self.limit_s = limit_s
        self.raw = tuple(raw)
        self.gpu = gpu
        self.stop = stop

    def profile(self, cases: Sequence[Waiting]) -> None:
        """Add to each case's builder its measured metrics, or why there are none.

        What goes wrong in a process with several cases is found out: a case that hangs is left out and the others are tried again;
        one at which the process dies is tried alone, since the next one was being made meanwhile; and where nobody is to blame each
        is tried alone.
        """
        pending = list(cases)
        while pending and not self.stop.is_set():
            if len(pending) == 1:
                with measuring(pending[0].builder, ncu.TOOL, "counters", self.limit_s):
                    self._attempt(pending, None)
                return
            began = time.monotonic()
            journal = self.directory.temporary / f"{pending[0].builder.case.hash}.journal"
            journal.unlink(missing_ok=True)
            again: list[Waiting] = []
            alone: list[Waiting] = []
            try:
                again = self._attempt(pending, journal)
            except ProfilerUnavailable as error:  # for all the same
                for case in pending:
                    case.builder.note(f"no counters: {error}")
            except (ChildTimeout, CaseFailed) as error:
                again, alone = self._without_culprit(pending, journal, error)
            except (TileprofError, OSError):
                alone = pending
            finally:
                for case in pending:
                    case.builder.spent((time.monotonic() - began) / len(pending))
            for case in alone:
                self.profile([case])
            pending = again

    def _without_culprit(
        self, cases: Sequence[Waiting], journal: Path, error: TileprofError
    ) -> tuple[list[Waiting], list[Waiting]]:
        """Those to try again together, and the one to try alone, during which the process died.

        The case that hung is told, and all are where it was none of them.
        """
        reason = f"{ncu.TOOL} did not end within {self.limit_s:g} s" if isinstance(error, ChildTimeout) else str(error)
        states = _states(journal)
        begun = [number for number, (state, _) in states.items() if state == "begun"]
        if not begun:
            for case in cases:
                case.builder.note(f"no counters: {reason}")
            return [], []
        culprit = cases[begun[-1]]
        others = [case for case in cases if case is not culprit]
        if isinstance(error, CaseFailed):
            return others, [culprit]
        culprit.builder.note(f"no counters: {reason}")
        return others, []

    def _attempt(self, cases: Sequence[Waiting], journal: Path | None) -> list[Waiting]:
        """Profile these together; returns those to try again.  Without a journal there is one case, and its errors are raised."""
        first = cases[0].builder
        began = time.monotonic()
        job = self.directory.temporary / f"{first.case.hash}.json"
        if journal is None:
            journal = self.directory.temporary / f"{first.case.hash}.alone"
            journal.unlink(missing_ok=True)
        requests = [case.request for case in cases]
        job.write_text(json.dumps({"cases": requests, "journal": str(journal)}), encoding="utf-8")
        arch = self.gpu.binary_arch if self.gpu is not None else ""
        metrics = dict.fromkeys(metric for case in cases for metric in case.builder.case.kernel.metrics)
        found = run_ncu(
            first.case.hash,
            [sys.executable, "-m", "tileprof.launcher", str(job)],
            self.directory,
            self.limit_s,
            self.gpu,
            self.stop,
            symbol=symbols_pattern([case.symbol for case in cases]),
            journal=journal,
            launch_count=len(cases),
            raw=[*self.raw, *nvidia.requested_for([*metrics], arch)],
            when_told=True,
        )
        if found is None:
            return []
        process_s = time.monotonic() - began
        states = _states(journal)
        failed = [number for number in range(len(cases)) if states.get(number, ("", ""))[0] == "failed"]
        for number in failed[:1]:  # later ones may only suffer from it
            cases[number].builder.note(f"no counters: {states[number][1]}")
        recorded = [case for number, case in enumerate(cases) if number not in failed]
        if recorded:
            self._join(recorded, ncu_file.read(found[0], self.raw, every=TEXT_EVERY))
        self._log(cases, found[0].name, process_s, time.monotonic() - began)
        return [cases[number] for number in failed[1:]]

    def _join(self, cases: Sequence[Waiting], report: NcuReport) -> None:
        """Give each case its launch: they stand in the report in the order in which they were made."""
        launches = report.kernels
        if len(cases) == 1:
            _add(cases[0], self._first(cases[0], report))
            return
        symbols, expected = [one.symbol for one in launches], [case.symbol for case in cases]
        if symbols != expected:
            raise MeasurementInvalid(
                f"{ncu.TOOL}: launches of {', '.join(symbols)} were recorded, not one of each case"
            )
        for case, launch in zip(cases, launches, strict=True):
            try:
                _add(case, NcuReport(report.version, (numbered(launch),)))
            except TileprofError as error:
                case.builder.note(f"no counters: {error}")

    @staticmethod
    def _first(case: Waiting, report: NcuReport) -> NcuReport:
        """The report with the first of the kernel's launches alone, where one was meant and more were recorded."""
        own = report.of_symbol(case.symbol)
        if len(own) < 2:
            return report
        case.builder.note(
            f"{ncu.TOOL} recorded {len(own):,} launches of {case.symbol} where one was meant: the first is used"
        )
        return NcuReport(report.version, (numbered(own[0]),), report.truncated)

    def _log(self, cases: Sequence[Waiting], report: str, process_s: float, wall_s: float) -> None:
        """Keep how long this took."""
        place, known = self.directory.raw / RECORD, []
        with suppress(OSError, ValueError):  # the first, or one that a run was killed at
            known = json.loads(place.read_text(encoding="utf-8"))
        ids = [case.builder.case.id for case in cases]
        known.append({"report": report, "cases": ids, "process_s": round(process_s, 3), "wall_s": round(wall_s, 3)})
        place.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def numbered(launch: KernelProfile) -> KernelProfile:
    """A launch as the first and only one of its case."""
    metrics = tuple(replace(metric, launch=0) for metric in launch.metrics)
    return replace(launch, index=0, metrics=metrics)


def _add(case: Waiting, report: NcuReport) -> None:
    for kernel in report.of_symbol(case.symbol):
        case.builder.metrics += kernel.raw_metrics()
    grid = (case.builder.compiled or {})["metadata"]["grid"] if case.builder.case.sizes else None
    for joined in join_bundle(report, Path(case.request["bundle"]), grid):
        case.builder.metrics += joined.metrics
        for note in joined.notes:
            case.builder.note(note)


def _states(journal: Path) -> dict[int, tuple[str, str]]:
    """The last state of each case in a journal, with its reason; a line that was cut off is left out."""
    states: dict[int, tuple[str, str]] = {}
    try:
        lines = journal.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return states
    for line in lines:
        try:
            record = json.loads(line)
            states[int(record["case"])] = (str(record["state"]), str(record["reason"]))
        except (ValueError, KeyError, TypeError):
            continue
    return states
