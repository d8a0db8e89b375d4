"""A kernel's function: parameters, launch, and the tile program around its body."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from tvm import tirx

from tilelang_min.errors import LanguageError, ShapeError
from tilelang_min.frontend.body import BodyParser, counted
from tilelang_min.frontend.evaluate import NOT_HELD_REMEDY, Evaluator
from tilelang_min.frontend.local_tiles import FragmentElement, check_local_tiles
from tilelang_min.frontend.surroundings import surroundings, whole_file
from tilelang_min.frontend.values import constant, is_expression, plain_number
from tilelang_min.ir.expressions import bind_blocks, simplify
from tilelang_min.ir.nodes import Buffer, Expr, Statement, TileProgram
from tilelang_min.ir.sizes import text_of
from tilelang_min.language import DTYPES, Construct, Dynamic, PrimFunc, Tensor
from tilelang_min.language.jitted import is_launch, place_of
from tilelang_min.language.kernel_source import read_source
from tilelang_min.language.sizes import Computed
from tilelang_min.language.types import NOT_HELD, normal_dtype
from tilelang_min.program import SourceLocation


def parse(kernel: PrimFunc) -> TileProgram:
    """The tile program of ``kernel``.

    Raises LanguageError (or ShapeError) pointing at the author's line for everything that is not part of the language.
    """
    local: frozenset[SourceLocation] = frozenset()
    first: FragmentElement | None = None
    while True:
        parser = KernelParser(kernel)
        parser.as_local = local
        try:
            return parser.program()
        except FragmentElement as error:
            first = first or error
            if error.fragments <= local:
                raise first from None
            local |= error.fragments
        except LanguageError as error:
            # as local tiles they do not fit what else is done with them
            raise (first or error) from None


class KernelParser(BodyParser):
    """Reads one kernel: parameters and launch here, its body in :class:`BodyParser`."""

    def __init__(self, kernel: PrimFunc) -> None:
        source = read_source(kernel.function)
        super().__init__(source, Evaluator(source, surroundings(kernel.function, kernel.scope)))
        self.kernel = kernel
        self.grid: tuple[Expr, Expr, Expr] = (1, 1, 1)
        self.threads = 128
        self.launching = False
        self.block_variables = tuple(tirx.Var(name, "int32") for name in ("bx", "by", "bz"))

    # -- the function ----------------------------------------------------------------------------------------------

    def program(self) -> TileProgram:
        """Parameters, launch and body of the kernel."""
        function = self.source.function
        self.evaluator.frames.append({})
        given = function.args
        made = self.kernel.made
        if made is None and (given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults):
            raise self.error(
                function, "a kernel has plain positional parameters only", "annotate each with T.Tensor(shape, dtype)"
            )
        declared: list[tuple[ast.AST, str, Tensor | None]] = (
            [(item, item.arg, None) for item in given.args]
            if made is None
            else [(place_of(function, name), name, tensor) for name, tensor in made.parameters]
        )
        for node, name in ((function, self.kernel.name), *((node, name) for node, name, _ in declared)):
            if not name.isascii():
                raise self.error(
                    node,
                    f"the name {name!r} has characters that machine code cannot have",
                    "name kernels and their parameters with letters from a to z, digits and _",
                )
        parameters = tuple(
            self.parameter(node) if tensor is None else self.tensor(node, node, name, tensor)  # type: ignore[arg-type]
            for node, name, tensor in declared
        )
        if made is not None:
            seen = [*(tensor for _, tensor in made.tensors), *(self.kernel.scope[name] for name, _ in made.outputs)]
            self.evaluator.tensors = {id(item): buffer for item, buffer in zip(seen, parameters, strict=True)}
        inputs = parameters if made is None else parameters[: len(made.tensors)]
        bound = [extent for item in inputs for extent in item.shape if not isinstance(extent, int)]
        for name, size in self.evaluator.sizes.items():
            if name in {item.name for item in parameters}:
                raise self.error(
                    function, f"{name!r} is a tensor and a runtime dimension", "give the dimension another name"
                )
            self._names.add(name)
            bind_blocks(self.analyzer, (), (), (size,))
        self.operation(function, "kernel", f"{self.kernel.name}", (), tuple(item.name for item in parameters))
        statements = list(function.body)
        if statements and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant):
            statements = statements[1:]
        if made is not None:  # what stands in front has run, what follows names the outputs
            statements = [item for item in statements if is_launch(item, self.meaning)]
        body: tuple[Statement, ...] | None = None
        for statement in statements:
            if isinstance(statement, ast.With) or is_launch(statement, self.meaning):
                if body is not None:
                    raise self.error(
                        statement,
                        "a kernel has one `with T.Kernel(...)` block",
                        "write a second @T.prim_func" if made is None else "write a second function",
                    )
                found: list[Statement] = []
                self.launching = True
                self.statement(statement, found)
                body = tuple(found)
            elif body is None and isinstance(statement, ast.Assign):
                out: list[Statement] = []
                self.assignment(statement, out)
                if out:
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
        for name, size in self.evaluator.sizes.items():
            if not any(size.same_as(item) for item in bound):
                raise self.error(
                    function,
                    f"nothing says how large the runtime dimension {name} is",
                    "use it as a dimension of a T.Tensor",
                    ShapeError,
                )
        self.sources[self.source.file] = whole_file(self.source)
        return TileProgram(
            name=self.kernel.name,
            parameters=parameters,
            grid=self.grid,
            threads=self.threads,
            block_variables=(self.block_variables[0], self.block_variables[1], self.block_variables[2]),
            buffers=tuple(self.buffers),
            body=body,
            operations=tuple(self.operations),
            location=self.launched,
            panel=self.panel,
            pinned=self.pinned,
            sources=self.sources,
            sizes=tuple(self.evaluator.sizes.values()),
        )

    def meaning(self, node: ast.expr) -> Any:
        """What a name around the kernel means, None where there is none of it."""
        try:
            return self.evaluator.raw(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        except LanguageError:
            return None

    def _statement(self, node: ast.stmt, out: list[Statement]) -> None:
        if self.launching and isinstance(node, ast.With):
            self.launching = False
            out.extend(self.launch(node))
            return
        super()._statement(node, out)

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
        return self.tensor(argument, argument.annotation, argument.arg, annotation)

    def tensor(self, argument: ast.AST, place: ast.AST, name: str, annotation: Tensor) -> Buffer:
        """A tensor parameter; errors point at ``place``."""
        extents = annotation.shape if isinstance(annotation.shape, (tuple, list)) else (annotation.shape,)
        shape: list[Expr] = []
        for given in extents:
            if isinstance(given, Dynamic):
                shape.append(self.evaluator.size(given))
                continue
            if is_expression(given) and any(given.same_as(size) for size in self.evaluator.sizes.values()):
                shape.append(given)
                continue
            if isinstance(given, Computed):
                raise self.error(
                    place,
                    f"dimension {given} of {name!r} is computed of what is known at launch alone",
                    "make it a runtime dimension of its own: T.dynamic(...)",
                    ShapeError,
                )
            extent = plain_number(given)
            if not isinstance(extent, int) or isinstance(extent, bool) or extent <= 0:
                raise self.error(
                    place,
                    f"dimension {given!r} of {name!r} is not a positive integer",
                    "the arguments of a kernel's factory are plain integers"
                    if self.kernel.made is None
                    else "compute it of T.const dimensions and plain integers",
                    ShapeError,
                )
            shape.append(extent)
        if not shape:
            raise self.error(place, f"{name!r} has no dimensions", "write (1,) for one element")
        dtype = normal_dtype(annotation.dtype)
        if dtype is None:
            raise self.error(
                place,
                f"{annotation.dtype!r} is not a supported data type",
                NOT_HELD_REMEDY if str(annotation.dtype) in NOT_HELD else f"use one of {', '.join(DTYPES)}",
            )
        elements = 1
        for number in shape:
            elements *= number if isinstance(number, int) else 1
        if elements >= 2**31:
            raise self.error(place, f"{name!r} has {elements} elements; indices are 32-bit", "split the tensor")
        return self.buffer(argument, name, tuple(shape), dtype, "global")

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
            raise self.error(
                statement,
                "only `with T.Kernel(...)` is part of the tile language",
                "put the statements of other with blocks directly into it",
            )
        grid = [self.extent(argument) for argument in call.args]
        if not 1 <= len(grid) <= 3:
            raise self.error(call, f"a grid has one to three dimensions, {len(grid)} given")
        for argument, extent in zip(call.args, grid, strict=True):
            if isinstance(extent, int) and extent >= 2**31:
                raise self.error(
                    argument,
                    f"a grid dimension of {extent:,} blocks; block indices are 32-bit",
                    "give a block more of the work",
                )
        for keyword in call.keywords:
            if keyword.arg != "threads":
                raise self.error(call, f"T.Kernel has no option {keyword.arg!r}", "write T.Kernel(gx, gy, threads=128)")
            self.threads = self.evaluator.integer(keyword.value, "threads", 1)
        self.launched = self.source.location(call)
        self.grid = (grid[0], grid[1] if len(grid) > 1 else 1, grid[2] if len(grid) > 2 else 1)
        names = item.optional_vars
        elements = names.elts if isinstance(names, ast.Tuple) else ([names] if names is not None else [])
        if len(elements) != len(grid) and names is not None:
            raise self.error(
                names, f"the grid has {counted(len(grid), 'dimension')}, but {counted(len(elements), 'name')} given"
            )
        bind_blocks(self.analyzer, self.block_variables[: len(grid)], grid, ())
        for element, variable, extent in zip(elements, self.block_variables, grid, strict=False):
            if not isinstance(element, ast.Name):
                raise self.error(element, "block indices are plain names")
            # A grid dimension of one block has index 0: expressions get simpler, and no bound check is needed.
            self.evaluator.bind(element.id, variable if not isinstance(extent, int) or extent > 1 else 0)
        return self.block(statement.body)

    def extent(self, node: ast.expr) -> Expr:
        """A grid dimension: a positive integer, or an expression of runtime dimensions."""
        value = self.evaluator.value(node)
        if not is_expression(value) or constant(value) is not None:
            return self.evaluator.integer(node, "a grid dimension", 1)
        names = {size: name for name, size in self.evaluator.sizes.items()}
        plain = simplify(value, self.analyzer)
        value = value if text_of(plain, names) is None else plain
        if text_of(value, names) is None:
            raise self.error(
                node,
                "a grid dimension is known at compile time or follows from runtime dimensions",
                "write it with +, -, *, //, %, T.ceildiv, T.min and T.max of them",
            )
        return value


__all__ = ["KernelParser", "parse"]
