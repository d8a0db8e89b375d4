"""To which tile operation an instruction without a location belongs.

LLVM gives line 0 to what it makes or moves without a place in the source: constants for accumulators, addresses shared by
several operations, spills.  The rules, in this order:

1. a no-operation that aligns the head of a loop belongs to what it aligns;
2. an instruction belongs to the operation that next uses, in text order, the register or stack slot it writes;
3. any other belongs to its nearest neighbour with an operation in the same basic block, the following one first (a
   comparison to its jump, say);
4. a basic block that holds no operation belongs to the operation that stands on both sides of it, if it is one.

What these leave open stays unattributed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple


class Decoded(NamedTuple):
    """An instruction in Intel syntax, its byte offset, and the operation its location names."""

    offset: int
    mnemonic: str
    operands: str
    operation: int | None


def attribute(decoded: Sequence[Decoded]) -> list[int | None]:
    """The operation of each instruction, in order."""
    owners = [each.operation for each in decoded]
    next_use: dict[str, int] = {}
    for position in range(len(decoded) - 1, -1, -1):
        one = decoded[position]
        written, read = _effects(one.mnemonic, one.operands)
        if owners[position] is None:
            if one.mnemonic == "nop":
                owners[position] = owners[position + 1] if position + 1 < len(owners) else None
            else:
                users = [next_use[place] for place in written if place in next_use]
                owners[position] = owners[min(users)] if users else None
        for place in written - read:
            next_use.pop(place, None)
        for place in read:
            next_use[place] = position
    for block in _blocks(decoded):
        found: int | None = None
        for position in reversed(block):
            found = owners[position] = found if owners[position] is None else owners[position]
        for position in block:
            found = owners[position] = found if owners[position] is None else owners[position]
    _between(owners)
    return owners


def _between(owners: list[int | None]) -> None:
    """Rule 4, in place."""
    before: int | None = None
    gap: list[int] = []
    for position, owner in enumerate(owners):
        if owner is None:
            gap.append(position)
            continue
        if owner == before:
            for inside in gap:
                owners[inside] = owner
        before, gap = owner, []


def _blocks(decoded: Sequence[Decoded]) -> Iterator[range]:
    """Basic blocks as ranges of positions."""
    targets = {
        int(each.operands, 16) for each in decoded if _JUMP.match(each.mnemonic) and _HEX.fullmatch(each.operands)
    }
    start = 0
    for position, one in enumerate(decoded):
        if one.offset in targets and position > start:
            yield range(start, position)
            start = position
        if _JUMP.match(one.mnemonic):
            yield range(start, position + 1)
            start = position + 1
    if start < len(decoded):
        yield range(start, len(decoded))


_JUMP = re.compile(r"j\w+$|ret$|loop")
_HEX = re.compile(r"0x[0-9a-f]+|\d+")
_SLOT = re.compile(r"\[((?:rsp|rbp)(?: [+-] (?:0x)?[0-9a-f]+)?)\]")
_VECTOR = re.compile(r"[xyz]mm(\d+)$")
_NUMBERED = re.compile(r"(r\d+)[dwb]?$")
_OLD = re.compile(r"[re]?([abcd])(?:[xlh])$|[re]?(si|di|bp|sp)l?$")
_REGISTER = re.compile(r"\b(?:[xyz]mm\d+|k[0-7]|r\d+[dwb]?|[re]?[abcd]x|[abcd][lh]|[re]?(?:si|di|bp|sp)l?)\b")
# Of instructions with two operands these write the first one without reading it; of the "v" forms all but the listed do.
_WRITES_ONLY = re.compile(r"v?mov|lea$|kmov|set|pop|cvt|v?sqrt|tzcnt|lzcnt|popcnt|pshuf|bs[fr]$|rorx|shlx|sarx|shrx")
_READS_FIRST = re.compile(r"vf|vpdp|vpermi2|vpermt2|vpternlog|vdpbf|vpmadd52")
_FIRST_NOT_WRITTEN = re.compile(r"cmp(?![ps])|test|v?u?comis|v?ptest|kortest|ktest|push|j|call|nop|ret|prefetch|bt$")
_CLEARS = re.compile(r"v?p?xor|sub$|v?pcmpeq")


def _name(register: str) -> str:
    """One name for all widths of a register."""
    if match := _VECTOR.match(register):
        return f"v{match[1]}"
    if match := _NUMBERED.match(register):
        return match[1]
    if match := _OLD.match(register):
        return match[1] or match[2]
    return register


@lru_cache(maxsize=16384)
def _effects(mnemonic: str, operands: str) -> tuple[frozenset[str], frozenset[str]]:
    """(places written, places read): registers and stack slots; implicit operands are left out."""
    parts = [part.strip() for part in operands.split(",")]
    first = parts[0]
    rest = [_name(found) for part in parts[1:] for found in _REGISTER.findall(part)]
    slots = _SLOT.findall(",".join(parts[1:]))
    read = {*rest, *slots}
    if _FIRST_NOT_WRITTEN.match(mnemonic):
        return frozenset(), frozenset(
            read | {_name(found) for found in _REGISTER.findall(first)} | {*_SLOT.findall(first)}
        )
    if "[" in first:  # a store, or an operation in memory; its address is read
        address = {_name(found) for found in _REGISTER.findall(first)}
        slot = set(_SLOT.findall(first))
        return frozenset(slot), frozenset(read | address | (set() if _WRITES_ONLY.match(mnemonic) else slot))
    written = {_name(found) for found in _REGISTER.findall(first)[:1]}
    cleared = _CLEARS.match(mnemonic) and len(parts) > 1 and len(set(parts[-2:])) == 1
    vex = mnemonic.startswith("v") and not _READS_FIRST.match(mnemonic)
    masked = "{k" in first
    if cleared:
        return frozenset(written), frozenset()
    only = vex or _WRITES_ONLY.match(mnemonic) is not None or (mnemonic == "imul" and len(parts) == 3)
    mask = {_name(found) for found in _REGISTER.findall(first)[1:]}
    return frozenset(written), frozenset(read | mask | (set() if only and not masked else written))
