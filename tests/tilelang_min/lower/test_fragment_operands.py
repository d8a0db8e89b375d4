"""Matrix products with operands in registers, and how warps share them: right on every target, and direct where it can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_matmul import operands, product, quickstart
from kernel_runs import assert_close, run

import tilelang_min.language as T
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import LayoutError
from tilelang_min.ir.layout import MatrixLayout
from tilelang_min.targets import resolve

TARGETS = ["cuda:sm_75", "cuda:sm_80", "hip:gfx942", "cpu"]
POLICIES = {"square": T.GemmWarpPolicy.Square, "rows": T.GemmWarpPolicy.FullRow, "columns": T.GemmWarpPolicy.FullCol}


def registers(
    side: str, dtype: str = "float16", transposed: bool = False, policy: str = "square", threads: int = 128
) -> Any:
    """A product of 64 x 64 x 32 with A or B (or both) loaded into fragments."""
    a_shape, b_shape = ((32, 64), (64, 32)) if transposed else ((64, 32), (32, 64))
    way = POLICIES[policy]

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads) as _:
            A_s = T.alloc_shared(a_shape, dtype)
            B_s = T.alloc_shared(b_shape, dtype)
            A_f = T.alloc_fragment(a_shape, dtype)
            B_f = T.alloc_fragment(b_shape, dtype)
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.copy(A_s, A_f)
            T.copy(B_s, B_f)
            T.clear(acc)
            T.gemm(
                A_f if "a" in side else A_s,
                B_f if "b" in side else B_s,
                acc,
                transpose_A=transposed,
                transpose_B=transposed,
                policy=way,
            )
            T.copy(acc, C)

    return main


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("side", ["a", "b", "ab"])
@pytest.mark.parametrize("transposed", [False, True])
def test_operands_in_registers(target: str, side: str, transposed: bool) -> None:
    dtype = "float32" if transposed and side == "ab" else "float16"
    kernel = registers(side, dtype, transposed)
    a, b = operands(64, 64, 32, dtype, transposed, transposed)
    c = np.full((64, 64), np.nan, np.float32)
    assert_close(run(kernel, target, [a, b, c])["C"], product(a, b, transposed, transposed), f"{side} on {target}")
    if target in ("cuda:sm_80", "hip:gfx942") and not (target.startswith("cuda") and dtype == "float32"):
        layouts = thread_program(kernel, resolve(target))[1]
        assert layouts is not None
        (plan,) = layouts.gemms.values()
        assert (plan.a_registers is not None, plan.b_registers is not None) == ("a" in side, "b" in side)
        assert not plan.note


def test_a_product_in_other_lanes_goes_through_shared_memory() -> None:
    """FMA reads its operands from shared memory: the compiler makes the tiles, and says so."""
    _, layouts, thread = thread_program(registers("ab", "float32"), resolve("cuda:sm_80"))
    assert layouts is not None
    (plan,) = layouts.gemms.values()
    assert plan.kind == "outer"
    assert "goes through shared memory" in plan.note
    assert [tile.name for tile in thread.shared] == ["A_s", "B_s", "A_f_tile", "B_f_tile"]


@pytest.mark.parametrize(("policy", "warps"), [("square", (2, 2)), ("rows", (4, 1)), ("columns", (1, 4))])
def test_policies(policy: str, warps: tuple[int, int]) -> None:
    layouts = thread_program(registers("", policy=policy), resolve("cuda:sm_80"))[1]
    assert layouts is not None
    (plan,) = layouts.gemms.values()
    assert isinstance(plan.layout, MatrixLayout)
    assert plan.layout.warps == warps


def test_a_policy_of_rows_takes_as_many_as_divide() -> None:
    """8 warps over 64 rows of 16: four rows of warps, and two columns."""
    layouts = thread_program(registers("", policy="rows", threads=256), resolve("cuda:sm_80"))[1]
    assert layouts is not None
    (plan,) = layouts.gemms.values()
    assert isinstance(plan.layout, MatrixLayout)
    assert plan.layout.warps == (4, 2)


@pytest.mark.parametrize(
    ("target", "causal"),
    [("cuda:sm_80", False), ("cuda:sm_80", True), ("cuda:sm_90a", True), ("hip:gfx942", False), ("cpu", True)],
)
def test_attention(target: str, causal: bool) -> None:
    """Ragged in queries and keys; scores reach the second product through registers on NVIDIA, through a tile on AMD."""
    kernels = quickstart("attention")
    dim = 128 if causal else 64
    kernel = kernels.attention.prim_func(1, 2, 83, dim, causal=causal, block_N=32)
    generator = np.random.default_rng(3)
    q, k, v = (generator.standard_normal((1, 83, 2, dim)).astype(np.float16) for _ in range(3))
    out = np.full(q.shape, np.nan, np.float16)
    made = run(kernel, target, [q, k, v, out])["Output"]
    assert_close(made, kernels.reference(q, k, v, causal), f"attention on {target}")
    if target in ("cuda:sm_80", "hip:gfx942"):
        layouts = thread_program(kernel, resolve(target))[1]
        assert layouts is not None
        second = list(layouts.gemms.values())[1]
        assert (second.a_registers is not None) == (target == "cuda:sm_80")
        assert ("goes through shared memory" in second.note) == (target == "hip:gfx942")


def chain(policy: str) -> Any:
    """Two products, the first feeding the second, with row vectors between them; without a policy the compiler sees to it."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 32), "float16"),
        B: T.Tensor((32, 64), "float16"),
        V: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((32, 64), "float16")
            V_s = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((64, 64), "float32")
            P = T.alloc_fragment((64, 64), "float16")
            O = T.alloc_fragment((64, 64), "float32")  # noqa: E741
            high = T.alloc_fragment((64,), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.copy(V, V_s)
            T.clear(S)
            T.clear(O)
            if policy == "none":
                T.gemm(A_s, B_s, S)
            else:
                T.gemm(A_s, B_s, S, policy=T.GemmWarpPolicy.FullCol)
            T.reduce_max(S, high, dim=1)
            T.copy(S, P)
            if policy == "none":
                T.gemm(P, V_s, O)
            else:
                T.gemm(P, V_s, O, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(64, 64):
                O[i, j] = O[i, j] - high[i]
            T.copy(O, C)

    return main


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_the_compiler_finds_a_policy_in_which_layouts_agree(target: str) -> None:
    a, b = operands(64, 64, 32, "float16")
    v = operands(64, 64, 64, "float16")[0]
    made = run(chain("none"), target, [a, b, v, np.full((64, 64), np.nan, np.float32)])["C"]
    scores = product(a, b)
    expected = scores.astype(np.float16).astype(np.float64) @ v.astype(np.float64) - scores.max(1, keepdims=True)
    assert_close(made, expected, f"chain on {target}", scale=200.0)
    layouts = thread_program(chain("none"), resolve(target))[1]
    assert layouts is not None
    for plan in layouts.gemms.values():  # two wavefronts stand so anyway
        assert ("warps stand one above the other" in plan.note) == (target == "cuda:sm_80")


def test_policies_that_do_not_agree_are_an_error() -> None:
    """Both lines are named, with what each needs."""
    with pytest.raises(LayoutError) as caught:
        thread_program(chain("apart"), resolve("cuda:sm_80"))
    message = str(caught.value)
    assert "two uses of fragment high need different layouts: line" in message
    assert message.count("(T.") + message.count("(for ") >= 2
    assert "policy=T.GemmWarpPolicy.FullRow" in message


@pytest.mark.parametrize(
    ("target", "options"),
    [("hip:gfx942", {"block_M": 64, "block_N": 16, "threads": 128}), ("cuda:sm_90a", {"block_M": 128, "threads": 128})],
)
def test_products_agree_on_instructions(target: str, options: dict[str, int]) -> None:
    """Alone, MFMAs of 16 rows for the scores and of 32 for the sum would do, warp groups for one product: rows would not meet."""
    kernels = quickstart("attention")
    kernel = kernels.attention.prim_func(1, 1, 75, 64, num_stages=1, **options)
    generator = np.random.default_rng(4)
    q, k, v = (generator.standard_normal((1, 75, 1, 64)).astype(np.float16) for _ in range(3))
    made = run(kernel, target, [q, k, v, np.full(q.shape, np.nan, np.float16)])["Output"]
    assert_close(made, kernels.reference(q, k, v), f"attention on {target}")
    if target == "hip:gfx942":
        layouts = thread_program(kernel, resolve(target))[1]
        assert layouts is not None
        assert {plan.instruction.m for plan in layouts.gemms.values()} == {16}
        assert all("instructions of 16 rows" in plan.note for plan in layouts.gemms.values())
