"""What kernels are run on during a search: inputs that the author supplies, or random ones; the same for every configuration."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilelang_min.driver import arguments as call_arguments
from tilelang_min.driver.fills import filled
from tilelang_min.errors import TuningError
from tilelang_min.program import Parameter
from tilelang_min.program import sizes as runtime_sizes
from tilelang_min.program.dtypes import DATA_TYPES, numpy_dtype
from tilelang_min.tune.given import TensorSupplyType


class Inputs:
    """Arguments for kernels, in files that the measuring process reads.

    Kernels whose parameters have the same names, types and shapes get the same arguments.  ``out_idx``: numbers of parameters
    that a call allocates.
    """

    def __init__(
        self,
        folder: Path,
        *,
        kind: TensorSupplyType,
        supply: Callable[..., Any] | None,
        given: tuple[Any, ...] | None,
        on_gpu: bool,
    ) -> None:
        self.folder = folder
        self.kind = kind
        self.supply = supply
        self.given = given
        self.on_gpu = on_gpu
        self.made: dict[Any, tuple[list[dict[str, Any]], list[Any]]] = {}

    def arguments(self, parameters: Sequence[Parameter], out_idx: Sequence[int]) -> list[dict[str, Any]]:
        """One record a parameter: ``name``, ``dtype``, ``shape``, and the ``file`` of its content (None: only written)."""
        return self._of(parameters, out_idx)[0]

    def tensors(self, parameters: Sequence[Parameter], out_idx: Sequence[int]) -> list[Any]:
        """The same as tensors, for a reference: those that the author supplied, else torch's where it is in use, else arrays."""
        return self._of(parameters, out_idx)[1]

    def _of(self, parameters: Sequence[Parameter], out_idx: Sequence[int]) -> tuple[list[dict[str, Any]], list[Any]]:
        key = (tuple(parameters), tuple(out_idx))
        if key not in self.made:
            self.made[key] = self._make(parameters, out_idx, len(self.made))
        return self.made[key]

    def _make(
        self, parameters: Sequence[Parameter], out_idx: Sequence[int], number: int
    ) -> tuple[list[dict[str, Any]], list[Any]]:
        supplied = self._supplied(parameters, out_idx)
        known = sizes_of(parameters, supplied)
        parameters = runtime_sizes.fixed(tuple(parameters), known) if known else parameters
        generator = np.random.default_rng(0)
        records, tensors = [], []
        for index, parameter in enumerate(parameters):
            tensor, array = supplied.get(index), None
            if tensor is not None:
                array = _bytes_of(tensor, parameter)
                shape = tuple(int(extent) for extent in tensor.shape)
            elif parameter.access == "out" or (supplied and index in out_idx):
                shape = parameter.extents
            else:
                shape = parameter.extents
                made = filled(parameter, self.kind.name, generator)
                tensor, array = self._as_tensor(made, parameter), made.tobytes()
            file = None
            if array is not None and parameter.access != "out":
                path = self.folder / f"argument-{number}-{index}.bin"
                path.write_bytes(array)
                file = str(path)
            records.append({"name": parameter.name, "dtype": parameter.dtype, "shape": list(shape), "file": file})
            tensors.append(tensor)
        return records, tensors

    def _supplied(self, parameters: Sequence[Parameter], out_idx: Sequence[int]) -> dict[int, Any]:
        """Tensors that the author gives, by number of the parameter."""
        if self.given is not None:
            return by_place(parameters, out_idx, self.given)
        if self.supply is None:
            return {}
        wanted = [parameter for index, parameter in enumerate(parameters) if index not in out_idx]
        return by_place(parameters, out_idx, _called(self.supply, wanted))

    def _as_tensor(self, array: Any, parameter: Parameter) -> Any:
        torch = sys.modules.get("torch")
        if torch is None:
            return array
        return torch_tensor(torch, array, parameter.dtype, self.on_gpu)


def sizes_of(parameters: Sequence[Parameter], supplied: Mapping[int, Any]) -> dict[str, int]:
    """The runtime dimensions that supplied tensors have.  TuningError for one that none has."""
    given = [(parameters[index], tensor) for index, tensor in supplied.items()]
    shapes = [tuple(map(int, tensor.shape)) for _, tensor in given]
    known = runtime_sizes.bound([parameter for parameter, _ in given], shapes) if given else {}
    for name in runtime_sizes.names_of(tuple(parameters)):
        if name not in known:
            raise TuningError(
                f"nothing says how large the runtime dimension {name} of {', '.join(each.name for each in parameters)} is",
                remedy="search within `with set_autotune_inputs(a, b, ...):`, or give supply_prog=",
            )
    return known


def by_place(parameters: Sequence[Parameter], out_idx: Sequence[int], tensors: Sequence[Any]) -> dict[int, Any]:
    """Tensors by number of the parameter: of all parameters, or of those read, or not returned.  TuningError for another number."""
    every = range(len(parameters))
    passed = [index for index in every if index not in out_idx]
    read = [index for index in every if parameters[index].access != "out"]
    for places in (list(every), passed, read):
        if len(places) == len(tensors):
            return dict(zip(places, tensors, strict=True))
    raise TuningError(
        f"{len(tensors)} tensors are supplied, and the kernel takes {', '.join(each.name for each in parameters)}",
        remedy=f"supply {', '.join(parameters[index].name for index in passed)}",
    )


def _called(supply: Callable[..., Any], parameters: list[Parameter]) -> list[Any]:
    try:
        inspect.signature(supply).bind(parameters)
    except (TypeError, ValueError):
        made = supply()
    else:
        made = supply(parameters)
    return list(made) if isinstance(made, (list, tuple)) else [made]


def torch_tensor(torch: Any, array: np.ndarray[Any, Any], dtype: str, on_gpu: bool) -> Any:
    """An array as torch's; on the current GPU where that is asked for and there is one."""
    made = call_arguments.torch_tensor(dtype, array)
    return made.cuda() if on_gpu and torch.cuda.is_available() else made


def as_array(tensor: Any, dtype: str) -> np.ndarray[Any, Any]:
    """A tensor of torch, or an array, in host memory as an array of a type of the language."""
    if hasattr(tensor, "detach"):
        torch = sys.modules["torch"]
        plain = tensor.detach().contiguous().cpu()
        wanted = getattr(torch, DATA_TYPES[dtype].tvm)
        plain = plain if plain.dtype == wanted else plain.to(wanted)
        raw = plain.reshape(-1).view(torch.uint8).numpy()
        found: np.ndarray[Any, Any] = raw.view(numpy_dtype(dtype)).reshape(tuple(tensor.shape))
        return found
    if hasattr(tensor, "__cuda_array_interface__") and hasattr(tensor, "get"):  # CuPy
        tensor = tensor.get()
    return np.ascontiguousarray(np.asarray(tensor).astype(numpy_dtype(dtype), copy=False))


def _bytes_of(tensor: Any, parameter: Parameter) -> bytes:
    found = as_array(tensor, parameter.dtype)
    return found.tobytes()
