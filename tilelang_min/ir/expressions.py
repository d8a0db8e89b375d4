"""Questions about and changes to scalar expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tvm_ffi
from tvm import ir, tirx
from tvm.sym import Analyzer

from tilelang_min.ir.nodes import Expr

MOST = 2**31 - 1
"""The largest int32: no runtime dimension and no grid is larger."""


def is_symbolic(value: Any) -> bool:
    """Whether ``value`` is a TVM expression rather than a Python number."""
    return isinstance(value, ir.Expr)


def as_int(value: Expr) -> int | None:
    """The integer that ``value`` is, or None."""
    if isinstance(value, int):
        return value
    return int(value.value) if isinstance(value, tirx.IntImm) else None


def index(value: Expr) -> Any:
    """``value`` as an int32 expression."""
    return value if is_symbolic(value) else tirx.IntImm("int32", int(value))


def substitute(value: Expr, replacements: Mapping[Any, Expr] | Iterable[tuple[Any, Expr]]) -> Expr:
    """``value`` with variables replaced."""
    if not is_symbolic(value):
        return value
    pairs = list(replacements.items() if isinstance(replacements, Mapping) else replacements)

    def replace(var: Any) -> Any:
        for old, new in pairs:
            if var.same_as(old):
                return index(new)
        return var

    if isinstance(value, tirx.IntImm):
        return value
    if isinstance(value, tirx.Var):
        return replace(value)
    return tvm_ffi.structural_map(value, (tirx.Var, replace))


def replace_loads(value: Expr, function: Callable[[Any], Any]) -> Expr:
    """``value`` with every tile read replaced by ``function(load)``; indices of the load are replaced first."""
    if not is_symbolic(value):
        return value
    return tvm_ffi.structural_map(value, (ir.TensorLoad, function))


def loads(value: Expr) -> list[Any]:
    """All tile reads in ``value``, in evaluation order."""
    found: list[Any] = []
    if is_symbolic(value):
        tvm_ffi.structural_walk(value, (ir.TensorLoad, lambda load: found.append(load)))
    return found


def uses(value: Expr, variable: Any) -> bool:
    """Whether ``variable`` occurs in ``value``."""
    if not is_symbolic(value):
        return False
    found: list[bool] = []
    tvm_ffi.structural_walk(value, (tirx.Var, lambda var: found.append(True) if var.same_as(variable) else None))
    return bool(found)


def bind_range(analyzer: Any, variable: Any, start: Expr, extent: Expr) -> None:
    """Tell ``analyzer`` that ``variable`` runs from ``start`` over ``extent`` values, where that many are known."""
    count = as_int(extent)
    if count is not None:
        analyzer.bind(variable, ir.Range.from_min_extent(index(start), index(max(1, count))))


def bind_blocks(analyzer: Any, variables: Iterable[Any], grid: Iterable[Expr], sizes: Iterable[Any]) -> None:
    """Tell ``analyzer`` what is known of block indices and of runtime dimensions: neither is negative."""
    for size in sizes:
        bind_range(analyzer, size, 0, MOST)
    for variable, extent in zip(variables, grid, strict=True):
        bind_range(analyzer, variable, 0, MOST if as_int(extent) is None else extent)


def divides(width: int, value: Expr) -> bool:
    """Whether ``value`` is a multiple of ``width`` whatever the runtime dimensions are."""
    known = as_int(value)
    if known is not None:
        return known % width == 0
    return bool(Analyzer().can_prove(tirx.EQ(tirx.floormod(index(value), width), 0)))


def simplify(value: Expr, analyzer: Any | None = None) -> Expr:
    """``value`` in simplest form (a Python int when constant)."""
    if not is_symbolic(value):
        return value
    result = (analyzer or Analyzer()).simplify(value)
    constant = as_int(result)
    return result if constant is None else constant
