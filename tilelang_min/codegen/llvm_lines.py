"""Operation markers in LLVM text become debug locations: how AMD and CPU instructions find their tile operation.

TVM's LLVM generator knows no source lines.  Lowering therefore writes a marker call where the operation changes
(:data:`tilelang_min.program.OPERATION_MARKER`); TVM prints it, without optimising, as ``call void @__tl_op(i32 7)``.
:func:`attach_operations` removes these calls and gives every instruction a ``!dbg`` location, LLVM carries it through
all its passes, and the line table of the object says to which operation each machine instruction belongs.

The location of operation ``i`` is ``(file, line, column)`` with the author's file and line, so that debuggers and
``perf`` show the right source, and **column = i + 1**, so that two operations on one line stay apart.  Readers of a
line table (or of ``.loc file line column`` in assembler text) call :func:`operation_of_location`.

Text only: nothing here knows a target, runs LLVM or imports TVM.  The accepted text is what LLVM's own printer writes
(one instruction a line), of which TVM's amdgcn and x86 output are instances.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from tilelang_min.errors import CodegenError
from tilelang_min.program.operation import TileOperation
from tilelang_min.program.thread_program import OPERATION_MARKER

MAX_OPERATION = 65534
"""Largest operation id that fits into a debug location (LLVM keeps 16 bits of column)."""

KERNEL_OPERATION = 0
"""Operation of everything before the first marker: the kernel itself."""

_MARKER = re.compile(
    rf"^\s+(?:(?:tail|musttail|notail) )?call void @{re.escape(OPERATION_MARKER)}\(i32 (?:noundef )?(-?\d+)\)"
)
_RETURN = re.compile(r"^\s+ret\b")
_LABEL = re.compile(r'^(?:([-\w$.]+)|"([^"]+)"):')
_TARGET = re.compile(r'label %(?:([-\w$.]+)|"([^"]+)")')
_DEFINE_NAME = re.compile(r'@(?:([-\w$.]+)|"([^"]+)")\(')
_DEBUG = re.compile(r",? !dbg !\d+|^ *#dbg_.*\n", re.MULTILINE)
_NODE = re.compile(r"^!(\d+) = ")
_NAMED = re.compile(r"^!([A-Za-z_][\w.]*) = !\{(.*)\}")
_REFERENCE = re.compile(r"!(\d+)\b")
_ALIAS_NAME = re.compile(r'!"0x[0-9a-fA-F]+"')


def column_of_operation(operation: int) -> int:
    """Debug column that stands for an operation id."""
    return operation + 1


def operation_of_location(line: int | None, column: int | None) -> int | None:
    """Operation id of a row of the line table.

    None where LLVM merged instructions of several operations or made the instruction itself: it then writes line 0
    (with a column that means nothing) or column 0.
    """
    return column - 1 if line and column else None


@dataclass
class _Block:
    """A basic block: its label and instructions, each a list of physical lines."""

    label: str
    head: str | None
    instructions: list[list[str]] = field(default_factory=list)

    def successors(self) -> list[str]:
        """Labels the terminator names, in its order."""
        if not self.instructions:
            return []
        text = "\n".join(self.instructions[-1])
        return [plain or quoted for plain, quoted in _TARGET.findall(text)]


def attach_operations(
    text: str,
    operations: Sequence[TileOperation],
    *,
    functions: Collection[str] | None = None,
    producer: str = "tilelang_min",
) -> str:
    """LLVM text with its markers removed and a debug location on every instruction of the marked functions.

    Before::

        call void @__tl_op(i32 2)
        %17 = load <8 x float>, ptr %16, align 4, !tbaa !23

    After::

        %17 = load <8 x float>, ptr %16, align 4, !tbaa !23, !dbg !31      ; !31 = !DILocation(line: 12, column: 3, ..)

    A marker rules in program order: through the ends of loops and branches until the next one.  The increment of a loop
    belongs to the operation that was current where the loop starts, ``ret`` to the kernel.  ``functions`` names the
    functions to treat (default: those that hold a marker).  Debug information that the text already has is dropped.
    TVM names alias classes by addresses of its heap; they are numbered instead, so that equal programs give equal text.

    Raises :class:`CodegenError` for a marker without operation and for more operations than locations can hold.
    """
    known = {operation.id: operation for operation in operations}
    if KERNEL_OPERATION not in known:
        raise CodegenError(
            "operation 0 (the kernel) is missing", remedy="pass all operations of the thread program, the kernel first"
        )
    if max(known) > MAX_OPERATION:
        raise CodegenError(f"more than {MAX_OPERATION} operations in one kernel", remedy="split the kernel")
    lines = _DEBUG.sub("", text).split("\n")
    locations = _Locations(known, 1 + max((int(number) for number in _REFERENCE.findall(text)), default=-1), producer)
    body: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        if not line.startswith("define "):
            if not (line.startswith("declare ") and f"@{OPERATION_MARKER}(" in line):
                body.append(line)
            position += 1
            continue
        end = position + 1
        while lines[end] != "}":
            end += 1
        found = _DEFINE_NAME.search(line)
        name = (found[1] or found[2]) if found else ""
        inner = lines[position + 1 : end]
        chosen = name in functions if functions is not None else any(_MARKER.match(each) for each in inner)
        body.extend(_function(name, line, inner, locations) if chosen else [line, *inner, "}"])
        position = end + 1
    return "\n".join(_number_alias_names(_metadata(body, locations)))


class _Locations:
    """Hands out metadata numbers and writes the debug metadata nodes at the end of the module."""

    def __init__(self, operations: dict[int, TileOperation], first: int, producer: str) -> None:
        self.operations = operations
        self.nodes: list[str] = []
        self._next = first
        self._files: dict[str, int] = {}
        self._scopes: dict[tuple[int, str], int] = {}
        self._known: dict[tuple[int, int], int] = {}
        kernel = operations[KERNEL_OPERATION].location
        file = self._file(kernel.file)
        self.unit = self.node(
            f"distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, producer: {_quoted(producer)}, "
            "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)"
        )
        self._type = self.node(f"!DISubroutineType(types: !{self.node('!{}')})")

    def node(self, content: str) -> int:
        """Appends a metadata node and returns its number."""
        number = self._next
        self._next += 1
        self.nodes.append(f"!{number} = {content}")
        return number

    def _file(self, name: str) -> int:
        if name not in self._files:
            self._files[name] = self.node(f'!DIFile(filename: {_quoted(name)}, directory: "")')
        return self._files[name]

    def subprogram(self, name: str) -> int:
        """A DISubprogram that stands at the kernel's line; its prologue belongs to the kernel."""
        kernel = self.operations[KERNEL_OPERATION].location
        line = max(1, kernel.line)
        return self.node(
            f"distinct !DISubprogram(name: {_quoted(name)}, scope: !{self._file(kernel.file)}, "
            f"file: !{self._file(kernel.file)}, line: {line}, type: !{self._type}, scopeLine: {line}, "
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{self.unit})"
        )

    def location(self, operation: int, subprogram: int) -> int:
        """Number of the DILocation of an operation inside a subprogram."""
        key = (operation, subprogram)
        if key not in self._known:
            if operation not in self.operations:
                raise CodegenError(
                    f"the thread program marks operation {operation}, which its operation list lacks",
                    remedy="list every operation that lowering marks",
                )
            place = self.operations[operation].location
            scope = subprogram
            if place.file != self.operations[KERNEL_OPERATION].location.file:
                other = (subprogram, place.file)
                if other not in self._scopes:
                    self._scopes[other] = self.node(
                        f"!DILexicalBlockFile(scope: !{subprogram}, file: !{self._file(place.file)}, discriminator: 0)"
                    )
                scope = self._scopes[other]
            self._known[key] = self.node(
                f"!DILocation(line: {max(1, place.line)}, column: {column_of_operation(operation)}, scope: !{scope})"
            )
        return self._known[key]


