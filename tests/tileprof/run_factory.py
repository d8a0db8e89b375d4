"""A synthetic run with plausible numbers, the size of the quickstart: 4 kernels x 2 types x 3 targets.

For tests only; no number here was measured.  Counts follow from the shapes (1024^3, tiles of 64 x 64 x 32, 128 threads,
256 blocks, 32 steps), so sums and differences can be checked by hand.
"""

from __future__ import annotations

import hashlib
from typing import Any

from run_factory_sources import ELEMENTWISE, MATMUL, line_of

from tileprof.store.records import CaseResult, Ceiling, Check, Metric, Provenance, Run, Timing, Unavailable

STEPS = 256 * 32
"""Blocks x steps of the K loop: how often the loop body runs in one launch."""

TARGETS = {"cpu": "cpu", "sm80": "cuda:sm_80", "mi300x": "hip:gfx942"}
KERNELS = ("matmul_naive", "matmul_tiled", "matmul_padded", "scale_add")
DTYPES = ("float32", "float16")

SIMULATED = Provenance("simulated", "tilelang simulator", "0.1.0", "all 256 blocks, warp-level thread program")
STATIC = Provenance("static", "nvdisasm", "13.5.37", "machine listing")
DERIVED = Provenance("derived", "tileprof", "0.1.0", "2*M*N*K; every operand moved once")
NCU = Provenance("measured", "ncu", "2025.3.1", "pass 2 of 8, clock control base, cache control all")
DATASHEET_A100 = Provenance("datasheet", "NVIDIA A100 80GB SXM", "", "108 SMs x 1.41 GHz; HBM2e 2039 GB/s")
DATASHEET_MI300X = Provenance("datasheet", "AMD Instinct MI300X", "", "304 CUs x 2.1 GHz; HBM3 5300 GB/s")
CALIBRATED = Provenance("measured", "tileprof calibrate", "0.1.0", "triad and FMA kernels, 2 threads, median of 15")

COPY_LINES = {
    "A": "T.copy(A[by * block_M, ko * block_K], A_shared)",
    "B": "T.copy(B[ko * block_K, bx * block_N], B_shared)",
}


def make_run(**changes: Any) -> Run:
    """The synthetic quickstart; ``changes`` replace fields of the Run."""
    cases = tuple(make_case(kernel, dtype, name) for kernel in KERNELS for dtype in DTYPES for name in TARGETS)
    values: dict[str, Any] = {
        "name": "quickstart",
        "description": "Three matrix products and an element-wise kernel, on three kinds of machine",
        "workload_file": "workloads/quickstart.yaml",
        "version": "0.1.0",
        "started": "2026-11-29T18:47:03+00:00",
        "finished": "2026-11-29T18:47:41+00:00",
        "machine": {
            "cpu": {"model": "Intel(R) Xeon(R) CPU @ 2.80GHz", "cores": 2, "features": "x86-64-v4"},
            "gpus": [],
            "memory_bytes": 25_769_803_776,
            "system": "Linux 6.8 x86_64",
            "python": "3.11.7",
            "packages": {"apache-tvm": "0.27.0.post1", "nvidia-cuda-nvrtc": "13.5.37", "ziglang": "0.17.1"},
        },
        "cases": cases,
        "ceilings": (
            Ceiling("cpu", "dram.bytes_per_s", "", 13.8e9, CALIBRATED),
            Ceiling("cpu", "flops_per_s", "vector.float32", 151.2e9, CALIBRATED),
            Ceiling("cuda:sm_80", "dram.bytes_per_s", "", 2039e9, DATASHEET_A100),
            Ceiling("cuda:sm_80", "shared.bytes_per_s", "", 19.49e12, DATASHEET_A100),
            Ceiling("cuda:sm_80", "flops_per_s", "vector.float32", 19.49e12, DATASHEET_A100),
            Ceiling("cuda:sm_80", "flops_per_s", "matrix.float16", 311.9e12, DATASHEET_A100),
            Ceiling("hip:gfx942", "dram.bytes_per_s", "", 5300e9, DATASHEET_MI300X),
            Ceiling("hip:gfx942", "shared.bytes_per_s", "", 81.7e12, DATASHEET_MI300X),
            Ceiling("hip:gfx942", "flops_per_s", "vector.float32", 163.4e12, DATASHEET_MI300X),
            Ceiling("hip:gfx942", "flops_per_s", "matrix.float32", 163.4e12, DATASHEET_MI300X),
            Ceiling("hip:gfx942", "flops_per_s", "matrix.float16", 1307.4e12, DATASHEET_MI300X),
        ),
        "unavailable": (
            Unavailable(
                "time, counters",
                "sm80",
                "no NVIDIA GPU in this machine",
                "run the bundles in kernels/ on a host with one",
            ),
            Unavailable(
                "time, counters",
                "mi300x",
                "no AMD GPU in this machine",
                "run the bundles in kernels/ on a host with one",
            ),
            Unavailable("dram.read_bytes, dram.write_bytes", "cpu", "perf is not installed", "apt install linux-perf"),
        ),
    }
    return Run(**{**values, **changes})


