"""What a program of the language means: its source run as Python, block after block, point after point.

The same text that the compiler reads runs with another ``T``: tiles are arrays of NumPy, ``T.Parallel`` is a loop over all points,
``if`` and ``for`` are Python's own.  Numbers are Python's: programs of small whole numbers are exact in every type.  Of copies
this knows whole tiles and ``A[i, j]``, where a box starts.
"""

from __future__ import annotations

import ast
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np


class _Tile:
    """An array that reads as zero out of range, and is not written there."""

    def __init__(self, array: Any, *, whole: bool = False) -> None:
        self.array = array
        self.whole = whole  # NaN says that nothing was written yet, so tiles of integers are kept in floats too

    def _place(self, indices: Any) -> tuple[int, ...] | None:
        places = tuple(int(item) for item in (indices if isinstance(indices, tuple) else (indices,)))
        return places if all(0 <= p < n for p, n in zip(places, self.array.shape, strict=True)) else None

    def __getitem__(self, indices: Any) -> Any:
        place = self._place(indices)
        value = 0 if place is None else self.array[place].item()
        if value != value:
            raise ValueError(f"element {indices} of a tile is read before it is written")
        return int(value) if self.whole else value

    def __setitem__(self, indices: Any, value: Any) -> None:
        place = self._place(indices)
        if place is not None:
            self.array[place] = value


class _Places(ast.NodeTransformer):
    """``T.copy(A[i, j], S)`` as ``T.copy((A, (i, j)), S)``: elements that are places, not values; both arms of a choice wait."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name == "if_then_else":
            return ast.IfExp(*node.args)
        if name == "copy" or name.startswith("atomic"):
            count = 2 if name == "copy" else 1
            node.args[:count] = [
                self.place(item) if isinstance(item, ast.Subscript) else item for item in node.args[:count]
            ]
        return node

    @staticmethod
    def place(node: ast.Subscript) -> ast.AST:
        whole = node.slice if isinstance(node.slice, ast.Tuple) else ast.Tuple([node.slice], ast.Load())
        return ast.Tuple([node.value, whole], ast.Load())


def _copy(source: Any, target: Any) -> None:
    extents = (target if isinstance(source, tuple) else source).array.shape
    (one, start), (other, begin) = ((x if isinstance(x, tuple) else (x, (0,) * len(extents))) for x in (source, target))
    for step in itertools.product(*map(range, extents)):
        value = one[tuple(a + b for a, b in zip(start, step, strict=True))]
        other[tuple(a + b for a, b in zip(begin, step, strict=True))] = value


def _fill(tile: _Tile, value: Any = 0) -> None:
    tile.array[...] = value


def _gemm(a: _Tile, b: _Tile, c: _Tile, *, transpose_A: bool = False, transpose_B: bool = False, **_: Any) -> None:
    c.array += (a.array.T if transpose_A else a.array) @ (b.array.T if transpose_B else b.array)


def _reduce(function: Any) -> Any:
    def reduce(source: _Tile, target: _Tile, dim: int = -1, *, clear: bool = True) -> None:
        found = function.reduce(source.array, axis=dim)
        target.array[...] = found if clear else function(target.array, found)

    return reduce


def _atomic(function: Any) -> Any:
    def update(place: tuple[_Tile, tuple[int, ...]], value: Any) -> None:
        place[0][place[1]] = function(place[0][place[1]], value)

    return update


def _points(*extents: int) -> Any:
    points = itertools.product(*map(range, extents))
    return points if len(extents) > 1 else (point[0] for point in points)


def _loop(*bounds: int, **_: Any) -> range:
    return range(*bounds)


def meaning(source: str, arrays: list[Any]) -> list[Any]:
    """What the program leaves in its tensors, float64 or int64.  ``arrays`` are not changed."""
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = ()

    class Kernel:
        """``T.Kernel``: says which block runs, and hears how many there are."""

        def __init__(self, *extents: int, **_: Any) -> None:
            nonlocal grid
            grid = extents

        def __enter__(self) -> Any:
            place = block or (0,) * len(grid)
            return place if len(place) > 1 else place[0]

        def __exit__(self, *_: object) -> None:
            return None

    def alloc(shape: Any, dtype: str) -> _Tile:
        return _Tile(np.full(shape, np.nan), whole="int" in dtype)

    language = SimpleNamespace(
        prim_func=lambda function: function,
        Tensor=lambda *_: None,
        Kernel=Kernel,
        alloc_shared=alloc,
        alloc_fragment=alloc,
        alloc_local=alloc,
        alloc_var=lambda dtype, init=0: init,
        annotate_layout=lambda *_: None,
        Parallel=_points,
        Pipelined=_loop,
        serial=_loop,
        unroll=_loop,
        vectorized=_loop,
        copy=_copy,
        fill=_fill,
        clear=_fill,
        gemm=_gemm,
        reduce_sum=_reduce(np.add),
        reduce_max=_reduce(np.maximum),
        reduce_min=_reduce(np.minimum),
        atomic_add=_atomic(lambda a, b: a + b),
        atomic_max=_atomic(max),
        max=max,
        min=min,
        abs=abs,
        cast=lambda value, dtype: int(value) if "int" in dtype else value,
        clamp=lambda value, low, high: max(min(value, high), low),
    )
    tree = _Places().visit(ast.parse(source))
    tree.body = [item for item in tree.body if isinstance(item, ast.FunctionDef)]
    space: dict[str, Any] = {"T": language}
    exec(compile(ast.fix_missing_locations(tree), "<meaning>", "exec"), space)

    def run(out: list[Any]) -> None:
        space["main"](*(_Tile(array) for array in out))

    def copies() -> list[Any]:
        return [array.astype(np.int64 if array.dtype.kind in "iub" else np.float64) for array in arrays]

    run(copies())
    out = copies()
    for place in itertools.product(*map(range, reversed(grid))):
        block = place[::-1]
        run(out)
    return out
