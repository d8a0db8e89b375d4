"""The flame tree: shape, weights by mode, sums, what is left over."""

from __future__ import annotations

import pytest
from run_factory import NCU, SIMULATED, STEPS, executed_counts, make_case, make_run

from tileprof.analyse.flame import FlameTree, Node, case_node, flame_trees
from tileprof.store.records import Metric, Run


def tree_of(run: Run, target: str) -> FlameTree:
    return next(tree for tree in flame_trees(run) if tree.target_name == target)


def child(node: Node, name: str) -> Node:
    return next(found for found in node.children if found.name.startswith(name))


def test_one_tree_a_target_with_the_modes_it_has_data_for(run: Run) -> None:
    modes = {tree.target_name: [mode.id for mode in tree.modes] for tree in flame_trees(run)}
    assert modes["cpu"] == ["time", "static"]
    assert modes["mi300x"] == ["executed", "transactions", "conflicts", "sectors", "static"]
    assert set(modes["sm80"]) >= {
        "time",
        "executed",
        "executed_measured",
        "transactions",
        "transactions_measured",
        "samples",
    }


def test_shape_is_workload_case_loop_operation(run: Run) -> None:
    root = tree_of(run, "sm80").root
    assert root.name == "quickstart"
    case = child(root, "matmul_tiled[float16]")
    assert [node.name for node in case.children] == [
        "clear C_local",
        "pipelined ko",
        "copy C_local to C",
        "unattributed",
    ]
    loop = child(case, "pipelined ko")
    assert [node.kind for node in loop.children] == ["copy", "copy", "gemm"]
    assert (loop.children[2].file, loop.children[2].line) == ("matmul.py", 39)


@pytest.mark.parametrize("target", ["cpu", "sm80", "mi300x"])
def test_children_never_weigh_more_than_their_parent(run: Run, target: str) -> None:
    tree = tree_of(run, target)
    for mode in tree.modes:
        for node in tree.root.walk():
            own = node.own(mode.id)
            assert own is None or own >= 0, (mode.id, node.name)
    for mode in tree.modes:
        whole = tree.root.weight(mode.id)
        leaves = sum(node.own(mode.id) or 0 for node in tree.root.walk())
        assert leaves == pytest.approx(whole)


def test_executed_instructions_add_up_by_hand() -> None:
    node = case_node(make_case("matmul_tiled", "float16", "mi300x"), "x")
    counts = executed_counts("matmul_tiled", "float16", "hip:gfx942")
    assert node.weight("executed") == sum(counts.values())
    assert child(node, "pipelined").weight("executed") == counts[2] + counts[3] + counts[4] + counts[5]
    assert child(node, "pipelined").own("executed") == counts[2] == 12 * STEPS


def test_static_instructions_keep_the_unattributed(run: Run) -> None:
    case = next(c for c in run.cases if c.id.startswith("matmul_tiled[float16") and c.target_name == "sm80")
    node = case_node(case, "x")
    assert case.metadata is not None
    assert node.weight("static") == sum(case.metadata["instructions"]["total"].values())
    assert child(node, "unattributed").weight("static") == 4


def test_measured_instructions_of_no_operation_are_a_leaf_of_their_own() -> None:
    node = case_node(make_case("matmul_tiled", "float16", "sm80"), "x")
    assert child(node, "unattributed").weight("executed_measured") == 740
    assert node.weight("executed_measured") == 2_469_604
    assert node.own("executed_measured") == 62_464


def test_time_is_the_unprofiled_median_and_stays_with_the_case(run: Run) -> None:
    case = child(tree_of(run, "sm80").root, "matmul_tiled[float16]")
    assert case.weight("time") == pytest.approx(41_300.0)
    assert all(node.weight("time") is None for node in case.children)
    assert case.figures["time"].provenance.kind == "measured"
    assert child(tree_of(run, "mi300x").root, "matmul_naive[float32]").weight("time") is None


def test_a_case_without_operations_is_a_leaf_without_weights(run: Run) -> None:
    node = child(tree_of(run, "mi300x").root, "scale_add[float16]")
    assert node.children == []
    assert node.figures == {}


def test_zero_is_a_weight_and_missing_is_none() -> None:
    metrics = (Metric("executed.instructions", 0, "instructions", SIMULATED, 3),)
    node = case_node(make_case("matmul_tiled", "float16", "mi300x", metrics=metrics), "x")
    copy_a, copy_b = child(node, "pipelined").children[:2]
    assert copy_a.weight("executed") == 0
    assert copy_b.weight("executed") is None


def test_parts_larger_than_the_whole_are_flagged_not_clamped() -> None:
    metrics = (
        Metric("executed.instructions", 50, "instructions", NCU),
        Metric("executed.instructions", 80, "instructions", NCU, 5),
    )
    node = case_node(make_case("matmul_tiled", "float16", "sm80", metrics=metrics), "x")
    assert node.weight("executed_measured") == 80
    assert node.figures["executed_measured"].flag == "parts exceed whole"


def test_operations_with_a_lost_parent_hang_on_the_kernel() -> None:
    case = make_case("matmul_tiled", "float16", "mi300x")
    operations = tuple({**o, "parent": 99} if o["id"] == 5 else o for o in case.operations)
    node = case_node(make_case("matmul_tiled", "float16", "mi300x", operations=operations), "x")
    assert child(node, "gemm").operation == 5


def test_an_empty_run_has_no_trees() -> None:
    assert flame_trees(make_run(cases=())) == []


def test_operations_open_into_instruction_classes_and_stall_reasons(run: Run) -> None:
    gemm = child(child(child(tree_of(run, "sm80").root, "matmul_tiled[float16]"), "pipelined ko"), "gemm")
    classes = {node.name: node.weight("static") for node in gemm.children if node.kind == "class"}
    stalls = {node.name: node.weight("samples") for node in gemm.children if node.kind == "stall"}
    assert classes == {"matrix": 32, "integer": 18, "ldmatrix": 16}
    assert stalls == {"mio throttle": 5120, "short scoreboard": 2210, "math pipe throttle": 318}
    assert sum(classes.values()) == gemm.weight("static")
    assert sum(stalls.values()) == gemm.weight("samples")