def make_case(kernel: str, dtype: str, target_name: str, /, **changes: Any) -> CaseResult:
    """One case of the synthetic quickstart; ``changes`` replace fields of the CaseResult."""
    target = TARGETS[target_name]
    shape = {"N": 1_048_576} if kernel == "scale_add" else {"M": 1024, "N": 1024, "K": 1024}
    tiles: dict[str, Any] = (
        {} if kernel in ("scale_add", "matmul_naive") else {"block_M": 64, "block_N": 64, "block_K": 32}
    )
    status = "ok" if target_name == "cpu" else "not_run"
    measured = (kernel, dtype, target_name) == ("matmul_tiled", "float16", "sm80")
    if measured:
        status = "ok"
    values: dict[str, Any] = {
        "id": f"{kernel}[{dtype},{','.join(f'{k}={v}' for k, v in shape.items())}]@{target_name}",
        "hash": hashlib.sha256(f"{kernel} {dtype} {target}".encode()).hexdigest()[:12],
        "kernel": kernel,
        "target_name": target_name,
        "target": target,
        "args": {"dtype": dtype},
        "shape": shape,
        "tiles": tiles,
        "status": status,
        "metadata": make_metadata(kernel, dtype, target),
        "operations": make_operations(kernel),
        "sources": {"elementwise.py": ELEMENTWISE} if kernel == "scale_add" else {"matmul.py": MATMUL},
        "metrics": make_metrics(kernel, dtype, target) + (ncu_metrics(kernel, dtype) if measured else ()),
        "timing": make_timing(kernel, dtype, measured) if status == "ok" else None,
        "check": Check(True, 3.1e-5, 8.4e-5, 2e-3, 1e-3, "all" if status == "ok" else "simulated blocks"),
        "notes": ("only the corner and two interior blocks were checked",) if status == "not_run" else (),
        "seconds": 1.9 if target_name == "cpu" else 0.8,
        "bundle": f"kernels/{kernel}-{dtype}-{target_name}",
    }
    if (kernel, dtype, target_name) == ("matmul_naive", "float16", "cpu"):
        reason = "no result after 20 s; the process group was ended"
        values |= {"status": "timeout", "reason": reason, "timing": None, "check": None, "seconds": 20.0}
    if (kernel, dtype, target_name) == ("scale_add", "float16", "mi300x"):
        values |= {
            "status": "compile_error",
            "reason": "elementwise.py:17:9: float16 vectors of 3 elements have no load on hip:gfx942\n"
            "    Y[i] = alpha * X[i] + Y[i]\n         ^\n  help: make N a multiple of 4, or write T.Parallel over N // 4",
            "metadata": None,
            "operations": (),
            "metrics": (),
            "check": None,
            "notes": (),
            "bundle": None,
        }
    return CaseResult(**{**values, **changes})


def make_timing(kernel: str, dtype: str, gpu: bool = False) -> Timing:
    """Twenty samples around a plausible median."""
    middle = {
        "matmul_naive": 812.4e6,
        "matmul_tiled": 21.31e6 if dtype == "float32" else 34.8e6,
        "matmul_padded": 19.62e6 if dtype == "float32" else 33.1e6,
        "scale_add": 1.214e6 if dtype == "float32" else 0.977e6,
    }[kernel]
    method = "CUDA events" if gpu else "monotonic clock"
    middle = 41_300.0 if gpu else middle
    return Timing(tuple(middle * (1 + 0.004 * ((7 * i) % 11 - 5)) for i in range(21)), method, 3, gpu)


