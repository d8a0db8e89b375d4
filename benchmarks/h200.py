"""Kernels on a Hopper GPU beside the libraries that people use, in turns, in one process.

    python benchmarks/h200.py compile BUNDLES          here: needs no GPU
    python benchmarks/h200_tilelang.py BUNDLES         here too, by TileLang's interpreter: its kernels
    python benchmarks/h200.py run BUNDLES RESULTS      on the GPU: needs torch and cuda-bindings, no compiler

Method: inputs from a normal distribution; every kernel is first compared with the product in higher precision, its output filled
with NaN before; then libraries and kernels run in turns, the order reversed from round to round, with the L2 flushed before each
launch, timed by CUDA events; a spinning kernel holds the queue back until all of it is there, so that no launch latency is timed,
whoever launches.  A figure is the median, a ratio the library's median over the kernel's (more is better).  Of Triton and of
upstream TileLang the configuration that is best in ten rounds before takes part.
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

import measured_on

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

SQUARES = (2048, 4096, 8192)
WIDTHS = ((4096, 4096), (11008, 4096), (4096, 11008), (8192, 8192), (28672, 8192))
HEIGHTS = (1, 16, 128, 2048, 8192)
WARMUP, BUDGET_US, MOST_ROUNDS, FLUSH_BYTES = 3, 60_000, 100, 256 << 20
FEW_ROUNDS = 10
"""For the choice between configurations of a peer."""
HOLD_CYCLES = 400_000
"""Clock cycles of the kernel that holds the queue back: about 200 us."""
FEW_ROWS = 16
"""Up to so many rows the transposed product is computed."""
TOLERANCE = {"float16": 1e-3, "bfloat16": 6e-3}
"""Largest ||result - reference|| / ||reference||."""


ATTENTION = {
    "attention": {"batch": 4, "heads": 16, "kv_heads": 16, "seq_len": 4096, "dim": 128},
    "attention, grouped": {"batch": 4, "heads": 32, "kv_heads": 8, "seq_len": 4096, "dim": 128},
    "attention 64": {"batch": 4, "heads": 16, "kv_heads": 16, "seq_len": 4096, "dim": 64},
    "attention 64, grouped": {"batch": 4, "heads": 32, "kv_heads": 8, "seq_len": 4096, "dim": 64},
}
ATTENTION_TILES = {
    128: ((128, 128, 2, 256), (192, 64, 3, 384)),
    64: ((128, 128, 2, 256), (192, 128, 2, 384), (192, 64, 4, 384)),
}
"""block_M, block_N, stages, threads, by the size of a head."""

Tile = tuple[int, int, int, int, int]
"""block_M, block_N, block_K, stages, threads."""


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
    rows += [
        {"group": "dynamic M", "M": m, "N": n, "K": k, "transpose_B": True, "dtype": "float16"}
        for m in (1000, 2048, 8192)
        for n, k in ((4096, 4096), (8192, 8192))
    ]
    for row in rows:
        row["tiles"] = tiles(row["M"], row["N"])
    return rows


def tiles(m: int, n: int) -> list[Tile]:
    """Tiles to try: of small products those that occupy all units, some with several blocks a tile; of one row dot products too."""
    if m <= FEW_ROWS:  # of A^T, see compile_product
        width = 8 if m <= 8 else 16
        found = [
            (width, 64, 128, 5, 128),
            (width, 64, 128, 10, 128),
            (width, 64, 256, 5, 128),
            (width, 128, 128, 5, 256),
        ]
        return found + [(1, 4, 1024, 1, 128), (1, 8, 512, 1, 128), (1, 16, 256, 1, 128), (1, 4, 2048, 1, 128)] * (
            m == 1
        )
    if m <= 128:
        found = [(128, 64, 64, 7, 256), (128, 64, 128, 4, 256), (128, 128, 64, 4, 256)]
        more = {11008: [(128, 96, 64, 6, 256), (128, 192, 64, 4, 256)], 28672: [(128, 224, 64, 4, 256)]}
        return found + more.get(n, [])
    if m * n >= 4096 * 4096:
        found = [(128, 256, 64, 4, 256), (256, 128, 64, 4, 256)]
        return found + [(128, 176, 64, 5, 256), (128, 240, 64, 4, 256)] * (n == 11008)
    return [(128, 256, 64, 4, 256), (128, 128, 64, 6, 256), (128, 192, 64, 4, 256)]


def variants(row: dict[str, Any]) -> list[tuple[Tile, str]]:
    """The tiles of a row, and what is done with each: nothing, ``alone`` (no split between blocks), ``any`` (M known at launch),
    or that with ``blocks`` (and one block a tile)."""
    if row["group"] == "dynamic M":
        return [(tile, how) for tile in row["tiles"][:1] for how in ("", "any", "any-blocks")]
    alone = [(tile, "alone") for tile in row["tiles"][:3] if row["M"] <= 128 and row["N"] <= 8192]
    return [*((tile, "") for tile in row["tiles"]), *alone]


def name_of(row: dict[str, Any], tile: tuple[int, ...], how: str = "") -> str:
    """A bundle's name."""
    layout = "nt" if row["transpose_B"] else "nn"
    rows = "any" if "any" in how else str(row["M"])
    numbers = "x".join(map(str, tile)) + (f"-{how}" if how else "")
    return f"gemm-{row['dtype']}-{rows}x{row['N']}x{row['K']}-{layout}-{numbers}"


