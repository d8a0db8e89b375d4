"""Copies, fills and element-wise nests on a GPU: vectors where the layout and the addresses allow, guards where tiles are ragged.

For a layout group of ``v`` registers (elements side by side in the last dimension) the code is::

    t[0:v] = A[base : base + v]        # one vector load for each contiguous read, guarded when it may be out of range
    for e in range(v): o[e] = f(t[e], ...)
    B[base : base + v] = o[0:v]        # one vector store

A read out of range gives zero, a write out of range does not happen.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from tilelang_min.errors import LayoutError
from tilelang_min.ir.expressions import index, loads, replace_loads, substitute
from tilelang_min.ir.layout import FragmentLayout
from tilelang_min.ir.nodes import Assign, Copy, Expr, Fill, Statement
from tilelang_min.ir.plans import Layouts
from tilelang_min.ir.replicated import wide
from tilelang_min.ir.vectors import Access, Nest, nest_of
from tilelang_min.lower.atomics import atomic_update, in_pairs
from tilelang_min.lower.context import Context, both, sequence
from tilelang_min.lower.direct_copies import direct_copy
from tilelang_min.lower.element_groups import (
    Point,
    in_memory,
    in_range,
    load_vector,
    points_of,
    ramp,
    vector_base,
    vector_bases,
    zeros,
)
from tilelang_min.lower.quads import LANES, TILE_COLUMNS, Exchange, quads_of
from tilelang_min.lower.reads import Reads
from tilelang_min.program.dtypes import dtype_bytes


def lower_nest(context: Context, layouts: Layouts, statement: Statement) -> None:
    """A copy, fill or element-wise nest."""
    context.mark(statement.operation)
    if isinstance(statement, Fill) and statement.region.buffer.scope == "local":
        context.fill_local(statement)
        return
    nest = nest_of(context.program, statement)
    layout = layouts.nests[id(statement)]
    owner = (
        context.owner(layout.replicas) if any(in_memory(access) and access.writes for access in nest.accesses) else None
    )
    alone = owner is not None and _updates_memory(context, nest, statement)
    maps = {name: registers for (number, name), registers in layouts.registers.items() if number == id(statement)}
    reads = Reads(context, nest)
    groups = []
    for group in layout.groups:
        guard = context.exists(layout, group[0])
        if alone:
            guard = both(owner, guard)
        with context.assuming(guard):
            points = points_of(context, nest, layout, group, maps)
            bases = {} if isinstance(statement, Copy) else _plan(context, nest, points, reads)
        groups.append((guard, points, bases))
    exchange = (
        None if owner is not None or alone else _exchange(context, nest, layout, [item[0] for item in groups], maps)
    )
    for guard, points, bases in groups:
        before = dict(reads.held)
        with context.assuming(guard), context.nested() as body:
            context.inherit(statement.operation)
            _group(context, nest, points, statement, None if alone else owner, reads, bases, exchange)
        context.inherit(statement.operation)
        if guard is not None:
            reads.held = before
        if guard is None:
            for item in body:
                context.emit(item)
        else:
            context.emit(tirx.IfThenElse(guard, sequence(body), None))


def _exchange(
    context: Context, nest: Nest, layout: FragmentLayout, guards: list[Any], maps: dict[str, tuple[int, ...]]
) -> Exchange | None:
    """The exchange through which results of 16 bits leave, where quads can store 16 bytes a lane; None: they cannot."""
    quads = quads_of(layout)
    outputs = [access for access in nest.accesses if access.writes and in_memory(access)]
    if quads is None or maps or len(outputs) != 1 or any(guard is not None for guard in guards):
        return None
    (output,) = outputs
    dtype = output.buffer.dtype
    if dtype_bytes(dtype) != 2 or output.atomic or any(loads(item) for item in output.indices):
        return None
    if any(access.buffer is output.buffer and not access.writes for access in nest.accesses):
        return None
    variables = [nest.variables[place] for place in wide(nest.extents)]

    def points(place: tuple[int, int, int]) -> list[Point]:
        """As many as there are elements; where the first is says where all are."""
        used = [context.simplify(item) for item in quads.position(context.thread, place)]
        known = dict(zip((id(variable) for variable in variables), used, strict=True))
        values = tuple((variable, known.get(id(variable), 0)) for variable in nest.variables)
        return [Point(values, 0, {})] * TILE_COLUMNS

    rows, columns = quads.held.tiles
    sets = {
        (row, column, half): points((row, column, half))
        for row in range(rows)
        for column in range(0, columns, LANES)
        for half in range(2)
    }
    bases = {place: vector_base(context, nest, output, found) for place, found in sets.items()}
    if any(base is None for base in bases.values()):
        return None

    def store(place: tuple[int, int, int], words: Any) -> None:
        value = tirx.reinterpret(f"{output.buffer.tvm_dtype}x{TILE_COLUMNS}", words)
        target = context.storage[output.buffer.name]
        made = tirx.BufferStore(target, value, [ramp(bases[place], TILE_COLUMNS)])
        guard = in_range(context, output, sets[place][0])
        context.emit(made if guard is None else tirx.IfThenElse(guard, made, None))

    return Exchange(context, quads.held, store)


def _updates_memory(context: Context, nest: Nest, statement: Statement) -> bool:
    """Whether the nest reads a buffer that it writes: replicas of it would then read what the first has written already."""
    written = {access.buffer.name for access in nest.accesses if access.writes and in_memory(access)}
    if not any(access.buffer.name in written for access in nest.accesses if not access.writes):
        return False
    if any(access.buffer.scope == "fragment" for access in nest.accesses if access.writes):
        raise LayoutError(
            f"several threads hold the fragments of this nest, which also reads and writes {', '.join(sorted(written))}",
            location=context.program.operations[statement.operation].location,
            remedy="write the fragment in one nest and the memory in another",
        )
    return True


def _plan(context: Context, nest: Nest, points: list[Point], reads: Reads) -> dict[int, list[Expr] | None]:
    """Tells ``reads`` what the group reads; the vectors of each access (None: element by element)."""
    width = len(points)
    bases: dict[int, list[Expr] | None] = {}
    for number in sorted(reads.candidates):
        access = nest.accesses[number]
        found = bases[number] = vector_bases(context, nest, access, points) if width > 1 else None
        if found is not None:
            size = width // len(found)
            for place, base in enumerate(found):
                first = points[place * size]
                reads.plan(number, first.register, base, in_range(context, access, first), size)
            continue
        for point in points:
            indices = tuple(substitute(index(item), point.values) for item in access.indices)
            element = context.element(access.buffer, indices, nest.stages.get(access.buffer.name))
            reads.plan(number, point.register, element, context.guard(access.buffer, indices), 1)
    return bases


def _group(
    context: Context,
    nest: Nest,
    points: list[Point],
    statement: Statement,
    owner: Any,
    reads: Reads,
    bases: dict[int, list[Expr] | None],
    exchange: Exchange | None = None,
) -> None:
    """One group of registers; ``owner`` is the condition under which a thread writes memory (None: it always does).

    What it writes to memory goes through ``exchange``, where there is one.
    """
    width = len(points)
    if exchange is None and isinstance(statement, Copy) and direct_copy(context, nest, points, statement, owner):
        return
    vectors: dict[int, list[Any]] = {}
    outputs: dict[int, tuple[Any, Expr, Any]] = {}
    stores = _whole_stores(context, nest, points, reads) if exchange is None and width > 1 else {}
    changed: set[str] = set()
    for number, access in enumerate(nest.accesses):
        if access.buffer.scope not in ("global", "shared") or width == 1:
            continue
        if number in reads.forwarded:
            continue
        if not access.writes:
            if access.buffer.name in changed:  # vectors are loaded in front of what the nest writes
                continue
            found = bases[number] if number in bases else vector_bases(context, nest, access, points)
            if found is not None:
                planned = reads if number in bases else None
                vectors[number] = _read_vectors(context, access, points, number, found, planned)
            continue
        changed.add(access.buffer.name)
        base = stores.get(number) if exchange is None else 0
        if base is None:
            continue
        made = context.registers(f"{access.buffer.name}_out", access.buffer.tvm_dtype, width)
        guard = None if exchange is not None else both(owner, in_range(context, access, points[0]))
        outputs[number] = (made, base, guard)
    for place, point in enumerate(points):
        _element(context, nest, point, place, vectors, outputs, owner, reads)
    for number, (registers, base, guard) in outputs.items():
        access = nest.accesses[number]
        if exchange is not None:
            exchange.add(points[0].register, registers)
            continue
        storage = context.storage[access.buffer.name]
        if access.atomic:
            pairs = [
                atomic_update(
                    context,
                    access.buffer,
                    context.simplify(base + place),
                    [registers[place], registers[place + 1]],
                    access.atomic,
                    statement.operation,
                )
                for place in range(0, width, 2)
            ]
            store = sequence(pairs)
        else:
            store = tirx.BufferStore(storage, load_vector(registers, 0, width), [ramp(base, width)])
        context.emit(store if guard is None else tirx.IfThenElse(guard, store, None))


def _whole_stores(context: Context, nest: Nest, points: list[Point], reads: Reads) -> dict[int, Expr]:
    """Writes, by access number, that leave as one vector behind all elements of the group, and where they go.

    What the nest does to the same buffer behind such a write may not happen before it.
    """
    found: dict[int, Expr] = {}
    touched: set[str] = set()  # by what happens element by element
    for number, access in reversed(list(enumerate(nest.accesses))):
        if not in_memory(access) or number in reads.forwarded:
            continue
        whole = access.writes and access.buffer.name not in touched
        if whole and (not access.atomic or in_pairs(context, access.buffer)):
            base = vector_base(context, nest, access, points)
            if base is not None:
                found[number] = base
                continue
        touched.add(access.buffer.name)
    return found


def _read_vectors(
    context: Context, access: Access, points: list[Point], number: int, bases: list[Expr], reads: Reads | None
) -> list[Any]:
    """Loads the elements of a group as one or several vectors; where each then is.  ``reads`` knows vectors of other groups."""
    size = len(points) // len(bases)
    storage, dtype = context.storage[access.buffer.name], access.buffer.tvm_dtype
    places: list[Any] = []
    for part, base in enumerate(bases):
        first = points[part * size]
        key = None if reads is None else reads.places[number, first.register][2]
        if reads is not None and key is not None and key in reads.held:
            held = reads.held[key]
        else:
            held = context.registers(f"{access.buffer.name}_in", dtype, size)
            guard = in_range(context, access, first)
            load = tirx.BufferStore(held, load_vector(storage, base, size), [ramp(0, size)])
            zero = tirx.BufferStore(held, zeros(dtype, size), [ramp(0, size)])
            context.emit(load if guard is None else tirx.IfThenElse(guard, load, zero))
            if reads is not None and key is not None:
                reads.held[key] = held
        places += [held[item] for item in range(size)]
    return places


def _element(
    context: Context,
    nest: Nest,
    point: Point,
    position: int,
    vectors: dict[int, list[Any]],
    outputs: dict[int, tuple[Any, Expr, Any]],
    owner: Any,
    known: Reads,
) -> None:
    """The nest's body for one element; ``vectors`` and ``outputs`` hold what whole vectors bring and take, by access number."""
    number = 0
    written: dict[int, Any] = {}
    for assign in nest.body:
        reads = len(loads(assign.value)) + sum(len(loads(item)) for item in assign.indices)
        numbers = iter(range(number, number + reads))

        def read(load: Any, numbers: Any = numbers) -> Any:
            place = next(numbers)
            if place in known.forwarded:
                return _zero_outside(context, load, written[known.forwarded[place]])
            if place in known.candidates and place not in vectors and (place, point.register) in known.places:
                return known.scalar(place, point.register)
            return _read(context, nest, load, point, position, vectors.get(place))

        value = context.decide(replace_loads(substitute(assign.value, point.values), read))
        indices = tuple(replace_loads(substitute(index(item), point.values), read) for item in assign.indices)
        number += reads
        if number in known.forwarded.values():
            written[number] = tirx.Var(context.fresh(f"{assign.buffer.name}_written"), assign.buffer.tvm_dtype)
            context.emit(tirx.Bind(written[number], value))
            value = written[number]
        _write(context, nest, assign, indices, value, point, position, outputs.get(number), owner)
        number += 1