def make_operations(kernel: str) -> tuple[dict[str, Any], ...]:
    """Tile operations in source order, as JSON."""
    text, file = (ELEMENTWISE, "elementwise.py") if kernel == "scale_add" else (MATMUL, "matmul.py")

    def operation(
        id: int, kind: str, label: str, fragment: str, parent: int | None, reads: str = "", writes: str = ""
    ) -> dict[str, Any]:
        line, column, code = line_of(text, f"def {kernel}", fragment)
        return {
            "id": id, "kind": kind, "label": label, "parent": parent, "reads": reads.split(), "writes": writes.split(),
            "location": {"file": file, "line": line, "column": column, "text": code},
        }  # fmt: skip

    if kernel == "scale_add":
        return (
            operation(0, "kernel", "scale_add", "with T.Kernel", None),
            operation(1, "parallel", "parallel i", "for i in T.Parallel", 0, "X Y", "Y"),
        )
    if kernel == "matmul_naive":
        return (
            operation(0, "kernel", "matmul_naive", "with T.Kernel", None),
            operation(1, "fill", "clear acc", "T.clear(acc)", 0, "", "acc"),
            operation(2, "loop", "serial k", "for k in T.serial", 0),
            operation(3, "parallel", "parallel i, j", "for i, j in T.Parallel", 2, "A B acc", "acc"),
            operation(4, "copy", "copy acc to C", "T.copy(acc", 0, "acc", "C"),
        )
    return (
        operation(0, "kernel", kernel, "with T.Kernel", None),
        operation(1, "fill", "clear C_local", "T.clear(C_local)", 0, "", "C_local"),
        operation(2, "loop", "pipelined ko", "for ko in T.Pipelined", 0),
        operation(3, "copy", "copy A to A_shared", COPY_LINES["A"], 2, "A", "A_shared"),
        operation(4, "copy", "copy B to B_shared", COPY_LINES["B"], 2, "B", "B_shared"),
        operation(5, "gemm", "gemm A_shared, B_shared", "T.gemm(A_shared", 2, "A_shared B_shared C_local", "C_local"),
        operation(6, "copy", "copy C_local to C", "T.copy(C_local", 0, "C_local", "C"),
    )


def static_counts(kernel: str, dtype: str, target: str) -> dict[str, dict[str, int]]:
    """Static instructions by operation and class."""
    if kernel == "scale_add":
        return {
            "0": {"integer": 9, "constant_load": 4, "branch": 1, "other": 2},
            "1": {"global_load": 4, "fma": 8, "global_store": 2, "integer": 5},
            "none": {"other": 1},
        }
    if kernel == "matmul_naive":
        return {
            "0": {"integer": 14, "constant_load": 5, "other": 2},
            "1": {"move": 1},
            "2": {"integer": 3, "branch": 2},
            "3": {"global_load": 8, "fma": 4, "integer": 6} | ({"convert": 4} if dtype == "float16" else {}),
            "4": {"global_store": 1, "integer": 3},
        }
    matrix = (dtype == "float16" and target != "cpu") or target == "hip:gfx942"
    gemm = {"fma": 512, "shared_load": 96, "integer": 22}
    if matrix:
        gemm = {"matrix": 32, "integer": 18} | (
            {"ldmatrix": 16} if target.startswith("cuda") else {"shared_load": 48, "wait": 12}
        )
    copy = {"async_copy": 4} if target.startswith("cuda") else {"global_load": 4, "shared_store": 4}
    return {
        "0": {"integer": 41, "constant_load": 7, "move": 12, "other": 3},
        "1": {"move": 32},
        "2": {"integer": 9, "branch": 3, "barrier": 2, "wait": 2},
        "3": copy | {"integer": 10},
        "4": copy | {"integer": 12},
        "5": gemm,
        "6": {"global_store": 32, "integer": 17},
        "none": {"other": 4},
    }


