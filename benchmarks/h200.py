"""Kernels on a Hopper GPU beside the libraries that people use, in turns, in one process.

    python benchmarks/h200.py compile BUNDLES          here: needs no GPU
    python benchmarks/h200.py run BUNDLES RESULTS      on the GPU: needs torch and cuda-bindings, no compiler

Method: inputs from a normal distribution; every kernel is first compared with the product in higher precision, its output filled
with NaN before; then library and kernels run in turns, the order reversed from round to round, with the L2 flushed before each
launch, timed by CUDA events.  A figure is the median, a ratio the library's median over the kernel's (more is better).
``RESULTS/<date>-h200.json`` holds all of it, with quartiles, versions and the device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

SQUARES = (2048, 4096, 8192)
WIDTHS = ((4096, 4096), (11008, 4096), (4096, 11008), (8192, 8192), (28672, 8192))
HEIGHTS = (1, 16, 128, 2048, 8192)
WARMUP, BUDGET_US, MOST_ROUNDS, FLUSH_BYTES = 3, 60_000, 100, 256 << 20
FEW_ROWS = 16
"""Up to so many rows the transposed product is computed."""
TOLERANCE = {"float16": 1e-3, "bfloat16": 6e-3}
"""Largest ||result - reference|| / ||reference||."""


ATTENTION = {"batch": 4, "heads": 16, "seq_len": 4096, "dim": 128}
ATTENTION_TILES = ((128, 128, 2, 256), (192, 64, 3, 384))
"""block_M, block_N, stages, threads."""


def products() -> list[dict[str, Any]]:
    """Rows of the table of matrix products: shape, layouts, type, and the tiles that are tried."""
    rows = [
        {"group": "square", "M": n, "N": n, "K": n, "transpose_B": layout == "NT", "dtype": dtype}
        for n in SQUARES
        for layout in ("NN", "NT")
        for dtype in ("float16", "bfloat16")
    ]
    rows += [
        {"group": "tall and skinny", "M": m, "N": n, "K": k, "transpose_B": True, "dtype": "float16"}
        for m in HEIGHTS
        for n, k in WIDTHS
    ]
    for row in rows:
        row["tiles"] = tiles(row["M"], row["N"])
    return rows


def tiles(m: int, n: int) -> list[tuple[int, int, int, int, int]]:
    """Tiles to try, (block_M, block_N, block_K, stages, threads): of small products those that occupy all units."""
    if m <= FEW_ROWS:  # of A^T, see compile_all
        width = 8 if m <= 8 else 16
        return [
            (width, 64, 128, 5, 128),
            (width, 64, 128, 10, 128),
            (width, 64, 256, 5, 128),
            (width, 64, 256, 2, 128),
            (width, 128, 128, 5, 256),
        ]
    if m <= 128:
        return [(128, 32, 128, 5, 256), (128, 64, 64, 7, 256), (128, 128, 64, 5, 256)]
    if m * n >= 4096 * 4096:
        return [(128, 256, 64, 4, 256), (256, 128, 64, 4, 256)]
    return [(128, 256, 64, 4, 256), (128, 128, 64, 6, 256), (128, 192, 64, 4, 256)]


def name_of(row: dict[str, Any], tile: tuple[int, ...]) -> str:
    """A bundle's name."""
    layout = "nt" if row["transpose_B"] else "nn"
    return f"gemm-{row['dtype']}-{row['M']}x{row['N']}x{row['K']}-{layout}-{'x'.join(map(str, tile))}"


def compile_attention(out: Path, target: str) -> list[dict[str, Any]]:
    """Bundles of attention forward, causal and not, and their rows."""
    import attention

    import tilelang_min as tilelang

    rows = []
    for causal in (False, True):
        row = {"group": "attention", "causal": causal, "dtype": "float16", **ATTENTION, "bundles": []}
        for block_m, block_n, stages, threads in ATTENTION_TILES:
            keywords = {"block_M": block_m, "block_N": block_n, "num_stages": stages, "threads": threads}
            function = attention.attention.prim_func(**ATTENTION, causal=causal, dtype="float16", **keywords)
            name = f"attention-{'causal' if causal else 'full'}-{block_m}x{block_n}x{stages}x{threads}"
            kernel = tilelang.compile(function, target, options={"fast_math": True})
            kernel.save(out / f"{name}.tlk")
            row["bundles"].append(name)
            print(name, kernel.metadata.registers_per_thread, kernel.metadata.spill_store_bytes, flush=True)
        rows.append(row)
    return rows


