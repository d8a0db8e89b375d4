"""Content hashes of kernels, computed without importing TVM: what the author wrote, for which target, made by which tools."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import os
import sys
import types
from collections.abc import Callable
from functools import cache
from typing import Any

from tilelang_min.driver.versions import tool_versions
from tilelang_min.language import Macro, PrimFunc
from tilelang_min.language.source_lines import source_lines

_PLAIN = (bool, int, float, str, bytes, type(None))


def kernel_key(kernel: PrimFunc, target: str, options: dict[str, Any]) -> str:
    """Hash of a kernel: its source and place, the values of all names it uses, target, options and tool versions.

    Functions and classes that a kernel uses count with their source and, in turn, with the values they use.  Raises
    LanguageError when the source cannot be read.
    """
    function = kernel.function
    lines, first = source_lines(function)
    used = _used_values(function, kernel.scope)
    describe = _Describer(function.__module__).text
    annotations: dict[str, str] = {}
    for name, value in inspect.get_annotations(function).items():
        if isinstance(value, str):  # kept as text: the names in it are looked up when it is read
            annotations[name] = value
            for word in _names_in(value):
                for names in (used, kernel.scope, function.__globals__):
                    if word in names:
                        used[word] = names[word]
                        break
        else:
            annotations[name] = describe(value)
    words = frozenset(_words(function.__code__))
    content = {
        "source": "".join(lines),
        "label": kernel.label,
        "place": [inspect.getsourcefile(function), first],
        "names": {name: describe(value, words) for name, value in sorted(used.items())},
        "annotations": annotations,
        "target": target,
        "options": describe(options),
        "versions": tool_versions(),
    }
    if kernel.made is not None:
        plain = {name: value for name, value in kernel.scope.items() if _is_plain(value)}
        content["made"] = [describe(kernel.made.values), repr(kernel.made.parameters), describe(plain)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _is_plain(value: Any) -> bool:
    """Whether a value says all about itself: a number, text, or a container of such, at any depth."""
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return isinstance(value, _PLAIN) or (type(value).__module__ == "numpy" and hasattr(value, "tobytes"))


def describe(value: Any) -> str:
    """Text that is the same for equal values and differs otherwise; of functions their source and the values they use."""
    home = next((each.__module__ for each in (value if isinstance(value, list) else [value]) if callable(each)), "")
    return _Describer(home).text(value)


def _words(code: types.CodeType) -> set[str]:
    """All names that code uses, attributes and functions inside it included."""
    words = set(code.co_names) | set(code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            words |= _words(constant)
    return words


def _names_in(text: str) -> set[str]:
    """Names in an annotation that is kept as text; also in the text of quotes inside it."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return set()
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if isinstance(tree.body, ast.Constant) and isinstance(tree.body.value, str):
        names |= _names_in(tree.body.value)
    return names


def _used_values(function: types.FunctionType | Any, scope: dict[str, Any]) -> dict[str, Any]:
    """Values of the names that a function uses: closure first, then ``scope``, then its module."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closure = {}
    for name, cell in cells:
        try:
            closure[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    values = {}
    for word in _words(function.__code__):
        for names in (closure, scope, function.__globals__):
            if word in names:
                values[word] = names[word]
                break
    return values


class _Describer:
    """Text that is the same for equal values and differs otherwise.

    Functions and classes are described where they are met first and named after that: they may use one another.
    """

    def __init__(self, home: str) -> None:
        """``home`` is the module of the kernel: its package is described however it was installed."""
        self.met: set[int] = set()
        self.home = _top(home)

    def foreign(self, module: str | None) -> bool:
        """Whether what stands in a module is named only, with the state of the module's file."""
        return _top(module) != self.home and _is_foreign(module)

    def text(self, value: Any, words: frozenset[str] = frozenset()) -> str:
        """``words`` are the attributes that may be asked for: of a module only those count."""
        kind = type(value).__name__
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            return f"{kind} {value!r}"
        if isinstance(value, (tuple, list)):
            return f"{kind} [{', '.join(self.text(item) for item in value)}]"
        if isinstance(value, (set, frozenset)):
            return f"{kind} {{{', '.join(sorted(self.text(item) for item in value))}}}"
        if isinstance(value, dict):
            items = sorted((self.text(key), self.text(item)) for key, item in value.items())
            return f"{kind} {{{', '.join(f'{key}: {item}' for key, item in items)}}}"
        if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            return f"{kind} {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, Macro):
            return f"macro {self.text(value.function)}"
        wrapped = None if isinstance(value, types.FunctionType) else getattr(value, "__wrapped__", None)
        if isinstance(wrapped, types.FunctionType):  # what a decorator made of a function
            return f"{kind} of {self.text(wrapped)}"
        if isinstance(value, types.FunctionType):
            return self.once(value, f"function {value.__qualname__}", self.function)
        if isinstance(value, type):
            return self.once(value, f"class {value.__qualname__}", self.members)
        if isinstance(value, types.ModuleType):
            if self.foreign(value.__name__):
                return f"module {value.__name__} {_file_state(value.__name__)}"
            used = {word: getattr(value, word) for word in sorted(words) if hasattr(value, word)}
            return f"module {value.__name__} {self.text(used)}"
        addressed = getattr(type(value), "__repr__", None) is object.__repr__
        if addressed and hasattr(value, "__dict__") and not self.foreign(type(value).__module__):
            return self.once(value, kind, lambda it: f"{self.text(type(it))} {self.text(vars(it))}")  # not its address
        return f"{kind} {value!r}"

    def once(self, value: Any, name: str, describe: Callable[[Any], str]) -> str:
        """``name``, and what ``describe`` says unless it has been said or belongs to an installed package."""
        module = getattr(value, "__module__", None)
        if self.foreign(module):
            return f"{name} of {module} {_file_state(module)}"
        if id(value) in self.met:
            return name
        self.met.add(id(value))
        return f"{name} {describe(value)}"

    def function(self, function: types.FunctionType) -> str:
        """Source, defaults, and the values of the names it uses."""
        try:
            text = inspect.getsource(function)
        except OSError:
            text = repr((function.__code__.co_code, function.__code__.co_consts))
        words = frozenset(_words(function.__code__))
        used = [(name, self.text(value, words)) for name, value in sorted(_used_values(function, {}).items())]
        return f"{text} {self.text([function.__defaults__, function.__kwdefaults__])} {used}"

    def members(self, value: type) -> str:
        """What stands in a class."""
        return self.text({name: item for name, item in vars(value).items() if not name.startswith("__")})


def _top(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _is_our_own(module: str | None) -> bool:
    """Whether a module belongs to Python or to this compiler, whose versions are part of every key."""
    return _top(module) in sys.stdlib_module_names or _top(module) in ("tilelang_min", "builtins")


@cache
def _is_foreign(module: str | None) -> bool:
    """Whether a module belongs to the standard library, to this compiler, or to an installed package."""
    if _is_our_own(module):
        return _top(module) != "__main__"
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    return file is not None and ("site-packages" in file or "dist-packages" in file)


@cache
def _file_state(module: str | None) -> str:
    """Size and time of an installed module's file: another version of the package has another."""
    if _is_our_own(module):
        return ""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    try:
        status = os.stat(file or "")
    except OSError:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}"