def make_metadata(kernel: str, dtype: str, target: str) -> dict[str, Any]:
    """KernelMetadata as JSON, with None where a target cannot know."""
    counts = static_counts(kernel, dtype, target)
    total: dict[str, int] = {}
    for group in counts.values():
        for klass, n in group.items():
            total[klass] = total.get(klass, 0) + n
    nvidia, amd, size = target.startswith("cuda"), target.startswith("hip"), 4 if dtype == "float32" else 2
    tiled = kernel in ("matmul_tiled", "matmul_padded")
    pad = 16 if kernel == "matmul_padded" else 0
    shared = 2 * (64 * (32 * size + pad) + 32 * (64 * size + pad)) if tiled else 0
    registers = {"matmul_naive": 40, "matmul_tiled": 118, "matmul_padded": 122, "scale_add": 18}[kernel]
    elementwise = kernel == "scale_add"
    blocks = {"matmul_naive": 6, "matmul_tiled": 4, "matmul_padded": 4, "scale_add": 8}[kernel]
    none = counts.get("none", {}).get("other", 0)
    return {
        "target": target, "registers_per_thread": None if target == "cpu" else registers + (10 if amd else 0),
        "vgprs": registers if amd else None, "agprs": (32 if tiled else 0) if amd else None, "sgprs": 34 if amd else None,
        "shared_bytes_static": shared, "shared_bytes_dynamic": 0,
        "spill_store_bytes": 0 if nvidia else None, "spill_load_bytes": 0 if nvidia else None,
        "spilled_vgprs": 0 if amd else None, "spilled_sgprs": 0 if amd else None,
        "stack_bytes": None if target == "cpu" else 0,
        "threads_per_block": 256 if elementwise or kernel == "matmul_naive" else 128,
        "grid": [1024, 1, 1] if elementwise else ([64, 64, 1] if kernel == "matmul_naive" else [16, 16, 1]), "cluster": None,
        "max_blocks_per_unit": None if target == "cpu" else blocks,
        "occupancy": None if target == "cpu" else min(1.0, blocks * (8 if not tiled else 4) / 64),
        "occupancy_limiters": [] if target == "cpu" else (["registers", "shared memory"] if tiled else ["threads"]),
        "instructions": {"total": total, "by_operation": counts, "attributed": 1 - none / sum(total.values())},
        "code_bytes": 16 * sum(total.values()),
        "compile_seconds": {"frontend": 0.011, "lower": 0.142, "codegen": 0.061, "assemble": 0.324 if nvidia else 0.118},
        "toolchain": {"tvm": "0.27.0.post1"} | ({"nvrtc": "13.5.37"} if nvidia else {"llvm": "22.1"}),
        "flops": {"float32" if elementwise or not tiled else dtype: 2 * 1024**2 if elementwise else 2 * 1024**3},
        "bytes_min": 3 * size * 1024**2 if elementwise else 2 * size * 1024**2 + 4 * 1024**2,
        "schema_version": 1,
    }  # fmt: skip


def access_counts(kernel: str, dtype: str, target: str) -> list[tuple[int, str, str, int, int, int, int, str]]:
    """(operation, buffer, access, requests, transactions, ideal, ways, rule) of shared accesses, a launch."""
    if kernel not in ("matmul_tiled", "matmul_padded") or target == "cpu":
        return []
    padded, half = kernel == "matmul_padded", dtype == "float16"
    store = "cp_async_bypass" if target.startswith("cuda") else "store"
    rule = "open" if target.startswith("cuda") else "known"
    copies = 8 if half else 16
    rows: list[tuple[int, str, str, int, int, int, int, str]] = [
        (3, "A_shared", store, copies * STEPS, copies * STEPS * 4, copies * STEPS * 4, 1, rule),
        (4, "B_shared", store, copies * STEPS, copies * STEPS * 4, copies * STEPS * 4, 1, rule),
    ]
    load = "ldmatrix" if half and target.startswith("cuda") else "load"
    loads = 16 if half else 96
    for buffer, ways in (("A_shared", 4), ("B_shared", 8)):
        ways = 1 if padded else ways
        rows.append((5, buffer, load, loads * STEPS, loads * STEPS * 4 * ways, loads * STEPS * 4, ways, "known"))
    return rows


def make_metrics(kernel: str, dtype: str, target: str) -> tuple[Metric, ...]:
    """Simulated counts by operation, buffer and access (GPU targets)."""
    if target == "cpu":
        return ()
    metrics = []
    for operation, buffer, access, requests, transactions, ideal, ways, rule in access_counts(kernel, dtype, target):
        flag = None if rule == "known" else rule
        for name, value, unit in (
            ("shared.requests", requests, "requests"),
            ("shared.transactions", transactions, "transactions"),
            ("shared.transactions_ideal", ideal, "transactions"),
            ("shared.conflicts", transactions - ideal, "transactions"),
            ("shared.ways", ways, "ways"),
        ):
            metrics.append(Metric(name, value, unit, SIMULATED, operation, buffer, access, flag=flag))
    for operation, executed in executed_counts(kernel, dtype, target).items():
        metrics.append(Metric("executed.instructions", executed, "instructions", SIMULATED, operation))
    for operation, buffer, access, sectors, ideal in sector_counts(kernel, dtype):
        metrics.append(Metric("global.sectors", sectors, "sectors", SIMULATED, operation, buffer, access))
        metrics.append(Metric("global.sectors_ideal", ideal, "sectors", SIMULATED, operation, buffer, access))
    return tuple(metrics)


