"""Statements of the thread program as Python source: the translator.

The result is one Python function of a :class:`~tilelang_min.simulate.machine.Machine`.  Code under a condition that
differs by lane is written twice, without and with a mask; the version without runs whenever the condition holds for all
lanes.  Unrolled loops are written out, up to a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelang_min.errors import SimulationError
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate.hopper import HopperInstructions, product_registers
from tilelang_min.simulate.layout import Layout
from tilelang_min.simulate.narrow import is_narrow
from tilelang_min.simulate.roles import is_concurrent, strands_of
from tilelang_min.simulate.sites import Site
from tilelang_min.simulate.source import SourceText
from tilelang_min.simulate.support import NAMESPACE
from tilelang_min.simulate.tree import KernelTree, Statement, read_function
from tilelang_min.simulate.values import Array, Lane, Linear, Uniform, Value
from tilelang_min.simulate.work import work_of

UNROLL_LIMIT = 6000
"""Most statements that an unrolled loop is written out to; larger ones stay loops."""

UFUNCS = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide"}
FRESH_KINDS = {*UFUNCS, "min", "max", "cast", "floordiv", "floormod"}


@dataclass(frozen=True)
class Translation:
    """A program ready to run.

    ``run(machine)`` executes all lanes and returns how often (times warps) each region ran; ``regions`` lists for each
    the operation and the instructions of one warp by class.  Where threads wait for one another, ``run`` is a generator and
    ``strands`` holds the thread numbers of those that run together (see ``roles.py``).
    """

    run: Callable[[Any], list[int]]
    sites: tuple[Site, ...]
    layout: Layout
    regions: tuple[tuple[int, Counter[str]], ...]
    source: str
    strands: tuple[Any, ...] = ()
    whole: frozenset[int] = frozenset()
    """Variables of loops whose iterations all run, whatever a schedule says."""


def translate(program: ThreadProgram) -> Translation:
    """Reads ``program.function`` and compiles it to a Python function."""
    tree = read_function(program.function)
    return _Translator(program, tree).translate()


class _Translator(HopperInstructions):
    def __init__(self, program: ThreadProgram, tree: KernelTree) -> None:
        layout = Layout.of(program, tree)
        super().__init__(SourceText(), layout, {})
        self.program, self.tree = program, tree
        self.scalar_vectors = program.target.kind != "cpu"
        self.concurrent, self.maps = is_concurrent(tree), tree.maps
        self.watched = frozenset(product_registers(tree.body))
        self.regions: list[tuple[int, Counter[str]]] = []
        self.region: int | None = None
        self.region_operation = 0
        self.inside = 0
        """Loops around what is being written."""
        self.whole: set[int] = set()
        extents = dict(zip(("blockIdx.x", "blockIdx.y", "blockIdx.z"), program.grid, strict=True))
        for key, tag in tree.indices.items():
            if extents.get(tag) == 1:
                self.environment[key] = Uniform(Linear())
            elif self.concurrent and tag in extents:  # a strand is of one block
                self.environment[key] = Uniform(Linear.atom(self.source.hoist(f"int(rt.index[{tag!r}][0])")))
            else:
                self.environment[key] = Lane(self.source.hoist(f"rt.index[{tag!r}]"), Linear())

    def translate(self) -> Translation:
        self.statement(self.tree.body)
        if self.concurrent:
            self.source.line("if False: yield")
        self.source.prologue.append(f"g = rt.count_regions({len(self.regions)})")
        text = self.source.function("run", "rt", "g")
        namespace: dict[str, Any] = dict(NAMESPACE)
        exec(compile(text, f"<simulation of {self.program.name}>", "exec"), namespace)
        strands: tuple[Any, ...] = ()
        if self.concurrent:
            strands = tuple(strands_of(self.tree, self.program.threads, self.program.target.warp_size))
        return Translation(
            namespace["run"], tuple(self.sites), self.layout, tuple(self.regions), text, strands, frozenset(self.whole)
        )

    # ---- counting ---------------------------------------------------------------------------------------------------

    def executes(self, work: Counter[str]) -> None:
        """Adds instructions to the region being written, starting one where control flow or the operation changed."""
        if not work:
            return
        if self.region is None or self.region_operation != self.operation:
            self.region, self.region_operation = len(self.regions), self.operation
            self.regions.append((self.operation, Counter()))
            warps = "rt.warps" if self.mask is None else f"w_{self.mask}"
            self.source.line(f"g[{self.region}] += {self.source.hoist(warps) if self.mask is None else warps}")
        self.regions[self.region][1].update(work)

    # ---- control flow -----------------------------------------------------------------------------------------------

    def statement(self, s: Statement) -> None:
        """Writes one statement."""
        getattr(self, "write_" + s.kind)(s)

    def write_sequence(self, s: Statement) -> None:
        for child in s.body:
            if child is not None:
                self.statement(child)

    def write_marker(self, s: Statement) -> None:
        self.operation = s.operation

    def write_view(self, s: Statement) -> None:
        """Placed by the layout; nothing happens at run time."""

    def write_allocate(self, s: Statement) -> None:
        assert s.buffer is not None
        if s.buffer.scope in ("local", "global") and self.mask is None:
            self.source.line(f"rt.poison_local({s.buffer.key})")

    def write_let(self, s: Statement) -> None:
        value: Value = self.value(s.args[0])
        if isinstance(value, Array) and not value.constant:
            name = self.source.fresh("v")
            copied = s.args[0].kind in FRESH_KINDS and value.fresh
            self.source.line(f"{name} = {value.source}" if copied else f"{name} = np.array({value.source})")
            value = Array(name, value.dtype, value.lanes, fresh=False)
            self.executes(work_of(s.args[0], self.scalar_vectors))
        self.environment[s.var] = value

    def write_loop(self, s: Statement) -> None:
        start, extent = self.integer(s.args[0]), self.integer(s.args[1])
        (body,) = s.body
        assert body is not None
        constant = isinstance(start, Uniform) and isinstance(extent, Uniform)
        if constant and start.linear.is_const and extent.linear.is_const:  # type: ignore[union-attr]
            first, count = start.linear.const, extent.linear.const  # type: ignore[union-attr]
            if count <= 0:
                return
            if count == 1 or (s.unrolled and count * weight(body) <= UNROLL_LIMIT):
                for i in range(first, first + count):
                    self.environment[s.var] = Uniform(Linear(i))
                    self.statement(body)
                return
        name = self.source.fresh("i")
        if isinstance(start, Uniform) and isinstance(extent, Uniform):
            end = (start.linear + extent.linear).source()
            self.environment[s.var] = Uniform(Linear.atom(name))
            span = f"range({start.linear.source()}, {end})"
            if self.inside < 2 if self.concurrent else not self.inside and self.mask is None:
                span = f"rt.iterations({s.var}, {start.linear.source()}, {end})"
            else:
                self.whole.add(s.var)
            self.inside += 1
            with self.source.block(f"for {name} in {span}:"):
                self.fresh_region(body)
            self.inside -= 1
            return
        # The trip count differs by lane: run to the largest and mask.
        self.whole.add(s.var)
        length = self.source.fresh("e")
        value = self.integers.array(extent).source
        if self.mask is not None:  # lanes that do not come here have not said how often they would
            value = f"np.where({self.mask}, {value}, 0)"
        self.source.line(f"{length} = np.asarray({value})")
        self.environment[s.var] = self.integers.add(start, Uniform(Linear.atom(name)), "int32")
        with self.source.block(f"for {name} in range(int({length}.max())):"):
            self.branch(Array(f"({name} < {length})", "bool"), body, None)
        self.region = None

    def fresh_region(self, body: Statement | None) -> None:
        """Writes a statement whose instructions run another number of times than those around it."""
        self.region = None
        if body is not None:
            self.statement(body)
        self.region = None

    def write_while(self, s: Statement) -> None:
        source, outer = self.source, self.mask
        (body,) = s.body
        self.region = None
        with source.block("while True:"):
            condition = self.array(s.args[0]).source
            name = source.fresh("q")
            source.line(
                f"{name} = decide({condition})" if outer is None else f"{name} = decide(both({condition}, {outer}))"
            )
            with source.block(f"if {name} is False:"):
                source.line("break")
            self.mask = outer
            with source.block(f"if {name} is True:"):
                self.fresh_region(body)
            with source.block("else:"):
                mask = source.fresh("m")
                source.line(f"{mask} = {name}")
                source.line(f"w_{mask} = rt.active_warps({mask})")
                self.mask = mask
                self.fresh_region(body)
                self.mask = outer

    def write_if(self, s: Statement) -> None:
        then, other = s.body
        condition = self.array(s.args[0])
        if s.args[0].dtype != "bool":  # a number, of which zero alone is false
            condition = self.integers.compare("ne", condition, Uniform(Linear(), s.args[0].dtype))
        self.branch(condition, then, other)

    def branch(self, condition: Array, then: Statement | None, other: Statement | None) -> None:
        """Writes a branch: for all lanes, for none, and under masks."""
        if condition.source in ("True", "False"):
            chosen = then if condition.source == "True" else other
            if chosen is not None:
                self.statement(chosen)
            return
        source, outer, operation = self.source, self.mask, self.operation
        name = source.fresh("q")
        source.line(f"{name} = {condition.source if condition.constant else f'decide({condition.source})'}")
        with source.block(f"if {name} is True:"):
            self.fresh_region(then)
        with source.block(f"elif {name} is False:"):
            after, self.operation = self.operation, operation
            self.fresh_region(other)
            if other is None:
                self.operation = after
        with source.block("else:"):
            for statement, text in ((then, name), (other, f"~{name}")):
                self.operation = operation
                if statement is None:
                    continue
                mask = source.fresh("m")
                source.line(f"{mask} = {text}" if outer is None else f"{mask} = {text} & {outer}")
                with source.block(f"if {mask}.any():"):
                    source.line(f"w_{mask} = rt.active_warps({mask})")
                    self.mask = mask
                    self.fresh_region(statement)
                    self.mask = outer
        self.operation = operation
        for statement in (then, other):
            self.operation = last_marker(statement, self.operation)
        self.region = None

    # ---- effects ----------------------------------------------------------------------------------------------------

    def write_store(self, s: Statement) -> None:
        assert s.buffer is not None
        value_expression, index_expression = s.args
        index = self.base_index(index_expression)
        lanes = index_expression.lanes
        if s.buffer.scope != "local" and s.buffer.key not in self.layout.locals:
            value = self.array(value_expression)
            self.executes(work_of(value_expression, self.scalar_vectors))
            self.source.line(f"{self.access('store', s.buffer, index, lanes)}, {value.source})")
            return
        if not isinstance(index, Uniform):
            value = self.array(value_expression)
            name = self.source.hoist(f"rt.local({s.buffer.key})", "r")
            where = self.integers.array(index).source
            self.source.line(f"rt.scatter_local({name}, {where}, {lanes}, {value.source}, {self.mask})")
            return
        row = self.register(s.buffer, index, lanes)
        kind = value_expression.kind
        dtype = value_expression.dtype
        if self.mask is None and kind in UFUNCS and "float" in dtype and not is_narrow(dtype):
            a, b = (self.array(arg) for arg in value_expression.args)
            self.executes(work_of(value_expression, self.scalar_vectors))
            self.source.line(f"{UFUNCS[kind]}({a.source}, {b.source}, {row})")
            return
        value = self.array(value_expression)
        self.executes(work_of(value_expression, self.scalar_vectors))
        self.write_registers(row, value.source)

    def write_registers(self, row: str, value: str) -> None:
        """Assigns to a view of registers, under the mask if there is one."""
        if self.mask is None:
            self.source.line(f"{row}[...] = {value}")
        else:
            self.source.line(f"copyto({row}, {value}, 'unsafe', {self.mask})")

    def write_effect(self, s: Statement) -> None:
        (call,) = s.args
        if call.kind != "call":
            raise SimulationError(f"the simulator has no rule for a statement that evaluates a {call.kind}")
        self.perform(call)


def weight(s: Statement) -> int:
    """Statements that come out when the unrolled loops inside are written out."""
    inner = sum(weight(child) for child in s.body if child is not None)
    if s.kind == "loop":
        extent = s.args[1]
        return inner * int(extent.value) if s.unrolled and extent.kind == "const" else inner + 1
    return inner + (s.kind not in ("sequence", "marker"))


def last_marker(s: Statement | None, operation: int) -> int:
    """The operation in force after a statement, in program order."""
    if s is None:
        return operation
    if s.kind == "marker":
        return s.operation
    for child in s.body:
        operation = last_marker(child, operation)
    return operation
