"""The entry of the AMD room: thread program -> code object, listing, resources.

Steps, each timed in ``CompiledKernel.seconds``: ``print`` (TVM writes LLVM text), ``patch`` (repairs and debug locations),
``compile`` (clang -O3 to assembly), ``assemble``, ``link``, ``read`` (listing and metadata).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from tilelang_min.codegen import llvm_atomics, llvm_conversions, llvm_float64
from tilelang_min.codegen.amd import code_object, listing, matrix_helpers, patch, toolchain
from tilelang_min.codegen.amd.llvm_text import print_llvm
from tilelang_min.codegen.llvm_lines import attach_operations
from tilelang_min.errors import CodegenError, did_you_mean
from tilelang_min.program import OPERATION_MARKER, CompiledKernel, ThreadProgram

ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")
"""What the code generator and its tests cover: CDNA 2, 3 and 4."""

OPTIONS = ("waves_per_eu",)

_CONVERSIONS = {
    "gfx90a": ("half", "bfloat"),
    "gfx942": ("half", "bfloat"),  # its 8-bit floats are of other formats than the language's
    "gfx950": ("half", "bfloat", "ocp_float8"),
}


def generate(program: ThreadProgram, *, options: dict[str, Any] | None = None) -> CompiledKernel:
    """Compiles a thread program for ``hip:gfx90a``, ``hip:gfx942`` or ``hip:gfx950``.

    ``options``: ``waves_per_eu``, the number of wavefronts a SIMD shall hold, or a pair (least, most): LLVM limits
    registers accordingly.  It is a wish: LLVM ignores it where the threads or the LDS of a block allow fewer.

    The kernel's arguments are 8-byte pointers in the order of ``program.parameters`` and 4-byte integers in that of
    ``program.sizes``; its symbol is ``program.name``.

    Raises :class:`CodegenError` with the tool's log for anything TVM, clang or the linker refuses.
    """
    if program.target.kind != "hip" or program.target.arch not in ARCHITECTURES:
        known = ", ".join(f"hip:{arch}" for arch in ARCHITECTURES)
        raise CodegenError(f"no AMD code generator for {program.target.name}", remedy=f"use one of {known}")
    if program.shared_bytes_dynamic:
        raise CodegenError(
            "AMD kernels hold their shared tiles statically", remedy="allocate each tile in scope shared"
        )
    waves = _waves_per_eu(options or {})
    seconds: dict[str, float] = {}
    clock = _Clock(seconds)

    text = print_llvm(program)
    clock("print")
    patched = matrix_helpers.definitions(patch.patch_llvm(text, program, waves))
    patched = llvm_conversions.definitions(llvm_float64.definitions(patched), _CONVERSIONS[program.target.arch])
    patched = llvm_atomics.definitions(patched, amd=True)
    source = attach_operations(patched, program.operations, functions=[program.name])
    if OPERATION_MARKER in source:
        raise CodegenError(f"a marker of {program.name} is not written as expected")
    clock("patch")
    assembly, compile_log = toolchain.compile_to_assembly(source, program.target.arch)
    clock("compile")
    with tempfile.TemporaryDirectory(prefix="tilelang-") as place:
        unlinked, linked = Path(place) / "kernel.o", Path(place) / "kernel.hsaco"
        with_table = listing.with_offset_table(assembly, program.name)
        assemble_log = toolchain.assemble(with_table, program.target.arch, unlinked)
        clock("assemble")
        link_log = toolchain.link([unlinked], linked)
        clock("link")
        offsets = listing.read_offset_table(code_object.open_elf(unlinked.read_bytes()))
        binary = linked.read_bytes()
    note = code_object.read_note(binary, program.name)
    _check(program, note)
    read = listing.with_offsets(listing.read_listing(assembly, program.name, program.operations), offsets)
    kernel = CompiledKernel(
        symbol=program.name,
        binary=binary,
        binary_kind="hsaco",
        source=source,
        source_language="llvm",
        syntax="gcn",
        disassemble=lambda: read,
        resources=code_object.resources(note, code_object.code_bytes(binary, program.name)),
        seconds=seconds,
        toolchain=toolchain.versions(),
        log="".join(log for log in (compile_log, assemble_log, link_log) if log),
    )
    clock("read")
    return kernel


class _Clock:
    """Writes wall seconds since the previous call under a step's name."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds
        self._last = time.perf_counter()

    def __call__(self, step: str) -> None:
        now = time.perf_counter()
        self._seconds[step] = now - self._last
        self._last = now


def _waves_per_eu(options: dict[str, Any]) -> tuple[int, int] | None:
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise CodegenError(f"unknown option {unknown[0]!r} for AMD targets", remedy=did_you_mean(unknown[0], OPTIONS))
    asked = options.get("waves_per_eu")
    if asked is None:
        return None
    pair = (asked, asked) if isinstance(asked, int) else tuple(asked)
    if len(pair) != 2 or not all(isinstance(n, int) for n in pair) or not 1 <= pair[0] <= pair[1] <= 8:
        raise CodegenError(f"waves_per_eu = {asked!r}", remedy="give a number from 1 to 8 or a pair (least, most)")
    return pair[0], pair[1]


def _check(program: ThreadProgram, note: code_object.KernelNote) -> None:
    """What the launcher relies on, read back from the binary."""
    pointers = tuple((p.name, 8 * i, 8) for i, p in enumerate(program.parameters))
    scalars = tuple((name, 8 * len(pointers) + 4 * i, 4) for i, name in enumerate(program.sizes))
    expected = (*pointers, *scalars)
    if note.arguments != expected:
        raise CodegenError(f"{program.name} takes arguments {note.arguments}, expected {expected}")
    if note.lds_bytes != patch.shared_bytes(program.shared):
        raise CodegenError(
            f"{program.name} has {note.lds_bytes} bytes of LDS, not {patch.shared_bytes(program.shared)}"
        )
