"""How a search measures, checks and leaves out: the parameters of ``tilelang.autotune``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelang_min.errors import TuningError


@dataclass(frozen=True)
class Settings:
    """See :func:`tilelang_min.tune.decorator.autotune`, whose parameters these are."""

    warmup: int = 25
    rep: int = 100
    timeout: float = 100.0
    supply_type: Any = "Auto"
    supply_prog: Callable[..., Any] | None = None
    ref_prog: Callable[..., Any] | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    max_mismatched_ratio: float = 0.01
    skip_check: bool = False
    manual_check_prog: Callable[..., Any] | None = None
    cache_input_tensors: bool = True
    early_stop: bool = True
    early_stop_factor: float = 2.0
    prune: bool = True
    lower_stages: bool = True
    workers: int | None = None
    verbose: bool = False

    def checked(self) -> Settings:
        """These; TuningError for numbers that make no search."""
        wrong = None
        if self.rep < 1 or self.warmup < 0:
            wrong = (
                f"warmup={self.warmup} and rep={self.rep} leave nothing to measure",
                "give rep of 1 or more, warmup of 0 or more",
            )
        elif self.timeout <= 0:
            wrong = f"timeout={self.timeout} leaves no time", "give seconds for each configuration"
        elif self.early_stop_factor < 1:
            wrong = f"early_stop_factor={self.early_stop_factor} would stop the best", "give a factor of 1 or more"
        elif self.workers is not None and self.workers < 1:
            wrong = f"workers={self.workers} compile nothing", "give 1 or more, or leave it out"
        elif self.manual_check_prog is not None and self.ref_prog is None:
            wrong = "manual_check_prog compares with a reference, and there is none", "give ref_prog too"
        if wrong is not None:
            raise TuningError(wrong[0], remedy=wrong[1])
        return self

    def decisive(self) -> dict[str, Any]:
        """What decides about a result, as JSON has it; functions are described by whoever makes the key."""
        return {
            name: getattr(self, name)
            for name in (
                *("warmup", "rep", "timeout", "rtol", "atol", "max_mismatched_ratio", "skip_check", "early_stop"),
                *("early_stop_factor", "prune", "lower_stages"),
            )
        }
