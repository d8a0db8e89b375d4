"""Nodes of the tile program.

A :class:`TileProgram` holds statements in source order.  Each names the tile operation it belongs to.  Expressions (offsets,
values, conditions) are TVM expressions in which a tile is read as a ``BufferLoad`` of :attr:`Buffer.var`; block indices and loop
variables are TVM variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.program import SourceLocation, TileOperation
from tilelang_min.program.dtypes import DATA_TYPES

Expr = Any
"""A TVM expression, or a Python number."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """A tile or a tensor.  ``scope``: ``global`` (parameter), ``shared``, ``fragment`` (registers of all threads), ``local``.

    ``shape`` in elements; ``dtype`` the language's name of its type, ``tvm_dtype`` TVM's; ``var`` is the TVM buffer with that
    shape, by which expressions refer to it.  Dimensions of a parameter may be variables of :attr:`TileProgram.sizes`.
    """

    name: str
    shape: tuple[Expr, ...]
    dtype: str
    scope: str
    location: SourceLocation
    var: Any = field(repr=False)

    @property
    def tvm_dtype(self) -> str:
        """TVM's name of the type, which buffers, casts and constants of the thread program carry."""
        return DATA_TYPES[self.dtype].tvm

    @property
    def elements(self) -> Expr:
        """Number of elements of one copy of the tile; an expression where dimensions are."""
        count: Expr = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True, eq=False)
class Region:
    """A box inside a buffer: ``offsets`` (expressions) and ``extents`` (integers), one for each dimension."""

    buffer: Buffer
    offsets: tuple[Expr, ...]
    extents: tuple[int, ...]

    def at(self, row: Expr, column: Expr) -> tuple[Expr, ...]:
        """Indices of an element of a region that is a matrix: its last two dimensions, the others of extent 1."""
        return (*self.offsets[:-2], self.offsets[-2] + row, self.offsets[-1] + column)

    @property
    def tile_extents(self) -> tuple[int, ...]:
        """Extents without the dimensions of extent 1, by which the two sides of a copy are matched."""
        return tuple(extent for extent in self.extents if extent != 1)


@dataclass(frozen=True, eq=False)
class Statement:
    """Base of all statements; ``operation`` is the id of the tile operation."""

    operation: int


@dataclass(frozen=True, eq=False)
class Copy(Statement):
    """``target[...] = source[...]``; ``asynchronous`` copies complete at a later :class:`AsyncWait`.

    ``target_stage`` and ``source_stage`` select the copy of a multi-stage shared tile (an expression; None: there is one).
    """

    source: Region
    target: Region
    asynchronous: bool = False
    source_stage: Expr = None
    target_stage: Expr = None


@dataclass(frozen=True, eq=False)
class Fill(Statement):
    """Every element of ``region`` becomes ``value``."""

    region: Region
    value: Expr


@dataclass(frozen=True, eq=False)
class Gemm(Statement):
    """``c += op(a) @ op(b)`` (``c = ...`` with ``clear``); a and b shared tiles (of more than two
    dimensions: matrices in them) or whole fragments, c a fragment.

    ``m``, ``n``, ``k`` are the extents of the product.  Stages as in :class:`Copy`.  ``policy`` says how warps share C: ``square``,
    ``rows`` (one above the other) or ``columns``; ``any`` is square where nothing speaks against it.
    ``agree``, (rows of an instruction, rows of warps), holds the product to what others that meet it do; 0 rows is no instruction.
    ``precision`` is ``exact``, or ``tf32``: float32 operands may be cut down to 10 bits of mantissa.
    """

    a: Region
    b: Region
    c: Region
    transpose_a: bool
    transpose_b: bool
    clear: bool
    m: int
    n: int
    k: int
    a_stage: Expr = None
    b_stage: Expr = None
    policy: str = "any"
    precision: str = "exact"
    agree: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Reduce(Statement):
    """``target[..] = kind over axis of source[..]``; without ``clear`` the old value of the target is one more operand.

    ``kind``: ``sum``, ``max``, ``min``, ``abssum``, ``absmax``.  ``axis`` counts the source region's dimensions; the target has the
    others, dimensions of extent 1 aside.  On a GPU both are fragments.  ``scratch`` is the shared tile through which warps that
    share an element exchange their parts, (parts, *target); such a reduction is two statements, ``step`` ``partial`` up to the
    write of the parts and ``finish`` from their read, otherwise one, ``whole``.
    """

    kind: str
    source: Region
    target: Region
    axis: int
    clear: bool
    step: str = "whole"
    scratch: Buffer | None = None


