"""``kernel.explain()``: what was decided, why other ways were refused, and limits; options that do not exist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import CodegenError, LanguageError


def product(
    dtype: str = "float16",
    k: int = 32,
    stages: int = 3,
    iterations: int = 8,
    tile_dtype: str | None = None,
    shape: tuple[int, int] = (64, 64),
) -> Any:
    held = tile_dtype or dtype
    m, n = shape

    @T.prim_func
    def gemm(
        A: T.Tensor((m, k * iterations), dtype), B: T.Tensor((k * iterations, n), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((m, k), held)
            B_shared = T.alloc_shared((k, n), held)
            C_local = T.alloc_fragment((m, n), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(iterations, num_stages=stages):
                T.copy(A[0, ko * k], A_shared)
                T.copy(B[ko * k, 0], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C)

    return gemm


def explained(kernel: Any, target: str) -> str:
    text: str = tilelang.compile(kernel, target, cache=False).explain()
    return text


def section(text: str, title: str) -> str:
    """One section of the text, lines stripped."""
    (found,) = [part for part in text.split("\n\n") if part.startswith(title)]
    return "\n".join(line.strip() for line in found.splitlines()[1:])


def test_a_kernel_for_nvidia() -> None:
    kernel = tilelang.compile(product(), "cuda:sm_80", cache=False)
    text = kernel.explain()
    assert text.startswith("gemm for cuda:sm_80: grid 1x1x1, 128 threads a block\n\n")
    shared = section(text, "shared memory")
    assert "A_shared: float16 64x32 x 3 stages, 12,288 bytes at" in shared
    assert "of the 166,912 bytes that a block may have" in shared
    pipelines = section(text, "pipelines")
    assert "8 iterations: num_stages=3, 3 used; asynchronous copies" in pipelines
    assert pipelines.count("ahead by 2: line") == 2
    products = section(text, "matrix products")
    assert "64x64x32, float16 x float16 -> float32" in products
    assert "taken: tensor cores (mma.sync.aligned.m16n8k16" in products
    assert "refused" not in products
    assert "have arrived" in section(text, "barriers")
    resources = section(text, "resources")
    metadata = kernel.metadata
    assert f"registers: {metadata.registers_per_thread} of 255 a thread" in resources
    assert "spills: none" in resources
    assert f"limited by {', '.join(metadata.occupancy_limiters)}" in resources
    assert f"occupancy: {metadata.occupancy:.0%}, {metadata.max_blocks_per_unit} blocks a SM" in resources
    assert "warps: 16 blocks" in resources


def test_a_kernel_for_amd() -> None:
    text = explained(product(), "hip:gfx942")
    assert "of the 65,536 bytes that a block may have" in section(text, "LDS")
    assert "loads into registers before the work, stores behind it" in section(text, "pipelines")
    assert "taken: matrix cores (llvm.amdgcn.mfma.f32." in section(text, "matrix products")
    assert " VGPRs, " in section(text, "resources")
    assert "blocks a CU; limited by" in section(text, "resources")


def test_a_kernel_for_a_cpu() -> None:
    text = explained(product(), "cpu:x86-64-v3")
    assert "a CPU prefetches by itself: an ordinary loop" in section(text, "pipelines")
    assert "occupancy" not in text
    assert "instructions: " in section(text, "resources")


def test_a_kernel_of_warp_groups() -> None:
    kernel = tilelang.compile(product(shape=(128, 128), k=64), "cuda:sm_90a", cache=False, options={"hopper": True})
    text = kernel.explain()
    assert "taken: tensor cores, by warp groups (wgmma.mma_async.sync.aligned.m64n" in section(text, "matrix products")
    assert "bulk copies (TMA)" in section(text, "pipelines")
    assert "tile A_shared: swizzled" in section(text, "warp groups")
    assert "; swizzled: unit u of row r" in section(text, "shared memory")


REFUSALS = {
    (
        "cuda:sm_80",
        "float32",
        32,
    ): "refused: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32: it cuts float32 down to tf32",
    ("cuda:sm_80", "float16", 20): ": K = 20 of a tile is not a multiple of 16",
    ("hip:gfx90a", "float16", 20): ": K = 20 of a tile is not a multiple of 8",
}


@pytest.mark.parametrize("case", REFUSALS)
def test_why_an_instruction_was_not_taken(case: tuple[str, str, int]) -> None:
    target, dtype, k = case
    products = section(explained(product(dtype, k), target), "matrix products")
    assert REFUSALS[case] in products


def test_what_divides_into_nothing() -> None:
    products = section(explained(product(shape=(24, 40)), "cuda:sm_80"), "matrix products")
    assert "taken: no matrix instruction: fused multiply-adds, element by element" in products
    assert "refused: 24x40 does not divide into register blocks of 128 threads" in products
    assert "24x40 does not divide into 4 warps of 16x16" in products


def test_why_a_copy_does_not_run_ahead() -> None:
    text = explained(product("float32", tile_dtype="float16"), "cuda:sm_80")
    pipelines = section(text, "pipelines")
    assert "num_stages=3, 1 used; no copy may run ahead: an ordinary loop" in pipelines
    assert pipelines.count("it converts float32 to float16") == 2
    assert "one stage: an ordinary loop" in section(explained(product(stages=1), "cuda:sm_80"), "pipelines")
    once = section(explained(product(iterations=1), "cuda:sm_80"), "pipelines")
    assert "1 iterations: num_stages=3, 1 used; too few iterations to run ahead: an ordinary loop" in once


@T.prim_func
def turned(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=64):
        S = T.alloc_shared((64, 64), "float32")
        for _step in T.serial(4):
            T.copy(A, S)
            for i, j in T.Parallel(64, 64):
                B[i, j] = S[j, i]


def test_why_there_is_a_barrier() -> None:
    barriers = section(explained(turned, "cuda:sm_80"), "barriers").splitlines()
    assert len(barriers) == 2
    assert "T.copy(A, S): " in barriers[0]
    assert "reads S in an earlier iteration, T.copy(A, S) writes it" in barriers[0]
    assert "T.copy(A, S) (line" in barriers[1]
    assert "writes S, for i, j in T.Parallel(64, 64) reads it" in barriers[1]


def test_it_is_in_the_bundle_and_needs_no_compiler(tmp_path: Path) -> None:
    kernel = tilelang.compile(product(), "cuda:sm_80", cache=False)
    path = kernel.save(tmp_path / "gemm.tlk")
    program = f"""