def compile_attention(out: Path, target: str, group: str) -> list[dict[str, Any]]:
    """Bundles of attention forward, causal and not, and their rows."""
    import attention

    import tilelang_min as tilelang

    shape, rows = ATTENTION[group], []
    for causal in (False, True):
        row = {"group": group, "causal": causal, "dtype": "float16", **shape, "bundles": []}
        for block_m, block_n, stages, threads in ATTENTION_TILES[shape["dim"]]:
            keywords = {"block_M": block_m, "block_N": block_n, "num_stages": stages, "threads": threads}
            function = attention.attention.prim_func(**shape, causal=causal, dtype="float16", **keywords)
            heads = f"{shape['heads']}of{shape['kv_heads']}x{shape['dim']}"
            name = f"attention-{heads}-{'causal' if causal else 'full'}-{block_m}x{block_n}x{stages}x{threads}"
            kernel = tilelang.compile(function, target, options={"fast_math": True})
            kernel.save(out / f"{name}.tlk")
            row["bundles"].append(name)
            print(name, kernel.metadata.registers_per_thread, kernel.metadata.spill_store_bytes, flush=True)
        rows.append(row)
    return rows


def compile_product(row: dict[str, Any], target: str, tile: Tile, how: str) -> Any:
    """One kernel of a row."""
    import gemm

    import tilelang_min as tilelang
    import tilelang_min.language as T

    block_m, block_n, block_k, stages, threads = tile
    keywords = {"block_M": block_m, "block_N": block_n, "block_K": block_k, "num_stages": stages}
    keywords |= {"threads": threads, "dtype": row["dtype"]}
    m = T.dynamic("m") if "any" in how else row["M"]
    shape = (m, row["N"], row["K"])
    if block_m == 1:
        function = gemm.gemm_one_row.prim_func(
            row["N"], row["K"], block_N=block_n, block_K=block_k, threads=threads, dtype=row["dtype"]
        )
    elif row["M"] <= FEW_ROWS and row["transpose_B"]:
        function = gemm.gemm_few_rows.prim_func(*shape, **keywords)
    else:
        function = gemm.gemm.prim_func(*shape, transpose_B=row["transpose_B"], **keywords)
    hopper = {"alone": {"split": False}, "any-blocks": {"persistent": False}}.get(how, {})
    return tilelang.compile(function, target, options={"hopper": hopper} if hopper else {})


def compile_all(out: Path, target: str, group: str | None) -> int:
    """Bundles of all kernels, and the table that names them."""
    out.mkdir(parents=True, exist_ok=True)
    rows = [row for name in ATTENTION if group in (None, name) for row in compile_attention(out, target, name)]
    for row in products():
        if group not in (None, row["group"]):
            continue
        row["bundles"] = []
        for tile, how in variants(row):
            name = name_of(row, tile, how)
            kernel = compile_product(row, target, tile, how)
            if how == "alone" and kernel.cluster == compile_product(row, target, tile, "").cluster:
                continue  # it is not split anyway
            kernel.save(out / f"{name}.tlk")
            row["bundles"].append(name)
            print(name, kernel.metadata.registers_per_thread, kernel.metadata.spill_store_bytes, flush=True)
        rows.append(row)
    (out / "table.json").write_text(json.dumps(rows))
    return 0


