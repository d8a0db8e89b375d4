"""The first half of a search: every configuration compiled, what is known of it, and which are worth measuring."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilelang_min.driver.kernel import Kernel
from tilelang_min.errors import ResourceError
from tilelang_min.runtime.bundle import read_archive
from tilelang_min.targets import Target
from tilelang_min.tune.compiling import Finished, Send, run_all
from tilelang_min.tune.records import Outcome
from tilelang_min.tune.settings import Settings

STAGES = "num_stages"
"""The parameter that is lowered where a block needs more shared memory than there is."""

KEEP_FACTOR = 1.5
"""A configuration is measured if its predicted time is at most so many times the best prediction (see docs/tuning.md)."""

KEEP_LEAST = 8
"""So many are measured, whatever the prediction says."""

SPILL_BYTES = 256
"""Bytes a thread: who spills more is not measured while enough others do not."""

Make = Callable[[Mapping[str, Any]], Kernel]
"""Compiles a configuration."""


@dataclass
class Candidate:
    """A configuration that compiled: its outcome so far, the kernel, and the bundle's content."""

    outcome: Outcome
    kernel: Kernel
    archive: bytes = field(repr=False)
    samples: list[float] = field(default_factory=list)

    @property
    def score(self) -> float:
        """What candidates are compared by: the time in ns that a tenth of the samples stays below, which others disturb least."""
        ordered = sorted(self.samples)
        place = 0.1 * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def load_compiler(target: Target) -> None:
    """Import what compiling takes, once, so that forks of this process have it."""
    from tilelang_min.driver import build

    build.load_generator(target)


def compile_all(
    configs: list[dict[str, Any]],
    make: Make,
    device: str | None,
    settings: Settings,
    given: tuple[Any, ...] | None,
    said: Callable[[str], None],
) -> tuple[list[Outcome], list[Candidate]]:
    """Compiles every configuration; what became of each, in the order given, and those that there is a kernel of."""
    results = [Outcome(number, config) for number, config in enumerate(configs)]
    candidates: list[Candidate] = []

    def job(config: dict[str, Any]) -> Callable[[Send], None]:
        return lambda send: _compile(config, make, device, settings, given, send)

    jobs = [job(config) for config in configs]
    for finished in run_all(jobs, timeout=settings.timeout, workers=settings.workers):
        outcome = results[finished.number]
        candidate = _taken(outcome, finished)
        if candidate is not None:
            candidates.append(candidate)
        said(f"compiled {outcome.config}: {outcome.reason.splitlines()[0] if candidate is None else 'done'}")
    candidates.sort(key=lambda each: each.outcome.number)
    return results, _distinct(candidates)


def _compile(
    config: dict[str, Any],
    make: Make,
    device: str | None,
    settings: Settings,
    given: tuple[Any, ...] | None,
    send: Send,
) -> None:
    """In a process of its own: compiles a configuration, with fewer stages where that makes it fit, and predicts its time."""
    start = time.perf_counter()
    used = dict(config)
    while True:
        try:
            kernel = make(used)
            break
        except ResourceError as error:
            stages = used.get(STAGES)
            if not settings.lower_stages or not isinstance(stages, int) or stages < 2:
                if used != config:
                    raise ResourceError(
                        f"{error.message}; with {STAGES}={stages}, as with more",
                        location=error.location,
                        remedy=error.remedy,
                    ) from None
                raise
            used[STAGES] = stages - 1
    archive = kernel.bundle.complete().archive(level=1)
    send("built", (used, archive, kernel.out_idx, time.perf_counter() - start))
    sizes = {}
    if kernel.sizes:
        if given is None:
            return
        from tilelang_min.tune.inputs import by_place, sizes_of

        sizes = sizes_of(kernel.parameters, by_place(kernel.parameters, kernel.out_idx, given))
    prediction = kernel.predict(device, sizes)
    if prediction is not None:
        send("predicted", (prediction.time_ns, prediction.bound_ns, prediction.bound_by))


def _taken(outcome: Outcome, finished: Finished) -> Candidate | None:
    """What a process sent, into the record; the candidate, where there is a kernel."""
    if "built" not in finished.sent:
        outcome.outcome, outcome.reason = finished.status, finished.reason or "it sent nothing"
        return None
    used, archive, out_idx, seconds = finished.sent["built"]
    if used != outcome.config:
        outcome.asked, outcome.config = outcome.config, used
    kernel = Kernel(read_archive(archive), out_idx)
    outcome.compile_seconds = seconds
    facts = kernel.metadata
    outcome.registers, outcome.spill_bytes, outcome.occupancy = (
        facts.registers_per_thread,
        facts.spill_store_bytes if facts.spill_store_bytes is not None else _spilled(facts),
        facts.occupancy,
    )
    if facts.shared_bytes_dynamic is not None or facts.shared_bytes_static is not None:
        outcome.shared_bytes = (facts.shared_bytes_static or 0) + (facts.shared_bytes_dynamic or 0)
    outcome.outcome = "measured"
    if "predicted" in finished.sent:
        time_ns, bound_ns, outcome.bound_by = finished.sent["predicted"]
        outcome.predicted_ms = None if time_ns is None else time_ns / 1e6
        outcome.bound_ms = None if bound_ns is None else bound_ns / 1e6
    elif finished.status != "done":
        outcome.reason = f"no prediction: {finished.reason}"
    return Candidate(outcome, kernel, archive)


def _spilled(facts: Any) -> int | None:
    """Bytes a thread that an AMD kernel spills: 4 a vector register."""
    return None if facts.spilled_vgprs is None else 4 * int(facts.spilled_vgprs)


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    """Those whose kernels differ; the others are marked as the same as the first like them."""
    known: dict[str, Candidate] = {}
    for each in candidates:
        record = each.kernel.bundle.record
        facts = repr((record["grid"], record["threads"], record["launch"], record["parameters"]))
        key = hashlib.sha256(each.kernel.bundle.binary + facts.encode()).hexdigest()
        first = known.setdefault(key, each)
        if first is not each:
            each.outcome.outcome = "same"
            each.outcome.reason = f"compiles to what configuration {first.outcome.number} compiles to"
    return list(known.values())


def choose(candidates: list[Candidate], least: int | None = None) -> list[Candidate]:
    """Those to measure, the best predicted first, at least ``least`` (default :data:`KEEP_LEAST`); the others are marked with the
    fact that speaks against them."""
    least = KEEP_LEAST if least is None else least
    ordered = sorted(
        candidates,
        key=lambda each: (
            (each.outcome.spill_bytes or 0) > SPILL_BYTES,
            float("inf") if each.outcome.predicted_ms is None else each.outcome.predicted_ms,
            each.outcome.number,
        ),
    )
    times = [each.outcome.predicted_ms for each in ordered if each.outcome.predicted_ms is not None]
    best = min(times, default=None)
    kept: list[Candidate] = []
    for each in ordered:
        against = _against(each.outcome, best)
        if against is None or len(kept) < least:
            kept.append(each)
        else:
            each.outcome.outcome, each.outcome.reason = "ruled out", against
    return kept


def _against(outcome: Outcome, best: float | None) -> str | None:
    if outcome.spill_bytes and outcome.spill_bytes > SPILL_BYTES:
        return f"spills {outcome.spill_bytes} bytes a thread"
    if best is not None and outcome.predicted_ms is not None and outcome.predicted_ms > KEEP_FACTOR * best:
        return f"the prediction is {outcome.predicted_ms / best:.1f} times the best one"
    return None
