"""Formulas from raw counters to a metric: written as text, checked when loaded, evaluated without ``eval``.

A formula is an arithmetic expression on names: raw counters (``TCC_HIT_sum``, ``dram__bytes.sum.per_second``) and facts of the
launch (``xcc``, ``duration_ns``).  The same text is evaluated, planned (which counters it needs), documented, and kept as the
provenance of what it gives.  A name without a value makes the result missing, and so does a division by zero: neither is 0.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tileprof.metrics.catalogue import lookup, make
from tileprof.store.records import Metric, Provenance

FACTS = {
    "xcc": "dies (XCC) of the device: counters are summed over them",
    "cu": "compute units of the device",
    "simds": "SIMD units of one compute unit",
    "wave_slots": "wavefronts that one compute unit holds at most",
    "wave_size": "lanes of a wavefront",
    "duration_ns": "time of the launch in nanoseconds, under the profiler",
}
"""Names in formulas that are no counters."""

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


@dataclass(frozen=True)
class Formula:
    """How one tool's counters give a metric on some architectures.

    ``arches`` are those for which it holds (empty: every one of the tool's).  ``note`` says what to know about the result, ``flag``
    marks every value of it, for a formula that is only known to be near.  Of several formulas for one metric and architecture
    the first whose inputs are all there counts.
    """

    metric: str
    text: str
    arches: tuple[str, ...] = ()
    note: str = ""
    flag: str | None = None
    _tree: ast.expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Parse the text.  Raises ValueError for what is no arithmetic, UnknownMetric for a metric that is none."""
        lookup(self.metric)
        tree = ast.parse(self.text, mode="eval").body
        _check(tree, self.text)
        object.__setattr__(self, "_tree", tree)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Counters and facts in the text, in the order in which they stand there."""
        return tuple(dict.fromkeys(_names(self._tree)))

    @property
    def counters(self) -> tuple[str, ...]:
        """Raw counters that it needs."""
        return tuple(name for name in self.names if name not in FACTS)

    def holds_on(self, arch: str) -> bool:
        """Whether it is for this architecture; of an unknown one ("") only formulas for all count."""
        return not self.arches or arch in self.arches

    def evaluate(self, values: Mapping[str, float]) -> float | None:
        """The value, or None where a name has none, is no number, or a divisor is 0."""
        if any(not math.isfinite(values.get(name, math.nan)) for name in self.names):
            return None
        try:
            return _evaluate(self._tree, values)
        except ZeroDivisionError:
            return None


def _check(node: ast.expr, text: str) -> None:
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        _check(node.left, text)
        _check(node.right, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand, text)
    elif isinstance(node, ast.Constant):
        if type(node.value) not in (int, float):
            raise ValueError(f"{text}: {node.value!r} is no number")
    elif _name(node) is None:
        raise ValueError(f"{text}: only names, numbers and + - * / may stand in a formula")


def _name(node: ast.expr) -> str | None:
    """``a.b.c`` of a dotted name, or None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := _name(node.value)) is not None:
        return f"{base}.{node.attr}"
    return None


def _names(node: ast.expr) -> Iterable[str]:
    if (name := _name(node)) is not None:
        yield name
    elif isinstance(node, ast.BinOp):
        yield from _names(node.left)
        yield from _names(node.right)
    elif isinstance(node, ast.UnaryOp):
        yield from _names(node.operand)


def _evaluate(node: ast.expr, values: Mapping[str, float]) -> float:
    if (name := _name(node)) is not None:
        return values[name]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return -_evaluate(node.operand, values)
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)](_evaluate(node.left, values), _evaluate(node.right, values))
    raise ValueError(f"no arithmetic: {ast.dump(node)}")


def derive(
    formulas: Sequence[Formula],
    values: Mapping[str, float],
    arch: str,
    provenance: Provenance,
    launch: int | None = None,
) -> list[Metric]:
    """Every metric that the formulas of an architecture give for these values, each once, with its formula as provenance.

    A formula that is nothing but one counter, or one in percent, is a measurement; any other is ``derived`` from what
    ``provenance`` says.
    """
    rows: list[Metric] = []
    done: set[str] = set()
    for formula in formulas:
        if formula.metric in done or not formula.holds_on(arch):
            continue
        value = formula.evaluate(values)
        if value is None:
            continue
        plain = formula.text in (formula.names[0], f"{formula.names[0]} / 100")
        detail = f"{provenance.detail}; {formula.text}" if provenance.detail else formula.text
        if formula.note:
            detail = f"{detail} ({formula.note})"
        source = Provenance(provenance.kind if plain else "derived", provenance.tool, provenance.version, detail)
        row = make(formula.metric, value, source, launch=launch, flag=formula.flag)
        if row is not None:
            rows.append(row)
            done.add(formula.metric)
    return rows


def needed(formulas: Sequence[Formula], metrics: Iterable[str], arch: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(raw counters that give these metrics on an architecture, metrics that it has no formula for)."""
    counters: dict[str, None] = {}
    without: list[str] = []
    for metric in metrics:
        formula = next((f for f in formulas if f.metric == metric and f.holds_on(arch)), None)
        if formula is None:
            without.append(metric)
        else:
            counters.update(dict.fromkeys(formula.counters))
    return tuple(counters), tuple(without)
