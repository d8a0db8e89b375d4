"""What the launcher does for one case: load, make arguments, launch, check, time.

Everything is done through the public face of tilelang_min, by which a bundle is loaded without importing the compiler.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import tilelang_min as tilelang
from tileprof.launcher.compare import Comparison, compare
from tileprof.launcher.inputs import Array, InputCache, make_arguments
from tileprof.launcher.telemetry import OPENERS, Watch
from tileprof.launcher.timing import CacheFlusher, Samples, time_launches, time_rounds
from tileprof.launcher.waiting import Waiting
from tileprof.store.records import LEAST_ROUNDS


class CaseRunner:
    """One case: its kernel and arguments.  ``job`` is what the sweep sends; see :func:`run_case`.

    ``checked``: whether outputs will be compared with the reference, which otherwise is not read.
    """

    def __init__(self, job: dict[str, Any], *, checked: bool = True) -> None:
        self.job = job
        self.kernel = tilelang.load(job["bundle"])
        record = self.kernel.bundle_record()
        self.parameters = parameters_at(self.kernel, job.get("sizes") or {})
        self.kind = str(record["target"]).partition(":")[0]
        # a kernel of a GPU has copies of its own; one of the processor could write where it must not
        cache = None if self.kind == "cpu" else shared_inputs()
        self.reference, given = load_reference(job.get("reference"), outputs=checked)
        self.arguments = make_arguments(self.parameters, job["inputs"], int(job["seed"]), given, cache)

    def launch(self) -> None:
        """Launch once on the arguments, waiting for the end."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # arrays are copied to the GPU and back on purpose
            self.kernel(*self.arguments.values())

    def check(self) -> Comparison:
        """Compare the outputs of the launch just made with the reference."""
        return compare(self.arguments, self.reference, self.job["rtol"], self.job["atol"])

    def time(self, policy: dict[str, Any]) -> tuple[Samples, str]:
        """Times of single launches, and how they were taken.

        On a processor launches are timed one by one; on a GPU those of a round are enqueued together, so that the
        device stays busy and its clocks stay up.
        """
        if self.kind != "cpu":
            return self._time_gpu(policy)
        flush = cache_flusher() if policy["flush_l2"] else None
        samples = time_launches(lambda: self._measure(0, 1).samples_ns[0], flush=flush, **_rounds(policy))
        return samples, "wall clock around single launches"

    def _time_gpu(self, policy: dict[str, Any]) -> tuple[Samples, str]:
        """Rounds by one method: that which a first measurement takes where the policy leaves it open."""
        flushes = bool(policy["flush_l2"])
        method = {"on": "graph", "off": "events"}.get(str(policy.get("graph", "auto")), "auto")
        if self.kind != "cuda":
            method = "events"
        first = self._measure(1, 1, flush_l2=flushes, method=method)

        def measure(warmup: int, launches: int) -> list[float]:
            return list(self._measure(warmup, launches, flush_l2=flushes, method=first.method).samples_ns)

        return time_rounds(measure, flushed=flushes, **_rounds(policy)), first.how

    def _measure(self, warmup: int, launches: int, *, flush_l2: bool = True, method: str = "auto") -> Any:
        """``launches`` samples after ``warmup`` others; ``flush_l2`` and ``method`` are for GPUs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            profiler = self.kernel.get_profiler()
            arguments = self.arguments.values()
            return profiler.measure(*arguments, warmup=warmup, rep=launches, flush_l2=flush_l2, method=method)


def _rounds(policy: dict[str, Any]) -> dict[str, Any]:
    return {name: policy[name] for name in ("warmup", "samples", "rounds", "budget_s")}


def parameters_at(kernel: tilelang.Kernel, sizes: dict[str, int]) -> list[dict[str, Any]]:
    """The kernel's parameters as the bundle has them, shapes in numbers.  LaunchError where sizes do not give them."""
    return [{**asdict(item), "shape": list(item.shape)} for item in kernel.parameters_for(sizes)]


def load_reference(path: str | None, *, outputs: bool = True) -> tuple[dict[str, Array], dict[str, Array]]:
    """(expected outputs, inputs that a function of the author made) from the file that the compile worker wrote."""
    if path is None or not Path(path).is_file():
        return {}, {}
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if outputs or name.startswith("in:")}
    expected = {name.removeprefix("out:"): array for name, array in arrays.items() if name.startswith("out:")}
    given = {name.removeprefix("in:"): array for name, array in arrays.items() if name.startswith("in:")}
    return expected, given


@cache
def shared_inputs() -> InputCache:
    """Inputs of this process's cases."""
    return InputCache()


@cache
def cache_flusher() -> CacheFlusher:
    """The flusher of this process, made once: its buffer is large."""
    return CacheFlusher()


