"""``profile(kernel, *args)``: everything that can be known about one kernel in this process."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tilelang_min as tilelang
from tilelang_min.errors import did_you_mean
from tileprof import __version__
from tileprof.collect.ceilings import ceilings
from tileprof.collect.cycles import cycles_metrics, overhead_note
from tileprof.collect.noise import noise_note
from tileprof.collect.simulator import simulated_metrics, suggestion_of
from tileprof.collect.timer import timing_metrics
from tileprof.errors import UsageError
from tileprof.metrics import metadata_metrics
from tileprof.plan.machine import probe
from tileprof.report import html
from tileprof.session.measured import CHILD_PROFILERS, clocked, profiled
from tileprof.session.memory_conflicts import MemoryConflicts
from tileprof.store.records import CaseResult, Run, Timing, Unavailable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PROFILERS = ("auto", "none", "timer", "cycles", *CHILD_PROFILERS)
"""What ``profile`` takes: ``auto``, ``none``, ``timer`` and ``cycles`` measure in this process, the others in a child."""


class Report:
    """What is known about one kernel: static and simulated facts, and times where it was launched.

    ``run`` is the whole record, a run of one case, as ``tileprof run`` would store it.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.case: CaseResult = run.cases[0]

    def __repr__(self) -> str:
        return f"<Report of {self.case.id}, {len(self.case.metrics)} figures>"

    def memory_conflicts(self) -> MemoryConflicts:
        """Shared-memory transactions and conflicts by operation, buffer and access; prints as a table."""
        return MemoryConflicts(self.case)

    def visualize(self, path: str | Path | None = None) -> Path:
        """Write the HTML report and return its path (a temporary file when none is given)."""
        if path is None:
            with tempfile.NamedTemporaryFile(prefix=f"{self.case.kernel}-", suffix=".html", delete=False) as stream:
                path = stream.name
        return html.write(self.run, path)

    def roofline(self, path: str | Path | None = None) -> Figure:
        """The roofline as a matplotlib figure, also saved where a path is given (png, svg or pdf)."""
        from tileprof.report import roofline_figure

        if path is not None:
            roofline_figure.save(self.run, path)
        return roofline_figure.draw(self.run)

    @property
    def metrics(self) -> pd.DataFrame:
        """All figures: case, kernel, launch, operation, buffer, access, metric, value, unit, provenance."""
        import pandas as pd

        rows = [
            {
                "case": self.case.id,
                "kernel": self.case.kernel,
                "launch": metric.launch,
                "operation": metric.operation,
                "buffer": metric.buffer,
                "access": metric.access,
                "metric": metric.metric,
                "value": metric.value,
                "unit": metric.unit,
                "provenance": metric.provenance.kind,
                "tool": metric.provenance.tool,
                "detail": metric.provenance.detail,
            }
            for metric in self.case.metrics
        ]
        return pd.DataFrame(rows)

    def to_json(self, path: str | Path) -> Path:
        """Write the record as JSON and return the path."""
        place = Path(path)
        place.write_text(json.dumps(asdict(self.run), indent=1))
        return place


