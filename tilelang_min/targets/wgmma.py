"""Hopper's matrix instruction of a warp group (``wgmma.mma_async``): which types it multiplies, and what its operands may be.

Four warps issue one instruction.  Rows of the product come 64 at a time, columns 8 to 256; both operands stand in shared memory,
A may come from registers instead.  The accumulators of a warp are those of ``mma.sync`` m16n8: warp w of the group holds rows
16 w to 16 w + 15.  Formulas: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_min.targets.records import RegisterFile

PTX_ISA = "PTX ISA 8.5, 9.7.15, asynchronous warpgroup level matrix instructions"

GROUP_THREADS = 128
"""Threads of a warp group."""

GROUP_WARPS = 4
"""Warps of a warp group."""

ROWS = 64
"""Rows of the product of one instruction."""

MOST_COLUMNS = 256
"""Columns of the widest instruction."""

MOST_INTEGER_COLUMNS = 224
"""The same of integers."""

OPERAND_BYTES = 32
"""Bytes along K of the operands of one instruction, whatever their type."""

OTHER_REGISTERS = 26
"""Registers of a thread that ptxas (13.5) asks for beside the operands in registers of one instruction; with fewer it gives up.

Measured for 32 to 256 columns, every type of operands, and A in either place.
"""

PRODUCER_REGISTERS = (40, 32)
"""Registers of a thread that asks for boxes and computes nothing; the first leaves some to spare."""

REGISTER_STEP = 8
"""``setmaxnreg`` takes multiples of it."""

MOST_PENDING = 7
"""Groups of products that a wait can leave unfinished."""


@dataclass(frozen=True, slots=True)
class WarpgroupProduct:
    """One combination of types.

    ``types`` is the end of the instruction's name (``f32.f16.f16``); ``transposes`` whether operands may lie with M or N along
    the rows of shared memory (16-bit types alone); ``signs`` whether it takes the signs of A and B; ``c_operand`` the type in
    which an accumulator register is handed over.  ``input_format`` as in MatrixInstruction.
    """

    a_dtype: str
    b_dtype: str
    c_dtype: str
    k: int
    types: str
    transposes: bool
    signs: bool
    c_operand: str
    input_format: str | None = None
    source: str = PTX_ISA

    def least_registers(self, columns: int, *, a_in_registers: bool = False) -> int:
        """Registers a thread must have for an instruction of so many columns."""
        return ROWS * columns // GROUP_THREADS + OTHER_REGISTERS + (4 if a_in_registers else 0)

    @property
    def in_place(self) -> bool:
        """Whether it takes accumulators in the type they have."""
        return self.c_operand == self.c_dtype

    def columns(self) -> tuple[int, ...]:
        """Widths an instruction can have, widest first: multiples of 8; of integers beyond 32 multiples of 16.

        Integers end at 224: PTX goes on to 256, the table of PTX instructions that prints them does not.
        """
        every = range(MOST_COLUMNS, 0, -8)
        return tuple(
            n for n in every if self.c_dtype != "int32" or (n <= MOST_INTEGER_COLUMNS and (n % 16 == 0 or n <= 24))
        )

    def name(self, columns: int) -> str:
        """The instruction's name."""
        return f"wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k{self.k}.{self.types}"


def _float(a: str, b: str, types: str, k: int, transposes: bool = False) -> WarpgroupProduct:
    return WarpgroupProduct(a, b, "float32", k, types, transposes, True, "float32")


def _integer(a: str, b: str, types: str) -> WarpgroupProduct:
    return WarpgroupProduct(a, b, "int32", 32, types, False, False, "uint32")


_FLOAT8 = {"float8_e4m3": "e4m3", "float8_e5m2": "e5m2"}
_INT8 = {"int8": "s8", "uint8": "u8"}

HOPPER = (
    _float("float16", "float16", "f32.f16.f16", 16, transposes=True),
    _float("bfloat16", "bfloat16", "f32.bf16.bf16", 16, transposes=True),
    *(_float(a, b, f"f32.{_FLOAT8[a]}.{_FLOAT8[b]}", 32) for a in _FLOAT8 for b in _FLOAT8),
    *(_integer(a, b, f"s32.{_INT8[a]}.{_INT8[b]}") for a in _INT8 for b in _INT8),
)
"""What sm_90a has, apart from tf32 (which cuts float32 down and is for who asks) and float16 accumulators."""


def warpgroup_products(features: frozenset[str]) -> tuple[WarpgroupProduct, ...]:
    """The products of an architecture with these features."""
    return HOPPER if "wgmma" in features else ()


def register_shares(file: RegisterFile, groups: int) -> tuple[int, int] | None:
    """Registers of a producer's and of a consumer's thread, where a shift between them is worth an instruction.

    All threads start with an equal part of the register file, and no more than that can be handed on: consumers that asked for
    more would wait for ever.  A single consumer group has all it can use from the start.
    """
    if file.per_unit is None or groups < 2:
        return None
    at_start = file.per_unit // GROUP_THREADS // (groups + 1) // REGISTER_STEP * REGISTER_STEP * (groups + 1)
    most = file.per_thread // REGISTER_STEP * REGISTER_STEP
    return max(
        ((own, min((at_start - own) // groups // REGISTER_STEP * REGISTER_STEP, most)) for own in PRODUCER_REGISTERS),
        key=lambda shares: shares[1],
    )
