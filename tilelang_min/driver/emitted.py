"""What LLVM made of accesses to LDS: whether machine instructions are those that were counted.

The simulator counts the accesses of the thread program.  LLVM may join two into one instruction (``ds_read2_b32``) or into a
wider one, and what an instruction costs in LDS cycles is a matter of that instruction.  Here the listing is held against the
counts; where the forms differ, the rule of a count is ``open`` and a note names the instruction.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tilelang_min.program import Instruction, TileOperation

_FORM = re.compile(r"ds_(read|load|write|store)(2(?:st64)?)?_(?:addtid_)?[biu](8|16|32|64|96|128)(?:_|$)")
_LOADS = ("read", "load")


def check_emitted(
    counts: Sequence[Any], listing: Iterable[Instruction], operations: Sequence[TileOperation]
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Access counts of a kernel for AMD, with the rule ``open`` where LLVM emitted another form, and a note for each such
    operation.  ``transactions`` stay those of the accesses as the thread program has them."""
    found = _forms(listing)
    checked, notes = [], dict[str, None]()
    for count in counts:
        if count.space != "shared" or count.access not in ("load", "store"):
            checked.append(count)
            continue
        others = _others(count, found, counts)
        if others and count.rule == "known":
            count = replace(count, rule="open")
        if others:
            label = next((f"{o.label} (line {o.location.line})" for o in operations if o.id == count.operation), "")
            notes[
                f"{label or f'operation {count.operation}'}: LLVM emitted {', '.join(others)} for a {count.access} of "
                f"{count.width_bits} bits of {count.buffer}; no rule is known for that, counted are single accesses"
            ] = None
        checked.append(count)
    return tuple(checked), tuple(notes)


Forms = dict[tuple[int | None, str], set[tuple[str, bool, int]]]
"""By operation and kind: mnemonic, whether it joins two accesses, bits of each."""


def _forms(listing: Iterable[Instruction]) -> Forms:
    found: Forms = defaultdict(set)
    for instruction in listing:
        form = _FORM.match(instruction.opcode)
        if form is not None:
            kind = "load" if form[1] in _LOADS else "store"
            found[instruction.operation, kind].add((instruction.opcode, form[2] is not None, int(form[3])))
    return found


def _others(count: Any, found: Forms, counts: Sequence[Any]) -> list[str]:
    """The instructions, other than a plain one of the count's width, that may have done its accesses."""
    forms = found.get((count.operation, count.access), set())
    joined = sorted(name for name, twice, bits in forms if twice and bits == count.width_bits)
    if joined:
        return joined
    planned = {
        other.width_bits
        for other in counts
        if (other.operation, other.access, other.space) == (count.operation, count.access, "shared")
    }
    single = {bits for _, twice, bits in forms if not twice}
    strange = sorted(name for name, twice, bits in forms if not twice and bits not in planned)
    if count.width_bits not in single:
        return strange or sorted(name for name, _, _ in forms)
    # A form that nobody planned may be made of accesses of this width.
    return [name for name in strange if _bits(name) > count.width_bits]


def _bits(name: str) -> int:
    form = _FORM.match(name)
    return int(form[3]) if form is not None else 0


__all__ = ["check_emitted"]
