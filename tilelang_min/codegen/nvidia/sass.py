"""Cubin -> SASS listing, each instruction on its tile operation.

nvdisasm prints the instructions and, in between, the rows of the line table.  The rules by which an instruction gets its
operation, in order:

1. Code in front of the first row is the prologue and belongs to operation 0, the kernel.
2. A row whose file and line, or a place it was inlined at, stands for an operation: that operation.
3. A subroutine inside the kernel's code (ptxas adds them for divisions and square roots) has no rows: it belongs to the one
   operation that calls it, and to operation 0 where several do.
4. A product of a warp group (HGMMA and its like) has no rows of its own either, and stands in the row of whatever ptxas put in
   front of it.  Where that is no matrix product, it belongs to the last one before it in the code, or else to the next.
5. Anything else is unattributed.

The self-branch and the NOPs that pad the code behind its end are never executed and are left out.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tilelang_min.codegen.nvidia.lines import OperationLines
from tilelang_min.codegen.nvidia.sass_classes import classify
from tilelang_min.codegen.nvidia.wheels import wheel_files
from tilelang_min.errors import CodegenError
from tilelang_min.program import Instruction, Listing

INSTRUCTION_BYTES = 16
"""Size of one SASS instruction from Volta on."""

_NOP, _BRANCH = 0x918, 0x947  # the lower 12 bits of an instruction are its operation, from Volta on

_REMEDY = "install NVIDIA's wheel: python -m pip install nvidia-cuda-nvdisasm"
_ROW = re.compile(r'\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_CODE = re.compile(r"\s*/\*(?P<offset>[0-9a-f]+)\*/\s+(?P<text>\S.*?)\s*;")
_SECTION = re.compile(r"//-{5,} (\S+) +-{5,}")
_LABEL = re.compile(r"(?P<name>[^\s:]+):")
_PARTS = re.compile(r"(?:(?P<predicate>@!?\w+)\s+)?(?P<opcode>[\w.]+)\s*(?P<operands>.*)", re.DOTALL)
_PRODUCT = re.compile(r"[HQIB]GMMA\b")
_TARGET = re.compile(r"`\((?P<name>[^)]+)\)")


@dataclass(slots=True)
class _Line:
    """One instruction while it is being read; ``subroutine`` is None in the kernel's own code."""

    offset: int
    text: str
    predicate: str
    opcode: str
    operands: str
    operation: int | None
    subroutine: str | None


def disassemble(cubin: bytes, symbol: str, lines: OperationLines) -> Listing:
    """The listing of one kernel.  ``symbol`` is the name in the binary.

    Raises CodegenError when nvdisasm is missing or refuses the binary, or when the kernel is not in it.
    """
    return read_listing(run_nvdisasm(cubin), symbol, lines)


def _make_slots() -> threading.BoundedSemaphore:
    """As many disassemblers at once as there are processors: kernels of a sweep are disassembled while others compile."""
    return threading.BoundedSemaphore(max(2, os.cpu_count() or 2))


_slots = _make_slots()


def _forget_slots() -> None:
    """In a forked child: those that its parent's threads hold would never be given back."""
    global _slots
    _slots = _make_slots()


os.register_at_fork(after_in_child=_forget_slots)