def profile(kernel: Any, *args: Any, profiler: str = "auto") -> Report:
    """Everything that can be known about ``kernel`` here.

    Without ``args`` nothing is launched: static and simulated facts only.  With them (one tensor a parameter; outputs that a call
    allocates may be left out) the kernel is timed on those tensors, which it writes as an ordinary call does.  ``profiler``:
    ``auto`` and ``timer`` time it, ``cycles`` also launches a build with clock reads; ``ncu``, ``nsys``, ``rocprofv3``, ``rocprof``
    and ``perf`` measure it in a child process, on copies of the tensors that it reads (if these are more than 4 GiB, on random
    ones, which the report says).

    Raises UsageError for what is no kernel and for another profiler, ProfilerUnavailable for one that cannot be used here.
    """
    if not isinstance(kernel, tilelang.Kernel):
        raise UsageError(
            f"profile() takes a compiled kernel, not {type(kernel).__name__}",
            remedy="compile it first: tilelang.profile(matmul.compile(a, b), a, b)"
            if getattr(kernel, "mode", None) == "eager"
            else "call the factory first: tilelang.profile(matmul(1024, 1024, 1024), a, b, c)",
        )
    if profiler not in PROFILERS:
        raise UsageError(f"there is no profiler {profiler!r}", remedy=did_you_mean(profiler, PROFILERS))
    if profiler not in ("auto", "none") and not args:
        raise UsageError(
            f"profiler {profiler} measures launches, and there are no tensors to launch on",
            remedy=f"pass them: tilelang.profile(kernel, a, b, c, profiler={profiler!r})",
        )
    args = kernel.completed(args)
    if profiler in CHILD_PROFILERS:
        return Report(profiled(kernel, args, profiler))
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    version = tilelang.__version__
    sizes = kernel.sizes_of(args) if args else {}
    known = set(kernel.sizes) == set(sizes)
    parameters = kernel.parameters_for(sizes) if known else kernel.parameters
    metadata = (kernel.metadata_for(sizes) if known else kernel.metadata).to_json()
    metrics = list(metadata_metrics(metadata, version))
    timing: Timing | None = None
    unavailable: list[Unavailable] = []
    notes = list(kernel.bundle_record()["notes"])
    if not known:
        unavailable.append(
            Unavailable(
                "simulated counts",
                kernel.target.name,
                f"they depend on {', '.join(kernel.sizes)}, known at launch alone",
                "pass tensors: tilelang.profile(kernel, a, b, c)",
            )
        )
    else:
        analysis = kernel.analyse(sizes=sizes)
        blocks = len(analysis.classes)
        metrics += simulated_metrics(analysis.to_json(), version, blocks, sum(count for _, count in analysis.classes))
        notes += analysis.notes
    if args and profiler != "none":
        cold = kernel.target.kind != "cpu"
        samples = kernel.get_profiler().samples(*args)
        timing = Timing(tuple(samples), "events" if cold else "wall clock", 3, cold)
        metrics += timing_metrics(timing)
        if noise := noise_note(timing.samples_ns):
            notes.append(noise)
        if profiler == "cycles":
            message = clocked(kernel, args)
            metrics += cycles_metrics(message)
            notes.append(overhead_note(message))
    elif not args:
        unavailable.append(
            Unavailable(
                "time.ns",
                kernel.target.name,
                "the kernel was not launched",
                "pass its tensors: tilelang.profile(kernel, a, b, c)",
            )
        )
    record = kernel.bundle_record()
    case = CaseResult(
        id=f"{kernel.name}@{kernel.target.name}",
        hash=record["hash"],
        kernel=kernel.name,
        target_name=kernel.target.name,
        target=kernel.target.name,
        args={},
        shape={parameter.name: "x".join(map(str, parameter.shape)) for parameter in parameters},
        tiles={},
        status="ok" if timing else "not_run",
        reason="" if timing else "profiled without arguments: compiled and simulated only",
        metadata=metadata,
        operations=tuple(record["operations"]),
        sources=record["sources"],
        generated=kernel.source(),
        assembly=kernel.assembly(),
        metrics=tuple(metrics),
        timing=timing,
        notes=tuple(notes),
        suggestions=tuple(suggestion_of(suggestion.to_json()) for suggestion in kernel.suggestions(sizes))
        if known
        else (),
        sizes=sizes,
    )
    limits = tuple(ceilings(kernel.target.name))
    run = Run(
        name=kernel.name,
        description=f"kernel {kernel.name} profiled from a script",
        workload_file="",
        version=__version__,
        started=started,
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        machine=probe().to_json(),
        cases=(case,),
        ceilings=limits,
        unavailable=tuple(unavailable),
    )
    return Report(run)
