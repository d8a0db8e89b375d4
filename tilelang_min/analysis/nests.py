"""Loops of a program whose roles run side by side, and what may tell their iterations apart.

Where a producer and its consumers run loops of their own that keep step by mbarriers, iterations can be left out only in all of
them at once.  Loops that begin and end alike, in whatever branch they stand, are therefore one :class:`Family`: outer ones, and
inner ones within the same outer family.  Whatever one of them does differently from iteration to iteration holds for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tvm_ffi
from tvm import ir, tirx
from tvm.sym import Analyzer

from tilelang_min.analysis.addresses import accesses_in, holds_data, names_of_data
from tilelang_min.analysis.decisive import Decisive, barriers_of, in_memory
from tilelang_min.analysis.intervals import Interval, Unknown, interval
from tilelang_min.analysis.labels import Fact, named_in
from tilelang_min.analysis.points import NotCountable, evaluate, handle_of, parts_of, variables_of
from tilelang_min.ir.expressions import as_int, index, loads, substitute
from tilelang_min.program import ThreadProgram

LONGEST = 16
"""Longest period that is looked for."""
LEVELS = 2
"""Loops within one another of which iterations are left out."""


@dataclass(eq=False)
class Family:
    """Loops that begin and end alike.

    ``variable`` stands for the variables of all of them in ``start``, ``extent`` and ``facts``.  After ``period`` iterations
    every shared element and mbarrier that is used is the same again; None where that is not so, or where what is done depends
    on data or on registers.  ``barriers`` are the buffers of the mbarriers that are used: families that share one keep step.
    """

    parent: Family | None
    start: Any
    extent: Any
    variable: Any
    loops: list[int] = field(default_factory=list)
    inner: list[Family] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    period: int | None = 1
    barriers: set[str] = field(default_factory=set)


class Nests:
    """The families of a program.

    ``blocks`` are its block indices by handle, with their axes; ``names`` what is computed from these and from outer loops
    alone, in order; ``ranges`` all other variables; ``outside`` the facts of what stands in none of the ``outer`` families
    that were named when it was asked for.
    """

    def __init__(self, program: ThreadProgram) -> None:
        self.program = program
        self.blocks: dict[int, int] = {}
        self.ranges: dict[int, Interval] = {}
        self.names: dict[int, Any] = {}
        self.outer: list[Family] = []
        self._bound: dict[int, Any] = {}
        self._variables: dict[int, Any] = {}
        self._data = names_of_data(program.function.body)
        self._nodes: list[tuple[Any, Family]] = []
        self._walk(program.function.body, None)
        self._inner_ranges(program.function.body)
        for node, family in self._nodes:
            self._describe(node.body, family)

    def families(self) -> Iterator[Family]:
        """All of them, outer ones first."""
        for family in self.outer:
            yield family
            yield from family.inner

    def outside(self, without: Family) -> list[Fact] | None:
        """Facts of everything but the loops of one outer family; None where something depends on data."""
        skipped = frozenset(without.loops)
        return self._facts(self.program.function.body, skipped)

    # ---- reading ------------------------------------------------------------------------------------------------------

    def _walk(self, node: Any, parent: Family | None) -> None:
        if isinstance(node, tirx.SeqStmt):
            for item in node.seq:
                self._walk(item, parent)
        elif isinstance(node, tirx.AttrStmt):
            if str(node.attr_key) == "thread_extent":
                tag, variable = str(node.node.thread_tag), node.node.var
                if tag.startswith("blockIdx."):
                    self.blocks[handle_of(variable)] = "xyz".index(tag[-1])
                else:
                    self.ranges[handle_of(variable)] = Interval(0, int(node.value.value) - 1)
            self._walk(node.body, parent)
        elif isinstance(node, tirx.IfThenElse):
            for body in (node.then_case, node.else_case):
                if body is not None:
                    self._walk(body, parent)
        elif isinstance(node, tirx.Bind):
            self._bind(node)
        elif isinstance(node, tirx.For) and int(node.kind) != int(tirx.ForKind.UNROLLED) and as_int(node.extent) != 1:
            level = 0 if parent is None else 1 if parent.parent is None else LEVELS
            if level < LEVELS:
                family = self._family(node, parent)
                self._nodes.append((node, family))
                self._walk(node.body, family)

    def _bind(self, node: Any) -> None:
        """A name: kept where it is of the block and of outer loops alone, replaced by its value elsewhere."""
        handle = handle_of(node.var)
        value = self.plain(node.value)
        known = {*self.blocks, *self.names, *(handle_of(each.variable) for each in self.outer)}
        if isinstance(value, ir.Expr) and not loads(value) and set(variables_of(value)) <= known:
            try:
                evaluate(value, dict.fromkeys(known, 1))
            except (NotCountable, ZeroDivisionError):
                pass
            else:
                self.names[handle] = value
                return
        self._bound[handle] = node.value

    def _family(self, node: Any, parent: Family | None) -> Family:
        start, extent = self.plain(node.min), self.plain(node.extent)
        others = self.outer if parent is None else parent.inner
        same = [each for each in others if self._same(each.start, start) and self._same(each.extent, extent)]
        if same:
            family = same[0]
        else:
            family = Family(parent, start, extent, node.loop_var)
            others.append(family)
        handle = handle_of(node.loop_var)
        family.loops.append(handle)
        self._variables[handle] = family.variable
        return family

    def _same(self, first: Any, second: Any) -> bool:
        """Whether two numbers are equal in all blocks and iterations."""
        return str(self._spelled(first)) == str(self._spelled(second))

    def _spelled(self, expression: Any) -> Any:
        """An expression without names: producer and consumers name their tiles apart."""
        if not isinstance(expression, ir.Expr):
            return expression

        def value(variable: Any) -> Any:
            known = self.names.get(handle_of(variable))
            return variable if known is None else self._spelled(known)

        return tvm_ffi.structural_map(expression, (tirx.Var, value))

    def plain(self, expression: Any, *, deep: bool = False) -> Any:
        """An expression in the variables of families, names and launch variables.

        Names of what is loaded are replaced as well if it is to be ``deep``.
        """
        if not isinstance(expression, ir.Expr):
            return expression

        def value(variable: Any) -> Any:
            handle = handle_of(variable)
            if handle in self._variables:
                return self._variables[handle]
            known = self._bound.get(handle)
            return variable if known is None or (loads(known) and not deep) else self.plain(known, deep=deep)

        return tvm_ffi.structural_map(expression, (tirx.Var, value))

    def _inner_ranges(self, body: Any) -> None:
        """Ranges of the variables of all loops, over all blocks and iterations."""
        found: list[Any] = []
        tvm_ffi.structural_walk(body, (tirx.For, found.append))
        known = dict(self.ranges)
        for handle, axis in self.blocks.items():
            known[handle] = Interval(0, self.program.grid[axis] - 1)
        for node in reversed(found):  # inner loops were met first
            variable = handle_of(node.loop_var)
            family = self._variables.get(variable)
            for handle, value in self.names.items():
                if handle not in known:
                    try:
                        known[handle] = interval(value, known)
                    except Unknown:
                        continue
            try:
                low, extent = (interval(self.plain(each), known) for each in (node.min, node.extent))
            except Unknown:
                continue
            found_range = Interval(int(low.low), max(int(low.high), int(low.high) + int(extent.high) - 1))
            known[variable] = found_range
            if family is not None:
                known[handle_of(family)] = found_range  # the variable that stands for this one
        self.ranges = {handle: one for handle, one in known.items() if handle not in self.blocks}

    # ---- facts --------------------------------------------------------------------------------------------------------

    def _describe(self, body: Any, family: Family) -> None:
        """Adds what one loop does to its family."""
        family.barriers |= barriers_of(body)
        facts = None if family.period is None else self._facts(body, frozenset())
        if facts is None:
            family.period = None
            return
        family.facts += facts
        variable = handle_of(family.variable)
        derived = self._derived(variable)
        moving = [fact for fact in facts if fact.kind == "same" and derived.intersection(variables_of(fact.expression))]
        family.period = self._period(family, [self._spelled(fact.expression) for fact in moving], family.period or 1)

    def _derived(self, variable: int) -> set[int]:
        """A variable and the names computed with it."""
        found = {variable}
        for handle, value in self.names.items():
            if found.intersection(variables_of(value)):
                found.add(handle)
        return found

    def _period(self, family: Family, expressions: list[Any], least: int) -> int | None:
        analyzer = Analyzer()
        for expression in expressions:
            for handle, variable in named_in(expression).items():
                known = self.ranges.get(handle)
                if known is not None:
                    analyzer.bind(variable, ir.Range(int(known.low), int(known.high) + 1))

        def repeats(expression: Any, period: int) -> bool:
            moved = substitute(expression, [(family.variable, family.variable + period)])
            if str(moved) == str(expression):
                return True
            whole = "int" in str(getattr(expression.ty, "dtype", ""))
            return whole and as_int(analyzer.simplify(index(moved - expression))) == 0

        for period in range(least, LONGEST + 1, least):
            if all(repeats(expression, period) for expression in expressions):
                return period
        return None

    def _facts(self, body: Any, skipped: frozenset[int]) -> list[Fact] | None:
        """Everything in a statement that decides what it counts, but for the loops ``skipped``; None where data do."""
        places, bounds, data = accesses_in(self.program, body, skipped)
        decisive = Decisive(skipped)
        decisive.statement(body)
        if data or decisive.unclear:
            return None
        facts: dict[tuple[str, str, int], Fact] = {}

        def add(kind: str, expression: Any, period: int = 0) -> bool:
            if not isinstance(expression, ir.Expr):
                return True
            if kind in ("same", "shared"):
                return self._add_shared(facts, kind, self.plain(expression, deep=True), period)
            value = self.plain(expression)
            free = set(variables_of(value)) - self._known()
            if loads(value) or free or holds_data(value, self._data):
                return False
            facts.setdefault((kind, str(value), period), Fact(kind, value, period))
            return True

        good = all(add("truth", part) for each in decisive.conditions for part in parts_of(each))
        good = good and all(add("number", each) for each in (*decisive.bounds, *bounds))
        good = good and all(add("same", each) for each in decisive.operands)
        good = good and all(add("shared" if place.shared else "place", place.index, place.period) for place in places)
        return list(facts.values()) if good else None

    def _add_shared(self, facts: dict[tuple[str, str, int], Fact], kind: str, value: Any, period: int) -> bool:
        """A place in shared memory or an operand: registers that hold a stage may be in it, if all stages cost alike."""
        replaced: dict[str, Any] = {}
        addressed: list[Any] = []
        clear = True

        def register(load: Any) -> Any:
            nonlocal clear
            if in_memory(load):  # an address
                addressed.extend(load.indices)
                return tirx.IntImm("int32", 0)
            clear = clear and all(as_int(item) is not None for item in load.indices)
            return replaced.setdefault(str(load), tirx.Var(f"register{len(replaced)}", str(load.ty.dtype)))

        if loads(value):
            value = tvm_ffi.structural_map(value, (ir.TensorLoad, register))
        free = [handle for handle in variables_of(value) if handle not in self._known()]
        if not clear or (kind == "shared" and free and not _factors_are_multiples(value, free, period)):
            return False
        facts.setdefault(("same", str(value), 0), Fact("same", value, 0))
        return all(self._add_shared(facts, "same", item, 0) for item in addressed if isinstance(item, ir.Expr))

    def _known(self) -> set[int]:
        return {*self.ranges, *self.blocks, *self.names}


def _factors_are_multiples(value: Any, free: list[int], period: int) -> bool:
    """Whether registers move a place by multiples of a period alone."""
    from tvm import sym

    found = named_in(value)
    factors = list(sym.detect_linear_equation(value, [found[handle] for handle in free]))[:-1]
    return len(factors) == len(free) and all(
        isinstance(factor, tirx.IntImm) and int(factor.value) % period == 0 for factor in factors
    )


__all__ = ["Family", "Nests"]
