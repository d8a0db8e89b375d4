"""Barriers of parts of a block and of clusters, multicast, remote arrivals, stmatrix, register budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hopper_programs import LOAD, Hopper, arrive, await_phase, box_load, expect, fence_init, init, u32
from thread_programs import instruction, load, local, loop, mark, sequence, store, var, when
from tvm import tirx
from tvm.script.tirx import cuda

from tilelang_min.errors import SimulationError
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import simulate

SYNC = tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))
CLUSTER_ARRIVE = "barrier.cluster.arrive.release"
CLUSTER_WAIT = "barrier.cluster.wait.acquire"


def hand_over(threads: int = 256, count: int = 256, *, arrives: bool = True, ordered: bool = True) -> ThreadProgram:
    """One half of the block writes a tile (operation 1), the other reads it backwards (2) behind a named barrier."""
    b = Hopper(256)
    out = b.parameter("B", "float32", (128,), "out")
    tile, tx = b.tile("tile", "float32", 128), b.tx
    value = tirx.Cast("float32", tx)
    writer = [mark(1), store(tile, value, tx)]
    writer += [instruction("bar.arrive", u32(1), u32(threads))] if arrives else []
    reader = [mark(2)]
    reader += [instruction("bar.sync", u32(1), u32(count))] if ordered else []
    reader += [store(out, load(tile, 255 - tx), tx - 128)]
    marker = [] if ordered or not arrives else [mark(3), instruction("bar.sync", u32(1), u32(256))]
    return b.program(when(tx < 128, *writer, other=sequence(*reader, *marker)))


def test_named_barrier() -> None:
    result = simulate(hand_over(), {})
    np.testing.assert_array_equal(result.outputs["B"], np.arange(128, dtype=np.float32)[::-1])
    assert result.executed[1]["barrier"] == 4


def test_named_barrier_misused() -> None:
    with pytest.raises(SimulationError, match=r"operation 2 \(line 12\) reads .* operation 1 \(line 11\) wrote it"):
        simulate(hand_over(ordered=False), {})
    with pytest.raises(SimulationError, match=r"deadlock.*at barrier 1, to which 128 of 256 threads have come"):
        simulate(hand_over(arrives=False), {})
    with pytest.raises(
        SimulationError, match=r"comes to barrier 1 .* for 256 threads, and operation 1 .* for 384|cannot"
    ):
        simulate(hand_over(threads=384), {})
    with pytest.raises(SimulationError, match=r"for 128 threads, and operation 1 \(line 11\) for 256"):
        simulate(hand_over(count=128), {})


def phases(arrivals: int, waits: tuple[int, ...], *, init_twice: bool = False, reads: bool = True) -> ThreadProgram:
    """Thread 0 arrives ``arrivals`` times (operation 2) at a barrier for 1; thread 128 waits for these parities (3)."""
    b = Hopper(256)
    b.parameter("B", "float32", (4,), "inout")
    bars, ok, i, tx = b.tile("barriers", "uint64", 1, 128), local("ok", 1, "uint32"), var("i"), b.tx
    again = [init(bars, 0, 1)] if init_twice else []
    return b.program(
        *(mark(1), when(tx == 0, init(bars, 0, 1), *again), SYNC),
        when(
            tx // 128 == 0,
            *(mark(2), when(tx == 0, loop(i, arrivals, arrive(bars, 0)))),
            other=sequence(mark(3), *(await_phase(bars, 0, parity, ok) for parity in waits)) if reads else None,
        ),
        locals=[ok],
    )


def test_phases() -> None:
    simulate(phases(1, (0, 0)), {"B": np.zeros(4, np.float32)})
    with pytest.raises(SimulationError, match=r"deadlock.*waits: for parity 1, and phase 1 .* has 0 of 1 arrivals"):
        simulate(phases(1, (0, 1)), {"B": np.zeros(4, np.float32)})
    with pytest.raises(SimulationError, match=r"initialises the mbarrier at byte 0 of barriers .* again"):
        simulate(phases(1, (0,), init_twice=True), {"B": np.zeros(4, np.float32)})
    with pytest.raises(SimulationError, match="phases 0 and 1 end while it waits"):
        simulate(phases(2, (0,)), {"B": np.zeros(4, np.float32)})


def test_uninitialised_mbarrier() -> None:
    b = Hopper(128)
    b.parameter("B", "float32", (4,), "inout")
    bars = b.tile("barriers", "uint64", 1, 128)
    with pytest.raises(SimulationError, match="uses byte 0 of barriers as an mbarrier, which is not initialised"):
        simulate(b.program(mark(1), arrive(bars, 0)), {"B": np.zeros(4, np.float32)})
    b = Hopper(128)
    bars = b.tile("barriers", "uint64", 1, 128)
    with pytest.raises(SimulationError, match="128 threads initialise the mbarrier"):
        simulate(b.program(mark(1), init(bars, 0, 1)), {})


def share(*, missing: str = "", ranks: int = 2, mask: int = 3) -> ThreadProgram:
    """Two blocks of a cluster: each loads one half of a row of A into both (operation 2); both write all of it (3).

    The loads are multicast; before the second round each block tells both that its tile is free (4), by remote arrivals.
    """
    b = Hopper(128, (2 * ranks, 1, 1), (ranks, 1, 1))
    b.parameter("A", "float32", (2 * ranks, 2, 256))
    out = b.parameter("B", "float32", (2 * ranks, 2, 256), "out")
    a_map = b.tensor_map("A", (1, 1, 128), 0)
    tile, bars = b.tile("tile", "float32", 256), b.tile("barriers", "uint64", 2, 128)
    ok, remote, tx = local("ok", 1, "uint32"), local("remote", 1, "uint32"), b.tx
    rank, turn, r, half = cuda.mov_sreg(32, "cluster_ctarank"), var("turn"), var("r"), var("half")

    def skip(what: str, *body: Any) -> list[Any]:
        return [] if missing == what else list(body)

    pair = b.bx // ranks
    multicast = LOAD.format(3) + ".multicast::cluster"
    bring = instruction(
        *(multicast, tile.ptr_to([rank * 128]), tirx.address_of(a_map), rank * 128, turn, pair * 2),
        *(bars.ptr_to([0]), tirx.IntImm("uint16", mask)),
    )
    free = loop(
        r,
        ranks,
        instruction(
            "mapa.shared::cluster.u32", remote[0], cuda.cvta_generic_to_shared(bars.ptr_to([1])), tirx.Cast("uint32", r)
        ),
        instruction("mbarrier.arrive.shared::cluster.b64", remote[0]),
    )
    meet = [instruction(CLUSTER_ARRIVE), instruction(CLUSTER_WAIT)]
    row = b.bx * 512 + turn * 256 + half * 128 + tx
    return b.program(
        *(mark(1), when(tx == 0, init(bars, 0, 1), init(bars, 1, ranks), fence_init()), *skip("meet", *meet)),
        loop(
            turn,
            2,
            mark(2),
            *skip("empty", await_phase(bars, 1, 1 - turn % 2, ok)),
            when(tx == 0, expect(bars, 0, 1024), bring),
            await_phase(bars, 0, turn % 2, ok),
            *(mark(3), loop(half, 2, store(out, load(tile, half * 128 + tx), row)), SYNC),
            *skip("free", mark(4), when(tx == 0, free)),
        ),
        *skip("end", mark(5), *meet),
        locals=[ok, remote],
    )


A = np.arange(4 * 512, dtype=np.float32).reshape(4, 2, 256)


def test_multicast_and_remote_arrivals() -> None:
    result = simulate(share(), {"A": A})
    np.testing.assert_array_equal(result.outputs["B"], A[[0, 0, 2, 2]])
    counts = {(c.operation, c.buffer): c for c in result.counts}
    assert (counts[2, "A"].requests, counts[2, "A"].bytes, counts[2, "A"].sectors) == (8, 8 * 512, 8 * 16)
    assert counts[2, "tile"].bytes == 2 * 8 * 512  # each box lands in two blocks
    one = simulate(share(), {"A": A}, blocks=[(3, 0, 0)])
    assert [c.scaled(4) for c in one.counts] == result.counts
    np.testing.assert_array_equal(one.outputs["B"][3], A[2])


CLUSTER = {
    "meet": "which need not know yet that it is initialised",
    "empty": "race on shared memory",
    "free": "deadlock",
}


@pytest.mark.parametrize("missing", CLUSTER)
def test_clusters_misused(missing: str) -> None:
    with pytest.raises(SimulationError, match=CLUSTER[missing]):
        simulate(share(missing=missing), {"A": A})


def test_multicast_to_a_block_that_is_not_there() -> None:
    with pytest.raises(SimulationError, match="the cluster has no block 2"):
        simulate(share(mask=7), {"A": A})


def test_cluster_barrier_needs_both_parts() -> None:
    b = Hopper(128, (2, 1, 1), (2, 1, 1))
    with pytest.raises(SimulationError, match="without having arrived"):
        simulate(b.program(mark(1), instruction(CLUSTER_WAIT)), {})
    b = Hopper(128, (2, 1, 1), (2, 1, 1))
    with pytest.raises(SimulationError, match="arrives at the cluster's barrier twice"):
        simulate(b.program(mark(1), instruction(CLUSTER_ARRIVE), instruction(CLUSTER_ARRIVE)), {})
    b = Hopper(128, (3, 1, 1), (2, 1, 1))
    with pytest.raises(SimulationError, match="not whole clusters"):
        simulate(b.program(mark(1), instruction(CLUSTER_ARRIVE), instruction(CLUSTER_WAIT)), {})


@pytest.mark.parametrize("transposed", [False, True])
def test_stmatrix_is_the_inverse_of_ldmatrix(transposed: bool) -> None:
    turn = ".trans" if transposed else ""
    b = Hopper(64)
    a_in, out = b.parameter("A", "float16", (2, 16, 16)), b.parameter("B", "float16", (2, 16, 16), "out")
    tile, copy, bars = (
        b.tile("tile", "float16", 512),
        b.tile("copy", "float16", 512),
        b.tile("barriers", "uint64", 1, 128),
    )
    regs, tx = local("regs", 4, "uint32"), b.tx
    at = tx // 32 * 256 + tx % 16 * 16 + tx % 32 // 16 * 8
    program = b.program(
        *(mark(1), when(tx == 0, init(bars, 0, 1)), store(tile, load(a_in, tx * 8, 8), tx * 8, 8), SYNC, mark(2)),
        instruction(
            f"ldmatrix.sync.aligned.m8n8.x4{turn}.shared::cta.b16", *(regs[i] for i in range(4)), tile.ptr_to([at])
        ),
        mark(3),
        instruction(
            f"stmatrix.sync.aligned.m8n8.x4{turn}.shared::cta.b16", copy.ptr_to([at]), *(regs[i] for i in range(4))
        ),
        *(SYNC, mark(4), store(out, load(copy, tx * 8, 8), tx * 8, 8)),
        locals=[regs],
    )
    a = np.arange(512, dtype=np.float16).reshape(2, 16, 16)
    result = simulate(program, {"A": a})
    np.testing.assert_array_equal(result.outputs["B"], a)
    count = next(c for c in result.counts if c.access == "stmatrix")
    assert (count.requests, count.transactions, count.transactions_ideal) == (2, 16, 8)  # rows of 32 bytes: 2 ways
    assert result.executed[3]["shared_store"] == 2


def test_register_budgets() -> None:
    def program(low: int, high: int) -> ThreadProgram:
        b = Hopper(384)
        budgets = [instruction(f"setmaxnreg.{kind}.sync.aligned.u32", n) for kind, n in (("dec", low), ("inc", high))]
        return b.program(mark(1), when(b.tx < 128, budgets[0], other=budgets[1]))

    simulate(program(40, 232), {})
    with pytest.raises(SimulationError, match="gives the block 68608 registers, and there are 65536"):
        simulate(program(56, 240), {})


def test_one_block_waits_for_a_bulk_copy_of_another_size() -> None:
    b = Hopper(128)
    b.parameter("A", "float32", (8, 32))
    a_map = b.tensor_map("A", (8, 32), 0)
    tile, bars = b.tile("tile", "float32", 256), b.tile("barriers", "uint64", 1, 128)
    tx = b.tx
    program = b.program(
        *(mark(1), when(tx == 0, init(bars, 0, 1), fence_init()), SYNC, mark(2)),
        when(tx == 0, expect(bars, 0, 2048), box_load(a_map, tile, 0, [0, 0], bars, 0)),
    )
    with pytest.raises(SimulationError, match=r"the kernel ends while phase 0 .* expects 2048 bytes .* brought 1024"):
        simulate(program, {"A": np.zeros((8, 32), np.float32)})
