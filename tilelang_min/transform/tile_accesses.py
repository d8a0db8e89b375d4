"""The accesses to one shared tile that lowering will make, by warp: rows and columns of the tile for every lane.

What ``lower/`` emits for products comes from ``ir/operand_reads.py``; copies, fills and element-wise nests are lowered as their
layout says, in vectors where a group of registers lies together (``lower/nest.py``).  Block indices and loop variables stand at
their first values: what an access costs repeats with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilelang_min.analysis.points import NotCountable, evaluate, handle_of
from tilelang_min.ir.expressions import as_int, divides, index, loads
from tilelang_min.ir.layout import FragmentLayout
from tilelang_min.ir.nodes import Buffer, Copy, Expr, Fill, Gemm, Loop, Parallel, Statement, TileProgram, walk
from tilelang_min.ir.operand_reads import Whole, operand_reads
from tilelang_min.ir.plans import GemmPlan
from tilelang_min.ir.replicated import wide
from tilelang_min.ir.vectors import Access, Nest, nest_of, row_major
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target

_PLAIN_STEPS = 8
MOST_READS = 768
"""Reads of a product that are looked at; of more, these stand for all."""

_ASYNCHRONOUS = {4: "cp_async", 8: "cp_async", 16: "cp_async_bypass"}


@dataclass(frozen=True, eq=False)
class TileAccess:
    """One instruction, run by every warp: ``rows`` and ``columns`` of the tile and ``active`` lanes, all (warps, lanes).

    ``access`` as in :func:`tilelang_min.access.bank_conflicts`, ``width`` elements a lane.  ``sources``: global byte addresses of
    an asynchronous copy.  ``weight``: how often it runs.  ``whole``: it needs its elements side by side, whatever the layout.
    """

    access: str
    width: int
    matrices: int | None
    rows: Any
    columns: Any
    active: Any
    sources: Any
    weight: float
    whole: bool


def accesses_of_gemm(
    program: TileProgram, target: Target, gemm: Gemm, plan: GemmPlan, tile: Buffer, whole: Whole, weight: float
) -> list[TileAccess]:
    """Reads of an operand of a matrix product."""
    threads = np.arange(program.threads)
    values = _first_values(program)
    found: list[TileAccess] = []
    if (
        plan.kind == "plain" and gemm.k > _PLAIN_STEPS
    ):  # one element at a time: what a few of K cost, the others cost too
        weight *= gemm.k / _PLAIN_STEPS
        gemm = replace(gemm, k=_PLAIN_STEPS)
    reads = [
        read
        for read in operand_reads(gemm, plan, threads, whole)
        if (gemm.a if read.operand == "a" else gemm.b).buffer is tile
    ]
    step = -(-len(reads) // MOST_READS)
    for read in reads[::step] if step else ():
        region = gemm.a if read.operand == "a" else gemm.b
        try:
            start = [evaluate(index(offset), values) for offset in region.offsets]
        except NotCountable:
            return []
        indices = [*start[:-2], start[-2] + read.place[0], start[-1] + read.place[1]]  # Region.at, evaluated
        found.append(
            TileAccess(
                "ldmatrix" if read.matrices else "load",
                read.elements,
                read.matrices,
                _by_warp(_row(tile, indices), threads, target),
                _by_warp(indices[-1], threads, target),
                _by_warp(np.ones(len(threads), bool), threads, target),
                None,
                weight * step,
                read.matrices is not None,
            )
        )
    return found


def accesses_of_nest(
    program: TileProgram,
    target: Target,
    statement: Statement,
    layout: FragmentLayout,
    tile: Buffer,
    whole: Whole,
    weight: float,
) -> list[TileAccess]:
    """Accesses of a copy, fill or element-wise nest; empty where they depend on data."""
    if not isinstance(statement, (Copy, Fill, Parallel)):
        return []
    nest = nest_of(program, statement)
    if not any(access.buffer is tile for access in nest.accesses):
        return []
    try:
        return list(_nest(program, target, statement, nest, layout, tile, whole, weight))
    except NotCountable:
        return []


def _nest(
    program: TileProgram,
    target: Target,
    statement: Statement,
    nest: Nest,
    layout: FragmentLayout,
    tile: Buffer,
    whole: Whole,
    weight: float,
) -> Iterator[TileAccess]:
    threads = np.arange(program.threads)
    shape = (layout.registers, len(threads))
    values = _points(program, nest, layout, threads)
    direct = isinstance(statement, Copy) and len(nest.accesses) == 2
    copied = direct and nest.accesses[0].buffer.dtype == nest.accesses[1].buffer.dtype
    asynchronous = isinstance(statement, Copy) and statement.asynchronous and copied
    owner = np.ones(len(threads), bool)
    for stride, count in layout.replicas:
        owner &= threads // stride % count == 0
    exists = np.ones(shape, bool)
    for register in range(layout.registers):
        for place, extent in layout.limits(threads, register):
            exists[register] &= np.asarray(place) < extent
    for access in nest.accesses:
        if access.buffer is not tile:
            continue
        places = _indices(access, values, shape)
        rows = _row(tile, places)
        active = exists & (owner if access.writes else True) & _inside(tile, places)
        source = nest.accesses[0]
        origin = _indices(source, values, shape) if asynchronous and access.writes else None
        for group in map(list, layout.groups):
            width = len(group)
            vector = _together(access.buffer, places, group) and whole(tile, width)
            kind, sources = "store" if access.writes else "load", None
            if vector and origin is not None and _together(source.buffer, origin, group):
                kind = _ASYNCHRONOUS.get(width * dtype_bytes(tile.dtype), kind)
                if kind != "store":
                    first = [item[group[0]] for item in origin]
                    sources = _by_warp(_flat(source.buffer, first) * dtype_bytes(tile.dtype), threads, target)
            for register in group[:1] if vector else group:
                yield TileAccess(
                    kind,
                    width if vector else 1,
                    None,
                    _by_warp(rows[register], threads, target),
                    _by_warp(places[-1][register], threads, target),
                    _by_warp(active[register], threads, target),
                    sources,
                    weight,
                    kind.startswith("cp_async"),
                )


def _points(program: TileProgram, nest: Nest, layout: FragmentLayout, threads: Any) -> dict[int, Any]:
    """Values of all variables, those of the nest (registers, threads)."""
    axes = wide(layout.shape)
    positions = [layout.position(threads, register) for register in range(layout.registers)]
    used = iter([np.stack([np.broadcast_to(place[axis], threads.shape) for place in positions]) for axis in axes])
    values = _first_values(program)
    for place, variable in enumerate(nest.variables):
        values[handle_of(variable)] = next(used) if place in wide(nest.extents) else 0
    return values


def _indices(access: Access, values: dict[int, Any], shape: tuple[int, int]) -> list[Any]:
    if any(loads(item) for item in access.indices):
        raise NotCountable
    return [np.broadcast_to(np.asarray(evaluate(index(item), values)), shape) for item in access.indices]


def _together(buffer: Buffer, places: list[Any], group: list[int]) -> bool:
    """Whether a group's elements are one aligned vector in every thread, row after row (``ir/vectors.py`` proves the same)."""
    width = len(group)
    if width * dtype_bytes(buffer.dtype) > 16 or not divides(width, buffer.elements):
        return False
    if width == 1:
        return True
    flats = _flat(buffer, [item[group] for item in places])
    inner = max((axis for axis, extent in enumerate(buffer.shape) if as_int(extent) != 1), default=0)
    return (
        bool(np.all(flats == flats[0] + np.arange(width)[:, None]))
        and not np.any(flats[0] % width)
        and divides(width, buffer.shape[inner])
        and not np.any(places[inner][group[0]] % width)
    )


def _inside(tile: Buffer, place: list[Any]) -> Any:
    inside: Any = True
    for item, extent in zip(place, tile.shape, strict=True):
        inside = inside & (item >= 0) & (item < extent)
    return inside


def _flat(buffer: Buffer, indices: list[Any]) -> Any:
    inner = [as_int(extent) for extent in buffer.shape[1:]]
    if None in inner:  # a runtime dimension
        raise NotCountable
    return row_major(indices, [1, *inner])  # the first extent does not matter


def _row(tile: Buffer, indices: list[Any]) -> Any:
    return row_major(indices[:-1], tile.shape[:-1])


def _by_warp(values: Any, threads: Any, target: Target) -> Any:
    return np.broadcast_to(np.asarray(values), threads.shape).reshape(-1, target.warp_size)


def _first_values(program: TileProgram) -> dict[int, Any]:
    """Block indices 0, loop variables at their start."""
    values: dict[int, Expr] = {handle_of(variable): 0 for variable in program.block_variables}
    for statement in walk(program.body):
        if isinstance(statement, Loop):
            start = as_int(statement.start)
            values[handle_of(statement.variable)] = 0 if start is None else start
    return values


__all__ = ["TileAccess", "accesses_of_gemm", "accesses_of_nest"]
