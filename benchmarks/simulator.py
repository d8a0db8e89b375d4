"""Speed of the simulator: counting a launch by classes of blocks, for tiles and grids of many sizes.

    python benchmarks/simulator.py [--json FILE] [--repeats 5]

First the products of ``workloads/kernels/matmul.py`` (float16, 32 iterations of the reduction; rows are padded and there are
two stages where that fits), a block of each tile: seconds to lower it and to count a launch (the first time, which
translates the program, and again). Then programs with roles (``cuda:sm_90a``): persistent products of
``workloads/kernels/gemm.py`` and attention, counted by a few tiles and iterations. Then grids: what a launch of many blocks
costs, as a multiple of (number of classes) x (time of one block); that is to stay under 1.5. Times are the least of a few:
the machine's other work only ever adds.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

TARGETS = ("cuda:sm_80", "hip:gfx942")
TILES = ((64, 64, 32), (128, 64, 32), (128, 128, 32), (128, 128, 64), (256, 128, 32), (256, 256, 32), (256, 256, 64))
ITERATIONS = 32
LENGTHS = (32, 320, 3200)
"""Iterations of the reduction: those that behave alike are counted once."""
ROLES_TARGET = "cuda:sm_90a"
ROLES = (
    "product 4096^3",
    "product 16384^3",
    "product 4160 x 4096 x 4096",
    "product 4097^3 (no boxes)",
    "attention",
    "causal attention",
)
GRIDS = ((1, 1), (10, 10), (100, 100), (1000, 1000))
"""Blocks along x and y; the last are ragged, so that there are four classes."""


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Least time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def tile_row(target: str, tile: tuple[int, int, int], repeats: int) -> dict[str, Any]:
    """One block of a product."""
    import matmul

    from tilelang_min.driver.analysis import analyse_program
    from tilelang_min.driver.build import thread_program
    from tilelang_min.targets import resolve

    m, n, k = tile
    options = {"block_M": m, "block_N": n, "block_K": k, "threads": 512 if m * n == 256 * 256 else 256}
    padded, limit = 2 * (m * (k + 8) + k * (n + 8)), resolve(target).shared.block_limit
    stages = 2 if 2 * padded <= limit else 1
    factory = matmul.padded if padded <= limit else matmul.tiled
    kernel = factory.prim_func(m, n, k * ITERATIONS, num_stages=stages, **options)
    start = time.perf_counter()
    program = thread_program(kernel, resolve(target))[2]
    lowered = time.perf_counter()
    analyse_program(program)
    first = time.perf_counter()
    again = seconds(lambda: analyse_program(program), repeats)
    return {
        "target": target,
        "tile": "x".join(map(str, tile)),
        "threads": options["threads"],
        "stages": stages,
        "lower_s": lowered - start,
        "first_s": first - lowered,
        "again_s": again,
    }


def length_row(target: str, iterations: int, repeats: int) -> dict[str, Any]:
    """One block of a product with a long reduction."""
    import matmul

    from tilelang_min.driver.analysis import analyse_program
    from tilelang_min.driver.build import thread_program
    from tilelang_min.targets import resolve

    options = {"block_M": 128, "block_N": 128, "block_K": 32, "threads": 256, "num_stages": 2}
    program = thread_program(matmul.padded.prim_func(128, 128, 32 * iterations, **options), resolve(target))[2]
    start = time.perf_counter()
    analyse_program(program)
    first = time.perf_counter() - start
    again = seconds(lambda: analyse_program(program), repeats)
    return {"target": target, "iterations": iterations, "first_s": first, "again_s": again}


def role_row(name: str, repeats: int) -> dict[str, Any]:
    """A launch of a program with a producer and consumers."""
    import attention
    import gemm

    from tilelang_min.driver.analysis import analyse_program
    from tilelang_min.driver.build import thread_program
    from tilelang_min.targets import resolve

    tiles = {"block_M": 128, "block_N": 128, "threads": 256}
    kernel = {
        "product 4096^3": lambda: gemm.gemm.prim_func(4096, 4096, 4096),
        "product 16384^3": lambda: gemm.gemm.prim_func(16384, 16384, 16384),
        "product 4160 x 4096 x 4096": lambda: gemm.gemm.prim_func(4160, 4096, 4096),
        "product 4097^3 (no boxes)": lambda: gemm.gemm.prim_func(4097, 4097, 4097),
        "attention": lambda: attention.attention.prim_func(4, 16, 4096, 128, **tiles),
        "causal attention": lambda: attention.attention.prim_func(4, 16, 4096, 128, causal=True, **tiles),
    }[name]()
    program = thread_program(kernel, resolve(ROLES_TARGET))[2]
    start = time.perf_counter()
    analyse_program(program)
    first = time.perf_counter() - start
    return {"kernel": name, "first_s": first, "again_s": seconds(lambda: analyse_program(program), repeats)}


def grid_row(target: str, grid: tuple[int, int], repeats: int) -> dict[str, Any]:
    """A launch of many blocks against one block of its own: every block reads the same tiles, at the edge fewer rows."""
    import tilelang_min.language as T
    from tilelang_min.analysis.blocks import block_classes
    from tilelang_min.driver.analysis import analyse_program
    from tilelang_min.driver.build import thread_program
    from tilelang_min.driver.fills import random_arguments
    from tilelang_min.simulate import simulate
    from tilelang_min.targets import resolve

    gx, gy = grid
    rows, columns = 16 * gy - (gy > 1), 16 * gx - (gx > 1) * 8

    @T.prim_func
    def main(
        A: T.Tensor((rows, 512), "float16"), B: T.Tensor((512, columns), "float16"), C: T.Tensor((16, 16), "float32")
    ):
        with T.Kernel(gx, gy, threads=128) as (bx, by):
            A_shared = T.alloc_shared((16, 72), "float16")
            B_shared = T.alloc_shared((64, 24), "float16")
            total = T.alloc_fragment((16, 16), "float32")
            T.clear(total)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[by * 16, k * 64], A_shared[:, 0:64])
                T.copy(B[k * 64, bx * 16], B_shared[:, 0:16])
                T.gemm(A_shared[:, 0:64], B_shared[:, 0:16], total)
            T.copy(total, C)

    program = thread_program(main, resolve(target))[2]
    arguments = random_arguments(program.parameters)
    named = dict(zip((parameter.name for parameter in program.parameters), arguments, strict=True))
    analyse_program(program, arguments)  # translates the program
    classes = block_classes(program)
    one = statistics.mean(
        seconds(lambda block=item.representative: simulate(program, named, blocks=[block]), repeats) for item in classes
    )
    launch = seconds(lambda: analyse_program(program, arguments), repeats)
    return {
        "target": target,
        "blocks": gx * gy,
        "classes": len(classes),
        "classes_s": seconds(lambda: block_classes(program), repeats),
        "block_s": one,
        "launch_s": launch,
        "ratio": launch / (len(classes) * one),
    }


def main() -> int:
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    tiles = []
    print(f"{'target':12} {'tile':>11} {'threads':>7} {'lower':>8} {'first':>8} {'again':>8}")
    for target in TARGETS:
        for tile in TILES:
            row = tile_row(target, tile, arguments.repeats)
            tiles.append(row)
            times = " ".join(f"{row[key]:7.3f}s" for key in ("lower_s", "first_s", "again_s"))
            print(f"{target:12} {row['tile']:>11} {row['threads']:7} {times}", flush=True)
    lengths = []
    print(f"{'target':12} {'iterations':>10} {'first':>8} {'again':>8}")
    for target in TARGETS:
        for iterations in LENGTHS:
            row = length_row(target, iterations, arguments.repeats)
            lengths.append(row)
            print(f"{target:12} {iterations:10,} {row['first_s']:7.3f}s {row['again_s']:7.3f}s", flush=True)
    roles = []
    print(f"{'with roles':28} {'first':>8} {'again':>8}")
    for name in ROLES:
        row = role_row(name, arguments.repeats)
        roles.append(row)
        print(f"{name:28} {row['first_s']:7.3f}s {row['again_s']:7.3f}s", flush=True)
    grids = []
    print(f"{'target':12} {'blocks':>9} {'classes':>7} {'finding':>8} {'block':>8} {'launch':>8} ratio")
    for target in TARGETS:
        for grid in GRIDS:
            row = grid_row(target, grid, arguments.repeats)
            grids.append(row)
            times = " ".join(f"{row[key]:7.3f}s" for key in ("classes_s", "block_s", "launch_s"))
            print(f"{target:12} {row['blocks']:9,} {row['classes']:7} {times} {row['ratio']:5.2f}", flush=True)
    if arguments.json:
        facts = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}
        arguments.json.write_text(
            json.dumps({**facts, "tiles": tiles, "lengths": lengths, "roles": roles, "grids": grids}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
