"""The CPU code generator's entry: thread program -> shared object, listing, static facts."""

from __future__ import annotations

import importlib.metadata
import time
from typing import TYPE_CHECKING, Any

from tilelang_min.codegen.cpu import disassembly, llvm_text, toolchain
from tilelang_min.codegen.llvm_lines import attach_operations
from tilelang_min.errors import CodegenError, ResourceError, did_you_mean
from tilelang_min.program.metadata import Resources
from tilelang_min.program.thread_program import CompiledKernel

if TYPE_CHECKING:
    from tilelang_min.program import ThreadProgram

MAX_STACK_BYTES = 64 * 1024 * 1024
"""Largest frame a kernel may have; the launcher gives its threads stacks up to this size."""

OPTIONS = {"level": 3}
"""Options of :func:`generate` and their defaults."""


def generate(program: ThreadProgram, *, options: dict[str, Any] | None = None) -> CompiledKernel:
    """Compiles a CPU thread program.

    The binary is a shared object (``binary_kind`` "so") with one function ``void name(T *A, ..., int32_t block_begin,
    int32_t block_end)`` that runs the blocks ``block_begin <= block < block_end`` on the calling thread.  It needs no
    library, keeps all tiles on the stack, and takes parameters aligned to their elements.  ``options``: ``level``, the
    optimisation level of clang (0 to 3, default 3).

    Raises :class:`CodegenError` (an unknown option, refused code, a function that is not available) and
    :class:`ResourceError` (tiles beyond the stack that a launch can have).
    """
    chosen = {**OPTIONS, **(options or {})}
    for key in chosen.keys() - OPTIONS.keys():
        raise CodegenError(f"unknown option {key!r} for the CPU", remedy=did_you_mean(key, OPTIONS))
    if chosen["level"] not in (0, 1, 2, 3):
        raise CodegenError(f"option level is {chosen['level']!r}", remedy="use 0, 1, 2 or 3")
    if program.target.kind != "cpu":
        raise CodegenError(f"target {program.target.name} is not a CPU", remedy="use the code generator of its vendor")
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    printed = llvm_text.print_llvm(program)
    seconds["tvm"] = time.perf_counter() - start
    start = time.perf_counter()
    source = attach_operations(printed, program.operations, functions=(program.name,))
    seconds["lines"] = time.perf_counter() - start
    binary, log, steps = toolchain.build_shared_object(source, program.name, level=chosen["level"])
    seconds.update(steps)
    start = time.perf_counter()
    read = disassembly.read_shared_object(binary, program.name, program.operations)
    seconds["listing"] = time.perf_counter() - start
    if read.stack_bytes is not None and read.stack_bytes > MAX_STACK_BYTES:
        raise ResourceError(
            f"kernel {program.name} needs {read.stack_bytes} bytes of stack for its tiles, more than {MAX_STACK_BYTES}",
            remedy="use smaller tiles or fewer stages",
        )
    return CompiledKernel(
        symbol=program.name,
        binary=binary,
        binary_kind="so",
        source=source,
        source_language="llvm",
        syntax="x86",
        disassemble=lambda: read.listing,
        resources=Resources(
            shared_bytes_static=sum(buffer.bytes for buffer in program.shared) if program.shared else None,
            stack_bytes=read.stack_bytes,
            code_bytes=read.code_bytes,
        ),
        seconds=seconds,
        toolchain={
            "apache-tvm": importlib.metadata.version("apache-tvm"),
            **toolchain.versions(),
            "capstone": importlib.metadata.version("capstone"),
        },
        log=log,
    )
