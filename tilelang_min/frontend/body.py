"""The body of a kernel: loops, branches, nests and assignments.  Tile statements are in ``statements.py``."""

from __future__ import annotations

import ast
from typing import Any

from tvm import tirx

from tilelang_min.errors import TileLangError
from tilelang_min.frontend.evaluate import REPORT, first_line
from tilelang_min.frontend.local_tiles import FragmentElement
from tilelang_min.frontend.macros import inline
from tilelang_min.frontend.statements import StatementParser
from tilelang_min.frontend.values import Access, Variable, as_expression, constant, convert, dtype_of, is_expression
from tilelang_min.ir.expressions import bind_range, simplify
from tilelang_min.ir.nodes import Assign, Buffer, Conditional, Loop, Parallel, Statement
from tilelang_min.language import Construct, Macro

_LOOP_HINTS = {
    "pipelined": ("order", "stage", "sync", "group", "annotations"),
    "serial": ("annotations",),
    "unroll": ("annotations", "explicit", "unroll_factor"),
    "parallel": ("annotations", "coalesced_width", "prefer_async"),
}
"""Options of loops by which TileLang's compiler is told how, and that change nothing of what is computed."""

_MOST_STATEMENTS = 512
"""Statements of one nest, with the loops in it written out."""


class BodyParser(StatementParser):
    """Control flow and assignments of one kernel."""

    def block(self, statements: list[ast.stmt]) -> tuple[Statement, ...]:
        """All statements of one indented block."""
        out: list[Statement] = []
        for statement in statements:
            self.statement(statement, out)
        return tuple(out)

    def statement(self, node: ast.stmt, out: list[Statement]) -> None:
        """One statement.  Raises LanguageError at it, whatever is wrong."""
        try:
            self._statement(node, out)
        except TileLangError:
            raise
        except Exception as error:  # what TVM refuses
            raise self.error(node, f"this statement cannot be compiled: {first_line(error)}", REPORT) from error

    def _statement(self, node: ast.stmt, out: list[Statement]) -> None:
        if isinstance(node, ast.Pass):
            return
        if isinstance(node, ast.For):
            self.loop(node, out)
        elif isinstance(node, ast.If):
            self.conditional(node, out)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            self.assignment(node, out)
        elif isinstance(node, ast.AugAssign):
            self.augmented(node, out)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = self.evaluator.raw(node.value.func)
            if isinstance(function, Macro):
                inline(self, node.value, function, out)
                return
            made = self.call(node.value)
            if made is not None:
                out.append(made)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        else:
            raise self.error(
                node,
                f"{type(node).__name__} statements are not part of the tile language",
                "kernels consist of T.* statements, assignments, for loops and if",
            )

    def conditional(self, node: ast.If, out: list[Statement]) -> None:
        """``if``: decided now when it is a constant, otherwise a condition on block and loop indices."""
        condition = self.evaluator.condition(node.test)
        number = constant(condition)
        if number is not None:
            for statement in node.body if number else node.orelse:
                self.statement(statement, out)
            return
        condition = self.held(node.test, condition, out)
        self.note_reads(node.test, condition)
        operation = self.operation(node, "loop", f"if {self.source.segment(node.test)}", (), ())
        with self.inside(operation):
            out.append(Conditional(operation, condition, self.scoped(node.body), self.scoped(node.orelse)))

    def held(self, node: ast.expr, value: Any, out: list[Statement]) -> Any:
        """``value`` as the same number in all threads: what it reads from memory is kept in a register first."""
        used = [self.buffer_of(var) for var in self.reads(value)]
        scopes = {item.scope for item in used}
        if "fragment" in scopes:
            raise FragmentElement(
                "an element of a fragment belongs to one thread: threads would go different ways",
                location=self.source.location(node),
                remedy="use it inside T.Parallel, or T.copy the fragment into a shared tile",
                fragments=[item.location for item in used if item.scope == "fragment"],
            )
        if scopes <= {"local"}:
            return value
        register = self.buffer(node, self.unique("held"), (1,), dtype_of(value), "local")
        out.append(self.assign(node, register, (as_expression(0),), value, new=True))
        return register.var[as_expression(0)]

    def bound(self, node: ast.expr, value: Any, out: list[Statement]) -> Any:
        """A loop's bound as int32; one that memory or a variable holds is kept in a register that nothing changes."""
        if not is_expression(value):
            return value
        value = convert(value, "int32")
        if not self.reads(value):
            return value
        self.note_reads(node, value)
        kept = self.held(node, value, out)
        if kept is not value:
            return kept
        register = self.buffer(node, self.unique("bound"), (1,), "int32", "local")
        out.append(self.assign(node, register, (as_expression(0),), value, new=True))
        return register.var[as_expression(0)]

    def scoped(self, statements: list[ast.stmt]) -> tuple[Statement, ...]:
        """A block whose names end with it."""
        self.evaluator.frames.append({})
        try:
            return self.block(statements)
        finally:
            self.evaluator.frames.pop()

    def loop(self, node: ast.For, out: list[Statement]) -> None:
        """``for`` over T.Parallel, T.Pipelined, T.serial, T.unroll or range."""
        if node.orelse:
            raise self.error(node, "for ... else is not part of the tile language")
        call = node.iter
        function = self.evaluator.raw(call.func) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not (
            function is range or (isinstance(function, Construct) and function.kind == "loop")
        ):
            raise self.error(node.iter, "loops run over T.Parallel, T.Pipelined, T.serial, T.unroll or range")
        if isinstance(function, Construct) and function.name == "Parallel":
            out.append(self.parallel(node, call))
            return
        kind = (
            {"Pipelined": "pipelined", "unroll": "unroll", "vectorized": "unroll"}.get(function.name, "serial")
            if isinstance(function, Construct)
            else "serial"
        )
        stages = 1
        words: dict[str, ast.expr] = {}
        for keyword in call.keywords:
            if keyword.arg in ("start", "stop", "step") and function is not range:
                words[keyword.arg] = keyword.value
            elif keyword.arg == "num_stages" and kind == "pipelined":
                stages = self.evaluator.integer(keyword.value, "num_stages", 0)
            elif keyword.arg not in _LOOP_HINTS.get(kind, ()):
                raise self.error(call, f"this loop has no option {keyword.arg!r}", "num_stages belongs to T.Pipelined")
        start, stop, step = self.bounds(call, words)
        for bound in (start, stop):
            if isinstance(bound, float) or (is_expression(bound) and not dtype_of(bound).startswith(("int", "uint"))):
                raise self.error(call, "loop bounds are integers", "use // instead of /, or T.cast(x, 'int32')")
        start, stop = (self.bound(call, bound, out) for bound in (start, stop))
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "this loop has one variable")
        variable = tirx.Var(self.unique(_ascii(node.target.id)), "int32")
        label = f"for {node.target.id} in {self.source.segment(call)}"
        operation = self.operation(node, "loop", label, (), ())
        first, extent = start, simplify(stop - start if step == 1 else (stop - start + (step - 1)) // step)
        if step != 1:  # the loop counts iterations
            start = 0
        if not is_expression(extent):
            extent = max(0, extent)
        for bound in (start, stop, extent):
            number = constant(bound)
            if number is not None and not -(2**31) <= number < 2**31:
                raise self.error(call, f"{number:,} does not fit a loop variable; they have 32 bits", "nest two loops")
        bind_range(self.analyzer, variable, start, extent)
        self.evaluator.frames.append({node.target.id: variable if step == 1 else first + variable * step})
        with self.inside(operation):
            body = self.block(node.body)
        self.evaluator.frames.pop()
        out.append(Loop(operation, variable, start, extent, kind, body, max(1, stages)))

    def bounds(self, call: ast.Call, words: dict[str, ast.expr]) -> tuple[Any, Any, int]:
        """Start, stop and step of a loop, by place or by name."""
        values = [self.evaluator.value(argument) for argument in call.args]
        named = {name: self.evaluator.value(node) for name, node in words.items()}
        places = ("stop",) if len(values) == 1 and "stop" not in named else ("start", "stop", "step")
        if len(values) > len(places) or set(places[: len(values)]) & set(named):
            raise self.error(call, f"a loop takes an extent, or a start, a stop and a step; {len(values)} values given")
        named |= dict(zip(places, values, strict=False))
        if "stop" not in named:
            raise self.error(call, "this loop has no extent", "give it one: T.serial(n)")
        step = constant(named.get("step", 1))
        if not isinstance(step, int) or isinstance(step, bool) or step < 1:
            raise self.error(
                call,
                "the step of a loop is a positive integer known at compile time",
                "count upwards, and turn the index round inside: n - 1 - i",
            )
        return named.get("start", 0), named["stop"], step

    def parallel(self, node: ast.For, call: ast.Call) -> Parallel:
        """An element-wise nest; a loop over T.vectorized that is all of its body adds a dimension."""
        extents = tuple(self.evaluator.integer(argument, "an extent of T.Parallel", 1) for argument in call.args)
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        inner = self.vectorized(node)
        if inner is not None:
            extents = (*extents, self.evaluator.integer(inner.iter.args[0], "an extent of T.vectorized", 1))  # type: ignore[attr-defined]
            targets = [*targets, inner.target]
        for keyword in call.keywords:
            if keyword.arg not in _LOOP_HINTS["parallel"]:
                raise self.error(
                    call, f"T.Parallel has no option {keyword.arg!r}", "write for i, j in T.Parallel(m, n)"
                )
        if len(targets) != len(extents):
            raise self.error(
                node,
                f"T.Parallel has {counted(len(extents), 'extent')}, but the loop has {counted(len(targets), 'variable')}",
                "write for i, j in T.Parallel(m, n)",
            )
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(names) != len(targets):
            raise self.error(node.target, "loop variables are plain names")
        variables = tuple(tirx.Var(self.unique(_ascii(name)), "int32") for name in names)
        operation = self.operation(node, "parallel", f"for {', '.join(names)} in {self.source.segment(call)}", (), ())
        self.evaluator.frames.append(dict(zip(names, variables, strict=True)))
        body: list[Statement] = []
        with self.inside(operation):
            self.parallel_operation = operation
            for statement in (node if inner is None else inner).body:
                self.parallel_statement(statement, body)
            self.parallel_operation = None
        self.evaluator.frames.pop()
        assigns = tuple(statement for statement in body if isinstance(statement, Assign))
        reads = {
            self.buffer_of(var).name
            for item in assigns
            for value in (item.value, *item.indices)
            for var in self.reads(value)
        }
        writes = {item.buffer.name for item in assigns}
        reads |= {item.buffer.name for item in assigns if item.atomic}
        self.set_buffers(operation, tuple(sorted(reads)), tuple(sorted(writes)))
        return Parallel(operation, variables, extents, assigns)

    def vectorized(self, node: ast.For) -> ast.For | None:
        """The loop over T.vectorized(n) that is the whole body of a nest, or None."""
        inner = node.body[0]
        if len(node.body) > 1 or not isinstance(inner, ast.For) or not isinstance(inner.iter, ast.Call):
            return None
        function = self.evaluator.raw(inner.iter.func)
        if not isinstance(function, Construct) or function.name != "vectorized":
            return None
        if len(inner.iter.args) != 1 or inner.iter.keywords:
            raise self.error(inner.iter, "T.vectorized takes one extent", f"write {function.signature}")
        return inner

    def parallel_statement(self, node: ast.stmt, body: list[Statement]) -> None:
        """One statement of an element-wise nest: an assignment, or an ``if`` that is decided now."""
        if isinstance(node, ast.For):
            self.written_out(node, body)
            return
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant) and not self.updates(node.value):
            raise self.error(node, "tile statements cannot stand inside T.Parallel", "move it out of the nest")
        if isinstance(node, ast.If):
            condition = self.evaluator.condition(node.test)
            chosen = constant(condition)
            if chosen is None:
                self.guarded(node, condition, body)
                return
            for statement in node.body if chosen else node.orelse:
                self.parallel_statement(statement, body)
            return
        self.statement(node, body)

    def guarded(self, node: ast.If, condition: Any, body: list[Statement]) -> None:
        """An ``if`` of each point of a nest.  What it asks is asked once, in front of what the branches change."""
        condition = convert(condition, "bool")
        if self.reads(condition):
            register = self.buffer(node.test, self.unique("held"), (1,), "bool", "local")
            body.append(self.assign(node.test, register, (as_expression(0),), condition, new=True))
            condition = register.var[as_expression(0)]
            self.note_reads(node.test, condition)
        for holds, statements in ((condition, node.body), (tirx.Not(condition), node.orelse)):
            self.conditions.append(holds)
            self.evaluator.frames.append({})
            try:
                for statement in statements:
                    self.parallel_statement(statement, body)
            finally:
                self.evaluator.frames.pop()
                self.conditions.pop()

    def written_out(self, node: ast.For, body: list[Statement]) -> None:
        """A loop inside a nest: its statements once for each iteration."""
        call = node.iter
        function = self.evaluator.raw(call.func) if isinstance(call, ast.Call) else None
        known = function is range or (
            isinstance(function, Construct) and function.name in ("serial", "unroll", "vectorized")
        )
        if not isinstance(call, ast.Call) or not known or node.orelse or not isinstance(node.target, ast.Name):
            raise self.error(
                node,
                "inside T.Parallel loops run over T.serial, T.unroll, T.vectorized or range",
                "put other loops around the nest",
            )
        words = {str(word.arg): word.value for word in call.keywords if word.arg in ("start", "stop", "step")}
        start, stop, step = self.bounds(call, words)
        first, last = constant(start), constant(stop)
        if not isinstance(first, int) or not isinstance(last, int):
            raise self.error(
                call,
                "a loop inside T.Parallel is written out: its bounds are known at compile time",
                "put the loop around the nest, or run to the largest bound and guard its body with if",
            )
        for number in range(first, last, step):
            self.evaluator.frames.append({node.target.id: number})
            try:
                for statement in node.body:
                    self.parallel_statement(statement, body)
            finally:
                self.evaluator.frames.pop()
            if len(body) > _MOST_STATEMENTS:
                raise self.error(
                    node,
                    f"the loops of this nest written out are more than {_MOST_STATEMENTS} statements",
                    "put the loop around the nest",
                )

    def updates(self, node: ast.expr) -> bool:
        """Whether an expression is the call of an atomic."""
        function = self.evaluator.raw(node.func) if isinstance(node, ast.Call) else None
        return isinstance(function, Construct) and function.name.startswith("atomic_")

    # -- assignments -----------------------------------------------------------------------------------------------

    def assignment(self, node: ast.Assign | ast.AnnAssign, out: list[Statement]) -> None:
        """``name = ...``, ``tile = T.alloc_*``, ``tile[i, j] = value``."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is None or len(targets) != 1:
            raise self.error(node, "an assignment has one target and a value")
        target = targets[0]
        if isinstance(target, ast.Subscript):
            access = self.evaluator.raw(target)
            self.store(node, access, self.evaluator.value(node.value), out)
        elif isinstance(target, ast.Name):
            self.bind_name(node, out)
        elif (
            isinstance(target, ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(target.elts) == len(node.value.elts)
        ):
            for name, value in zip(target.elts, node.value.elts, strict=True):
                self.assignment(ast.copy_location(ast.Assign(targets=[name], value=value), node), out)
        elif isinstance(target, ast.Tuple) and all(isinstance(name, ast.Name) for name in target.elts):
            self.unpack(node, target, out)
        else:
            raise self.error(node, "this kind of assignment is not part of the tile language")

    def unpack(self, node: ast.Assign | ast.AnnAssign, target: ast.Tuple, out: list[Statement]) -> None:
        """``M, N = A.shape``: names for the parts of something that is known now."""
        assert node.value is not None
        values = self.evaluator.raw(node.value)
        if not isinstance(values, (tuple, list)):
            raise self.error(
                node.value, "this has no parts that names could be given to", "write a tuple, or the shape of a tile"
            )
        if len(values) != len(target.elts):
            raise self.error(
                node, f"{counted(len(target.elts), 'name')} for {counted(len(values), 'part')}", "name each part once"
            )
        for name, value in zip(target.elts, values, strict=True):
            part = ast.copy_location(ast.Constant(value), node.value)
            self.assignment(ast.copy_location(ast.Assign(targets=[name], value=part), node), out)

    def augmented(self, node: ast.AugAssign, out: list[Statement]) -> None:
        """``tile[i, j] += value``, ``variable += value``."""
        if isinstance(node.target, ast.Name) and self.variable(node.target.id) is not None:
            whole = ast.copy_location(ast.BinOp(left=node.target, op=node.op, right=node.value), node)
            self.bind_name(ast.copy_location(ast.Assign(targets=[node.target], value=whole), node), out)
            return
        if not isinstance(node.target, ast.Subscript):
            raise self.error(
                node,
                "names are bound once and cannot be updated",
                "make it with T.alloc_var(dtype), or update an element: x[0] += value",
            )
        operation = ast.copy_location(ast.BinOp(left=node.target, op=node.op, right=node.value), node)
        self.store(node, self.evaluator.raw(node.target), self.evaluator.value(operation), out)

    def store(self, node: ast.stmt, access: Any, value: Any, out: list[Statement]) -> None:
        """One element assignment, inside or outside of T.Parallel."""
        if not isinstance(access, Access) or access.has_slice:
            raise self.error(
                node, "one element is assigned at a time", "use T.copy or T.fill for regions, or a T.Parallel nest"
            )
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
        out.append(self.assign(node, access.buffer, self.evaluator.element(target, access), value))

    def variable(self, name: str) -> Variable | None:
        """What ``T.alloc_var`` bound to a name, if it did."""
        for frame in reversed(self.evaluator.frames):
            if name in frame:
                value = frame[name]
                return value if isinstance(value, Variable) else None
        return None

    def allocate_variable(self, node: ast.Call, function: Construct, name: str, out: list[Statement]) -> Variable:
        """``T.alloc_var(dtype, init=None)``."""
        given = self.arguments(node, function, ("dtype", "init"), 1)
        buffer = self.buffer(node, self.unique(name), (1,), self.evaluator.dtype(given["dtype"]), "local")
        if "init" in given:
            first = self.evaluator.value(given["init"])
            out.append(self.assign(node, buffer, (as_expression(0),), first, new=True))
        return Variable(buffer)

    def bind_name(self, node: ast.Assign | ast.AnnAssign, out: list[Statement]) -> None:
        """Bind a name: a new tile, a constant, an expression; a value read from tiles is kept in a register."""
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name) or node.value is None:
            raise self.error(node, "an assignment has one name and a value")
        changed = self.variable(target.id)
        if changed is not None:
            self.store(node, Access(changed.buffer, (0,)), self.evaluator.value(node.value), out)
            return
        known = next((frame[target.id] for frame in reversed(self.evaluator.frames[1:]) if target.id in frame), None)
        if isinstance(known, Buffer) and known.scope == "global":
            raise self.error(
                node,
                f"{target.id!r} is a tensor of the kernel and cannot be bound again",
                f"assign to its elements ({target.id}[i] = ...), or use another name",
            )
        for frame in self.evaluator.frames[1:-1]:
            if target.id in frame and len(self.evaluator.frames) > 2:
                raise self.error(
                    node,
                    f"{target.id!r} is bound outside this block and cannot be bound again",
                    f"use another name, or keep a changing value in a tile: {target.id} = T.alloc_var(dtype)",
                )
        if isinstance(node.value, ast.Call):
            function = self.evaluator.raw(node.value.func)
            if isinstance(function, Construct) and function.kind == "variable":
                made = self.allocate_variable(node.value, function, _ascii(target.id), out)
                self.evaluator.bind(target.id, made)
                return
            if isinstance(function, Construct) and function.kind == "alloc":
                self.evaluator.bind(target.id, self.allocate(node.value, function, _ascii(target.id)))
                return
        value = self.evaluator.raw(node.value)
        if isinstance(value, Access) and not value.has_slice:
            value = self.evaluator.load(node, value)
        if is_expression(value) and self.reads(value):
            register = self.buffer(node, self.unique(_ascii(target.id)), (1,), dtype_of(value), "local")
            out.append(self.assign(node, register, (as_expression(0),), value, new=True))
            value = register.var[as_expression(0)]
        self.evaluator.bind(target.id, value)


def _ascii(name: str) -> str:
    """A name for generated code that resembles the author's."""
    return "".join(letter if letter.isascii() else "_" for letter in name)


def counted(number: int, word: str) -> str:
    """``1 name``, ``2 names``."""
    return f"{number} {word}" + ("" if number == 1 else "s")
