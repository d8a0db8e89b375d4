"""What a strand hands over when it has to wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Wait:
    """What a strand waits for: ``ready`` says whether it may go on, ``describe`` what for, in ``operation``."""

    ready: Callable[[], bool]
    describe: Callable[[], str]
    operation: int