def _quoted(name: str) -> str:
    """A name as an LLVM string."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in name.encode())
    return f'"{"".join(plain)}"'


def _function(name: str, define: str, inner: list[str], locations: _Locations) -> list[str]:
    """One function rewritten; ``inner`` are the lines between its braces."""
    blocks = _blocks(inner)
    subprogram = locations.subprogram(name)
    order = _program_order(blocks)
    position = {label: index for index, label in enumerate(order)}
    entry_state: dict[str, int] = {}
    current = KERNEL_OPERATION
    for label in order:
        block = blocks[label]
        entry_state[label] = current
        latch: int | None = None
        if label.startswith("for_next"):
            heads = [to for to in block.successors() if position.get(to, len(order)) <= position[label]]
            latch = entry_state[heads[0]] if heads else None
        kept: list[list[str]] = []
        for instruction in block.instructions:
            marker = _MARKER.match(instruction[0])
            if marker:
                current = int(marker[1])
                continue
            owner = KERNEL_OPERATION if _RETURN.match(instruction[0]) else current if latch is None else latch
            number = locations.location(owner, subprogram)
            kept.append([*instruction[:-1], f"{instruction[-1]}, !dbg !{number}"])
        block.instructions = kept
    lines = [f"{define.removesuffix('{').rstrip()} !dbg !{subprogram} {{"]
    for label, block in blocks.items():
        if label not in position:  # unreachable: LLVM deletes it, the kernel owns it
            number = locations.location(KERNEL_OPERATION, subprogram)
            block.instructions = [
                [*each[:-1], f"{each[-1]}, !dbg !{number}"] for each in block.instructions if not _MARKER.match(each[0])
            ]
        if block.head is not None:
            lines.append(block.head)
        lines.extend(line for instruction in block.instructions for line in instruction)
        lines.append("")
    lines[-1] = "}"
    return lines


def _blocks(inner: list[str]) -> dict[str, _Block]:
    """Basic blocks by label, in text order, without blank lines and comments."""
    blocks: dict[str, _Block] = {}
    block: _Block | None = None
    open_brackets = False
    for line in inner:
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        found = _LABEL.match(line)
        if found:
            label = found[1] or found[2]
            block = blocks[label] = _Block(label, line)
            continue
        if block is None:
            block = blocks[""] = _Block("", None)
        if open_brackets or (line.startswith("   ") and block.instructions):
            block.instructions[-1].append(line.rstrip())
        else:
            block.instructions.append([line.rstrip()])
        if line.lstrip().startswith("switch "):
            open_brackets = not line.rstrip().endswith("]")
        elif open_brackets and line.strip().startswith("]"):
            open_brackets = False
    return blocks


def _program_order(blocks: dict[str, _Block]) -> list[str]:
    """Labels in the order of the statements they came from.

    Reverse post-order in which the *last* successor is walked first: the body of a loop then stands before what follows
    the loop and the first branch before the second, wherever LLVM prints them.
    """
    if not blocks:
        return []
    entry = next(iter(blocks))
    done: list[str] = []
    seen = {entry}
    stack: list[tuple[str, Iterator[str]]] = [(entry, iter(reversed(blocks[entry].successors())))]
    while stack:
        label, rest = stack[-1]
        following = next((to for to in rest if to in blocks and to not in seen), None)
        if following is None:
            done.append(label)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(reversed(blocks[following].successors()))))
    return done[::-1]


def _metadata(body: list[str], locations: _Locations) -> list[str]:
    """The module with the old debug metadata swept out and the new one appended."""
    nodes: dict[int, str] = {}
    named: list[tuple[str, str]] = []
    kept: list[str] = []
    flags = ""
    for line in body:
        if found := _NODE.match(line):
            nodes[int(found[1])] = line
        elif match := _NAMED.match(line):
            if match[1] == "llvm.module.flags":
                flags = line
            if match[1] != "llvm.dbg.cu":
                named.append((match[1], line))
        else:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    flag_nodes = [nodes[int(n)] for n in _REFERENCE.findall(flags) if int(n) in nodes]
    if not any('!"Debug Info Version"' in node for node in flag_nodes):
        number = locations.node('!{i32 2, !"Debug Info Version", i32 3}')
        named = [pair for pair in named if pair[0] != "llvm.module.flags"]
        listed = [f"!{n}" for n in _REFERENCE.findall(flags)] + [f"!{number}"]
        named.append(("llvm.module.flags", f"!llvm.module.flags = !{{{', '.join(listed)}}}"))
    pending = [int(n) for line in [*kept, *(line for _, line in named)] for n in _REFERENCE.findall(line)]
    reachable: set[int] = set()
    while pending:
        number = pending.pop()
        if number in nodes and number not in reachable:
            reachable.add(number)
            pending.extend(int(n) for n in _REFERENCE.findall(_NODE.sub("", nodes[number])))
    return [
        *kept,
        "",
        f"!llvm.dbg.cu = !{{!{locations.unit}}}",
        *(line for _, line in named),
        "",
        *(nodes[number] for number in sorted(reachable)),
        *locations.nodes,
        "",
    ]


def _number_alias_names(lines: list[str]) -> list[str]:
    """Alias classes named by TVM's heap addresses, named by order of appearance instead."""
    names: dict[str, str] = {}
    return [_ALIAS_NAME.sub(lambda m: names.setdefault(m[0], f'!"buffer.{len(names)}"'), line) for line in lines]