def _read(context: Context, nest: Nest, load: Any, point: Point, position: int, vector: Any) -> Any:
    buffer = context.program.buffer_of(load.source)
    if vector is not None:
        return vector[position]
    if buffer.scope == "fragment":
        return context.storage[buffer.name][point.of(buffer.name)]
    indices = tuple(load.indices)
    value = context.storage[buffer.name][index(context.element(buffer, indices, nest.stages.get(buffer.name)))]
    return _zero_outside(context, load, value)


def _zero_outside(context: Context, load: Any, value: Any) -> Any:
    """``value`` where the place of a load is inside of its buffer, zero elsewhere."""
    buffer = context.program.buffer_of(load.source)
    guard = context.guard(buffer, tuple(load.indices))
    return value if guard is None else tirx.if_then_else(guard, value, tirx.const(0, buffer.tvm_dtype))


def _write(
    context: Context,
    nest: Nest,
    assign: Assign,
    indices: tuple[Expr, ...],
    value: Any,
    point: Point,
    position: int,
    output: tuple[Any, Expr, Any] | None,
    owner: Any,
) -> None:
    buffer = assign.buffer
    if output is not None:
        context.emit(tirx.BufferStore(output[0], value, [tirx.IntImm("int32", position)]))
        return
    if buffer.scope == "fragment":
        context.emit(tirx.BufferStore(context.storage[buffer.name], value, [index(point.of(buffer.name))]))
        return
    element = index(context.element(buffer, indices, nest.stages.get(buffer.name)))
    store = tirx.BufferStore(context.storage[buffer.name], value, [element])
    if assign.atomic:
        store = atomic_update(context, buffer, element, [value], assign.atomic, assign.operation)
    guard = both(owner if in_memory(Access(buffer, indices, True)) else None, context.guard(buffer, indices))
    context.emit(store if guard is None else tirx.IfThenElse(guard, store, None))


__all__ = ["lower_nest"]
