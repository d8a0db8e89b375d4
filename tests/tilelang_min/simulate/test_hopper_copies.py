"""Bulk copies of the tensor memory accelerator: boxes of 1 to 5 dimensions, edges, swizzles, order with ordinary accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hopper_programs import Hopper, await_phase, box_load, box_store, expect, fence_init, fence_proxy, init
from thread_programs import f32, instruction, load, local, loop, mark, store, var, when
from tvm import tirx

from tilelang_min.errors import PlacementError, SimulationError
from tilelang_min.program import TensorMap, ThreadProgram
from tilelang_min.program.tensor_maps import tensor_map_problem
from tilelang_min.simulate import Placement, simulate

SYNC = tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))
COMMIT = "cp.async.bulk.commit_group"
WAIT = "cp.async.bulk.wait_group.read"


def double_box(
    shape: tuple[int, ...],
    box: tuple[int, ...],
    at: tuple[int, ...],
    swizzle: int = 0,
    *,
    missing: str = "",
    offset: int = 0,
    reduction: str = "",
) -> ThreadProgram:
    """Loads a box, doubles it in place and stores it, or reduces it into B; ``at`` counts from the outermost dimension."""
    b = Hopper(128)
    b.parameter("A", "float32", shape)
    b.parameter("B", "float32", shape, "inout")
    elements = int(np.prod(box))
    a_map, b_map = b.tensor_map("A", box, swizzle), b.tensor_map("B", box, swizzle)
    tile, bars = b.tile("tile", "float32", elements + offset), b.tile("barriers", "uint64", 1, 128)
    ok, i, tx = local("ok", 1, "uint32"), var("i"), b.tx
    coordinates = list(reversed(at))

    def skip(what: str, *body: Any) -> list[Any]:
        return [] if missing == what else list(body)

    place = i * 128 + tx
    doubled = store(tile, load(tile, place) * f32(2.0), place)
    return b.program(
        *(mark(1), when(tx == 0, init(bars, 0, 1), fence_init()), SYNC, mark(2)),
        when(tx == 0, expect(bars, 0, elements * 4), box_load(a_map, tile, offset, coordinates, bars, 0)),
        await_phase(bars, 0, 0, ok),
        *(mark(3), loop(i, -(-elements // 128), when(place < elements, doubled))),
        *skip("fence", fence_proxy()),
        *skip("sync", SYNC),
        mark(4),
        when(
            tx == 0,
            box_store(b_map, tile, offset, coordinates, reduction),
            *skip("commit", instruction(COMMIT)),
            *skip("wait", instruction(WAIT, 0)),
        ),
        *([mark(5), store(tile, f32(0.0), tx)] if missing == "wait" else []),
        locals=[ok],
    )


def run(program: ThreadProgram) -> tuple[Any, Any, Any]:
    shape = program.parameters[0].shape
    a = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    before = -a
    result = simulate(program, {"A": a, "B": before})
    return a, before, result


@pytest.mark.parametrize(
    ("shape", "box", "at"),
    [
        ((100,), (32,), (64,)),
        ((100,), (32,), (80,)),
        ((20, 64), (8, 32), (8, 16)),
        ((20, 64), (8, 32), (8, 48)),
        ((3, 5, 8), (2, 2, 8), (2, 4, 4)),
        ((2, 3, 4, 8), (1, 2, 3, 4), (1, 2, 2, 4)),
        ((2, 2, 3, 2, 8), (2, 1, 2, 2, 8), (1, 1, 2, 0, 0)),
        ((8, 64), (8, 32), (8, 0)),
    ],
)
def test_boxes_read_zero_outside_and_write_nothing_there(
    shape: tuple[int, ...], box: tuple[int, ...], at: tuple[int, ...]
) -> None:
    a, before, result = run(double_box(shape, box, at))
    inside = tuple(slice(max(p, 0), max(p + e, 0)) for p, e in zip(at, box, strict=True))
    expected = before.copy()
    expected[inside] = 2 * a[inside]
    np.testing.assert_array_equal(result.outputs["B"], expected)
    counts = {(c.buffer, c.access): c for c in result.counts}
    assert counts["A", "tma_load"].bytes == a[inside].nbytes
    assert counts["B", "tma_store"].bytes == a[inside].nbytes
    assert counts["tile", "tma_load"].bytes == int(np.prod(box)) * 4
    touched = {int(x - 1) * 4 // 32 for x in a[inside].flat}
    assert counts["A", "tma_load"].sectors == len(touched)


@pytest.mark.parametrize(("reduction", "function"), [("add", np.add), ("min", np.minimum), ("max", np.maximum)])
def test_reductions(reduction: str, function: Any) -> None:
    # The hardware has minima and maxima of integers and 16-bit floats alone; the simulator does not tell types apart.
    a, before, result = run(double_box((20, 64), (8, 32), (16, 16), reduction=reduction))
    expected = before.copy()
    expected[16:, 16:48] = function(before[16:, 16:48], 2 * a[16:, 16:48])
    np.testing.assert_array_equal(result.outputs["B"], expected)


def negative_load() -> ThreadProgram:
    """The box of A that begins at (-3, -8), as it comes."""
    b = Hopper(128)
    b.parameter("A", "float32", (20, 64))
    out = b.parameter("B", "float32", (8, 32), "out")
    a_map = b.tensor_map("A", (8, 32), 0)
    tile, bars = b.tile("tile", "float32", 256), b.tile("barriers", "uint64", 1, 128)
    ok, i, tx = local("ok", 1, "uint32"), var("i"), b.tx
    return b.program(
        *(mark(1), when(tx == 0, init(bars, 0, 1), fence_init()), SYNC, mark(2)),
        when(tx == 0, expect(bars, 0, 1024), box_load(a_map, tile, 0, [-8, -3], bars, 0)),
        await_phase(bars, 0, 0, ok),
        loop(i, 2, store(out, load(tile, i * 128 + tx), i * 128 + tx)),
        locals=[ok],
    )


def test_a_load_may_begin_outside_and_a_store_must_not() -> None:
    """An H200 refuses such a store as an illegal instruction; loads of halos are common."""
    with pytest.raises(SimulationError, match="bulk store to B starts at the negative coordinate -8"):
        run(double_box((20, 64), (8, 32), (-3, -8)))
    a = np.arange(1, 20 * 64 + 1, dtype=np.float32).reshape(20, 64)
    expected = np.zeros((8, 32), np.float32)
    expected[3:, 8:] = a[:5, :24]
    np.testing.assert_array_equal(simulate(negative_load(), {"A": a}).outputs["B"], expected)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_swizzles_exchange_address_bits(swizzle: int) -> None:
    """The tile is doubled in place without knowing where elements lie, and what a thread reads is where bits say."""
    rows, columns = 16, swizzle // 4
    a, _, result = run(double_box((rows, columns), (rows, columns), (0, 0), swizzle))
    np.testing.assert_array_equal(result.outputs["B"], 2 * a)

    b = Hopper(128)
    b.parameter("A", "float32", (rows, columns))
    out = b.parameter("B", "float32", (rows * columns,), "out")
    a_map = b.tensor_map("A", (rows, columns), swizzle)
    tile, bars = b.tile("tile", "float32", rows * columns), b.tile("barriers", "uint64", 1, 128)
    ok, i, tx = local("ok", 1, "uint32"), var("i"), b.tx
    place = i * 128 + tx
    program = b.program(
        *(mark(1), when(tx == 0, init(bars, 0, 1), fence_init()), SYNC),
        when(tx == 0, expect(bars, 0, rows * swizzle), box_load(a_map, tile, 0, [0, 0], bars, 0)),
        await_phase(bars, 0, 0, ok),
        loop(i, rows * columns // 128, store(out, load(tile, place), place)),
        locals=[ok],
    )
    memory = simulate(program, {"A": a}).outputs["B"]
    for row in range(rows):
        for column in range(columns):
            byte = row * swizzle + column * 4
            moved = byte ^ ((byte >> 7 & (swizzle // 16 - 1)) << 4)
            assert memory[moved // 4] == a[row, column]


MISSING = {
    "fence": ("no fence.proxy.async", "operation 4 (line 14) reads byte"),
    "sync": ("race on shared memory: operation 4 (line 14) reads", "operation 3 (line 13) wrote it"),
    "commit": ("ends with a bulk store of operation 4 (line 14) which no commit_group closes", "wait_group.read 0"),
    "wait": (
        "race on shared memory: operation 5 (line 15) writes",
        "bulk store of operation 4 (line 14) may still be reading",
    ),
}


@pytest.mark.parametrize("missing", MISSING)
def test_order_with_ordinary_accesses(missing: str) -> None:
    with pytest.raises(SimulationError) as caught:
        run(double_box((32, 32), (32, 32), (0, 0), missing=missing))
    for part in MISSING[missing]:
        assert part in str(caught.value)


def test_a_box_must_be_aligned_in_shared_memory() -> None:
    with pytest.raises(SimulationError, match="no multiple of 128 bytes"):
        run(double_box((8, 32), (8, 32), (0, 0), offset=4))


@pytest.mark.parametrize(
    ("shape", "box", "swizzle", "message"),
    [
        ((8, 6), (8, 4), 0, "rows of 24 bytes are no multiple of 16"),
        ((8, 8), (8, 2), 0, "have 8 bytes, no multiple of 16"),
        ((8, 512), (8, 320), 0, "each extent must be 1 to 256"),
        ((8, 64), (8, 64), 128, "more than its swizzle of 128"),
        ((8, 64), (8, 64), 48, "swizzle of 48 bytes"),
        ((8, 64), (8,), 0, "1 to 5 of both"),
    ],
)
def test_maps_that_cannot_be(shape: tuple[int, ...], box: tuple[int, ...], swizzle: int, message: str) -> None:
    problem = tensor_map_problem(TensorMap("A_map", "A", "float32", shape, box, swizzle))
    assert problem is not None
    assert message in problem
    if len(box) == len(shape):
        with pytest.raises(SimulationError) as caught:
            run(double_box(shape, box, (0,) * len(shape), swizzle))
        assert message in str(caught.value)


CP_ASYNC = {
    "": None,
    "wait": "while the cp.async of operation 2 .line 12. may still be writing it",
    "fence": "no fence.proxy.async",
    "sync": "operation 2 .line 12. wrote it in thread",
}


@pytest.mark.parametrize("missing", CP_ASYNC)
def test_cp_async_beside_bulk_stores(missing: str) -> None:
    """cp.async writes by the generic proxy: what it brought needs a fence before a bulk store may read it."""
    b = Hopper(128)
    a_in = b.parameter("A", "float32", (16, 32))
    b.parameter("B", "float32", (16, 32), "inout")
    b_map = b.tensor_map("B", (16, 32), 0)
    tile, bars, tx = b.tile("tile", "float32", 512), b.tile("barriers", "uint64", 1, 128), b.tx

    def skip(what: str, *body: Any) -> list[Any]:
        return [] if missing == what else list(body)

    program = b.program(
        *(mark(1), when(tx == 0, init(bars, 0, 1)), mark(2)),
        instruction("cp.async.cg.shared::cta.global", tile.ptr_to([tx * 4]), a_in.ptr_to([tx * 4]), 16),
        instruction("cp.async.commit_group"),
        *skip("wait", instruction("cp.async.wait_group", 0)),
        *skip("fence", fence_proxy()),
        *skip("sync", SYNC),
        *(mark(3), when(tx == 0, box_store(b_map, tile, 0, [0, 0]), instruction(COMMIT), instruction(WAIT, 0))),
    )
    a = np.arange(512, dtype=np.float32).reshape(16, 32)
    given = {"A": a, "B": np.zeros((16, 32), np.float32)}
    message = CP_ASYNC[missing]
    if message is None:
        np.testing.assert_array_equal(simulate(program, given).outputs["B"], a)
        return
    with pytest.raises(SimulationError, match=message):
        simulate(program, given)


def test_tiles_of_bulk_copies_lie_where_those_put_them() -> None:
    program = double_box((32, 32), (32, 32), (0, 0))
    given = {"A": np.ones((32, 32), np.float32), "B": np.zeros((32, 32), np.float32)}
    plain = simulate(program, given)
    assert simulate(program, given, placements={"tile": Placement()}).counts == plain.counts
    with pytest.raises(PlacementError, match="bulk copies or wgmma prescribe where the elements of tile lie"):
        simulate(program, given, placements={"tile": Placement(padding=4)})
