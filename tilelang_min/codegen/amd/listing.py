"""Assembly text of one kernel -> instructions, each with its tile operation and byte offset.

**Operations.**  ``.loc`` directives carry ``column = operation + 1`` (:mod:`tilelang_min.codegen.llvm_lines`):

1. an instruction under a location with line and column belongs to that operation;
2. before the first instruction of the body (``prologue_end``), kernel arguments and the like belong to the kernel;
3. a location without column is one instruction that does the work of several operations of one source line (two stores
   merged, say): it goes to the one of them that has the nearest instruction;
4. line 0 marks an instruction that LLVM made or moved without a location (copies, shared addresses).  It belongs to the
   operation that next uses the register it writes, in text order; without such a use, to its nearest neighbour with a
   location in the same basic block, the following one first;
5. so do constants put into registers, whatever their location: LLVM keeps one constant for all that use it, under a
   location of its choice.

**Offsets** are measured, not guessed: :func:`with_offset_table` adds a label before each instruction and a table of the
labels' distances from the kernel in a section that the linker leaves out; :func:`read_offset_table` reads it back from
the object.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilelang_min.codegen.amd.gcn import classify
from tilelang_min.codegen.llvm_lines import KERNEL_OPERATION, operation_of_location
from tilelang_min.errors import CodegenError
from tilelang_min.program import Instruction, Listing, TileOperation

OFFSET_SECTION = ".tilelang.offsets"

_LOC = re.compile(r"\.loc\s+\d+\s+(?P<line>\d+)(?:\s+(?P<column>\d+))?(?P<rest>.*)")
_LABEL = re.compile(r"[\w.$]+:")
_REGISTER = re.compile(
    r"\b(?P<file>[vsa])(?:(?P<one>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])|\b(?P<name>vcc|exec|scc|m0)\b"
)
_NO_RESULT = re.compile(
    r"s_(?!load|buffer_load|mov|cmov|cselect|add|sub|mul|min|max|and|or|xor|not|nand|nor|xnor|lsh|ash|bf|bit(?!cmp)|abs|sext|ff|fl"
    r"|wqm|quadmask|brev|bcnt|pack|getpc|getreg|memtime|memrealtime|orn|andn)"
    r"|(?:global|flat|buffer|scratch)_(?:store|atomic)|ds_(?:write|store)|v_nop"
)


_CONSTANT = re.compile(
    r"(?:v_mov_b(?:32|64)(?:_e32|_e64)?|s_movk_i32|s_mov_b(?:32|64)|v_accvgpr_write_b32) [^,]+, -?(?:0x[\da-f]+|[\d.]+)$"
)


@dataclass(slots=True)
class _Row:
    """An instruction being read: physical line number, text, basic block, location.

    ``open``: rules 4 and 5 decide; ``line``: of a location without column, for which rule 3 decides.
    """

    line_number: int
    text: str
    block: int
    operation: int | None
    open: bool
    line: int | None


def read_listing(assembly: str, symbol: str, operations: tuple[TileOperation, ...]) -> Listing:
    """The instructions of a kernel from its label to ``s_endpgm``, without offsets.

    Raises :class:`CodegenError` where the text has no such kernel.
    """
    rows = list(_rows(assembly, symbol))
    lines = {operation.id: operation.location.line for operation in operations}
    _give_merged_rows(rows, lines)
    _give_open_rows(rows)
    instructions = tuple(
        Instruction(
            text=row.text,
            opcode=(opcode := row.text.split(None, 1)[0]),
            klass=classify(opcode),
            operation=row.operation,
            line=None if row.operation is None else lines.get(row.operation),
        )
        for row in rows
    )
    return Listing(instructions, "gcn", assembly)


def with_offsets(listing: Listing, offsets: tuple[int, ...]) -> Listing:
    """The listing with the byte offset of each instruction from the kernel's first."""
    if len(offsets) != len(listing.instructions):
        raise CodegenError(f"{len(offsets)} offsets for {len(listing.instructions)} instructions")
    placed = tuple(replace(i, offset=o) for i, o in zip(listing.instructions, offsets, strict=True))
    return replace(listing, instructions=placed)


def with_offset_table(assembly: str, symbol: str) -> str:
    """The same program with a table of instruction offsets beside it; not a byte of code changes."""
    lines = assembly.split("\n")
    rows = list(_rows(assembly, symbol))
    for index, row in enumerate(rows):
        lines[row.line_number] = f".Ltilelang{index}:\n{lines[row.line_number]}"
    table = [f'\t.section\t{OFFSET_SECTION},"e",@progbits']
    table += [f"\t.long\t.Ltilelang{index}-{symbol}" for index in range(len(rows))]
    return "\n".join([*lines, *table, ""])


