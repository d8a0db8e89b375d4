"""A warp-specialised matrix product of Hopper: what it computes and counts, and everything that can be left out of it."""

from __future__ import annotations

import numpy as np
import pytest
from hopper_programs import reference, ring_gemm

from tilelang_min.errors import SimulationError
from tilelang_min.simulate import simulate

rng = np.random.default_rng(7)
A = rng.standard_normal((256, 512)).astype(np.float16)
B = rng.standard_normal((512, 128)).astype(np.float16)


@pytest.mark.parametrize("transposed_b", [True, False])
def test_product_and_counts(transposed_b: bool) -> None:
    program = ring_gemm(256, 128, 512, stages=3, transposed_b=transposed_b)
    result = simulate(program, {"A": A, "B": B if transposed_b else np.ascontiguousarray(B.T)})
    np.testing.assert_allclose(result.outputs["C"], reference(A, B), rtol=1e-4, atol=1e-4)
    counts = {(c.operation, c.buffer, c.access): c for c in result.counts}
    blocks, steps = 4, 8
    a = counts[2, "A", "tma_load"]
    assert (a.requests, a.bytes, a.sectors, a.sectors_ideal) == (32, blocks * steps * 128 * 64 * 2, 16384, 16384)
    assert counts[2, "A_shared", "tma_load"].bytes == a.bytes
    assert counts[2, "B", "tma_load"].bytes == blocks * steps * 64 * 64 * 2
    for buffer in ("A_shared", "B_shared"):
        operand = counts[3, buffer, "wgmma"]
        products = blocks * steps * 4 * 2  # of each block and step: 4 instructions of 2 warp groups
        assert (operand.requests, operand.bytes) == (4 * products, products * 64 * 32)
        assert (operand.transactions, operand.rule) == (None, "unknown")
    assert counts[4, "C", "store"].bytes == 256 * 128 * 4
    assert result.executed[3]["matrix"] == 4 * products


def test_one_block_of_several_counts_its_share() -> None:
    program = ring_gemm(256, 128, 512)
    whole = simulate(program, {"A": A, "B": B})
    one = simulate(program, {"A": A, "B": B}, blocks=[(1, 1, 0)])
    assert [c.scaled(4) for c in one.counts] == whole.counts
    np.testing.assert_array_equal(one.outputs["C"][128:, 64:], whole.outputs["C"][128:, 64:])
    assert np.isnan(one.outputs["C"][:128]).all()


PLANTED = {
    "empty": ("arrives at the mbarrier", "waits for no more than 1 arrivals"),
    "full": ("race on shared memory", "while the bulk copy of operation 2 (line 12) may still be writing it"),
    "fence": ("no wgmma.fence", "operation 3 (line 13)"),
    "wait": ("race on shared memory", "while the wgmma of operation 3 (line 13) may still be reading it"),
    "release": ("deadlock", "has 0 of 2 arrivals"),
    "count": ("deadlock", "has 2 of 3 arrivals (2 by operation 3 (line 13))"),
    "init_fence": ("need not be known to the async proxy", "initialised by operation 1 (line 11)"),
    "sync": ("need not know yet that it is initialised", "operation 1 (line 11)"),
}


@pytest.mark.parametrize("missing", PLANTED)
def test_what_is_missing_is_found(missing: str) -> None:
    with pytest.raises(SimulationError) as caught:
        simulate(ring_gemm(128, 64, 512, missing=missing), {"A": A[:128], "B": B[:, :64].copy()})
    for part in PLANTED[missing]:
        assert part in str(caught.value)


@pytest.mark.parametrize(("expected", "message"), [(1024, "copies brought 16384"), (30000, "copies brought 24576")])
def test_bytes_that_do_not_match(expected: int, message: str) -> None:
    with pytest.raises(SimulationError) as caught:
        simulate(ring_gemm(128, 64, 512, expected=expected), {"A": A[:128], "B": B[:, :64].copy()})
    assert message in str(caught.value)
    assert f"expects {expected} bytes ({expected} by operation 2 (line 12))" in str(caught.value)


def test_without_checks_a_missing_wait_computes_with_stale_data() -> None:
    a, b = A[:128, :128].copy(), B[:128, :64].copy()
    result = simulate(ring_gemm(128, 64, 128, missing="full"), {"A": a, "B": b}, check=False)
    assert not np.allclose(result.outputs["C"], reference(a, b), atol=1e-2)
