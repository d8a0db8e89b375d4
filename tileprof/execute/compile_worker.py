"""``python -m tileprof.execute.compile_worker``: compiles, simulates and makes references, one case after the other.

One process serves many cases, so that TVM is imported once.  It answers each request (a job as :meth:`Case.to_job`
gives it, with ``do``, ``bundle_path``, ``made`` (whether this run has compiled that bundle already), ``temporary``, ``directory``
and ``seed``) with messages: ``stage``, ``built``, ``compiled``, ``reference``, ``analysed``, ``suggested``, ``checked``,
``instrumented``, ``note``, and ``done`` or ``failed`` at the end.  It never launches a kernel.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tilelang_min as tilelang
import tilelang_min.language as T
from tileprof.execute.kernel_source import KernelSourceError, describe_error, load_function
from tileprof.execute.numerics import Numerics, ReferenceFailed, saved_reference
from tileprof.execute.sizes import SizesProblem, check_memory, parameters_of
from tileprof.launcher.channel import open_channel
from tileprof.launcher.compare import compare, default_tolerance
from tileprof.launcher.inputs import Array, make_arguments, poison, written
from tileprof.workload.records import FunctionReference

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES)
"""Errors of writing that mean the run directory cannot be used any more."""

MOST_BLOCKS = 256
"""Largest grid that is simulated whole, where its blocks add up in one place."""
MOST_COMPARED = 8
"""Kinds of blocks, those of most blocks first, of which one computes on the inputs, to be compared with the reference."""

MOST_KEPT = 8
"""Kernels with runtime dimensions that a process keeps for other sizes."""

Send = Callable[..., None]


def compile_case(job: Mapping[str, Any], *, instrument: str | None = None) -> tilelang.Kernel:
    """The compiled kernel of a job, or the same with clock reads of kind ``instrument``.

    Raises TileLangError, KernelSourceError, or what the author's factory raises.
    """
    target = job["target"]
    if job["bundle"]:
        if instrument:
            raise KernelSourceError("a bundle is already compiled", remedy="name the kernel's source instead")
        kernel = tilelang.load(job["bundle"])
        if not kernel.target.name.startswith(target):
            message = f"the bundle is for {kernel.target.name}, and the case's target is {target}"
            raise KernelSourceError(message, remedy="restrict the kernel to fitting targets with `targets:`")
        return kernel
    factory = load_function(FunctionReference.from_json(job["source"]), job["directory"])
    values = {**job["values"], **runtime_parameters(factory, job.get("sizes", {}))}
    for_target = getattr(factory, "for_target", None)
    if for_target is not None:
        build = for_target(target)
        # `compile` of a kernel without a factory takes dimensions by name; calling one would launch it
        kernel = (build.instrumented(instrument) if instrument else build).compile(**values)
    else:
        made = factory(**values)
        if isinstance(made, tilelang.Kernel):
            if instrument:
                raise KernelSourceError("the factory compiles by itself", remedy="let it return its @T.prim_func")
            kernel = made
        else:
            kernel = tilelang.compile(made, target, instrument=instrument)
    found: tilelang.Kernel = kernel
    return found


def runtime_parameters(factory: Callable[..., Any], sizes: Iterable[str]) -> dict[str, Any]:
    """``T.dynamic(name)`` for those sizes that are parameters of the factory: known at launch instead of when compiling."""
    parameters = inspect.signature(factory).parameters
    return {name: T.dynamic(name) for name in sizes if name in parameters}


class CaseWorker:
    """Works on one job and sends what comes out.

    ``kernels`` are those that this process has, by the place of their bundle: cases which differ in sizes alone share one.
    """

    def __init__(self, job: Mapping[str, Any], send: Send, kernels: dict[str, tilelang.Kernel] | None = None) -> None:
        self.job = job
        self.send = send
        self.kernels = {} if kernels is None else kernels
        self.sizes: dict[str, int] = job.get("sizes", {})
        self.places: dict[str, str] = job.get("places", {})

    def run(self) -> None:
        """All steps; the last message is ``done`` or ``failed``."""
        try:
            kernel = self.compile()
            if kernel is None:
                return
            arguments, expected = self.prepare(kernel)
            self.simulate(kernel, arguments, expected)
            if self.job.get("instrument") and (self.job.get("made") or not self.sizes):
                self.instrument()
            self.send("done")
        except SizesProblem as error:
            self.fail(error.status, str(error))
        except ReferenceFailed as error:
            self.fail("crashed", str(error))
        except KernelSourceError as error:
            self.fail("compile_error", str(error))
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            self.send("no_space", reason=f"{error.strerror}: {error.filename or self.job['bundle_path']}")

    def fail(self, status: str, reason: str) -> None:
        self.send("failed", status=status, reason=reason)

    def compile(self) -> tilelang.Kernel | None:
        """The kernel, saved as a bundle and described; None after a failure that was sent."""
        self.send("stage", stage="compiling")
        try:
            kernel = self.kernel()
        except (KernelSourceError, OSError):
            raise
        except tilelang.errors.TileLangError as error:
            self.fail("compile_error", str(error))
            return None
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            source = self.job["source"] or {}
            self.fail("compile_error", describe_error(error, source.get("file")))
            return None
        if not self.job.get("made"):
            kernel.save(self.job["bundle_path"])
            if self.job.get("instrument") and self.sizes:
                self.instrument()  # before others, which share them, come
        self.send("built")
        self.parameters = parameters_of(kernel, self.sizes, self.places)
        self.grid = kernel.grid_for(self.sizes)
        record = kernel.bundle_record()
        self.send(
            "compiled",
            metadata=kernel.metadata_for(self.sizes).to_json(),
            operations=[operation.to_json() for operation in kernel.operations],
            sources=record.get("sources", {}),
            generated=kernel.source(),
            assembly=kernel.assembly(),
            symbol=record["symbol"],
            notes=list(record.get("notes", [])),
            version=tilelang.__version__,
        )
        return kernel

    def kernel(self) -> tilelang.Kernel:
        """The compiled kernel.  One whose bundle this run has ``made`` already, for other sizes, is taken from there."""
        place = self.job["bundle_path"]
        if not self.job.get("made"):
            kernel = compile_case(self.job)
        else:
            kernel = self.kernels.get(place) or tilelang.load(place)
        if self.sizes:
            while len(self.kernels) >= MOST_KEPT:
                del self.kernels[next(iter(self.kernels))]
            self.kernels[place] = kernel
        return kernel

    def instrument(self) -> None:
        """The same kernel with clock reads, saved beside the other; a failure costs the cycles and not the case."""
        self.send("stage", stage="compiling with clock reads")
        paths = {kind: f"{self.job['bundle_path']}-{kind}" for kind in ("operations", "timeline")}
        try:
            for kind, path in paths.items():
                if not (self.job.get("made") and Path(path).exists()):
                    compile_case(self.job, instrument=kind).save(path)
        except (tilelang.errors.TileLangError, KernelSourceError) as error:
            self.send("note", text=f"no cycles: {error}")
            return
        self.send("instrumented", paths=paths)

    def prepare(self, kernel: tilelang.Kernel) -> tuple[dict[str, Array], dict[str, Array]]:
        """Arguments for sample blocks and the expected outputs; the file for the launcher is announced."""
        self.send("stage", stage="preparing inputs and reference")
        parameters, job = self.parameters, self.job
        numerics = Numerics(job, parameters, job["directory"], int(job["seed"]))
        check_memory(parameters, numerics.kinds, self.places, reference=bool(job["reference"]))
        path, expected, given = saved_reference(numerics, Path(job["temporary"]))
        tolerance = job["tolerance"]
        default = default_tolerance([parameter["dtype"] for parameter in parameters])
        rtol, atol = (tolerance["rtol"], tolerance["atol"]) if tolerance else default
        self.rtol, self.atol = rtol, atol
        self.send("reference", path=str(path), inputs=numerics.kinds, rtol=rtol, atol=atol, outputs=sorted(expected))
        arguments = make_arguments(parameters, numerics.kinds, numerics.seed, given)
        for parameter in parameters:
            if parameter["access"] == "out":
                arguments[parameter["name"]] = poison(parameter["shape"], parameter["dtype"])
        return arguments, expected

    def simulate(self, kernel: tilelang.Kernel, arguments: dict[str, Array], expected: dict[str, Array]) -> None:
        """Count a launch by sample blocks, and compare what those blocks wrote with the reference."""
        self.send("stage", stage="simulating")
        if 0 in self.grid:
            at = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
            text = f"no block is launched at {at}: the grid is {' x '.join(map(str, self.grid))}"
            if expected:
                self.send("program_error", reason=f"{text}, and nothing is written")
            else:
                self.send("note", text=text)
            return
        try:
            analysis = kernel.analyse(sizes=self.sizes)
            if analysis.sampled:  # which depends on the inputs
                analysis = kernel.analyse(*arguments.values())
            blocks = [block for block, _ in sorted(analysis.classes, key=lambda each: -each[1])[:MOST_COMPARED]]
            x, y, z = self.grid
            last = (x - 1, y - 1, z - 1)
            shared = summed_up(analysis.counts) & set(expected)
            outputs: dict[str, Array] = {}
            if shared and x * y * z <= MOST_BLOCKS:  # what blocks add up to is known when all have run
                blocks = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
                outputs = kernel.simulate(*arguments.values(), count=False).outputs
            elif shared:
                self.send(
                    "note", text=f"not compared: all blocks add to {', '.join(sorted(shared))}, some were simulated"
                )
                expected = {name: value for name, value in expected.items() if name not in shared}
            else:
                blocks = list(dict.fromkeys([*blocks, last]))
            if expected and not shared:
                outputs = kernel.simulate(*arguments.values(), blocks=blocks, tiles=1, count=False).outputs
        except tilelang.errors.SimulationError as error:
            if error.location is not None:  # a race or an access out of range, at a line of the author
                self.send("program_error", reason=f"the simulator found an error in the program: {error}")
            else:
                self.send("note", text=f"not simulated: {error}")
            return
        except tilelang.errors.TileLangError as error:
            self.send("note", text=f"not simulated: {error}")
            return
        except ImportError:  # no TVM: what the bundle brought along is all there is
            self.send_stored(kernel)
            return
        self.send_analysis(kernel, analysis.to_json())
        self.suggest(kernel)
        if not self.sizes:  # else others use it, at sizes of their own
            kernel.save(self.job["bundle_path"])  # with the analyses in it
        if expected:
            self.check(kernel, arguments, outputs, expected, blocks)

    def send_stored(self, kernel: tilelang.Kernel) -> None:
        """Send the analysis that stands in the bundle, or say that there is none."""
        stored = kernel.bundle_record()["analyses"].get(kernel.analysis_key("simulated", self.sizes))
        if stored is None:
            self.send("note", text="not simulated: the simulator needs TVM, which is not installed here")
            return
        self.send("note", text="simulated when the bundle was made: TVM is not installed here")
        self.send_analysis(kernel, stored)
        if kernel.analysis_key("suggestions", self.sizes) in kernel.bundle_record()["analyses"]:
            self.suggest(kernel)

    def send_analysis(self, kernel: tilelang.Kernel, analysis: dict[str, Any]) -> None:
        """Send the counts of a launch."""
        self.send("analysed", analysis=analysis, blocks=len(analysis["classes"]), of=_product(self.grid))

    def suggest(self, kernel: tilelang.Kernel) -> None:
        """Send what would remove bank conflicts."""
        try:
            suggestions = kernel.suggestions(self.sizes)
        except tilelang.errors.TileLangError as error:
            self.send("note", text=f"no suggestions against bank conflicts: {error}")
            return
        self.send("suggested", suggestions=[suggestion.to_json() for suggestion in suggestions])

    def check(
        self,
        kernel: tilelang.Kernel,
        arguments: dict[str, Array],
        outputs: dict[str, Array],
        expected: dict[str, Array],
        blocks: list[tuple[int, int, int]],
    ) -> None:
        """Send the comparison of the elements that the simulated blocks wrote."""
        masks = {name: written(arguments[name], outputs[name]) for name in expected}
        comparison = compare(outputs, expected, self.rtol, self.atol, masks)
        if comparison.compared == 0:
            self.send("note", text="the simulated blocks wrote no element that the reference has")
            return
        total = _product(self.grid)
        shown = ", ".join(str(block) for block in blocks[:8]) + (", ..." if len(blocks) > 8 else "")
        self.send(
            "checked",
            ok=comparison.ok,
            max_abs_error=comparison.max_abs_error,
            max_rel_error=comparison.max_rel_error,
            rtol=self.rtol,
            atol=self.atol,
            worst=comparison.worst,
            scope=f"simulated blocks {shown} of {total}: {comparison.compared} elements",
        )


def summed_up(counts: Iterable[Any]) -> set[str]:
    """Tensors that blocks update with atomics, so that no single block's result is theirs."""
    return {count.buffer for count in counts if (count.space, count.access) == ("global", "atomic")}


def _product(grid: tuple[int, ...]) -> int:
    count = 1
    for extent in grid:
        count *= extent
    return count


def main() -> int:
    """Serve requests until the parent closes the channel."""
    channel = open_channel()
    with suppress(ImportError):  # on a host that only launches bundles
        importlib.import_module("tvm")  # now, so that its seconds are not counted as those of the first case
    channel.send("ready")
    kernels: dict[str, tilelang.Kernel] = {}
    while (job := channel.receive()) is not None:
        try:
            CaseWorker(job, channel.send, kernels).run()
        except MemoryError:
            channel.send("failed", status="crashed", reason="not enough memory to compile or simulate this case")
        except Exception as error:
            traceback.print_exc()
            channel.send("failed", status="crashed", reason=f"the compile worker failed: {describe_error(error)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
