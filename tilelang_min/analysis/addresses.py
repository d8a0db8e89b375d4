"""Which places a thread program accesses, as far as they tell blocks apart: indices of shared and global memory.

What an access costs depends on its addresses modulo a period, so blocks that do the same statements may differ by alignment.
Where an index, a condition or a loop bound is itself read from memory, no look at the program tells what a block will do:
the operations concerned are named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm_ffi
from tvm import ir, tirx

from tilelang_min.analysis.points import NotCountable, evaluate, handle_of
from tilelang_min.program import OPERATION_MARKER, TensorMap, ThreadProgram
from tilelang_min.program.dtypes import dtype_bytes

LINE_BYTES = 128
"""Period of copies from global to shared memory, which go by lines and by banks of their source."""
BULK = ("tirx.ptx.cp_async_bulk_tensor", "tirx.ptx.cp_reduce_async_bulk_tensor")
"""Calls that move boxes of a tensor."""
PLACELESS = tuple(
    f"tirx.ptx.{name}"
    for name in (
        "mbarrier",
        "wgmma",
        "fence",
        "bar_",
        "barrier_",
        "setmaxnreg",
        "mapa",
        "cp_async_bulk_commit",
        "cp_async_bulk_wait",
    )
)
"""Calls whose cost does not depend on addresses, or follows no known rule."""
FEW_THREADS = 8
"""Threads that issue a bulk copy and are looked at one by one."""
SHARED_BYTES = 256
"""Period of accesses to shared memory: the most banks of any target."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """An element index of accesses by one operation, to ``shared`` or to global memory.  Costs repeat when it moves by
    ``period`` elements."""

    operation: int
    index: Any
    period: int
    shared: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """Every distinct place of a program; ``data``: operations whose places or conditions are read from memory.

    ``bounds`` are numbers that decide besides what an access does: how much of a box of a bulk copy lies in the tensor, and to
    how many blocks it goes.
    """

    places: tuple[Place, ...]
    data: frozenset[int]
    bounds: tuple[Any, ...] = ()
    names: frozenset[int] = frozenset()
    """Registers and variables that hold what was read from memory."""


def accesses_of(program: ThreadProgram) -> Accesses:
    """All accesses to shared and global memory in a thread program; those to global memory repeat after a sector."""
    transfer = program.target.global_transfer
    maps = {each.name: each for each in program.tensor_maps}
    walker = _Walker(maps=maps) if transfer is None else _Walker(transfer.load_bytes, transfer.store_bytes, maps)
    walker.loaded = names_of_data(program.function.body)
    walker.statement(program.function.body)
    return Accesses(
        tuple(walker.places.values()), frozenset(walker.data), tuple(walker.bounds), frozenset(walker.loaded)
    )


def accesses_in(
    program: ThreadProgram, statement: Any, skipped: frozenset[int] = frozenset()
) -> tuple[tuple[Place, ...], tuple[Any, ...], bool]:
    """The places of one statement of a program, its ``bounds``, and whether any depends on data.

    Loops over the variables ``skipped`` are left out.
    """
    transfer = program.target.global_transfer
    maps = {each.name: each for each in program.tensor_maps}
    walker = _Walker(maps=maps) if transfer is None else _Walker(transfer.load_bytes, transfer.store_bytes, maps)
    walker.loaded = names_of_data(program.function.body)
    walker.skipped = skipped
    walker.statement(statement)
    return tuple(walker.places.values()), tuple(walker.bounds), bool(walker.data)


class _Walker:
    """Goes through statements in program order, to know the operation of each."""

    def __init__(
        self, load_bytes: int = LINE_BYTES, store_bytes: int = LINE_BYTES, maps: dict[str, TensorMap] | None = None
    ) -> None:
        self.load_bytes, self.store_bytes = load_bytes, store_bytes
        self.maps = maps or {}
        self.bounds: list[Any] = []
        self.places: dict[tuple[int, str, int, bool], Place] = {}
        self.data: set[int] = set()
        self.operation = 0
        self.doubt = 0
        """Conditions and loops around that depend on data."""
        self.loaded: set[int] = set()
        """Names that hold what was read from memory."""
        self.skipped: frozenset[int] = frozenset()
        """Variables of loops that are left out."""
        self.thread: tuple[Any, int] | None = None
        self.conditions: list[tuple[Any, bool]] = []
        """Conditions of the branches around, and whether they hold."""

    def statement(self, node: Any) -> None:
        if isinstance(node, tirx.SeqStmt):
            for item in node.seq:
                self.statement(item)
        elif isinstance(node, tirx.AttrStmt):
            if node.attr_key == "thread_extent" and str(node.node.thread_tag) == "threadIdx.x":
                self.thread = (node.node.var, int(node.value.value))
            self.statement(node.body)
        elif isinstance(node, tirx.For):
            left_out = handle_of(node.loop_var) in self.skipped
            self.around((node.min, node.extent), () if left_out else (node.body,))
        elif isinstance(node, tirx.IfThenElse):
            for holds, body in ((True, node.then_case), (False, node.else_case)):
                self.conditions.append((node.condition, holds))
                self.around((node.condition,), (body,))
                self.conditions.pop()
        elif isinstance(node, tirx.While):
            if not _waits(node.body):
                self.around((node.condition,), (node.body,))
        elif isinstance(node, tirx.Bind):
            if str(getattr(node.var.ty, "dtype", "")) != "uint64":  # a matrix descriptor reads nothing
                self.reads(node.value)
        elif isinstance(node, tirx.BufferStore):
            self.access(node.buffer, node.indices, self.store_bytes)
            self.reads(node.value)
        elif isinstance(node, tirx.Evaluate):
            call = node.value
            name = _call_name(call)
            if name == "tirx.call_extern" and str(getattr(call.args[0], "value", "")) == OPERATION_MARKER:
                self.operation = int(call.args[1].value)
            elif name.startswith(BULK):
                self.bulk(call)
            elif not name.startswith(PLACELESS):
                self.reads(call, LINE_BYTES if "cp_async" in name else self.load_bytes)

    def bulk(self, call: Any) -> None:
        """A bulk copy: where its box starts, and how much of it lies in the tensor."""
        tokens = [str(arg.value) for arg in call.args if isinstance(arg, ir.StringImm)]
        operands = [arg for arg in call.args if not isinstance(arg, ir.StringImm)]
        dimensions = next((int(token[0]) for token in tokens if token in ("1d", "2d", "3d", "4d", "5d")), 0)
        if not dimensions or "prefetch" in tokens:
            return
        at = 0 if "bulk_group" in tokens else 1
        tensor_map = self.maps.get(_map_name(operands[at]))
        coordinates = list(reversed(operands[at + 1 : at + 1 + dimensions]))
        if tensor_map is None or self.doubt or any(self.depends_on_data(item) for item in coordinates):
            self.data.add(self.operation)
            return
        elements = self.load_bytes // dtype_bytes(tensor_map.dtype)
        for values in self.by_thread(coordinates):
            place, stride = tirx.IntImm("int32", 0), 1
            for coordinate, box, extent in reversed(list(zip(values, tensor_map.box, tensor_map.extents, strict=True))):
                place, stride = place + coordinate * stride, stride * extent
                self.bounds.append(tirx.Min(coordinate + box, _int(extent)) - tirx.Max(coordinate, _int(0)))
            self.places.setdefault(
                (self.operation, str(place), elements, False), Place(self.operation, place, elements)
            )
        if "multicast::cluster" in tokens:
            self.bounds.append(operands[at + 2 + dimensions])

    def by_thread(self, expressions: list[Any]) -> list[list[Any]]:
        """The expressions for each thread that gets here, if they name the thread and few do; else as they are."""
        if self.thread is None:
            return [expressions]
        variable, count = self.thread
        handle = handle_of(variable)
        active = np.ones(count, bool)
        for condition, holds in self.conditions:
            try:
                value = np.asarray(evaluate(condition, {handle: np.arange(count)}), bool)
            except NotCountable:
                continue
            active &= value if holds else ~value
        threads = np.flatnonzero(active)
        if len(threads) > FEW_THREADS:
            return [expressions]

        def put(thread: int) -> Any:
            return lambda each: _int(thread) if handle_of(each) == handle else each

        return [
            [tvm_ffi.structural_map(e, (tirx.Var, put(int(t)))) if isinstance(e, ir.Expr) else e for e in expressions]
            for t in threads
        ]

    def around(self, decisive: tuple[Any, ...], bodies: tuple[Any, ...]) -> None:
        """Statements under a condition or in a loop."""
        for item in decisive:
            self.reads(item)
        doubtful = any(self.depends_on_data(item) for item in decisive)
        self.doubt += doubtful
        for body in bodies:
            if body is not None:
                self.statement(body)
        self.doubt -= doubtful

    def reads(self, expression: Any, period: int | None = None) -> None:
        """Every load in an expression, and conditions around loads."""
        loads: list[Any] = []
        calls: list[Any] = []
        if not isinstance(expression, ir.Expr):
            return
        tvm_ffi.structural_walk(expression, [(ir.TensorLoad, loads.append), (ir.Call, calls.append)])
        for load in loads:
            self.access(load.source, load.indices, period or self.load_bytes)
        for call in calls:
            if (
                _call_name(call).endswith(".if_then_else")
                and any(_memory(load) for arm in call.args[1:] for load in _loads(arm))
                and self.depends_on_data(call.args[0])
            ):
                self.data.add(self.operation)

    def access(self, buffer: Any, indices: Any, period: int) -> None:
        scope = str(buffer.ty.storage_scope) or "global"
        if scope == "local":
            return
        if self.doubt or any(self.depends_on_data(item) for item in indices):
            self.data.add(self.operation)
            return
        shared = scope.startswith("shared")
        elements = (SHARED_BYTES if shared else period) // dtype_bytes(str(buffer.ty.dtype))
        for item in indices:
            for index in _arms(item):
                key = (self.operation, str(index), elements, shared)
                self.places.setdefault(key, Place(self.operation, index, elements, shared))

    def depends_on_data(self, expression: Any) -> bool:
        """Whether a value is read from memory, or from registers that hold what was."""
        return holds_data(expression, self.loaded)


def holds_data(expression: Any, names: set[int] | frozenset[int]) -> bool:
    """Whether an expression reads memory, or one of these registers and variables."""
    if not isinstance(expression, ir.Expr):
        return False
    found: list[bool] = []
    tvm_ffi.structural_walk(
        expression,
        [
            (ir.TensorLoad, lambda load: found.append(_memory(load) or handle_of(load.source) in names)),
            (tirx.Var, lambda var: found.append(handle_of(var) in names)),
        ],
    )
    return any(found)


def names_of_data(body: Any) -> set[int]:
    """Registers and variables that may hold what was read from memory.

    Registers that only count (stages of a ring and the like) are not among them.
    """
    stores: list[tuple[int, list[Any]]] = []
    names: set[int] = set()

    def store(node: Any) -> None:
        if str(node.buffer.ty.storage_scope) == "local":
            stores.append((handle_of(node.buffer), [node.value, *node.indices]))

    def call(node: Any) -> None:
        name = _call_name(node.value)
        if name.startswith("tirx.ptx.") and not name.startswith("tirx.ptx.mbarrier"):
            operands = [arg for arg in node.value.args if isinstance(arg, ir.TensorLoad)]
            names.update(handle_of(each.source) for each in operands)

    tvm_ffi.structural_walk(
        body,
        [
            (tirx.BufferStore, store),
            (tirx.Bind, lambda node: stores.append((handle_of(node.var), [node.value]))),
            (tirx.Evaluate, call),
        ],
    )
    grown = True
    while grown:
        fresh = {name for name, values in stores if name not in names and any(holds_data(v, names) for v in values)}
        grown = bool(fresh)
        names |= fresh
    return names


def _waits(statement: Any) -> bool:
    """Whether a loop does nothing but wait for an mbarrier."""
    return isinstance(statement, tirx.Evaluate) and _call_name(statement.value).startswith("tirx.ptx.mbarrier_")


def _map_name(pointer: Any) -> str:
    """The tensor map whose address an operand computes."""
    while isinstance(pointer, ir.Call) and pointer.args:
        pointer = pointer.args[0]
    return str(getattr(pointer, "name", ""))


def _int(value: int) -> Any:
    return tirx.IntImm("int32", value)


def _arms(index: Any) -> Iterator[Any]:
    """What an index can be: both sides of a selection, the first element of a vector."""
    if isinstance(index, tirx.Ramp):
        yield from _arms(index.base)
    elif isinstance(index, tirx.Select):
        yield from _arms(index.true_value)
        yield from _arms(index.false_value)
    else:
        yield index


def _loads(expression: Any) -> list[Any]:
    found: list[Any] = []
    if isinstance(expression, ir.Expr):
        tvm_ffi.structural_walk(expression, (ir.TensorLoad, found.append))
    return found


def _memory(load: Any) -> bool:
    return str(load.source.ty.storage_scope) != "local"


def _call_name(call: Any) -> str:
    return str(getattr(getattr(call, "op", None), "name", ""))


__all__ = ["Accesses", "Place", "accesses_of"]
