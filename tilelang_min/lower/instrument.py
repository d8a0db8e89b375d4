"""Clock reads around tile operations: thread program -> thread program that also writes how long each operation took.

It works on the thread program, not on the tile program, because there the pipelines, barriers, rings and roles of every target
are in place and look alike: statements behind the markers of their operations.  Before and after::

    marker 3                                   marker 3
    cp.async ...                               before = clock
    marker 4                                   cp.async ...
    cp.async.wait_group                        now = clock; issue_3 += now - before; before = now
                                               marker 4
                                               cp.async.wait_group
                                               now = clock; wait_4 += now - before

Adjacent operations share a read.  Sums are registers of the thread, counts one register for each body of a loop or branch; at
the end the first lane of each warp (on a CPU, the block) writes them to the hidden parameter.  In a kernel with a producer each
role writes its own, so that none holds registers for the other.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from tvm import ir, tirx

from tilelang_min.ir.sizes import expression_of
from tilelang_min.lower.context import sequence
from tilelang_min.lower.marked import flat, is_trivial, operation_of, operations_in, parts_roles, phase_of
from tilelang_min.program import OPERATION_MARKER, Parameter, ThreadProgram
from tilelang_min.program.instrument import (
    CLOCK,
    CLOCK_AMD,
    CLOCK_CPU,
    EVENTS,
    MOST_BLOCKS,
    TIMELINE,
    Instrument,
    Slot,
    stride_of,
)

_LEAVES = frozenset({"copy", "gemm", "fill", "parallel", "reduce", "store", "barrier"})
"""Kinds of operations that are timed whole, also where they bring data of another on the way."""

_CONTAINERS = ("kernel", "loop")
"""Kinds of operations whose own statements are bookkeeping: of these only waits and asynchronous starts are timed."""

_WORKERS = {"cuda": "warp", "hip": "wavefront", "cpu": "block"}


def instrument(program: ThreadProgram, kind: str) -> tuple[ThreadProgram, Instrument]:
    """The program with clock reads and one parameter more, and what that parameter holds afterwards."""
    timeline = kind == TIMELINE
    trial = _Instrumenter(
        program, (), timeline=timeline
    )  # says which slots there are, of which the size of the parameter follows
    trial.enter(program.function.body)
    slots = tuple(sorted(trial.sums, key=lambda slot: (slot.operation, slot.phase)))
    made = _Instrumenter(program, slots, timeline=timeline)
    body = made.enter(program.function.body)
    parameters = list(program.function.params)
    hidden = [made.figures, *([made.events] if timeline else [])]
    parameters[len(program.parameters) : len(program.parameters)] = [each.pointer for each in hidden]
    declared = sequence([*(tirx.DeclBuffer(each.buffer, data=each.pointer) for each in hidden), *flat(body)])
    function = tirx.PrimFunc(parameters, declared).with_attr(dict(program.function.attrs.items()))
    records = [Parameter(each.name, "int64", each.shape, "inout") for each in hidden]
    record = Instrument(
        kind=kind,
        parameter=records[0],
        slots=slots,
        worker=_WORKERS[program.target.kind],
        blocks=made.blocks,
        stride=made.stride,
        events=records[1] if timeline else None,
    )
    return replace(program, function=function, parameters=(*program.parameters, *records)), record


class _Hidden:
    """A parameter that is added: int64, of a name that no other has."""

    def __init__(self, name: str, shape: tuple[int, ...], program: ThreadProgram) -> None:
        while name in {parameter.name for parameter in program.parameters}:
            name += "_"
        self.name, self.shape = name, shape
        self.pointer = tirx.Var(name, ir.PointerType(ir.PrimType("int64"), "global"))
        size = max(1, prod(shape))
        self.buffer = tirx.decl_buffer((size,), "int64", name, data=self.pointer, scope="global", data_alignment=8)


class _Instrumenter:
    """State of one rewriting; ``slots`` are those that get a place in memory."""

    def __init__(self, program: ThreadProgram, slots: tuple[Slot, ...], *, timeline: bool) -> None:
        self.program = program
        self.slots = {slot: number for number, slot in enumerate(slots)}
        self.kind = program.target.kind
        self.containers = {item.id for item in program.operations if item.kind in _CONTAINERS}
        self.leaves = {item.id for item in program.operations if item.kind in _LEAVES}
        self.operation = 0
        self.written = False  # the figures have been written: what comes now is not timed
        self.allocations: list[Any] = []
        self.sums: dict[Slot, Any] = {}
        self.counters: list[Any] = []
        self.uses: dict[Slot, list[Any]] = {}  # in the role at hand: the counter of each place, None for one run once
        self.indices: dict[str, Any] = {}  # variables of block and thread by their tag
        variables = {item.name: item for item in program.function.params if item.name in program.sizes}
        self.grid = [expression_of(extent, variables) for extent in program.extents or program.grid]
        self.blocks = None if program.sizes else prod(program.grid)
        self.stride = None if self.blocks is None else stride_of(self.blocks)
        rows = MOST_BLOCKS if self.blocks is None or self.stride is None else -(-self.blocks // self.stride)
        self.workers = 1 if self.kind == "cpu" else -(-program.threads // program.target.warp_size)
        self.width = 1 + 2 * len(slots)
        self.figures = _Hidden("tl_cycles", (rows, self.workers, self.width), program)
        self.events = _Hidden("tl_events", (self.workers, len(slots), EVENTS, 2), program)
        self.recorded: dict[Slot, Any] | None = {} if timeline else None  # of each slot how many events there were
        self.before, self.now = self.register("tl_before"), self.register("tl_now")
        self.start, self.end = self.register("tl_start"), self.register("tl_end")

    # -- the way in --------------------------------------------------------------------------------------------------

    def enter(self, statement: Any) -> Any:
        """Down to the work of a block."""
        if isinstance(statement, tirx.SeqStmt) and _launches(statement.seq[-1], self.kind):
            return sequence([*statement.seq[:-1], self.enter(statement.seq[-1])])
        if isinstance(statement, tirx.AttrStmt) and statement.attr_key == "thread_extent":
            self.indices[str(statement.node.thread_tag)] = statement.node.var
            return tirx.AttrStmt(statement.node, statement.attr_key, statement.value, self.enter(statement.body))
        if self.kind == "cpu" and isinstance(statement, tirx.For):
            self.indices["block"] = statement.loop_var
            body = self.block(statement.body)
            loop = tirx.For(statement.loop_var, statement.min, statement.extent, statement.kind, body)
            return sequence([*self.allocations, loop])
        body = self.block(statement)
        return sequence([*self.allocations, *flat(body)])

    def block(self, body: Any) -> Any:
        """The work of a block, with what is set up before and written after it."""
        statements = self.statements(flat(body), once=True)
        if not self.written:
            statements += self.write()
        setup = [_store(register, tirx.const(0, "int64")) for register in self.sums.values()]
        small = [*self.counters, *(self.recorded or {}).values()]
        setup += [_store(register, tirx.const(0, "int32")) for register in small]
        return sequence([*setup, *self.read(self.start), *statements])

    # -- statements --------------------------------------------------------------------------------------------------

    def statements(self, statements: list[Any], *, once: bool = False) -> list[Any]:
        """The statements of one body, each stretch of the same operation and phase timed; a counter says how often it ran,
        unless that is ``once``."""
        out: list[Any] = []
        held: list[Any] = []  # markers that wait for the statement behind them: the read belongs to what it ends
        current: Slot | None = None
        counter: Any = None

        def turn(slot: Slot | None) -> None:
            nonlocal current, counter
            if slot != current:
                if current is not None:
                    out.extend(self.read(self.now))
                    total = self.sum(current)
                    out.append(_store(total, _value(total) + (_value(self.now) - _value(self.before))))
                    out.extend(self.event(current))
                    if slot is not None:
                        out.append(_store(self.before, _value(self.now)))
                        out.extend(held)
                        held.clear()
                elif slot is not None:
                    out.extend(held)
                    held.clear()
                    out.extend(self.read(self.before))
                if slot is not None:
                    if counter is None and not once:
                        counter = self.register(f"tl_count_{len(self.counters)}", "int32")
                        self.counters.append(counter)
                    self.uses.setdefault(slot, []).append(counter)
                current = slot
            out.extend(held)
            held.clear()

        for statement in statements:
            marked = operation_of(statement)
            if marked is not None:
                self.operation = marked
                held.append(statement)
            elif self.written or is_trivial(statement):
                out.extend(held)
                held.clear()
                out.append(statement)
            elif self.is_structure(statement):
                turn(None)
                out.append(self.structure(statement))
            else:
                turn(self.slot(statement))
                out.append(statement)
                self.operation = [self.operation, *operations_in(statement)][-1]
        turn(None)
        if counter is not None:
            out.insert(0, _store(counter, _value(counter) + 1))
        return out

    def slot(self, statement: Any) -> Slot | None:
        """Where the cycles of a leaf statement go."""
        phase = phase_of(statement)
        if phase == "run" and self.operation in self.containers:
            return None
        return Slot(self.operation, phase)

    def is_structure(self, statement: Any) -> bool:
        """Whether other operations stand inside, and are not part of this one.

        On a CPU an operation may bring data of others on the way, in the midst of its own loops.  On a GPU operations are parts
        of others in straight lines only: a loop with several is one of the program's, whatever stands in front of it.
        """
        if self.operation in self.leaves and (self.kind == "cpu" or not isinstance(statement, (tirx.For, tirx.While))):
            return False
        return any(number != self.operation for number in operations_in(statement))

    def structure(self, statement: Any) -> Any:
        """A loop or branch with its bodies timed."""
        if isinstance(statement, tirx.For):
            body = sequence(self.statements(flat(statement.body)))
            return tirx.For(statement.loop_var, statement.min, statement.extent, statement.kind, body)
        if isinstance(statement, tirx.While):
            return tirx.While(statement.condition, sequence(self.statements(flat(statement.body))))
        if isinstance(statement, tirx.AttrStmt):
            body = sequence(self.statements(flat(statement.body)))
            return tirx.AttrStmt(statement.node, statement.attr_key, statement.value, body)
        if isinstance(statement, tirx.IfThenElse):
            roles = self.program.consumer_threads is not None and parts_roles(statement)
            return self.roles(statement) if roles else self.branch(statement)
        raise TypeError(f"operations inside {type(statement).__name__}")

    def branch(self, statement: Any) -> Any:
        """Both ways."""
        then = sequence(self.statements(flat(statement.then_case)))
        if statement.else_case is None:
            return tirx.IfThenElse(statement.condition, then, None)
        return tirx.IfThenElse(statement.condition, then, sequence(self.statements(flat(statement.else_case))))

    def roles(self, statement: Any) -> Any:
        """Producer and consumers, each of which writes what it measured."""
        before = {slot: list(uses) for slot, uses in self.uses.items()}
        then = sequence([*self.statements(flat(statement.then_case), once=True), *self.write()])
        self.uses = before
        otherwise = sequence([*self.statements(flat(statement.else_case), once=True), *self.write()])
        self.written = True
        return tirx.IfThenElse(statement.condition, then, otherwise)

    # -- registers, clock, result ------------------------------------------------------------------------------------

    def register(self, name: str, dtype: str = "int64") -> Any:
        """A register of the thread."""
        buffer = tirx.decl_buffer((1,), dtype, name, scope="local", data_alignment=8)
        self.allocations.append(tirx.AllocBuffer(buffer))
        return buffer

    def sum(self, slot: Slot) -> Any:
        """The register of a slot."""
        if slot not in self.sums:
            self.sums[slot] = self.register(f"tl_{slot.phase}_{slot.operation}")
        return self.sums[slot]

    def read(self, register: Any) -> list[Any]:
        """Statements that put the clock into a register; nothing may cross them."""
        if self.kind == "cuda":
            return [tirx.Evaluate(tirx.call_extern("void", CLOCK, _value(register)))]
        if self.kind == "cpu":
            return [_store(register, tirx.call_llvm_intrin("int64", CLOCK_CPU))]
        mask = tirx.IntImm("int32", 0)
        fence = tirx.Evaluate(tirx.call_llvm_intrin("int32", "llvm.amdgcn.sched.barrier", mask))
        return [fence, _store(register, tirx.call_llvm_intrin("int64", CLOCK_AMD)), fence]

    def write(self) -> list[Any]:
        """The figures of the region at hand, from one lane of each warp."""
        block = self.linear_block()
        stride: Any = self.stride
        if stride is None:  # of this launch
            most = tirx.IntImm("int32", MOST_BLOCKS)
            blocks = self.grid[0] * self.grid[1] * self.grid[2]
            stride = tirx.Max(tirx.IntImm("int32", 1), tirx.floordiv(blocks + (MOST_BLOCKS - 1), most))
        row = block if self.stride == 1 else tirx.floordiv(block, stride)
        base = (row * self.workers + self.worker()) * self.width
        buffer = self.figures.buffer
        stores = [tirx.BufferStore(buffer, _value(self.end) - _value(self.start), [base])]
        for slot, uses in self.uses.items():
            place = base + (1 + 2 * self.slots.get(slot, 0))
            count: Any = tirx.const(sum(each is None for each in uses), "int64")
            for each in uses:
                if each is not None:
                    count = count + tirx.Cast("int64", _value(each))
            total = _value(self.sum(slot))
            stores += [tirx.BufferStore(buffer, total, [place]), tirx.BufferStore(buffer, count, [place + 1])]
        condition = self.first_lane()
        if self.stride != 1:
            sampled = tirx.EQ(tirx.floormod(block, stride), 0)
            condition = sampled if condition is None else tirx.And(condition, sampled)
        marker = tirx.Evaluate(tirx.call_extern("void", OPERATION_MARKER, 0))
        body = sequence(stores)
        guarded = body if condition is None else tirx.IfThenElse(condition, body, None)
        return [marker, *self.read(self.end), guarded]

    def worker(self) -> Any:
        """Number of the warp in its block."""
        thread = self.indices.get("threadIdx.x")
        return tirx.IntImm("int32", 0) if thread is None else tirx.floordiv(thread, self.program.target.warp_size)

    def first_lane(self) -> Any:
        """Condition of one thread of each warp; None on a CPU."""
        thread = self.indices.get("threadIdx.x")
        return None if thread is None else tirx.EQ(tirx.floormod(thread, self.program.target.warp_size), 0)

    def event(self, slot: Slot) -> list[Any]:
        """In a timeline, begin and end of the stretch that has just ended, if it is among the first ones of the first block."""
        if self.recorded is None:
            return []
        if slot not in self.recorded:
            self.recorded[slot] = self.register(f"tl_event_{slot.phase}_{slot.operation}", "int32")
        number = self.recorded[slot]
        place = ((self.worker() * len(self.slots) + self.slots.get(slot, 0)) * EVENTS + _value(number)) * 2
        stores = [
            tirx.BufferStore(self.events.buffer, _value(clock), [place + offset])
            for offset, clock in enumerate((self.before, self.now))
        ]
        condition = tirx.And(tirx.LT(_value(number), EVENTS), tirx.EQ(self.linear_block(), 0))
        lane = self.first_lane()
        if lane is not None:
            condition = tirx.And(condition, lane)
        return [tirx.IfThenElse(condition, sequence(stores), None), _store(number, _value(number) + 1)]

    def linear_block(self) -> Any:
        """Number of the block, x fastest."""
        if "block" in self.indices:
            return self.indices["block"]
        total: Any = 0
        for axis, extent in reversed(list(zip("xyz", self.grid, strict=True))):
            variable = self.indices.get(f"blockIdx.{axis}")
            total = total * extent + (0 if variable is None else variable)
        return total


def _launches(statement: Any, kind: str) -> bool:
    if kind == "cpu":
        return isinstance(statement, tirx.For)
    return isinstance(statement, tirx.AttrStmt) and statement.attr_key == "thread_extent"


def _store(register: Any, value: Any) -> Any:
    return tirx.BufferStore(register, value, [tirx.IntImm("int32", 0)])


def _value(register: Any) -> Any:
    return register[tirx.IntImm("int32", 0)]
