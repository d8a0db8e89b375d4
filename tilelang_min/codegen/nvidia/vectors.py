"""Vectors that CUDA C++ has no type for, computed four elements at a time: TIRx to TIRx.

Memory is accessed as the thread program says: what is loaded goes to registers as one vector, is computed in parts, and is
stored as one vector::

    B[i:i+16] = A[i:i+16] + 1     # int8: sixteen int32 have no type

    v0[0:16] = A[i:i+16]
    v1[0:4] = v0[0:4] + 1
    ...
    v1[12:16] = v0[12:16] + 1
    B[i:i+16] = v1[0:16]

The arrays ``v0``, ``v1``, ... are declared once for the kernel: their indices are constant, so that they become registers.

Vectors of one small integer are made of 32-bit words: TVM would pass 8 or 16 arguments to ``make_int4``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilelang_min.codegen.storage import joined, split

PART = 4
"""Elements computed at a time: every type has a vector of four."""

_LANES = {"bool": 4, "float64": 4, "int64": 4, "uint64": 4, "int8": 16, "uint8": 16}
"""Longest vectors that TVM's printer has a type for; 8 of every other type."""

_BINARY = "Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or".split()


def with_short_vectors(function: Any) -> Any:
    """The function with every vector expression of a printable type; the same object where they are already."""
    from tvm import tirx
    from tvm_ffi import structural_map

    splitter = _Splitter()
    body = structural_map(function.body, [(tirx.BufferStore, splitter.store), (tirx.Bind, splitter.bind)])
    body = structural_map(body, (tirx.Broadcast, _broadcast))
    if not splitter.arrays:
        return function if body.same_as(function.body) else function.with_body(body, span=function.span)
    allocations = [tirx.AllocBuffer(array) for array in splitter.arrays.values()]

    def launch(statement: Any) -> Any:
        if str(statement.attr_key) != "thread_extent" or str(statement.node.thread_tag) != "threadIdx.x":
            return statement
        inner = tirx.SeqStmt([*allocations, statement.body])
        return tirx.AttrStmt(statement.node, statement.attr_key, statement.value, inner, statement.span)

    return function.with_body(structural_map(body, (tirx.AttrStmt, launch)), span=function.span)


def _printable(value: Any) -> bool:
    """Whether every vector in an expression has a type in CUDA C++."""
    from tvm import ir
    from tvm_ffi import structural_walk

    found: set[str] = set()
    structural_walk(value, (ir.Expr, lambda node: found.add(str(getattr(node.ty, "dtype", "")))))
    return all(lanes <= _LANES.get(element, 8) for element, lanes in map(split, found))


def _broadcast(node: Any) -> Any:
    """``int8x16`` of one value -> ``uint32x4`` of that value four times, its bits taken as ``int8x16``."""
    from tvm import tirx

    element, lanes = split(node.ty.dtype)
    repeated = {"int8": 0x01010101, "uint8": 0x01010101, "int16": 0x00010001, "uint16": 0x00010001}.get(element)
    words = 0 if repeated is None else lanes * (1 if "8" in element else 2) // 4
    if repeated is None or words < (1 if "8" in element else 4):
        return node
    unsigned = f"u{element.removeprefix('u')}"
    bits = node.value if element == unsigned else tirx.reinterpret(unsigned, node.value)
    word = tirx.Cast("uint32", bits) * tirx.IntImm("uint32", repeated)
    return tirx.reinterpret(str(node.ty.dtype), word if words == 1 else tirx.Broadcast(word, words))


def _load(buffer: Any, index: Any, lanes: int) -> Any:
    from tvm import tirx

    return tirx.BufferLoad(buffer, [tirx.Ramp(index, 1, lanes)])


def _lanes(value: Any) -> int:
    return split(getattr(value.ty, "dtype", ""))[1]


