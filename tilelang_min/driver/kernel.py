"""A compiled kernel: what users call, ask and save."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelang_min.driver import arguments as call_arguments
from tilelang_min.errors import LaunchError
from tilelang_min.program import KernelMetadata, Listing, Parameter, TensorMap, ThreadProgram, TileOperation
from tilelang_min.program import sizes as runtime_sizes
from tilelang_min.program.dtypes import DATA_TYPES, is_float, numpy_dtype
from tilelang_min.program.instrument import OPERATIONS, Instrument
from tilelang_min.runtime.bundle import Bundle, load_bundle
from tilelang_min.targets import Target, resolve

if TYPE_CHECKING:
    from tilelang_min.driver.cycles import Cycles
    from tilelang_min.driver.profiler import Profiler
    from tilelang_min.driver.suggestions import Suggestion
    from tilelang_min.runtime.gpu import Runtime
    from tilelang_min.simulate import SimulationResult


_MOST_SIZED = 8
"""Thread programs with sizes put in that a kernel keeps."""


@dataclass(frozen=True)
class Analysis:
    """What the simulator counts for a whole launch.

    ``counts``: AccessCount records scaled to the launch; ``executed``: warp-level thread-program instructions by operation and
    class; ``classes``: (representative block, number of blocks like it); ``outputs``: parameters as the representative blocks
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


