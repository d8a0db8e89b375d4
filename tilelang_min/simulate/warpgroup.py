"""What a warp group product is: its operands' places, from the bits of their descriptors, and the registers of a warp.

Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions" (matrix descriptor, strides, fragments).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tilelang_min.errors import SimulationError
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.simulate.bulk import swizzled
from tilelang_min.simulate.matrix import find_instruction
from tilelang_min.targets import MatrixInstruction, Target
from tilelang_min.targets.wgmma import OPERAND_BYTES

NAME = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.(satfinite\.)?(f32|f16|s32)\.(f16|bf16|tf32|e4m3|e5m2|s8|u8)\.(\w+)"
)
TYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "e4m3": "float8_e4m3",
    "e5m2": "float8_e5m2",
    "s8": "int8",
    "u8": "uint8",
    "f32": "float32",
    "s32": "int32",
}
WARP_ROWS = 16
"""Rows of the product that each warp holds: warp w of its group has rows 16 w to 16 w + 15."""
CORE_ROWS, CORE_BYTES = 8, 16
"""A core matrix: 8 rows of 16 bytes."""
SWIZZLE_BYTES = {0: 0, 1: 128, 2: 64, 3: 32}
"""Swizzle of a descriptor's bits 62-63."""
DESCRIPTORS = 1 << 10
"""Descriptors whose elements' places are remembered."""


@dataclass(frozen=True)
class Descriptor:
    """A matrix descriptor: start address, leading and stride byte offsets, swizzle.  Raises SimulationError for other bits."""

    start: int
    leading: int
    stride: int
    swizzle: int

    @classmethod
    def of(cls, bits: int) -> Descriptor:
        """The fields of 64 bits."""
        known = 0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 3 << 62
        if bits & ~known:
            what = "a base offset" if bits >> 49 & 7 else "bits that mean nothing"
            raise SimulationError(f"the matrix descriptor {bits:#018x} has {what}, for which the simulator has no rule")
        return cls(
            (bits & 0x3FFF) << 4, (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4, SWIZZLE_BYTES[bits >> 62 & 3]
        )

    def addresses(self, rows: Any, k: int, itemsize: int, transposed: bool) -> Any:
        """Byte address of each element, shape (rows, k): ``rows`` are those of A, or columns of B.

        Not transposed, elements along k lie side by side (K-major); transposed, those along the rows do.
        """
        row, depth = np.asarray(rows)[:, None], np.arange(k)[None, :]
        if not transposed:
            along = depth * itemsize
            if self.swizzle:
                place = row // CORE_ROWS * self.stride + row % CORE_ROWS * self.swizzle + along
            else:
                place = row // CORE_ROWS * self.stride + row % CORE_ROWS * CORE_BYTES
                place = place + along // CORE_BYTES * self.leading + along % CORE_BYTES
        else:
            along = row * itemsize
            if self.swizzle:
                place = along % self.swizzle + along // self.swizzle * self.leading
                place = place + depth % CORE_ROWS * self.swizzle + depth // CORE_ROWS * self.stride
            else:
                place = along % CORE_BYTES + along // CORE_BYTES * self.stride
                place = place + depth % CORE_ROWS * CORE_BYTES + depth // CORE_ROWS * self.leading
        return swizzled(self.start + place, self.swizzle)


@dataclass(frozen=True)
class Product:
    """One instruction: ``d[64, n] = a[64, k] * b[k, n] + d``."""

    name: str
    n: int
    k: int
    saturates: bool
    d_type: str
    a_type: str
    b_type: str
    like: MatrixInstruction
    """The ``mma.sync`` whose fragments of A a warp holds, and of whose accumulators it holds n / 8 side by side."""

    @classmethod
    def of(cls, name: str, target: Target) -> Product:
        """The instruction of a PTX name; SimulationError where there is none."""
        match = NAME.fullmatch(name)
        if match is None or "wgmma" not in target.features:
            raise SimulationError(f"target {target.name} has no instruction {name}")
        n, k, d, a, b = int(match[1]), int(match[2]), match[4], match[5], match[6]
        integers, bytes_of = a in ("s8", "u8"), ("e4m3", "e5m2")
        mixed = (a in bytes_of and b in bytes_of) or (integers and b in ("s8", "u8")) or a == b
        sums = {"s32"} if integers else {"f32"} if a in ("bf16", "tf32") else {"f32", "f16"}
        if (
            not mixed
            or d not in sums
            or n % 8
            or not 8 <= n <= 256
            or (integers and n > 24 and n % 16)
            or k * numpy_dtype(TYPES[a]).itemsize != OPERAND_BYTES
        ):
            raise SimulationError(f"there is no instruction {name}")
        sync = (
            f"mma.sync.aligned.m16n8k{k}.row.col.{'s32' if integers else 'f32'}.{a}.{b}.{'s32' if integers else 'f32'}"
        )
        return cls(name, n, k, bool(match[3]), d, a, b, find_instruction(target, sync))

    @property
    def registers(self) -> int:
        """Accumulator registers of a thread."""
        return self.n // 2 if self.d_type != "f16" else self.n // 4

    @property
    def transposes(self) -> bool:
        """Whether operands may be transposed."""
        return self.a_type in ("f16", "bf16")

    @cached_property
    def places(self) -> tuple[Any, Any]:
        """(row in the warp's 16, column) of each accumulator item, shape (items, 32)."""
        items, lanes = np.meshgrid(np.arange(self.n // 2), np.arange(32), indexing="ij")
        row, column = self.like.c_map(lanes, items % 4)
        return row, column + items // 4 * 8

    @cached_property
    def fragment(self) -> Any:
        """For each (row in the warp's 16, k) the position of A's element in ``(lanes, items)``, flat."""
        lane_map = self.like.a_map
        lanes, items = np.meshgrid(np.arange(lane_map.lanes), np.arange(lane_map.items), indexing="ij")
        row, column = lane_map(lanes, items)
        positions = np.zeros((WARP_ROWS, self.k), np.int64)
        positions[row, column] = lanes * lane_map.items + items
        return positions


@lru_cache(maxsize=DESCRIPTORS)
def operand_places(
    bits: int, rows: tuple[int, ...], k: int, itemsize: int, transposed: bool, granule: int
) -> tuple[Any, ...]:
    """Index of each element (rows, k) of an operand in the block's shared memory, the granules they lie in, the last byte."""
    addresses = Descriptor.of(bits).addresses(rows, k, itemsize, transposed)
    return addresses // itemsize, np.unique(addresses // granule), int(addresses.max()) + itemsize


def as_numbers(bits: Any, word: str) -> Any:
    """Elements of an operand as float64: from their own type, tf32 without the bits that are dropped."""
    if word == "tf32":
        bits = (bits.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return bits.astype(np.float32).astype(np.float64) if bits.dtype.itemsize < 4 else bits.astype(np.float64)
