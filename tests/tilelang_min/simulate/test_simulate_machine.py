"""What holds whatever the program: lane maps decide numerics, chunks do not, speed, arguments, records."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from thread_programs import Build, copy_through_shared, f32, mark, mma_gemm, mma_tile, simt_gemm, store

from tilelang_min import targets
from tilelang_min.errors import SimulationError
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import AccessCount, merge_counts, simulate, simulation
from tilelang_min.targets import LaneMap, MatrixInstruction, Term

RNG = np.random.default_rng(11)


def tile_error(program: ThreadProgram) -> float:
    """Largest error of the 16x16 product; NaN counts as infinite."""
    a, b = (RNG.standard_normal((16, 16)).astype(np.float16) for _ in range(2))
    result = simulate(program, {"A": a, "B": b}).outputs["C"]
    return float(np.nan_to_num(np.abs(result - a.astype(np.float64) @ b.astype(np.float64)), nan=np.inf).max())


def changed(lane_map: LaneMap, axis: str, number: int) -> LaneMap:
    """The map with one term's divisor doubled."""
    terms = list(getattr(lane_map, axis))
    terms[number] = replace(terms[number], divisor=terms[number].divisor * 2)
    return replace(lane_map, **{axis: tuple(terms)})


def terms(lane_map: LaneMap) -> list[tuple[str, int]]:
    return [(axis, n) for axis in ("row", "column") for n in range(len(getattr(lane_map, axis)))]


def test_one_changed_lane_map_breaks_numerics() -> None:
    """Every single term of the three maps of mma.sync matters."""
    program = mma_tile(24)
    assert tile_error(program) < 1e-5
    (instruction,) = [i for i in program.target.matrix_instructions if i.name.startswith("mma.sync") and i.k == 16]
    for name in ("a_map", "b_map", "c_map"):
        for axis, number in terms(getattr(instruction, name)):
            wrong: MatrixInstruction = replace(instruction, **{name: changed(getattr(instruction, name), axis, number)})
            target = replace(program.target, instruction_set=(wrong,))
            assert tile_error(replace(program, target=target)) > 1e-2, (name, axis, number)


