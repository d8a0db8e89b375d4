"""Imports the author's kernel files in a worker, and says where they fail.

A file is imported once a process, under a name of its own, with its folder on the module path as if it were run.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tileprof.errors import TileprofError
from tileprof.workload.problems import unknown
from tileprof.workload.records import FunctionReference


class KernelSourceError(TileprofError):
    """The author's file or function cannot be used; the message has file and line."""


_failures: dict[str, KernelSourceError] = {}


def load_function(reference: FunctionReference, directory: str) -> Callable[..., Any]:
    """The function that ``reference`` names; modules are looked for in ``directory`` too.  Raises KernelSourceError."""
    module = _load_file(Path(reference.file)) if reference.file else _load_module(reference.module or "", directory)
    function = getattr(module, reference.function, None)
    shown = reference.text.rpartition(":")[0]
    if function is None:
        names = [name for name in vars(module) if not name.startswith("_")]
        raise KernelSourceError(unknown(f"function in {shown}", reference.function, names))
    if not callable(function):
        raise KernelSourceError(f"{reference.text} is a {type(function).__name__}, not a function")
    found: Callable[..., Any] = function
    return found


def _load_file(file: Path) -> ModuleType:
    digest = hashlib.sha256(os.fsencode(file)).hexdigest()[:12]
    name = f"tileprof_kernel_{file.stem}_{digest}"
    if name in _failures:
        raise _failures[name]
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise KernelSourceError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickling look it up
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # SystemExit of a script that was written to be run, too
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt | MemoryError):
            raise
        _failures[name] = KernelSourceError(f"importing {file.name} fails: {describe_error(error, str(file))}")
        raise _failures[name] from error
    return module


def _load_module(name: str, directory: str) -> ModuleType:
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise KernelSourceError(f"importing {name} fails: {describe_error(error)}") from error


def describe_error(error: BaseException, file: str | None = None) -> str:
    """``file:line: Type: message`` of an exception, at the innermost place in ``file``, or outside any library if None."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if (f.filename == file if file else "site-packages" not in f.filename)]
    if not own:
        return text
    place = own[-1]
    line = f"\n    {place.line.strip()}" if place.line else ""
    return f"{place.filename}:{place.lineno}: {text}{line}"
