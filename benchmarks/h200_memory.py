"""Kernels that memory limits, on a GPU, beside a device copy of the same bytes and torch's own.

    python benchmarks/h200_memory.py bundles DIR [--target cuda:sm_90a]      # here, with the compiler
    python benchmarks/h200_memory.py run DIR OUT                             # there, with torch and cuda-bindings

Softmax, RMS and layer normalisation of 8192 x 8192 float16, transposition, an element-wise nest.  Each is checked against torch in
float32, timed in turns with the copy (events, L2 flushed before each launch, medians over rounds), and given as the share of the
copy's bandwidth that it reaches, bytes read and written counted once.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured_on

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

SIZE = 8192
ROUNDS, LAUNCHES, WARMUP = 5, 10, 3


def variants() -> dict[str, tuple[str, str, tuple[int, ...], dict[str, Any]]]:
    """Name -> (module, factory, shape, keyword arguments)."""
    found: dict[str, tuple[str, str, tuple[int, ...], dict[str, Any]]] = {}
    shape = (SIZE, SIZE)
    for module, factory in (("softmax", "rows"), ("rmsnorm", "rmsnorm"), ("layernorm", "layernorm")):
        for rows, threads in ((1, 256), (1, 512), (1, 1024), (2, 512), (4, 1024)):
            options = {"block_M": rows, "threads": threads, "dtype": "float16"}
            found[f"{module}-{rows}x{threads}"] = (module, factory, shape, options)
    for rows, columns, threads in ((64, 64, 256), (128, 64, 256), (64, 128, 512), (32, 64, 128)):
        options = {"block_M": rows, "block_N": columns, "threads": threads}
        found[f"transpose-{rows}x{columns}x{threads}"] = ("transpose", "transpose", shape, options)
    for rows, columns, threads in ((32, 128, 256), (8, 256, 256), (16, 1024, 256), (4, 2048, 512), (8, 2048, 1024)):
        options = {"block_M": rows, "block_N": columns, "threads": threads, "dtype": "float16"}
        found[f"elementwise-{rows}x{columns}x{threads}"] = ("elementwise", "scale_add_relu", shape, options)
    return found


def bundles(out: Path, target: str) -> None:
    """Compile all variants."""
    from importlib import import_module

    out.mkdir(parents=True, exist_ok=True)
    for name, (module, factory, shape, options) in variants().items():
        getattr(import_module(module), factory).for_target(target)(*shape, **options).save(out / f"{name}.tlk")
        print(name, flush=True)


def expected(name: str, tensors: list[Any]) -> Any:
    """What torch computes in float32."""
    import torch
    import torch.nn.functional as F

    kind = name.partition("-")[0]
    inputs = [tensor.float() for tensor in tensors[:-1]]
    if kind == "softmax":
        return torch.softmax(inputs[0], 1)
    if kind == "rmsnorm":
        return F.rms_norm(inputs[0], (SIZE,), inputs[1], 1e-5)
    if kind == "layernorm":
        return F.layer_norm(inputs[0], (SIZE,), inputs[1], inputs[2], 1e-5)
    if kind == "transpose":
        return inputs[0].t()
    return torch.relu(0.5 * inputs[0] + inputs[1])


def peers(tensors: dict[str, list[Any]]) -> dict[str, Callable[[], Any]]:
    """torch's own operation of each kind, and the copy."""
    import torch
    import torch.nn.functional as F

    found: dict[str, Callable[[], Any]] = {}
    a, out = tensors["transpose"]
    found["copy"] = lambda: out.copy_(a)
    found["torch transpose"] = lambda: a.t().contiguous()
    x = tensors["softmax"][0]
    found["torch softmax"] = lambda: torch.softmax(x, 1)
    rms = tensors["rmsnorm"]
    found["torch rmsnorm"] = lambda: F.rms_norm(rms[0], (SIZE,), rms[1], 1e-5)
    layer = tensors["layernorm"]
    found["torch layernorm"] = lambda: F.layer_norm(layer[0], (SIZE,), layer[1], layer[2], 1e-5)
    return found


def run(folder: Path, out: Path) -> int:
    """Check and time everything."""
    import torch

    import tilelang_min as tilelang
    from tilelang_min.runtime.cuda_timing import time_launches

    torch.manual_seed(0)
    works: dict[str, Callable[[], Any]] = {}
    moved: dict[str, float] = {}
    errors: dict[str, float] = {}
    by_kind: dict[str, list[Any]] = {}
    for name in variants():
        kernel = tilelang.load(folder / f"{name}.tlk")
        kind = name.partition("-")[0]
        if kind not in by_kind:
            by_kind[kind] = [torch.randn(p.shape, device="cuda").to(torch.float16) for p in kernel.parameters]
        tensors = by_kind[kind]
        tensors[-1].fill_(float("nan"))
        kernel(*tensors)
        difference = (tensors[-1].float() - expected(name, tensors)).abs().max()
        errors[name] = float(difference)
        moved[name] = float(sum(tensor.numel() * tensor.element_size() for tensor in tensors))
        works[name] = lambda kernel=kernel, tensors=tensors: kernel(*tensors)
    for name, work in peers(by_kind).items():
        works[name] = work
        moved[name] = 4.0 * SIZE * SIZE
    samples: dict[str, list[float]] = {name: [] for name in works}
    stream = torch.cuda.current_stream().cuda_stream
    for _ in range(ROUNDS):
        for name, work in works.items():
            samples[name] += time_launches(work, launches=LAUNCHES, warmup=WARMUP, stream=stream)
    bandwidth = {name: moved[name] / statistics.median(times) for name, times in samples.items()}  # bytes/ns
    rows = []
    for name, times in samples.items():
        row = {
            "kernel": name,
            "median_us": statistics.median(times) / 1e3,
            "GB_per_s": bandwidth[name],
            "of_copy": bandwidth[name] / bandwidth["copy"],
            "largest_error": errors.get(name),
        }
        rows.append(row)
        error = "" if name not in errors else f"  error {errors[name]:.1e}"
        print(f"{name:28}{row['median_us']:9.1f} us {row['GB_per_s']:8.0f} GB/s  {row['of_copy']:.3f} of copy{error}")
    facts = {
        **measured_on.facts(),
        "method": f"events, {ROUNDS} rounds in turns of {WARMUP} + {LAUNCHES} launches, L2 flushed before each, medians",
        "rows": rows,
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "memory.json").write_text(json.dumps(facts, indent=1))
    return int(any(not error < 0.02 for error in errors.values()))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("bundles")
    make.add_argument("out", type=Path)
    make.add_argument("--target", default="cuda:sm_90a")
    go = verbs.add_parser("run")
    go.add_argument("bundles", type=Path)
    go.add_argument("out", type=Path)
    arguments = parser.parse_args()
    if arguments.verb == "bundles":
        bundles(arguments.out, arguments.target)
        return 0
    return run(arguments.bundles, arguments.out)


if __name__ == "__main__":
    sys.exit(main())
