"""Facts from an AMD code object: the metadata note and the symbol table.

Layout: "User Guide for AMDGPU Backend" of LLVM, sections "Code Object Metadata" and "Note Records".
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import msgpack
from elftools.elf.elffile import ELFFile

from tilelang_min.errors import CodegenError
from tilelang_min.program import Resources

REGISTER_GRANULE = 8
"""Vector registers are given out in eights on gfx90a, gfx942 and gfx950, arch and accumulation registers together."""

_NT_AMDGPU_METADATA = 32


@dataclass(frozen=True, slots=True)
class KernelNote:
    """What the metadata note says of one kernel.

    ``vgprs`` counts arch and accumulation registers together, as ``.vgpr_count`` does on CDNA 2 and later; bytes of LDS
    are a block's, bytes of scratch a thread's.  ``arguments`` are (name, offset, bytes).
    """

    name: str
    vgprs: int
    agprs: int
    sgprs: int
    spilled_vgprs: int
    spilled_sgprs: int
    lds_bytes: int
    scratch_bytes: int
    argument_bytes: int
    max_threads: int
    wavefront_size: int
    arguments: tuple[tuple[str, int, int], ...]
    target: str


def open_elf(binary: bytes) -> Any:
    """An ``elftools`` ELFFile over bytes."""
    return ELFFile(io.BytesIO(binary))


def read_note(binary: bytes, symbol: str) -> KernelNote:
    """The note's record of a kernel, from an object or a linked code object.

    Raises :class:`CodegenError` where there is no note or no such kernel in it.
    """
    for section in open_elf(binary).iter_sections("SHT_NOTE"):
        for note in section.iter_notes():
            if note["n_name"] != "AMDGPU" or note["n_type"] not in (_NT_AMDGPU_METADATA, "NT_AMDGPU_METADATA"):
                continue
            record = msgpack.unpackb(_note_bytes(note["n_desc"]), strict_map_key=False)
            for kernel in record["amdhsa.kernels"]:
                if kernel[".name"] == symbol:
                    return _note(kernel, str(record["amdhsa.target"]))
    raise CodegenError(f"the code object has no metadata of kernel {symbol}")


def _note_bytes(description: Any) -> bytes:
    """pyelftools hands unknown notes over as bytes or as latin-1 text."""
    return description if isinstance(description, bytes) else str(description).encode("latin-1")


def _note(kernel: dict[str, Any], target: str) -> KernelNote:
    return KernelNote(
        name=kernel[".name"],
        vgprs=kernel[".vgpr_count"],
        agprs=kernel.get(".agpr_count", 0),
        sgprs=kernel[".sgpr_count"],
        spilled_vgprs=kernel[".vgpr_spill_count"],
        spilled_sgprs=kernel[".sgpr_spill_count"],
        lds_bytes=kernel[".group_segment_fixed_size"],
        scratch_bytes=kernel[".private_segment_fixed_size"],
        argument_bytes=kernel[".kernarg_segment_size"],
        max_threads=kernel[".max_flat_workgroup_size"],
        wavefront_size=kernel[".wavefront_size"],
        arguments=tuple((a.get(".name", ""), a[".offset"], a[".size"]) for a in kernel.get(".args", [])),
        target=target,
    )


def code_bytes(binary: bytes, symbol: str) -> int:
    """Bytes of a kernel's machine code: the size of its symbol."""
    for section in open_elf(binary).iter_sections("SHT_SYMTAB"):
        for found in section.get_symbol_by_name(symbol) or []:
            if found["st_info"]["type"] == "STT_FUNC":
                return int(found["st_size"])
    raise CodegenError(f"the code object has no function {symbol}")


def resources(note: KernelNote, code: int) -> Resources:
    """The record that all targets share.  Spilled bytes are None: AMD's tools count registers, not bytes."""
    return Resources(
        registers_per_thread=-(-note.vgprs // REGISTER_GRANULE) * REGISTER_GRANULE,
        vgprs=note.vgprs,
        agprs=note.agprs,
        sgprs=note.sgprs,
        shared_bytes_static=note.lds_bytes,
        spilled_vgprs=note.spilled_vgprs,
        spilled_sgprs=note.spilled_sgprs,
        stack_bytes=note.scratch_bytes,
        code_bytes=code,
    )
