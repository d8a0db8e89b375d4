"""``FILE:FUNCTION`` references: split, found and checked by reading the file, never by running it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from tileprof.workload.dimensions import Dimensions, dimensions_of, dimensions_of_kernel
from tileprof.workload.problems import unknown
from tileprof.workload.records import FunctionReference

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_FUNCTION = re.compile(r"[A-Za-z_]\w*")


class ReferenceProblem(Exception):
    """A reference that cannot be used; the text says why, ``offset`` is where in the reference."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True)
class Signature:
    """Parameters of a function as its source has them.

    ``tensors`` are the parameters of the kernel that it makes, where it plainly returns a function under ``@T.prim_func`` of its
    own; None where that cannot be seen.  ``dimensions`` are its runtime dimensions, None where they cannot be seen.
    ``is_kernel``: the function is no factory but a kernel itself, whose parameters are no runtime dimensions.
    """

    names: tuple[str, ...]
    required: tuple[str, ...]
    open: bool  # takes **keywords
    tensors: tuple[str, ...] | None = None
    dimensions: Dimensions | None = None
    is_kernel: bool = False


@dataclass(frozen=True)
class ModuleOutline:
    """Names that a module defines at its top level, and the signatures of its functions."""

    names: frozenset[str]
    signatures: dict[str, Signature] = field(hash=False)
    open: bool  # has a star import: any name may exist


def split_reference(text: str, directory: Path) -> FunctionReference:
    """The reference in ``text``; a file is relative to ``directory``.  Raises ReferenceProblem for a wrong form."""
    left, colon, function = text.rpartition(":")
    if not colon or not left:
        raise ReferenceProblem(f"expected FILE:FUNCTION or package.module:function, found '{text}'")
    if not _FUNCTION.fullmatch(function):
        raise ReferenceProblem(f"'{function}' is not the name of a function", len(left) + 1)
    if left.endswith(".py") or "/" in left:
        return FunctionReference(text, function, file=str((directory / Path(left).expanduser()).resolve()))
    if not _MODULE.fullmatch(left):
        raise ReferenceProblem(f"'{left}' is neither a Python file nor a module")
    return FunctionReference(text, function, module=left)


def check_reference(text: str, directory: Path) -> tuple[FunctionReference, Signature | None]:
    """The reference, and the function's signature where the source shows it.

    Raises ReferenceProblem when the file or module is missing, cannot be parsed, or has no such function.  A module inside a
    package is only looked for, since finding it would run the package.
    """
    reference = split_reference(text, directory)
    if reference.module is not None:
        root = reference.module.split(".")[0]
        try:
            found = importlib.util.find_spec(root)
        except (ImportError, ValueError):
            found = None
        if found is None and not (directory / root).is_dir() and not (directory / f"{root}.py").is_file():
            raise ReferenceProblem(f"no module '{root}' is installed here or stands beside the workload")
        return reference, None
    shown = text.rpartition(":")[0]
    outline = outline_of(Path(reference.file or ""), shown)
    if reference.function not in outline.names and not outline.open:
        raise ReferenceProblem(unknown(f"function in {shown}", reference.function, outline.names), len(shown) + 1)
    return reference, outline.signatures.get(reference.function)


@lru_cache(maxsize=256)
def outline_of(file: Path, shown: str) -> ModuleOutline:
    """What ``file`` defines; ``shown`` is its name in messages.  Raises ReferenceProblem."""
    if not file.exists():
        raise ReferenceProblem(f"there is no file {shown} (looked for {file.name} in {_nearest_folder(file)})")
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=shown)
    except SyntaxError as error:
        place = f"{shown}:{error.lineno or 1}:{error.offset or 1}"
        raise ReferenceProblem(f"{shown} is not valid Python: {place}: {error.msg}") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ReferenceProblem(f"{shown} cannot be read: {error}") from None
    names: set[str] = set()
    signatures: dict[str, Signature] = {}
    is_open = _collect(tree.body, names, signatures, tree.body)
    return ModuleOutline(frozenset(names), signatures, is_open)


def _nearest_folder(file: Path) -> str:
    parent = file.parent
    return f"{parent.name}/" if parent.is_dir() else f"{parent.name}/, which does not exist either"


