"""Classes of blocks of Hopper programs: one block of each class, scaled, counts what all blocks count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hopper_programs import Hopper, await_phase, box_load, expect, fence_init, init, ring_gemm
from test_hopper_barriers import SYNC, share
from thread_programs import Build, f32, i32, load, local, mark, store, var, when
from tvm import tirx

from tilelang_min.analysis.blocks import classify
from tilelang_min.driver.analysis import analyse_program
from tilelang_min.driver.fills import random_arguments
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import simulate


def persistent(blocks: int = 5, shape: tuple[int, int] = (120, 100)) -> ThreadProgram:
    """B = A by boxes of 32 x 32, taken in turns by a few blocks that stay; the boxes at the edges are ragged."""
    b = Hopper(128, (blocks, 1, 1))
    b.parameter("A", "float32", shape)
    out = b.parameter("B", "float32", shape, "out")
    a_map = b.tensor_map("A", (32, 32), 0)
    tile, bars = b.tile("tile", "float32", 1024), b.tile("barriers", "uint64", 1, 128)
    ok, tx, i, number, row, column, r = (
        local("ok", 1, "uint32"),
        b.tx,
        *(var(n) for n in ("i", "number", "y", "x", "r")),
    )
    across = -(-shape[1] // 32)
    tiles = across * -(-shape[0] // 32)
    y, x = row * 32 + r * 4 + tx // 32, column * 32 + tx % 32
    write = when(tirx.And(y < shape[0], x < shape[1]), store(out, load(tile, r * 128 + tx), y * shape[1] + x))
    body = tirx.SeqStmt(
        [
            tirx.Bind(number, b.bx + i * blocks),
            tirx.Bind(row, tirx.FloorDiv(number, i32(across))),
            tirx.Bind(column, tirx.FloorMod(number, i32(across))),
            mark(2),
            when(tx == 0, expect(bars, 0, 4096), box_load(a_map, tile, 0, [column * 32, row * 32], bars, 0)),
            await_phase(bars, 0, tirx.FloorMod(i, i32(2)), ok),
            mark(3),
            tirx.For(r, 0, 8, tirx.ForKind.SERIAL, write),
            SYNC,
        ]
    )
    turns = tirx.FloorDiv(i32(tiles + blocks - 1) - b.bx, i32(blocks))
    return b.program(
        *(mark(1), when(tx == 0, init(bars, 0, 1), fence_init()), SYNC),
        tirx.For(i, 0, turns, tirx.ForKind.SERIAL, body),
        locals=[ok],
    )


@pytest.mark.parametrize(
    ("name", "classes"), [("even", 1), ("ragged", 4), ("cluster", 1), ("persistent", 5), ("persistent even", 2)]
)
def test_classes_count_what_all_blocks_count(name: str, classes: int) -> None:
    program: Any = {
        "even": lambda: ring_gemm(256, 128, 128),
        "ragged": lambda: ring_gemm(200, 104, 136),
        "cluster": share,
        "persistent": persistent,
        "persistent even": lambda: persistent(5, (96, 96)),
    }[name]()
    found = classify(program)
    assert len(found.classes) <= classes
    assert sum(each.count for each in found.classes) == program.grid[0] * program.grid[1]
    assert not found.sampled
    arrays = random_arguments(program.parameters)
    whole = simulate(program, {p.name: a for p, a in zip(program.parameters, arrays, strict=True)})
    scaled = analyse_program(program, arrays)
    assert sorted(scaled.counts, key=lambda c: c.key) == whole.counts
    assert scaled.executed == whole.executed


def test_what_cannot_be_evaluated_tells_blocks_apart() -> None:
    b = Build(grid=(6, 1, 1), threads=32)
    out = b.parameter("B", "float32", (6, 32), "inout")
    odd = tirx.EQ(tirx.bitwise_and(b.bx, i32(1)), i32(1))
    program = b.program(mark(1), when(odd, store(out, f32(1.0), b.bx * 32 + b.tx)))
    found = classify(program)
    assert [each.count for each in found.classes] == [1] * 6
    arrays = (np.zeros((6, 32), np.float32),)
    whole = simulate(program, {"B": arrays[0]})
    assert list(analyse_program(program, arrays).counts) == whole.counts
    assert whole.counts[0].requests == 3


def test_loops_end_where_their_condition_does() -> None:
    """Each lane counts down from its number, as mbarrier waits do from nothing."""
    b = Build(threads=32)
    out = b.parameter("B", "float32", (32,), "out")
    left, total = local("left", 1, "int32"), local("total", 1)
    step = tirx.SeqStmt([store(total, total[0] + f32(1.0), 0), store(left, left[0] - 1, 0)])
    program = b.program(
        *(mark(1), store(left, b.tx % 8, 0), store(total, f32(0.0), 0), tirx.While(left[0] > 0, step)),
        *(mark(2), store(out, total[0], b.tx)),
        locals=[left, total],
    )
    np.testing.assert_array_equal(simulate(program, {}).outputs["B"], np.arange(32) % 8)
