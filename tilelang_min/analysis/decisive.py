"""What in a statement decides what it does: conditions, loop bounds, and the operands of barriers and the like."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tilelang_min.analysis.addresses import BULK, PLACELESS
from tilelang_min.analysis.points import handle_of
from tilelang_min.ir.expressions import loads


def barriers_of(body: Any) -> set[str]:
    """Buffers of the mbarriers that a statement uses; one without a name where that cannot be seen."""
    found: set[str] = set()

    def call(node: Any) -> None:
        if _name(node.value).startswith("tirx.ptx.mbarrier"):
            named = [str(load.source.name) for arg in node.value.args for load in loads(arg) if in_memory(load)]
            found.update(named or [""])

    tvm_ffi.structural_walk(body, (tirx.Evaluate, call))
    return found


class Decisive:
    """Conditions, loop bounds, and operands of barriers and the like in a statement; loops ``skipped`` are left out."""

    def __init__(self, skipped: frozenset[int]) -> None:
        self.skipped = skipped
        self.conditions: list[Any] = []
        self.bounds: list[Any] = []
        self.operands: list[Any] = []
        self.unclear = False

    def statement(self, node: Any) -> None:
        """Goes through a statement."""
        if isinstance(node, tirx.SeqStmt):
            for item in node.seq:
                self.statement(item)
        elif isinstance(node, tirx.AttrStmt):
            self.statement(node.body)
        elif isinstance(node, tirx.For):
            self.bounds += [node.min, node.extent]
            if handle_of(node.loop_var) not in self.skipped:
                self.statement(node.body)
        elif isinstance(node, tirx.IfThenElse):
            self.conditions.append(node.condition)
            for body in (node.then_case, node.else_case):
                if body is not None:
                    self.statement(body)
        elif isinstance(node, tirx.While):
            waits = isinstance(node.body, tirx.Evaluate) and _name(node.body.value).startswith("tirx.ptx.mbarrier_")
            if waits:
                self.statement(node.body)
            else:
                self.unclear = True
        elif isinstance(node, tirx.Evaluate):
            self.call(node.value)
        elif isinstance(node, tirx.Bind):
            self.values(node.value, of_memory=False)
        elif isinstance(node, tirx.BufferStore):
            self.values(node.value, of_memory=True)
            if str(node.buffer.ty.storage_scope) != "local":
                for item in node.indices:
                    self.values(item, of_memory=False)

    def call(self, call: Any) -> None:
        """An instruction."""
        name, numbers = _name(call), [arg for arg in call.args if not isinstance(arg, ir.StringImm)]
        if name.startswith(BULK):
            self.operands += [arg for arg in numbers if _is_address(arg)]
        elif name.startswith(PLACELESS):
            self.operands += [arg for arg in numbers if not _is_register(arg)]
        else:
            if "cp_async" in name:
                sizes = [arg for arg in numbers if not _is_address(arg)]
                self.bounds += sizes
            self.values(call, of_memory=False)

    def values(self, expression: Any, *, of_memory: bool) -> None:
        """Conditions within an expression: all, or those that decide what of memory is read."""
        if not isinstance(expression, ir.Expr):
            return

        def choice(condition: Any, arms: tuple[Any, ...]) -> None:
            if not of_memory or any(in_memory(load) for arm in arms for load in loads(arm)):
                self.conditions.append(condition)

        def call(node: Any) -> None:
            if _name(node).endswith(".if_then_else"):
                choice(node.args[0], tuple(node.args[1:]))

        def read(node: Any) -> None:
            if of_memory and in_memory(node):
                for item in node.indices:
                    self.values(item, of_memory=False)

        tvm_ffi.structural_walk(
            expression,
            [
                (ir.Call, call),
                (tirx.Select, lambda node: choice(node.condition, (node.true_value, node.false_value))),
                (ir.TensorLoad, read),
            ],
        )


def in_memory(load: Any) -> bool:
    return str(load.source.ty.storage_scope) != "local"


def _is_address(argument: Any) -> bool:
    """Whether an operand is a pointer or a shared address."""
    while isinstance(argument, tirx.Cast):
        argument = argument.value
    return isinstance(argument, ir.Call) or not isinstance(argument, ir.Expr)


def _is_register(argument: Any) -> bool:
    """Whether an operand is a register whose number is known."""
    return isinstance(argument, ir.TensorLoad) and str(argument.source.ty.storage_scope) == "local"


def _name(call: Any) -> str:
    return str(getattr(getattr(call, "op", None), "name", ""))


__all__ = ["Decisive", "barriers_of", "in_memory"]
