"""What does not fit a target is refused before anything is generated, naming need, limit and users."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import ResourceError


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
    """The error, raised without a code generator being asked."""
    from tilelang_min.driver import build

    monkeypatch.setattr(build, "import_module", lambda name: pytest.fail(f"{name} was asked"))
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
        f"big 131,072 bytes (2 stages) at line {first}, small 32,768 bytes (2 stages) at line {first + 1}"
    )
    assert error.location is not None
    assert error.location.text.strip() == 'big = T.alloc_shared((rows, 64), "float32")'
    assert error.remedy == "use smaller tiles or fewer stages"
    error = refused(tiles(256, 3), "cuda:sm_80", monkeypatch)
    assert error.message.startswith(
        "the block needs 245,760 bytes of shared memory, cuda:sm_80 has 166,912: big 196,608"
    )


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
    assert error.remedy


def test_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(tiles(64, 1, grid=(1, 70000)), "cuda:sm_80", monkeypatch)
    assert "grid (1, 70000, 1) is too large: y and z are limited to 65535" in error.message
    assert error.remedy == "put the longest dimension first"


def test_accumulators_that_no_thread_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    @T.prim_func
    def main(A: T.Tensor((256, 256), "float32"), C: T.Tensor((256, 256), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((256, 256), "float32")
            T.copy(A, F)
            T.copy(F, C)

    error = refused(main, "cuda:sm_80", monkeypatch)
    assert error.message == "fragment F needs 1024 registers of each of 64 threads, cuda:sm_80 has 255 a thread"
    assert error.location is not None
    assert error.location.text.strip() == 'F = T.alloc_fragment((256, 256), "float32")'
    assert error.remedy == "use a smaller tile or more threads"
    assert "hip:gfx942 has 512 a thread" in refused(main, "hip:gfx942", monkeypatch).message


def test_the_cpu_has_none_of_these_limits() -> None:
    kernel = tilelang.compile(tiles(256, 3, threads=48), "cpu", cache=False)
    assert kernel.metadata.threads_per_block == 1
