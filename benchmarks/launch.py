"""What a call of a kernel costs the host, beside torch, Triton and the bare driver call.

    python benchmarks/launch.py prepare BUNDLES        (anywhere: compiles two kernels for sm_90a)
    python benchmarks/launch.py run BUNDLES [OUT.json] (on a GPU of that architecture; needs torch)

Host time of calls, enqueued 200 at a time on an idle stream and waited for afterwards; the kernels are so small that the device is
ahead.  Shown: the median of 30 such batches, a call; all callers take turns, batch by batch.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured_on

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

CALLS, BATCHES = 200, 30


def prepare(folder: Path) -> int:
    """Compile an element-wise kernel, and a product whose tensors travel by tensor maps."""
    import tilelang_min as tilelang
    import tilelang_min.language as T

    def add() -> Any:
        @T.prim_func
        def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                for i in T.Parallel(128):
                    C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i]

        return main

    def product() -> Any:
        @T.prim_func
        def main(
            A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((128, 128), "float16")
        ):
            with T.Kernel(1, 1, threads=256) as (bx, by):
                A_shared = T.alloc_shared((128, 64), "float16")
                B_shared = T.alloc_shared((64, 128), "float16")
                C_local = T.alloc_fragment((128, 128), "float32")
                T.clear(C_local)
                for k in T.Pipelined(1, num_stages=2):
                    T.copy(A[by * 128, k * 64], A_shared)
                    T.copy(B[k * 64, bx * 128], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C[by * 128, bx * 128])

        return main

    folder.mkdir(parents=True, exist_ok=True)
    for name, kernel in (("add", add()), ("product", product())):
        made = tilelang.compile(kernel, "cuda:sm_90a", options={"hopper": True})
        made.save(folder / f"{name}.tlk")
        print(name, len(made.tensor_maps), "tensor maps")
    return 0


def callers(folder: Path) -> dict[str, Callable[[], object]]:
    """The calls that are compared."""
    import torch

    import tilelang_min as tilelang
    from tilelang_min.runtime import cuda

    add, product = tilelang.load(folder / "add.tlk"), tilelang.load(folder / "product.tlk")
    a, b, c = (torch.ones(128, device="cuda") for _ in range(3))
    x, y, z = (torch.ones(shape, device="cuda", dtype=torch.float16) for shape in ((128, 64), (64, 128), (128, 128)))
    for kernel, tensors in ((add, (a, b, c)), (product, (x, y, z))):
        kernel(*tensors)
    torch.cuda.synchronize()
    assert float(c.sum()) == 256
    assert float(z.float().sum()) == 128 * 128 * 64
    pointers, stream = [t.data_ptr() for t in (a, b, c)], cuda.current_stream()
    found: dict[str, Callable[[], object]] = {
        "kernel(tensors), 3 tensors": lambda: add(a, b, c),
        "kernel(tensors), 3 tensor maps": lambda: product(x, y, z),
        "kernel.bind(tensors)(), 3 tensors": add.bind(a, b, c),
        "kernel.bind(tensors)(), 3 tensor maps": product.bind(x, y, z),
        "torch.add(a, b, out=c)": lambda: torch.add(a, b, out=c),
    }
    found["cuLaunchKernel of cuda-bindings alone"] = bare(add, pointers, stream)
    triton = triton_add(a, b, c)
    if triton is not None:
        found["Triton, kernel[grid](tensors)"] = triton
    return found


def bare(kernel: Any, pointers: list[int], stream: int) -> Callable[[], object]:
    """The driver call through NVIDIA's bindings, with nothing around it."""
    from tilelang_min.runtime import cuda

    driver = cuda.driver_module()
    function = driver.CUfunction(kernel._launcher._functions[cuda.ensure_context()])
    values = (ctypes.c_uint64 * len(pointers))(*pointers)
    addresses = (ctypes.c_void_p * len(pointers))(*(ctypes.addressof(values) + 8 * i for i in range(len(pointers))))
    where = ctypes.addressof(addresses)
    keep = (values, addresses)

    def launch() -> object:
        return keep and driver.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, where, 0)

    return launch


def triton_add(a: Any, b: Any, c: Any) -> Callable[[], object] | None:
    """The same addition in Triton, where it is installed."""
    try:
        from triton_add_kernel import add_kernel
    except ImportError:
        return None
    return lambda: add_kernel[(1,)](a, b, c, BLOCK=128)


def run(folder: Path, out: Path | None) -> int:
    """Measure and print."""
    import torch

    found = callers(folder)
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(BATCHES + 3):
        for name, call in found.items():
            torch.cuda.synchronize()
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                call()
            times[name].append((time.perf_counter_ns() - start) / CALLS / 1000)
    rows = {
        name: {"median_us": statistics.median(taken[3:]), "least_us": min(taken[3:])} for name, taken in times.items()
    }
    for name, row in rows.items():
        print(f"{name:42} {row['median_us']:7.2f} us a call (least {row['least_us']:.2f})")
    if out is not None:
        facts = {
            **measured_on.facts(),
            "script": "benchmarks/launch.py",
            "triton": getattr(sys.modules.get("triton"), "__version__", None),
            "calls": CALLS,
            "batches": BATCHES,
        }
        out.write_text(json.dumps({**facts, "rows": rows}, indent=1))
    return 0


def main(arguments: list[str]) -> int:
    """Entry point."""
    if len(arguments) == 2 and arguments[0] == "prepare":
        return prepare(Path(arguments[1]))
    if len(arguments) in (2, 3) and arguments[0] == "run":
        return run(Path(arguments[1]), Path(arguments[2]) if len(arguments) == 3 else None)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
