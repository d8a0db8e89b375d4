"""Neighbouring instructions on the same accumulators as one ``asm`` statement: text to text, for the time that NVRTC takes.

LLVM goes over all operands of every ``asm`` again and again.  A product of warp groups has up to 128 accumulators, and four such
products follow one another on the same ones; as four statements they took half of the time that a matrix product compiles.  Before
and after::

    f(c0, .., c127, a0, b0, 1);                      f_x4(c0, .., c127, a0, b0, 1, .., a3, b3, 1);
    ...
    f(c0, .., c127, a3, b3, 1);

``f_x4`` is a macro of one ``asm`` with the four instructions in it.  Likewise the statements that hold accumulators back behind a
wait (``products.py``).  ptxas sees the same instructions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilelang_min.codegen.nvidia.products import KEEP

_MOST_KEPT = 64
"""Registers of one statement that holds accumulators back."""

_PRODUCT = re.compile(
    r'^#define (?P<name>\w*wgmma\w*mma_async\w*)\((?P<parameters>[^()]*)\) asm volatile\("(?P<body>[^"]*)" : '
    r"(?P<outputs>[^:\n]*) : (?P<inputs>[^:\n]*)\)$",
    re.MULTILINE,
)
_CALL = re.compile(r"\s*(?P<name>\w+)\((?P<arguments>.*)\);\s*")
_KEPT = re.compile(rf"\s*{KEEP}_float32\((?P<operand>.*)\);\s*")
_OPERAND = re.compile(r"%(\d+)")
_WORD = re.compile(r"\b__\w+\b")


@dataclass(frozen=True)
class _Macro:
    """A product's macro: ``results`` parameters first, then what differs from one to the next."""

    name: str
    parameters: tuple[str, ...]
    body: str
    outputs: str
    inputs: str

    @property
    def results(self) -> int:
        """Accumulators."""
        return self.outputs.count('"+')

    def several(self, count: int) -> str:
        """The definition of the macro of ``count`` of them."""
        shared, own = self.parameters[: self.results], self.parameters[self.results :]
        operands = len(re.findall(r'"[a-z]+"\(', self.inputs))
        bodies, inputs, parameters = [], [], list(shared)
        for number in range(count):

            def moved(found: re.Match[str], number: int = number) -> str:
                place = int(found[1])
                return f"%{place if place < self.results else place + number * operands}"

            def numbered(word: re.Match[str], number: int = number) -> str:
                return f"{word[0]}_{number}" if word[0] in own else word[0]

            bodies.append(_OPERAND.sub(moved, self.body))
            inputs.append(_WORD.sub(numbered, self.inputs))
            parameters += [f"{name}_{number}" for name in own]
        text = f'asm volatile("{" ".join(bodies)}" : {self.outputs} : {", ".join(inputs)})'
        return f"#define {self.name}_x{count}({', '.join(parameters)}) {text}\n"


def join(macros: str, kernel: str) -> tuple[str, str]:
    """Macros, and the kernel's text, with such statements joined; both as they were where there are none."""
    known = {found["name"]: made for found in _PRODUCT.finditer(macros) if (made := _macro(found)) is not None}
    out: list[str] = []
    definitions: dict[str, str] = {}
    lines = kernel.split("\n")
    place = 0
    while place < len(lines):
        end = place + 1
        if (kept := _KEPT.fullmatch(lines[place])) is not None:
            operands = [kept["operand"]]
            while end < len(lines) and (more := _KEPT.fullmatch(lines[end])) is not None:
                operands.append(more["operand"])
                end += 1
                if len(operands) == _MOST_KEPT:
                    break
            changed = ", ".join(f'"+f"({operand})' for operand in operands)
            out.append(f'asm volatile("" : {changed} : : "memory");' if len(operands) > 1 else lines[place])
            place = end
            continue
        call = _CALL.fullmatch(lines[place])
        macro = known.get(call["name"]) if call is not None else None
        if call is None or macro is None:
            out.append(lines[place])
            place = end
            continue
        first = _arguments(call["arguments"])
        joined = list(first)
        while end < len(lines) and (more := _CALL.fullmatch(lines[end])) is not None and more["name"] == macro.name:
            arguments = _arguments(more["arguments"])
            if arguments[: macro.results] != first[: macro.results]:
                break
            joined += arguments[macro.results :]
            end += 1
        count = end - place
        if count == 1:
            out.append(lines[place])
        else:
            definitions[f"{macro.name}_x{count}"] = macro.several(count)
            out.append(f"{macro.name}_x{count}({', '.join(joined)});")
        place = end
    return macros + "".join(definitions.values()), "\n".join(out)


def _macro(found: re.Match[str]) -> _Macro | None:
    """A product whose accumulators are read and written, and nothing else is written."""
    parameters = tuple(each.strip() for each in found["parameters"].split(","))
    made = _Macro(found["name"], parameters, found["body"], found["outputs"], found["inputs"])
    in_place = re.findall(r'"\+[fr]"\((\w+)\)', found["outputs"]) == list(parameters[: made.results])
    return made if in_place and found["outputs"].count('"+') == found["outputs"].count("(") else None


def _arguments(text: str) -> list[str]:
    """Arguments of a call, without those of calls in them taken apart."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(text[start:place].strip())
            start = place + 1
    return [*found, text[start:].strip()]
