"""Tile program -> thread program for GPUs: walks the statements and hands each to its family's file."""

from __future__ import annotations

from functools import partial
from typing import Any

import tvm_ffi
from tvm import ir, tirx
from tvm.script.tirx import ptx

from tilelang_min.ir.expressions import as_int, bind_range, index
from tilelang_min.ir.hopper import ClusterSum, RingLoop
from tilelang_min.ir.nodes import (
    Assign,
    AsyncCommit,
    AsyncWait,
    Barrier,
    Conditional,
    Copy,
    Fill,
    Gemm,
    Loop,
    Parallel,
    Reduce,
    SchedulingFence,
    Statement,
    TileProgram,
)
from tilelang_min.ir.plans import Layouts
from tilelang_min.lower.atomics import atomic_update
from tilelang_min.lower.cluster_sum import sum_over_cluster
from tilelang_min.lower.context import Context, sequence
from tilelang_min.lower.gemm_fma import lower_fma
from tilelang_min.lower.gemm_mfma import lower_mfma
from tilelang_min.lower.gemm_mma import lower_mma
from tilelang_min.lower.gemm_wgmma import lower_wgmma
from tilelang_min.lower.nest import lower_nest
from tilelang_min.lower.overlap import consume_overlapped, overlap_of
from tilelang_min.lower.raster import in_panels, tile_of, truncated
from tilelang_min.lower.reduce import lower_reduce
from tilelang_min.lower.register_buffers import lower_ahead
from tilelang_min.lower.rings import consume
from tilelang_min.lower.shared_storage import allocate_shared
from tilelang_min.lower.tma import TensorMaps
from tilelang_min.lower.tma_store import finish_stores, store_fragment
from tilelang_min.lower.warp_groups import lower_roles, needs_fences
from tilelang_min.program import ThreadProgram
from tilelang_min.targets import Target
from tilelang_min.targets.wgmma import GROUP_THREADS

_UNROLL_LIMIT = 64
"""Longest loop that T.unroll expands."""


def lower_gpu(program: TileProgram, target: Target, layouts: Layouts) -> ThreadProgram:
    """The thread program of ``program``; pipelines and barriers must be in place."""
    context = Context(program, target, layouts.shared)
    pointers, declarations = context.parameters()
    allocate_shared(context)
    for buffer in program.buffers:
        if buffer.scope == "fragment":
            layout = layouts.fragments[buffer.name]
            context.storage[buffer.name] = context.registers(buffer.name, buffer.tvm_dtype, layout.registers)
        elif buffer.scope == "local":
            context.storage[buffer.name] = context.registers(buffer.name, buffer.tvm_dtype, buffer.elements)
    context.mark(0)
    plan, maps, threads = layouts.hopper, TensorMaps(context), program.threads
    context.maps = maps
    context.fences = needs_fences(program, layouts)
    panel = plan.panel or program.panel
    if plan.specialised:
        threads += GROUP_THREADS
        tiles = None
        split = 1 if plan.split is None else plan.split.count
        if plan.persistent or plan.cluster > 1 or split > 1:
            context.launch_in_a_row(persistent=plan.persistent, cluster=plan.cluster, split=split)
            tiles = partial(tile_of, panel=panel)
        if plan.split is not None:
            bind_range(context.analyzer, plan.split.rank, 0, split)
            context.emit(tirx.Bind(plan.split.rank, tirx.truncmod(context.block, index(split))))
        lower_roles(context, layouts, maps, _block, tiles)
    else:
        _block(context, layouts, program.body)
        finish_stores(context)
    body = sequence([*context.allocations, *context.take()])
    launched = program.block_variables
    if context.block is not None:
        launched = (context.block, *program.block_variables[1:])
    elif panel is not None:
        launched, body = _rasterised(context, body, panel)
    axes = [("threadIdx.x", context.thread, threads)]
    axes += [
        (f"blockIdx.{axis}", variable, extent)
        for axis, variable, extent in zip("zyx", reversed(launched), reversed(context.launched), strict=True)
        if context.block is None or axis == "x"
    ]
    for tag, variable, extent in axes:
        iterator = tirx.IterVar(ir.Range(0, extent), variable, tirx.IterVar.ThreadIndex, tag)
        body = tirx.AttrStmt(iterator, "thread_extent", index(extent), body)
    function = tirx.PrimFunc([*pointers, *program.sizes, *maps.maps.values()], sequence([*declarations, body]))
    function = function.with_attr({"global_symbol": program.name, "tirx.noalias": True})
    return ThreadProgram(
        name=program.name,
        target=target,
        function=function,
        parameters=context.kernel_parameters(),
        grid=context.smallest_grid(),
        threads=threads,
        shared=tuple(context.shared),
        shared_bytes_dynamic=context.shared_bytes_dynamic,
        operations=program.operations,
        tensor_maps=tuple(maps.maps),
        cluster=(max(plan.cluster, context.split), 1, 1),
        consumer_threads=program.threads if plan.specialised else None,
        sizes=tuple(size.name for size in program.sizes),
        extents=context.extents(),
    )