def read_offset_table(elf: Any) -> tuple[int, ...]:
    """The table of :func:`with_offset_table` from an ``elftools`` ELFFile of the relocatable object."""
    section = elf.get_section_by_name(OFFSET_SECTION)
    if section is None:
        raise CodegenError("the object has no table of instruction offsets")
    data: bytes = section.data()
    return struct.unpack(f"<{len(data) // 4}I", data)


def _rows(assembly: str, symbol: str) -> Iterator[_Row]:
    lines = assembly.split("\n")
    start = next((n for n, line in enumerate(lines) if line.startswith(f"{symbol}:")), None)
    if start is None:
        raise CodegenError(f"the assembly has no kernel {symbol}")
    operation: int | None = KERNEL_OPERATION
    without_location = False
    merged_line: int | None = None
    block = 0
    in_prologue = True
    for number in range(start + 1, len(lines)):
        text = lines[number].split(";", 1)[0].strip()
        if not text:
            continue
        if found := _LOC.match(text):
            line, column = int(found["line"]), int(found["column"] or 0)
            in_prologue = in_prologue and "prologue_end" not in found["rest"] and not (line and column)
            operation = KERNEL_OPERATION if in_prologue else operation_of_location(line, column)
            without_location = not in_prologue and line == 0
            merged_line = line if line and not column and not in_prologue else None
        elif _LABEL.fullmatch(text):
            block += not text.startswith((".Ltmp", ".Lfunc_begin"))
            if text.startswith(".Lfunc_end"):
                return
        elif text.startswith("."):
            if text.startswith((".section", ".size")):
                return
        else:
            text = " ".join(text.split())
            constant = not in_prologue and _CONSTANT.match(text) is not None
            yield _Row(number, text, block, operation, without_location or constant, merged_line)
            if text.startswith(("s_branch", "s_cbranch")):
                block += 1


def _give_merged_rows(rows: list[_Row], lines: dict[int, int]) -> None:
    """Rule 3."""
    for index, row in enumerate(rows):
        if row.line is None:
            continue
        owners = {operation for operation, line in lines.items() if line == row.line}
        for distance in range(1, len(rows)):
            near = [rows[i] for i in (index + distance, index - distance) if 0 <= i < len(rows)]
            found = next((r.operation for r in near if r.line is None and r.operation in owners), None)
            if found is not None:
                row.operation = found
                break


def _give_open_rows(rows: list[_Row]) -> None:
    """Rules 4 and 5, from the last row to the first, so that a chain of open rows ends at the operation that uses it."""
    next_use: dict[tuple[str, int], int] = {}
    for index in range(len(rows) - 1, -1, -1):
        row = rows[index]
        written = _registers_written(row.text)
        if row.open:
            users = [next_use[register] for register in written if register in next_use]
            user = rows[min(users)].operation if users else None
            if user is not None:
                row.operation, row.open = user, False
        for register in written:
            next_use.pop(register, None)
        for register in _registers_read(row.text):
            next_use[register] = index
    for index, row in enumerate(rows):
        if not row.open or row.operation is not None:
            continue
        for near in (rows[index + 1 :], rows[index - 1 :: -1] if index else []):
            inside = (r for r in near if r.block == row.block)
            found = next((r.operation for r in inside if not r.open and r.operation is not None), None)
            if found is not None:
                row.operation = found
                break


def _operands(text: str) -> list[str]:
    parts = text.split(None, 1)
    return [each.strip() for each in parts[1].split(",")] if len(parts) == 2 else []


def _registers(operand: str) -> frozenset[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for match in _REGISTER.finditer(operand):
        if match["name"]:
            found.add((match["name"], 0))
        elif match["one"]:
            found.add((match["file"], int(match["one"])))
        else:
            found.update((match["file"], n) for n in range(int(match["first"]), int(match["last"]) + 1))
    return frozenset(found)


def _registers_written(text: str) -> frozenset[tuple[str, int]]:
    """Registers in the first operand (and vcc in the second, for additions with carry)."""
    operands = _operands(text)
    if not operands or _NO_RESULT.match(text):
        return frozenset()
    written = _registers(operands[0])
    return written | _registers(operands[1]) if len(operands) > 2 and "_co_" in text.split(None, 1)[0] else written


def _registers_read(text: str) -> frozenset[tuple[str, int]]:
    operands = _operands(text)
    first = 0 if _NO_RESULT.match(text) else 1
    read: frozenset[tuple[str, int]] = frozenset()
    for operand in operands[first:]:
        read |= _registers(operand)
    if text.startswith(("v_fmac", "v_mac", "v_pk_fmac", "v_dot")) and operands:
        read |= _registers(operands[0])
    return read