@pytest.mark.parametrize("name", ["LDMATRIX", "LDMATRIX_TRANS"])
def test_changed_ldmatrix_map_breaks_numerics(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for axis, number in terms(getattr(targets, name)):
        with monkeypatch.context() as patch:
            patch.setattr(targets, name, changed(getattr(targets, name), axis, number))
            assert tile_error(mma_tile(24)) > 1e-2, (axis, number)
    assert tile_error(mma_tile(24)) < 1e-5


def test_swapped_lanes_break_numerics() -> None:
    program = mma_tile(24)
    (instruction,) = [i for i in program.target.matrix_instructions if i.name.startswith("mma.sync") and i.k == 16]
    b_map = LaneMap((Term("lane", 2, 4, 2), *instruction.b_map.row[1:]), instruction.b_map.column, 32, 4)
    wrong = replace(program.target, instruction_set=(replace(instruction, b_map=b_map),))
    assert tile_error(replace(program, target=wrong)) > 1e-2


@pytest.mark.parametrize("lanes", [64, 128, 320, 1 << 16])
def test_chunks_of_blocks_change_nothing(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a = RNG.standard_normal((96, 96)).astype(np.float32)
    program = copy_through_shared(36, grid=(3, 3, 1))
    whole = simulate(program, {"A": a})
    monkeypatch.setattr(simulation, "CHUNK_LANES", lanes)
    parts = simulate(program, {"A": a})
    assert np.array_equal(parts.outputs["B"], whole.outputs["B"])
    assert parts.counts == whole.counts
    assert parts.executed == whole.executed


def test_without_counting_or_checking_the_outputs_are_the_same() -> None:
    a = RNG.standard_normal((64, 64)).astype(np.float32)
    result = simulate(copy_through_shared(36), {"A": a}, count=False, check=False)
    assert np.array_equal(result.outputs["B"], 2 * a)
    assert (result.counts, result.executed) == ([], {})


def test_inout_keeps_what_no_block_wrote_and_arguments_stay() -> None:
    b = Build(threads=32, grid=(2, 1, 1))
    out = b.parameter("O", "float32", (2, 32), "inout")
    given = np.full((2, 32), 3, np.float32)
    result = simulate(b.program(mark(1), store(out, f32(1.0), b.bx * 32 + b.tx)), {"O": given}, blocks=[(1, 0, 0)])
    assert np.array_equal(result.outputs["O"], np.repeat(np.float32([[3], [1]]), 32, axis=1))
    assert (given == 3).all()
    assert result.blocks == ((1, 0, 0),)


def test_wrong_arguments_and_blocks() -> None:
    program = copy_through_shared(36)
    a = np.zeros((64, 64), np.float32)
    cases: list[tuple[dict[str, Any], Any, str]] = [
        ({}, None, "no argument for parameter A"),
        ({"A": a.astype(np.float64)}, None, r"parameter A is float32\[64, 64\], the argument is float64\[64, 64\]"),
        ({"A": a[:32]}, None, r"the argument is float32\[32, 64\]"),
        ({"A": a, "X": a}, None, "has no parameter 'X'"),
        ({"A": a}, [(2, 0, 0)], r"block \(2, 0, 0\) is outside the grid \(2, 2, 1\)"),
    ]
    for arguments, blocks, message in cases:
        with pytest.raises(SimulationError, match=message):
            simulate(program, arguments, blocks=blocks)


def test_strided_arguments_are_read_right() -> None:
    a = RNG.standard_normal((128, 128)).astype(np.float32)[::2, ::-2]
    assert np.array_equal(simulate(copy_through_shared(36), {"A": a}).outputs["B"], 2 * a)


def test_count_records() -> None:
    count = AccessCount(3, "tile", "shared", "load", 128, 4, 32, 16, 8, None, None, 2048, "known")
    assert AccessCount.from_json(json.loads(json.dumps(count.to_json()))) == count
    assert count.conflicts == 16
    assert count.scaled(3) == replace(count, requests=12, transactions=96, transactions_ideal=48, bytes=6144)
    unknown = replace(count, transactions=None, transactions_ideal=None, ways=None, rule="unknown")
    assert unknown.conflicts is None
    assert unknown.scaled(2).transactions is None
    (merged,) = merge_counts([count, replace(count, ways=2, rule="open")])
    assert (merged.requests, merged.transactions, merged.ways, merged.rule) == (8, 64, 8, "open")
    (merged,) = merge_counts([count, unknown])
    assert (merged.requests, merged.transactions, merged.rule) == (8, None, "unknown")
    assert merge_counts([replace(count, operation=4), count]) == [count, replace(count, operation=4)]


def seconds(program: ThreadProgram, arguments: dict[str, Any], block: tuple[int, int, int]) -> float:
    """Best of three runs of one block, translation included in the first."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        simulate(program, arguments, blocks=[block])
        best = min(best, time.perf_counter() - start)
    return best


def test_speed_of_a_float32_product() -> None:
    """64x64 tile, 256 threads, K = 1024, counted and checked: 0.15 to 0.4 s here; bound for slow machines."""
    a, b = (RNG.standard_normal((1024, 1024)).astype(np.float32) for _ in range(2))
    assert seconds(simt_gemm(1024), {"A": a, "B": b}, (1, 1, 0)) < 1.5


def test_pipelined_float16_product() -> None:
    """Two blocks of a pipelined mma.sync product with full K, and the counts of one stage derived by hand."""
    a, b = (RNG.standard_normal((256, 256)).astype(np.float16) for _ in range(2))
    for stages in (1, 2, 3):
        result = simulate(mma_gemm(256, stages), {"A": a, "B": b}, blocks=[(1, 0, 0), (1, 1, 0)])
        expected = a.astype(np.float64) @ b[:, 128:].astype(np.float64)
        assert np.abs(result.outputs["C"][:, 128:] - expected).max() < 1e-4
        assert result.executed[3]["matrix"] == 2 * 4 * 8 * 64  # blocks, warps, tiles of K, mma of a warp
        for tile in ("A_shared", "B_shared"):
            (loads,) = [c for c in result.counts if c.access == "ldmatrix" and c.buffer == tile]
            # Rows of 40 and 136 halves: 80 and 272 bytes, so 8 rows fall on 8 distinct 16-byte chunks of 128.
            assert (loads.requests, loads.transactions, loads.ways) == (2 * 4 * 8 * 8, 4 * 2 * 4 * 8 * 8, 1)


def test_pipeline_without_its_barriers_is_found() -> None:
    """Dropping either barrier of the loop lets a copy overwrite a tile that another thread still reads, or the reverse."""
    from tvm import tirx
    from tvm_ffi import structural_map

    a, b = (RNG.standard_normal((256, 256)).astype(np.float16) for _ in range(2))
    program = mma_gemm(256, 2)
    for victim in range(2):
        seen = [-1]

        def drop(node: Any, seen: list[int] = seen, victim: int = victim) -> Any:
            if "tvm_storage_sync" not in str(node.value):
                return node
            seen[0] += 1
            return tirx.Evaluate(0) if seen[0] == victim else node

        body = structural_map(program.function.body, (tirx.Evaluate, drop))
        assert seen[0] == 1
        with pytest.raises(SimulationError, match="race on shared memory"):
            simulate(replace(program, function=program.function.with_body(body)), {"A": a, "B": b}, blocks=[(0, 0, 0)])


def test_speed_of_a_float16_product() -> None:
    """128x128x32 tiles, 32 iterations, counted and checked: 0.1 to 0.3 s here; bound for slow machines."""
    a, b = (RNG.standard_normal((1024, 1024)).astype(np.float16) for _ in range(2))
    assert seconds(mma_gemm(1024), {"A": a, "B": b}, (3, 4, 0)) < 1.0