@dataclass(frozen=True, eq=False)
class Assign(Statement):
    """``buffer[indices] = value``, one element; with ``atomic`` (``add``, ``max``, ``min``) an update of it that no other thread's
    comes in between."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    stages: dict[str, Expr] = field(default_factory=dict)
    atomic: str = ""


@dataclass(frozen=True, eq=False)
class Parallel(Statement):
    """An element-wise nest: ``body`` runs once for each point of ``extents``, in no order.

    ``stages`` gives, by name, the stage at which multi-stage tiles are read (so in :class:`Assign`).
    """

    variables: tuple[Any, ...]
    extents: tuple[int, ...]
    body: tuple[Assign, ...]
    stages: dict[str, Expr] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Loop(Statement):
    """``for variable in range(start, start + extent)``; ``kind`` is ``serial``, ``unroll`` or ``pipelined``."""

    variable: Any
    start: Expr
    extent: Expr
    kind: str
    body: tuple[Statement, ...]
    stages: int = 1


@dataclass(frozen=True, eq=False)
class Conditional(Statement):
    """``if condition`` on block or loop indices (the same for all threads of a block)."""

    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, eq=False)
class Barrier(Statement):
    """All threads of the block meet; what was written to shared memory before is seen after.  ``reason`` is for people."""

    reason: str = ""


@dataclass(frozen=True, eq=False)
class SchedulingFence(Statement):
    """The vendor's compiler may not move instructions from one side to the other.  Means nothing to what is computed."""


@dataclass(frozen=True, eq=False)
class AsyncCommit(Statement):
    """Close a group of asynchronous copies."""


@dataclass(frozen=True, eq=False)
class AsyncWait(Statement):
    """Wait until at most ``pending`` groups of asynchronous copies are unfinished."""

    pending: int


@dataclass(frozen=True, eq=False)
class TileProgram:
    """A kernel in tiles: parameters, grid, threads, tiles, and statements in order.

    ``block_variables`` are (bx, by, bz).  ``stages`` says how many copies a shared buffer has (by name; absent: one).
    ``panel`` (size, ``row`` or ``column``): a GPU starts blocks in panels of that many rows (columns) of the grid.
    ``pinned``: layouts of shared tiles that the author chose, by name.  ``sizes``: int32 variables that are known at launch; the
    extents of ``grid`` may be expressions of them.  ``location`` is that of ``T.Kernel``.
    """

    name: str
    parameters: tuple[Buffer, ...]
    grid: tuple[Expr, Expr, Expr]
    threads: int
    block_variables: tuple[Any, Any, Any]
    buffers: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    operations: tuple[TileOperation, ...]
    location: SourceLocation
    sources: dict[str, str] = field(default_factory=dict, repr=False)
    stages: dict[str, int] = field(default_factory=dict)
    panel: tuple[int, str] | None = None
    pinned: dict[str, SharedLayout] = field(default_factory=dict)
    sizes: tuple[Any, ...] = ()

    def buffer_of(self, var: Any) -> Buffer:
        """The buffer that a TVM buffer variable stands for."""
        for buffer in (*self.parameters, *self.buffers):
            if buffer.var.same_as(var):
                return buffer
        raise KeyError(str(var))

    def unused(self, name: str, others: Iterable[Buffer] = ()) -> str:
        """A name like ``name`` that no tile or tensor has, nor one of ``others``."""
        taken = {item.name for item in (*self.parameters, *self.buffers, *others)}
        while name in taken:
            name += "_"
        return name


def walk(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, outer before inner, in source order."""
    for statement in statements:
        yield statement
        if isinstance(statement, Loop):
            yield from walk(statement.body)
        elif isinstance(statement, Conditional):
            yield from walk(statement.then)
            yield from walk(statement.otherwise)
        elif isinstance(statement, Parallel):
            yield from statement.body


def replaced(
    statements: tuple[Statement, ...], change: Callable[[Statement], tuple[Statement, ...]]
) -> tuple[Statement, ...]:
    """The statements with ``change(statement)`` in place of every one that is no loop and no branch.

    What ``change`` hands back as it was stays the same object: layouts of nests are known by it.
    """
    out: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Loop):
            out.append(replace(statement, body=replaced(statement.body, change)))
        elif isinstance(statement, Conditional):
            then, otherwise = replaced(statement.then, change), replaced(statement.otherwise, change)
            out.append(replace(statement, then=then, otherwise=otherwise))
        else:
            out.extend(change(statement))
    return tuple(out)
