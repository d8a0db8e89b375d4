"""Shared object -> listing: each instruction with its address, class and tile operation, and the size of the stack frame.

capstone disassembles the bytes of the kernel's symbol in the linked object; its DWARF line table, written by LLVM from the
locations that :func:`tilelang_min.codegen.llvm_lines.attach_operations` made, says which operation each address belongs to.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilelang_min.codegen.cpu.attribution import Decoded, attribute
from tilelang_min.codegen.cpu.classes import classify
from tilelang_min.codegen.llvm_lines import KERNEL_OPERATION, operation_of_location
from tilelang_min.errors import CodegenError
from tilelang_min.program import Instruction, Listing, TileOperation


@dataclass(frozen=True)
class Disassembly:
    """The listing, the bytes of code of the kernel, and the bytes of stack its call takes (None: not in the object)."""

    listing: Listing
    code_bytes: int
    stack_bytes: int | None


def read_shared_object(binary: bytes, symbol: str, operations: Sequence[TileOperation]) -> Disassembly:
    """Listing and sizes of function ``symbol``.

    The prologue (which sets up and probes the stack) belongs to the kernel; for other instructions without a location see
    :mod:`tilelang_min.codegen.cpu.attribution`.  No-operations that fill up behind a ``ret`` or an unconditional jump are
    never executed and are left out.  Raises :class:`CodegenError` where the object lacks the symbol or its code cannot be
    read.
    """
    import capstone
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(binary))
    table = elf.get_section_by_name(".dynsym")
    found = table.get_symbol_by_name(symbol) if table is not None else None
    if not found:
        raise CodegenError(f"the shared object has no function {symbol}", remedy="please report this with the kernel")
    start, size = found[0]["st_value"], found[0]["st_size"]
    section = elf.get_section(found[0]["st_shndx"])
    first = start - section["sh_addr"]
    code = section.data()[first : first + size]
    starts, owners = _line_rows(elf, start, start + size)
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoded: list[Decoded] = []
    end = 0
    falls_through = True
    for offset, length, mnemonic, operands in decoder.disasm_lite(code, 0):
        end = offset + length
        if mnemonic == "nop" and not falls_through:
            continue
        falls_through = mnemonic not in ("ret", "jmp")
        row = bisect_right(starts, start + offset) - 1
        decoded.append(Decoded(offset, mnemonic, operands, owners[row] if row >= 0 else None))
    if end != size:
        raise CodegenError(
            f"the machine code of {symbol} cannot be read beyond byte {end} of {size}",
            remedy="update the package capstone; it does not know an instruction of this processor",
        )
    return Disassembly(_listing(symbol, decoded, operations), size, _stack(elf))


def _listing(symbol: str, decoded: Sequence[Decoded], operations: Sequence[TileOperation]) -> Listing:
    """The listing of instructions in program order."""
    lines = {operation.id: operation.location.line for operation in operations}
    instructions: list[Instruction] = []
    text = [f"{symbol}:"]
    for one, operation in zip(decoded, attribute(decoded), strict=True):
        words = f"{one.mnemonic} {one.operands}".rstrip()
        line = lines.get(operation) if operation is not None else None
        klass = classify(one.mnemonic, one.operands)
        instructions.append(Instruction(words, one.mnemonic, klass, operation, line, one.offset))
        place = "" if operation is None else f"operation {operation}, line {line}"
        text.append(f"{one.offset:6x}:  {words:<60} ; {place}".rstrip(" ;"))
    return Listing(tuple(instructions), "x86", "\n".join([*text, ""]))


def _line_rows(elf: Any, begin: int, end: int) -> tuple[list[int], list[int | None]]:
    """Addresses where the operation may change, ascending, and the operation from each on."""
    rows: list[tuple[int, int | None]] = []
    debug: Any = elf.get_dwarf_info()
    for unit in debug.iter_CUs() if elf.has_dwarf_info() else ():
        program = debug.line_program_for_CU(unit)
        for entry in program.get_entries() if program is not None else ():
            state = entry.state
            if state is not None and begin <= state.address < end:
                rows.append((state.address, operation_of_location(state.line, state.column)))
    rows.sort(key=lambda row: row[0])  # stable: of rows at one address the last rules
    # LLVM marks the end of a prologue that probes the stack nowhere: it ends at the first location of an operation.
    body = next((at for at, owner in rows if owner is not None), end)
    owners = [KERNEL_OPERATION if at < body else owner for at, owner in rows]
    return [at for at, _ in rows], owners


def _stack(elf: Any) -> int | None:
    """Bytes of stack of all functions of the object together, from the section clang writes for ``-fstack-size-section``."""
    section = elf.get_section_by_name(".stack_sizes")
    if section is None:
        return None
    data, position, total = section.data(), 0, 0
    while position < len(data):
        position += 8  # the function's address
        shift = 0
        while True:
            byte = data[position]
            position += 1
            total += (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
    return total
