"""Matrix products in every type of operands, on each architecture's own instructions, against float64 (exact for integers)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import run

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.analysis.work import flops
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import LanguageError
from tilelang_min.frontend import parse
from tilelang_min.ir.nodes import Gemm, walk
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.transform.gemm_plans import plan_gemm

TARGETS = ("cpu", "cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", "hip:gfx90a", "hip:gfx942", "hip:gfx950")
ACCUMULATOR = {"float64": "float64", "int8": "int32", "uint8": "int32"}
TYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "int8", "uint8")


def matmul(
    M: int,
    N: int,
    K: int,
    dtype: str,
    accumulator: str,
    ta: bool = False,
    tb: bool = False,
    bk: int = 32,
    pad: int = 0,
    threads: int = 64,
) -> Any:
    """``C = op(A) @ op(B) + 1`` in tiles of 32x32, the one added in the accumulator."""
    block = 32

    @T.prim_func
    def main(
        A: T.Tensor((K, M) if ta else (M, K), dtype),
        B: T.Tensor((N, K) if tb else (K, N), dtype),
        C: T.Tensor((M, N), accumulator),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((bk, block + pad) if ta else (block, bk + pad), dtype)
            B_shared = T.alloc_shared((block, bk + pad) if tb else (bk, block + pad), dtype)
            C_local = T.alloc_fragment((block, block), accumulator)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                if ta:
                    T.copy(A[ko * bk, by * block], A_shared[:, 0:block])
                else:
                    T.copy(A[by * block, ko * bk], A_shared[:, 0:bk])
                if tb:
                    T.copy(B[bx * block, ko * bk], B_shared[:, 0:bk])
                else:
                    T.copy(B[ko * bk, bx * block], B_shared[:, 0:block])
                T.gemm(
                    A_shared[:, 0 : block if ta else bk],
                    B_shared[:, 0 : bk if tb else block],
                    C_local,
                    transpose_A=ta,
                    transpose_B=tb,
                )
            for i, j in T.Parallel(block, block):
                C_local[i, j] = C_local[i, j] + 1
            T.copy(C_local, C[by * block, bx * block])

    return main


def values(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """All of an integer type; eighths up to 1, which have exact sums in every accumulator, for narrow floats; else normal."""
    generator = np.random.default_rng(seed)
    if "int" in dtype:
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, endpoint=True, dtype=dtype)
    if dtype in ("float32", "float64"):
        return generator.standard_normal(shape).astype(dtype)
    return (generator.integers(-8, 8, shape) / 8).astype(numpy_dtype(dtype))


def check(target: str, dtype: str, size: tuple[int, int, int], accumulator: str | None = None, **options: Any) -> None:
    m, n, k = size
    accumulator = accumulator or ACCUMULATOR.get(dtype, "float32")
    ta, tb = options.get("ta", False), options.get("tb", False)
    a, b = values(dtype, (k, m) if ta else (m, k), 1), values(dtype, (n, k) if tb else (k, n), 2)
    wide = np.int64 if "int" in dtype else np.float64
    left, right = (a.T if ta else a).astype(wide), (b.T if tb else b).astype(wide)
    expected = left @ right + 1
    kernel = matmul(*size, dtype, accumulator, **options)
    found = run(kernel, target, [a, b, np.full((m, n), 77, accumulator)])["C"]
    assert found.dtype == np.dtype(accumulator)
    if dtype in ("float32", "float64"):
        limit = {"float32": 1e-5, "float64": 1e-13}[dtype]
        assert np.abs(found - expected).max() <= limit * np.abs(expected).max()
    else:
        assert np.array_equal(found.astype(wide), expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES)
def test_products(dtype: str, target: str) -> None:
    """Ragged sizes, every orientation."""
    check(target, dtype, (40, 35, 72), tb=True)
    check(target, dtype, (33, 40, 70))
    check(target, dtype, (37, 33, 40), ta=True, tb=True, pad=16 if dtype != "float64" else 2)


@pytest.mark.parametrize("target", [target for target in TARGETS if target.startswith("cuda")])
def test_sums_in_float16(target: str) -> None:
    """Operands are such that nothing is rounded."""
    check(target, "float16", (40, 35, 72), "float16", tb=True)
    check(target, "float16", (33, 40, 16), "float16", bk=8)
    check(target, "float16", (33, 40, 24), "float16", bk=12)  # by FMA


@pytest.mark.parametrize("target", ["cpu", "hip:gfx90a", "hip:gfx942", "hip:gfx950"])
def test_no_sums_in_float16(target: str) -> None:
    with pytest.raises(LanguageError, match=f"{target} does not add up matrix products in float16") as caught:
        thread_program(matmul(64, 64, 64, "float16", "float16"), tilelang.targets.resolve(target))
    assert caught.value.location is not None
    assert "give C_local the type float32" in (caught.value.remedy or "")


# target, types, how B lies, K of a tile: the instruction, or None for multiply-adds
INSTRUCTIONS = {
    ("cuda:sm_75", "float16", "float32", False, 32): "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
    ("cuda:sm_75", "int8", "int32", True, 32): "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
    ("cuda:sm_75", "bfloat16", "float32", True, 32): None,
    ("cuda:sm_80", "float16", "float32", False, 32): "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ("cuda:sm_80", "float16", "float16", False, 32): "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    ("cuda:sm_80", "float16", "float32", False, 24): "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
    ("cuda:sm_80", "bfloat16", "float32", False, 32): "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    ("cuda:sm_80", "int8", "int32", False, 32): "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
    ("cuda:sm_80", "uint8", "int32", True, 32): "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32",
    ("cuda:sm_80", "uint8", "int32", True, 16): "mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32",
    ("cuda:sm_80", "float64", "float64", False, 32): "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    ("cuda:sm_80", "float32", "float32", False, 32): None,
    ("cuda:sm_80", "float8_e4m3", "float32", True, 32): None,
    ("cuda:sm_89", "float8_e4m3", "float32", True, 32): "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
    ("cuda:sm_90a", "float8_e5m2", "float32", False, 32): "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32",
    ("cuda:sm_90a", "float64", "float64", True, 32): "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
    ("hip:gfx90a", "bfloat16", "float32", False, 32): "llvm.amdgcn.mfma.f32.32x32x8bf16.1k",
    ("hip:gfx90a", "int8", "int32", True, 32): "llvm.amdgcn.mfma.i32.32x32x8i8",
    ("hip:gfx90a", "float64", "float64", True, 32): "llvm.amdgcn.mfma.f64.16x16x4f64",
    ("hip:gfx90a", "uint8", "int32", True, 32): None,
    ("hip:gfx942", "int8", "int32", False, 32): "llvm.amdgcn.mfma.i32.32x32x16.i8",
    ("hip:gfx942", "float8_e4m3", "float32", True, 32): None,
    ("hip:gfx950", "float16", "float32", False, 32): "llvm.amdgcn.mfma.f32.32x32x16.f16",
    ("hip:gfx950", "bfloat16", "float32", True, 32): "llvm.amdgcn.mfma.f32.32x32x16.bf16",
    ("hip:gfx950", "int8", "int32", True, 32): "llvm.amdgcn.mfma.i32.32x32x32.i8",
    ("hip:gfx950", "float8_e4m3", "float32", True, 64): "llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4",
    ("hip:gfx950", "float8_e5m2", "float32", False, 16): "llvm.amdgcn.mfma.f32.32x32x16.bf8.bf8",
}  # fmt: skip


@pytest.mark.parametrize("case", INSTRUCTIONS)
def test_which_instruction_is_taken(case: Any) -> None:
    """The first of the target's that fits; its product is right."""
    target, dtype, accumulator, tb, bk = case
    program = parse(matmul(64, 64, 2 * bk, dtype, accumulator, tb=tb, bk=bk))
    gemm = next(each for each in walk(program.body) if isinstance(each, Gemm))
    plan = plan_gemm(gemm, program.threads, tilelang.targets.resolve(target))
    expected = INSTRUCTIONS[case]
    assert (plan.instruction and plan.instruction.name) == expected
    missing = f"{target} multiplies no matrices of {dtype} into {accumulator}"
    assert plan.note == (missing if expected is None and dtype != "float32" else "")
    check(target, dtype, (40, 64, 2 * bk), accumulator, tb=tb, bk=bk)


