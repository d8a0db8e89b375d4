"""Whether a measuring tool can be used on this machine: the answer every tool's module gives."""

from __future__ import annotations

from dataclasses import dataclass

from tileprof.errors import ProfilerUnavailable
from tileprof.store.records import Unavailable


@dataclass(frozen=True, slots=True)
class Availability:
    """``usable`` says whether the tool can measure here; if not, ``why`` and ``remedy`` say what is missing.

    ``path`` and ``version`` are known as soon as the tool is found, even where it is denied.
    """

    tool: str
    usable: bool
    path: str = ""
    version: str = ""
    why: str = ""
    remedy: str = ""

    def require(self) -> None:
        """Raise :class:`ProfilerUnavailable` unless usable: for a tool that was asked for by name."""
        if not self.usable:
            raise ProfilerUnavailable(f"{self.tool}: {self.why}", remedy=self.remedy or None)

    def as_unavailable(self, what: str, target: str) -> Unavailable:
        """The record that reports list: what could not be measured on a target."""
        return Unavailable(what, target, f"{self.tool}: {self.why}", self.remedy)
