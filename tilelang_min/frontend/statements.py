"""Tile statements (allocation, copy, fill, matrix product, element assignment) and the table of operations."""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tvm_ffi
from tvm import ir, tirx
from tvm.sym import Analyzer

from tilelang_min.errors import LanguageError, ShapeError
from tilelang_min.frontend.annotations import annotate_layout
from tilelang_min.frontend.atomics import atomic
from tilelang_min.frontend.evaluate import Evaluator
from tilelang_min.frontend.local_tiles import FragmentElement, LocalUse
from tilelang_min.frontend.reductions import reduction
from tilelang_min.frontend.regions import copy_regions, tile_region
from tilelang_min.frontend.values import Access, convert, divides, is_expression, plain_number
from tilelang_min.ir.expressions import loads
from tilelang_min.ir.nodes import Assign, Barrier, Buffer, Copy, Expr, Fill, Gemm, Statement
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.language import Construct, GemmWarpPolicy
from tilelang_min.language.kernel_source import KernelSource
from tilelang_min.program import SourceLocation, TileOperation
from tilelang_min.program.dtypes import DATA_TYPES

ACCUMULATORS: dict[str, tuple[str, ...]] = {
    "float16": ("float32", "float16"),
    "bfloat16": ("float32",),
    "float32": ("float32",),
    "float64": ("float64",),
    "float8_e4m3": ("float32",),
    "float8_e5m2": ("float32",),
    "int8": ("int32",),
    "uint8": ("int32",),
}
"""Types of C in T.gemm by the type of A and B.  Which target adds up in float16 is known when the product is planned."""


MIXED = ({"float8_e4m3", "float8_e5m2"}, {"int8", "uint8"})
"""Different types of A and B that T.gemm takes."""

_SCOPES = {
    "shared": "shared",
    "shared.dyn": "shared",
    "local.fragment": "fragment",
    "fragment": "fragment",
    "local": "local",
    "local.var": "local",
}
"""Scopes of T.alloc_buffer, by TileLang's names and ours."""

_ALIASES = {"src": "source", "dst": "target"}
"""Other names of arguments, TileLang's."""

_HINTS = {
    "copy": ("coalesced_width", "disable_tma", "eviction_policy", "annotations"),
    "gemm": ("k_pack", "wg_wait", "annotations"),
    "fill": ("annotations",),
    "atomic": ("use_tma", "annotations"),
    "reduce": ("annotations",),
}
"""Arguments of statements that tell TileLang's compiler how, and change nothing of what is computed."""

_MOST_LOCAL = 64
"""Elements of a fragment that each thread may hold for itself."""

_OPERANDS = ("shared", "fragment")
"""Where operands of T.gemm may lie."""


