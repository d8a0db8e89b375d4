"""Tensor maps for NVIDIA's tensor memory accelerator, encoded from a tensor's address when a kernel is launched.

A map is 128 bytes that the kernel gets by value.  What it holds depends on nothing but the map's description and the address, so
each is encoded once.  Formats: CUDA Driver API, ``cuTensorMapEncodeTiled``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilelang_min.errors import LaunchError
from tilelang_min.program import TensorMap
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.program.tensor_maps import UNIT_BYTES, tensor_map_problem

MAP_BYTES = 128
ALIGNMENT = 64
"""Bytes on which a map must lie in memory."""
MOST_MAPS = 1024
"""Encoded maps that one description keeps."""

_DATA_TYPES = {
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
    "int32": "INT32",
    "uint32": "UINT32",
    "int64": "INT64",
    "uint16": "UINT16",
    "int16": "UINT16",
}
_SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}


class MapEncoder:
    """Encodes one tensor map for the addresses of its tensor.

    ``position`` is that of the parameter it describes, ``sizes`` those of the runtime dimensions in its shape.  ``driver`` and
    ``call`` reach the driver API; see :mod:`tilelang_min.runtime.cuda`.
    """

    def __init__(
        self,
        tensor_map: TensorMap,
        position: int,
        driver: Any,
        call: Callable[..., Any],
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._sizes = dict(sizes or {})
        problem = tensor_map_problem(tensor_map.at(dict.fromkeys(self._sizes, 1)))
        if problem is not None:
            raise LaunchError(problem, remedy="compile the kernel again")
        self.map, self.position = tensor_map, position
        self._driver, self._call = driver, call
        self._known: dict[int | tuple[int, ...], tuple[int, Any]] = {}

    def encoded_for(self, arguments: Sequence[int]) -> tuple[int, Any]:
        """:meth:`encoded` for the arguments of a launch: addresses, runtime dimensions behind them."""
        if not self._sizes:
            return self.encoded(arguments[self.position])
        names = [extent for extent in self.map.shape if isinstance(extent, str)]
        values = {name: arguments[self._sizes[name]] for name in names}
        key = (arguments[self.position], *values.values())
        return self._kept(key, lambda: self._encode(key[0], self.map.at(values)))

    def encoded(self, pointer: int) -> tuple[int, Any]:
        """Where the map for a tensor at ``pointer`` lies in memory, encoded now or before, and what keeps it there.

        LaunchError for a tensor that does not start at a multiple of 16 bytes.
        """
        return self._kept(pointer, lambda: self._encode(pointer, self.map))

    def _kept(self, key: int | tuple[int, ...], encode: Callable[[], tuple[int, Any]]) -> tuple[int, Any]:
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_MAPS:
                self._known = {}
            known = self._known[key] = encode()
        return known

    def _encode(self, pointer: int, tensor_map: TensorMap) -> tuple[int, Any]:
        driver = self._driver
        if pointer % UNIT_BYTES:
            raise LaunchError(
                f"parameter {tensor_map.parameter} starts at an address that is no multiple of {UNIT_BYTES} bytes",
                remedy="pass a tensor of its own, not a view",
            )
        size = dtype_bytes(tensor_map.dtype)
        inner_first = list(reversed(tensor_map.extents))
        strides, pitch = [], size
        for extent in inner_first[:-1]:
            pitch *= extent
            strides.append(pitch)
        strides = strides or [UNIT_BYTES]  # of one dimension none is read, but the driver refuses an empty list
        kind = _DATA_TYPES.get(tensor_map.dtype, "UINT8") if size > 1 else "UINT8"
        made = self._call(
            "cuTensorMapEncodeTiled",
            getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"),
            len(inner_first),
            pointer,
            [driver.cuuint64_t(extent) for extent in inner_first],
            [driver.cuuint64_t(stride) for stride in strides],
            [driver.cuuint32_t(extent) for extent in reversed(tensor_map.box)],
            [driver.cuuint32_t(1)] * len(inner_first),
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLES[tensor_map.swizzle]}"),
            getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_L2_{tensor_map.promotion}B"),
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        memory = (ctypes.c_char * (MAP_BYTES + ALIGNMENT))()
        start = -(-ctypes.addressof(memory) // ALIGNMENT) * ALIGNMENT
        ctypes.memmove(start, made.getPtr(), MAP_BYTES)
        return start, memory
