"""Products by ``mma.sync``, as sm_80 to sm_89 and sm_120 have them, on a Hopper GPU: with and without operands read a step ahead.

    python benchmarks/h200_mma_sync.py compile BUNDLES                here: needs no GPU
    python benchmarks/h200_mma_sync.py run BUNDLES RESULT.json        on the GPU: needs torch and cuda-bindings, no compiler

Method: kernels of one size, the library and, for Triton, its kernel without warp group products (``DISABLE_MMA_V3``) in turns, the
order reversed from round to round; the L2 flushed before each launch; CUDA events; medians.  In the same turns runs the ceiling: a
kernel of mma.sync alone, operands and sums in registers, with as many instructions as the product has.  Inputs from a normal
distribution; outputs full of NaN, compared with float64.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured_on

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

ROUNDS, WARMUP, FLUSH_BYTES = 12, 2, 256 << 20
MODES = {"off": False, "tile": "tile", "loop": True}
Tile = tuple[int, int, int, int, int]
"""Rows, columns, depth, stages, threads."""

TILES: dict[tuple[int, bool], tuple[Tile, ...]] = {
    (2048, False): ((128, 128, 32, 4, 128), (256, 128, 32, 4, 256), (128, 256, 64, 4, 256)),
    (4096, False): (
        (128, 128, 32, 3, 128),
        (128, 128, 32, 4, 128),
        (128, 128, 64, 3, 128),
        (128, 256, 32, 4, 256),
        (128, 256, 32, 8, 256),
        (256, 128, 32, 4, 256),
        (128, 256, 64, 4, 256),
        (256, 128, 64, 4, 256),
    ),
    (4096, True): ((128, 128, 32, 4, 128), (256, 128, 64, 4, 256)),
    (8192, False): ((128, 128, 32, 4, 128), (128, 256, 32, 4, 256), (256, 128, 64, 4, 256)),
}
"""By size, and whether B is transposed."""

ATTENTION = {"batch": 4, "heads": 16, "seq_len": 4096, "dim": 128}
HEADS = ((128, 64, 2, 128), (128, 64, 2, 256))
"""Queries, keys, stages, threads."""

TRITON = ((128, 128, 32, 4, 4), (128, 128, 64, 3, 4), (128, 256, 64, 3, 8))
"""As :data:`TILES`, with warps in place of threads."""

CEILING_BLOCKS, CEILING_THREADS, CEILING_PRODUCTS = 132, 256, 32
CEILING = """\
extern "C" __global__ void __launch_bounds__(256) mma_ceiling(float* out, const unsigned* in, int loops) {
  unsigned a[4][4], b[8][2];
  float c[32][4];
  for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) a[i][j] = in[(threadIdx.x * 37 + i * 4 + j) & 4095];
  for (int i = 0; i < 8; ++i) for (int j = 0; j < 2; ++j) b[i][j] = in[(threadIdx.x * 53 + 64 + i * 2 + j) & 4095];
  for (int i = 0; i < 32; ++i) for (int j = 0; j < 4; ++j) c[i][j] = 0.f;
  long long start = clock64();
  for (int loop = 0; loop < loops; ++loop) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        float* d = c[i * 8 + j];
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
      }
  }
  long long end = clock64();
  float sum = 0;
  for (int i = 0; i < 32; ++i) for (int j = 0; j < 4; ++j) sum += c[i][j];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  if (threadIdx.x == 0) out[gridDim.x * blockDim.x + blockIdx.x] = (float)(end - start);
}
"""


def compile_all(out: Path, target: str) -> int:
    """Every kernel in every mode, the ceiling, and the list that names them."""
    import attention
    import gemm

    import tilelang_min as tilelang
    from tilelang_min.codegen.nvidia import nvrtc

    out.mkdir(parents=True, exist_ok=True)
    arch = target.removeprefix("cuda:")
    (out / "ceiling.cubin").write_bytes(nvrtc.compile_cubin(CEILING, arch=arch, name="mma_ceiling").cubin)
    rows: list[dict[str, Any]] = []

    def build(group: str, name: str, function: Any, mode: str, **options: Any) -> None:
        options |= {"hopper": False, "double_buffer": MODES[mode]}
        kernel = tilelang.compile(function, target, options=options)
        kernel.save(out / f"{name}.tlk")
        facts = kernel.metadata
        rows.append(
            {
                "group": group,
                "kernel": name,
                "registers": facts.registers_per_thread,
                "spilled": facts.spill_store_bytes,
                "blocks_per_unit": facts.max_blocks_per_unit,
            }
        )
        print(f"{name}: {facts.registers_per_thread} registers, {facts.spill_store_bytes} bytes spilled", flush=True)

    for (size, transposed), tiles in TILES.items():
        group = f"{size} {'NT' if transposed else 'NN'}"
        for bm, bn, bk, stages, threads in tiles:
            function = gemm.gemm.prim_func(
                size, size, size, False, transposed, bm, bn, bk, num_stages=stages, threads=threads
            )
            for mode in ("off", "loop"):
                build(group, f"{group} {bm}x{bn}x{bk} s{stages} t{threads} {mode}".replace(" ", "-"), function, mode)
    for bm, bn, stages, threads in HEADS:
        function = attention.attention.prim_func(
            **ATTENTION, block_M=bm, block_N=bn, num_stages=stages, threads=threads
        )
        for mode in ("off", "tile"):
            build("attention", f"attention-{bm}x{bn}-s{stages}-t{threads}-{mode}", function, mode, fast_math=True)
    (out / "mma_sync.json").write_text(json.dumps(rows))
    return 0


def ceiling(bundles: Path, flops: float) -> tuple[Callable[[], None], Callable[[], float]]:
    """What launches mma.sync alone for as many operations, and what says how many cycles an instruction took a partition."""
    import torch
    from cuda.bindings import driver

    def checked(result: Any) -> Any:
        if int(result[0]):
            raise RuntimeError(f"the driver answered {result[0]}")
        return result[1] if len(result) > 1 else None

    module = checked(driver.cuModuleLoadData((bundles / "ceiling.cubin").read_bytes()))
    function = checked(driver.cuModuleGetFunction(module, b"mma_ceiling"))
    threads = CEILING_BLOCKS * CEILING_THREADS
    loops = max(1, round(flops / (threads // 32 * CEILING_PRODUCTS * 4096)))
    out = torch.zeros(threads + CEILING_BLOCKS, device="cuda")
    data = torch.randn(8192, device="cuda").half().view(torch.int32)
    values = [ctypes.c_void_p(out.data_ptr()), ctypes.c_void_p(data.data_ptr()), ctypes.c_int(loops)]
    arguments = (ctypes.c_void_p * 3)(*(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values))

    def launch() -> None:
        stream = torch.cuda.current_stream().cuda_stream
        shape = (CEILING_BLOCKS, 1, 1, CEILING_THREADS, 1, 1)
        checked(driver.cuLaunchKernel(function, *shape, 0, stream, ctypes.addressof(arguments), 0))

    def cycles() -> float:
        of_block = float(out[threads:].median())
        return of_block / (loops * CEILING_PRODUCTS * CEILING_THREADS / 32 / 4)

    launch.held = (values, data)  # type: ignore[attr-defined]
    return launch, cycles


def triton_runs(a: Any, b: Any, c: Any) -> dict[str, Callable[[], None]]:
    """Triton's product without warp group products; empty where its code has some all the same."""
    os.environ["DISABLE_MMA_V3"] = "1"
    try:
        from h200_mma_sync_triton import product
    except ImportError:
        return {}
    runs: dict[str, Callable[[], None]] = {}
    for config in TRITON:
        compiled, launch = product(a, b, c, *config)
        if "wgmma" not in compiled.asm["ptx"]:
            runs[f"Triton {'x'.join(map(str, config[:3]))} s{config[3]} w{config[4]}"] = launch
    return runs


