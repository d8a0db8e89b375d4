"""The entry of this room: thread program -> cubin, listing and static facts."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

from tilelang_min.codegen.nvidia import nvrtc, sass
from tilelang_min.codegen.nvidia.lines import OperationLines
from tilelang_min.codegen.nvidia.printing import kernel_symbol, print_cuda
from tilelang_min.codegen.nvidia.ptxas_log import read_ptxas_log
from tilelang_min.codegen.nvidia.text import finish
from tilelang_min.errors import CodegenError, did_you_mean
from tilelang_min.program import CompiledKernel, Resources, ThreadProgram

OPTIONS = {
    "min_blocks": int,  # blocks that should fit on a multiprocessor at once: __launch_bounds__(threads, n)
    "max_registers": int,  # registers a thread may have: __maxnreg__(n), instead of launch bounds
    "fast_math": bool,  # NVRTC's --use_fast_math
}
"""Options of :func:`generate` and their types."""


def generate(program: ThreadProgram, *, options: dict[str, Any] | None = None) -> CompiledKernel:
    """Print and compile one thread program for its target (``cuda``, any ``sm_*``); disassembling is left to who needs it.

    ``options``: see :data:`OPTIONS`.  Needs no GPU.  Raises CodegenError when a tool is missing or refuses the text; the
    message holds the tool's log.
    """
    chosen = _checked(options)
    started = time.perf_counter()
    symbol = kernel_symbol(program)
    lines = OperationLines(program.operations)
    max_registers = chosen.get("max_registers")
    # Only with a bound on blocks does ptxas heed that registers move from the producer to the consumers.
    own = 1 if program.consumer_threads is not None and max_registers is None else None
    printed = print_cuda(program, min_blocks=chosen.get("min_blocks", own), max_registers=max_registers)
    source = finish(printed, lines)
    after_print = time.perf_counter()

    flags = ["--use_fast_math"] if chosen.get("fast_math") else []
    result = nvrtc.compile_cubin(source, arch=program.target.arch, name=program.name, options=flags)
    after_nvrtc = time.perf_counter()

    sass.find_nvdisasm()  # where it is missing is said now, not where the listing is asked for
    return CompiledKernel(
        symbol=symbol,
        binary=result.cubin,
        binary_kind="cubin",
        source=source,
        source_language="cuda",
        syntax="sass",
        disassemble=lambda: sass.disassemble(result.cubin, symbol, lines),
        listing_is_quick=False,
        resources=_resources(result.log, symbol, program.target.arch, code_bytes=sass.code_bytes(result.cubin, symbol)),
        seconds={"print": after_print - started, "nvrtc": after_nvrtc - after_print},
        toolchain={
            "tvm": _tvm_version(),
            "nvrtc": nvrtc.version(program.target.arch),
            "nvdisasm": sass.nvdisasm_version(),
        },
        log=result.log,
    )


@cache
def _tvm_version() -> str:
    from importlib.metadata import version

    return version("apache-tvm")


def _checked(options: dict[str, Any] | None) -> dict[str, Any]:
    chosen = dict(options or {})
    for name, value in chosen.items():
        kind = OPTIONS.get(name)
        if kind is None:
            raise CodegenError(f"unknown option {name!r} for a CUDA target", remedy=did_you_mean(name, OPTIONS))
        if type(value) is not kind:
            raise CodegenError(
                f"option {name} is {value!r}", remedy=f"give {'a truth value' if kind is bool else 'a number'}"
            )
    if "min_blocks" in chosen and "max_registers" in chosen:
        raise CodegenError("min_blocks and max_registers exclude each other", remedy="give one of the two")
    return chosen


def _resources(log: str, symbol: str, arch: str, *, code_bytes: int) -> Resources:
    figures = read_ptxas_log(log, symbol, arch)
    if figures is None:
        raise CodegenError(f"the log of ptxas does not describe kernel {symbol}:\n{log}")
    return Resources(
        registers_per_thread=figures.registers,
        shared_bytes_static=figures.shared_bytes,
        spill_store_bytes=figures.spill_store_bytes,
        spill_load_bytes=figures.spill_load_bytes,
        stack_bytes=figures.stack_bytes,
        code_bytes=code_bytes,
    )
