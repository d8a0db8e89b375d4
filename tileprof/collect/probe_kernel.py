"""``python probe_kernel.py``: launches one tiny kernel, for ``ncu_probe.py`` to read a counter of.

It runs under a profiler and must start fast anywhere, so it needs Python 3.8, libcuda and nothing else: the driver itself compiles
the PTX below.  The kernel writes its thread numbers; the last one is read back, so that status 0 means that it ran.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

KERNEL = "tileprof_probe"
BLOCKS, THREADS = 64, 128
WARPS = BLOCKS * THREADS // 32
"""What the counter of launched warps must say."""

PTX = f"""\
.version 6.4
.target sm_70
.address_size 64
.visible .entry {KERNEL}(.param .u64 out)
{{
    .reg .b32 %r<5>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r4;
    ret;
}}
"""


class Failure(Exception):
    """A call of the driver that was refused."""


def call(library: Any, name: str, *arguments: Any) -> None:
    """Call the driver.  Failure with the error's own name where it refuses."""
    status = getattr(library, name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        library.cuGetErrorName(status, ctypes.byref(text))
        raise Failure(f"{name} fails: {(text.value or b'status ' + str(status).encode()).decode()}")


def launch() -> int:
    """Launch the kernel on the first device; the last value that it wrote."""
    library = ctypes.CDLL("libcuda.so.1")
    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory, nbytes = ctypes.c_uint64(), 4 * BLOCKS * THREADS
    call(library, "cuInit", 0)
    call(library, "cuDeviceGet", ctypes.byref(device), 0)
    call(library, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call(library, "cuCtxSetCurrent", context)
    call(library, "cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX.encode()))
    call(library, "cuModuleGetFunction", ctypes.byref(function), module, KERNEL.encode())
    call(library, "cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(nbytes))
    parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
    call(library, "cuLaunchKernel", function, BLOCKS, 1, 1, THREADS, 1, 1, 0, None, parameters, None)
    call(library, "cuCtxSynchronize")
    last = ctypes.c_uint32()
    call(library, "cuMemcpyDtoH_v2", ctypes.byref(last), ctypes.c_uint64(memory.value + nbytes - 4), ctypes.c_size_t(4))
    return last.value


def main() -> int:
    """0 where the kernel ran; else the reason on standard output."""
    try:
        last = launch()
    except (OSError, Failure) as error:
        print(f"the probe's kernel did not run: {error}", flush=True)
        return 3
    if last != BLOCKS * THREADS - 1:
        print(f"the probe's kernel wrote {last} where {BLOCKS * THREADS - 1} was due", flush=True)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
