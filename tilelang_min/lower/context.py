"""State of one lowering: storage of tiles, the thread's variables, and the statements made so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Any

import tvm_ffi
from tvm import ir, tirx
from tvm.script.tirx import ptx
from tvm.sym import Analyzer

from tilelang_min.ir.expressions import as_int, bind_blocks, bind_range, index, loads, replace_loads, simplify
from tilelang_min.ir.layout import FragmentLayout
from tilelang_min.ir.nodes import Assign, Buffer, Expr, Fill, Loop, Region, TileProgram, walk
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.ir.sizes import shape_of, text_of
from tilelang_min.ir.vectors import flat, row_major
from tilelang_min.program import OPERATION_MARKER, Parameter, SharedBuffer
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.program.metadata import Extent
from tilelang_min.program.sizes import grid_of
from tilelang_min.targets import Target

CONSUMER_BARRIER = 1
"""The named barrier of the threads that are not the producer; number 0 is that of the whole block."""


class Context:
    """Collects the thread program of one kernel.

    Statements go to the innermost open block (:meth:`emit`); :meth:`nested` opens one and yields its statements.
    """

    def __init__(
        self, program: TileProgram, target: Target, shared_layouts: Mapping[str, SharedLayout] | None = None
    ) -> None:
        self.program = program
        self.target = target
        self.allocations: list[Any] = []
        self.storage: dict[str, Any] = {}
        self.shared: list[SharedBuffer] = []
        self.shared_layouts = dict(shared_layouts or {})
        self.shared_bytes_dynamic = 0
        self.thread = tirx.Var("threadIdx_x", "int32")
        self.launched = program.grid
        self.block: Any = None  # number of the block where they are launched in one row
        self.cluster = 1
        self.split = 1  # blocks that share the iterations of a tile's loop
        self.rings: Any = None  # the consumers' rings, while their work is lowered
        self.consumers: int | None = None  # threads that meet at barriers, where not all of the block do
        self.maps: Any = None  # tensor maps that were asked for
        self.stored = False  # whether tiles leave by the copy engine
        self.fences = False  # whether barriers must show ordinary stores to the copy engine and to warp group products
        self.analyzer = Analyzer()
        self._blocks: list[list[Any]] = [[]]
        self._marked: list[int | None] = [None]
        self._names: dict[str, int] = {size.name: 1 for size in program.sizes}
        bind_blocks(self.analyzer, program.block_variables, program.grid, program.sizes)
        bind_range(self.analyzer, self.thread, 0, program.threads)
        for statement in walk(program.body):
            if isinstance(statement, Loop):
                bind_range(self.analyzer, statement.variable, statement.start, statement.extent)

    # -- statements ------------------------------------------------------------------------------------------------

    def emit(self, statement: Any) -> None:
        """Append one TIRx statement."""
        self._blocks[-1].append(statement)

    def mark(self, operation: int) -> None:
        """Statements from here belong to ``operation``."""
        if self._marked[-1] != operation:
            self.emit(tirx.Evaluate(tirx.call_extern("void", OPERATION_MARKER, operation)))
            self._marked[-1] = operation

    @property
    def marked(self) -> int:
        """The operation that statements belong to now."""
        return self._marked[-1] or 0

    def inherit(self, operation: int) -> None:
        """Say that ``operation`` is still the marked one: the marker before this place holds, and none need be written."""
        self._marked[-1] = operation

    @contextmanager
    def assuming(self, condition: Any) -> Iterator[None]:
        """What is proved meanwhile may use ``condition``: the body of a branch needs no guard that the branch implies.

        None is no condition.
        """
        if condition is None:
            yield
            return
        with self.analyzer.constraint_scope(condition):
            yield

    def condition(self, condition: Expr) -> tuple[Any, Any]:
        """A branch's condition in the thread program, and what may be assumed inside: nothing where it reads a variable, which
        may change there."""
        if loads(condition):
            return replace_loads(condition, self.read({})), None
        return condition, condition

    def bound(self, value: Expr) -> Any:
        """A loop's start or extent, or a stage counted from it, in the thread program: what a variable holds is read, and does not
        change meanwhile.  Parts of ``value`` may be of the thread program already."""
        read = self.read({})
        storage = list(self.storage.values())

        def element(load: Any) -> Any:
            return load if any(load.source.same_as(item) for item in storage) else read(load)

        return index(replace_loads(value, element) if loads(value) else value)

    @contextmanager
    def nested(self) -> Iterator[list[Any]]:
        """Open a block; statements emitted meanwhile are in the yielded list.

        Its first operation is marked anew, and so is the next one behind it: a marker holds in program order, whatever ran.
        """
        block: list[Any] = []
        self._blocks.append(block)
        self._marked.append(None)
        try:
            yield block
        finally:
            self._blocks.pop()
            self._marked.pop()
            self._marked[-1] = None

    def take(self) -> list[Any]:
        """All statements of the outermost block."""
        return self._blocks[0]

    def loop(self, name: str, extent: Expr, *, unroll: bool = False) -> tuple[Any, Any]:
        """A fresh loop variable with its range known, and a function that closes the loop over a body."""
        variable = tirx.Var(self.fresh(name), "int32")
        bind_range(self.analyzer, variable, 0, extent)
        kind = tirx.ForKind.UNROLLED if unroll else tirx.ForKind.SERIAL

        def close(body: list[Any]) -> None:
            self.emit(tirx.For(variable, 0, index(extent), kind, sequence(body)))

        return variable, close

    def barrier(self) -> None:
        """All threads meet; in a kernel with a producer, all others."""
        if self.fences:
            self.emit(tirx.Evaluate(ptx["fence.proxy.async.shared::cta"]()))
        if self.consumers is None:
            self.emit(tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared")))
            return
        number, threads = (tirx.IntImm("uint32", value) for value in (CONSUMER_BARRIER, self.consumers))
        self.emit(tirx.Evaluate(ptx["bar.sync"](number, threads)))

    def launch_in_a_row(self, *, persistent: bool, cluster: int, split: int = 1) -> None:
        """As many blocks as tiles; ``persistent``: no more than the first known device has units.  ``cluster`` blocks together;
        ``split`` blocks for each tile."""
        count, units = self.tiles, self.target.devices[0].units
        if not persistent:
            blocks = count * split
        else:
            blocks = tirx.Min(index(count), index(units)) if as_int(count) is None else min(count, units)
        self.launched, self.cluster, self.split = (blocks, 1, 1), cluster, split
        self.block = tirx.Var(self.fresh("blockIdx_x"), "int32")
        bind_range(self.analyzer, self.block, 0, units if persistent else blocks)

    @property
    def tiles(self) -> Expr:
        """Tiles of the program's grid."""
        return self.simplify(self.program.grid[0] * self.program.grid[1] * self.program.grid[2])

    @property
    def rank(self) -> Any:
        """Number of the block in its cluster."""
        return self.block % self.cluster

    def extents(self) -> tuple[Extent, Extent, Extent] | None:
        """The grid as text in the runtime dimensions; None where there are none."""
        names = {size: str(size.name) for size in self.program.sizes}
        if not names:
            return None
        texts = [text for text in (text_of(extent, names) for extent in self.launched) if text is not None]
        x, y, z = texts  # three: the front end has seen to it
        return x, y, z

    def smallest_grid(self) -> tuple[int, int, int]:
        """The grid where every runtime dimension is 1."""
        return grid_of(self.extents() or self.launched, {str(size.name): 1 for size in self.program.sizes})

    # -- names and storage -----------------------------------------------------------------------------------------

    def fresh(self, name: str) -> str:
        """A name nothing else in the function has."""
        number = self._names.get(name, 0)
        self._names[name] = number + 1
        return name if number == 0 else f"{name}_{number}"

    def simplify(self, value: Expr) -> Expr:
        """``value`` in simplest form, with all ranges known here."""
        return simplify(value, self.analyzer)

    def decide(self, value: Expr) -> Expr:
        """``value`` without the ``if_then_else`` whose condition is known for every block, thread and iteration."""

        def choose(call: Any) -> Any:
            if not str(getattr(call.op, "name", "")).endswith(".if_then_else"):
                return call
            known = self.analyzer.simplify(call.args[0])
            return call if not isinstance(known, tirx.IntImm) else call.args[1 if known.value else 2]

        return tvm_ffi.structural_map(value, (ir.Call, choose)) if isinstance(value, ir.Expr) else value

    def proves(self, condition: Any) -> bool:
        """Whether ``condition`` holds for every block, thread and iteration."""
        return bool(self.analyzer.can_prove(condition))

    def registers(self, name: str, dtype: str, count: int) -> Any:
        """A register array of each thread."""
        alignment = min(64, max(4, dtype_bytes(dtype) * (1 << (count - 1).bit_length())))
        buffer = tirx.decl_buffer((count,), dtype, self.fresh(name), scope="local", data_alignment=alignment)
        self.allocations.append(tirx.AllocBuffer(buffer))
        return buffer

    def array(self, name: str, dtype: str, elements: int) -> Any:
        """An array of the thread, shared by all statements that need one of this name, type and size."""
        key = f"{name}@{dtype}x{elements}"
        if key not in self.storage:
            self.storage[key] = self.registers(name, dtype, elements)
        return self.storage[key]

    def parameters(self) -> tuple[list[Any], list[Any]]:
        """Pointer variables of the tensor parameters, and the statements that declare their flat buffers."""
        pointers, declarations = [], []
        for buffer in self.program.parameters:
            pointer = tirx.Var(buffer.name, ir.PointerType(ir.PrimType(buffer.tvm_dtype), "global"))
            alignment = 16 if self.target.kind != "cpu" else dtype_bytes(buffer.dtype)
            flat = tirx.decl_buffer(
                (buffer.elements,),
                buffer.tvm_dtype,
                buffer.name,
                data=pointer,
                scope="global",
                data_alignment=alignment,
            )
            pointers.append(pointer)
            declarations.append(tirx.DeclBuffer(flat, data=pointer))
            self.storage[buffer.name] = flat
            self._names[buffer.name] = 1
        return pointers, declarations

    def layout_of(self, buffer: Buffer) -> SharedLayout:
        """Where the elements of a shared tile lie."""
        known = self.shared_layouts.get(buffer.name)
        return known or SharedLayout.plain(buffer.shape, dtype_bytes(buffer.dtype))

    def element(self, buffer: Buffer, indices: tuple[Expr, ...], stage: Expr = None) -> Expr:
        """Element number of ``indices`` in the flat storage of ``buffer``, at ``stage`` (raw, taken modulo the stages)."""
        layout = self.layout_of(buffer) if buffer.scope == "shared" else None
        if layout is None or layout.is_plain:
            total = flat(buffer, indices)
        else:
            row = row_major(indices[:-1], buffer.shape[:-1])
            # Simplified before the exchange of units, through which the analyzer does not look.
            total = layout.element(self.simplify(row), self.simplify(indices[-1]))
        stages = self.program.stages.get(buffer.name, 1)
        if stages > 1 and stage is not None:
            total = total + self.bound(stage) % stages * (buffer.elements if layout is None else layout.pitch)
        return self.simplify(total)

    def place(self, region: Region, stage: Expr, row: Expr, column: Expr) -> Any:
        """Element number, in the storage of its buffer, of (row, column) of a region that is a matrix."""
        return index(self.element(region.buffer, region.at(row, column), stage))

    def read_at(self, region: Region, stage: Expr, row: Expr, column: Expr) -> Any:
        """The element at :meth:`place`."""
        return self.storage[region.buffer.name][self.place(region, stage, row, column)]

    def whole(self, buffer: Buffer, width: int) -> bool:
        """Whether ``width`` elements of a row lie side by side and aligned, where those of the tile as written would."""
        if buffer.scope != "shared" or buffer.name not in self.shared_layouts:
            return True
        return self.layout_of(buffer).whole(width)

    def guard(self, buffer: Buffer, *places: tuple[Expr, ...]) -> Any:
        """Condition that all ``places`` are inside ``buffer``, without what can be proved; None when nothing is left."""
        result: Any = None
        for place in places:
            for item, extent in zip(place, buffer.shape, strict=True):
                value = index(self.simplify(item))
                for condition in (value >= 0, value < extent):
                    if not self.proves(condition):
                        result = both(result, condition)
        return result

    def exists(self, layout: FragmentLayout, register: int) -> Any:
        """Condition that the thread's ``register`` holds an element of the fragment, where that is not always so; or None."""
        result: Any = None
        for place, extent in layout.limits(self.thread, register):
            condition = index(self.simplify(place)) < extent
            if not self.proves(condition):
                result = both(result, condition)
        return result

    def owner(self, coordinates: tuple[tuple[int, int], ...]) -> Any:
        """Condition that the thread is the first of those that differ in ``coordinates`` alone; None: it always is."""
        result: Any = None
        for stride, count in coordinates:
            if count > 1:
                result = both(result, tirx.EQ(index(self.simplify(self.thread // stride % count)), 0))
        return result

    def read(self, stages: Mapping[str, Expr]) -> Callable[[Any], Any]:
        """A function for ``replace_loads``: one element of a tile's storage, zero where it is out of range."""

        def element(load: Any) -> Any:
            buffer = self.program.buffer_of(load.source)
            indices = tuple(load.indices)
            value = self.storage[buffer.name][index(self.element(buffer, indices, stages.get(buffer.name)))]
            guard = self.guard(buffer, indices)
            return value if guard is None else tirx.if_then_else(guard, value, tirx.const(0, buffer.tvm_dtype))

        return element

    def store_element(self, assign: Assign, update: Callable[..., Any]) -> Any:
        """The statement for an assignment outside of nests; nothing is written out of range.  ``update`` makes atomic ones."""
        read = self.read(assign.stages)
        value = replace_loads(assign.value, read)
        indices = tuple(replace_loads(item, read) for item in assign.indices)
        place = index(self.element(assign.buffer, indices))
        store = tirx.BufferStore(self.storage[assign.buffer.name], value, [place])
        if assign.atomic:
            store = update(self, assign.buffer, place, [value], assign.atomic, assign.operation)
        guard = self.guard(assign.buffer, indices)
        return store if guard is None else tirx.IfThenElse(guard, store, None)

    def fill_local(self, fill: Fill) -> None:
        """Every thread fills its own copy of a local tile."""
        region = fill.region
        value = replace_loads(fill.value, self.read({}))
        offsets = [replace_loads(item, self.read({})) for item in region.offsets]
        for steps in product(*(range(extent) for extent in region.extents)):
            indices = tuple(offset + step for offset, step in zip(offsets, steps, strict=True))
            place = index(self.element(region.buffer, indices))
            store = tirx.BufferStore(self.storage[region.buffer.name], value, [place])
            guard = self.guard(region.buffer, indices)
            self.emit(store if guard is None else tirx.IfThenElse(guard, store, None))

    def kernel_parameters(self) -> tuple[Parameter, ...]:
        """The parameters with the direction in which their data moves."""
        read: set[str] = set()
        written: set[str] = set()
        for operation in self.program.operations[1:]:
            read.update(operation.reads)
            written.update(operation.writes)
        return tuple(
            Parameter(
                item.name,
                item.dtype,
                shape_of(item),
                "inout" if item.name in read and item.name in written else "out" if item.name in written else "in",
            )
            for item in self.program.parameters
        )


def both(first: Any, second: Any) -> Any:
    """Both conditions; None stands for one that always holds."""
    if first is None or second is None:
        return second if first is None else first
    return tirx.And(first, second)


def sequence(statements: list[Any]) -> Any:
    """Several statements as one."""
    if not statements:
        return tirx.Evaluate(tirx.IntImm("int32", 0))
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements)
