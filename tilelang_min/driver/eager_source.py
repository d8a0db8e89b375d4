"""The source of a jitted function that is a kernel itself: read once, and made ready to run."""

from __future__ import annotations
import __future__

import ast
import copy
import inspect
from collections.abc import Callable
from functools import cached_property
from types import CodeType
from typing import Any

from tilelang_min.errors import LanguageError, TileLangError
from tilelang_min.language import Tensor
from tilelang_min.language.jitted import (
    bare_annotations,
    first_lines,
    is_launch,
    names_tensor,
    own_nodes,
    parameter_names,
)
from tilelang_min.language.kernel_source import KernelSource, read_source

HOOK = "__tilelang_annotation__"
"""What annotations of tensors become calls of, with their number and value."""

SHOWN = "write it in front of `with T.Kernel(...)`: {name}: T.Tensor((M, N), 'float16')"


class Body:
    """The source of one function that is a kernel, read once."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.source: KernelSource = read_source(function)
        node = self.source.function
        self.names = parameter_names(node)
        self.lines = first_lines(node, self.means)
        if len(self.lines) == len(node.body):
            inside = next((item for item in own_nodes(node.body) if is_launch(item)), None)
            if inside is not None:
                raise self.error(
                    inside,
                    "`with T.Kernel(...)` stands inside another statement",
                    "let it stand at the top level of the function, and put conditions into its arguments or its body",
                )
            raise self.error(
                node,
                "this function launches nothing",
                "add `with T.Kernel(grid_x, grid_y, threads=128) as (bx, by):`, or return a @T.prim_func",
            )
        if node.args.vararg or node.args.kwarg:
            raise self.error(
                node.args.vararg or node.args.kwarg or node,
                "the parameters of a kernel have names of their own",
                "name each of them",
            )
        self.annotated = bare_annotations(self.lines)
        self._check_returns(node)

    def error(
        self, node: ast.AST, message: str, remedy: str, kind: type[TileLangError] = LanguageError
    ) -> TileLangError:
        """An error that points at ``node``."""
        return kind(message, location=self.source.location(node), remedy=remedy)

    def means(self, node: ast.expr) -> Any:
        """What a name means around the function, None for anything else."""
        if isinstance(node, ast.Name):
            return self.names_in_sight().get(node.id)
        return getattr(self.means(node.value), node.attr, None) if isinstance(node, ast.Attribute) else None

    def argument(self, name: str) -> ast.arg:
        """Where a parameter stands."""
        return next(
            item for item in ast.walk(self.source.function.args) if isinstance(item, ast.arg) and item.arg == name
        )

    def missing_annotation(self, name: str) -> TileLangError:
        """The error of a parameter that is given a tensor and is not annotated as one."""
        return self.error(
            self.argument(name), f"{name!r} is given a tensor and has no annotation of one", SHOWN.format(name=name)
        )

    def _check_returns(self, node: ast.FunctionDef) -> None:
        """Raise LanguageError unless the function returns at its end alone."""
        for item in own_nodes(self.lines):
            if isinstance(item, ast.Return):
                raise self.error(
                    item,
                    "the function returns in front of its `with T.Kernel(...)`",
                    "return the tensors of T.empty in its last line",
                )
        for item in node.body[len(self.lines) :]:
            inside = next((part for part in own_nodes([item]) if isinstance(part, ast.Return)), item)
            if isinstance(item, ast.With) and inside is not item:
                raise self.error(
                    inside,
                    "the function returns inside of its `with T.Kernel(...)`",
                    "move this line behind the block, as the last of the function",
                )
            if not is_launch(item, self.means) and not isinstance(item, (ast.Return, ast.Pass)):
                raise self.error(
                    item,
                    "a statement behind `with T.Kernel(...)` is not part of the kernel",
                    "move it in front of the with block, or into it; only `return` may follow",
                )

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """Parameters that the source annotates as tensors, here or in the first line."""
        written = {name for node, name in self.annotated.items() if names_tensor(node.annotation)} & set(self.names)
        for name, annotation in inspect.get_annotations(self.function).items():
            if isinstance(annotation, Tensor) or (isinstance(annotation, str) and "Tensor" in annotation):
                written.add(name)
        return tuple(name for name in self.names if name in written)

    @cached_property
    def returned(self) -> list[ast.Name]:
        """Names that the function returns.  LanguageError for anything else than names."""
        found: list[ast.Name] = []
        for item in self.source.function.body:
            if not isinstance(item, ast.Return) or item.value is None:
                continue
            values = item.value.elts if isinstance(item.value, (ast.Tuple, ast.List)) else [item.value]
            for value in values:
                if isinstance(value, ast.Constant) and value.value is None and len(values) == 1:
                    continue
                if not isinstance(value, ast.Name):
                    raise self.error(
                        value,
                        f"{self.source.segment(value)} is no tensor of T.empty: a kernel returns those alone",
                        "write return C, or return C, D, by the names that T.empty was given",
                    )
                found.append(value)
        return found

    @cached_property
    def code(self) -> list[tuple[ast.stmt, CodeType]]:
        """The lines in front of the kernel, each with what runs: annotations without a value are evaluated."""
        for number, node in enumerate(self.annotated):
            setattr(node, "number", number)  # noqa: B010
        lines = self.lines
        if lines and isinstance(lines[0], ast.Expr) and isinstance(lines[0].value, ast.Constant):
            lines = lines[1:]
        # Python's own reading of the function is not inherited: this file has a __future__ of its own.
        flags = self.function.__code__.co_flags & __future__.annotations.compiler_flag
        made = []
        for line in lines:
            changed = _Evaluated().visit(copy.deepcopy(line))
            ast.increment_lineno(changed, self.source.first_line - 1 - self.source.shift)
            module = ast.fix_missing_locations(ast.Module(body=[changed], type_ignores=[]))
            try:
                code = compile(module, self.source.path, "exec", flags=flags, dont_inherit=True)
            except SyntaxError as error:
                raise self.error(
                    line, f"this line cannot run here: {error.msg}", "move it out of the function"
                ) from None
            made.append((line, code))
        return made

    def names_in_sight(self) -> dict[str, Any]:
        """What the lines see beside the parameters: globals and closure."""
        names = dict(self.function.__globals__)
        for name, cell in zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True):
            try:
                names[name] = cell.cell_contents
            except ValueError:  # not bound yet
                continue
        return names


class _Evaluated(ast.NodeTransformer):
    """Annotations without a value become calls of the hook, those with one assignments, as they are in a function."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)
        number = getattr(node, "number", None)
        annotation = node.annotation
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                number = None
        if number is None:
            return ast.copy_location(ast.Pass(), node)
        for part in ast.walk(annotation):
            if annotation is not node.annotation:
                ast.copy_location(part, node.annotation)
        call = ast.Call(ast.Name(HOOK, ast.Load()), [ast.Constant(number), annotation], [])
        return ast.copy_location(ast.Expr(ast.copy_location(call, node)), node)

    def _left(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _left


__all__ = ["HOOK", "SHOWN", "Body"]
