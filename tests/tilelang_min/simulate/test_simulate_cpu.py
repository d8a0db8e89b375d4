"""CPU thread programs: one lane a block; numerics and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from thread_programs import Build, f32, i32, load, local, loop, mark, splat, store, var, when
from tvm import tirx

from tilelang_min.errors import SimulationError
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import simulate


def scale(n: int = 1000, block: int = 128) -> ThreadProgram:
    """B = 2 A through a tile, vectors of 8, the ragged end by single elements."""
    b = Build("cpu", (-(-n // block), 1, 1), 1)
    a_in, out = b.parameter("A", "float32", (n,)), b.parameter("B", "float32", (n,), "out")
    tile = b.shared("tile", "float32", block)
    i, j = var("i"), var("j")
    at = b.block * block + i * 8
    whole = [mark(1), store(tile, load(a_in, at, 8), i * 8, 8), mark(2)]
    whole += [store(out, load(tile, i * 8, 8) * splat(f32(2.0), 8), at, 8)]
    single = when(at + j < n, mark(3), store(out, load(a_in, at + j) * f32(2.0), at + j))
    return b.program(mark(0), loop(i, block // 8, when(at + 8 <= n, *whole, other=loop(j, 8, single))))


@pytest.mark.parametrize("n", [1, 7, 128, 1000, 1003])
def test_scale(n: int) -> None:
    a = np.random.default_rng(n).random(n).astype(np.float32)
    result = simulate(scale(n), {"A": a})
    assert np.array_equal(result.outputs["B"], 2 * a)
    counts = {(c.operation, c.buffer, c.access): c for c in result.counts}
    vectors = n // 8
    if vectors:
        tile = counts[1, "tile", "store"]
        assert (tile.bytes, tile.width_bits, tile.requests) == (vectors * 32, 256, vectors)
        assert (tile.transactions, tile.ways, tile.sectors, tile.rule) == (None, None, None, "unknown")
        assert result.executed[2] == {"float": vectors, "global_store": vectors, "shared_load": vectors}
    if n % 8:
        assert counts[3, "A", "load"].bytes == n % 8 * 4
    assert any("bytes alone" in note for note in result.notes)


def test_blocks_decode_x_first_and_run_one_by_one_or_together() -> None:
    b = Build("cpu", (3, 2, 2), 1)
    out = b.parameter("O", "int32", (12, 3), "out")
    block = b.block
    decoded = (block % 3, tirx.floordiv(block, 3) % 2, tirx.floordiv(block, 6))
    program = b.program(mark(1), *(store(out, value, block * 3 + n) for n, value in enumerate(decoded)))
    everything = simulate(program, {}).outputs["O"]
    assert everything.tolist() == [[x, y, z] for z in range(2) for y in range(2) for x in range(3)]
    chosen = simulate(program, {}, blocks=[(2, 0, 1), (1, 1, 0)]).outputs["O"]
    written = np.flatnonzero((chosen != 0x7F7F7F7F).all(axis=1))
    assert written.tolist() == [4, 8]
    assert np.array_equal(chosen[written], everything[written])


def test_registers_by_loop_variable_and_by_data() -> None:
    """Local arrays indexed by loop variables, unaligned vectors, and an index that differs by block."""
    b = Build("cpu", (2, 1, 1), 1)
    out = b.parameter("O", "float32", (2, 8), "out")
    r, k, j = local("r", 12), var("k"), var("j")
    body = [
        loop(k, 12, store(r, tirx.Cast("float32", k * k), k)),
        store(r, load(r, 1, 8), 3, 8),  # overlapping, as memmove
        store(r, f32(-1.0), b.block + 5),
        loop(j, 2, store(out, load(r, j * 4 + b.block, 4), b.block * 8 + j * 4, 4)),
    ]
    result = simulate(b.program(mark(1), *body, locals=[r]), {}).outputs["O"]
    for block in range(2):
        expected = np.arange(12, dtype=np.float32) ** 2
        expected[3:11] = expected[1:9].copy()
        expected[block + 5] = -1
        assert np.array_equal(result[block], expected[block : block + 8])


def test_matrix_product_with_broadcast_rows() -> None:
    """The inner loop of a CPU product: accumulator vectors, one row of A at a time broadcast."""
    n = 16
    b = Build("cpu", (n // 4, 1, 1), 1)
    a_in, b_in = b.parameter("A", "float16", (n, n)), b.parameter("B", "float32", (n, n))
    out = b.parameter("C", "float32", (n, n), "out")
    c, i, k, m, z = local("c", 4 * n), var("i"), var("k"), var("m"), var("z")
    row = b.block * 4
    left = splat(tirx.Cast("float32", load(a_in, (row + i) * n + k)), n)
    add = store(c, load(c, i * n, n) + left * load(b_in, k * n, n), i * n, n)
    program = b.program(
        *(mark(1), loop(z, 4, store(c, splat(f32(0.0), n), z * n, n), unroll=True)),
        *(mark(2), loop(k, n, loop(i, 4, add, unroll=True))),
        *(mark(3), loop(m, 4, store(out, load(c, m * n, n), (row + m) * n, n))),
        locals=[c],
    )
    rng = np.random.default_rng(2)
    left_matrix, right_matrix = rng.random((n, n)).astype(np.float16), rng.random((n, n)).astype(np.float32)
    result = simulate(program, {"A": left_matrix, "B": right_matrix})
    expected = left_matrix.astype(np.float64) @ right_matrix.astype(np.float64)
    assert np.abs(result.outputs["C"] - expected).max() < 1e-5
    assert result.executed[2]["fma"] == 4 * n * 4  # a vector is one instruction
    assert result.executed[2]["convert"] == 4 * n * 4


def test_out_of_range_names_the_block() -> None:
    b = Build("cpu", (2, 1, 1), 1)
    a_in, out = b.parameter("A", "float32", (12,)), b.parameter("O", "float32", (16,), "out")
    program = b.program(mark(1), store(out, load(a_in, b.block * 8, 8), b.block * 8, 8))
    with pytest.raises(SimulationError, match=r"elements 8 to 15 of A, which has 12, in thread 0 of block \(1, 0, 0\)"):
        simulate(program, {"A": np.zeros(12, np.float32)})


def test_private_tiles_are_not_shared_between_blocks() -> None:
    b = Build("cpu", (4, 1, 1), 1)
    out = b.parameter("O", "int32", (4,), "out")
    tile: Any = b.shared("tile", "int32", 1)
    body = [store(tile, b.block * 10 + i32(0), 0), store(out, load(tile, 0), b.block)]
    assert simulate(b.program(mark(1), *body), {}).outputs["O"].tolist() == [0, 10, 20, 30]
