"""Compile the quickstart's kernels for a GPU host: bundles for ``h200_run.py``, which runs there without a compiler.

    python benchmarks/h200_bundles.py OUTDIR [--target cuda:sm_90a]

The kernels are those of ``workloads/quickstart.yaml`` at 1024^3 with one to three pipeline stages, and the padded product at
odd sizes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

SIZE = 1024
ODD_SIZES = (1, 7, 129, 1000)


def kernels(target: str) -> dict[str, tuple[Any, tuple[int, ...], dict[str, Any]]]:
    """Name -> (factory, shape, keyword arguments)."""
    import elementwise
    import matmul

    chosen: dict[str, tuple[Any, tuple[int, ...], dict[str, Any]]] = {}
    for dtype in ("float32", "float16"):
        block_k = 128 // np.dtype(dtype).itemsize
        short = {"float32": "f32", "float16": "f16"}[dtype]
        cube = (SIZE, SIZE, SIZE)
        chosen[f"naive-{short}"] = (matmul.naive.for_target(target), cube, {"dtype": dtype})
        for stages in (1, 2, 3):
            for name in ("tiled", "padded"):
                options = {"dtype": dtype, "block_K": block_k, "num_stages": stages}
                chosen[f"{name}-{short}-s{stages}"] = (getattr(matmul, name).for_target(target), cube, options)
        chosen[f"scale_add_relu-{short}"] = (
            elementwise.scale_add_relu.for_target(target),
            (SIZE, SIZE),
            {"dtype": dtype},
        )
        for size in ODD_SIZES:
            for stages in (1, 2, 3):
                options = {"dtype": dtype, "block_K": block_k, "num_stages": stages}
                chosen[f"padded-{short}-s{stages}-n{size}"] = (matmul.padded.for_target(target), (size,) * 3, options)
    return chosen


def main() -> int:
    """Compile and save everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--target", default="cuda:sm_90a")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = []
    for name, (factory, shape, options) in kernels(arguments.target).items():
        factory(*shape, **options).save(arguments.out / f"{name}.tlk")
        names.append(name)
        print(name, flush=True)
    (arguments.out / "order.json").write_text(json.dumps(names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
