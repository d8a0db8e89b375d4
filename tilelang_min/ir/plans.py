"""Decisions that ``transform/`` takes and ``lower/`` follows: layouts, and how each matrix product is carried out on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilelang_min.ir.layout import BlockedLayout, FragmentLayout, GridLayout, MatrixLayout, OuterProductLayout
from tilelang_min.ir.nodes import Buffer, Gemm
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.ir.warpgroup_layout import WarpgroupLayout
from tilelang_min.program.dtypes import dtype_bytes


@dataclass(frozen=True)
class GemmPlan:
    """How one matrix product is carried out.

    ``kind``: ``wgmma`` (warp groups), ``mma`` (mma.sync with ldmatrix), ``mfma``, ``outer`` (FMA, register blocks) or ``plain``
    (FMA, element by element).  ``instruction`` is the target's WarpgroupProduct or MatrixInstruction for the first three.
    ``k_pack`` is how many MFMAs share one wide read of A.
    ``note`` says why a slower kind was taken, ``refused`` why each better one was not, for people.
    ``a_registers``, ``b_registers``: of an operand that is a fragment, its register for each register of the operand's own layout
    (``ir/operand_layout.py``).
    """

    kind: str
    layout: MatrixLayout | OuterProductLayout | BlockedLayout | GridLayout | WarpgroupLayout
    instruction: Any = None
    k_pack: int = 1
    note: str = ""
    refused: tuple[str, ...] = ()
    a_registers: tuple[int, ...] | None = None
    b_registers: tuple[int, ...] | None = None

    def held(self, side: str, gemm: Gemm, tile: int, k: int) -> tuple[int, ...]:
        """Registers of the fragment with the items of operand ``a`` or ``b`` that the matrix instruction takes at row (column) tile
        ``tile`` and at ``k``; empty where that operand is no fragment."""
        registers, lanes = (
            (self.a_registers, self.instruction.a_map) if side == "a" else (self.b_registers, self.instruction.b_map)
        )
        first = (tile * (gemm.k // self.instruction.k) + k // self.instruction.k) * lanes.items
        return (registers or ())[first : first + lanes.items]


def ldmatrix_brings(dtype: str, along_k: bool) -> bool:
    """Whether ldmatrix can bring an operand of mma.sync, whose rows in shared memory run along K or across.

    It moves 16 bytes at a time, whatever they hold; its transposing form exchanges elements of 16 bits.
    """
    size = dtype_bytes(dtype)
    return size == 2 or (size < 8 and along_k)


@dataclass(frozen=True)
class StagedStore:
    """A copy from a fragment to a tensor goes through ``tile``, ``columns`` at a time; its rows are 64 for each copy of each warp
    group."""

    tile: Buffer
    columns: int


@dataclass(frozen=True)
class Split:
    """The iterations of ``loop`` (an operation) are shared out between ``count`` blocks of a cluster, which add up what each has of
    an accumulator: the first ``parts`` of them keep an equal part of its columns each.  ``rank`` is the variable that numbers them.
    """

    loop: int
    count: int
    parts: int
    rank: Any


@dataclass
class HopperPlan:
    """What is carried out by Hopper's instructions.

    ``gemms`` by operation id and ``shared`` by tile; ``loops``: operations of the pipelined loops that become rings, filled by a
    producer.  ``persistent``: as many blocks as there are units go through all tiles of the grid, in the order that ``panel``
    gives (as TileProgram's).  ``cluster``: blocks that share loads.  ``overlap``: a second
    product of a loop may run during the work of the next iteration.  ``stores``, by ``id()`` of the statement: copies to tensors
    that go through a staging tile.
    ``split``: blocks that share the iterations of a loop.
    ``notes`` say what was decided against, and why, for people.
    """

    gemms: dict[int, GemmPlan] = field(default_factory=dict)
    shared: dict[str, SharedLayout] = field(default_factory=dict)
    loops: frozenset[int] = frozenset()
    persistent: bool = False
    panel: tuple[int, str] | None = None
    cluster: int = 1
    overlap: bool = False
    split: Split | None = None
    stores: dict[int, StagedStore] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def specialised(self) -> bool:
        """Whether the block has a producer."""
        return bool(self.loops)

    def describe(self) -> str:
        """What was chosen and what was not, for people."""
        chosen = [f"operation {number}: {plan.kind}, {plan.layout.describe()}" for number, plan in self.gemms.items()]
        chosen += [f"tile {name}: {layout.describe()}" for name, layout in self.shared.items()]
        chosen += [f"loop {number}: a ring, filled by a producer warp group" for number in sorted(self.loops)]
        chosen += [
            f"a copy by way of {store.tile.name}, {store.columns} columns at a time" for store in self.stores.values()
        ]
        if self.persistent:
            chosen.append("persistent blocks")
        if self.cluster > 1:
            chosen.append(f"clusters of {self.cluster} blocks")
        if self.split is not None:
            kept = f"{self.split.parts} of them keep a part each" if self.split.parts > 1 else "the first keeps it"
            chosen.append(
                f"loop {self.split.loop}: its iterations are shared out between the {self.split.count} blocks of a cluster, which "
                f"add up the accumulator through their shared memory; {kept}"
            )
        return "\n".join([*chosen, *(f"note: {note}" for note in self.notes)]) or "nothing"


@dataclass
class RegisterBuffers:
    """Products by ``mma.sync`` that read their operands one step ahead, into a second set of registers.

    ``products``, by operation: inside of a tile.  ``loops``, by operation: through all iterations of the loop
    (``lower/register_buffers.py``), with the number of parts in which copies are started.  ``notes`` say what was decided, and
    why, by operation of the product or loop.
    """

    products: frozenset[int] = frozenset()
    loops: dict[int, int] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)

    def without_loops(self, reason: str) -> RegisterBuffers:
        """The same without loops; ``reason`` says why for each."""
        notes = dict.fromkeys(self.loops, f"operands are not read ahead across iterations: {reason}")
        return RegisterBuffers(self.products, notes={**self.notes, **notes})

    def describe(self) -> str:
        """What was decided, for people."""
        return "\n".join(f"operation {number}: {note}" for number, note in self.notes.items()) or "nothing"


@dataclass
class Layouts:
    """All decisions of a program.

    ``fragments`` by buffer name, ``nests`` by ``id()`` of the statement, ``gemms`` by operation id.
    ``registers`` says, by statement and fragment, which register of the fragment goes with each register of the nest; absent: the
    one of that number.  ``origins``: the operation that decided the layout of a fragment that is reduced or meets others of lower
    rank.  ``shared``: where the elements of shared tiles lie, by name; absent: row after row.
    """

    fragments: dict[str, FragmentLayout] = field(default_factory=dict)
    nests: dict[int, FragmentLayout] = field(default_factory=dict)
    gemms: dict[int, GemmPlan] = field(default_factory=dict)
    registers: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    origins: dict[str, int] = field(default_factory=dict)
    shared: dict[str, SharedLayout] = field(default_factory=dict)
    hopper: HopperPlan = field(default_factory=HopperPlan)
    ahead: RegisterBuffers = field(default_factory=RegisterBuffers)
