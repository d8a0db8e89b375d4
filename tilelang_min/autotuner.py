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

_ORGANISED = (
    "backend",
    "use_pipeline",
    "enable_grouped_compile",
    "group_compile_size",
    "benchmark_devices",
    "benchmark_multi_gpu",
)
"""TileLang's parameters that say how it compiles and times, which is decided otherwise here."""


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
        """Parameters of :func:`tilelang_min.autotune`.  TileLang's ``backend`` changes nothing: how to time is decided here."""
        self.profiling = {name: value for name, value in options.items() if name not in _ORGANISED}
        return self

    def run(
        self, warmup: int | None = None, rep: int | None = None, timeout: float | None = None, **options: Any
    ) -> Any:
        """Searches, or takes what was found before: an :class:`AutotuneResult`.

        ``options`` are further parameters of :func:`tilelang_min.autotune`; those by which TileLang organises compiling and timing
        (``use_pipeline``, ``benchmark_multi_gpu``, ...) change nothing.
        """
        numbers = {"warmup": warmup, "rep": rep, "timeout": timeout}
        settings = {
            **self.profiling,
            **{name: value for name, value in numbers.items() if value is not None},
            **{name: value for name, value in options.items() if name not in _ORGANISED},
        }
        wrapped = {name: value for name, value in self.compiling.items() if name != "target"}
        jitted = jit(self.compiling.get("target"), **wrapped)(self.fn)
        tuned: Any = autotune(configs=self.configs, **settings)(jitted)
        kernel: Kernel = tuned.compile()
        config = kernel.config or {}
        function = None if _lacks(self.fn, config) else tuned.prim_func(**config)
        return AutotuneResult(kernel.latency, kernel.config, kernel.ref_latency, kernel.source(), function, kernel)

    __call__ = run


def _lacks(function: Callable[..., Any], config: dict[str, Any]) -> bool:
    """Whether parameters stay open."""
    try:
        inspect.signature(function).bind(**config)
    except TypeError:
        return True
    return False