NARROW = {
    ("hip:gfx90a", "bfloat16", 32): "llvm.amdgcn.mfma.f32.16x16x16bf16.1k",
    ("hip:gfx90a", "int8", 32): "llvm.amdgcn.mfma.i32.16x16x16i8",
    ("hip:gfx942", "int8", 64): "llvm.amdgcn.mfma.i32.16x16x32.i8",
    ("hip:gfx942", "float64", 16): "llvm.amdgcn.mfma.f64.16x16x4f64",
    ("hip:gfx950", "float16", 32): "llvm.amdgcn.mfma.f32.16x16x32.f16",
    ("hip:gfx950", "bfloat16", 64): "llvm.amdgcn.mfma.f32.16x16x32.bf16",
    ("hip:gfx950", "int8", 64): "llvm.amdgcn.mfma.i32.16x16x64.i8",
    ("hip:gfx950", "float8_e5m2", 128): "llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4",
    ("hip:gfx950", "float8_e4m3", 64): "llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8",
    ("cuda:sm_90a", "int8", 32): "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
}  # fmt: skip


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("case", NARROW)
def test_tiles_of_several_warps(case: Any, tb: bool) -> None:
    """Four wavefronts of 16x16 (two warps of 32x16)."""
    target, dtype, bk = case
    accumulator, threads = ACCUMULATOR.get(dtype, "float32"), 256 if target.startswith("hip") else 64
    program = parse(matmul(64, 64, 2 * bk, dtype, accumulator, tb=tb, bk=bk, threads=threads))
    gemm = next(each for each in walk(program.body) if isinstance(each, Gemm))
    assert plan_gemm(gemm, threads, tilelang.targets.resolve(target)).instruction.name == NARROW[case]
    check(target, dtype, (40, 35, bk + 5), accumulator, tb=tb, bk=bk, threads=threads)


