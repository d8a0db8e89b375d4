"""Counts for tiles placed otherwise equal those of programs that place them so, access by access."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thread_programs import (
    CA,
    CG16,
    Build,
    barrier,
    copy_through_shared,
    load,
    loop,
    mark,
    mma_gemm,
    mma_tile,
    store,
    var,
    when,
)
from tvm import tirx

from tilelang_min.errors import PlacementError, SimulationError
from tilelang_min.program import SharedBuffer, ThreadProgram
from tilelang_min.simulate import Placement, SimulationResult, Tile, simulate

RNG = np.random.default_rng(11)


def shaped(program: ThreadProgram, **shapes: tuple[int, ...]) -> ThreadProgram:
    """The hand-written programs list flat tiles: here with the rows (and stages) they are meant to have."""
    tiles = []
    for tile in program.shared:
        rows = shapes[tile.name]
        stages = tile.shape[0] // int(np.prod(rows))
        tiles.append(replace(tile, shape=rows, stages=stages))
    return replace(program, shared=tuple(tiles))


def arguments(program: ThreadProgram) -> dict[str, Any]:
    return {p.name: RNG.standard_normal(p.shape).astype(p.dtype) for p in program.parameters if p.access != "out"}


def shared(result: SimulationResult) -> list[Any]:
    return [count for count in result.counts if count.space == "shared"]


@pytest.mark.parametrize("padding", [4, 8, 20, 32])
@pytest.mark.parametrize("unroll", [False, True])
def test_padded_rows_of_vector_stores_and_column_loads(padding: int, unroll: bool) -> None:
    program = shaped(copy_through_shared(32, unroll=unroll), tile=(32, 32))
    values = arguments(program)
    placed = simulate(program, values, placements={"tile": Placement(padding=padding)})
    real = simulate(copy_through_shared(32 + padding, unroll=unroll), values)
    assert placed.counts == real.counts
    assert placed.executed == real.executed
    assert np.array_equal(placed.outputs["B"], real.outputs["B"])


@pytest.mark.parametrize("access", [CG16, CA])
@pytest.mark.parametrize("tiles", [("A_shared",), ("A_shared", "B_shared")])
def test_ldmatrix_and_cp_async(access: str, tiles: tuple[str, ...]) -> None:
    program = shaped(mma_tile(16, access=access), A_shared=(16, 16), B_shared=(16, 16))
    values = arguments(program)
    placed = simulate(program, values, placements={name: Placement(padding=8) for name in tiles})
    plain, real = simulate(program, values), simulate(mma_tile(24, access=access), values)
    for one, other in ((real, True), (plain, False)):
        assert [c for c in shared(placed) if (c.buffer in tiles) is other] == [
            c for c in shared(one) if (c.buffer in tiles) is other
        ]
    assert placed.counts != plain.counts


def test_stages_in_flight() -> None:
    """Three stages of two tiles by cp.async, 4 warps; the padding moves the later stages too."""
    program = shaped(mma_gemm(256, stages=3, pad=0), A_shared=(128, 32), B_shared=(32, 128))
    values = arguments(program)
    recorded = simulate(program, values, blocks=[(1, 0, 0)], record=True)
    real = simulate(mma_gemm(256, stages=3, pad=8), values, blocks=[(1, 0, 0)])
    assert recorded.recording is not None
    padded = {"A_shared": Placement(padding=8), "B_shared": Placement(padding=8)}
    assert recorded.recording.counts(padded) == shared(real)
    assert recorded.recording.scaled(3).counts(padded) == shared(real.scaled(3))
    assert recorded.recording.counts(padded, only="A_shared") == [c for c in shared(real) if c.buffer == "A_shared"]


def column_reads(row: int, swizzle: int = 0, target: str = "cuda:sm_80") -> ThreadProgram:
    """32 rows of floats written by vectors of 4 and read by columns; ``swizzle`` chunks of a segment are moved by hand."""
    b = Build(target, threads=64)
    a_in, out = b.parameter("A", "float32", (32, row)), b.parameter("B", "float32", (row, 32), "out")
    tile = b.shared("tile", "float32", 32 * row)
    i, j = var("i"), var("j")

    def place(r: Any, c: Any) -> Any:
        if not swizzle:
            return r * row + c
        chunk = tirx.bitwise_xor(c // 4, r % 8 // (8 // swizzle))
        return r * row + chunk * 4 + c % 4

    def fill(n: Any) -> Any:
        return store(tile, load(a_in, n * 4, 4), place(n // (row // 4), n % (row // 4) * 4), 4)

    n = i * 64 + b.tx
    write = when(n < 8 * row, fill(n))
    read = when(b.tx < 32, store(out, load(tile, place(b.tx, j)), j * 32 + b.tx))
    return b.program(mark(1), loop(i, -(-8 * row // 64), write), barrier(), mark(2), loop(j, row, read))


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942", "hip:gfx950"])
@pytest.mark.parametrize(("row", "mode"), [(32, 128), (64, 128), (16, 64), (48, 64), (8, 32), (24, 32)])
def test_swizzles_as_a_program_would_do_them(target: str, row: int, mode: int) -> None:
    """Also under masks: half of the threads read, and of short rows only some threads write."""
    program = shaped(column_reads(row, target=target), tile=(32, row))
    values = arguments(program)
    placed = simulate(program, values, placements={"tile": Placement(swizzle_bytes=mode)})
    real = simulate(column_reads(row, mode // 16, target), values)
    assert placed.counts == real.counts
    assert np.array_equal(real.outputs["B"], values["A"].T)
    assert np.array_equal(placed.outputs["B"], values["A"].T)


def test_a_swizzle_spreads_a_column_over_eight_chunks() -> None:
    """32 lanes read column c of 32 rows of 128 bytes: banks 4 (c / 4 ^ r % 8) + c % 4, eight of them, hence 4 ways."""
    program = shaped(column_reads(32), tile=(32, 32))
    result = simulate(program, arguments(program), placements={"tile": Placement(swizzle_bytes=128)})
    (loads,) = [c for c in shared(result) if c.access == "load"]
    assert (loads.requests, loads.transactions, loads.transactions_ideal, loads.ways) == (32, 128, 32, 4)


@pytest.mark.parametrize(("mode", "bits"), [(128, 3), (64, 2), (32, 1)])
def test_the_swizzle_of_rows_as_long_as_its_segments_is_an_exclusive_or_of_address_bits(mode: int, bits: int) -> None:
    tile = Tile("t", 2, 64, mode, 2)
    address = np.arange(tile.rows * tile.row_bytes * tile.stages)
    wanted = address ^ ((address >> 7 & (1 << bits) - 1) << 4)
    assert np.array_equal(Placement(swizzle_bytes=mode).place(tile, address), wanted)


@given(
    rows=st.integers(1, 20),
    segments=st.integers(1, 5),
    stages=st.integers(1, 3),
    itemsize=st.sampled_from([1, 2, 4]),
    mode=st.sampled_from([0, 32, 64, 128]),
    padding=st.integers(0, 40),
)
def test_placements_are_one_to_one(
    rows: int, segments: int, stages: int, itemsize: int, mode: int, padding: int
) -> None:
    tile = Tile("t", itemsize, rows, segments * (mode or 16), stages)
    placement = Placement(swizzle_bytes=mode) if mode else Placement(padding=padding)
    places = placement.place(tile, np.arange(rows * tile.row_bytes * stages))
    assert len(np.unique(places)) == len(places)
    assert places.min() == 0
    assert places.max() < placement.size(tile)


def test_recording_changes_nothing() -> None:
    program = shaped(mma_tile(24), A_shared=(16, 24), B_shared=(16, 24))
    values = arguments(program)
    plain, recorded = simulate(program, values), simulate(program, values, record=True)
    assert plain.recording is None
    assert recorded.recording is not None
    assert recorded.counts == plain.counts
    assert recorded.recording.counts() == shared(plain)
    assert recorded.executed == plain.executed


def test_placements_that_do_not_suit_an_access() -> None:
    program = shaped(copy_through_shared(32), tile=(32, 32))
    values = arguments(program)
    with pytest.raises(
        PlacementError, match=r"breaks the 16-byte alignment of the 128-bit store in operation 1 \(line 11\)"
    ):
        simulate(program, values, placements={"tile": Placement(padding=2)})
    with pytest.raises(PlacementError, match=r"kernel has no shared tile 'tiel'\n  help: it has: tile"):
        simulate(program, values, placements={"tiel": Placement()})
    with pytest.raises(PlacementError, match="rows of 144 bytes are no multiple of 128"):
        simulate(
            shaped(copy_through_shared(36), tile=(32, 36)), values, placements={"tile": Placement(swizzle_bytes=128)}
        )
    with pytest.raises(PlacementError, match=r"the 128-bit store in operation 1 .* runs over the ends of rows"):
        simulate(shaped(copy_through_shared(36), tile=(64, 18)), values, placements={"tile": Placement(padding=2)})
    with pytest.raises(SimulationError, match="placements are for counting on a GPU"):
        simulate(program, values, count=False, placements={"tile": Placement(padding=4)})


@pytest.mark.parametrize("wrong", [{"padding": -1}, {"swizzle_bytes": 48}, {"padding": 4, "swizzle_bytes": 32}])
def test_wrong_placements(wrong: dict[str, int]) -> None:
    with pytest.raises(PlacementError, match=r"no such placement: padding=.*, swizzle_bytes="):
        Placement(**wrong)


def test_a_tile_that_is_not_stored_by_rows_has_none() -> None:
    with pytest.raises(PlacementError, match="not stored row after row"):
        Tile.of(SharedBuffer("A_shared", "float16", (64, 33), 1, 0, 64 * 40 * 2))
    tile = Tile.of(SharedBuffer("A_shared", "float16", (2, 64, 40), 3, 0, 3 * 2 * 64 * 40 * 2))
    assert tile == Tile("A_shared", 2, 128, 80, 3)
    assert Placement(padding=8).size(tile) == 3 * 128 * 96