def _collect(body: list[ast.stmt], names: set[str], signatures: dict[str, Signature], module: list[ast.stmt]) -> bool:
    """Adds the names that ``body``, a part of ``module``, defines; True when a star import may define more."""
    is_open = False
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(statement.name)
            if all(_keeps_signature(decorator) for decorator in statement.decorator_list):
                if any(_is_launch(item) for item in statement.body):
                    dimensions = dimensions_of_kernel(module, statement)
                    signatures[statement.name] = replace(_of_kernel(statement), dimensions=dimensions)
                    continue
                kernels = _kernels(statement)
                signatures[statement.name] = replace(
                    _signature(statement.args),
                    tensors=None if kernels is None else _tensors(kernels),
                    dimensions=None if kernels is None else dimensions_of(module, statement, kernels),
                )
        elif isinstance(statement, ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                is_open |= alias.name == "*"
                names.add(alias.asname or alias.name.split(".")[0])
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names.update(node.id for t in targets for node in ast.walk(t) if isinstance(node, ast.Name))
        elif isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
            blocks = [statement.body, getattr(statement, "orelse", []), getattr(statement, "finalbody", [])]
            blocks += [handler.body for handler in getattr(statement, "handlers", [])]
            for block in blocks:
                is_open |= _collect(block, names, signatures, module)
    return is_open


def _keeps_signature(decorator: ast.expr) -> bool:
    """Whether a decorator is known to leave the parameters of a factory as they are."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _last_name(function) in {"jit", "cache", "lru_cache", "wraps", "prim_func"}


def _signature(arguments: ast.arguments) -> Signature:
    positional = [*arguments.posonlyargs, *arguments.args]
    without_default = positional[: len(positional) - len(arguments.defaults)]
    keyword_required = [a for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults) if d is None]
    return Signature(
        names=tuple(a.arg for a in [*positional, *arguments.kwonlyargs]),
        required=tuple(a.arg for a in [*without_default, *keyword_required]),
        open=arguments.kwarg is not None,
    )


def _of_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Signature:
    """What compiling a function takes that is a kernel itself: its constants, and the dimensions that ``T.const`` names."""
    plain = _signature(function.args)
    own = list(_own_nodes(function.body))
    tensors = {
        node.target.id
        for node in own
        if isinstance(node, ast.AnnAssign) and node.value is None and isinstance(node.target, ast.Name)
    }
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    tensors |= {a.arg for a in given if a.annotation is not None and "Tensor" in ast.unparse(a.annotation)}
    calls = [node for node in own if isinstance(node, ast.Call) and _last_name(node.func) == "const" and node.args]
    texts = [call.args[0].value if isinstance(call.args[0], ast.Constant) else None for call in calls]
    dimensions = [name for text in texts if isinstance(text, str) for name in text.replace(",", " ").split()]
    outputs = [
        node.id
        for item in function.body
        if isinstance(item, ast.Return) and item.value is not None
        for node in ast.walk(item.value)
        if isinstance(node, ast.Name)
    ]
    return Signature(
        names=tuple(dict.fromkeys([*(name for name in plain.names if name not in tensors), *dimensions])),
        required=tuple(dict.fromkeys([*(name for name in plain.required if name not in tensors), *dimensions])),
        open=plain.open or not all(isinstance(text, str) for text in texts),
        tensors=tuple(dict.fromkeys([*(name for name in plain.names if name in tensors), *outputs])),
        is_kernel=True,
    )


def _is_launch(statement: ast.stmt) -> bool:
    """``with T.Kernel(...)``."""
    return isinstance(statement, ast.With) and any(
        isinstance(item.context_expr, ast.Call) and _last_name(item.context_expr.func) == "Kernel"
        for item in statement.items
    )


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _kernels(factory: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.FunctionDef] | None:
    """All kernels that a factory may return; None where one of them is not a function in its own body.

    Branches often define kernels of one name.
    """
    kernels: dict[str, list[ast.FunctionDef]] = defaultdict(list)
    returned: list[str | None] = []
    for node in _own_nodes(factory.body):
        if isinstance(node, ast.FunctionDef) and any(_is_kernel(decorator) for decorator in node.decorator_list):
            kernels[node.name].append(node)
        elif isinstance(node, ast.Return):
            returned.append(node.value.id if isinstance(node.value, ast.Name) else None)
    if not returned or not all(name in kernels for name in returned):
        return None
    return [kernel for name in dict.fromkeys(returned) if name for kernel in kernels[name]]


def _tensors(kernels: list[ast.FunctionDef]) -> tuple[str, ...]:
    """Parameters of the kernels, each once."""
    names = [argument.arg for kernel in kernels for argument in kernel.args.args]
    return tuple(dict.fromkeys(names))


def _own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements of a function, those in blocks included and those of functions in it left out."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _FUNCTIONS):
            waiting += ast.iter_child_nodes(node)


def _is_kernel(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _last_name(function) == "prim_func"
