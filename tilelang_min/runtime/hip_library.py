"""AMD's HIP runtime, ``libamdhip64``: where it is, what its functions take, and what its errors mean.

Reached by ctypes: the functions used here are plain C, the same in ROCm 6 and 7 (HIP API reference; ``hip_runtime_api.h`` of
ROCm/rocm-systems).  No AMD GPU was at hand: what is here was tested against a stand-in of the library.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from tilelang_min.errors import LaunchError
from tilelang_min.targets import kfd

INSTALL = (
    "install ROCm's HIP runtime (package hip-runtime-amd or rocm-hip-runtime), or name the folder of ROCm in ROCM_PATH"
)

_NAMES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so")
_FOLDERS = ("opt/rocm/lib", "opt/rocm*/lib", "opt/rocm/core-*/lib", "usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib")
_WHEELS = (("_rocm_sdk_core", "lib"), ("torch", "lib"))
"""Python packages that bring the library: AMD's own wheels, torch built for ROCm."""

_VISIBLE = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")

_POINTER, _INT, _UNSIGNED, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
_TO_POINTER, _TO_INT = ctypes.POINTER(_POINTER), ctypes.POINTER(_INT)

_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "hipInit": (_UNSIGNED,),
    "hipRuntimeGetVersion": (_TO_INT,),
    "hipGetDeviceCount": (_TO_INT,),
    "hipGetDevice": (_TO_INT,),
    "hipSetDevice": (_INT,),
    "hipDeviceGetName": (ctypes.c_char_p, _INT, _INT),
    "hipDeviceGetPCIBusId": (ctypes.c_char_p, _INT, _INT),
    "hipDeviceGetAttribute": (_TO_INT, _INT, _INT),
    "hipDeviceTotalMem": (ctypes.POINTER(_SIZE), _INT),
    "hipGetDevicePropertiesR0600": (_POINTER, _INT),
    "hipMalloc": (_TO_POINTER, _SIZE),
    "hipFree": (_POINTER,),
    "hipMemcpyHtoD": (_POINTER, _POINTER, _SIZE),
    "hipMemcpyDtoH": (_POINTER, _POINTER, _SIZE),
    "hipMemsetD8Async": (_POINTER, ctypes.c_ubyte, _SIZE, _POINTER),
    "hipStreamSynchronize": (_POINTER,),
    "hipStreamIsCapturing": (_POINTER, _TO_INT),
    "hipThreadExchangeStreamCaptureMode": (_TO_INT,),
    "hipEventCreateWithFlags": (_TO_POINTER, _UNSIGNED),
    "hipEventRecord": (_POINTER, _POINTER),
    "hipEventElapsedTime": (ctypes.POINTER(ctypes.c_float), _POINTER, _POINTER),
    "hipEventDestroy": (_POINTER,),
    "hipModuleLoadData": (_TO_POINTER, _POINTER),
    "hipModuleGetFunction": (_TO_POINTER, _POINTER, ctypes.c_char_p),
    "hipModuleUnload": (_POINTER,),
    "hipModuleLaunchKernel": (_POINTER, *(_UNSIGNED,) * 7, _POINTER, _POINTER, _POINTER),
}

ATTRIBUTES = {"l2_bytes": 19, "units": 63, "shared_bytes": 74}
"""Numbers of ``hipDeviceAttribute_t``: L2CacheSize, MultiprocessorCount, MaxSharedMemoryPerBlock."""

_REMEDIES = {
    "hipErrorNoBinaryForGpu": "the binary is for another architecture: compile for the one of this device",
    "hipErrorInvalidImage": "the binary is damaged: compile again",
    "hipErrorInvalidKernelFile": "the binary is damaged: compile again",
    "hipErrorSharedObjectInitFailed": "the binary does not fit this ROCm: compile again, or use a newer ROCm",
    "hipErrorNotFound": "the binary holds no kernel of that name: compile again",
    "hipErrorInvalidConfiguration": "the block has more threads than the kernel or the device allows: compile for fewer",
    "hipErrorLaunchOutOfResources": "the block needs more registers or LDS than there are: use fewer threads or smaller tiles",
    "hipErrorOutOfMemory": "the device's memory is full: free some, or use smaller tensors",
    "hipErrorInsufficientDriver": "the amdgpu driver is older than this ROCm: update one of them",
    "hipErrorInvalidDevice": "see ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES",
    "hipErrorIllegalAddress": (
        "a kernel read or wrote outside its tensors; this process cannot use the GPU any more, start a new one and simulate "
        "the kernel: the simulator names the access"
    ),
    "hipErrorLaunchFailure": "the kernel died; start a new process and simulate the kernel, and see what dmesg says of amdgpu",
    "hipErrorStreamCaptureUnsupported": "launch once before the stream is captured",
}


def loaded_path(maps: Path = Path("/proc/self/maps")) -> str | None:
    """Path of the library that this process has loaded already, by torch for example.  Two of them do not get on."""
    with suppress(OSError):
        found = re.search(r"^\S+ \S+ \S+ \S+ \S+ +(/\S*/libamdhip64[^/\s]*)$", maps.read_text(), re.MULTILINE)
        return found[1] if found else None
    return None


