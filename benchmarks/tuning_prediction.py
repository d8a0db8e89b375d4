"""How well ``kernel.predict()`` orders configurations whose times on an H200 are known: no GPU needed.

    python benchmarks/h200.py compile BUNDLES; python benchmarks/h200_mma_sync.py compile BUNDLES
    python benchmarks/tuning_prediction.py BUNDLES... RESULT.json

The times are those of ``results/2026-11-30-h200.json``, ``-attention`` and ``-mma-sync``.  A group are the configurations that
were measured in turns for one problem.  For each the record says how much slower the best predicted is than the best measured, and
where the best measured stands in the prediction.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]
RESULTS = ROOT / "benchmarks" / "results"
DEVICE = "NVIDIA H200"


def groups() -> Iterator[tuple[str, dict[str, float], dict[str, int]]]:
    """Name of a group, microseconds by kernel, and its runtime dimensions."""
    for row in _read("2026-11-30-h200")["rows"]:
        layout = "NT" if row["transpose_B"] else "NN"
        name = f"{row['group']} {row['M']}x{row['N']}x{row['K']} {layout} {row['dtype']}"
        times = {kernel: quartiles[1] for kernel, quartiles in row["quartiles_us"].items() if kernel.startswith("gemm")}
        yield name, times, {"m": row["M"]}
    for row in _read("2026-11-30-h200-attention")["rows"]:
        name = f"{row['group']} {'causal' if row['causal'] else 'full'}"
        yield name, {k: q[1] for k, q in row["quartiles_us"].items() if k.startswith("attention")}, {}
    for name, group in _read("2026-11-30-h200-mma-sync")["groups"].items():
        known = {row["kernel"] for row in group["kernels"]}
        yield f"mma.sync {name}", {k: statistics.median(t) for k, t in group["times_us"].items() if k in known}, {}


def _read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def predicted(path: Path, sizes: dict[str, int], us: float) -> dict[str, Any]:
    """One kernel: its prediction beside its time."""
    import tilelang_min as tilelang

    kernel = tilelang.load(path)
    found = kernel.predict(DEVICE, {name: sizes[name] for name in kernel.sizes})
    if found is None:
        raise SystemExit(f"{path} is for a CPU")
    return {
        "measured_us": round(us, 2),
        "predicted_us": round(found.time_ns / 1e3, 2),
        "bound_us": None if found.bound_ns is None else round(found.bound_ns / 1e3, 2),
        "limit": found.limit,
        "spilled": kernel.metadata.spill_store_bytes,
    }


def main(folders: list[str], result: str) -> int:
    """Every group of two or more kernels."""
    rows: dict[str, dict[str, Any]] = {}
    for group, times, sizes in groups():
        places = {name: next((p for f in folders if (p := Path(f) / f"{name}.tlk").exists()), None) for name in times}
        found = {name: predicted(place, sizes, times[name]) for name, place in places.items() if place is not None}
        if len(found) > 1:
            rows[group] = found
    behind, ratios = [], []
    for kernels in rows.values():
        best = min(kernels, key=lambda name: kernels[name]["measured_us"])
        chosen = min(kernels, key=lambda name: kernels[name]["predicted_us"])
        behind.append(kernels[chosen]["measured_us"] / kernels[best]["measured_us"])
        ratios.append(kernels[best]["predicted_us"] / kernels[chosen]["predicted_us"])
    every = [each for kernels in rows.values() for each in kernels.values()]
    off = [each["predicted_us"] / each["measured_us"] for each in every]
    summary = {
        "groups": len(rows),
        "kernels": len(every),
        "predicted best over measured best, geometric mean": round(statistics.geometric_mean(behind), 4),
        "predicted best over measured best, worst": round(max(behind), 3),
        "within 5 % of the best": sum(each <= 1.05 for each in behind),
        "prediction of the best over the best prediction, worst": round(max(ratios), 3),
        "prediction over measurement, geometric mean": round(statistics.geometric_mean(off), 3),
        "prediction over measurement, spread": round(math.exp(statistics.stdev(map(math.log, off))), 3),
        "bounds above the measurement": sum(
            each["bound_us"] > each["measured_us"] for each in every if each["bound_us"]
        ),
    }
    lines = [f'  "{group}": {json.dumps(kernels)}' for group, kernels in rows.items()]
    about = json.dumps({"device": DEVICE, "script": "benchmarks/tuning_prediction.py", "summary": summary}, indent=1)
    Path(result).write_text(about[:-2] + ',\n "groups": {\n' + ",\n".join(lines) + "\n }\n}\n")
    print(json.dumps(summary, indent=1))
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    sys.exit(main(sys.argv[1:-1], sys.argv[-1]))