import sys
import tilelang_min as tilelang
print(tilelang.load({str(path)!r}).explain())
assert "tvm" not in sys.modules
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(tilelang.__file__).parent.parent)}
    ran = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == kernel.explain() + "\n"


def test_dump_writes_it(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TILELANG_DUMP", "1")
    kernel = tilelang.compile(turned, "hip:gfx942", cache=False)
    written = capfd.readouterr().err
    titles = [line for line in written.splitlines() if line.startswith("==== ")]
    assert titles == [
        f"==== {title} ===="
        for title in (
            "tile program",
            "after transforms",
            "thread program",
            "generated source",
            "listing",
            "explanation",
        )
    ]
    assert kernel.explain() in written


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "options", "remedy"),
    [
        (
            "cuda:sm_80",
            {"min_block": 2},
            "did you mean 'min_blocks'? Known: min_blocks, max_registers, fast_math, hopper, double_buffer",
        ),
        ("hip:gfx942", {"waves_per_cu": 2}, "did you mean 'waves_per_eu'? Known: waves_per_eu, hopper, double_buffer"),
        ("cpu", {"levl": 2}, "did you mean 'level'? Known: level, hopper, double_buffer"),
    ],
)
def test_unknown_options_of_code_generators(target: str, options: dict[str, Any], remedy: str) -> None:
    with pytest.raises(CodegenError, match=f"unknown option {next(iter(options))!r} for {target}") as caught:
        tilelang.compile(turned, target, cache=False, options=options)
    assert caught.value.remedy == remedy


def test_unknown_options_of_jit() -> None:
    with pytest.raises(LanguageError, match=r"tilelang\.jit has no option 'out_index'") as caught:
        tilelang.jit(target="cpu", out_index=[1])
    assert caught.value.remedy is not None
    assert caught.value.remedy.startswith("did you mean 'out_idx'? Known: out_idx, instrument, ")