@dataclass
class _Splitter:
    """Callbacks for the two statements that hold vectors.  ``arrays`` are by type, lanes and position in a statement."""

    arrays: dict[tuple[str, int, int], Any] = field(default_factory=dict)

    def array(self, element: str, lanes: int, position: int) -> Any:
        from tvm import tirx

        key = (element, lanes, position)
        if key not in self.arrays:
            name = f"v{len(self.arrays)}"
            self.arrays[key] = tirx.decl_buffer((lanes,), element, name, scope="local", data_alignment=16)
        return self.arrays[key]

    def store(self, node: Any) -> Any:
        from tvm import tirx

        if _lanes(node.value) <= PART or _printable(node.value):
            return node
        parts = _Parts(self, _lanes(node.value))
        result = parts.computed(node.value)
        last = tirx.BufferStore(node.buffer, result, node.indices, node.span)
        return tirx.SeqStmt([*parts.statements, last])

    def bind(self, node: Any) -> Any:
        from tvm import tirx

        if _lanes(node.value) <= PART or _printable(node.value):
            return node
        parts = _Parts(self, _lanes(node.value))
        result = parts.computed(node.value)
        return tirx.SeqStmt([*parts.statements, tirx.Bind(node.var, result, node.span)])


@dataclass
class _Parts:
    """One statement: ``statements`` compute, in parts, what :meth:`computed` then reads at once."""

    splitter: _Splitter
    lanes: int
    statements: list[Any] = field(default_factory=list)
    known: dict[Any, Any] = field(default_factory=dict)
    used: int = 0

    def array(self, element: str) -> Any:
        self.used += 1
        return self.splitter.array(element, self.lanes, self.used)

    def computed(self, value: Any) -> Any:
        """The whole vector, as a load of the array in which it was put together."""
        from tvm import tirx

        element, lanes = split(value.ty.dtype)
        array = self.array(element)
        computing: list[Any] = []
        for first in range(0, lanes, PART):
            part = self.part(value, first, guarded=False)
            computing.append(tirx.BufferStore(array, part, [tirx.Ramp(first, 1, PART)]))
        self.statements += computing
        return _load(array, 0, lanes)

    def part(self, node: Any, first: int, *, guarded: bool) -> Any:
        """Elements ``first`` to ``first + 3`` of a vector expression; ``guarded`` ones are read under a condition, and so
        from where they are."""
        from tvm import ir, tirx

        if _lanes(node) == 1:
            return node
        kind = type(node).__name__

        def again(each: Any) -> Any:
            return self.part(each, first, guarded=guarded)

        element, _ = split(node.ty.dtype)
        if isinstance(node, ir.TensorLoad):
            (index,) = node.indices
            if guarded or str(node.source.ty.storage_scope) == "local":
                return _load(node.source, index.base + first, PART)
            return self.held(node, first)
        if isinstance(node, tirx.Broadcast):
            return tirx.Broadcast(node.value, PART)
        if isinstance(node, tirx.Ramp):
            return tirx.Ramp(node.base + node.stride * first, node.stride, PART)
        if isinstance(node, tirx.Cast):
            return tirx.Cast(joined(element, PART), again(node.value))
        if isinstance(node, tirx.Select):
            return tirx.Select(again(node.condition), again(node.true_value), again(node.false_value))
        if isinstance(node, tirx.Not):
            return tirx.Not(again(node.a))
        if kind in _BINARY:
            return type(node)(again(node.a), again(node.b))
        if isinstance(node, ir.Call):
            name = str(node.op.name)
            if name.endswith(".if_then_else"):
                if _printable(node):
                    return self.held(node, first)
                condition, then, other = node.args
                branches = [self.part(each, first, guarded=True) for each in (then, other)]
                return tirx.if_then_else(condition, *branches)
            if not name.endswith(".reinterpret"):
                arguments = [again(each) if isinstance(each, ir.Expr) else each for each in node.args]
                return tirx.call_intrin(ir.PrimType(joined(element, PART)), name, *arguments)
        return self.held(node, first)  # a named vector, or bits of another type

    def held(self, node: Any, first: int) -> Any:
        """Part of a vector that is read into an array as a whole."""
        from tvm import tirx

        array = self.known.get(node)
        if array is None:
            element, lanes = split(node.ty.dtype)
            array = self.known[node] = self.array(element)
            self.statements.append(tirx.BufferStore(array, node, [tirx.Ramp(0, 1, lanes)]))
        return _load(array, first, PART)