def _rasterised(context: Context, body: Any, panel: tuple[int, str]) -> tuple[tuple[Any, Any, Any], Any]:
    """The variables that are launched, and the body in terms of them."""
    bx, by, bz = context.program.block_variables
    gx, gy, _ = context.program.grid
    if as_int(gx) == 1 or as_int(gy) == 1:
        return (bx, by, bz), body
    px, py = (tirx.Var(context.fresh(f"blockIdx_{axis}"), "int32") for axis in "xy")
    x, y = in_panels(py * gx + px, (gx, gy), panel)

    if (
        context.program.sizes
    ):  # of a grid that is known at launch these take divisions: once, not wherever they are used
        return (px, py, bz), sequence([tirx.Bind(bx, truncated(x)), tirx.Bind(by, truncated(y)), body])

    def replace(variable: Any) -> Any:
        return x if variable.same_as(bx) else y if variable.same_as(by) else variable

    return (px, py, bz), tvm_ffi.structural_map(body, (tirx.Var, replace))


def _block(context: Context, layouts: Layouts, statements: tuple[Statement, ...]) -> None:
    for statement in statements:
        _statement(context, layouts, statement)


def _statement(context: Context, layouts: Layouts, statement: Statement) -> None:
    if isinstance(statement, RingLoop):
        parts = overlap_of(context.program, layouts, statement)
        if parts is not None:
            consume_overlapped(context, context.rings, layouts, statement, parts, _block)
        else:
            consume(context, context.rings, layouts, statement, _block)
    elif isinstance(statement, Copy) and id(statement) in layouts.hopper.stores:
        store_fragment(context, context.maps, layouts, statement)
    elif isinstance(statement, (Copy, Fill, Parallel)):
        lower_nest(context, layouts, statement)
    elif isinstance(statement, Gemm):
        _gemm(context, layouts, statement)
    elif isinstance(statement, Reduce):
        lower_reduce(context, layouts, statement)
    elif isinstance(statement, ClusterSum):
        sum_over_cluster(context, layouts, statement)
    elif isinstance(statement, Assign):
        _assign(context, statement)
    elif isinstance(statement, Loop):
        if statement.operation in layouts.ahead.loops:
            lower_ahead(context, layouts, statement, _block)
        else:
            _loop(context, layouts, statement)
    elif isinstance(statement, Conditional):
        context.mark(statement.operation)
        condition, known = context.condition(statement.condition)
        with context.assuming(known), context.nested() as then:
            _block(context, layouts, statement.then)
        with context.nested() as otherwise:
            _block(context, layouts, statement.otherwise)
        context.emit(tirx.IfThenElse(condition, sequence(then), sequence(otherwise) if otherwise else None))
        context.mark(statement.operation)
    elif isinstance(statement, Barrier):
        context.mark(statement.operation)
        context.barrier()
    elif isinstance(statement, SchedulingFence):
        if context.target.kind == "hip":
            context.mark(statement.operation)
            mask = tirx.IntImm("int32", 0)  # nothing at all may cross
            context.emit(tirx.Evaluate(tirx.call_llvm_intrin("int32", "llvm.amdgcn.sched.barrier", mask)))
    elif isinstance(statement, AsyncCommit):
        context.mark(statement.operation)
        context.emit(tirx.Evaluate(ptx["cp.async.commit_group"]()))
    elif isinstance(statement, AsyncWait):
        context.mark(statement.operation)
        context.emit(tirx.Evaluate(ptx["cp.async.wait_group"](statement.pending)))
    else:
        raise TypeError(f"no lowering for {type(statement).__name__}")


def _gemm(context: Context, layouts: Layouts, gemm: Gemm) -> None:
    context.mark(gemm.operation)
    plan = layouts.gemms[gemm.operation]
    if gemm.clear:
        c = context.storage[gemm.c.buffer.name]
        zero = tirx.const(0, gemm.c.buffer.tvm_dtype)
        for register in range(plan.layout.registers):
            context.emit(tirx.BufferStore(c, zero, [tirx.IntImm("int32", register)]))
    if plan.kind == "mma":
        lower_mma(context, gemm, plan, 2 if gemm.operation in layouts.ahead.products else 1)
    else:
        {"wgmma": lower_wgmma, "mfma": lower_mfma}.get(plan.kind, lower_fma)(context, gemm, plan)


def _loop(context: Context, layouts: Layouts, loop: Loop) -> None:
    context.mark(loop.operation)
    extent = as_int(context.simplify(loop.extent))
    unroll = loop.kind == "unroll" and extent is not None and extent <= _UNROLL_LIMIT
    with context.nested() as body:
        context.mark(loop.operation)
        _block(context, layouts, loop.body)
    kind = tirx.ForKind.UNROLLED if unroll else tirx.ForKind.SERIAL
    context.emit(tirx.For(loop.variable, context.bound(loop.start), context.bound(loop.extent), kind, sequence(body)))
    context.mark(loop.operation)


def _assign(context: Context, assign: Assign) -> None:
    """One element outside a nest: every thread keeps its own local; one thread writes what all share."""
    context.mark(assign.operation)
    store = context.store_element(assign, atomic_update)
    context.emit(store if assign.buffer.scope == "local" else tirx.IfThenElse(tirx.EQ(context.thread, 0), store, None))
