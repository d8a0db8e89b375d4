"""What an author says about inputs: tensors for a ``with`` block, or how random ones are filled.  Imports nothing but errors."""

from __future__ import annotations

import threading
from enum import Enum
from typing import Any, Self

from tilelang_min.errors import TuningError, did_you_mean


class TensorSupplyType(Enum):
    """How inputs are filled, as in TileLang: small integers, uniform in [-1, 1), normal (``Randn`` is the same), zeros, ones;
    ``Auto`` is normal, and of integers 0 to 99."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


class _Stack(threading.local):
    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []


_stack = _Stack()


class set_autotune_inputs:
    """Within ``with set_autotune_inputs(a, b, c):`` (or a list of them) searches run kernels on these tensors."""

    def __init__(self, *tensors: Any) -> None:
        single = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
        self.tensors = tuple(tensors[0]) if single else tensors

    def __enter__(self) -> Self:
        _stack.given.append(self.tensors)
        return self

    def __exit__(self, *_: object) -> None:
        _stack.given.pop()


def inputs_in_force() -> tuple[Any, ...] | None:
    """The tensors of the innermost ``with set_autotune_inputs``."""
    return _stack.given[-1] if _stack.given else None


def supply_type(given: Any) -> TensorSupplyType:
    """A way of filling by its name or member; TileLang's own members count too.  TuningError for another."""
    name = str(getattr(given, "name", given))
    for each in TensorSupplyType:
        if each.name.lower() == name.lower():
            return each
    raise TuningError(
        f"there is no supply_type {name!r}", remedy=did_you_mean(name, [each.name for each in TensorSupplyType])
    )