def executed_counts(kernel: str, dtype: str, target: str) -> dict[int, int]:
    """Warp-level thread-program instructions a launch, by operation."""
    lanes = 64 if target.startswith("hip") else 32
    if kernel == "scale_add":
        return {0: 11 * 1024 * 256 // lanes, 1: 9 * 1024 * 256 // lanes}
    products = 1024**3 // lanes
    if kernel == "matmul_naive":
        return {0: 393_216, 1: 32_768, 2: products // 8, 3: products * 3, 4: 98_304}
    gemm = 1024**3 // (16 * 8 * 16) + 32 * STEPS + 20 * STEPS if dtype == "float16" else products + 192 * STEPS
    return {0: 34_816, 1: 16_384, 2: 12 * STEPS, 3: 40 * STEPS, 4: 44 * STEPS, 5: gemm, 6: 49_152}


def sector_counts(kernel: str, dtype: str) -> list[tuple[int, str, str, int, int]]:
    """(operation, buffer, access, sectors, ideal) of global accesses, a launch."""
    size = 4 if dtype == "float32" else 2
    if kernel == "scale_add":
        vector = 1024**2 * size // 32
        return [(1, "X", "load", vector, vector), (1, "Y", "load", vector, vector), (1, "Y", "store", vector, vector)]
    if kernel == "matmul_naive":
        return [
            (3, "A", "load", 67_108_864, 8_388_608),
            (3, "B", "load", 134_217_728 * size // 4, 134_217_728 * size // 4),
            (4, "C", "store", 131_072, 131_072),
        ]
    tile = STEPS * 64 * 32 * size // 32
    return [(3, "A", "load", tile, tile), (4, "B", "load", tile, tile), (6, "C", "store", 262_144, 131_072)]


def ncu_metrics(kernel: str, dtype: str) -> tuple[Metric, ...]:
    """What ncu says by line: no buffer names, conflicts of cp.async that the open rule does not predict."""
    rows = [(3, "cp_async", 8, 32, 4), (4, "cp_async", 8, 32, 4), (5, "ldmatrix", 32, 24, 4)]
    metrics = []
    for operation, access, requests, transactions, ideal in rows:
        n = requests * STEPS
        for name, value, unit in (
            ("shared.requests", n, "requests"),
            ("shared.transactions", n * transactions, "transactions"),
            ("shared.transactions_ideal", n * ideal, "transactions"),
            ("shared.conflicts", n * (transactions - ideal), "transactions"),
        ):
            metrics.append(Metric(name, value, unit, NCU, operation, None, access))
    for operation, executed in {
        0: 62_464,
        1: 32_768,
        2: 14 * STEPS,
        3: 58 * STEPS,
        4: 61 * STEPS,
        5: 1_220_608,
        6: 63_488,
    }.items():
        metrics.append(Metric("executed.instructions", executed, "instructions", NCU, operation))
    for operation, stalls in {
        2: {"barrier": 412},
        3: {"long_scoreboard": 903},
        5: {"mio_throttle": 5120, "short_scoreboard": 2210, "math_pipe_throttle": 318},
    }.items():
        metrics.append(Metric("stall.samples", sum(stalls.values()), "samples", NCU, operation))
        for reason, samples in stalls.items():
            metrics.append(Metric(f"stall.{reason}", samples, "samples", NCU, operation))
    metrics.append(
        Metric("executed.instructions", 740, "instructions", NCU, None, None, "unattributed", 0, "unattributed")
    )
    metrics.append(Metric("executed.instructions", 2_469_604, "instructions", NCU))
    metrics.append(Metric("dram.read_bytes", 4_718_592, "B", NCU))
    metrics.append(Metric("dram.write_bytes", 4_210_688, "B", NCU))
    metrics.append(Metric("occupancy.achieved", 0.197, "fraction", NCU))
    metrics.append(
        Metric("time.profiled_ns", 44_100, "ns", Provenance("measured", "ncu", "2025.3.1", "profiled, clocks at base"))
    )
    return tuple(metrics)