def run(bundles: Path, result: Path) -> int:
    """Correctness and times; 1 where a result is wrong."""
    import torch

    import tilelang_min as tilelang

    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    rows = json.loads((bundles / "mma_sync.json").read_text())
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    facts: dict[str, Any] = {
        **measured_on.facts(),
        "groups": {},
    }
    failed = False
    for group in dict.fromkeys(row["group"] for row in rows):
        mine = [row for row in rows if row["group"] == group]
        kernels = {row["kernel"]: tilelang.load(bundles / f"{row['kernel']}.tlk") for row in mine}
        shapes = [parameter.shape for parameter in next(iter(kernels.values())).parameters]
        *inputs, out = (torch.randn(shape, device="cuda").half() for shape in shapes)
        runs: dict[str, Callable[[], Any]] = {}
        if group == "attention":
            heads = [each.transpose(1, 2) for each in inputs]
            flops = 4.0 * shapes[0][0] * shapes[0][2] * shapes[0][1] ** 2 * shapes[0][3]
            reference = torch.nn.functional.scaled_dot_product_attention(*(each[:1].double() for each in heads))
            reference = reference.transpose(1, 2)
            runs["FlashAttention 2"] = lambda heads=heads: flash(*heads)
        else:
            a, b = inputs[0], inputs[1].t() if group.endswith("NT") else inputs[1]
            flops = 2.0 * a.shape[0] * a.shape[1] * b.shape[1]
            reference = a[:256].double() @ b.double()
            runs["cuBLAS"] = lambda a=a, b=b, out=out: torch.matmul(a, b, out=out)
            if group.endswith("NN"):
                runs |= triton_runs(a, b, torch.empty_like(out))
        runs["ceiling"], cycles = ceiling(bundles, flops)
        for row in mine:
            kernel, made = kernels[row["kernel"]], torch.full_like(out, float("nan"))
            kernel(*inputs, made)
            part = (made[:1] if group == "attention" else made[:256]).double()
            row["error"] = float((part - reference).norm() / reference.norm())
            failed |= not row["error"] < 1e-2
            runs[row["kernel"]] = lambda kernel=kernel, given=inputs, made=made: kernel(*given, made)
        times: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(WARMUP + ROUNDS):
            events = {}
            for name in runs if number % 2 == 0 else reversed(runs):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                flush.zero_()
                start.record()
                runs[name]()
                end.record()
                events[name] = (start, end)
            torch.cuda.synchronize()
            if number >= WARMUP:
                for name, (start, end) in events.items():
                    times[name].append(float(start.elapsed_time(end)) * 1e3)
        made_of = {row["kernel"]: row for row in mine}
        top = statistics.median(times["ceiling"])
        facts["groups"][group] = {"flops": flops, "times_us": times, "kernels": mine, "ceiling_cycles": cycles()}
        print(f"{group}: an mma.sync takes a partition {cycles():.2f} cycles")
        for name, found in times.items():
            time_us = statistics.median(found)
            row = made_of.get(name, {})
            print(
                f"  {name:38} {time_us:8.1f} us {flops / time_us / 1e6:6.1f} TFLOP/s, {top / time_us:.3f} of the ceiling"
                + (f", error {row['error']:.1e}, {row['registers']} registers" if row else ""),
                flush=True,
            )
        del kernels, runs
    result.write_text(json.dumps(facts, indent=1))
    return int(failed)


def flash(query: Any, key: Any, value: Any) -> Any:
    """FlashAttention 2 as torch has it."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("compile", "run"))
    parser.add_argument("bundles", type=Path)
    parser.add_argument("result", type=Path, nargs="?")
    parser.add_argument("--target", default="cuda:sm_90a")
    chosen = parser.parse_args()
    if chosen.verb == "compile":
        return compile_all(chosen.bundles, chosen.target)
    return run(chosen.bundles, chosen.result)


if __name__ == "__main__":
    sys.exit(main())
