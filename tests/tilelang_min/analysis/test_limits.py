"""What does not fit a target is refused before anything is generated, naming need, limit and users."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.analysis.limits import check_resources
from tilelang_min.errors import LanguageError, ResourceError
from tilelang_min.frontend import parse


def tiles(rows: int, stages: int, threads: int = 128, grid: tuple[int, int] = (1, 1)) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((rows, 512), "float32"), B: T.Tensor((512, 64), "float32"), C: T.Tensor((rows, 64), "float32")
    ):
        with T.Kernel(grid[0], grid[1], threads=threads):
            big = T.alloc_shared((rows, 64), "float32")
            small = T.alloc_shared((64, 64), "float32")
            F = T.alloc_fragment((rows, 64), "float32")
            T.clear(F)
            for k in T.Pipelined(8, num_stages=stages):
                T.copy(A[0, k * 64], big)
                T.copy(B[k * 64, 0], small)
                T.gemm(big, small, F)
            T.copy(F, C)

    return main


def refused(kernel: Any, target: str, monkeypatch: pytest.MonkeyPatch) -> ResourceError:
    """The error, raised without a code generator being asked for code."""
    from tilelang_min.driver import build

    for name in build._GENERATORS.values():
        monkeypatch.setattr(f"{name}.generate", lambda *given, name=name, **options: pytest.fail(f"{name} was asked"))
    with pytest.raises(ResourceError) as caught:
        tilelang.compile(kernel, target, cache=False)
    return caught.value


def test_too_much_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tiles(256, 2)
    lines, start = inspect.getsourcelines(kernel.function)
    first = start + next(number for number, line in enumerate(lines) if "big = " in line)
    # 2 stages of 64 KiB and of 16 KiB: 160 KiB fit the 163 KiB of an A100, not 64 KiB of LDS.
    error = refused(kernel, "hip:gfx942", monkeypatch)
    assert error.message == (
        "the block needs 163,840 bytes of LDS, hip:gfx942 has 65,536: "
        f"big 131,072 bytes (2 stages) at line {first}, small 32,768 bytes (2 stages) at line {first + 1}; most is used by "
        f"T.gemm(big, small, F) at line {first + 7} (163,840 bytes), T.copy(A[0, k * 64], big) at line {first + 5} "
        f"(131,072 bytes), T.copy(B[k * 64, 0], small) at line {first + 6} (32,768 bytes)"
    )
    assert error.location is not None
    assert error.location.text.strip() == 'big = T.alloc_shared((rows, 64), "float32")'
    assert error.remedy == "use smaller tiles; one stage alone is too large"
    error = refused(tiles(256, 3), "cuda:sm_80", monkeypatch)
    assert error.message.startswith(
        "the block needs 245,760 bytes of shared memory, cuda:sm_80 has 166,912: big 196,608"
    )
    assert error.remedy == "use smaller tiles, or num_stages=2, which needs 163,840 bytes"


def test_what_just_fits_is_compiled() -> None:
    kernel = tilelang.compile(tiles(256, 2), "cuda:sm_80", cache=False)
    assert kernel.metadata.shared_bytes_dynamic == 163840
    assert kernel.metadata.max_blocks_per_unit == 1


THREADS = {
    ("cuda:sm_80", 2048): "2048 threads a block, cuda:sm_80 allows 1024",
    ("cuda:sm_80", 48): "48 threads a block is not a multiple of the warp of 32 on cuda:sm_80",
    ("hip:gfx942", 96): "96 threads a block is not a multiple of the wavefront of 64 on hip:gfx942",
    ("hip:gfx90a", 1088): "1088 threads a block, hip:gfx90a allows 1024",
}


@pytest.mark.parametrize("case", THREADS)
def test_threads(case: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    target, threads = case
    error = refused(tiles(64, 1, threads), target, monkeypatch)
    assert error.message == THREADS[case]
    assert error.location is not None
    assert error.location.text.strip().startswith("with T.Kernel(")
    assert error.remedy


def test_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(tiles(64, 1, grid=(1, 70000)), "cuda:sm_80", monkeypatch)
    assert error.message == "the grid (1, 70000, 1) has 70,000 blocks along y, cuda:sm_80 allows 65,535"
    assert error.remedy == "put the longest dimension first, or give a block more of the work"
    with pytest.raises(LanguageError, match="a grid dimension of 2,147,483,648 blocks; block indices are 32-bit"):
        parse(tiles(64, 1, grid=(2**31, 1)))
    error = refused(tiles(64, 1, grid=(2**26, 1)), "hip:gfx942", monkeypatch)
    assert "8,589,934,592 threads along x, hip:gfx942 allows 4,294,967,295" in error.message


def test_accumulators_that_no_thread_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    @T.prim_func
    def main(A: T.Tensor((256, 256), "float32"), C: T.Tensor((256, 256), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((256, 256), "float32")
            T.copy(A, F)
            T.copy(F, C)

    error = refused(main, "cuda:sm_80", monkeypatch)
    assert error.message.startswith(
        "fragment F needs 1024 registers of each of 64 threads, cuda:sm_80 has 255 a thread; most is used by "
        "T.copy(A, F) at line "
    )
    assert error.location is not None
    assert error.location.text.strip() == 'F = T.alloc_fragment((256, 256), "float32")'
    assert error.remedy == "use a smaller tile or more threads"
    assert "hip:gfx942 has 512 a thread" in refused(main, "hip:gfx942", monkeypatch).message


def test_the_cpu_has_none_of_these_limits() -> None:
    kernel = tilelang.compile(tiles(256, 3, threads=48), "cpu", cache=False)
    assert kernel.metadata.threads_per_block == 1


# -- every limit of every target ---------------------------------------------------------------------------------------

GPUS = [name for name in tilelang.targets.names() if name.startswith(("cuda:", "hip:"))]

BLOCK_BYTES = {
    "cuda:sm_70": 96,
    "cuda:sm_75": 64,
    "cuda:sm_80": 163,
    "cuda:sm_86": 99,
    "cuda:sm_89": 99,
    "cuda:sm_90a": 227,
    "cuda:sm_100a": 227,
    "cuda:sm_120a": 99,
    "hip:gfx90a": 64,
    "hip:gfx942": 64,
    "hip:gfx950": 160,
}
"""Shared KiB that a block may have, by the vendors' documents; the kernels below are cut to them."""


