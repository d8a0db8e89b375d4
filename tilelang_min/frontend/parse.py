"""Statements of a kernel: Python syntax -> tile program."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from tvm import tirx

from tilelang_min.errors import LanguageError, ShapeError
from tilelang_min.frontend.evaluate import Evaluator, normal_dtype
from tilelang_min.frontend.local_tiles import check_local_tiles
from tilelang_min.frontend.source import KernelSource, read_source
from tilelang_min.frontend.statements import StatementParser
from tilelang_min.frontend.values import Access, as_expression, constant, dtype_of, is_expression, plain_number
from tilelang_min.ir.expressions import bind_range, simplify
from tilelang_min.ir.nodes import Assign, Buffer, Conditional, Loop, Parallel, Statement, TileProgram
from tilelang_min.language import Construct, PrimFunc, Tensor


def parse(kernel: PrimFunc) -> TileProgram:
    """The tile program of ``kernel``.

    Raises LanguageError (or ShapeError) pointing at the author's line for everything that is not part of the language.
    """
    return KernelParser(kernel).program()


class KernelParser(StatementParser):
    """Reads the body of one kernel; tile statements are in :class:`StatementParser`, control flow here."""

    def __init__(self, kernel: PrimFunc) -> None:
        source = read_source(kernel.function)
        super().__init__(source, Evaluator(source, _surroundings(kernel)))
        self.kernel = kernel
        self.grid: tuple[int, int, int] = (1, 1, 1)
        self.threads = 128
        self.block_variables = tuple(tirx.Var(name, "int32") for name in ("bx", "by", "bz"))

    # -- the function ----------------------------------------------------------------------------------------------

    def program(self) -> TileProgram:
        """Parameters, launch and body of the kernel."""
        function = self.source.function
        self.evaluator.frames.append({})
        given = function.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
            raise self.error(
                function, "a kernel has plain positional parameters only", "annotate each with T.Tensor(shape, dtype)"
            )
        for node, name in ((function, self.kernel.name), *((item, item.arg) for item in given.args)):
            if not name.isascii():
                raise self.error(
                    node,
                    f"the name {name!r} has characters that machine code cannot have",
                    "name kernels and their parameters with letters from a to z, digits and _",
                )
        parameters = tuple(self.parameter(argument) for argument in given.args)
        self.operation(function, "kernel", f"{self.kernel.name}", (), tuple(item.name for item in parameters))
        statements = list(function.body)
        if statements and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant):
            statements = statements[1:]
        body: tuple[Statement, ...] | None = None
        for statement in statements:
            if isinstance(statement, ast.With):
                if body is not None:
                    raise self.error(
                        statement, "a kernel has one `with T.Kernel(...)` block", "write a second @T.prim_func"
                    )
                body = self.launch(statement)
            elif body is None and isinstance(statement, ast.Assign):
                made: list[Statement] = []
                self.assignment(statement, made)
                if made:
                    raise self.error(
                        statement, "tiles are read and written inside `with T.Kernel(...)`", "move this line into it"
                    )
            elif not isinstance(statement, ast.Pass):
                raise self.error(
                    statement,
                    "statements of a kernel stand inside `with T.Kernel(...)`",
                    "move this line into the with block; only names of constants may stand before it",
                )
        if body is None:
            raise self.error(
                function,
                "this kernel launches nothing",
                "add `with T.Kernel(grid_x, grid_y, threads=128) as (bx, by):`",
            )
        check_local_tiles(self.local_uses)
        text = "\n".join(self.source.lines)
        return TileProgram(
            name=self.kernel.name,
            parameters=parameters,
            grid=self.grid,
            threads=self.threads,
            block_variables=(self.block_variables[0], self.block_variables[1], self.block_variables[2]),
            buffers=tuple(self.buffers),
            body=body,
            operations=tuple(self.operations),
            location=self.source.location(function),
            sources={self.source.file: _whole_file(self.source, text)},
        )

    def parameter(self, argument: ast.arg) -> Buffer:
        """One tensor parameter from its annotation (a value, or text under ``from __future__ import annotations``)."""
        annotation = inspect.get_annotations(self.kernel.function).get(argument.arg)
        if argument.annotation is None:
            raise self.error(
                argument, f"parameter {argument.arg!r} has no annotation", "write name: T.Tensor((M, N), 'float32')"
            )
        node = argument.annotation
        if isinstance(node, ast.Constant) and isinstance(node.value, str):  # quotes around one annotation
            node = self.quoted(node, node.value)
        if not isinstance(annotation, Tensor):
            annotation = self.evaluator.raw(node)
        if not isinstance(annotation, Tensor):
            raise self.error(
                argument.annotation,
                f"parameter {argument.arg!r} must be a T.Tensor",
                "write T.Tensor((M, N), 'float32')",
            )
        extents = annotation.shape if isinstance(annotation.shape, (tuple, list)) else (annotation.shape,)
        shape: list[int] = []
        for given in extents:
            extent = plain_number(given)
            if not isinstance(extent, int) or isinstance(extent, bool) or extent <= 0:
                raise self.error(
                    argument.annotation,
                    f"dimension {given!r} of {argument.arg!r} is not a positive integer",
                    "the arguments of a kernel's factory are plain integers",
                    ShapeError,
                )
            shape.append(extent)
        if not shape:
            raise self.error(argument.annotation, f"{argument.arg!r} has no dimensions", "write (1,) for one element")
        dtype = normal_dtype(annotation.dtype)
        if dtype is None:
            raise self.error(
                argument.annotation, f"{annotation.dtype!r} is not a supported data type", "use 'float16' or 'float32'"
            )
        elements = 1
        for extent in shape:
            elements *= extent
        if elements >= 2**31:
            raise self.error(
                argument.annotation, f"{argument.arg!r} has {elements} elements; indices are 32-bit", "split the tensor"
            )
        return self.buffer(argument, argument.arg, tuple(shape), dtype, "global")

    def quoted(self, node: ast.expr, text: str) -> ast.expr:
        """The expression in quotes, every part of it at the place of the quotes."""
        try:
            tree = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise self.error(node, f"this annotation is no expression: {error.msg}") from error
        for part in ast.walk(tree):
            ast.copy_location(part, node)
        return tree

    def launch(self, statement: ast.With) -> tuple[Statement, ...]:
        """``with T.Kernel(...) as (bx, by):``."""
        if len(statement.items) != 1:
            raise self.error(statement, "`with T.Kernel(...)` stands alone", "open one thing a with statement")
        item = statement.items[0]
        call = item.context_expr
        target = self.evaluator.raw(call.func) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not isinstance(target, Construct) or target.name != "Kernel":
            raise self.error(statement, "only `with T.Kernel(...)` is part of the tile language")
        grid = [self.evaluator.integer(argument, "a grid dimension", 1) for argument in call.args]
        if not 1 <= len(grid) <= 3:
            raise self.error(call, f"a grid has one to three dimensions, {len(grid)} given")
        for keyword in call.keywords:
            if keyword.arg != "threads":
                raise self.error(call, f"T.Kernel has no option {keyword.arg!r}", "write T.Kernel(gx, gy, threads=128)")
            self.threads = self.evaluator.integer(keyword.value, "threads", 1)
        self.grid = (grid[0], grid[1] if len(grid) > 1 else 1, grid[2] if len(grid) > 2 else 1)
        names = item.optional_vars
        elements = names.elts if isinstance(names, ast.Tuple) else ([names] if names is not None else [])
        if len(elements) != len(grid) and names is not None:
            raise self.error(
                names, f"the grid has {_count(len(grid), 'dimension')}, but {_count(len(elements), 'name')} given"
            )
        for variable, extent in zip(self.block_variables, grid, strict=False):
            bind_range(self.analyzer, variable, 0, extent)
        for element, variable, extent in zip(elements, self.block_variables, grid, strict=False):
            if not isinstance(element, ast.Name):
                raise self.error(element, "block indices are plain names")
            # A grid dimension of one block has index 0: expressions get simpler, and no bound check is needed.
            self.evaluator.bind(element.id, variable if extent > 1 else 0)
        return self.block(statement.body)

    # -- statements ------------------------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> tuple[Statement, ...]:
        """All statements of one indented block."""
        out: list[Statement] = []
        for statement in statements:
            self.statement(statement, out)
        return tuple(out)

    def statement(self, node: ast.stmt, out: list[Statement]) -> None:
        """One statement."""
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
            out.append(self.call(node.value))
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
        if self.reads(condition):
            raise self.error(
                node.test, "an if on tile elements differs between threads", "use T.if_then_else inside T.Parallel"
            )
        operation = self.operation(node, "loop", f"if {self.source.segment(node.test)}", (), ())
        with self.inside(operation):
            out.append(Conditional(operation, condition, self.scoped(node.body), self.scoped(node.orelse)))

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
            {"Pipelined": "pipelined", "unroll": "unroll"}.get(function.name, "serial")
            if isinstance(function, Construct)
            else "serial"
        )
        stages = 1
        for keyword in call.keywords:
            if kind != "pipelined" or keyword.arg != "num_stages":
                raise self.error(call, f"this loop has no option {keyword.arg!r}", "num_stages belongs to T.Pipelined")
            stages = self.evaluator.integer(keyword.value, "num_stages", 0)
        bounds = [self.evaluator.value(argument) for argument in call.args]
        if len(bounds) not in (1, 2):
            raise self.error(call, f"a loop takes an extent, or a start and a stop; {len(bounds)} values given")
        start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds
        for bound in (start, stop):
            symbolic = is_expression(bound)
            if isinstance(bound, float) or (symbolic and (self.reads(bound) or not dtype_of(bound).endswith("int32"))):
                raise self.error(
                    call,
                    "loop bounds are integers or expressions of block and loop indices",
                    "a bound that a tensor holds is not supported; take the largest and guard with T.if_then_else",
                )
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "this loop has one variable")
        variable = tirx.Var(self.unique(_ascii(node.target.id)), "int32")
        label = f"for {node.target.id} in {self.source.segment(call)}"
        operation = self.operation(node, "loop", label, (), ())
        extent = simplify(stop - start)
        if not is_expression(extent):
            extent = max(0, extent)
        bind_range(self.analyzer, variable, start, extent)
        self.evaluator.frames.append({node.target.id: variable})
        with self.inside(operation):
            body = self.block(node.body)
        self.evaluator.frames.pop()
        out.append(Loop(operation, variable, start, extent, kind, body, max(1, stages)))

    def parallel(self, node: ast.For, call: ast.Call) -> Parallel:
        """An element-wise nest."""
        extents = tuple(self.evaluator.integer(argument, "an extent of T.Parallel", 1) for argument in call.args)
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        if len(targets) != len(extents) or call.keywords:
            raise self.error(
                node,
                f"T.Parallel has {_count(len(extents), 'extent')}, but the loop has {_count(len(targets), 'variable')}",
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
            for statement in node.body:
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
        self.set_buffers(operation, tuple(sorted(reads)), tuple(sorted(writes)))
        return Parallel(operation, variables, extents, assigns)

    def parallel_statement(self, node: ast.stmt, body: list[Statement]) -> None:
        """One statement of an element-wise nest: an assignment, or an ``if`` that is decided now."""
        if isinstance(node, ast.For):
            raise self.error(node, "loops inside T.Parallel are not supported", "put the loop around T.Parallel")
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            raise self.error(node, "tile statements cannot stand inside T.Parallel", "move it out of the nest")
        if isinstance(node, ast.If):
            chosen = constant(self.evaluator.condition(node.test))
            if chosen is None:
                raise self.error(
                    node,
                    "if inside T.Parallel needs a condition known at compile time",
                    "use T.if_then_else(condition, a, b)",
                )
            for statement in node.body if chosen else node.orelse:
                self.parallel_statement(statement, body)
            return
        self.statement(node, body)

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
        else:
            raise self.error(node, "this kind of assignment is not part of the tile language")

    def augmented(self, node: ast.AugAssign, out: list[Statement]) -> None:
        """``tile[i, j] += value``."""
        if not isinstance(node.target, ast.Subscript):
            raise self.error(
                node, "names are bound once and cannot be updated", "update an element of a tile: x[0] += value"
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

    def bind_name(self, node: ast.Assign | ast.AnnAssign, out: list[Statement]) -> None:
        """Bind a name: a new tile, a constant, an expression; a value read from tiles is kept in a register."""
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name) or node.value is None:
            raise self.error(node, "an assignment has one name and a value")
        for frame in self.evaluator.frames[1:-1]:
            if target.id in frame and len(self.evaluator.frames) > 2:
                raise self.error(
                    node,
                    f"{target.id!r} is bound outside this block and cannot be bound again",
                    f"use another name, or keep a changing value in a tile: {target.id} = T.alloc_local((1,), dtype)",
                )
        if isinstance(node.value, ast.Call):
            function = self.evaluator.raw(node.value.func)
            if isinstance(function, Construct) and function.kind == "alloc":
                self.evaluator.bind(target.id, self.allocate(node.value, function, _ascii(target.id)))
                return
        value = self.evaluator.raw(node.value)
        if isinstance(value, Access) and not value.has_slice:
            value = self.evaluator.load(node, value)
        if is_expression(value) and self.reads(value):
            register = self.buffer(node, self.unique(_ascii(target.id)), (1,), str(value.ty.dtype), "local")
            out.append(self.assign(node, register, (as_expression(0),), value))
            value = register.var[as_expression(0)]
        self.evaluator.bind(target.id, value)


def _surroundings(kernel: PrimFunc) -> dict[str, Any]:
    """Every name the function sees: globals, the defining scope, closure cells."""
    names = dict(kernel.function.__globals__)
    names.update(kernel.scope)
    closure = inspect.getclosurevars(kernel.function)
    names.update(closure.nonlocals)
    return names


def _ascii(name: str) -> str:
    """A name for generated code that resembles the author's."""
    return "".join(letter if letter.isascii() else "_" for letter in name)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _whole_file(source: KernelSource, fallback: str) -> str:
    """Text of the author's file, so that reports can show it; the function alone when the file cannot be read."""
    try:
        with open(source.file, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError):
        return "\n" * (source.first_line - 1) + fallback


__all__ = ["KernelParser", "LanguageError", "parse"]
