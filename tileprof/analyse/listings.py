"""Generated source and machine listings line by line, each with the author's line that it comes from.

The texts say so themselves: ``#line`` in generated CUDA C++, ``!dbg`` in generated LLVM, ``//## File`` in nvdisasm's listings,
``.loc`` in LLVM's, and a comment in ours of x86.  What stands before the first mark, directives and empty lines have no line of the
author's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_HASH_LINE = re.compile(r"\s*#line (\d+)")
_NVDISASM_LINE = re.compile(r'\s*//## File "[^"]*", line (\d+)')
_NVDISASM_CODE = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(.*?)\s*;?\s*$")
_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_X86 = re.compile(r"\s*([0-9a-f]+):\s+(.*?)(?:\s*; operation \S+, line (\d+))?\s*$")
_LABEL = re.compile(r"^[.\w$]+:")
_LLVM_CODE = re.compile(r"^\t([a-z][\w.]*(?:\s.*)?)$")
_IR_PLACE = re.compile(r"(!\d+) = (?:distinct )?!DI(?:Location|Subprogram)\(.*?\bline: (\d+)")
_IR_DEBUG = re.compile(r"!dbg (!\d+)")
_IR_NOTES = re.compile(r",? ![a-z][\w.]* !\d+|\s+; preds = .*$")


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of code, and the author's line it belongs to (None where it says none)."""

    text: str
    line: int | None


def assembly_lines(assembly: str) -> list[CodeLine]:
    """Instructions and labels of a listing of any of the three kinds; directives are left out."""
    if "//## File" in assembly:
        return list(_nvidia(assembly.splitlines()))
    if ".amdgcn_target" in assembly:
        return list(_llvm(assembly.splitlines()))
    return list(_x86(assembly.splitlines()))


def generated_lines(generated: str) -> list[CodeLine]:
    """The kernel's own part of generated code: CUDA C++ from its first ``#line`` on, functions of LLVM, all of any other text."""
    lines = generated.splitlines()
    if any(text.startswith("define ") for text in lines):
        return list(_llvm_ir(lines))
    found: list[CodeLine] = []
    line: int | None = None
    started = "#line" not in generated
    for text in lines:
        mark = _HASH_LINE.match(text)
        if mark:
            line, started = int(mark[1]), True
        elif started and text.strip():
            found.append(CodeLine(text.rstrip(), line))
    return found


def _llvm_ir(lines: Sequence[str]) -> Iterator[CodeLine]:
    """Variables and functions.  Notes to the optimiser are left out, and debug locations are put as the lines that they name."""
    places = {mark[1]: int(mark[2]) for mark in map(_IR_PLACE.match, lines) if mark}
    inside = False
    for text in lines:
        inside = inside or text.startswith("define ")
        if not text.strip() or not (inside or text.startswith("@")):
            continue
        debug = _IR_DEBUG.search(text)
        yield CodeLine(_IR_NOTES.sub("", text).rstrip(), places.get(debug[1]) if debug else None)
        inside = inside and text != "}"


def _nvidia(lines: Iterable[str]) -> Iterator[CodeLine]:
    line: int | None = None
    for text in lines:
        if mark := _NVDISASM_LINE.match(text):
            line = int(mark[1])
        elif code := _NVDISASM_CODE.match(text):
            yield CodeLine(f"{code[1]}  {code[2]}", line)
        elif text.startswith(".L") and _LABEL.match(text):
            yield CodeLine(text.strip(), line)


def _llvm(lines: Iterable[str]) -> Iterator[CodeLine]:
    line: int | None = None
    for text in lines:
        if mark := _LOC.match(text):
            line = int(mark[1]) or None
        elif text.startswith((".LBB", "BB")) and _LABEL.match(text):
            yield CodeLine(text.split(";")[0].strip(), line)
        elif (code := _LLVM_CODE.match(text)) and not code[1].startswith("."):
            yield CodeLine(code[1].split(";")[0].replace("\t", " ").rstrip(), line)


def _x86(lines: Iterable[str]) -> Iterator[CodeLine]:
    for text in lines:
        if code := _X86.match(text):
            yield CodeLine(f"{code[1]}  {code[2]}", int(code[3]) if code[3] else None)
        elif _LABEL.match(text):
            yield CodeLine(text.strip(), None)