def run_nvdisasm(cubin: bytes) -> str:
    """nvdisasm's text with the rows of the line table and the places they were inlined at."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(_readable(cubin))
        file.flush()
        # Dataflow analysis only names the targets of indirect branches, at a fifth of the time.
        command = [find_nvdisasm(), "--print-code", "--print-line-info-inline", "--no-dataflow", file.name]
        with _slots:
            done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()
        raise CodegenError(f"nvdisasm cannot read the cubin: {message}", remedy=_REMEDY)
    return done.stdout.decode(errors="replace")


_FLAGS_OFFSET = 48  # e_flags of a 64-bit ELF header; bits 0-7 and 16-23 hold the architecture in cubins of CUDA 12


def _readable(cubin: bytes) -> bytes:
    """The cubin as nvdisasm 13 reads it: it refuses sm_70, and decodes it by the rules of sm_75.

    Those hold: a cubin runs on every later minor version of its compute capability (CUDA C++ Programming Guide, binary
    compatibility), so a processor of 7.5 knows every instruction of 7.0.
    """
    if len(cubin) <= _FLAGS_OFFSET + 2 or cubin[_FLAGS_OFFSET] != 70 or cubin[_FLAGS_OFFSET + 2] != 70:
        return cubin
    changed = bytearray(cubin)
    changed[_FLAGS_OFFSET] = changed[_FLAGS_OFFSET + 2] = 75
    return bytes(changed)


@cache
def nvdisasm_version() -> str:
    """nvdisasm's version, such as ``13.5.37``."""
    text = subprocess.run([find_nvdisasm(), "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"V(\d+(?:\.\d+)+)", text)
    return found[1] if found else "unknown"


@cache
def find_nvdisasm() -> str:
    """Path of nvdisasm; raises CodegenError where it is not installed."""
    for path in wheel_files("*/bin/nvdisasm"):
        if os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("nvdisasm")
    if found is None:
        raise CodegenError("nvdisasm, NVIDIA's disassembler, is not installed", remedy=_REMEDY)
    return found


def code_bytes(cubin: bytes, symbol: str) -> int:
    """Size of a kernel's code, subroutines included, without what pads it: as much as the listing shows."""
    from elftools.elf.elffile import ELFFile

    section = ELFFile(io.BytesIO(cubin)).get_section_by_name(f".text.{symbol}")
    if section is None:
        raise CodegenError(f"the cubin holds no code of kernel {symbol}")
    code: bytes = section.data()
    opcodes = [code[at] | (code[at + 1] & 0xF) << 8 for at in range(0, len(code), INSTRUCTION_BYTES)]
    while opcodes and opcodes[-1] == _NOP:
        opcodes.pop()
    if opcodes and opcodes[-1] == _BRANCH:
        opcodes.pop()
    return len(opcodes) * INSTRUCTION_BYTES


def read_listing(text: str, symbol: str, lines: OperationLines) -> Listing:
    """The listing in nvdisasm's text (``-c -gi`` or ``-c -g``)."""
    code, labels = _read_code(text, symbol, lines)
    if not code:
        raise CodegenError(f"the cubin holds no code of kernel {symbol}")
    while code and code[-1].opcode == "NOP":
        code.pop()
    if code and code[-1].opcode == "BRA":
        target = _TARGET.search(code[-1].operands)
        if target and labels.get(target["name"]) == code[-1].offset:
            code.pop()
    _attribute_subroutines(code)
    _attribute_products(code, lines)
    return Listing(tuple(_instruction(line, lines) for line in code), "sass", text)


def _read_code(text: str, symbol: str, lines: OperationLines) -> tuple[list[_Line], dict[str, int]]:
    """Instructions of the kernel's section and the offsets of the labels in it."""
    code: list[_Line] = []
    labels: dict[str, int] = {}
    operation: int | None = 0
    subroutine: str | None = None
    in_rows = False  # among the lines of one row, innermost place first
    for line in _section(text, f".text.{symbol}"):
        if row := _ROW.match(line):
            found = lines.operation(row["file"], int(row["line"]))
            operation = found if found is not None or not in_rows else operation
            in_rows = True
        elif instruction := _CODE.match(line):
            in_rows = False
            parts = _PARTS.fullmatch(instruction["text"])
            if parts is None:
                raise CodegenError(f"a line of nvdisasm's listing is not understood: {line.strip()}")
            code.append(
                _Line(
                    offset=int(instruction["offset"], 16),
                    text=instruction["text"],
                    predicate=parts["predicate"] or "",
                    opcode=parts["opcode"],
                    operands=parts["operands"],
                    operation=operation,
                    subroutine=subroutine,
                )
            )
        elif label := _LABEL.match(line):
            labels[label["name"]] = code[-1].offset + INSTRUCTION_BYTES if code else 0
            if not label["name"].startswith(".") and label["name"] != symbol:
                subroutine = label["name"]
    return code, labels


def _section(text: str, name: str) -> Iterator[str]:
    """Lines of one section of nvdisasm's text."""
    inside = False
    for line in text.splitlines():
        if line.startswith("//--") and (heading := _SECTION.match(line)):
            inside = heading[1] == name
        elif inside:
            yield line


def _attribute_subroutines(code: list[_Line]) -> None:
    """Rule 3: callers decide.  A subroutine that only another subroutine calls takes that one's operation."""
    callers: dict[str, list[_Line]] = {}
    for line in code:
        if line.opcode.startswith("CALL") and (target := _TARGET.search(line.operands)):
            callers.setdefault(target["name"], []).append(line)

    def owner(name: str, seen: frozenset[str]) -> set[int | None]:
        owners: set[int | None] = set()
        for caller in callers.get(name, ()):
            if caller.subroutine is None:
                owners.add(caller.operation)
            elif caller.subroutine not in seen:
                owners |= owner(caller.subroutine, seen | {caller.subroutine})
        return owners

    decided: dict[str, int | None] = {}
    for line in code:
        if line.subroutine is not None:
            if line.subroutine not in decided:
                owners = owner(line.subroutine, frozenset({line.subroutine}))
                decided[line.subroutine] = owners.pop() if len(owners) == 1 else 0
            line.operation = decided[line.subroutine]


def _attribute_products(code: list[_Line], lines: OperationLines) -> None:
    """Rule 4."""
    last: int | None = None
    waiting: list[_Line] = []
    for line in code:
        if _PRODUCT.match(line.opcode):
            if line.operation not in lines.products:
                line.operation = last
                if last is None:
                    waiting.append(line)
        elif line.operation in lines.products:
            last = line.operation
            for earlier in waiting:
                earlier.operation = last
            waiting.clear()


def _instruction(line: _Line, lines: OperationLines) -> Instruction:
    return Instruction(
        text=line.text,
        opcode=line.opcode,
        klass=classify(line.opcode, line.operands, line.predicate),
        operation=line.operation,
        line=None if line.operation is None else lines.source_line(line.operation),
        offset=line.offset,
    )
