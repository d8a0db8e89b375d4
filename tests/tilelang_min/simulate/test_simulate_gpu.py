"""GPU thread programs: numerics against NumPy, counts against numbers derived by hand, errors by their text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from thread_programs import (
    CA,
    CG16,
    LDMATRIX_X1,
    MMA,
    Build,
    barrier,
    choose,
    copy_through_shared,
    f32,
    instruction,
    load,
    local,
    loop,
    mark,
    mma_tile,
    sequence,
    simt_gemm,
    splat,
    store,
    var,
    when,
)
from tvm import tirx

from tilelang_min.access import bank_conflicts, global_sectors
from tilelang_min.errors import SimulationError
from tilelang_min.simulate import AccessCount, SimulationResult, simulate

RNG = np.random.default_rng(7)


def random(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def count(result: SimulationResult, operation: int, access: str, space: str = "shared") -> AccessCount:
    (found,) = [c for c in result.counts if (c.operation, c.access, c.space) == (operation, access, space)]
    return found


def test_copy_through_padded_shared_memory() -> None:
    """Rows of 36 floats: a vector store of 8 lanes fills one row (ideal); column reads hit banks 36 r = 4 r mod 32."""
    a = random((64, 64))
    result = simulate(copy_through_shared(36), {"A": a})
    assert np.array_equal(result.outputs["B"], 2 * a)
    stores, loads = count(result, 1, "store"), count(result, 2, "load")
    # 4 blocks x 2 warps x 4 rows of a thread; each 128-bit request takes 4 passes of 8 lanes = one row of 32 floats.
    assert (stores.requests, stores.transactions, stores.transactions_ideal, stores.ways) == (32, 128, 128, 1)
    assert stores.bytes == 4 * 32 * 32 * 4
    # Lanes r and r + 8 fall on one bank: 32 lanes on 8 banks are 4 ways.
    assert (loads.requests, loads.transactions, loads.transactions_ideal, loads.ways) == (128, 512, 128, 4)
    assert loads.conflicts == 384
    reads, writes = count(result, 1, "load", "global"), count(result, 2, "store", "global")
    assert (reads.requests, reads.sectors, reads.sectors_ideal) == (32, 32 * 16, 32 * 16)
    # A warp writes a column: 32 elements in 32 rows, a sector each, where 4 would do.
    assert (writes.requests, writes.sectors, writes.sectors_ideal) == (128, 128 * 32, 128 * 4)
    assert result.executed[1] == {"barrier": 8, "global_load": 32, "shared_store": 32}
    assert result.executed[2] == {"float": 128, "global_store": 128, "shared_load": 128}


@pytest.mark.parametrize(("row", "ways"), [(32, 32), (33, None), (34, 2), (40, 8)])
def test_conflicts_of_column_reads_by_row_length(row: int, ways: int | None) -> None:
    """Column reads: gcd(row, 32) lanes share a bank.  Rows of odd length cannot hold aligned vectors at all."""
    program = copy_through_shared(row)
    if ways is None or row % 4:
        with pytest.raises(SimulationError, match=r"misaligned shared store: operation 1 \(line 11\) moves 4 elements"):
            simulate(program, {"A": random((64, 64))})
        return
    loads = count(simulate(program, {"A": random((64, 64))}), 2, "load")
    assert (loads.ways, loads.transactions) == (ways, 128 * ways)


def test_unrolled_equals_serial() -> None:
    a = random((64, 64))
    serial = simulate(copy_through_shared(36), {"A": a})
    unrolled = simulate(copy_through_shared(36, unroll=True), {"A": a})
    assert np.array_equal(serial.outputs["B"], unrolled.outputs["B"])
    assert serial.counts == unrolled.counts
    assert serial.executed == unrolled.executed


def test_blocks_together_equal_blocks_one_by_one() -> None:
    a = random((64, 96))
    program = copy_through_shared(36, grid=(3, 2, 1))
    whole = simulate(program, {"A": a})
    assert len(whole.blocks) == 6
    parts = [simulate(program, {"A": a}, blocks=[block]) for block in whole.blocks]
    for part, (x, y, _) in zip(parts, whole.blocks, strict=True):
        tile = np.s_[32 * y : 32 * y + 32, 32 * x : 32 * x + 32]
        assert np.array_equal(part.outputs["B"][tile], whole.outputs["B"][tile])
        assert np.isnan(part.outputs["B"]).sum() == 5 * 32 * 32  # nothing else was written
    for total, *single in zip(whole.counts, *(part.counts for part in parts), strict=True):
        assert total.transactions == (None if total.space == "global" else sum(c.transactions for c in single))
        assert total.requests == sum(c.requests for c in single)
        assert total.sectors == (None if total.space == "shared" else sum(c.sectors for c in single))
    assert simulate(program, {"A": a}, blocks=whole.blocks[:1]).scaled(6).executed == whole.executed
    assert simulate(program, {"A": a}, blocks=whole.blocks[:1]).scaled(6).counts == whole.counts


@pytest.mark.parametrize("unroll", [True, False])
def test_counts_follow_the_alignment_of_each_iteration(unroll: bool) -> None:
    """A[tx + k] touches 4 sectors where k is a multiple of 8, else 5."""
    b = Build(threads=32)
    a_in, out = b.parameter("A", "float32", (64,)), b.parameter("O", "float32", (24, 32), "out")
    k = var("k")
    program = b.program(mark(1), loop(k, 24, store(out, load(a_in, b.tx + k), k * 32 + b.tx), unroll=unroll))
    a = random((64,))
    result = simulate(program, {"A": a})
    assert np.array_equal(result.outputs["O"], np.stack([a[i : i + 32] for i in range(24)]))
    loads = count(result, 1, "load", "global")
    assert (loads.requests, loads.sectors, loads.sectors_ideal) == (24, 3 * 4 + 21 * 5, 24 * 4)


def test_mma_tile_against_float64() -> None:
    a, b = random((16, 16), "float16"), random((16, 16), "float16")
    result = simulate(mma_tile(24), {"A": a, "B": b})
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(result.outputs["C"] - expected).max() < 1e-5
    loads = [c for c in result.counts if c.access == "ldmatrix"]
    # Rows of 24 halves are 48 bytes: 8 rows at 0, 48, 96, 144, ... are distinct modulo 128 in 16-byte chunks.
    assert [(c.buffer, c.requests, c.transactions, c.transactions_ideal) for c in loads] == [
        ("A_shared", 1, 4, 4),
        ("B_shared", 1, 4, 4),
    ]
    assert result.executed[3] == {"ldmatrix": 2, "matrix": 2}
    assert result.executed[1]["async_copy"] == 1
    copies = count(result, 1, "cp_async_bypass")
    assert (copies.requests, copies.bytes, copies.rule) == (1, 512, "known")
    # Rows of 32 bytes go to multiples of 48: every other one to halves of two sectors, which ask for their source each.
    assert count(result, 1, "load", "global").sectors == 8 + 16


def test_ldmatrix_conflicts_of_dense_rows() -> None:
    """Rows of 16 halves are 32 bytes: rows r and r + 4 start on the same bank, 2 passes a matrix, 8 an x4."""
    result = simulate(mma_tile(16), {"A": random((16, 16), "float16"), "B": random((16, 16), "float16")})
    assert {(c.transactions, c.transactions_ideal, c.ways) for c in result.counts if c.access == "ldmatrix"} == {
        (8, 4, 2)
    }


@pytest.mark.parametrize("by_pointer", [True, False])
def test_tiles_in_dynamic_shared_memory(by_pointer: bool) -> None:
    a, b = random((16, 16), "float16"), random((16, 16), "float16")
    dynamic = simulate(mma_tile(24, views=True, by_pointer=by_pointer), {"A": a, "B": b})
    static = simulate(mma_tile(24), {"A": a, "B": b})
    assert np.array_equal(dynamic.outputs["C"], static.outputs["C"])
    assert dynamic.counts == static.counts


def test_cp_async_through_the_cache_counts_lanes() -> None:
    a, b = random((16, 16), "float16"), random((16, 16), "float16")
    result = simulate(mma_tile(24, access=CA), {"A": a, "B": b})
    assert np.abs(result.outputs["C"] - a.astype(np.float64) @ b.astype(np.float64)).max() < 1e-5
    copies = count(result, 1, "cp_async")
    assert (copies.width_bits, copies.requests, copies.bytes, copies.rule) == (64, 2, 512, "known")


def test_copies_of_which_some_fill_with_zeros_are_counted_by_both_sides() -> None:
    def size(tx: Any) -> Any:
        return tirx.Cast("uint32", tirx.Select(tx < 20, tirx.IntImm("int32", 16), tirx.IntImm("int32", 0)))

    result = simulate(mma_tile(24, size=size), {"A": random((16, 16), "float16"), "B": random((16, 16), "float16")})
    lanes = np.arange(32)
    to, origin, reads = lanes // 2 * 48 + lanes % 2 * 16, lanes * 16, lanes < 20
    wanted = bank_conflicts(to, "cp_async_bypass", 128, "cuda:sm_80", source=origin, reads=reads)
    copies, sources = count(result, 1, "cp_async_bypass"), count(result, 1, "load", "global")
    assert (copies.transactions, copies.transactions_ideal, copies.ways, copies.rule) == (
        (wanted.transactions, wanted.transactions_ideal, wanted.ways, wanted.rule)
    )
    sectors = global_sectors(origin[reads], "cp_async_bypass", 128, "cuda:sm_80", destination=to[reads])
    assert (sources.sectors, sources.sectors_ideal, sources.rule) == (
        (sectors.sectors, sectors.sectors_ideal, sectors.rule)
    )
    assert copies.rule == sources.rule == "known"


def test_cp_async_size_zero_fills() -> None:
    """A source size of 16 bytes for the first half of the lanes, 4 for others: rows 8 to 15 keep 2 of each 8 halves."""
    a, b = random((16, 16), "float16"), random((16, 16), "float16")

    def size(tx: Any) -> Any:
        return tirx.Cast("uint32", tirx.Select(tx < 16, tirx.IntImm("int32", 16), tirx.IntImm("int32", 4)))

    result = simulate(mma_tile(24, size=size), {"A": a, "B": b})
    for matrix in (a, b):
        matrix[8:].reshape(8, 2, 8)[:, :, 2:] = 0
    assert np.abs(result.outputs["C"] - a.astype(np.float64) @ b.astype(np.float64)).max() < 1e-5


def test_missing_wait() -> None:
    """Without a wait the copies never arrive: the check names both lines, and the numbers are those of unwritten memory."""
    arguments = {"A": random((16, 16), "float16"), "B": random((16, 16), "float16")}
    with pytest.raises(SimulationError, match="may still be writing it") as caught:
        simulate(mma_tile(24, waits=False), arguments)
    assert "operation 3 (line 13) reads byte" in str(caught.value)
    assert "cp.async of operation 1 (line 11)" in str(caught.value)
    assert np.isnan(simulate(mma_tile(24, waits=False), arguments, check=False).outputs["C"]).all()


def test_missing_barrier_is_a_race() -> None:
    program = copy_through_shared(36)

    def drop(node: Any) -> Any:
        return tirx.Evaluate(0) if "tvm_storage_sync" in str(node.value) else node

    from tvm_ffi import structural_map

    broken = replace(
        program, function=program.function.with_body(structural_map(program.function.body, (tirx.Evaluate, drop)))
    )
    with pytest.raises(SimulationError) as caught:
        simulate(broken, {"A": random((64, 64))})
    message = str(caught.value)
    assert message.startswith("kernel.py:12:5: race on shared memory: operation 2 (line 12) reads byte")
    assert "operation 1 (line 11) wrote it in thread" in message
    assert "no barrier between" in message


def test_write_after_read_and_write_after_write_are_races() -> None:
    for second in (lambda tile, tx: store(tile, f32(1.0), 63 - tx), lambda tile, tx: store(tile, f32(1.0), tx // 2)):
        b = Build(threads=64)
        out = b.parameter("O", "float32", (64,), "out")
        tile = b.shared("tile", "float32", 64)
        first = [store(tile, f32(0.0), b.tx), barrier(), mark(2), store(out, load(tile, b.tx), b.tx)]
        with pytest.raises(SimulationError, match="race on shared memory: operation 3"):
            simulate(b.program(mark(1), *first, mark(3), second(tile, b.tx)), {})
        simulate(b.program(mark(1), *first, mark(3), barrier(), store(tile, f32(1.0), b.tx)), {})


def test_out_of_range_names_everything() -> None:
    b = Build(threads=64, grid=(2, 1, 1))
    a_in, out = b.parameter("A", "float32", (100,)), b.parameter("B", "float32", (128,), "out")
    at = b.bx * 64 + b.tx
    program = b.program(mark(1), store(out, load(a_in, at), at))
    with pytest.raises(SimulationError) as caught:
        simulate(program, {"A": random((100,))})
    message = str(caught.value)
    assert message.startswith(
        "kernel.py:11:5: global load out of range: operation 1 (line 11) accesses element 100 of A,"
    )
    assert "which has 100, in thread 36 of block (1, 0, 0)" in message
    assert "help: the access needs a bounds check" in message
    assert np.isfinite(simulate(program, {"A": random((100,))}, blocks=[(0, 0, 0)]).outputs["B"][:64]).all()


@pytest.mark.parametrize("branch", [True, False])
def test_guarded_access_at_the_ragged_end(branch: bool) -> None:
    """100 elements on 128 threads, guarded by a branch or by a conditional load; the last warp is part active."""
    b = Build(threads=64, grid=(2, 1, 1))
    a_in, out = b.parameter("A", "float32", (100,)), b.parameter("B", "float32", (128,), "out")
    at = b.bx * 64 + b.tx
    if branch:
        body = when(at < 100, store(out, load(a_in, at) + f32(1.0), at), other=store(out, f32(-1.0), at))
    else:
        body = store(out, choose(at < 100, load(a_in, at) + f32(1.0), f32(-1.0)), at)
    a = random((100,))
    result = simulate(b.program(mark(1), body), {"A": a})
    assert np.array_equal(result.outputs["B"], np.concatenate([a + np.float32(1), np.full(28, -1, np.float32)]))
    loads = count(result, 1, "load", "global")
    assert (loads.requests, loads.sectors, loads.bytes) == (4, 4 + 4 + 4 + 1, 400)
    stores = count(result, 1, "store", "global")
    assert (stores.requests, stores.bytes) == ((4 + 1, 512) if branch else (4, 512))
    assert result.executed[1]["float"] == 4


def test_divergent_barrier() -> None:
    def program(condition: Any) -> Any:
        b = Build(threads=64, grid=(2, 1, 1))
        b.parameter("O", "float32", (64,), "out")
        b.shared("tile", "float32", 64)
        return b.program(mark(1), when(condition(b), mark(2), barrier()))

    with pytest.raises(SimulationError) as caught:
        simulate(program(lambda b: b.tx < 40), {})
    message = str(caught.value)
    assert message.startswith(
        "kernel.py:12:5: barrier in divergent control flow: of block (0, 0, 0), thread 0 reaches it"
    )
    assert "thread 40 does not" in message
    simulate(program(lambda b: b.bx < 1), {})  # all threads of a block go the same way


def test_cp_async_groups_under_a_condition_on_the_block() -> None:
    """Blocks that wait and blocks that do not cannot run together; they are run one by one, with the same result."""
    b = Build(threads=32, grid=(3, 1, 1))
    a_in, out = b.parameter("A", "float32", (32,)), b.parameter("O", "float32", (96,), "out")
    tile = b.shared("tile", "float32", 32)
    copy = instruction(CA, tile.ptr_to([b.tx]), a_in.ptr_to([b.tx]), 4)
    groups = [instruction("cp.async.commit_group"), instruction("cp.async.wait_group", 0)]
    body = when(b.bx < 2, copy, *groups, other=store(tile, f32(5.0), b.tx))
    a = random((32,))
    result = simulate(b.program(mark(1), body, barrier(), store(out, load(tile, b.tx), b.bx * 32 + b.tx)), {"A": a})
    assert np.array_equal(result.outputs["O"].reshape(3, 32), np.stack([a, a, np.full(32, 5, np.float32)]))
    assert count(result, 1, "cp_async").requests == 2


def test_masked_warp_wide_instructions() -> None:
    """One of two warps multiplies: legal.  Half a warp: an error."""
    for limit, legal in ((32, True), (48, False)):
        b = Build(threads=64)
        out = b.parameter("O", "float32", (64,), "out")
        a, bb, c = local("a", 4, "uint32"), local("b", 2, "uint32"), local("c", 4)
        i, j = var("i"), var("j")
        ones = tirx.IntImm("uint32", 0x3C003C00)  # two halves of 1.0
        acc = [c[n] for n in range(4)]
        product = instruction(MMA, *acc, *(a[n] for n in range(4)), bb[0], bb[1], *acc)
        body = [
            *(loop(v, n, store(r, value, v), unroll=True) for v, n, r, value in ((i, 4, a, ones), (j, 4, c, f32(0.0)))),
            *(store(bb, ones, n) for n in range(2)),
            *(mark(2), when(b.tx < limit, product), store(out, load(c, 0), b.tx)),
        ]
        program = b.program(mark(1), *body, locals=[a, bb, c])
        if legal:
            result = simulate(program, {})
            assert np.array_equal(result.outputs["O"], np.repeat(np.float32([16, 0]), 32))
            assert result.executed[2]["matrix"] == 1
        else:
            with pytest.raises(SimulationError, match=r"kernel.py:12:5: a warp-wide instruction inside control flow"):
                simulate(program, {})


@pytest.mark.parametrize(
    ("intrinsic", "m", "k", "dtype"),
    [
        ("32x32x8f16", 32, 8, "float16"),
        ("16x16x16f16", 16, 16, "float16"),
        ("32x32x2f32", 32, 2, "float32"),
        ("16x16x4f32", 16, 4, "float32"),
    ],
)
def test_mfma_against_float64(intrinsic: str, m: int, k: int, dtype: str) -> None:
    """Fragments are loaded with index formulas written out from the ISA document, not with the target's lane maps."""
    from tvm import ir

    items = 4 if dtype == "float16" else 1
    registers = m * m // 64
    b = Build("hip:gfx942", threads=64)
    a_in, b_in = b.parameter("A", dtype, (m, k)), b.parameter("B", dtype, (k, m))
    out = b.parameter("C", "float32", (m, m), "out")
    a, bb, c = local("a", items, dtype), local("b", items, dtype), local("c", registers)
    tx, i, j = b.tx, var("i"), var("j")
    name = f"llvm.amdgcn.mfma.f32.{intrinsic}"
    zeros = [tirx.IntImm("int32", 0)] * 3
    product = tirx.call_llvm_pure_intrin(
        ir.PrimType(f"float32x{registers}"), name, load(a, 0, items), load(bb, 0, items), load(c, 0, registers), *zeros
    )
    row = j // 4 * 8 + tx // 32 * 4 + j % 4 if m == 32 else tx // 16 * 4 + j
    body = [
        store(a, load(a_in, tx % m * k + tx // m * items, items), 0, items),
        loop(i, items, store(bb, load(b_in, (tx // m * items + i) * m + tx % m), i), unroll=True),
        store(c, splat(f32(0.0), registers), 0, registers),
        *(mark(2), store(c, product, 0, registers), store(c, product, 0, registers), mark(3)),
        loop(j, registers, store(out, load(c, j), row * m + tx % m), unroll=True),
    ]
    left, right = random((m, k), dtype), random((k, m), dtype)
    result = simulate(b.program(mark(1), *body, locals=[a, bb, c]), {"A": left, "B": right})
    expected = 2 * left.astype(np.float64) @ right.astype(np.float64)
    assert np.abs(result.outputs["C"] - expected).max() < 1e-5
    assert result.executed[2] == {"matrix": 2}


def test_pipeline_with_too_high_a_wait_count() -> None:
    """Two stages in flight: wait_group 1 serves the older copy; wait_group 2 serves none."""

    def program(left: int) -> Any:
        b = Build(threads=32)
        a_in, out = b.parameter("A", "float32", (2, 32)), b.parameter("O", "float32", (32,), "out")
        tile = b.shared("tile", "float32", 64)
        copies = [
            sequence(
                instruction(CA, tile.ptr_to([s * 32 + b.tx]), a_in.ptr_to([s * 32 + b.tx]), 4),
                instruction("cp.async.commit_group"),
            )
            for s in range(2)
        ]
        read = store(out, load(tile, 31 - b.tx), b.tx)
        return b.program(mark(1), *copies, instruction("cp.async.wait_group", left), barrier(), mark(2), read)

    a = random((2, 32))
    assert np.array_equal(simulate(program(1), {"A": a}).outputs["O"], a[0, ::-1])
    assert np.isnan(simulate(program(2), {"A": a}, check=False).outputs["O"]).all()
    with pytest.raises(SimulationError, match=r"cp.async of operation 1 \(line 11\) may still be writing"):
        simulate(program(2), {"A": a})


def test_simt_gemm_block() -> None:
    a, b = random((128, 128)), random((128, 128))
    result = simulate(simt_gemm(128), {"A": a, "B": b}, blocks=[(1, 0, 0), (0, 1, 0)])
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for tile in (np.s_[:64, 64:], np.s_[64:, :64]):
        assert np.abs(result.outputs["C"][tile] - expected[tile]).max() < 1e-4
    assert result.executed[3]["fma"] == 2 * 8 * 128 * 16  # blocks, warps, K, elements of a thread
    # A row reads of a warp: two rows of threads, 4 rows of 20 floats apart; one word each, no conflict.
    a_loads, b_loads = (c for c in result.counts if c.operation == 3)
    assert (a_loads.buffer, a_loads.requests, a_loads.transactions) == ("A_shared", 2 * 8 * 128 * 4, 2 * 8 * 128 * 4)
    assert (b_loads.buffer, b_loads.width_bits, b_loads.requests) == ("B_shared", 128, 2 * 8 * 128)


def test_copies_and_ldmatrix_by_one_of_two_warps() -> None:
    """cp.async, its arrival and ldmatrix under a condition that whole warps decide; requests count active warps."""
    b = Build(threads=64, grid=(2, 1, 1))
    a_in, out = b.parameter("A", "float16", (2, 8, 8)), b.parameter("O", "uint32", (2, 32), "out")
    tile, r = b.shared("tile", "float16", 64), local("r", 1, "uint32")
    copy = instruction(CG16, tile.ptr_to([b.tx * 8]), a_in.ptr_to([b.bx * 64 + b.tx * 8]), 16)
    body = [
        *(mark(1), when(b.tx < 8, copy), instruction("cp.async.commit_group"), instruction("cp.async.wait_group", 0)),
        *(barrier(), mark(2)),
        when(
            b.tx >= 32,
            instruction(LDMATRIX_X1, r[0], tile.ptr_to([b.tx % 8 * 8])),
            store(out, load(r, 0), b.bx * 32 + b.tx - 32),
        ),
    ]
    a = random((2, 8, 8), "float16")
    result = simulate(b.program(*body, locals=[r]), {"A": a})
    # Lane 4 r + c receives elements 2 c and 2 c + 1 of row r.
    assert np.array_equal(result.outputs["O"], a.reshape(2, 64).view(np.uint32))
    copies, loads = count(result, 1, "cp_async_bypass"), count(result, 2, "ldmatrix")
    assert (copies.requests, copies.bytes) == (2, 2 * 128)
    assert (loads.requests, loads.transactions, loads.bytes) == (2, 2, 2 * 128)
    assert result.executed[2] == {"ldmatrix": 2, "global_store": 2}
    assert count(result, 1, "load", "global").sectors == 2 * 4


def test_shared_memory_is_bounded_by_its_buffer() -> None:
    """An index past a tile is an error even where another tile follows in memory."""
    b = Build(threads=32)
    first, second = b.shared("first", "float32", 32), b.shared("second", "float32", 32)
    program = b.program(mark(1), store(second, f32(0.0), b.tx), mark(2), store(first, f32(1.0), b.tx + 1))
    with pytest.raises(
        SimulationError, match=r"shared store out of range: operation 2 .* element 32 of first, which has 32"
    ):
        simulate(program, {})


def test_unknown_instructions_are_named() -> None:
    b = Build("hip:gfx942", threads=64)
    b.shared("tile", "float32", 64)
    c, a = local("c", 4), local("a", 6, "uint32")
    acc = [c[n] for n in range(4)]
    program = b.program(mark(1), instruction(MMA, *acc, *(a[n] for n in range(6)), *acc), locals=[a, c])
    with pytest.raises(SimulationError, match=r"target hip:gfx942 has no matrix instruction mma\.sync"):
        simulate(program, {})
    turn = instruction("movmatrix.sync.aligned.m8n8.trans.b16", a[0], a[1])
    with pytest.raises(SimulationError, match="cannot execute the PTX instruction movmatrix"):
        simulate(Build(threads=32).program(mark(1), turn, locals=[a]), {})
