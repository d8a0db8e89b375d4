"""Runtime dimensions of a kernel as its factory's source shows them: ``T.dynamic("m")`` in the shapes of its tensors.

Nothing is run.  Where a shape uses a name whose value cannot be seen in the file, nothing is said: the compiler will.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_MAKERS = ("dynamic", "symbolic")
_ARITHMETIC = ("ceildiv", "min", "max", "int")
"""Functions whose results are numbers where their arguments are."""


@dataclass(frozen=True)
class Dimensions:
    """``names``: all runtime dimensions that the shapes may have, ``required`` those that they have whatever happens."""

    names: tuple[str, ...]
    required: tuple[str, ...]


@dataclass(frozen=True)
class _Binding:
    """One assignment of a name; ``always`` where no condition stands above it."""

    value: ast.expr
    place: int | None  # in the tuple that is unpacked
    always: bool


class _Unseen(Exception):
    """Something cannot be told from the source."""


def dimensions_of(
    module: Sequence[ast.stmt], factory: ast.FunctionDef | ast.AsyncFunctionDef, kernels: Sequence[ast.FunctionDef]
) -> Dimensions | None:
    """The runtime dimensions of the ``kernels`` that ``factory`` may return; None where the source does not show all of them."""
    bindings: dict[str, list[_Binding]] = {}
    for name, binding in [*_assignments(module, always=True), *_assignments(factory.body, always=True)]:
        bindings.setdefault(name, []).append(binding)
    parameters = {
        argument.arg for argument in [*factory.args.args, *factory.args.kwonlyargs, *factory.args.posonlyargs]
    }
    resolver = _Resolver(bindings, parameters)
    try:
        for default in [*factory.args.defaults, *factory.args.kw_defaults]:
            if default is not None:
                resolver.expression(default, always=False)
        for kernel in kernels:
            for argument in kernel.args.args:
                if argument.annotation is None or isinstance(argument.annotation, ast.Constant):
                    return None
                resolver.expression(argument.annotation, always=len(kernels) == 1)
    except _Unseen:
        return None
    return Dimensions(tuple(resolver.names), tuple(name for name, always in resolver.names.items() if always))


def dimensions_of_kernel(
    module: Sequence[ast.stmt], kernel: ast.FunctionDef | ast.AsyncFunctionDef
) -> Dimensions | None:
    """The same of a function that is a kernel itself: those that it and its module name."""
    try:
        calls = [
            node
            for body in (kernel.body, [item for item in module if isinstance(item, ast.Assign | ast.AnnAssign)])
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Call) and _last_word(node.func) in _MAKERS
        ]
        names = [name for call in calls for name in _made(call)]
    except _Unseen:
        return None
    return Dimensions(tuple(dict.fromkeys(names)), ())


def _assignments(body: Iterable[ast.stmt], *, always: bool) -> Iterator[tuple[str, _Binding]]:
    """Names that the statements assign, those in blocks included and those in functions left out."""
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, _Binding(statement.value, None, always)
                elif isinstance(target, ast.Tuple | ast.List):
                    for place, item in enumerate(target.elts):
                        if isinstance(item, ast.Name):
                            yield item.id, _Binding(statement.value, place, always)
        elif isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
            blocks = [statement.body, getattr(statement, "orelse", []), getattr(statement, "finalbody", [])]
            blocks += [handler.body for handler in getattr(statement, "handlers", [])]
            for block in blocks:
                yield from _assignments(block, always=always and isinstance(statement, ast.With))


class _Resolver:
    """Collects ``names``: runtime dimensions that expressions hold, and whether they always do."""

    def __init__(self, bindings: dict[str, list[_Binding]], parameters: set[str]) -> None:
        self.bindings = bindings
        self.parameters = parameters
        self.names: dict[str, bool] = {}
        self.active: set[str] = set()

    def expression(self, node: ast.expr, *, always: bool) -> None:
        """Collect what is in an expression.  _Unseen where it holds a name that the file does not define, or a call."""
        if isinstance(node, ast.Call) and _last_word(node.func) in _MAKERS:
            for name in _made(node):
                self.names[name] = self.names.get(name, False) or always
        elif isinstance(node, ast.Name):
            self.name(node.id, always=always)
        elif isinstance(node, ast.Constant):
            return
        elif isinstance(node, ast.Attribute):
            if not isinstance(node.value, ast.Name):
                raise _Unseen
        elif isinstance(node, ast.Call):
            if _last_word(node.func) not in (*_ARITHMETIC, "Tensor", "Buffer"):
                raise _Unseen
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                self.expression(argument, always=always)
        elif isinstance(node, ast.IfExp | ast.BoolOp):
            self.parts(node, always=False)
        elif isinstance(node, ast.Tuple | ast.List | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript):
            self.parts(node, always=always)
        else:
            raise _Unseen

    def parts(self, node: ast.expr, *, always: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.expression(child, always=always)

    def name(self, name: str, *, always: bool) -> None:
        """What a name stands for: a parameter of the factory, or what is assigned to it."""
        known = self.bindings.get(name, [])
        if name in self.active or (name in self.parameters and not known):
            return
        if not known:
            raise _Unseen
        self.active.add(name)
        for binding in known:
            certain = always and binding.always and len(known) == 1 and name not in self.parameters
            if binding.place is None:
                self.expression(binding.value, always=certain)
            else:
                self.expression(_item(binding.value, binding.place), always=certain)
        self.active.discard(name)


def _item(value: ast.expr, place: int) -> ast.expr:
    """What an unpacked tuple has at a place."""
    if isinstance(value, ast.Tuple | ast.List) and place < len(value.elts):
        return value.elts[place]
    if isinstance(value, ast.Call) and _last_word(value.func) in _MAKERS:
        names = _made(value)
        if place < len(names):
            return ast.Call(value.func, [ast.Constant(names[place])], [])
    raise _Unseen


def _made(call: ast.Call) -> list[str]:
    """The names that ``T.dynamic("m, n")`` makes."""
    first = call.args[0] if call.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        raise _Unseen
    return first.value.replace(",", " ").split()


def _last_word(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