class Turns:
    """Times functions in turns."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.buffer = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        self.late = 0

    def once(self, function: Callable[[], Any]) -> float:
        """Microseconds of one launch on a cold L2."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.buffer.zero_()
        self.torch.cuda._sleep(HOLD_CYCLES)
        start.record()
        function()
        end.record()
        if start.query():  # the kernel had nothing to wait for: what was timed includes its launch
            self.late += 1
        self.torch.cuda.synchronize()
        return float(start.elapsed_time(end)) * 1e3

    def best(self, functions: dict[str, Callable[[], Any]]) -> str:
        """The function that is fastest in a few rounds."""
        times = self.measure(functions, most=FEW_ROUNDS)
        return min(times, key=lambda name: statistics.median(times[name]))

    def measure(self, functions: dict[str, Callable[[], Any]], most: int = MOST_ROUNDS) -> dict[str, list[float]]:
        """Sorted times of each function in microseconds."""
        known: dict[str, list[float]] = {name: [] for name in functions}
        longest = 0.0
        for function in functions.values():
            for _ in range(WARMUP):
                longest = max(longest, self.once(function))
        rounds = max(10, min(most, int(BUDGET_US / longest)))
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
    return (a, b), a.float() @ right.float(), functions


def peers(
    bundles: Path, row: dict[str, Any], inputs: tuple[Any, ...], reference: Any, turns: Turns, errors: dict[str, float]
) -> dict[str, Callable[[], Any]]:
    """Triton's product and upstream TileLang's, each in the best of its configurations that are right; none where it is absent."""
    import torch

    a, b = inputs
    chosen: dict[str, Callable[[], Any]] = {}
    for peer in ("Triton", "TileLang"):
        out = torch.empty(reference.shape, dtype=a.dtype, device="cuda")
        try:
            if peer == "Triton":
                from h200_triton import candidates

                found = candidates(a, b, out, row["transpose_B"])
            else:
                import h200_tilelang

                found = h200_tilelang.candidates(bundles, row, a, b, out)
        except ImportError as error:
            print(f"{peer} is absent: {error}")
            continue
        right = {}
        for name, function in found.items():
            out.fill_(float("nan"))
            function()
            errors[name] = float((out.float() - reference).norm() / reference.norm())
            if errors[name] <= TOLERANCE[row["dtype"]]:
                right[name] = function
            else:
                print(f"WRONG {name}: {errors[name]}")
        if right:
            best = turns.best(right)
            row[f"{peer} configuration"] = best
            chosen[peer] = right[best]
    return chosen


def compile_peers(rows: list[dict[str, Any]]) -> None:
    """Compile Triton's kernels of all rows at once, where Triton is there."""
    try:
        from h200_triton import compile_ahead
    except ImportError:
        return
    import torch

    def cases() -> Any:
        for row in rows:
            m, n, k, dtype = row["M"], row["N"], row["K"], getattr(torch, row["dtype"])
            shapes = ((m, k), (n, k) if row["transpose_B"] else (k, n), (m, n))
            yield (*(torch.empty(shape, dtype=dtype, device="cuda") for shape in shapes), row["transpose_B"])

    start = time.time()
    compile_ahead(cases())
    print(f"Triton compiled its kernels in {time.time() - start:.1f} s", flush=True)


