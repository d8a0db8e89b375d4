"""Arguments of a kernel call: checked against the parameters, turned into addresses on the kernel's device."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tilelang_min.errors import LaunchError
from tilelang_min.program import Parameter
from tilelang_min.program.dtypes import DATA_TYPES, data_type, language_name, numpy_dtype

if TYPE_CHECKING:
    from tilelang_min.runtime.gpu import DeviceBuffer, Runtime

_warned: set[str] = set()


@dataclass
class Prepared:
    """Addresses of all arguments; ``keep`` holds them alive.  ``device``: the number of the GPU that holds them, where they say so.

    Where arguments had to be copied, the end of a ``with`` block copies results ``back`` into arrays, and frees the ``copies``;
    after an error in the block it only frees.
    """

    pointers: list[int]
    keep: list[Any]
    device: int | None = None
    copies: ExitStack = field(default_factory=ExitStack)
    back: list[tuple[DeviceBuffer, Any]] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.copies.__exit__(kind, error, trace)
            return
        with self.copies:
            for buffer, array in self.back:
                buffer.read(array)


class TorchCall:
    """Checks of torch tensors against the parameters of one kernel, as quick as Python allows."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        torch = sys.modules["torch"]
        self.tensor = torch.Tensor
        self.wanted = [(getattr(torch, DATA_TYPES[p.dtype].tvm, None), tuple(p.shape)) for p in parameters]
        self.stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if self.stream is None:
            self.stream = lambda device: torch.cuda.current_stream(device).cuda_stream

    def pointers(self, arguments: Sequence[Any]) -> tuple[list[int], int] | None:
        """Addresses and device of the tensors; None where one does not fit, which :func:`prepare_gpu` then explains."""
        if len(arguments) != len(self.wanted):
            return None
        found, device, tensor = [], -2, self.tensor
        for argument, (dtype, shape) in zip(arguments, self.wanted):  # their number is the same
            if (
                not isinstance(argument, tensor)
                or argument.dtype is not dtype
                or argument.shape != shape
                or not argument.is_contiguous()
            ):
                return None
            where = argument.get_device()
            if where != device:
                if device >= 0 or where < 0:
                    return None
                device = where
            pointer = argument.data_ptr()
            if pointer & 15:
                return None
            found.append(pointer)
        return None if device < 0 else (found, device)


def check_count(name: str, parameters: Sequence[Parameter], arguments: Sequence[Any]) -> None:
    """Raise LaunchError unless there is one argument for each parameter."""
    if len(arguments) != len(parameters):
        names = ", ".join(parameter.name for parameter in parameters)
        raise LaunchError(
            f"kernel {name} takes {len(parameters)} tensors ({names}), {len(arguments)} given",
            remedy=f"call it as kernel({names})",
        )


def prepare_cpu(name: str, parameters: Sequence[Parameter], arguments: Sequence[Any]) -> Prepared:
    """Arguments in host memory: NumPy arrays, or anything with DLPack on the CPU."""
    import numpy as np

    check_count(name, parameters, arguments)
    pointers, keep = [], []
    for parameter, argument in zip(parameters, arguments, strict=True):
        array = argument if isinstance(argument, np.ndarray) else _host_view(parameter, argument)
        _check_array(parameter, array)
        pointers.append(array.__array_interface__["data"][0])
        keep.append(array)
    return Prepared(pointers, keep)


def prepare_gpu(name: str, parameters: Sequence[Parameter], arguments: Sequence[Any], gpu: Runtime) -> Prepared:
    """Arguments in GPU memory (torch, ``__cuda_array_interface__``); NumPy arrays are copied in and out, with one warning.

    On AMD torch and CuPy speak of cuda too.
    """
    import numpy as np

    check_count(name, parameters, arguments)
    prepared = Prepared([], [], device_of(parameters, arguments))
    with ExitStack() as made:  # a later argument may not fit
        for parameter, argument in zip(parameters, arguments, strict=True):
            if not isinstance(argument, np.ndarray):
                prepared.pointers.append(_device_pointer(parameter, argument))
                prepared.keep.append(argument)
                continue
            _check_array(parameter, argument)
            if gpu.is_capturing(gpu.current_stream()):
                raise LaunchError(
                    f"parameter {parameter.name}: a NumPy array cannot be copied while a graph is captured",
                    remedy="pass tensors that are on the GPU",
                )
            if name not in _warned:
                _warned.add(name)
                warnings.warn(f"kernel {name}: NumPy arrays are copied to the GPU and back at each call", stacklevel=4)
            buffer = made.enter_context(gpu.copy_of(argument))
            prepared.keep.append(buffer)
            prepared.pointers.append(buffer.pointer)
            if parameter.access != "in":
                prepared.back.append((buffer, argument))
        prepared.copies = made.pop_all()
    return prepared


