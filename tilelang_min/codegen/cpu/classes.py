"""Class of an x86-64 instruction: which of ``INSTRUCTION_CLASSES`` its mnemonic and operands make it.

An instruction that computes counts by what it computes, wherever its operands are (``vfmadd231ps zmm0, zmm1, [rdx]`` is
"fma"); one that only moves counts by where from or to.  An x86 address does not say whether it is a tensor or a tile, tiles
being on the stack and often addressed through registers: moves with a memory operand are "global_load" or "global_store",
those at a constant distance from the stack or frame pointer, spills and small tiles alike, "local_load" or "local_store",
those at a constant distance from the instruction "constant_load".  ``xor`` of a register with itself, the way to write 0
into it, is a "move".
"""

from __future__ import annotations

import re
from functools import lru_cache

_MEMORY = re.compile(r"\[([^\]]*)\]")
_SAME = re.compile(r"(\w+), \1$")
_STACK = re.compile(r"^(rsp|rbp)( [+-] (0x)?[0-9a-f]+)?$")

# First match wins; the mnemonic has lost the "v" of its VEX and EVEX forms where one stands before a known SSE name.
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (klass, re.compile(pattern))
    for klass, pattern in (
        ("matrix", r"t(dp|ile|cmm)|mmultf32ps"),
        ("fma", r"fn?m(add|sub|addsub|subadd)\d*|dpbf16ps|p?dp[bw]\w+|4fn?madd|madd52|fc?madd"),
        ("convert", r"cvt|c(bw|wde|dqe|wd|dq|qo)$|pmov[sz]x|pmov(us|s)?(wb|db|dw|qb|qw|qd)"),
        ("special", r"(r?sqrt|rcp)(14|28)?[ps][sdh]$|exp2p|getexp|getmant"),
        ("float", r"(add|sub|mul|div|min|max|range|reduce|scalef|rndscale|round|dp|addsub|hadd|hsub)[ps][sdh]$"),
        ("float", r"(u?comi|cmp\w*)[ps][sdh]$|fixupimm|fpclass"),
        ("branch", r"j\w+$|call$|ret\w?$|loop"),
        ("barrier", r"[lms]fence$|lock"),
        ("wait", r"pause$|u?mwait|tpause"),
        (
            "move",
            r"k?mov(?!msk)|lddqu|broadcast|pbroadcast|shuf|pshuf|perm|blend|pblend|unpck|punpck|insert|pinsr|extract",
        ),
        ("move", r"pextr|align|palign|pack|compress|expand|cmov|set[a-z]+$|xchg|bswap|gather|pgather|scatter|pscatter"),
        ("move", r"pcompress|pexpand|maskmov|pmaskmov|lea$|push|pop(?!cnt)|ldmxcsr|stmxcsr|movmsk|pmovmsk"),
        (
            "integer",
            r"(add|sub|adc|sbb|i?mul|i?div|inc|dec|neg|not|and|or|xor|andn|test|cmp|sh[lr]d?|sa[lr]|ro[lr]|mulx)",
        ),
        ("integer", r"(rorx|shlx|sarx|shrx|bt\w?|bs[fr]|lzcnt|tzcnt|popcnt|bls\w+|bextr|bzhi|pdep|pext|crc32)$"),
        (
            "integer",
            r"p(add|sub|mul|min|max|abs|avg|sad|and|or|xor|cmp|sll|sra|srl|rol|ror|ternlog|test|sign|hadd|hsub)",
        ),
        (
            "integer",
            r"p?(conflict|lzcnt|popcnt|madd)|k(and|or|xor|not|xnor|add|shift|test|ortest|unpck)|ptest|ternlog|test",
        ),
    )
)


@lru_cache(maxsize=8192)
def classify(mnemonic: str, operands: str) -> str:
    """Class of an instruction in Intel syntax as capstone prints it, destination first."""
    name = mnemonic.rsplit(" ", 1)[-1]
    if name == "leave":
        return "move"
    if name.startswith("push"):
        return "local_store"
    if name.startswith("pop") and not name.startswith("popcnt"):
        return "local_load"
    if name.startswith("prefetch") or name in ("vzeroupper", "vzeroall", "nop", "endbr64", "ud2", "int3"):
        return "other"
    plain = name[1:] if name.startswith("v") and not name.startswith("ver") else name
    klass = next((klass for klass, pattern in _RULES if pattern.match(plain)), "other")
    if name == "lea":
        return "integer"
    if plain.startswith(("xor", "pxor")) and _SAME.search(operands):
        return "move"
    if klass != "move":
        return klass
    memory = _MEMORY.search(operands)
    if memory is None:
        return "move"
    store = operands.find("[") < (operands.find(",") if "," in operands else len(operands))
    address = memory[1].strip()
    if address.startswith("rip"):
        return "global_store" if store else "constant_load"
    place = "local" if _STACK.match(address) else "global"
    return f"{place}_{'store' if store else 'load'}"
