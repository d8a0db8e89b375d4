"""The quickstart's kernels at a small size."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parents[3] / "workloads" / "kernels"
KERNELS = ("naive", "tiled", "padded", "scale_add_relu")


@lru_cache
def module(name: str) -> ModuleType:
    """A module of ``workloads/kernels``."""
    spec = importlib.util.spec_from_file_location(f"driver_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def kernel(name: str, dtype: str, size: int = 128, **options: Any) -> Any:
    """The prim_func ``name`` for squares of ``size``."""
    if name == "scale_add_relu":
        return module("elementwise").scale_add_relu.prim_func(size, size, dtype=dtype, **options)
    return getattr(module("matmul"), name).prim_func(size, size, size, dtype=dtype, **options)
