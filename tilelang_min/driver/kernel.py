"""A compiled kernel: what users call, ask and save.  Its facts are in ``kernel_facts.py``, simulating is in ``simulated.py``."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilelang_min.driver import arguments as call_arguments
from tilelang_min.driver.simulated import SimulatedKernel
from tilelang_min.errors import LaunchError
from tilelang_min.program import sizes as runtime_sizes
from tilelang_min.program.dtypes import DATA_TYPES, numpy_dtype
from tilelang_min.program.instrument import OPERATIONS
from tilelang_min.runtime.bundle import Bundle, load_bundle

if TYPE_CHECKING:
    from tilelang_min.driver.cycles import Cycles
    from tilelang_min.driver.profiler import Profiler
    from tilelang_min.runtime.gpu import Runtime


class Kernel(SimulatedKernel):
    """A compiled kernel, made by :func:`tilelang_min.compile` or :func:`tilelang_min.load`.

    Calling it runs it on its device.  Everything else works on any machine.
    """

    def __init__(self, bundle: Bundle, out_idx: tuple[int, ...] = ()) -> None:
        super().__init__(bundle)
        self.out_idx = out_idx
        self.rebuild: Callable[[str], Kernel] | None = None
        self.config: dict[str, Any] | None = None
        """What ``tilelang.autotune`` chose; ``latency`` and ``ref_latency`` are its milliseconds, ``tuned`` is the whole record."""
        self.latency: float | None = None
        self.ref_latency: float | None = None
        self.tuned: Any = None
        self._launcher: Any = None
        self._lock = threading.Lock()

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

    def _launch_gpu(self, launcher: Any, args: tuple[Any, ...]) -> None:
        """Launch on the tensors' own device, on torch's current stream there."""
        gpu = self._gpu
        quick = self._torch_call.pointers(args) if "torch" in sys.modules and not self.sizes else None
        if quick is None:
            device = call_arguments.device_of(self.parameters, args)
            with nullcontext() if device is None else gpu.on_device(device):  # copies of arrays go there too
                prepared, grid = self.prepared(args)
                with prepared:
                    if 0 not in grid:  # an empty tensor: there is nothing to do
                        launcher(prepared.pointers, grid=grid, threads=self._threads, stream=gpu.current_stream(device))
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

    def completed(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """One tensor for each parameter: ``args``, with new outputs where they lack those that a call allocates."""
        if args and self.out_idx and len(args) == len(self.parameters) - len(self.out_idx):
            return self._with_outputs(tuple(args))[0]
        return tuple(args)

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
        like = next((item for item in args if hasattr(item, "new_empty")), None)  # torch
        torch = sys.modules.get("torch") if not args and self.target.kind != "cpu" else None
        for number, parameter in enumerate(parameters):
            if number in self.out_idx:
                if like is not None:
                    made = like.new_empty(parameter.extents, dtype=_torch_dtype(parameter.dtype))
                elif torch is not None and torch.cuda.is_available():  # no input says where
                    made = torch.empty(parameter.extents, dtype=_torch_dtype(parameter.dtype), device="cuda")
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

                    self._launcher = InstrumentedLauncher(
                        self._launcher, self.instrument, self.target.kind, len(self.parameters)
                    )
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
        launcher = self._launcher or self._load()
        return summarise(self.instrument, launcher.values(), self.operations, launcher.blocks)

    def bind(self, *args: Any) -> Callable[[], None]:
        """A function without arguments that launches on these tensors, which are checked now and kept alive: half of a call's
        cost on a GPU.  See :func:`tilelang_min.driver.binding.bind`."""
        from tilelang_min.driver.binding import bind

        return bind(self, args)

    def get_profiler(self, tensor_supply_type: Any = "Auto") -> Profiler:
        """An object with ``do_bench()`` and ``assert_allclose(reference)``, as in TileLang.

        ``tensor_supply_type``: how inputs are filled that nobody gives, a ``tilelang.TensorSupplyType`` or its name.
        """
        from tilelang_min.driver.profiler import Profiler

        return Profiler(self, tensor_supply_type)


def load(path: str | os.PathLike[str]) -> Kernel:
    """The kernel in a bundle that :meth:`Kernel.save` wrote.  Needs no compiler."""
    return Kernel(load_bundle(path))


def _torch_dtype(name: str) -> Any:
    # Only asked for a torch tensor: whoever made it has imported torch.
    return getattr(sys.modules["torch"], DATA_TYPES[name].tvm)