def library_path(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> str | None:
    """Path of the library, found without loading it: one that is loaded, LD_LIBRARY_PATH, ROCM_PATH, HIP_PATH, the usual folders
    (and those of ld.so.conf) below ``root``, Python packages.  None where it is nowhere."""
    environment = os.environ if environment is None else environment
    loaded = loaded_path(root / "proc/self/maps")
    if loaded is not None:
        return loaded
    for folder in _folders(environment, root):
        for name in _NAMES:
            if (folder / name).exists():
                return str(folder / name)
    return None


def _folders(environment: Mapping[str, str], root: Path) -> Iterator[Path]:
    yield from (Path(part) for part in environment.get("LD_LIBRARY_PATH", "").split(":") if part)
    for variable in ("ROCM_PATH", "HIP_PATH"):
        if named := environment.get(variable):
            yield Path(named) / "lib"
    for pattern in _FOLDERS:  # of several releases the newest
        places = root.glob(pattern)
        yield from sorted(places, key=lambda place: [int(n) for n in re.findall(r"\d+", str(place))], reverse=True)
    for file in sorted((root / "etc/ld.so.conf.d").glob("*.conf")):
        with suppress(OSError):
            lines = file.read_text(errors="replace").splitlines()
            yield from (root / line.strip().lstrip("/") for line in lines if line.startswith("/"))
    if root == Path("/"):
        for package, inner in _WHEELS:
            with suppress(ImportError, ValueError):
                spec = importlib.util.find_spec(package)
                installed = (spec.submodule_search_locations or ()) if spec is not None else ()
                yield from (Path(place) / inner for place in installed)


@cache
def library() -> Any:
    """The library, started.  LaunchError where it is missing, or finds no GPU that this process may use."""
    path = library_path()
    if path is None:
        if (known := kfd.trouble()) is not None:  # then the library would not help
            raise LaunchError(known[0], remedy=known[1])
        raise LaunchError("launching on an AMD GPU needs libamdhip64, which is not here", remedy=INSTALL)
    try:
        loaded = ctypes.CDLL(path)
        for name, types in _PROTOTYPES.items():
            function = getattr(loaded, name)
            function.argtypes, function.restype = types, _INT
        for name in ("hipGetErrorName", "hipGetErrorString"):
            function = getattr(loaded, name)
            function.argtypes, function.restype = (_INT,), ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise LaunchError(f"{path} cannot be used: {error}", remedy=INSTALL) from None
    count = _INT()
    status = loaded.hipInit(0) or loaded.hipGetDeviceCount(ctypes.byref(count))
    if status or not count.value:
        raise _without_device(loaded, status)
    return loaded


def _without_device(loaded: Any, status: int) -> LaunchError:
    """Why the runtime finds no GPU: what the file system says, else what the runtime does."""
    known = kfd.trouble()
    if known is not None:
        why, remedy = known
        return LaunchError(why, remedy=remedy)
    said = f": {describe(loaded, status)}" if status else ""
    hidden = [name for name in _VISIBLE if name in os.environ]
    remedy = (
        f"see {' and '.join(hidden)}"
        if hidden
        else "see whether rocminfo lists a GPU, and whether this user may use it"
    )
    return LaunchError(f"the HIP runtime finds no AMD GPU{said}", remedy=remedy)


def describe(loaded: Any, status: int) -> str:
    """``out of memory (hipErrorOutOfMemory)``."""
    name, text = loaded.hipGetErrorName(status), loaded.hipGetErrorString(status)
    return f"{_text(text) or 'no message'} ({_text(name) or status})"


def _text(value: bytes | None) -> str:
    return value.decode(errors="replace") if value else ""


def call(name: str, *arguments: Any) -> None:
    """Call a function of the library.  An error status raises LaunchError."""
    loaded = library()
    status = getattr(loaded, name)(*arguments)
    if status:
        check(status, name)


def check(status: int, name: str) -> None:
    """Raise LaunchError for the error status that function ``name`` returned."""
    loaded = library()
    symbol = _text(loaded.hipGetErrorName(status))
    raise LaunchError(f"{name} failed: {describe(loaded, status)}", remedy=_REMEDIES.get(symbol))


def number(name: str, *arguments: Any) -> int:
    """The integer that a function writes to its first argument."""
    value = _INT()
    call(name, ctypes.byref(value), *arguments)
    return int(value.value)


def handle(name: str, *arguments: Any) -> int:
    """The handle or address that a function writes to its first argument."""
    value = _POINTER()
    call(name, ctypes.byref(value), *arguments)
    return int(value.value or 0)


def text(name: str, *arguments: Any) -> str:
    """The text that a function writes to its first argument."""
    buffer = ctypes.create_string_buffer(256)
    call(name, buffer, len(buffer), *arguments)
    return buffer.value.decode(errors="replace")
