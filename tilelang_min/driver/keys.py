"""Content hashes of kernels, computed without importing TVM: what the author wrote, for which target, made by which tools."""

from __future__ import annotations

import hashlib
import inspect
import json
import types
from functools import cache
from pathlib import Path
from typing import Any

from tilelang_min.language import PrimFunc

_TOOLS = ("apache-tvm", "nvidia-cuda-nvrtc", "ziglang", "numpy")


@cache
def tool_versions() -> dict[str, str]:
    """Versions of everything that decides about generated code."""
    from importlib import metadata  # 30 ms that importing the compiler need not pay

    versions = {"tilelang_min": _own_version()}
    for name in _TOOLS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return versions


@cache
def _own_version() -> str:
    """A short hash over the compiler's own files, so that an edited compiler never meets old results."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        status = path.stat()
        digest.update(f"{status.st_size}:{status.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def kernel_key(kernel: PrimFunc, target: str, options: dict[str, Any]) -> str:
    """Hash of a kernel: its source and place, the values of all names it uses, target, options and tool versions."""
    function = kernel.function
    lines, first = inspect.getsourcelines(function)
    names = dict(kernel.scope)
    names.update(inspect.getclosurevars(function).nonlocals)
    words = set(function.__code__.co_names) | set(function.__code__.co_freevars)
    for annotation in function.__annotations__.values():
        words.update(names if isinstance(annotation, str) else ())
    for constant in function.__code__.co_consts:
        if isinstance(constant, types.CodeType):
            words |= set(constant.co_names)
    used = {name: _describe(names[name]) for name in sorted(words) if name in names}
    used.update(
        {
            name: _describe(function.__globals__[name])
            for name in sorted(words)
            if name not in names and name in function.__globals__
        }
    )
    annotations = {name: _describe(value) for name, value in function.__annotations__.items()}
    content = {
        "source": "".join(lines),
        "label": kernel.label,
        "place": [inspect.getsourcefile(function), first],
        "names": used,
        "annotations": annotations,
        "target": target,
        "options": options,
        "versions": tool_versions(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()


def _describe(value: Any) -> str:
    if isinstance(value, types.FunctionType):
        try:
            return inspect.getsource(value)
        except OSError:
            return repr(value.__code__.co_code)
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    return repr(value)
