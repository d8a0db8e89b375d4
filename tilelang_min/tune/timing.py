"""The second half of a search: candidates run, checked, and timed in turns; the hopeless are given up early."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tilelang_min.errors import TuningError
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.tune.candidates import Candidate
from tilelang_min.tune.checking import Checker
from tilelang_min.tune.device import Device, Trouble
from tilelang_min.tune.inputs import Inputs
from tilelang_min.tune.settings import Settings

NEAR = 1.05
"""Who is so near to the leader is not given up while samples are few."""

FEW = 3
"""Samples of a turn, at least."""


class Timing:
    """Runs and times candidates on this machine's device, in a process that may die.

    ``ordinal``: the number of the GPU, where this process uses one.
    """

    def __init__(
        self, folder: Path, inputs: Inputs, checker: Checker | None, settings: Settings, ordinal: int | None = None
    ) -> None:
        self.folder = folder
        self.inputs = inputs
        self.checker = checker
        self.settings = settings
        self.how: set[str] = set()
        self.ordinal = ordinal

    def measure(self, candidates: list[Candidate], said: Callable[[str], None]) -> list[Candidate]:
        """Times the candidates, the most promising first; those that took part to the end, the best first."""
        with Device(self.ordinal) as device:
            # All results first: a kernel that is quick because it is wrong must not speak against another.
            alive = self._right([each for each in candidates if self._runs(device, each, said)])
            tried: list[Candidate] = []
            for each in alive:
                if self._promises(device, each, tried):
                    tried.append(each)
            alive = tried
            for each in alive:
                each.samples.clear()
            turns = _turns(self.settings.rep)
            for number, samples in enumerate(turns):
                warmup = 1 if number else self.settings.warmup
                order = alive if number % 2 == 0 else alive[::-1]
                timed = [each for each in order if self._time(device, each, warmup, samples)]
                alive = [each for each in alive if each in timed]
                if self.settings.early_stop and number + 1 < len(turns) and alive:
                    alive = self._cut(alive)
                said(f"turn {number + 1} of {len(turns)}: {len(alive)} left")
        return sorted(alive, key=lambda each: (each.score, each.outcome.number))

    def _runs(self, device: Device, each: Candidate, said: Callable[[str], None]) -> bool:
        """Runs a candidate once and takes its results; whether it stays."""
        number, parameters = each.outcome.number, each.kernel.parameters
        bundle = self.folder / f"{number}.tlk"
        bundle.write_bytes(each.archive)
        files = [
            str(self.folder / f"out-{number}-{index}.bin") if parameter.access != "in" and self.checker else None
            for index, parameter in enumerate(parameters)
        ]
        arguments = self.inputs.arguments(parameters, each.kernel.out_idx)
        try:
            device.open(str(bundle), {"arguments": arguments, "outputs": files}, self.settings.timeout)
        except Trouble as trouble:
            self._out(each, trouble.outcome, trouble.reason)
            return False
        finally:
            said(f"ran {each.outcome.config}")
        if self.checker is None:
            return True
        outputs = [_result(file, argument) for file, argument in zip(files, arguments, strict=True) if file is not None]
        wrong, each.outcome.error = self.checker.take(number, outputs)
        if wrong is not None:
            self._out(each, "wrong", wrong)
        return wrong is None

    def _right(self, ran: list[Candidate]) -> list[Candidate]:
        """Those whose results are what most compute.  TuningError where there is no majority."""
        if self.checker is None:
            return ran
        wrong, tied = self.checker.outvoted()
        if tied:
            groups = " against ".join(", ".join(map(str, members)) for members in tied)
            raise TuningError(
                f"configurations compute different results, and nothing says which are right: numbers {groups}",
                remedy="give ref_prog=, a wider rtol= and atol=, or, where results may differ, skip_check=True",
            )
        for each in ran:
            if each.outcome.number in wrong:
                self._out(each, "wrong", wrong[each.outcome.number])
        return [each for each in ran if each.outcome.number not in wrong]

    def _promises(self, device: Device, each: Candidate, tried: list[Candidate]) -> bool:
        """Takes one sample of a candidate, unless it cannot be the best; whether it may still become that."""
        outcome, settings = each.outcome, self.settings
        best = min((other.score for other in tried), default=None)
        if best is not None and settings.prune and outcome.bound_ms is not None and outcome.bound_ms * 1e6 > best:
            reason = (
                f"cannot take less than {outcome.bound_ms:.4g} ms ({outcome.bound_by}), another takes {best / 1e6:.4g}"
            )
            self._out(each, "ruled out", reason)
            return False
        for _ in range(2):  # a single sample may have been disturbed: who is out is asked again
            if not self._time(device, each, 0, 1):
                return False
            if best is None or not settings.early_stop or min(each.samples) <= settings.early_stop_factor * best:
                return True
        assert best is not None
        self._out(each, "stopped", f"took {min(each.samples) / best:.1f} times as long as another")
        return False

    def _time(self, device: Device, each: Candidate, warmup: int, rep: int) -> bool:
        """More samples of a candidate; whether that worked."""
        try:
            answer = device.time(str(self.folder / f"{each.outcome.number}.tlk"), warmup, rep, self.settings.timeout)
        except Trouble as trouble:
            self._out(each, trouble.outcome, trouble.reason)
            return False
        each.samples += answer["samples"]
        self.how.add(f"{answer['how']}{', cache flushed before each' if answer['flushed'] else ''}")
        each.outcome.samples = len(each.samples)
        each.outcome.measured_ms = statistics.median(each.samples) / 1e6
        each.outcome.quick_ms = each.score / 1e6
        return True

    def _cut(self, alive: list[Candidate]) -> list[Candidate]:
        """The better half, nobody slower than ``early_stop_factor`` times as slow; and whoever cannot be told from the leader: on a
        busy machine those are many."""
        ordered = sorted(alive, key=lambda each: each.score)
        half = -(-len(ordered) // 2)
        kept = []
        for place, each in enumerate(ordered):
            behind = each.score / ordered[0].score
            alike = behind <= NEAR or each.score <= statistics.median(ordered[0].samples)
            if alike or (place < half and behind <= self.settings.early_stop_factor):
                kept.append(each)
            else:
                self._out(each, "stopped", f"took {behind:.2f} times as long as the leader")
        return [each for each in alive if each in kept]

    @staticmethod
    def _out(each: Candidate, outcome: str, reason: str) -> None:
        each.outcome.outcome, each.outcome.reason = outcome, reason


def _turns(rep: int) -> list[int]:
    """Samples of each turn, few at first: ``rep`` in all."""
    turns: list[int] = []
    for part in (rep // 8, rep // 8, rep // 4):
        wanted = max(part, FEW)
        if sum(turns) + wanted < rep:
            turns.append(wanted)
    return [*turns, rep - sum(turns)]


def _result(file: str, argument: dict[str, Any]) -> np.ndarray[Any, Any]:
    path = Path(file)
    raw = np.frombuffer(path.read_bytes(), np.uint8)
    path.unlink()
    found: np.ndarray[Any, Any] = raw.view(numpy_dtype(argument["dtype"])).reshape(tuple(argument["shape"]))
    return found
