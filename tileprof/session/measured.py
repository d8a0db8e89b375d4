"""Measuring one kernel of a script beyond its time: by a build with clock reads here, by a profiler in a child process."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import tilelang_min as tilelang
from tileprof.errors import TileprofError
from tileprof.execute.runner import RunOptions, prepare, run_prepared
from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Run

CHILD_PROFILERS = ("ncu", "nsys", "rocprofv3", "rocprof", "perf")
"""Tools that measure another process."""

MOST_SAVED = 4 << 30
"""Bytes of tensors that are copied for a child process."""

ROUNDS, LAUNCHES = 3, 10
"""Of both builds in turns, where clock reads are measured."""

_INPUTS = '''"""The tensors of the script, as they were when it asked."""

from pathlib import Path

import numpy as np

from tilelang_min.program.dtypes import numpy_dtype


def saved(name, dtype, shape):
    return np.load(Path(__file__).with_name(name + ".npy")).view(numpy_dtype(dtype)).reshape(shape)
'''


def clocked(kernel: tilelang.Kernel, args: Sequence[Any]) -> dict[str, Any]:
    """What a build with clock reads measured, and times of both builds in turns; the message of the launcher, less its timeline."""
    build = kernel.instrumented()
    builds = [(kernel, "plain_ns"), (build, "clocked_ns")]
    times: dict[str, Any] = {"plain_ns": [], "clocked_ns": []}
    for number in range(ROUNDS):
        for one, name in builds if number % 2 == 0 else reversed(builds):
            times[name] += one.get_profiler().samples(*args, warmup=2, rep=LAUNCHES)
    return {**times, "cycles": asdict(build.cycles())}


def profiled(kernel: tilelang.Kernel, args: Sequence[Any], profiler: str) -> Run:
    """The run of one case, the kernel on copies of its tensors under ``profiler``; the tensors are written by one call here.

    Raises ProfilerUnavailable where the tool cannot be used, TileprofError where the case did not end well.
    """
    with tempfile.TemporaryDirectory(prefix="tileprof-profile-") as name:
        folder, progress = Path(name), _Quiet()
        prepared = prepare(
            RunOptions(_written(kernel, args, folder, profiler), output=folder / "run", executor="inline"),
            say=progress.say,
        )
        run_prepared(prepared, progress)
        run = read_run(prepared.directory / "run.sqlite")
    case = run.cases[0]
    if case.status not in ("ok", "incorrect"):
        raise TileprofError(f"{kernel.name} under {profiler}: {case.status}: {case.reason}")
    kernel(*args)
    return run


def _written(kernel: tilelang.Kernel, args: Sequence[Any], folder: Path, profiler: str) -> Path:
    """A workload of one case: the kernel's bundle and what its inputs are."""
    kernel.save(folder / "kernel.tlk")
    read = [(p, value) for p, value in zip(kernel.parameters, args, strict=True) if p.access != "out"]
    arrays = {p.name: _host(value) for p, value in read}
    fits = sum(array.nbytes for array in arrays.values()) <= MOST_SAVED
    for name, array in arrays.items() if fits else ():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    (folder / "inputs.py").write_text(_INPUTS)
    description = f"kernel {kernel.name} profiled from a script" + (
        "" if fits else ", on random tensors of the same shapes"
    )
    entry: dict[str, Any] = {
        "name": _named(kernel),
        "bundle": "kernel.tlk",
        "inputs": {name: "inputs.py:saved" if fits else "normal" for name in arrays},
    }
    sizes = kernel.sizes_of(args)
    if sizes:
        entry["sizes"] = [sizes]
    workload = {
        "version": 1,
        "name": _named(kernel),
        "description": description,
        "targets": {"here": {"target": kernel.target.name, "profiler": profiler}},
        "kernels": [entry],
    }
    path = folder / "workload.yaml"
    path.write_text(yaml.safe_dump(workload, sort_keys=False))
    return path


def _named(kernel: tilelang.Kernel) -> str:
    """The kernel's name as a workload may have it: in ASCII, beginning with a letter."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", kernel.name)[:80]
    return f"kernel{name}" if name.startswith("_") else name


def _host(value: Any) -> Any:
    """A tensor as a NumPy array of the same bits."""
    if hasattr(value, "detach"):  # torch, which has no NumPy form of its narrow floats
        import torch

        return value.detach().cpu().reshape(-1).view(torch.uint8).numpy()
    return np.asarray(value)


class _Quiet:
    """Progress that a script does not see, but for what it has to wait for."""

    def begin(self, total: int, kept: int) -> None: ...
    def stage(self, case_id: str, stage: str) -> None: ...

    def say(self, text: str) -> None:
        print(text, file=sys.stderr)

    def finished(self, result: CaseResult) -> None: ...
    def end(self) -> None: ...
