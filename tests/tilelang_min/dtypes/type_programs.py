"""Thread programs by hand, in the form that lowering makes, for every data type and matrix instruction on every target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir, tirx
from tvm.script.tirx import ptx

from tilelang_min.program import Parameter, SharedBuffer, SourceLocation, ThreadProgram, TileOperation
from tilelang_min.program.dtypes import DATA_TYPES, OPERAND_TYPES
from tilelang_min.targets import MatrixInstruction, resolve

TYPES = {**DATA_TYPES, **OPERAND_TYPES}
KINDS = ("kernel", "copy", "parallel", "gemm", "copy")


def tvm_name(dtype: str, lanes: int = 1) -> str:
    """The type as TVM writes it."""
    name = TYPES[dtype].tvm if dtype in TYPES else dtype
    return name if lanes == 1 else f"{name}x{lanes}"


def i32(value: int) -> Any:
    return tirx.IntImm("int32", value)


def load(buffer: Any, index: Any, lanes: int = 1) -> Any:
    return tirx.BufferLoad(buffer, [index if lanes == 1 else tirx.Ramp(index, 1, lanes)])


def store(buffer: Any, value: Any, index: Any, lanes: int = 1) -> Any:
    return tirx.BufferStore(buffer, value, [index if lanes == 1 else tirx.Ramp(index, 1, lanes)])


def mark(operation: int) -> Any:
    return tirx.Evaluate(tirx.call_extern("void", "__tl_op", operation))


def barrier() -> Any:
    return tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))


class Build:
    """Collects parameters and buffers of a thread program of one block (GPU) or of several (CPU), then wraps a body."""

    def __init__(self, target: str, threads: int, name: str = "typed", blocks: int = 1) -> None:
        self.target, self.name, self.blocks = resolve(target), name, blocks
        self.cpu = self.target.kind == "cpu"
        self.threads = 1 if self.cpu else threads
        self.thread = tirx.Var("block" if self.cpu else "threadIdx_x", "int32")
        self.block = i32(0) if self.cpu else tirx.Var("blockIdx_x", "int32")
        self.parameters: list[Parameter] = []
        self.pointers: list[Any] = []
        self.buffers: list[Any] = []
        self.tiles: list[Any] = []
        self.locals: list[Any] = []
        self.listed: list[SharedBuffer] = []

    def parameter(self, name: str, dtype: str, shape: tuple[int, ...], access: str = "in") -> Any:
        parameter = Parameter(name, dtype, shape, access)
        pointer = tirx.Var(name, ir.PointerType(ir.PrimType(tvm_name(dtype)), "global"))
        alignment = TYPES[dtype].size if self.cpu else 16
        self.parameters.append(parameter)
        self.pointers.append(pointer)
        self.buffers.append(
            tirx.decl_buffer((parameter.elements,), tvm_name(dtype), name, data=pointer, data_alignment=alignment)
        )
        return self.buffers[-1]

    def shared(self, name: str, dtype: str, elements: int) -> Any:
        offset = sum(-(-tile.bytes // 128) * 128 for tile in self.listed)
        self.listed.append(SharedBuffer(name, dtype, (elements,), 1, offset, elements * TYPES[dtype].size))
        self.tiles.append(
            tirx.decl_buffer((elements,), tvm_name(dtype), name, scope="shared", data_alignment=64 if self.cpu else 128)
        )
        return self.tiles[-1]

    def local(self, name: str, dtype: str, elements: int) -> Any:
        self.locals.append(tirx.decl_buffer((elements,), tvm_name(dtype), name, scope="local", data_alignment=16))
        return self.locals[-1]

    def program(self, *body: Any) -> ThreadProgram:
        allocations = [tirx.AllocBuffer(each) for each in (*self.tiles, *self.locals)]
        statement: Any = tirx.SeqStmt([*allocations, mark(0), *body])
        parameters: list[Any] = list(self.pointers)
        grid = (self.blocks, 1, 1)
        if self.cpu:
            begin, end = tirx.Var("block_begin", "int32"), tirx.Var("block_end", "int32")
            parameters += [begin, end]
            statement = tirx.For(self.thread, begin, end - begin, tirx.ForKind.SERIAL, statement)
        else:
            for tag, variable, extent in (
                ("threadIdx.x", self.thread, self.threads),
                ("blockIdx.x", self.block, self.blocks),
            ):
                axis = tirx.IterVar(ir.Range(0, extent), variable, tirx.IterVar.ThreadIndex, tag)
                statement = tirx.AttrStmt(axis, "thread_extent", extent, statement)
        declarations = [tirx.DeclBuffer(b, data=p) for b, p in zip(self.buffers, self.pointers, strict=True)]
        function = tirx.PrimFunc(parameters, tirx.SeqStmt([*declarations, statement]))
        return ThreadProgram(
            name=self.name,
            target=self.target,
            function=function.with_attr({"global_symbol": self.name, "tirx.noalias": True}),
            parameters=tuple(self.parameters),
            grid=grid,
            threads=self.threads,
            shared=tuple(self.listed),
            shared_bytes_dynamic=0,
            operations=tuple(
                TileOperation(i, kind, f"{kind} {i}", SourceLocation("kernel.py", 10 + i, 4), None if i == 0 else 0)
                for i, kind in enumerate(KINDS)
            ),
        )


def elementwise(
    target: str,
    inputs: Sequence[str],
    output: str,
    function: Callable[..., Any],
    *,
    lanes: int = 1,
    count: int = 256,
    name: str = "typed",
) -> ThreadProgram:
    """``B[i] = function(A0[i], A1[i], ...)`` on ``count`` elements, ``lanes`` of them a thread (a CPU: a block)."""
    units = count // lanes
    b = Build(target, threads=64, name=name, blocks=units if resolve(target).kind == "cpu" else units // 64)
    sources = [b.parameter(f"A{i}", dtype, (count,)) for i, dtype in enumerate(inputs)]
    result = b.parameter("B", output, (count,), "out")
    at = b.thread * lanes if b.cpu else (b.block * 64 + b.thread) * lanes
    return b.program(mark(2), store(result, function(*(load(a, at, lanes) for a in sources)), at, lanes))


def conversion(target: str, source: str, result: str, lanes: int = 1, count: int = 256) -> ThreadProgram:
    """``B[i] = cast(A0[i])``."""
    return elementwise(
        target, [source], result, lambda a: tirx.Cast(tvm_name(result, lanes), a), lanes=lanes, count=count
    )


def through_shared(target: str, dtype: str, lanes: int, count: int = 256) -> ThreadProgram:
    """B = A by way of a shared tile and registers, ``lanes`` elements at once; read back by another thread."""
    b = Build(target, threads=count // lanes, name="moved")
    source, result = b.parameter("A0", dtype, (count,)), b.parameter("B", dtype, (count,), "out")
    tile, held = b.shared("tile", dtype, count), b.local("held", dtype, lanes)
    if b.cpu:
        i, j = tirx.Var("i", "int32"), tirx.Var("j", "int32")
        into = store(tile, load(source, i * lanes, lanes), i * lanes, lanes)
        out = [
            store(held, load(tile, j * lanes, lanes), 0, lanes),
            store(result, load(held, 0, lanes), j * lanes, lanes),
        ]
        return b.program(
            *(mark(1), tirx.For(i, 0, count // lanes, tirx.ForKind.SERIAL, into)),
            *(mark(4), tirx.For(j, 0, count // lanes, tirx.ForKind.SERIAL, tirx.SeqStmt(out))),
        )
    at, other = b.thread * lanes, (count // lanes - 1 - b.thread) * lanes
    return b.program(
        *(mark(1), store(tile, load(source, at, lanes), at, lanes), barrier()),
        *(mark(4), store(held, load(tile, other, lanes), 0, lanes), store(result, load(held, 0, lanes), other, lanes)),
    )


def conversions(target: str, lanes: int, count: int) -> ThreadProgram:
    """``B_s_d[i] = cast(A_s[i])`` for every pair of types s, d whose vectors of ``lanes`` may be accessed at once."""
    units = count // lanes
    b = Build(target, threads=64, name="conversions", blocks=units if resolve(target).kind == "cpu" else units // 64)
    wide = lanes if b.cpu else 16 // lanes
    names = [name for name, known in DATA_TYPES.items() if b.cpu or known.size <= wide]
    sources = {name: b.parameter(f"A_{name}", name, (count,)) for name in names}
    at = b.thread * lanes if b.cpu else (b.block * 64 + b.thread) * lanes
    body = [mark(2)]
    for source, buffer in sources.items():
        for result in names:
            out = b.parameter(f"B_{source}_{result}", result, (count,), "out")
            body.append(store(out, tirx.Cast(tvm_name(result, lanes), load(buffer, at, lanes)), at, lanes))
    return b.program(*body)


def arithmetic(target: str, lanes: int, count: int) -> ThreadProgram:
    """``B_t_f[i] = f(X_t[i], Y_t[i])`` for every type t and function f of :data:`FUNCTIONS`."""
    units = count // lanes
    b = Build(target, threads=64, name="arithmetic", blocks=units if resolve(target).kind == "cpu" else units // 64)
    at = b.thread * lanes if b.cpu else (b.block * 64 + b.thread) * lanes
    body = [mark(2)]
    for name, known in DATA_TYPES.items():
        if name == "bool" or (not b.cpu and known.size * lanes > 16):
            continue
        x, y = (load(b.parameter(f"{side}_{name}", name, (count,)), at, lanes) for side in "XY")
        for label, function in FUNCTIONS.items():
            out = b.parameter(f"B_{name}_{label}", name, (count,), "out")
            body.append(store(out, function(x, y, tvm_name(name), lanes), at, lanes))
    return b.program(*body)


def _splat(value: float, dtype: str, lanes: int) -> Any:
    one = tirx.const(int(value) if "int" in dtype else value, dtype)
    return one if lanes == 1 else tirx.Broadcast(one, lanes)


FUNCTIONS: dict[str, Callable[[Any, Any, str, int], Any]] = {
    "add": lambda x, y, dtype, lanes: x + y,
    "subtract": lambda x, y, dtype, lanes: x - y,
    "multiply": lambda x, y, dtype, lanes: x * y,
    "max": lambda x, y, dtype, lanes: tirx.Max(x, y),
    "larger": lambda x, y, dtype, lanes: tirx.Select(x > y, x, y),
    "add_three": lambda x, y, dtype, lanes: x + _splat(3, dtype, lanes),
}
"""Functions of two values, their type and lanes."""


def matrices(target: str, instructions: Sequence[MatrixInstruction]) -> ThreadProgram:
    """``D<i> = A<i> B<i> + C<i>`` by one warp and instruction ``i``; fragments are read and written element by element.

    Operations: 1 reads a and b, 2 reads c, 3 is the instruction, 4 writes d.
    """
    b = Build(target, threads=resolve(target).warp_size, name="matrices")
    body: list[Any] = []
    for number, instruction in enumerate(instructions):
        _matrix(b, body, instruction, str(number))
    return b.program(*body)


def _matrix(b: Build, body: list[Any], instruction: MatrixInstruction, suffix: str) -> None:
    m, n, k = instruction.m, instruction.n, instruction.k
    a_in = b.parameter(f"A{suffix}", instruction.a_dtype, (m, k))
    b_in = b.parameter(f"B{suffix}", instruction.b_dtype, (k, n))
    c_in = b.parameter(f"C{suffix}", instruction.c_dtype, (m, n))
    d_out = b.parameter(f"D{suffix}", instruction.c_dtype, (m, n), "out")

    def items(name: str, source: Any, lane_map: Any, width: int, dtype: str) -> Any:
        """The lane's items of a matrix in a local buffer."""
        buffer = b.local(name + suffix, dtype, lane_map.items)
        for item in range(lane_map.items):
            row, column = lane_map(b.thread, item)
            body.append(store(buffer, load(source, row * width + column), i32(item)))
        return buffer

    body.append(mark(1))
    a = items("a", a_in, instruction.a_map, k, instruction.a_dtype)
    bb = items("b", b_in, instruction.b_map, n, instruction.b_dtype)
    body.append(mark(2))
    c = items("c", c_in, instruction.c_map, n, instruction.c_dtype)
    body.append(mark(3))
    multiply = _nvidia if instruction.name.startswith("mma") else _amd
    multiply(b, instruction, body, a, bb, c)
    body.append(mark(4))
    for item in range(instruction.c_map.items):
        row, column = instruction.c_map(b.thread, item)
        body.append(store(d_out, load(c, i32(item)), row * n + column))


