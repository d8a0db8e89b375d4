"""Counts of the simulator become metric records: sums, conflicts, flags, and nothing where nothing is known."""

from __future__ import annotations

from typing import Any

from tileprof.collect.simulator import simulated_metrics
from tileprof.store.records import Metric


def count(operation: int, buffer: str, space: str, access: str, **values: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("transactions", "transactions_ideal", "ways", "sectors", "sectors_ideal"))
    base = {
        "operation": operation,
        "buffer": buffer,
        "space": space,
        "access": access,
        "width_bits": 32,
        "requests": 10,
    }
    return {**base, **empty, "bytes": 1280, "rule": "known", **values}


def made(*counts: dict[str, Any], executed: dict[str, dict[str, int]] | None = None) -> list[Metric]:
    return simulated_metrics({"counts": list(counts), "executed": executed or {}}, "0.1.0", 2, 64)


def table(metrics: list[Metric]) -> dict[tuple[str, int | None, str | None, str | None], tuple[float, str | None]]:
    rows = {(m.metric, m.operation, m.buffer, m.access): (m.value, m.flag) for m in metrics}
    assert len(rows) == len(metrics), "two records of one key"
    return rows


def test_shared_accesses_by_operation_and_in_sum() -> None:
    rows = table(
        made(
            count(3, "A", "shared", "store", transactions=80, transactions_ideal=10, ways=8),
            count(3, "A", "shared", "store", width_bits=128, transactions=40, transactions_ideal=40, ways=1),
            count(4, "A", "shared", "ldmatrix", transactions=16, transactions_ideal=16, ways=1),
        )
    )
    store = (3, "A", "store")
    assert rows["shared.requests", *store] == (20, None)
    assert rows["shared.transactions", *store] == (120, None)
    assert rows["shared.transactions_ideal", *store] == (50, None)
    assert rows["shared.conflicts", *store] == (70, None)
    assert rows["shared.ways", *store] == (8, None)
    assert rows["shared.conflicts", 4, "A", "ldmatrix"] == (0, None)
    assert rows["shared.transactions", None, None, None] == (136, None)
    assert rows["shared.conflicts", None, None, None] == (70, None)
    assert rows["shared.ways", None, None, None] == (8, None)
    assert not [key for key in rows if key[0].startswith("global.")]


def test_global_accesses() -> None:
    rows = table(made(count(1, "X", "global", "load", sectors=40, sectors_ideal=40)))
    assert rows["global.sectors", 1, "X", "load"] == (40, None)
    assert rows["global.bytes", None, None, None] == (1280, None)
    assert not [key for key in rows if key[0].startswith("shared.")]


def test_open_rules_are_flagged_and_unknown_ones_give_no_figure() -> None:
    rows = table(
        made(
            count(1, "A", "shared", "cp_async", transactions=30, transactions_ideal=20, ways=2, rule="open"),
            count(2, "A", "shared", "load", transactions=5, transactions_ideal=5, ways=1),
        )
    )
    assert rows["shared.transactions", 1, "A", "cp_async"] == (30, "open")
    assert rows["shared.requests", 1, "A", "cp_async"] == (10, None)
    assert rows["shared.transactions", 2, "A", "load"] == (5, None)
    assert rows["shared.transactions", None, None, None] == (35, "open")
    unknown = table(
        made(
            count(1, "A", "shared", "load", rule="unknown"),
            count(2, "A", "shared", "load", transactions=5, transactions_ideal=5, ways=1),
        )
    )
    assert ("shared.transactions", 1, "A", "load") not in unknown
    assert unknown["shared.requests", 1, "A", "load"] == (10, "unknown")
    assert ("shared.transactions", None, None, None) not in unknown, "a part of a sum is no sum"
    assert unknown["shared.requests", None, None, None] == (20, "unknown")


def test_executed_instructions_and_provenance() -> None:
    metrics = made(executed={"0": {"integer": 5}, "2": {"fma": 64, "global_load": 8}})
    assert table(metrics) == {
        ("executed.instructions", 0, None, None): (5, None),
        ("executed.instructions", 2, None, None): (72, None),
        ("executed.instructions", None, None, None): (77, None),
    }
    (source,) = {metric.provenance for metric in metrics}
    assert (source.kind, source.tool, source.version) == ("simulated", "tilelang_min", "0.1.0")
    assert source.detail == "2 of 64 blocks simulated, scaled to the launch"
    assert made() == []