class Kernel:
    """A compiled kernel, made by :func:`tilelang_min.compile` or :func:`tilelang_min.load`.

    Calling it runs it on its device.  Everything else works on any machine.
    """

    def __init__(self, bundle: Bundle, out_idx: tuple[int, ...] = ()) -> None:
        self.bundle = bundle
        self.name: str = bundle.record["name"]
        self.parameters: tuple[Parameter, ...] = bundle.parameters
        self.out_idx = out_idx
        self.rebuild: Callable[[str], Kernel] | None = None
        self._launcher: Any = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Kernel {self.name} for {self.target.name}, grid {tuple(self.bundle.record['grid'])}>"

    # -- facts -----------------------------------------------------------------------------------------------------

    @cached_property
    def target(self) -> Target:
        """The target it was compiled for."""
        return resolve(self.bundle.record["target"])

    @cached_property
    def grid(self) -> tuple[int, int, int]:
        """Blocks of a launch in each direction; on a CPU, tasks.  LaunchError where it depends on runtime dimensions."""
        if self.sizes:
            raise LaunchError(
                f"the grid of kernel {self.name} depends on {', '.join(self.sizes)}",
                remedy="ask for kernel.grid_for(sizes), or look at kernel.metadata.grid",
            )
        return self.grid_for({})

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """Names of the runtime dimensions (``T.dynamic``), in the order in which the kernel takes them."""
        return runtime_sizes.names_of(self.parameters)

    def grid_for(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """Blocks of a launch with these runtime dimensions.  LaunchError for a missing one, or more than the target can count."""
        missing = [name for name in self.sizes if name not in sizes]
        if missing:
            raise LaunchError(
                f"nothing says how large the runtime dimension {missing[0]} of {self.name} is",
                remedy=f"give sizes for {', '.join(self.sizes)}",
            )
        grid = runtime_sizes.grid_of(self.bundle.record["grid"], sizes)
        for axis, extent, most in zip("xyz", grid, self.target.max_grid if sizes else (), strict=False):
            if self.target.kind != "cpu" and extent > most:
                raise LaunchError(
                    f"kernel {self.name} at {dict(sizes)} has {extent:,} blocks along {axis}, "
                    f"{self.target.name} allows {most:,}",
                    remedy="give a block more of the work",
                )
        return grid

    def sizes_of(self, args: Sequence[Any]) -> dict[str, int]:
        """The runtime dimensions that these tensors have.  LaunchError where they disagree."""
        if not self.sizes:
            return {}
        call_arguments.check_count(self.name, self.parameters, args)
        return runtime_sizes.bound(self.parameters, [getattr(item, "shape", None) for item in args])

    def prepared(self, args: Sequence[Any]) -> tuple[call_arguments.Prepared, tuple[int, int, int]]:
        """Arguments of one launch, runtime dimensions behind the addresses, and its grid."""
        sizes = self.sizes_of(args)
        parameters = runtime_sizes.fixed(self.parameters, sizes) if sizes else self.parameters
        grid = self.grid_for(sizes) if sizes else self.grid
        if self.target.kind == "cpu":
            prepared = call_arguments.prepare_cpu(self.name, parameters, args)
        else:
            prepared = call_arguments.prepare_gpu(self.name, parameters, args, self._gpu)
        prepared.pointers.extend(sizes[name] for name in self.sizes)
        return prepared, grid

    @cached_property
    def instrument(self) -> Instrument | None:
        """What an instrumented build measures; None for a plain one."""
        record = self.bundle.record.get("instrument")
        return None if record is None else Instrument.from_json(record)

    @cached_property
    def metadata(self) -> KernelMetadata:
        """Static facts: registers, shared bytes, spills, occupancy, instructions, operations, bytes.

        On a kernel for NVIDIA that has just been compiled this waits for the disassembler; launching does not.
        """
        return self.bundle.metadata

    @cached_property
    def operations(self) -> list[TileOperation]:
        """The tile operations, by id."""
        return list(self.bundle.operations)

    @cached_property
    def listing(self) -> Listing:
        """Machine instructions with the operation of each."""
        return self.bundle.listing

    def source(self) -> str:
        """Generated CUDA C++ or LLVM IR."""
        return self.bundle.source

    get_kernel_source = source

    def assembly(self) -> str:
        """SASS, GCN or x86 assembly."""
        return self.listing.text

    def explain(self) -> str:
        """What was decided and why, as text: layouts, pipelines, matrix instructions taken and refused, barriers, resources and
        what limits occupancy.  ``TILELANG_DUMP=1`` writes the same, with every stage, while compiling."""
        from tilelang_min.driver.explanation import explain

        return explain(self.bundle, self.target)

    def bundle_record(self) -> dict[str, Any]:
        """The content of ``kernel.json``."""
        return self.bundle.complete().record

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a bundle: a directory, or one file when the name ends in ``.tlk``."""
        return self.bundle.save(path)

    # -- running ---------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the kernel on ``args``, one tensor a parameter.  CPU kernels return when done, GPU kernels when launched.

        Parameters named by ``out_idx`` are left out of ``args``, allocated here and returned.
        """
        if named:
            order = ", ".join(p.name for number, p in enumerate(self.parameters) if number not in self.out_idx)
            raise LaunchError(f"{next(iter(named))}= is given by name", remedy=f"call it as kernel({order})")
        outputs: list[Any] = []
        if self.out_idx:
            args, outputs = self._with_outputs(args)
        kind = self.target.kind
        launcher = self._launcher or self._load()
        if kind == "cpu":
            prepared, grid = self.prepared(args)
            launcher(prepared.pointers, grid=grid)
        else:
            self._launch_gpu(launcher, args)
        if outputs:
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        return None

    def _launch_gpu(self, launcher: Any, args: tuple[Any, ...]) -> None:
        """Launch on the tensors' own device, on torch's current stream there."""
        gpu = self._gpu
        quick = self._torch_call.pointers(args) if "torch" in sys.modules and not self.sizes else None
        if quick is None:
            device = call_arguments.device_of(self.parameters, args)
            with nullcontext() if device is None else gpu.on_device(device):  # copies of arrays go there too
                prepared, grid = self.prepared(args)
                if 0 not in grid:  # an empty tensor: there is nothing to do
                    launcher(prepared.pointers, grid=grid, threads=self._threads, stream=gpu.current_stream(device))
                prepared.finish()
            return
        pointers, device = quick
        context = gpu.ensure_context()
        if gpu.device_of(context) == device:
            launcher.launch(context, pointers, self.grid, self._threads, gpu.stream_of(device, self._torch_call.stream))
            return
        with gpu.on_device(device) as context:
            launcher.launch(context, pointers, self.grid, self._threads, gpu.stream_of(device, self._torch_call.stream))

    @cached_property
    def _gpu(self) -> Runtime:
        from tilelang_min.runtime import gpu

        return gpu.runtime(self.target.kind)

    @cached_property
    def _threads(self) -> int:
        return int(self.bundle.record["threads"])

    @cached_property
    def _torch_call(self) -> call_arguments.TorchCall:
        return call_arguments.TorchCall(self.parameters)

    def _with_outputs(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
        import numpy as np

        given = iter(args)
        if len(args) != len(self.parameters) - len(self.out_idx):
            expected = len(self.parameters) - len(self.out_idx)
            raise LaunchError(
                f"kernel {self.name} takes {expected} inputs, {len(args)} given",
                remedy="outputs are allocated by the call",
            )
        full: list[Any] = []
        outputs: list[Any] = []
        parameters = self.parameters
        if self.sizes:
            inputs = [item for number, item in enumerate(parameters) if number not in self.out_idx]
            sizes = runtime_sizes.bound(inputs, [getattr(item, "shape", None) for item in args])
            parameters = runtime_sizes.fixed(parameters, sizes)
        for number, parameter in enumerate(parameters):
            if number in self.out_idx:
                like = args[0] if args else None
                if like is not None and hasattr(like, "new_empty"):
                    made = like.new_empty(parameter.extents, dtype=_torch_dtype(parameter.dtype))
                else:
                    made = np.empty(parameter.extents, numpy_dtype(parameter.dtype))
                outputs.append(made)
                full.append(made)
            else:
                full.append(next(given))
        return tuple(full), outputs

    def _load(self) -> Any:
        with self._lock:
            if self._launcher is None:
                binary, symbol = self.bundle.binary, self.bundle.record["symbol"]
                if self.target.kind == "cpu":
                    from tilelang_min.runtime import cpu

                    self._launcher = cpu.load(binary, symbol, arch=self.target.arch)
                else:
                    self._launcher = self._load_on_gpu(binary, symbol)
                if self.instrument is not None:
                    from tilelang_min.driver.cycles import InstrumentedLauncher

                    self._launcher = InstrumentedLauncher(self._launcher, self.instrument, self.target.kind)
        return self._launcher

    def _load_on_gpu(self, binary: bytes, symbol: str) -> Any:
        try:
            self._gpu.ensure_context()
        except LaunchError as error:
            instead = "compile for 'cpu', simulate with kernel.simulate(...), or run the bundle on a GPU host"
            raise LaunchError(
                f"kernel {self.name} is for {self.target.name}, and there is no such GPU here: {error.message}",
                remedy=f"{error.remedy}; or {instead}" if error.remedy else instead,
            ) from None
        shared = self.bundle.record["launch"]["shared_bytes_dynamic"]
        names = [*(item.name for item in (*self.parameters, *self._hidden)), *self.sizes]
        if self.target.kind == "hip":
            from tilelang_min.runtime import hip_launch

            return hip_launch.load(binary, symbol, arch=self.target.arch, shared_bytes_dynamic=shared, count=len(names))
        from tilelang_min.runtime import cuda_launch

        return cuda_launch.load(
            binary,
            symbol,
            shared_bytes_dynamic=shared,
            cluster=self.cluster,
            tensor_maps=self.tensor_maps,
            parameters=names,
        )

    def instrumented(self, kind: str = OPERATIONS) -> Kernel:
        """The same kernel built with clock reads, ``operations`` or ``timeline``; LaunchError for one loaded from a bundle."""
        if self.rebuild is None:
            raise LaunchError(
                f"kernel {self.name} was loaded from a bundle and cannot be built again with clock reads",
                remedy='compile it from its source, or save the bundle of a build with instrument="operations"',
            )
        return self.rebuild(kind)

    def cycles(self) -> Cycles:
        """What the last launch of an instrumented build measured; on a GPU this waits for it.  LaunchError for another build."""
        from tilelang_min.driver.cycles import summarise

        if self.instrument is None:
            raise LaunchError(
                f"kernel {self.name} reads no clock", remedy='compile it with instrument="operations" and launch it'
            )
        return summarise(self.instrument, (self._launcher or self._load()).values(), self.operations)

    def bind(self, *args: Any) -> Callable[[], None]:
        """A function without arguments that launches on these tensors, which are checked now and kept alive: half of a call's
        cost on a GPU.  See :func:`tilelang_min.driver.binding.bind`."""
        from tilelang_min.driver.binding import bind

        return bind(self, args)

    def get_profiler(self) -> Profiler:
        """An object with ``do_bench()``, as in TileLang."""
        from tilelang_min.driver.profiler import Profiler

        return Profiler(self)

    # -- simulating ------------------------------------------------------------------------------------------------

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

    @property
    def cluster(self) -> tuple[int, int, int]:
        """Blocks, in each direction, that start together."""
        x, y, z = self.bundle.record["launch"].get("cluster", (1, 1, 1))
        return x, y, z

    @property
    def tensor_maps(self) -> tuple[TensorMap, ...]:
        """The tensor maps that a launch makes from its arguments, in the order of the kernel's parameters."""
        return tuple(
            TensorMap(**{**item, "shape": tuple(item["shape"]), "box": tuple(item["box"])})
            for item in self.bundle.record["launch"].get("tensor_maps", ())
        )

    @cached_property
    def _program(self) -> ThreadProgram:
        return self.thread_program()

    def simulate(self, *args: Any, blocks: Any = None, count: bool = True) -> SimulationResult:
        """Execute the kernel without its device: all blocks, or those given as (x, y, z).

        ``args``: one NumPy array for each parameter; they are not changed.  Needs TVM.
        """
        from tilelang_min.simulate import simulate

        call_arguments.check_count(self.name, self.parameters, args)
        named = {parameter.name: argument for parameter, argument in zip(self.parameters, args, strict=True)}
        for name, array in zip([p.name for p in self._hidden], self.hidden_arguments(), strict=True):
            named[name] = array
        result = simulate(self.program_for(self.sizes_of(args)), named, blocks=blocks, count=count)
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
        if not args and not self.sizes and "simulated" in self.bundle.record["analyses"]:
            return self._stored_analysis()
        from tilelang_min.driver.analysis import analyse

        analysis = analyse(self, args, {**self.sizes_of(args), **(sizes or {})} if args else sizes or {})
        if not self.sizes:
            self.bundle.record["analyses"]["simulated"] = analysis.to_json()
        return analysis

    def suggestions(self) -> list[Suggestion]:
        """For each shared tile with bank conflicts the smallest padding, and the swizzle, that remove them, each proved.

        See :func:`tilelang_min.driver.suggestions.suggest`.  Kept in the bundle's record.
        """
        from tilelang_min.driver.suggestions import Suggestion, suggest

        if self.sizes:
            raise LaunchError(
                f"suggestions for kernel {self.name} depend on {', '.join(self.sizes)}",
                remedy="compile the kernel with numbers in place of T.dynamic and ask that one",
            )
        analyses = self.bundle.record["analyses"]
        if "suggestions" not in analyses:
            analyses["suggestions"] = [suggestion.to_json() for suggestion in suggest(self)]
        return [Suggestion.from_json(record) for record in analyses["suggestions"]]

    def _stored_analysis(self) -> Analysis:
        from tilelang_min.simulate.result import AccessCount

        record = self.bundle.record["analyses"]["simulated"]
        return Analysis(
            counts=tuple(AccessCount.from_json(item) for item in record["counts"]),
            executed={int(key): value for key, value in record["executed"].items()},
            classes=tuple((tuple(block), number) for block, number in record["classes"]),
            outputs={},
            notes=tuple(record["notes"]),
            sampled=tuple(record.get("sampled", ())),
        )


def random_arguments(parameters: tuple[Parameter, ...], seed: int = 0) -> tuple[Any, ...]:
    """Normal inputs and NaN-filled outputs for a kernel, as NumPy arrays."""
    import numpy as np

    generator = np.random.default_rng(seed)
    made: list[Any] = []
    for parameter in parameters:
        dtype = numpy_dtype(parameter.dtype)
        if not is_float(parameter.dtype):
            made.append(generator.integers(0, 100, parameter.extents).astype(dtype))
        elif parameter.access == "out":
            made.append(np.full(parameter.extents, np.nan, dtype))
        else:
            made.append(generator.standard_normal(parameter.extents, dtype=np.float32).astype(dtype))
    return tuple(made)


def zero_arguments(parameters: tuple[Parameter, ...]) -> tuple[Any, ...]:
    """Arrays of zeros, which cost nothing until somebody writes them."""
    import numpy as np

    return tuple(np.zeros(parameter.extents, numpy_dtype(parameter.dtype)) for parameter in parameters)


def load(path: str | os.PathLike[str]) -> Kernel:
    """The kernel in a bundle that :meth:`Kernel.save` wrote.  Needs no compiler."""
    return Kernel(load_bundle(path))


def _torch_dtype(name: str) -> Any:
    # Only asked for a torch tensor: whoever made it has imported torch.
    return getattr(sys.modules["torch"], DATA_TYPES[name].tvm)