def attention_case(row: dict[str, Any]) -> tuple[tuple[Any, ...], Any, dict[str, Callable[[], Any]]]:
    """Inputs, the result in float32, cuDNN and FlashAttention 2 as torch calls them."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    torch.manual_seed(1)
    shape = (row["batch"], row["seq_len"], row["heads"], row["dim"])
    shapes = (shape, *[(row["batch"], row["seq_len"], row["kv_heads"], row["dim"])] * 2)
    inputs = tuple(torch.randn(each, device="cuda").to(getattr(torch, row["dtype"])) for each in shapes)
    q, k, v = (each.transpose(1, 2) for each in inputs)
    grouped = row["kv_heads"] != row["heads"]
    reference = torch.empty(shape, device="cuda")
    with sdpa_kernel([SDPBackend.MATH]):
        for number in range(row["batch"]):  # one at a time: the scores of all would need much memory
            parts = (each[number : number + 1].float() for each in (q, k, v))
            result = scaled_dot_product_attention(*parts, is_causal=row["causal"], enable_gqa=grouped)
            reference[number] = result[0].transpose(0, 1)

    def library(backend: Any) -> Callable[[], Any]:
        def call() -> Any:
            with sdpa_kernel([backend]):
                return scaled_dot_product_attention(q, k, v, is_causal=row["causal"], enable_gqa=grouped)

        return call

    backends = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "FlashAttention 2": SDPBackend.FLASH_ATTENTION}
    functions = {}
    for name, backend in backends.items():
        try:
            library(backend)()
        except RuntimeError as error:  # not for these shapes
            print(f"{name}: {error}")
            continue
        functions[name] = library(backend)
    return inputs, reference, functions


def run(bundles: Path, out: Path, groups: list[str] | None, beside: bool) -> int:
    """Check and time every row, or those of some groups; ``beside``: with the peers of products."""
    import torch

    import tilelang_min as tilelang

    turns = Turns()
    torch.backends.cuda.matmul.allow_tf32 = False
    results, wrong = [], 0
    rows = [row for row in json.loads((bundles / "table.json").read_text()) if groups is None or row["group"] in groups]
    compared = [row for row in rows if row["group"] in ("square", "tall and skinny") and beside]
    if compared:
        compile_peers(compared)
    for row in rows:
        case = attention_case if row["group"] in ATTENTION else product_case
        inputs, reference, functions = case(row)
        errors: dict[str, float] = {}
        if row in compared:
            functions |= peers(bundles, row, inputs, reference, turns, errors)
        libraries = list(functions)
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
        **measured_on.facts(),
        "cudnn": torch.backends.cudnn.version(),
        "method": (__doc__ or "").split("Method: ", 1)[1].split("\n``RESULTS", 1)[0],
        "summary": summary,
        "rows": results,
        "launches_that_were_not_held_back": turns.late,
    }
    for module in ("triton", "tvm_ffi"):
        if module in sys.modules:
            facts[module] = str(getattr(sys.modules[module], "__version__", None))
    (out / f"{facts['date']}-h200.json").write_text(json.dumps(facts, indent=1))
    print("not held back:", turns.late)
    for (group, library), figures in summary_of(results).items():
        print(f"{group}, {library}: mean {figures[0]:.3f}, least {figures[1]:.3f}, {figures[2]} rows")
    return int(wrong > 0)


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
    if result["group"] in ATTENTION:
        work = 4 * result["batch"] * result["heads"] * result["seq_len"] ** 2 * result["dim"] / 1e6
        work /= 2 if result["causal"] else 1
        shape = f"{result['group']} {'causal' if result['causal'] else 'full'} {result['dtype']}"
    else:
        work = 2 * result["M"] * result["N"] * result["K"] / 1e6
        layout = "NT" if result["transpose_B"] else "NN"
        shape = f"{result['M']}x{result['N']}x{result['K']} {layout} {result['dtype']}"
    if result["best"] is None:
        return f"{shape:36} no kernel is right"
    shown = []
    for name in (*result["ratios"], result["best"]):
        median = result["quartiles_us"][name][1]
        label = name if name in result["ratios"] else f"own {name.split('-n', 1)[-1]}"
        ratio = f" ({result['ratios'][name]:.3f})" if name in result["ratios"] else ""
        shown.append(f"{label} {median:.1f} us {work / median:.0f} TFLOP/s{ratio}")
    others = [
        f"{name.split('-n', 1)[-1]} {values[1]:.1f}"
        for name, values in result["quartiles_us"].items()
        if name not in result["ratios"] and name != result["best"]
    ]
    return f"{shape:36} {', '.join(shown)}; {', '.join(others)}"


def summary_of(results: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[float, float, int]]:
    """Of each group and library the geometric mean of the ratios, the least, and how many there are."""
    found: dict[tuple[str, str], list[float]] = {}
    for result in results:
        for library, ratio in (result["ratios"] or {"all": 1e-9}).items():
            found.setdefault((result["group"], library), []).append(ratio)
    return {key: (statistics.geometric_mean(ratios), min(ratios), len(ratios)) for key, ratios in found.items()}


def summarise(results: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """The same as a record: by group and library."""
    made: dict[str, dict[str, dict[str, float]]] = {}
    for (group, library), (mean, least, rows) in summary_of(results).items():
        made.setdefault(group, {})[library] = {"geometric_mean": round(mean, 4), "least": least, "rows": rows}
    return made


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
    running.add_argument("--group", action="append", help="only these rows")
    running.add_argument("--alone", action="store_true", help="without Triton and TileLang")
    chosen = parser.parse_args()
    if chosen.step == "compile":
        return compile_all(chosen.bundles, chosen.target, chosen.group)
    return run(chosen.bundles, chosen.results, chosen.group, not chosen.alone)


if __name__ == "__main__":
    sys.exit(main())
