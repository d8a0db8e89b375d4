"""What the compiler's simulator counts -> metric records: per operation, buffer and kind of access, and for the kernel.

Counts are scaled to one launch by the simulator's driver.  A count that has no known rule gives no record: what is missing is
missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance, Suggestion

OPEN, UNKNOWN = "open", "unknown"
"""Flags: the counting rule is a hypothesis that measurements do not settle yet; there is no rule, so requests alone are counted."""

_RULES = ("known", OPEN, UNKNOWN)

_BY_SPACE = {
    "shared": {
        "requests": "shared.requests",
        "transactions": "shared.transactions",
        "transactions_ideal": "shared.transactions_ideal",
        "conflicts": "shared.conflicts",
        "ways": "shared.ways",
        "bytes": "shared.bytes",
    },
    "global": {
        "requests": "global.requests",
        "sectors": "global.sectors",
        "sectors_ideal": "global.sectors_ideal",
        "bytes": "global.bytes",
    },
}
_Key = tuple[int, str, str, str]


def suggestion_of(record: Mapping[str, Any]) -> Suggestion:
    """What a run keeps of a suggestion of the compiler (``Suggestion.to_json()``)."""
    return Suggestion(**{name: record[name] for name in Suggestion.__dataclass_fields__ if name in record})


def simulated_metrics(analysis: Mapping[str, Any], version: str, blocks: int, of: int) -> list[Metric]:
    """Records of an analysis (``Analysis.to_json()``) of a launch of ``of`` blocks, of which ``blocks`` were simulated."""
    detail = f"{blocks} of {of} blocks simulated, scaled to the launch"
    provenance = Provenance("simulated", "tilelang_min", version, detail)
    return [*_accesses(analysis["counts"], provenance), *_executed(analysis["executed"], provenance)]


def _accesses(counts: list[Mapping[str, Any]], provenance: Provenance) -> Iterator[Metric]:
    """Counts by operation, buffer and access, those of several widths together; then the sums over the kernel."""
    merged: dict[_Key, dict[str, Any]] = {}
    for count in counts:
        key = (count["operation"], count["buffer"], count["space"], count["access"])
        values = _values(count)
        merged[key] = values if key not in merged else _plus(merged[key], values)
    totals: dict[str, dict[str, Any]] = {}
    for (operation, buffer, space, access), values in sorted(merged.items()):
        totals[space] = dict(values) if space not in totals else _plus(totals[space], values)
        yield from _records(space, values, provenance, operation, buffer, access)
    for space, values in sorted(totals.items()):
        yield from _records(space, values, provenance, None, None, None)


def _values(count: Mapping[str, Any]) -> dict[str, Any]:
    taken, ideal = count["transactions"], count["transactions_ideal"]
    return {
        **{name: count[name] for name in ("requests", "ways", "sectors", "sectors_ideal", "bytes")},
        "transactions": taken,
        "transactions_ideal": ideal,
        "conflicts": None if taken is None or ideal is None else taken - ideal,
        "rule": _RULES.index(count["rule"]),
    }


def _plus(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Sums, and the larger number of ways; None wherever one of the two is unknown."""
    result: dict[str, Any] = {}
    for name in a:
        x, y = a[name], b[name]
        if x is None or y is None:
            result[name] = None
        else:
            result[name] = max(x, y) if name in ("ways", "rule") else x + y
    return result


def _records(
    space: str,
    values: Mapping[str, Any],
    provenance: Provenance,
    operation: int | None,
    buffer: str | None,
    access: str | None,
) -> Iterator[Metric]:
    rule = _RULES[values["rule"]]
    for name, metric in _BY_SPACE.get(space, {}).items():
        value = values[name]
        # requests and bytes need no rule; where there is none, they are all that is left to carry the flag
        flagged = rule == UNKNOWN or (rule == OPEN and name not in ("requests", "bytes"))
        flag = rule if flagged else None
        record = make(metric, value, provenance, operation=operation, buffer=buffer, access=access, flag=flag)
        if record is not None:
            yield record


def _executed(executed: Mapping[str, Mapping[str, int]], provenance: Provenance) -> Iterator[Metric]:
    total = 0
    for operation, by_class in sorted(executed.items(), key=lambda item: int(item[0])):
        count = sum(by_class.values())
        total += count
        record = make("executed.instructions", float(count), provenance, operation=int(operation))
        if record is not None:
            yield record
    record = make("executed.instructions", float(total), provenance) if executed else None
    if record is not None:
        yield record
