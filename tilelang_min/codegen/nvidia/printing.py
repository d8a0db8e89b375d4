"""Thread program -> CUDA C++ as TVM prints it: which passes run, and what is checked first.

The text still holds the operation markers and TVM's helper functions; :mod:`tilelang_min.codegen.nvidia.text` replaces
both.  Nothing here optimises: what ``lower/`` wrote is what is printed, with UNROLLED loops expanded.
"""

from __future__ import annotations

from typing import Any

from tilelang_min.codegen.nvidia import async_copies, atomics, clocks, conversions, products
from tilelang_min.codegen.nvidia.async_copies import with_quick_copies
from tilelang_min.codegen.nvidia.header import own_header, with_tensor_maps
from tilelang_min.codegen.nvidia.names import KERNEL_SUFFIX, safe_name, with_safe_names
from tilelang_min.codegen.nvidia.products import with_held_accumulators
from tilelang_min.codegen.nvidia.vectors import with_short_vectors
from tilelang_min.codegen.passes import lowered
from tilelang_min.codegen.storage import Needs, with_plain_types
from tilelang_min.errors import CodegenError
from tilelang_min.program import ThreadProgram

_MIN_BLOCKS = "tirx.launch_bounds_min_blocks_per_sm"
_MAX_REGISTERS = "tirx.max_registers"

ROLLED = "__tl_rolled"
"""Extern name of a marker: the loop behind it is unrolled so many times at most."""

_LONG_LOOP, _FEW_TIMES = 32, 4

_NEEDS = Needs(
    bool_bytes=True,  # it prints four bools in memory as four 16-bit integers
    small_integers=True,  # it leaves C's promotion to int in the way of wrapping
    rounds_bfloat16=True,
)


def kernel_symbol(program: ThreadProgram) -> str:
    """The kernel's name in CUDA C++ and in the cubin."""
    return safe_name(program.name + KERNEL_SUFFIX)


def print_cuda(program: ThreadProgram, *, min_blocks: int | None = None, max_registers: int | None = None) -> str:
    """The kernel's CUDA C++ with markers, launch bounds included.

    ``min_blocks`` a multiprocessor, or ``max_registers`` a thread, limit register allocation (one of the two).  Raises
    CodegenError where the thread program is not of the agreed form or holds what TVM cannot print.
    """
    _check_flat(program.function)
    try:
        return _print(program, min_blocks, max_registers)
    except CodegenError:
        raise
    except Exception as error:  # TVM raises exceptions of many types, some of them bare
        reason = [line for line in str(error).replace("\0", "").splitlines() if line.strip()] or [type(error).__name__]
        raise CodegenError(
            f"TVM cannot print kernel {program.name} as CUDA C++: {reason[-1]}",
            remedy="this is an error of the compiler, not of the kernel: please report it with the kernel's source",
        ) from error


def _print(program: ThreadProgram, min_blocks: int | None, max_registers: int | None) -> str:
    import tvm
    from tvm.ir import IRModule
    from tvm.target import Target

    target = Target({"kind": "cuda", "arch": program.target.arch})
    attributes: dict[str, Any] = {
        "global_symbol": kernel_symbol(program),
        "target": target,
        "calling_conv": 2,  # CallingConv::kDeviceKernelLaunch
        "tirx.is_global_func": True,
    }
    if min_blocks is not None:
        attributes[_MIN_BLOCKS] = min_blocks
    if max_registers is not None:
        attributes[_MAX_REGISTERS] = max_registers
    function = with_quick_copies(program.function)
    function = with_held_accumulators(with_short_vectors(with_plain_types(function, _NEEDS)))
    module = IRModule.from_expr(with_safe_names(function).with_attr(attributes))
    # FlattenBuffer is left out on purpose: thread programs are flat already, and it turns the index Ramp(0, 1, 4) into
    # Broadcast(0, 4) + Ramp(0, 1, 4), which prints as run-time index arithmetic on arrays that must stay in registers.
    module = _fold_constants(lowered(module))
    module = _mark_rolled_loops(module)
    with own_header():
        text: str = tvm.get_global_func("target.build.cuda")(module, target).inspect_source()
    definitions = conversions.definitions(text) + atomics.definitions(text) + products.definitions(text)
    definitions += clocks.definitions(text) + async_copies.definitions(text)
    return with_tensor_maps(definitions + text)


def _fold_constants(module: Any) -> Any:
    """Sums and products of integer literals, which unrolling leaves behind, as one literal: ``0 * 8 + x`` -> ``x``."""
    from tvm.tirx import Add, IntImm, Mul
    from tvm_ffi import structural_map

    def add(node: Any) -> Any:
        left, right = node.a, node.b
        if isinstance(right, IntImm):
            if isinstance(left, IntImm):
                return IntImm(left.ty, left.value + right.value)
            if right.value == 0:
                return left
        elif isinstance(left, IntImm) and left.value == 0:
            return right
        return node

    def multiply(node: Any) -> Any:
        left, right = node.a, node.b
        if isinstance(left, IntImm) and isinstance(right, IntImm):
            return IntImm(left.ty, left.value * right.value)
        return node

    for variable, function in module.functions.items():
        body = structural_map(function.body, [(Add, add), (Mul, multiply)])
        module.update_func(variable, function.with_body(body, span=function.span))
    return module


def _mark_rolled_loops(module: Any) -> Any:
    """:data:`ROLLED` in front of every serial loop that NVRTC would unroll too often.

    One that waits for barriers stays as it is: a short one would be unrolled with all in it.  A long one with float16 arithmetic is
    unrolled a few times: that arithmetic is inline assembly, which NVRTC takes for nothing; it unrolls 512 iterations
    of 64 multiply-adds whole, and does not end within minutes.
    """
    from tvm.ir import Call
    from tvm.tirx import Add, Div, Evaluate, For, ForKind, IntImm, Mul, SeqStmt, Sub, call_extern
    from tvm_ffi import structural_map, structural_walk

    def mark(loop: Any) -> Any:
        if loop.kind != ForKind.SERIAL:
            return loop
        waits: list[Any] = []
        halves: list[Any] = []
        long = isinstance(loop.extent, IntImm) and int(loop.extent) >= _LONG_LOOP

        def arithmetic(node: Any) -> None:
            if str(node.ty.dtype).startswith("float16"):
                halves.append(node)

        callbacks: list[Any] = [(Call, lambda call: waits.append(call) if _waits(call) else None)]
        if long:
            callbacks.append(((Add, Sub, Mul, Div), arithmetic))
        structural_walk(loop.body, callbacks)
        if not waits and not halves:
            return loop
        return SeqStmt([Evaluate(call_extern("void", ROLLED, 1 if waits else _FEW_TIMES)), loop])

    for variable, function in module.functions.items():
        body = structural_map(function.body, (For, mark))
        module.update_func(variable, function.with_body(body, span=function.span))
    return module


def _waits(call: Any) -> bool:
    return str(getattr(call.op, "name", "")).startswith("tirx.ptx.mbarrier_try_wait")


def _check_flat(function: Any) -> None:
    from tvm.tirx import AllocBuffer, DeclBuffer
    from tvm_ffi import structural_walk

    buffers: list[Any] = []  # collected, not checked in place: an exception that crosses TVM comes out as another type
    structural_walk(function, ((AllocBuffer, DeclBuffer), lambda statement: buffers.append(statement.buffer)))
    for buffer in buffers:
        if len(buffer.ty.shape) != 1:
            raise CodegenError(
                f"buffer {buffer.name} of the thread program has {len(buffer.ty.shape)} dimensions, not one"
            )