class StatementParser:
    """State of one kernel being read: its tiles and operations, and the statements that need no control flow."""

    def __init__(self, source: KernelSource, evaluator: Evaluator) -> None:
        self.source = source
        self.evaluator = evaluator
        self.buffers: list[Buffer] = []
        self.parameters: list[Buffer] = []
        self.operations: list[TileOperation] = []
        self.parents: list[int] = []
        self.parallel_operation: int | None = None
        self.panel: tuple[int, str] | None = None
        self.pinned: dict[str, SharedLayout] = {}
        self.sources: dict[str, str] = {}
        self.macros: list[str] = []
        self.local_uses: list[LocalUse] = []
        self.analyzer = Analyzer()  # knows the ranges of block and loop indices
        self.conditions: list[Any] = []
        self.as_local: frozenset[SourceLocation] = frozenset()  # fragments that are kept as local tiles
        self._names: set[str] = {"bx", "by", "bz"}

    def error(
        self, node: ast.AST, message: str, remedy: str | None = None, kind: type[LanguageError] = LanguageError
    ) -> LanguageError:
        """An error that points at ``node``."""
        return self.evaluator.error(node, message, remedy, kind)

    # -- operations ------------------------------------------------------------------------------------------------

    def operation(self, node: ast.AST, kind: str, label: str, reads: tuple[str, ...], writes: tuple[str, ...]) -> int:
        """Enter a tile operation in the table; returns its id."""
        number = len(self.operations)
        parent = self.parents[-1] if self.parents else (0 if number else None)
        self.operations.append(TileOperation(number, kind, label, self.source.location(node), parent, reads, writes))
        return number

    def set_buffers(self, operation: int, reads: tuple[str, ...], writes: tuple[str, ...]) -> None:
        """Name the buffers of an operation once its body is known."""
        self.operations[operation] = dataclasses.replace(self.operations[operation], reads=reads, writes=writes)

    @contextmanager
    def inside(self, operation: int) -> Iterator[None]:
        """Operations entered meanwhile have ``operation`` as parent."""
        self.parents.append(operation)
        try:
            yield
        finally:
            self.parents.pop()

    # -- tiles -----------------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """``name``, with a number when it is taken: names of tiles and loop variables are unique in a kernel."""
        candidate, number = name, 1
        while candidate in self._names:
            number += 1
            candidate = f"{name}_{number}"
        self._names.add(candidate)
        return candidate

    def buffer(self, node: ast.AST, name: str, shape: tuple[Expr, ...], dtype: str, scope: str) -> Buffer:
        """A new tile or parameter."""
        if scope == "global":
            self._names.add(name)
        var = tirx.decl_buffer(shape, DATA_TYPES[dtype].tvm, name, scope="global" if scope == "global" else "local")
        made = Buffer(name, shape, dtype, scope, self.source.location(node), var)
        if scope == "global":
            self.evaluator.bind(name, made)
            self.parameters.append(made)
        else:
            self.buffers.append(made)
        return made

    def buffer_of(self, var: Any) -> Buffer:
        """The tile that a TVM buffer stands for."""
        return next(item for item in (*self.parameters, *self.buffers) if item.var.same_as(var))

    def allocate(self, call: ast.Call, function: Construct, name: str) -> Buffer:
        """``T.alloc_shared(shape, dtype)`` and its relatives."""
        names = ("shape", "dtype", "scope")
        arguments = {
            **dict(zip(names, call.args, strict=False)),
            **{str(k.arg): k.value for k in call.keywords},
        }
        if set(arguments) - set(names) or "shape" not in arguments or len(call.args) > len(names):
            raise self.error(call, f"T.{function.name} takes a shape and a data type", f"write {function.signature}")
        scope = function.name.removeprefix("alloc_")
        if scope == "buffer" or "scope" in arguments:
            given_scope = self.evaluator.raw(arguments["scope"]) if "scope" in arguments else "shared"
            if given_scope not in _SCOPES:
                raise self.error(
                    arguments["scope"],
                    f"{given_scope!r} is no scope of a tile",
                    f"use one of {', '.join(repr(name) for name in _SCOPES)}",
                )
            scope = _SCOPES[given_scope]
        node = arguments["shape"]
        items = node.elts if isinstance(node, (ast.Tuple, ast.List)) else None
        if items is None:
            value = self.evaluator.raw(node)
            given = (
                value if isinstance(value, (tuple, list)) else (self.evaluator.integer(node, "an extent of a tile", 1),)
            )
            shape = tuple(plain_number(extent) for extent in given)
        else:
            shape = tuple(self.evaluator.integer(item, "an extent of a tile", 1) for item in items)
        if not shape or any(not isinstance(extent, int) or extent < 1 for extent in shape):
            raise self.error(node, f"{self.source.segment(node)} is not a shape of positive integers", kind=ShapeError)
        dtype = self.evaluator.dtype(arguments["dtype"]) if "dtype" in arguments else "float32"
        extents = tuple(int(extent) for extent in shape if extent is not None)
        if scope == "fragment" and self.source.location(call) in self.as_local and math.prod(extents) <= _MOST_LOCAL:
            scope = "local"
        return self.buffer(call, self.unique(name), extents, dtype, scope)

    # -- statements ------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Statement | None:
        """A tile statement; None for one that only says how the kernel runs."""
        function = self.evaluator.raw(node.func)
        if isinstance(function, Construct) and function.kind == "hint":
            return None
        if not isinstance(function, Construct) or function.kind != "statement":
            hint = (
                f"write {function.signature}"
                if isinstance(function, Construct)
                else "use T.copy, T.gemm, T.fill, T.clear or T.reduce_sum"
            )
            raise self.error(node, f"{self.source.segment(node.func)} is not a tile statement", hint)
        if function.name == "use_swizzle":
            self.use_swizzle(node, function)
            return None
        if function.name.startswith("atomic_"):
            return atomic(self, node, function)
        if function.name == "sync_threads":
            self.arguments(node, function, (), 0)
            return Barrier(self.operation(node, "barrier", self.source.segment(node), (), ()), "the author asks for it")
        if function.name == "annotate_layout":
            annotate_layout(self, node, function)
            return None
        if function.name.startswith("reduce_"):
            return reduction(self, node, function)
        method = {"copy": self.copy, "fill": self.fill, "clear": self.fill, "gemm": self.gemm}[function.name]
        return method(node, function)

    def arguments(
        self, node: ast.Call, function: Construct, names: tuple[str, ...], required: int
    ) -> dict[str, ast.expr]:
        """Positional and keyword arguments by name, checked against the construct's signature."""
        if len(node.args) > len(names):
            raise self.error(
                node, f"T.{function.name} takes at most {len(names)} arguments", f"write {function.signature}"
            )
        given = dict(zip(names, node.args, strict=False))
        hints = _HINTS.get(function.name.partition("_")[0], ())
        for keyword in node.keywords:
            if keyword.arg in hints:
                self.evaluator.raw(keyword.value)
                continue
            name = _ALIASES.get(str(keyword.arg), keyword.arg)
            if name in names and name not in given:
                given[str(name)] = keyword.value
                continue
            if name in names:
                raise self.error(node, f"{keyword.arg!r} of T.{function.name} is given twice", "leave one out")
            if keyword.arg not in names:
                raise self.error(
                    node, f"T.{function.name} has no argument {keyword.arg!r}", f"write {function.signature}"
                )
        missing = [name for name in names[:required] if name not in given]
        if missing:
            raise self.error(node, f"T.{function.name} needs {', '.join(missing)}", f"write {function.signature}")
        return given

    def use_swizzle(self, node: ast.Call, function: Construct) -> None:
        """``T.use_swizzle(panel_size, order="row", enable=True)``."""
        given = self.arguments(node, function, ("panel_size", "order", "enable"), 1)
        panel = self.evaluator.integer(given["panel_size"], "panel_size", 1)
        order = self.evaluator.raw(given["order"]) if "order" in given else "row"
        if order not in ("row", "column"):
            raise self.error(given["order"], f"{order!r} is no order of blocks", "use 'row' or 'column'")
        if self.evaluator.flag(given["enable"], "enable") if "enable" in given else True:
            self.panel = (panel, order)

    def copy(self, node: ast.Call, function: Construct) -> Statement:
        """``T.copy(source, target)``."""
        given = self.arguments(node, function, ("source", "target"), 2)
        source, target = copy_regions(self.evaluator, given["source"], given["target"])
        if source.buffer is target.buffer:
            raise self.error(node, f"{source.buffer.name} is copied onto itself", "copy through another tile")
        if "local" in (source.buffer.scope, target.buffer.scope):
            raise self.error(
                node, "a local tile belongs to one thread and cannot be copied as a block", "use T.alloc_fragment"
            )
        reads = (source.buffer.name, *self.named(*source.offsets, *target.offsets))
        self.note_reads(node, *source.offsets, *target.offsets)
        operation = self.operation(node, "copy", self.source.segment(node), reads, (target.buffer.name,))
        return Copy(operation, source, target)

    def fill(self, node: ast.Call, function: Construct) -> Statement:
        """``T.fill(buffer, value)`` and ``T.clear(buffer)``."""
        clear = function.name == "clear"
        given = self.arguments(node, function, ("buffer",) if clear else ("buffer", "value"), 1 if clear else 2)
        value = self.evaluator.raw(given["buffer"])
        if isinstance(value, Access) and not value.has_slice:
            number = 0 if clear else self.evaluator.value(given["value"])
            return self.assign(node, value.buffer, self.evaluator.element(given["buffer"], value), number)
        rank = len(value.shape) if isinstance(value, Buffer) else len(getattr(value, "indices", ()))
        region = tile_region(self.evaluator, given["buffer"], f"the tile of T.{function.name}", rank)
        filled: Expr = 0 if clear else self.evaluator.value(given["value"])
        converted = convert(filled, region.buffer.dtype)
        reads = self.named(converted, *region.offsets)
        self.note_reads(node, converted, *region.offsets)
        for name in reads:
            if name == region.buffer.name or any(b.name == name and b.scope == "fragment" for b in self.buffers):
                raise self.error(
                    given.get("value", node),
                    f"the value of a fill cannot come from {name}: it must be the same for every element",
                    "write a T.Parallel nest",
                )
        operation = self.operation(node, "fill", self.source.segment(node), reads, (region.buffer.name,))
        return Fill(operation, region, converted)

    def gemm(self, node: ast.Call, function: Construct) -> Statement:
        """``T.gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, precision)``."""
        names = ("A", "B", "C", "transpose_A", "transpose_B", "policy", "clear_accum", "precision")
        given = self.arguments(node, function, names, 3)
        a, b, c = (
            tile_region(self.evaluator, given[name], f"{name} of T.gemm", inside=name != "C")
            for name in ("A", "B", "C")
        )
        flags = {name: self.evaluator.flag(given[name], name) for name in (*names[3:5], "clear_accum") if name in given}
        policy = self.evaluator.raw(given["policy"]) if "policy" in given else None
        if "policy" in given and not isinstance(policy, GemmWarpPolicy):
            raise self.error(
                given["policy"], f"{policy!r} is no policy of T.gemm", "write policy=T.GemmWarpPolicy.FullRow"
            )
        transpose_a, transpose_b = flags.get("transpose_A", False), flags.get("transpose_B", False)
        for name, region, scopes in (("A", a, _OPERANDS), ("B", b, _OPERANDS), ("C", c, ("fragment",))):
            if region.buffer.scope not in scopes:
                raise self.error(
                    given[name],
                    f"{name} of T.gemm must be a {scopes[0]} tile, {region.buffer.name} is {region.buffer.scope}",
                    f"allocate it with T.alloc_{scopes[0]}" + ("" if name == "C" else " and T.copy into it"),
                )
            if region.buffer.scope == "fragment" and (len(region.extents) > 2 or region.extents != region.buffer.shape):
                raise self.error(
                    given[name],
                    f"{name} of T.gemm must be a whole fragment of two dimensions, not a slice of one",
                    "copy the slice into a shared tile" if name != "C" else "allocate C as large as the product",
                )
        if c.buffer in (a.buffer, b.buffer):
            raise self.error(
                node, f"{c.buffer.name} is an operand and the result", "use another fragment for the result"
            )
        m, k = a.extents[:-3:-1] if transpose_a else a.extents[-2:]
        k2, n = b.extents[:-3:-1] if transpose_b else b.extents[-2:]
        if (m, n) != c.extents or k != k2:
            raise self.error(
                node,
                f"the tiles of T.gemm do not fit: A is {m}x{k}, B is {k2}x{n}, C is {c.extents[0]}x{c.extents[1]}",
                "A is MxK, B is KxN, C is MxN; slice a padded tile to the part that counts: A_shared[:, 0:block_K]",
                ShapeError,
            )
        if a.buffer.dtype != b.buffer.dtype and {a.buffer.dtype, b.buffer.dtype} not in MIXED:
            raise self.error(
                node,
                f"A is {a.buffer.dtype} and B is {b.buffer.dtype}",
                "give both the same data type; only float8_e4m3 and float8_e5m2, and int8 and uint8, multiply each other",
            )
        precision = self.evaluator.raw(given["precision"]) if "precision" in given else "exact"
        if precision not in ("exact", "tf32") or (precision == "tf32" and a.buffer.dtype != "float32"):
            raise self.error(
                given["precision"],
                f"{precision!r} is no precision of a product of {a.buffer.dtype}",
                "use 'exact', or for float32 'tf32'",
            )
        accumulators = ACCUMULATORS.get(a.buffer.dtype, ())
        if c.buffer.dtype not in accumulators:
            raise self.error(
                node,
                f"T.gemm of {a.buffer.dtype} into {c.buffer.dtype} is not supported",
                f"{a.buffer.dtype} is added up in {' or '.join(accumulators)}: "
                "give C that type, and T.copy it into a tile of the other"
                if accumulators
                else f"operands are of type {', '.join(ACCUMULATORS)}",
            )
        for name, region in (("A", a), ("B", b)):
            for offset, extent, full in zip(region.offsets, region.extents, region.buffer.shape, strict=True):
                inside = [offset >= 0, offset + extent <= full]
                if not all(self.analyzer.can_prove(item) if is_expression(item) else item for item in inside):
                    raise self.error(
                        given[name],
                        f"{name} of T.gemm may lie partly outside of {region.buffer.name}",
                        "slice it at places that are inside for every block and iteration",
                        ShapeError,
                    )
        clear = flags.get("clear_accum", False)
        names_read = (a.buffer.name, b.buffer.name, *(() if clear else (c.buffer.name,)))
        operation = self.operation(node, "gemm", self.source.segment(node), names_read, (c.buffer.name,))
        return Gemm(
            operation,
            a,
            b,
            c,
            transpose_a,
            transpose_b,
            clear,
            m,
            n,
            k,
            policy="any" if policy is None else policy.value,
            precision=precision,
        )

    def assign(
        self, node: ast.AST, buffer: Buffer, indices: tuple[Expr, ...], value: Expr, *, new: bool = False
    ) -> Assign:
        """``buffer[indices] = value``; outside T.Parallel it is an operation of its own.

        Under an ``if`` of the nest it happens where that holds: the place of an element in memory is out of range elsewhere, which
        is not written, and registers keep what they hold.  ``new`` registers have nothing to keep: they are written anyhow, with 0
        in place of a division, which a CPU does not survive where the condition kept it from dividing by zero.
        """
        converted = convert(value, buffer.dtype)
        if self.conditions and (not new or divides(converted)):
            holds = self.conditions[0]
            for condition in self.conditions[1:]:
                holds = tirx.And(holds, condition)
            if new:
                converted = tirx.if_then_else(holds, converted, convert(0, buffer.dtype))
            elif buffer.scope in ("global", "shared"):
                indices = (
                    tirx.if_then_else(holds, convert(indices[0], "int32"), tirx.const(-1, "int32")),
                    *indices[1:],
                )
            else:
                converted = tirx.if_then_else(holds, converted, buffer.var[indices])
        self.note_reads(node, converted, *indices)
        if buffer.scope == "local":
            self.local_uses.append(
                LocalUse(self.source.location(node), buffer, str(indices), True, self.parallel_operation)
            )
        if self.parallel_operation is not None:
            return Assign(self.parallel_operation, buffer, indices, converted)
        used = [self.buffer_of(var) for item in (converted, *indices) for var in self.reads(item)]
        fragments = [item.location for item in (buffer, *used) if item.scope == "fragment"]
        if fragments:
            raise FragmentElement(
                "an element of a fragment belongs to one thread and is used inside T.Parallel",
                location=self.source.location(node),
                remedy="write a T.Parallel nest",
                fragments=fragments,
            )
        reads = self.named(converted, *indices)
        operation = self.operation(node, "store", self.source.segment(node), reads, (buffer.name,))
        return Assign(operation, buffer, indices, converted)

    def named(self, *values: Any) -> tuple[str, ...]:
        """Names of the tiles and tensors that expressions read."""
        return tuple(sorted({self.buffer_of(var).name for value in values for var in self.reads(value)}))

    def note_reads(self, node: ast.AST, *values: Any) -> None:
        """Remember which local tiles are read here, for :func:`check_local_tiles`."""
        for value in values:
            for load in loads(value) if is_expression(value) else ():
                buffer = self.buffer_of(load.source)
                if buffer.scope == "local":
                    use = LocalUse(
                        self.source.location(node), buffer, str(tuple(load.indices)), False, self.parallel_operation
                    )
                    self.local_uses.append(use)

    def reads(self, value: Any) -> list[Any]:
        """TVM buffers that an expression reads."""
        if not is_expression(value):
            return []
        found: list[Any] = []
        tvm_ffi.structural_walk(value, (ir.TensorLoad, lambda load: _keep(found, load.source)))
        return found


def _keep(found: list[Any], var: Any) -> None:
    if not any(var.same_as(other) for other in found):
        found.append(var)


__all__ = ["StatementParser"]
