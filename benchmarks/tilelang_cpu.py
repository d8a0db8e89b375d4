"""TileLang's own CPU target, for the record: run it in an environment of its own (``pip install tilelang==0.1.15``).

    python benchmarks/tilelang_cpu.py [size]

The same tiled product as ``cpu.py`` measures, float32, in TileLang's words; one line for each target and execution backend, with
the rate or what TileLang raised.
"""

from __future__ import annotations

import sys
import time
from typing import Any

ROUNDS = 5


def product(size: int, block: int) -> Any:
    """C = A @ B in square tiles."""
    import tilelang.language as T

    @T.prim_func
    def main(
        A: T.Tensor((size, size), "float32"), B: T.Tensor((size, size), "float32"), C: T.Tensor((size, size), "float32")
    ):
        with T.Kernel(T.ceildiv(size, block), T.ceildiv(size, block)) as (bx, by):
            a = T.alloc_local((block, block), "float32")
            b = T.alloc_local((block, block), "float32")
            c = T.alloc_local((block, block), "float32")
            T.clear(c)
            for k in T.serial(T.ceildiv(size, block)):
                T.copy(A[by * block, k * block], a)
                T.copy(B[k * block, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return main


def main() -> int:
    """One line for each way to run."""
    import tilelang
    import torch

    size = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    torch.set_num_threads(1)
    a, b = torch.randn(size, size), torch.randn(size, size)
    for target, backend in (("c", "cython"), ("c", "tvm_ffi"), ("llvm", "auto")):
        name = f"TileLang {tilelang.__version__}, target {target}, backend {backend}"
        try:
            kernel = tilelang.compile(product(size, 64), out_idx=-1, target=target, execution_backend=backend)
            torch.testing.assert_close(kernel(a, b), a @ b, rtol=1e-3, atol=1e-3)
        except Exception as error:  # whatever it raises is the result
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[-1]}")
            continue
        times = []
        for _ in range(ROUNDS):
            start = time.process_time()
            kernel(a, b)
            times.append(time.process_time() - start)
        print(f"{name}: {2 * size**3 / min(times) / 1e9:.2f} GFLOP/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