def run_case(job: dict[str, Any], send: Callable[..., None]) -> None:
    """Run one case and send what comes out, step by step.

    ``job``: ``bundle``, ``sizes`` (of its runtime dimensions), ``inputs`` (kind by parameter), ``seed``, ``reference`` (file or
    None), ``rtol``, ``atol``, ``timing`` (policy, or None for no timing), ``count`` (read a processor's counters),
    ``instrumented`` (bundles of builds with clock reads, by kind), ``against`` (another bundle to time in turns, or None).
    Messages: ``stage``, ``note``, ``check``, ``timed``, ``telemetry``, ``waited``, ``counted``, ``clocked``, ``interleaved``.
    """
    send("stage", stage="launching")
    runner = CaseRunner(job)
    runner.launch()
    if runner.reference:
        comparison = runner.check()
        send(
            "check",
            ok=comparison.ok,
            max_abs_error=comparison.max_abs_error,
            max_rel_error=comparison.max_rel_error,
            worst=comparison.worst,
            compared=comparison.compared,
        )
        if not comparison.ok:
            return
    policy = job["timing"]
    if policy is None:
        return
    send("stage", stage="timing")
    with Waiting() as threads, Watch(OPENERS[runner.kind]) if runner.kind in OPENERS else nullcontext() as watch:
        samples, method = runner.time(policy)
    seen = watch.summary() if watch is not None else None
    waited = threads.summary() if runner.kind == "cpu" else None  # a GPU's times are those of its own clock
    taken = len(samples.samples_ns)
    if taken < samples.wanted:
        budget = f"the time budget of {policy['budget_s']:g} s was spent"
        send("note", text=f"{taken} of {samples.wanted} samples were taken, after {samples.warmup} launches: {budget}")
    send("timed", samples_ns=samples.samples_ns, method=method, warmup=samples.warmup, flushed=samples.flushed)
    if seen is not None:
        send("telemetry", **seen)
    if waited is not None:
        send("waited", **waited)
    if job.get("count"):
        _count(runner, send)
    if job.get("instrumented"):
        _clock(runner, job, send)
    if job.get("against"):
        _interleave(runner, job, send)


SEQUENCE_FAILED = "tileprof: a case of the sequence failed"
"""What the launcher prints under a profiler where one of several cases fails."""

COUNTED_LAUNCHES = 5
"""Launches over which a processor's counters are read, after those that were timed."""


def _count(runner: CaseRunner, send: Callable[..., None]) -> None:
    """Launches once more under the processor's counters, as ``counted``."""
    from tileprof.collect.perf import Counting

    send("stage", stage="counting")
    with Counting() as counting:
        for _ in range(COUNTED_LAUNCHES):
            runner.launch()
    readings = {metric: {"value": one.value, "share": one.share} for metric, one in counting.readings.items()}
    send("counted", readings=readings, launches=COUNTED_LAUNCHES)


def _clock(plain: CaseRunner, job: dict[str, Any], send: Callable[..., None]) -> None:
    """Launch the build with clock reads and send what it measured, and times of both builds in turns, as ``clocked``."""
    try:
        clocked = CaseRunner({**job, "bundle": job["instrumented"]["operations"]})
        clocked.launch()
        if clocked.reference and not clocked.check().ok:
            send("note", text="no cycles: the build with clock reads gave other results")
            return
        send("stage", stage="timing")
        plain_ns, clocked_ns = ([*chain(*rounds)] for rounds in _in_turns(plain, clocked, job["timing"]))
        cycles = clocked.kernel.cycles()
        timeline = CaseRunner({**job, "bundle": job["instrumented"]["timeline"]})
        for _ in range(2):  # the first one finds nothing in any cache
            timeline.launch()
        events = [asdict(event) for event in timeline.kernel.cycles().events]
    except (tilelang.errors.TileLangError, OSError, MemoryError) as error:
        send("note", text=f"no cycles: {str(error) or type(error).__name__}")
        return
    send("clocked", plain_ns=plain_ns, clocked_ns=clocked_ns, cycles=asdict(cycles), events=events)


def _interleave(head: CaseRunner, job: dict[str, Any], send: Callable[..., None]) -> None:
    """Rounds of the case and of its baseline's kernel in turns, as ``interleaved``; a note where they cannot be compared.

    ``job["against"]``: ``bundle``, ``base`` (its name) and ``base_hash``.
    """
    against = job["against"]
    try:
        base = CaseRunner({**job, "bundle": against["bundle"]})
    except (tilelang.errors.TileLangError, OSError) as error:
        send("note", text=f"not compared with {against['base']}: its bundle cannot be loaded: {error}")
        return
    if base.parameters != head.parameters or base.kind != head.kind:
        send("note", text=f"not compared with {against['base']}: its kernel has other parameters")
        return
    try:
        base.launch()
    except tilelang.errors.TileLangError as error:
        send("note", text=f"not compared with {against['base']}: its kernel cannot be launched: {error}")
        return
    send("stage", stage="timing")
    head_ns, base_ns = _in_turns(head, base, job["timing"])
    send("interleaved", base=against["base"], base_hash=against["base_hash"], head_ns=head_ns, base_ns=base_ns)


def _in_turns(
    first: CaseRunner, second: CaseRunner, policy: dict[str, Any]
) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    """Samples (ns) of both by round.  Who goes first alternates, so that neither always finds the device as the other left it."""
    rounds = max(LEAST_ROUNDS, policy["rounds"])
    one = {**policy, "rounds": 1, "budget_s": policy["budget_s"] / rounds}
    sides: list[tuple[CaseRunner, list[tuple[float, ...]]]] = [(first, []), (second, [])]
    for number in range(rounds):
        for runner, times in sides if number % 2 == 0 else reversed(sides):
            times.append(runner.time(one)[0].samples_ns)
    return sides[0][1], sides[1][1]
