"""The few lines that generated CUDA C++ needs in front, and the hook that puts them there.

TVM's own header pulls in libcu++ and costs NVRTC 1.7 s a kernel; this one costs what ``cuda_fp16.h`` costs, 0.06 s, and
only where half precision is used.  Everything the printer can name without a header piece of its own (vector types,
``threadIdx``, ``__syncthreads``) is built into NVRTC.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilelang_min.errors import CodegenError

_HOOK = "tirx.intrinsics.cuda.header_generator"
_COMPILE_HOOK = "tvm_callback_cuda_compile"
_LOCK = threading.RLock()

# ulonglong4 is the printer's type for eight floats; it broadcasts a scalar to one with eight arguments, a call that CUDA
# does not have.
_BASE = """\
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
__forceinline__ unsigned long long __tl_pair(float x, float y) {
  return (unsigned long long)__float_as_uint(x) | ((unsigned long long)__float_as_uint(y) << 32);
}
__forceinline__ ulonglong4 make_ulonglong4(float a, float b, float c, float d, float e, float f, float g, float h) {
  return make_ulonglong4(__tl_pair(a, b), __tl_pair(c, d), __tl_pair(e, f), __tl_pair(g, h));
}
"""

_TENSOR_MAP = "struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };\n"
"""The descriptor of the tensor memory accelerator, as cuda.h has it; no header that NVRTC sees does."""

_PIECES = {
    "warp_shuffle": "",  # __shfl_xor_sync is built into NVRTC
    "int8": "",  # TVM's has dot products, which are never printed here
    "fp16": """\
#include <cuda_fp16.h>
struct __align__(8) half4 { half x, y, z, w; };
__forceinline__ half4 make_half4(half x, half y, half z, half w) { return half4{x, y, z, w}; }
__forceinline__ unsigned __pack_half2(half x, half y) {
  return (unsigned)__half_as_ushort(x) | ((unsigned)__half_as_ushort(y) << 16);
}
__forceinline__ half max(half a, half b) { return __hmax(a, b); }
__forceinline__ half min(half a, half b) { return __hmin(a, b); }
__forceinline__ half hpow(half a, half b) { return __float2half(powf(__half2float(a), __half2float(b))); }
""",
    # The printer asks for it with every infinity or NaN.
    "math_constants": """\
#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_INF __longlong_as_double(0x7ff0000000000000ULL)
#define CUDART_NAN __longlong_as_double(0xfff8000000000000ULL)
""",
}


def header(tags: Any) -> str:
    """The header for the pieces that the printer asks for.

    Raises CodegenError for a piece this compiler does not serve, rather than leave NVRTC to complain about a name.
    """
    wanted = sorted(str(tag) for tag in tags)
    unknown = [tag for tag in wanted if tag not in _PIECES]
    if unknown:
        raise CodegenError(
            f"the generated CUDA C++ needs header pieces that are not served: {', '.join(unknown)}",
            remedy="this is an error of the compiler, not of the kernel: please report it with the kernel's source",
        )
    return _BASE + "".join(_PIECES[tag] for tag in wanted)


def with_tensor_maps(text: str) -> str:
    """The CUDA C++ with the type of tensor maps in front, where a kernel takes some."""
    return _TENSOR_MAP + text if " CUtensorMap " in text else text


@contextmanager
def own_header() -> Iterator[None]:
    """While open, TVM prints CUDA with :func:`header` and compiles nothing; afterwards its own hooks are back.

    Where a GPU is present TVM would hand the text to a compiler as soon as it is printed, before markers are taken out.

    Raises what :func:`header` raised at the end: an exception that crosses TVM comes out as another type.
    """
    import tvm_ffi

    refused: list[CodegenError] = []

    def hook(tags: Any) -> str:
        try:
            return header(tags)
        except CodegenError as error:
            refused.append(error)
            return ""

    hooks = {_HOOK: hook, _COMPILE_HOOK: lambda code: b""}
    with _LOCK:
        before = {name: tvm_ffi.get_global_func(name) for name in hooks}
        for name, ours in hooks.items():
            tvm_ffi.register_global_func(name, ours, override=True)
        try:
            yield
        finally:
            for name, theirs in before.items():
                tvm_ffi.register_global_func(name, theirs, override=True)
    if refused:
        raise refused[0]
