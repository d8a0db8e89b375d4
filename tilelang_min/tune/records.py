"""What a search found: a record of every configuration, and the whole of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

OUTCOMES = {
    "best": "chosen",
    "measured": "measured to the end, and slower",
    "stopped": "measured until it was clear that it is slower",
    "ruled out": "not measured: the reason says which fact speaks against it",
    "predicted": "there is no device to measure on: a prediction alone",
    "same": "compiles to what another configuration is",
    "wrong": "its results differ",
    "refused": "the compiler says that it cannot be",
    "failed": "an error while it was made, run or measured",
    "crashed": "its process died",
    "timed out": "took longer than allowed",
}
"""What can become of a configuration."""


@dataclass
class Outcome:
    """One configuration and what became of it.  What is not known is None.

    ``config`` is what was compiled, ``asked`` what the author wrote where that differs (fewer stages, so that it fits).
    ``outcome`` is one of :data:`OUTCOMES`, ``reason`` says why.  Registers a thread, spills in bytes a thread, shared bytes a
    block, times in milliseconds: ``predicted_ms`` what the prediction says, ``bound_ms`` the time that it cannot fall below,
    ``measured_ms`` the median of ``samples`` launches, ``quick_ms`` the time that a tenth of them stays below, by which
    configurations are compared.  ``error`` is the largest difference from the reference.
    """

    number: int
    config: dict[str, Any]
    asked: dict[str, Any] | None = None
    outcome: str = "failed"
    reason: str = ""
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None
    predicted_ms: float | None = None
    bound_ms: float | None = None
    bound_by: str | None = None
    measured_ms: float | None = None
    quick_ms: float | None = None
    samples: int = 0
    error: float | None = None
    compile_seconds: float | None = None

    @property
    def works(self) -> bool:
        """Whether there is a kernel, and nothing speaks against its results."""
        return self.outcome in ("best", "measured", "stopped", "ruled out", "predicted")

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return asdict(self)


@dataclass
class Tuned:
    """The whole of a search: what ``kernel.tuned`` is.

    ``measured`` says whether ``latency`` (milliseconds) was measured on ``device``, or predicted because there is none.
    ``results`` has every configuration, in the order given.  ``seconds`` by step; ``stored`` says whether all this was found on
    disk.
    """

    config: dict[str, Any]
    latency: float | None
    measured: bool
    target: str
    device: str | None
    results: list[Outcome]
    ref_latency: float | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stored: bool = False

    @property
    def best(self) -> Outcome:
        """The configuration chosen."""
        return next(each for each in self.results if each.outcome == "best")

    def __str__(self) -> str:
        """A table, the quickest first."""
        how = f"measured on {self.device}" if self.measured else "predicted: there is no such device here"
        time = "" if self.latency is None else f" {_ms(self.latency)} ms,"
        lines = [f"{len(self.results)} configurations for {self.target},{time} {how}", *self.notes]
        head = (
            "",
            "outcome",
            "measured",
            "quick",
            "predicted",
            "bound",
            "registers",
            "spills",
            "shared",
            "occupancy",
            "configuration",
        )
        rows = [head, *(_row(each) for each in sorted(self.results, key=_order))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary; :meth:`from_json` is its inverse."""
        return {**asdict(self), "results": [each.to_json() for each in self.results]}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Tuned:
        """What :meth:`to_json` wrote.  KeyError or TypeError for something else."""
        known = {each.name for each in fields(cls)}
        values = {name: value for name, value in record.items() if name in known}
        return cls(**{**values, "results": [Outcome(**each) for each in record["results"]]})


def _order(each: Outcome) -> tuple[int, float, int]:
    ranks = {"best": 0, "measured": 1, "stopped": 2, "predicted": 2, "ruled out": 3}
    rank = ranks.get(each.outcome, 4)
    time = each.quick_ms if each.quick_ms is not None else each.predicted_ms
    return rank, float("inf") if time is None else time, each.number


def _row(each: Outcome) -> tuple[str, ...]:
    config = ", ".join(f"{name}={value!r}" for name, value in each.config.items())
    if each.asked is not None:
        asked = ", ".join(f"{name}={value!r}" for name, value in each.asked.items() if each.config.get(name) != value)
        config += f" (asked: {asked})"
    reason = each.reason.splitlines()[0] if each.reason else ""
    return (
        str(each.number),
        each.outcome,
        _ms(each.measured_ms),
        _ms(each.quick_ms),
        _ms(each.predicted_ms),
        _ms(each.bound_ms),
        _number(each.registers),
        _number(each.spill_bytes),
        _number(each.shared_bytes),
        "-" if each.occupancy is None else f"{each.occupancy:.2f}",
        config + (f": {reason}" if reason else ""),
    )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
