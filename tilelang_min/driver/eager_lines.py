"""Runs what stands in front of ``with T.Kernel(...)`` in a function that is a kernel itself (:mod:`tilelang_min.language.eager`).

These lines are Python and may compute with the dimensions that ``T.const`` names, which are known only when the annotations that
have them were evaluated.  So the lines run several times: statements that need a number which is not known yet are left out, until
every number is known; then once more, in full.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilelang_min import language
from tilelang_min.driver.eager_source import HOOK, SHOWN, Body
from tilelang_min.errors import LanguageError, LaunchError, ShapeError, TileLangError, did_you_mean
from tilelang_min.language import Dynamic, PrimFunc, Tensor
from tilelang_min.language.eager import Lines, Made, Named, NotKnownYet, Output, Unannotated, Unknown, running
from tilelang_min.language.sizes import Computed
from tilelang_min.language.types import normal_dtype
from tilelang_min.program.dtypes import language_name


@dataclass(frozen=True)
class Bound:
    """A dimension of ``T.const``, and what says so: a keyword (``axis`` None), or a dimension of a tensor."""

    size: int | Dynamic
    tensor: str | None = None
    axis: int | None = None

    def __str__(self) -> str:
        return "by keyword" if self.tensor is None else f"by dimension {self.axis} of {self.tensor}"


def make(
    body: Body,
    label: str,
    values: Mapping[str, Any],
    tensors: Mapping[str, Any],
    constants: Mapping[str, int | Dynamic],
) -> PrimFunc:
    """The kernel for these arguments.

    ``values``: compile-time arguments.  ``tensors``: arguments of tensor parameters, each with a ``shape`` and, where it is to be
    checked, a ``dtype``; those left out bind nothing.  ``constants``: dimensions of T.const by keyword.

    Raises LanguageError, ShapeError or LaunchError at the author's line, and what the author's lines raise.
    """
    return _Run(body, label, values, tensors, constants).kernel()


class _Run:
    def __init__(
        self,
        body: Body,
        label: str,
        values: Mapping[str, Any],
        tensors: Mapping[str, Any],
        constants: Mapping[str, int | Dynamic],
    ) -> None:
        self.body = body
        self.label = label
        self.values = dict(values)
        self.arguments = dict(tensors)
        self.given = {name: Bound(size) for name, size in constants.items()}
        self.known = dict(self.given)
        self.problems: list[TileLangError] = []
        self.constants: dict[str, ast.AST] = {}
        self.named: dict[tuple[str, int], str] = {}
        self.annotated: dict[str, Tensor] = {}
        self.failure: Exception | None = None
        self.full = False

    def kernel(self) -> PrimFunc:
        while True:
            before = len(self.known)
            self.run()
            if self.problems:
                raise self.problems[0]
            if len(self.known) == before:
                break
        self.check_constants()
        self.full = True
        self.annotated = {}
        names, lines = self.run()
        if self.problems:
            raise self.problems[0]
        for name, argument in self.arguments.items():
            if name not in self.annotated and hasattr(argument, "shape"):
                raise self.body.missing_annotation(name)
        outputs = self.outputs(names, lines)
        made = Made(
            tuple((name, self.annotated[name]) for name in self.body.names if name in self.annotated),
            outputs,
            {**self.values, **{name: bound.size for name, bound in self.known.items()}},
        )
        scope = {name: value for name, value in names.items() if not isinstance(value, Unannotated)}
        return PrimFunc(self.body.function, scope, self.label, made)

    # -- running -----------------------------------------------------------------------------------------------------

    def run(self) -> tuple[dict[str, Any], Lines]:
        """All lines once: names that they leave behind, and what they told T.const and T.empty."""
        body = self.body
        sight = body.names_in_sight()
        lines = Lines(self.dimension)
        self.failure, waiting = None, False
        space: dict[str, Any] = {
            **sight,
            **{name: Unannotated(name) for name in body.tensors},
            **self.values,
            HOOK: lambda number, value: self.annotate(space, number, value),
        }
        for name, annotation in self.signature(sight).items():
            self.bind(space, name, annotation, body.argument(name))
        token = running.set(lines)
        try:
            for line, code in body.code:
                lines.place = line
                try:
                    exec(code, space)
                except TileLangError as error:
                    if not self.full:
                        self.failure = self.failure or self.located(error, line)
                        continue
                    raise self.located(error, line) from None
                except NotKnownYet:
                    waiting = True
                except AttributeError as error:
                    unknown = self.not_in_language(error, line)
                    if self.full:
                        raise unknown or error from None
                    if self.failure is None and not waiting:
                        self.failure = unknown or error
                except Exception as error:  # the author's own, or of a name that a line which waits has not bound
                    if self.full:
                        raise
                    if self.failure is None and not waiting:
                        self.failure = error
        finally:
            running.reset(token)
        self.constants = lines.constants
        own = {name: value for name, value in space.items() if name not in sight or value is not sight[name]}
        own.pop(HOOK, None)
        own.pop("__builtins__", None)
        return own, lines

    def located(self, error: TileLangError, line: ast.AST) -> TileLangError:
        """The error, at the line where it has no place of its own."""
        if error.location is not None:
            return error
        return self.body.error(line, error.message, error.remedy or "", type(error))

    def not_in_language(self, error: AttributeError, line: ast.AST) -> TileLangError | None:
        """What ``T`` says about a name that it does not have, at the line; None for attributes of other things."""
        try:
            getattr(language, error.name or "")
        except AttributeError as said:
            if str(said) == str(error):
                message, _, remedy = str(error).partition("; ")
                return self.body.error(line, message, remedy)
        return None

    def signature(self, sight: Mapping[str, Any]) -> dict[str, Tensor]:
        """Annotations of tensors in the function's first line; text (``from __future__ import annotations``) is evaluated."""
        found = {}
        for name, annotation in inspect.get_annotations(self.body.function).items():
            if isinstance(annotation, str) and "Tensor" in annotation:
                try:
                    annotation = eval(annotation, dict(sight))
                except Exception:
                    continue
            if isinstance(annotation, Tensor) and name in self.body.names:
                found[name] = annotation
        return found

    def dimension(self, name: str) -> Any:
        """What stands for a dimension of T.const now."""
        bound = self.known.get(name)
        if bound is None:
            return Unknown(name)
        return bound.size if self.full or isinstance(bound.size, Dynamic) else Named(name, bound.size)

    # -- annotations -------------------------------------------------------------------------------------------------

    def annotate(self, space: dict[str, Any], number: int, value: Any) -> None:
        """``name: value`` was reached."""
        node, name = list(self.body.annotated.items())[number]
        if name not in self.body.names:
            if isinstance(value, Tensor):
                self.problems.append(
                    self.body.error(
                        node,
                        f"{name!r} is annotated as a tensor and is no parameter of {self.label}",
                        f"add it to the parameters, or make it an output: {name} = T.empty(shape, dtype)",
                    )
                )
            return
        if value is Tensor:
            self.problems.append(
                self.body.error(node.annotation, f"T.Tensor of {name!r} has no shape", SHOWN.format(name=name))
            )
        elif isinstance(value, Tensor):
            self.bind(space, name, value, node.annotation)

    def bind(self, space: dict[str, Any], name: str, annotation: Tensor, node: ast.AST) -> None:
        """A parameter gets its annotation: dimensions that T.const names become known, others are compared."""
        self.annotated[name] = annotation
        space[name] = annotation
        argument = self.arguments.get(name)
        if argument is None:
            return
        extents, shape = _dimensions(annotation.shape), _dimensions(argument.shape)
        if len(extents) != len(shape):
            self.problems.append(
                self.body.error(
                    node,
                    f"{name!r} has {len(extents)} dimension{'s' if len(extents) != 1 else ''} here, and the tensor that it is "
                    f"given has {len(shape)}: {shape}",
                    "pass a tensor of that rank, or annotate all of its dimensions",
                    ShapeError,
                )
            )
            return
        for axis, (extent, given) in enumerate(zip(extents, shape, strict=True)):
            self.bind_dimension(name, axis, extent, given, node)
        if self.full:
            self.check_type(name, annotation, argument, node)

    def bind_dimension(self, name: str, axis: int, extent: Any, given: Any, node: ast.AST) -> None:
        """One dimension of one tensor."""
        if isinstance(given, (Dynamic, Computed)) or isinstance(extent, (Dynamic, Computed)):
            return
        size = int(given)
        if isinstance(extent, (Unknown, Named)) and extent.name is not None:
            self.named[name, axis] = extent.name
        if isinstance(extent, Unknown):
            if extent.name is not None and extent.name not in self.known:
                self.known[extent.name] = Bound(size, name, axis)
            extent = self.known[extent.name].size if extent.name is not None else size
        if extent == size and size > 0:
            return
        constant = self.named.get((name, axis))
        if size <= 0:
            message = f"dimension {axis} of {name!r} is {size}: there is nothing to compute"
            remedy = "call it for tensors with elements, or make the dimension T.dynamic"
        elif constant is not None and constant in self.known:
            message = f"{constant} is {extent} {self.known[constant]}, but {size} by dimension {axis} of {name}"
            remedy = f"pass tensors that agree on {constant}, or give one of them another T.const"
        elif self.full:
            message = f"dimension {axis} of {name!r} is {extent} here, and {size} in the tensor that it is given"
            remedy = "pass a tensor of this shape, or name the dimension with T.const"
        else:
            return  # not yet known for certain
        self.problems.append(self.body.error(node, message, remedy, ShapeError))

    def check_type(self, name: str, annotation: Tensor, argument: Any, node: ast.AST) -> None:
        """Raise LaunchError for a tensor of another data type."""
        wanted = normal_dtype(annotation.dtype)
        given = getattr(argument, "dtype", None)
        if wanted is None or given is None:
            return
        found = language_name(str(getattr(given, "name", given)).removeprefix("torch."))
        if (normal_dtype(found) or found) != wanted:
            self.problems.append(
                self.body.error(
                    node,
                    f"parameter {name} must be {wanted}, the tensor is {found}",
                    f"convert it to {wanted}",
                    LaunchError,
                )
            )

    # -- what must hold ----------------------------------------------------------------------------------------------

    def check_constants(self) -> None:
        """Raise LanguageError for a keyword that is no T.const, and for a T.const that nothing says the size of."""
        for name in self.given:
            if name not in self.constants:
                known = [*self.body.names, *self.constants]
                raise LanguageError(
                    f"{self.label} has no parameter {name!r}, and no dimension of T.const of that name",
                    location=self.body.source.location(self.body.source.function),
                    remedy=did_you_mean(name, known),
                )
        for name, place in self.constants.items():
            if name in self.known:
                continue
            if self.failure is not None:
                raise self.failure
            missing = [item for item in self.body.tensors if item not in self.arguments]
            raise self.body.error(
                place,
                f"nothing says how large {name} is",
                f"pass {name}=..., or the tensors {', '.join(missing)}"
                if missing
                else f"let {name} stand as it is in the shape of a tensor: A: T.Tensor(({name}, ...), dtype), or pass {name}=...",
                ShapeError,
            )

    def outputs(self, names: Mapping[str, Any], lines: Lines) -> tuple[tuple[str, Tensor], ...]:
        """The tensors that a call allocates, in the order of ``return``."""
        found: list[tuple[str, Tensor]] = []
        returned: list[Output] = []
        for node in self.body.returned:
            value = names.get(node.id)
            if not isinstance(value, Output):
                if node.id in self.annotated:
                    message = f"{node.id} is an argument: whoever calls {self.label} has it"
                    remedy = "leave it out of the return, or make it here: C = T.empty(shape, dtype)"
                else:
                    message = f"{node.id} is no tensor of T.empty: a kernel returns those alone"
                    remedy = f"make it in front of `with T.Kernel(...)`: {node.id} = T.empty(shape, dtype)"
                raise self.body.error(node, message, remedy)
            if value in returned:
                raise self.body.error(node, f"{node.id} is returned twice", "return each tensor once")
            returned.append(value)
            found.append((node.id, value.tensor))
        for item in lines.outputs:
            if item not in returned:
                name = next((key for key, value in names.items() if value is item), None)
                raise self.body.error(
                    item.place,
                    f"{name or 'a tensor'} is made by T.empty and not returned",
                    f"end the function with `return {', '.join([*(key for key, _ in found), name or 'C'])}`, "
                    "or take the tensor as a parameter",
                )
        return tuple(found)


def _dimensions(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, Iterable) else (shape,)


__all__ = ["make"]
