"""How many arithmetic instructions an expression takes, by class, before any optimisation.

Counts float arithmetic, special functions and conversions of a stored value; index arithmetic, which the vendors'
compilers rewrite beyond recognition, is not counted.
"""

from __future__ import annotations

from collections import Counter

from tilelang_min.simulate.tree import Expression

SPECIAL = {"exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt", "tanh", "sigmoid", "sin", "cos", "pow"}
ARITHMETIC = {"add", "sub", "mul", "div", "min", "max"}


def work_of(e: Expression, scalar_vectors: bool) -> Counter[str]:
    """Instructions by class (names of ``INSTRUCTION_CLASSES``); where ``scalar_vectors`` is set a vector counts each element."""
    total: Counter[str] = Counter()
    _visit(e, total, scalar_vectors)
    return total


def _visit(e: Expression, total: Counter[str], scalar_vectors: bool) -> None:
    if e.kind in ("load", "const", "var", "ramp"):
        return
    amount = e.lanes if scalar_vectors else 1
    children = e.args
    if "float" in e.dtype:
        if e.kind in ("add", "sub") and any(child.kind == "mul" for child in e.args):
            total["fma"] += amount
            product = next(child for child in e.args if child.kind == "mul")
            children = (*product.args, *(child for child in e.args if child is not product))
        elif e.kind in ARITHMETIC:
            total["float"] += amount
        elif e.kind == "cast":
            total["convert"] += amount
        elif e.kind == "call" and str(e.value).rsplit(".", 1)[-1] in SPECIAL:
            total["special"] += amount
    if e.kind == "call" and str(e.value).rsplit(".", 1)[-1] == "if_then_else":
        children = e.args[1:]
    for child in children:
        _visit(child, total, scalar_vectors)
