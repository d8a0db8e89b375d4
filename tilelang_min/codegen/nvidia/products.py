"""Products of warp groups run by themselves: what C++ must be told about their accumulators.

To the C++ compiler a product has ended where its ``asm`` stands, so it may move a read of an accumulator in front of the wait for
it; ptxas then makes every product wait ("serialized").  Behind each wait for all products an empty ``asm`` that seems to change
the accumulators holds such reads back.  It costs no instruction.

The same behind the lower words of descriptors: their sums would be taken out of loops otherwise, into registers that the
accumulators need.
"""

from __future__ import annotations

from typing import Any

KEEP = "__tl_keep"
"""Name of the macro that seems to change a register."""

DEFINITION = f"""\
#define {KEEP}_float32(x) asm volatile("" : "+f"(x) : : "memory")
#define {KEEP}_uint32(x) asm volatile("" : "+r"(x) : : "memory")
"""


def with_held_accumulators(function: Any) -> Any:
    """The function with the accumulators of all its products held back behind every wait for all of them."""
    from tvm import ir
    from tvm.tirx import Bind, Evaluate, SeqStmt, Var, call_extern
    from tvm_ffi import structural_map, structural_walk

    found: dict[tuple[Any, int], Any] = {}
    words: set[Any] = set()

    def note(call: Any) -> None:
        if _name(call).startswith("tirx.ptx.wgmma") and "mma_async" in map(_text, call.args):
            for operand in call.args:
                if isinstance(operand, ir.TensorLoad) and len(operand.indices) == 1:
                    found.setdefault((operand.source, int(operand.indices[0])), operand)
                elif isinstance(operand, ir.Expr):
                    structural_walk(operand, (Var, words.add))

    structural_walk(function.body, (ir.Call, note))
    if not found:
        return function
    holds = [
        Evaluate(call_extern("void", f"{KEEP}_{operand.ty.dtype}", operand))
        for operand in found.values()
        if str(operand.ty.dtype) in ("float32", "uint32")
    ]

    def wait(statement: Any) -> Any:
        call = statement.value
        if not isinstance(call, ir.Call) or _name(call) != "tirx.ptx.wgmma_wait_group" or int(call.args[0]) != 0:
            return statement
        return SeqStmt([statement, *holds])

    def bind(statement: Any) -> Any:
        if statement.var not in words or str(statement.var.ty.dtype) != "uint32":
            return statement
        return SeqStmt([statement, Evaluate(call_extern("void", f"{KEEP}_uint32", statement.var))])

    body = structural_map(function.body, [(Evaluate, wait), (Bind, bind)])
    return function.with_body(body, span=function.span)


def definitions(text: str) -> str:
    """The macros, where the text uses them."""
    return DEFINITION if KEEP in text else ""


def _name(call: Any) -> str:
    return str(getattr(call.op, "name", ""))


def _text(argument: Any) -> str:
    return str(getattr(argument, "value", ""))