def compile_all(out: Path, target: str, group: str | None) -> int:
    """Bundles of all kernels, and the table that names them."""
    import gemm

    out.mkdir(parents=True, exist_ok=True)
    attention = compile_attention(out, target) if group in (None, "attention") else []
    rows = [row for row in products() if group in (None, row["group"])]
    for row in rows:
        row["bundles"] = []
        for tile in row["tiles"]:
            block_m, block_n, block_k, stages, threads = tile
            keywords = {"block_M": block_m, "block_N": block_n, "block_K": block_k, "num_stages": stages}
            keywords |= {"threads": threads, "dtype": row["dtype"]}
            shape = (row["M"], row["N"], row["K"])
            if row["M"] <= FEW_ROWS and row["transpose_B"]:
                kernel = gemm.gemm_few_rows.for_target(target)(*shape, **keywords)
            else:
                kernel = gemm.gemm.for_target(target)(*shape, transpose_B=row["transpose_B"], **keywords)
            name = name_of(row, tile)
            kernel.save(out / f"{name}.tlk")
            row["bundles"].append(name)
            print(name, kernel.metadata.registers_per_thread, kernel.metadata.spill_store_bytes, flush=True)
    (out / "table.json").write_text(json.dumps([*attention, *rows]))
    return 0


class Turns:
    """Times functions in turns."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.buffer = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")

    def once(self, function: Callable[[], Any]) -> float:
        """Microseconds of one launch on a cold L2."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.buffer.zero_()
        start.record()
        function()
        end.record()
        self.torch.cuda.synchronize()
        return float(start.elapsed_time(end)) * 1e3

    def measure(self, functions: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
        """Sorted times of each function in microseconds."""
        known: dict[str, list[float]] = {name: [] for name in functions}
        longest = 0.0
        for function in functions.values():
            for _ in range(WARMUP):
                longest = max(longest, self.once(function))
        rounds = max(10, min(MOST_ROUNDS, int(BUDGET_US / longest)))
        order = list(functions)
        for number in range(rounds):
            for name in order if number % 2 == 0 else reversed(order):
                known[name].append(self.once(functions[name]))
        return {name: sorted(times) for name, times in known.items()}


def product_case(row: dict[str, Any]) -> tuple[tuple[Any, ...], Any, dict[str, Callable[[], Any]]]:
    """Inputs, the result in float32, and cuBLAS."""
    import torch

    m, n, k, dtype = row["M"], row["N"], row["K"], getattr(torch, row["dtype"])
    torch.manual_seed(m + n + k)
    a = torch.randn((m, k), device="cuda").to(dtype)
    b = torch.randn((n, k) if row["transpose_B"] else (k, n), device="cuda").to(dtype)
    right = b.t() if row["transpose_B"] else b
    library = torch.empty((m, n), dtype=dtype, device="cuda")
    functions: dict[str, Callable[[], Any]] = {"cuBLAS": lambda: torch.mm(a, right, out=library)}
    if row["group"] == "square":
        functions |= triton_functions(a, b, row["transpose_B"])
    return (a, b), a.float() @ right.float(), functions


def triton_functions(a: Any, b: Any, transpose_b: bool) -> dict[str, Callable[[], Any]]:
    """Triton's product, the best of its configurations as a few launches tell; nothing where Triton is absent."""
    try:
        from h200_triton import candidates
    except ImportError:
        return {}
    import torch
    from triton.testing import do_bench

    found = candidates(a, b, transpose_b)
    if not found:
        return {}
    times = {name: do_bench(function, warmup=10, rep=30, return_mode="median") for name, function in found.items()}
    torch.cuda.synchronize()
    best = min(times, key=lambda name: times[name])
    return {"Triton": found[best]}


def attention_case(row: dict[str, Any]) -> tuple[tuple[Any, ...], Any, dict[str, Callable[[], Any]]]:
    """Inputs, the result in float32, cuDNN and FlashAttention 2 as torch calls them."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    torch.manual_seed(1)
    shape = (row["batch"], row["seq_len"], row["heads"], row["dim"])
    inputs = tuple(torch.randn(shape, device="cuda").to(getattr(torch, row["dtype"])) for _ in range(3))
    q, k, v = (each.transpose(1, 2) for each in inputs)
    reference = torch.empty(shape, device="cuda")
    with sdpa_kernel([SDPBackend.MATH]):
        for number in range(row["batch"]):  # one at a time: the scores of all would need much memory
            parts = (each[number : number + 1].float() for each in (q, k, v))
            result = scaled_dot_product_attention(*parts, is_causal=row["causal"])
            reference[number] = result[0].transpose(0, 1)

    def library(backend: Any) -> Callable[[], Any]:
        def call() -> Any:
            with sdpa_kernel([backend]):
                return scaled_dot_product_attention(q, k, v, is_causal=row["causal"])

        return call

    backends = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "FlashAttention 2": SDPBackend.FLASH_ATTENTION}
    return inputs, reference, {name: library(backend) for name, backend in backends.items()}


def run(bundles: Path, out: Path) -> int:
    """Check and time every row."""
    import torch

    import tilelang_min as tilelang

    turns = Turns()
    torch.backends.cuda.matmul.allow_tf32 = False
    results, wrong = [], 0
    for row in json.loads((bundles / "table.json").read_text()):
        case = attention_case if row["group"] == "attention" else product_case
        inputs, reference, functions = case(row)
        libraries, errors = list(functions), {}
        for name in row["bundles"]:
            kernel = tilelang.load(bundles / f"{name}.tlk")
            made = torch.full(reference.shape, float("nan"), dtype=inputs[0].dtype, device="cuda")
            kernel(*inputs, made)
            errors[name] = float((made.float() - reference).norm() / reference.norm())
            if errors[name] <= TOLERANCE[row["dtype"]]:
                functions[name] = lambda kernel=kernel, inputs=inputs, made=made: kernel(*inputs, made)
            else:  # NaN too
                wrong += 1
                print(f"WRONG {name}: {errors[name]}")
        results.append(entry(row, libraries, turns.measure(functions), errors))
        print(line(results[-1]), flush=True)
    summary = summarise(results)
    out.mkdir(parents=True, exist_ok=True)
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(),
        "driver": tilelang_driver(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "method": (__doc__ or "").split("Method: ", 1)[1].split("\n``RESULTS", 1)[0],
        "summary": summary,
        "rows": results,
    }
    (out / f"{facts['date']}-h200.json").write_text(json.dumps(facts, indent=1))
    for group, figures in summary.items():
        print(
            f"{group}: geometric mean {figures['geometric_mean']:.3f}, least {figures['least']:.3f}, {figures['rows']} rows"
        )
    return int(wrong > 0)


def tilelang_driver() -> str:
    """The CUDA version that the driver serves."""
    from tilelang_min.runtime.cuda import device_info

    return device_info().driver_version


def entry(
    row: dict[str, Any], libraries: list[str], times: dict[str, list[float]], errors: dict[str, float]
) -> dict[str, Any]:
    """One row of the results: quartiles of all, and the best kernel beside each library, the first of which counts."""
    quartiles = {
        name: [round(value, 2) for value in statistics.quantiles(values, n=4)] for name, values in times.items()
    }
    kernels = [name for name in times if name not in libraries]
    best = min(kernels, key=lambda name: quartiles[name][1], default=None)
    ratios = {} if best is None else {name: round(quartiles[name][1] / quartiles[best][1], 4) for name in libraries}
    return {
        **{key: value for key, value in row.items() if key not in ("tiles", "bundles")},
        "quartiles_us": quartiles,
        "rounds": len(next(iter(times.values()))),
        "errors": errors,
        "best": best,
        "ratios": ratios,
        "ratio": ratios.get(libraries[0]),
    }


def line(result: dict[str, Any]) -> str:
    """A row for people."""
    if result["group"] == "attention":
        work = 4 * result["batch"] * result["heads"] * result["seq_len"] ** 2 * result["dim"] / 1e6
        work /= 2 if result["causal"] else 1
        shape = f"attention {'causal' if result['causal'] else 'full'} {result['dtype']}"
    else:
        work = 2 * result["M"] * result["N"] * result["K"] / 1e6
        layout = "NT" if result["transpose_B"] else "NN"
        shape = f"{result['M']}x{result['N']}x{result['K']} {layout} {result['dtype']}"
    if result["best"] is None:
        return f"{shape:36} no kernel is right"
    shown = []
    for name in (*result["ratios"], result["best"]):
        median = result["quartiles_us"][name][1]
        label = name if name in result["ratios"] else f"own {name.rsplit('-', 1)[1]}"
        ratio = f" ({result['ratios'][name]:.3f})" if name in result["ratios"] else ""
        shown.append(f"{label} {median:.1f} us {work / median:.0f} TFLOP/s{ratio}")
    return f"{shape:36} {', '.join(shown)}"


def summarise(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Geometric means of the ratios by group."""
    groups: dict[str, list[float]] = {}
    for result in results:
        groups.setdefault(result["group"], []).append(result["ratio"] or 1e-9)
    return {
        group: {"geometric_mean": statistics.geometric_mean(ratios), "least": min(ratios), "rows": len(ratios)}
        for group, ratios in groups.items()
    }


def main() -> int:
    """The two steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    compiling = steps.add_parser("compile")
    compiling.add_argument("bundles", type=Path)
    compiling.add_argument("--target", default="cuda:sm_90a")
    compiling.add_argument("--group", help="only these rows")
    running = steps.add_parser("run")
    running.add_argument("bundles", type=Path)
    running.add_argument("results", type=Path)
    chosen = parser.parse_args()
    if chosen.step == "compile":
        return compile_all(chosen.bundles, chosen.target, chosen.group)
    return run(chosen.bundles, chosen.results)


if __name__ == "__main__":
    sys.exit(main())
