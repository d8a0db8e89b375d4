"""Statements of a thread program behind the markers of their operations: what they are, as far as clocks are concerned."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tilelang_min.program import OPERATION_MARKER

_WAITS = ("try_wait", "wait_group", "wait_all", "bar_sync", "barrier_cluster_wait", "storage_sync", "s.barrier")
_ISSUES = ("cp_async", "mma_async", "wgmma_fence", "wgmma_commit", "expect_tx", "prefetch")


def flat(statement: Any) -> list[Any]:
    """The statements of a sequence, sequences inside it opened."""
    if isinstance(statement, tirx.SeqStmt):
        return [inner for each in statement.seq for inner in flat(each)]
    return [statement]


def operation_of(statement: Any) -> int | None:
    """The operation that a marker statement names."""
    if isinstance(statement, tirx.Evaluate) and isinstance(statement.value, ir.Call):
        call = statement.value
        if name_of(call).endswith("call_extern") and str(getattr(call.args[0], "value", "")) == OPERATION_MARKER:
            return int(call.args[1])
    return None


def operations_in(statement: Any) -> list[int]:
    """The operations that markers inside a statement name, in order."""
    found: list[int] = []

    def look(each: Any) -> None:
        number = operation_of(each)
        if number is not None:
            found.append(number)

    tvm_ffi.structural_walk(statement, (tirx.Evaluate, look))
    return found


def name_of(call: Any) -> str:
    """Of a call's function."""
    return str(getattr(call.op, "name", ""))


def calls_in(statement: Any) -> list[str]:
    """Names of all calls inside; of PTX the entry with its modifiers."""
    found: list[str] = []

    def look(call: Any) -> None:
        name = name_of(call)
        if name.startswith("tirx.ptx."):
            tokens = [str(each.value) for each in call.args if isinstance(getattr(each, "value", None), str)]
            name = "_".join([name, *tokens]).replace(".", "_")
        elif name.endswith(("call_llvm_intrin", "call_llvm_pure_intrin", "call_extern")):
            name = f"{name}.{getattr(call.args[0], 'value', '')}"
        found.append(name)

    tvm_ffi.structural_walk(statement, (ir.Call, look))
    return found


def phase_of(statement: Any) -> str:
    """``issue`` of asynchronous work, ``wait`` for it, or ``run``."""
    names = calls_in(statement)
    waits = any(word in name for name in names for word in _WAITS)
    issues = any(word in name for name in names for word in _ISSUES if not any(each in name for each in _WAITS))
    if waits == issues:  # neither, or a loop that does both
        return "run"
    return "wait" if waits else "issue"


def is_trivial(statement: Any) -> bool:
    """Bookkeeping that is worth no clock read of its own: names, and constants put into registers."""
    if isinstance(statement, (tirx.Bind, tirx.AllocBuffer, tirx.DeclBuffer)):
        return True
    if isinstance(statement, tirx.Evaluate):
        return not isinstance(statement.value, ir.Call) or any("setmaxnreg" in name for name in calls_in(statement))
    if isinstance(statement, tirx.BufferStore):
        return isinstance(statement.value, (tirx.IntImm, tirx.FloatImm)) and str(statement.buffer.scope()) == "local"
    return False


def parts_roles(statement: Any) -> bool:
    """Whether a branch parts producer and consumers: both ways hold operations."""
    return (
        statement.else_case is not None
        and bool(operations_in(statement.then_case))
        and bool(operations_in(statement.else_case))
    )
