"""What the simulator says of a compiled kernel: outputs, counts of a whole launch, what to change.  Needs TVM when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilelang_min.driver import arguments as call_arguments
from tilelang_min.driver.kernel_facts import KernelFacts
from tilelang_min.program import Parameter, ThreadProgram
from tilelang_min.program import sizes as runtime_sizes

if TYPE_CHECKING:
    from tilelang_min.driver.prediction import Prediction
    from tilelang_min.driver.suggestion_records import Suggestion
    from tilelang_min.simulate import SimulationResult

_MOST_SIZED = 8
"""Thread programs with sizes put in that a kernel keeps."""


@dataclass(frozen=True)
class Analysis:
    """What the simulator counts for a whole launch.

    ``counts``: AccessCount records scaled to the launch; ``executed``: warp-level thread-program instructions by operation and
    class; ``classes``: (simulated block, number of blocks that it counts for); ``outputs``: parameters as the representative blocks
    left them, empty where nobody gave inputs.  ``sampled``: operations whose counts may differ between blocks of a class, because
    what they access depends on data; theirs are those of the representative times the class.
    """

    counts: tuple[Any, ...]
    executed: dict[int, dict[str, int]]
    classes: tuple[tuple[tuple[int, int, int], int], ...]
    outputs: dict[str, Any] = field(repr=False)
    notes: tuple[str, ...] = ()
    sampled: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON-ready, without ``outputs``."""
        return {
            "counts": [count.to_json() for count in self.counts],
            "executed": {str(key): value for key, value in self.executed.items()},
            "classes": [[list(block), number] for block, number in self.classes],
            "notes": list(self.notes),
            "sampled": list(self.sampled),
        }


