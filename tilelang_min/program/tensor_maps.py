"""What the tensor memory accelerator asks of a tensor map; the simulator and the launcher check the same.

Source: CUDA Driver API, ``cuTensorMapEncodeTiled``.
"""

from __future__ import annotations

from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.program.thread_program import TensorMap

UNIT_BYTES = 16
"""Rows of a tensor and of a box are multiples of this, and the tensor starts at one."""
MOST_DIMENSIONS = 5
MOST_BOX_EXTENT = 256
SWIZZLES = (0, 32, 64, 128)
PROMOTIONS = (256, 128)
"""Bytes to which the second-level cache can be told to extend what it misses."""


def tensor_map_problem(tensor_map: TensorMap) -> str | None:
    """Why a map cannot be encoded, or None."""
    size, name = dtype_bytes(tensor_map.dtype), f"tensor map {tensor_map.name}"
    if not 1 <= len(tensor_map.extents) <= MOST_DIMENSIONS or len(tensor_map.box) != len(tensor_map.extents):
        return f"{name} has {len(tensor_map.extents)} dimensions and a box of {len(tensor_map.box)}: 1 to 5 of both are possible"
    if any(not 1 <= extent <= MOST_BOX_EXTENT for extent in tensor_map.box):
        return f"{name} has a box of {tensor_map.box}: each extent must be 1 to {MOST_BOX_EXTENT}"
    if any(extent < 1 for extent in tensor_map.extents):
        return f"{name} describes a tensor of shape {tensor_map.extents}"
    if len(tensor_map.extents) > 1 and tensor_map.extents[-1] * size % UNIT_BYTES:
        return f"{name}: rows of {tensor_map.extents[-1] * size} bytes are no multiple of {UNIT_BYTES}"
    if tensor_map.promotion not in PROMOTIONS:
        return f"{name} is promoted to {tensor_map.promotion} bytes: {', '.join(map(str, PROMOTIONS))} are possible"
    inner = tensor_map.box[-1] * size
    if inner % UNIT_BYTES:
        return f"{name}: the rows of its box have {inner} bytes, no multiple of {UNIT_BYTES}"
    if tensor_map.swizzle not in SWIZZLES:
        return f"{name} has a swizzle of {tensor_map.swizzle} bytes: {', '.join(map(str, SWIZZLES))} are possible"
    if tensor_map.swizzle and inner > tensor_map.swizzle:
        return f"{name}: the rows of its box have {inner} bytes, more than its swizzle of {tensor_map.swizzle}"
    return None