def holding(elements: int, fragment: int = 0, threads: int = 256) -> Any:
    """A kernel with one shared tile of so many floats, or a fragment."""

    @T.prim_func
    def main(A: T.Tensor((max(elements, fragment),), "float32"), B: T.Tensor((max(elements, fragment),), "float32")):
        with T.Kernel(1, threads=threads):
            if elements:
                S = T.alloc_shared((elements,), "float32")
                T.copy(A, S)
                T.copy(S, B)
            else:
                F = T.alloc_fragment((fragment,), "float32")
                T.copy(A, F)
                T.copy(F, B)

    return main


def check(kernel: Any, target: str) -> None:
    """The checks before lowering, without the rest of the compiler."""
    check_resources(parse(kernel), tilelang.targets.resolve(target))


def test_no_target_is_forgotten() -> None:
    assert set(GPUS) == set(BLOCK_BYTES)


@pytest.mark.parametrize("target", GPUS)
def test_shared_memory_of_every_target(target: str) -> None:
    limit = BLOCK_BYTES[target] * 1024
    check(holding(limit // 4), target)
    with pytest.raises(ResourceError) as caught:
        check(holding(limit // 4 + 1), target)
    word = "LDS" if target.startswith("hip") else "shared memory"
    assert caught.value.message.startswith(
        f"the block needs {limit + 128:,} bytes of {word}, {target} has {limit:,}: S {limit + 4:,} bytes at line "
    )
    assert "; most is used by T.copy(A, S) at line " in caught.value.message
    assert caught.value.remedy == "use smaller tiles"
    assert caught.value.location is not None


@pytest.mark.parametrize("target", GPUS)
def test_threads_of_every_target(target: str) -> None:
    warp = tilelang.targets.resolve(target).warp_size
    assert warp == (64 if target.startswith("hip") else 32)
    check(holding(64, threads=1024), target)
    check(holding(64, threads=warp), target)
    with pytest.raises(ResourceError, match=f"{1024 + warp} threads a block, {target} allows 1024"):
        check(holding(64, threads=1024 + warp), target)
    with pytest.raises(ResourceError, match=f"is not a multiple of the .* of {warp} on {target}"):
        check(holding(64, threads=warp // 2), target)


@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("threads", [256, 1024])
def test_registers_of_every_target(target: str, threads: int) -> None:
    """As many as an instruction can name, and as the register file has for so many threads."""
    amd = target.startswith("hip")
    limit = {256: 512 if amd else 255, 1024: 128 if amd else 64}[threads]
    check(holding(0, limit * threads, threads), target)
    with pytest.raises(ResourceError) as caught:
        check(holding(0, (limit + 1) * threads, threads), target)
    assert f"F needs {limit + 1} registers of each of {threads} threads, {target} has {limit} a thread" in str(
        caught.value
    )
    assert ("in blocks of that size" in caught.value.message) == (threads == 1024)


@pytest.mark.parametrize("target", GPUS)
def test_blocks_of_every_target(target: str) -> None:
    limits = tilelang.targets.resolve(target)
    assert limits.max_grid == (2**31 - 1, 65535, 65535)
    check(tiles(64, 1, grid=(1, 65535)), target)
    with pytest.raises(ResourceError, match="65,536 blocks along y"):
        check(tiles(64, 1, grid=(1, 65536)), target)