def _nvidia(b: Build, instruction: MatrixInstruction, body: list[Any], a: Any, bb: Any, c: Any) -> None:
    """Items packed into registers, mma.sync, accumulators unpacked."""
    operands = []
    for matrix, buffer in (("a", a), ("b", bb), ("c", c)):
        kind, count = getattr(instruction, f"{matrix}_operand"), instruction.registers(matrix)
        packed = getattr(instruction, f"{matrix}_map").items // count
        words = b.local(f"{matrix}_words{len(b.locals)}", kind, count)
        for word in range(count):
            value = load(buffer, i32(word * packed), packed)
            body.append(
                store(words, value if str(value.ty.dtype) == kind else tirx.reinterpret(kind, value), i32(word))
            )
        operands.append([words[word] for word in range(count)])
    body.append(tirx.Evaluate(ptx[instruction.name](*operands[2], *operands[0], *operands[1], *operands[2])))
    packed = instruction.c_map.items // len(operands[2])
    natural = tvm_name(instruction.c_dtype, packed)
    for word, value in enumerate(operands[2]):
        back = value if instruction.c_operand == natural else tirx.reinterpret(natural, value)
        body.append(store(c, back, i32(word * packed), packed))


def _amd(b: Build, instruction: MatrixInstruction, body: list[Any], a: Any, bb: Any, c: Any) -> None:
    """Items read at once in the operand's type, MFMA, accumulators stored at once."""

    def operand(buffer: Any, count: int, kind: str) -> Any:
        value = load(buffer, i32(0), count)
        return value if str(value.ty.dtype) == kind else tirx.reinterpret(kind, value)

    counts = [getattr(instruction, f"{each}_map").items for each in "abc"]
    kinds = [getattr(instruction, f"{each}_operand") for each in "abc"]
    values = [operand(*each) for each in zip((a, bb, c), counts, kinds, strict=True)]
    modifiers = [i32(value) for value in instruction.modifiers]
    product = tirx.call_llvm_pure_intrin(ir.PrimType(kinds[2]), instruction.name, *values, *modifiers)
    body.append(store(c, product, i32(0), counts[2]))