class SimulatedKernel(KernelFacts):
    """A kernel that can be simulated; see :class:`tilelang_min.driver.kernel.Kernel`."""

    def thread_program(self) -> ThreadProgram:
        """The thread program, read from the bundle.  Imports TVM."""
        from tilelang_min.ir.thread_json import function_from_json

        record = self.bundle.record
        return ThreadProgram(
            name=self.name,
            target=self.target,
            function=function_from_json(self.bundle.file("thread_program.json").decode()),
            parameters=(*self.parameters, *self._hidden),
            grid=runtime_sizes.grid_of(record["grid"], dict.fromkeys(self.sizes, 1)),
            threads=record["threads"],
            shared=self.bundle.shared,
            shared_bytes_dynamic=record["launch"]["shared_bytes_dynamic"],
            operations=tuple(self.operations),
            tensor_maps=self.tensor_maps,
            cluster=self.cluster,
            consumer_threads=record.get("consumer_threads"),
            sizes=self.sizes,
            extents=tuple(record["grid"]) if self.sizes else None,
        )

    def completed(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """One tensor for each parameter."""
        return tuple(args)

    @cached_property
    def _program(self) -> ThreadProgram:
        return self.thread_program()

    def simulate(
        self, *args: Any, blocks: Any = None, tiles: int | None = None, count: bool = True
    ) -> SimulationResult:
        """Execute the kernel without its device: all blocks, or those given as (x, y, z).

        Of persistent blocks, which take tile after tile, the first ``tiles`` are computed, unless that is None.
        ``args``: one NumPy array for each parameter, or for each that a call does not allocate; they are not changed.  Needs TVM.
        """
        from tilelang_min.simulate import simulate

        args = self.completed(args)
        call_arguments.check_count(self.name, self.parameters, args)
        named = {parameter.name: argument for parameter, argument in zip(self.parameters, args, strict=True)}
        for name, array in zip([p.name for p in self._hidden], self.hidden_arguments(), strict=True):
            named[name] = array
        program = self.program_for(self.sizes_of(args))
        if tiles is None:
            result = simulate(program, named, blocks=blocks, count=count)
        else:
            from tilelang_min.driver.analysis import simulate_tiles

            result = simulate_tiles(program, named, blocks, tiles, count=count)
        for parameter in self._hidden:
            del result.outputs[parameter.name]
        return result

    @property
    def _hidden(self) -> tuple[Parameter, ...]:
        """Parameters that the caller does not see."""
        return () if self.instrument is None else self.instrument.hidden

    def hidden_arguments(self) -> tuple[Any, ...]:
        """NumPy arrays for the parameters that an instrumented build has beyond the author's; none for a plain one."""
        import numpy as np

        return tuple(np.zeros(parameter.extents, parameter.dtype) for parameter in self._hidden)

    def program_for(self, sizes: Mapping[str, int]) -> ThreadProgram:
        """The thread program of a launch with these runtime dimensions.  LaunchError where one is missing."""
        if not self.sizes:
            return self._program
        key = tuple(sorted(sizes.items()))
        if key not in self._sized:
            from tilelang_min.ir.sizes import with_sizes

            if len(self._sized) >= _MOST_SIZED:
                self._sized.pop(next(iter(self._sized)))
            self._sized[key] = with_sizes(self._program, sizes)
        return self._sized[key]

    @cached_property
    def _sized(self) -> dict[tuple[tuple[str, int], ...], ThreadProgram]:
        return {}

    def analyse(self, *args: Any, sizes: Mapping[str, int] | None = None) -> Analysis:
        """Counts for a whole launch, from one simulated block of each class; with ``args`` also what those blocks compute.

        Runtime dimensions are those of ``args``, or given as ``sizes``.  LaunchError where one is missing.
        """
        args = self.completed(args)
        at = {**self.sizes_of(args), **(sizes or {})} if args else sizes or {}
        key = self.analysis_key("simulated", at)
        if not args and key in self.bundle.record["analyses"]:
            return self._stored_analysis(key)
        from tilelang_min.driver.analysis import analyse

        analysis = analyse(self, args, at)
        self.bundle.record["analyses"][key] = analysis.to_json()
        return analysis

    def predict(self, device: str | None = None, sizes: Mapping[str, int] | None = None) -> Prediction | None:
        """How long a launch should take on ``device`` (default: the target's first product), from counts and rates alone.

        None on a CPU, of which no rates are known.  See :mod:`tilelang_min.driver.prediction`.
        """
        from tilelang_min.driver.prediction import predict

        return predict(self, sizes or {}, device)

    def suggestions(self, sizes: Mapping[str, int] | None = None) -> list[Suggestion]:
        """For each shared tile with bank conflicts the smallest padding, and the swizzle, that remove them, each proved.

        ``sizes``: the runtime dimensions of the launch, LaunchError where one is missing.  See
        :func:`tilelang_min.driver.suggestions.suggest`.  Kept in the bundle's record.
        """
        from tilelang_min.driver.suggestion_records import Suggestion

        analyses = self.bundle.record["analyses"]
        key = self.analysis_key("suggestions", sizes or {})
        if key not in analyses:
            from tilelang_min.driver.suggestions import suggest

            analyses[key] = [suggestion.to_json() for suggestion in suggest(self, sizes or {})]
        return [Suggestion.from_json(record) for record in analyses[key]]

    def analysis_key(self, what: str, sizes: Mapping[str, int]) -> str:
        """Where in the bundle's record an analysis of a launch with these sizes is kept."""
        self.parameters_for(sizes)
        return what if not self.sizes else f"{what} {', '.join(f'{name}={sizes[name]}' for name in self.sizes)}"

    def _stored_analysis(self, key: str) -> Analysis:
        from tilelang_min.simulate.result import AccessCount

        record = self.bundle.record["analyses"][key]
        return Analysis(
            counts=tuple(AccessCount.from_json(item) for item in record["counts"]),
            executed={int(key): value for key, value in record["executed"].items()},
            classes=tuple((tuple(block), number) for block, number in record["classes"]),
            outputs={},
            notes=tuple(record["notes"]),
            sampled=tuple(record.get("sampled", ())),
        )
