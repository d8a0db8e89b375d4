"""Look-ups in a case's metrics: sums, medians, what is not known, short labels, figures by line."""

from __future__ import annotations

import dataclasses

from run_factory import NCU, SIMULATED, STEPS, make_case, make_run

from tileprof.analyse.figures import CaseFigures, Figure, static_instructions, total
from tileprof.analyse.labels import variant_labels
from tileprof.analyse.lines import line_figures
from tileprof.store.records import Metric, Run


def with_metrics(*metrics: Metric) -> CaseFigures:
    return CaseFigures(make_case("matmul_tiled", "float16", "sm80", metrics=metrics))


def test_an_operation_is_the_sum_over_its_buffers() -> None:
    figures = CaseFigures(make_case("matmul_tiled", "float16", "mi300x"))
    # gemm: 16 requests a step and buffer, 4 passes each; A takes 4, B 8 times that
    figure = figures.of_operation("shared.transactions", "simulated", 5)
    assert figure is not None
    assert figure.value == 16 * 4 * (4 + 8) * STEPS


def test_own_row_of_an_operation_wins_over_its_parts() -> None:
    figures = with_metrics(
        Metric("shared.transactions", 7, "transactions", NCU, 5),
        Metric("shared.transactions", 3, "transactions", NCU, 5, "A_shared", "load"),
    )
    assert figures.of_operation("shared.transactions", "measured", 5) == Figure(7, "transactions", NCU)


def test_missing_is_none_and_never_zero() -> None:
    figures = with_metrics(Metric("shared.transactions", 0, "transactions", NCU, 5))
    assert figures.of_operation("shared.transactions", "measured", 5) == Figure(0, "transactions", NCU)
    assert figures.of_operation("shared.transactions", "measured", 3) is None
    assert figures.of_operation("shared.transactions", "simulated", 5) is None
    assert figures.of_case("dram.read_bytes", "measured") is None
    assert total([None, None]) is None


def test_several_launches_count_as_their_median() -> None:
    rows = [Metric("dram.read_bytes", value, "bytes", NCU, launch=launch) for launch, value in enumerate((10, 900, 30))]
    assert with_metrics(*rows).of_case("dram.read_bytes", "measured") == Figure(30, "bytes", NCU)


def test_what_belongs_to_no_operation_is_no_total() -> None:
    rest = Metric("executed.instructions", 740, "instructions", NCU, None, None, "unattributed", flag="unattributed")
    figures = with_metrics(rest, Metric("executed.instructions", 100, "instructions", NCU, 5))
    assert figures.of_operation("executed.instructions", "measured", None) is None
    of_case = figures.of_case("executed.instructions", "measured")
    assert of_case is not None
    assert of_case.value == 840


def test_a_sum_with_an_open_part_is_open() -> None:
    parts = [Figure(1, "x", SIMULATED), Figure(2, "x", SIMULATED, "open")]
    assert total(parts) == Figure(3, "x", SIMULATED, "open")


def test_static_instructions_take_ids_as_numbers_or_text() -> None:
    metadata = {"instructions": {"by_operation": {"3": {"fma": 2}, 4: {"move": 1}, "none": {"other": 5}}}}
    case = make_case("matmul_tiled", "float16", "sm80", metadata=metadata)
    assert static_instructions(case) == {3: {"fma": 2}, 4: {"move": 1}, None: {"other": 5}}
    assert static_instructions(make_case("scale_add", "float16", "mi300x")) == {}


def test_labels_name_only_what_differs(run: Run) -> None:
    labels = variant_labels(run.cases)
    assert labels[run.cases[0].id] == "matmul_naive[float32]"
    tiles = [
        make_case("matmul_tiled", "float16", "cpu", id=f"t{stages}", tiles={"block_M": 64, "num_stages": stages})
        for stages in (2, 3)
    ]
    assert list(variant_labels(tiles).values()) == ["matmul_tiled[num_stages=2]", "matmul_tiled[num_stages=3]"]


def test_labels_never_collide_on_a_target() -> None:
    twins = [make_case("matmul_tiled", "float16", "cpu", id=id) for id in ("first@cpu", "second@cpu")]
    assert list(variant_labels(twins).values()) == ["first@cpu", "second@cpu"]


def test_lines_add_up_the_operations_on_them() -> None:
    case = make_case("matmul_tiled", "float16", "sm80")
    operations = tuple(
        {**o, "location": {**o["location"], "line": 37}} if o["id"] in (3, 4) else o for o in case.operations
    )
    lines = {line.line: line for line in line_figures(dataclasses.replace(case, operations=operations))}
    assert lines[37].operations == (3, 4)
    assert lines[37].figures["static"].value == (4 + 10) + (4 + 12)
    assert lines[37].figures["executed"].value == (40 + 44) * STEPS
    assert lines[37].figures["transactions_measured"].value == 2 * 8 * 32 * STEPS
    assert "sectors" not in lines[39].figures  # gemm touches no global memory: not known, not 0


def test_lines_of_a_case_without_operations() -> None:
    assert line_figures(make_run().cases[-1]) == []