@pytest.mark.parametrize(
    ("target", "dtype", "opcode"),
    [
        ("cuda:sm_75", "int8", "IMMA"),
        ("cuda:sm_80", "bfloat16", "HMMA"),
        ("cuda:sm_80", "float16", "HMMA"),
        ("cuda:sm_80", "int8", "IMMA"),
        ("cuda:sm_80", "float64", "DMMA"),
        ("cuda:sm_89", "float8_e4m3", "QMMA"),
        ("hip:gfx90a", "float64", "v_mfma_f64"),
        ("hip:gfx942", "bfloat16", "v_mfma_f32"),
        ("hip:gfx942", "int8", "v_mfma_i32"),
        ("hip:gfx950", "float8_e4m3", "v_mfma"),
    ],
)
def test_machine_code(target: str, dtype: str, opcode: str) -> None:
    kernel = tilelang.compile(
        matmul(256, 256, 256, dtype, ACCUMULATOR.get(dtype, "float32"), tb=True, bk=64), target, cache=False
    )
    assert any(opcode in each.opcode for each in kernel.listing.instructions)


@pytest.mark.parametrize("dtype", TYPES)
def test_work(dtype: str) -> None:
    """Operations are counted in the type of the operands; those of integers too."""
    program = parse(matmul(40, 36, 72, dtype, ACCUMULATOR.get(dtype, "float32")))
    work = flops(program)
    added = 64 * 64  # one is added to each element of the tiles, in the accumulator's type
    accumulator = ACCUMULATOR.get(dtype, "float32")
    own = added if accumulator == dtype else 0
    assert work[dtype] == 2 * 40 * 36 * 72 + own
