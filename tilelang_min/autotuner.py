"""Searching over configurations, as in TileLang: ``from tilelang_min.autotuner import AutoTuner, set_autotune_inputs``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from tilelang_min.driver.jit import jit
from tilelang_min.driver.kernel import Kernel
from tilelang_min.tune.decorator import autotune
from tilelang_min.tune.given import TensorSupplyType, set_autotune_inputs

__all__ = ["AutoTuner", "AutotuneResult", "TensorSupplyType", "autotune", "set_autotune_inputs"]


@dataclass(frozen=True)
class AutotuneResult:
    """The best of a search; times in milliseconds.  ``kernel.tuned`` has the record of all configurations."""

    latency: float | None
    config: dict[str, Any] | None
    ref_latency: float | None
    libcode: str
    func: Any
    kernel: Kernel


class AutoTuner:
    """A search in steps: ``AutoTuner.from_kernel(factory, configs).set_compile_args(...).set_profile_args(...).run()``.

    ``factory`` is a function whose parameters the configurations set, and which returns a ``@T.prim_func``.
    """

    def __init__(self, fn: Callable[..., Any], configs: Any) -> None:
        self.fn = fn
        self.configs = configs
        self.compiling: dict[str, Any] = {}
        self.profiling: dict[str, Any] = {}

    @classmethod
    def from_kernel(cls, kernel: Callable[..., Any], configs: Any) -> AutoTuner:
        """A search over ``configs`` of a factory."""
        return cls(kernel, configs)

    def set_compile_args(self, target: Any = None, **options: Any) -> Self:
        """``target`` and options of :func:`tilelang_min.jit`."""
        self.compiling = {"target": target, **options}
        return self

    def set_profile_args(self, **options: Any) -> Self:
        """Parameters of :func:`tilelang_min.autotune`."""
        self.profiling = options
        return self

    def run(self, warmup: int = 25, rep: int = 100, timeout: float = 100.0, **options: Any) -> AutotuneResult:
        """Searches, or takes what was found before."""
        settings = {**self.profiling, "warmup": warmup, "rep": rep, "timeout": timeout, **options}
        options = {name: value for name, value in self.compiling.items() if name != "target"}
        jitted = jit(self.compiling.get("target"), **options)(self.fn)
        tuned: Any = autotune(configs=self.configs, **settings)(jitted)
        kernel: Kernel = tuned()
        config = kernel.config or {}
        function = tuned.prim_func(**config) if not _lacks(self.fn, config) else None
        return AutotuneResult(kernel.latency, kernel.config, kernel.ref_latency, kernel.source(), function, kernel)


def _lacks(function: Callable[..., Any], config: dict[str, Any]) -> bool:
    """Whether parameters stay open."""
    try:
        inspect.signature(function).bind(**config)
    except TypeError:
        return True
    return False