def device_of(parameters: Sequence[Parameter], arguments: Sequence[Any]) -> int | None:
    """The GPU on which tensors say they are (torch's ``device.index``, CuPy's ``device.id``).  LaunchError for several."""
    first: tuple[str, int] | None = None
    for parameter, argument in zip(parameters, arguments, strict=False):
        device = getattr(argument, "device", None)
        index = getattr(device, "index" if hasattr(argument, "data_ptr") else "id", None)
        if not isinstance(index, int):
            continue
        if first is not None and first[1] != index:
            raise LaunchError(
                f"parameter {parameter.name} is on GPU {index}, and {first[0]} on GPU {first[1]}",
                remedy="bring all tensors to one device",
            )
        first = first or (parameter.name, index)
    return None if first is None else first[1]


def _host_view(parameter: Parameter, argument: Any) -> Any:
    import numpy as np

    kind = getattr(getattr(argument, "device", None), "type", "cpu")
    if kind == "meta":
        raise LaunchError(
            f"parameter {parameter.name}: a meta tensor has a shape and no elements",
            remedy="pass a tensor with elements: torch.empty_like(tensor, device='cpu')",
        )
    if kind != "cpu" or hasattr(argument, "__cuda_array_interface__"):
        raise LaunchError(
            f"parameter {parameter.name}: the tensor is on a GPU, this kernel runs on the CPU",
            remedy="pass tensor.cpu()",
        )
    if not hasattr(argument, "__dlpack__"):
        raise LaunchError(
            f"parameter {parameter.name}: {type(argument).__name__} is not a tensor",
            remedy="pass a NumPy array or a torch tensor",
        )
    if hasattr(argument, "detach"):  # torch
        argument = argument.detach()
        known = data_type(str(argument.dtype).removeprefix("torch."))
        if known is not None and known.narrow:  # NumPy takes these over as integers only
            integers = getattr(sys.modules["torch"], "int16" if known.size == 2 else "uint8")
            return np.from_dlpack(argument.view(integers)).view(numpy_dtype(known.name))
    return np.from_dlpack(argument)


def torch_tensor(dtype: str, array: Any) -> Any:
    """A copy of a NumPy array as torch's, also of types that NumPy and torch know by different names."""
    import numpy as np

    torch = sys.modules["torch"]
    raw = torch.from_numpy(np.array(array, copy=True).reshape(-1).view(np.uint8))
    return raw.view(getattr(torch, DATA_TYPES[dtype].tvm)).reshape(array.shape)


def _device_pointer(parameter: Parameter, argument: Any) -> int:
    import numpy as np

    if hasattr(argument, "data_ptr"):  # torch: its own attributes are quicker than the interface dictionary
        if argument.device.type != "cuda":
            raise LaunchError(
                f"parameter {parameter.name}: the tensor is on {argument.device}, this kernel runs on a GPU",
                remedy="pass tensor.cuda()",
            )
        _check(parameter, str(argument.dtype).removeprefix("torch."), tuple(argument.shape), argument.is_contiguous())
        pointer = int(argument.data_ptr())
    elif hasattr(argument, "__cuda_array_interface__"):
        facts = argument.__cuda_array_interface__
        _check(parameter, np.dtype(facts["typestr"]).name, tuple(facts["shape"]), facts.get("strides") is None)
        pointer = int(facts["data"][0])
    else:
        raise LaunchError(
            f"parameter {parameter.name}: {type(argument).__name__} is not a tensor on a GPU",
            remedy="pass a torch tensor on the GPU, or a NumPy array",
        )
    if pointer % 16:
        raise LaunchError(
            f"parameter {parameter.name} starts at an address that is no multiple of 16 bytes",
            remedy="pass a tensor of its own, not a view",
        )
    return pointer


def _check_array(parameter: Parameter, array: Any) -> None:
    """Raise LaunchError unless the NumPy array fits the parameter."""
    flags = array.flags
    if (  # what nearly every call passes: the name of a NumPy type alone takes longer than this
        array.shape == parameter.shape
        and array.dtype == numpy_dtype(parameter.dtype)
        and flags.c_contiguous
        and flags.aligned
        and (parameter.access == "in" or flags.writeable)
    ):
        return
    if not array.dtype.isnative:
        raise LaunchError(
            f"parameter {parameter.name} must be {parameter.dtype} in the machine's byte order",
            remedy=f"convert it to {parameter.dtype}",
        )
    _check(parameter, array.dtype.name, array.shape, array.flags.c_contiguous)
    if not array.flags.aligned:
        raise LaunchError(
            f"parameter {parameter.name} starts at an address that is no multiple of its element's size",
            remedy="pass a copy",
        )
    if parameter.access != "in" and not array.flags.writeable:
        raise LaunchError(
            f"parameter {parameter.name} is written, but the array is read-only", remedy="pass a writable array"
        )


def _check(parameter: Parameter, dtype: str, shape: Sequence[int], contiguous: bool) -> None:
    if language_name(dtype) != parameter.dtype:
        raise LaunchError(
            f"parameter {parameter.name} must be {parameter.dtype}, the tensor is {dtype}",
            remedy=f"convert it to {parameter.dtype}",
        )
    if tuple(shape) != parameter.shape:
        raise LaunchError(
            f"parameter {parameter.name} must have shape {parameter.shape}, the tensor has {tuple(shape)}",
            remedy="compile the kernel for this shape",
        )
    if not contiguous:
        raise LaunchError(f"parameter {parameter.name} is not contiguous", remedy="pass a contiguous copy")
