"""The conflicts table: simulated beside measured, joined where they can be, and what is said where they cannot."""

from __future__ import annotations

from run_factory import NCU, SIMULATED, STEPS, make_case

from tileprof.analyse.conflicts import ConflictRow, conflict_rows
from tileprof.store.records import Metric


def rows_of(*metrics: Metric) -> list[ConflictRow]:
    return conflict_rows(make_case("matmul_tiled", "float16", "sm80", metrics=metrics))


def transactions(
    value: float, provenance: object = NCU, buffer: str | None = None, access: str | None = "load", **more: object
) -> Metric:
    operation = more.pop("operation", 5)
    return Metric("shared.transactions", value, "transactions", provenance, operation, buffer, access, **more)  # type: ignore[arg-type]


def test_simulated_rows_of_the_plain_tiles() -> None:
    rows = conflict_rows(make_case("matmul_tiled", "float16", "mi300x"))
    assert [(row.operation, row.buffer, row.access) for row in rows] == [
        (3, "A_shared", "store"), (4, "B_shared", "store"), (5, "A_shared", "load"), (5, "B_shared", "load"),
    ]  # fmt: skip
    b = rows[-1]
    assert b.simulated.requests is not None
    assert b.simulated.conflicts is not None
    assert b.simulated.ways is not None
    assert (b.simulated.requests.value, b.simulated.ways.value) == (16 * STEPS, 8)
    assert b.simulated.conflicts.value == 16 * STEPS * 4 * 7
    assert (b.line, b.source, b.rule, b.difference) == (39, "simulated", "known", None)


def test_padded_tiles_have_no_conflicts() -> None:
    rows = conflict_rows(make_case("matmul_padded", "float16", "mi300x"))
    assert [row.simulated.conflicts.value for row in rows if row.simulated.conflicts] == [0, 0, 0, 0]


def test_measured_beside_simulated_with_their_difference() -> None:
    rows = conflict_rows(make_case("matmul_tiled", "float16", "sm80"))
    copy_a = rows[0]
    # one simulated row of that family: the measured figure, which has no buffer, belongs to it
    assert (copy_a.buffer, copy_a.access, copy_a.source, copy_a.rule) == ("A_shared", "cp_async_bypass", "both", "open")
    assert copy_a.difference == 8 * STEPS * (32 - 4)
    gemm = [row for row in rows if row.operation == 5]
    # two buffers read the same way: only their sum can be compared
    assert [row.buffer for row in gemm] == ["A_shared", "B_shared", None]
    assert [row.subtotal for row in gemm] == [False, False, True]
    assert [row.difference for row in gemm] == [None, None, 0]
    assert gemm[2].simulated.transactions is not None
    assert gemm[2].simulated.transactions.value == 16 * 4 * (4 + 8) * STEPS
    assert gemm[2].simulated.ways is not None
    assert gemm[2].simulated.ways.value == 8


def test_a_measured_buffer_is_joined_exactly() -> None:
    rows = rows_of(
        transactions(40, SIMULATED, "A_shared"), transactions(8, SIMULATED, "B_shared"),
        transactions(44, NCU, "A_shared"), transactions(8, NCU, "B_shared"),
    )  # fmt: skip
    assert [(row.buffer, row.difference) for row in rows] == [("A_shared", 4), ("B_shared", 0)]


def test_the_two_asynchronous_copies_meet_on_one_buffer() -> None:
    rows = rows_of(
        transactions(8, SIMULATED, "A_shared", "cp_async"), transactions(8, NCU, "A_shared", "cp_async_bypass")
    )
    assert [(row.access, row.difference) for row in rows] == [("cp_async", 0)]


def test_what_only_one_side_knows_has_no_difference() -> None:
    only_measured, only_simulated = rows_of(transactions(5, NCU, None, "store")), rows_of(transactions(5, SIMULATED))
    assert [(row.source, row.difference) for row in only_measured] == [("measured", None)]
    assert [(row.source, row.difference) for row in only_simulated] == [("simulated", None)]


def test_loads_are_not_mixed_with_stores() -> None:
    rows = rows_of(transactions(5, SIMULATED, "A_shared", "load"), transactions(9, NCU, None, "store"))
    assert [(row.access, row.source) for row in rows] == [("load", "simulated"), ("store", "measured")]


def test_requests_alone_are_an_unknown_rule() -> None:
    rows = rows_of(Metric("shared.requests", 12, "requests", SIMULATED, 5, "A_shared", "load", flag="unknown"))
    assert rows[0].rule == "unknown"
    assert rows[0].simulated.transactions is None


def test_conflicts_follow_from_transactions_and_ideal() -> None:
    rows = rows_of(transactions(48), Metric("shared.transactions_ideal", 16, "transactions", NCU, 5, None, "load"))
    assert rows[0].measured.conflicts is not None
    assert rows[0].measured.conflicts.value == 32
    assert rows_of(transactions(48))[0].measured.conflicts is None


def test_what_belongs_to_no_operation_has_a_row() -> None:
    rows = rows_of(transactions(3, NCU, None, "unattributed", operation=None, flag="unattributed"))
    assert [(row.operation, row.label, row.source) for row in rows] == [(None, "unattributed", "measured")]


def test_no_shared_memory_no_rows() -> None:
    assert conflict_rows(make_case("scale_add", "float32", "sm80")) == []
    assert conflict_rows(make_case("matmul_tiled", "float32", "cpu")) == []
