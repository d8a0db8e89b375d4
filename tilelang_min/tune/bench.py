"""The process that runs and times kernels for a search: it loads bundles, needs no compiler, and may die.

It reads a JSON object a line from standard input and answers with one on standard output; what kernels print goes to standard
error. ``open`` loads a bundle, runs it once on the arguments and writes what it computed to files; ``time`` gives samples.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from tilelang_min.driver.kernel import Kernel, load
from tilelang_min.errors import TileLangError
from tilelang_min.program.dtypes import DATA_TYPES, numpy_dtype
from tilelang_min.tune.ends import end_after


@dataclass(frozen=True)
class _Place:
    """Where a tensor on a GPU is, as torch says it."""

    index: int
    type: str = "cuda"


class OnGpu:
    """A tensor in GPU memory, as :mod:`tilelang_min.driver.arguments` reads those of torch."""

    def __init__(self, array: np.ndarray[Any, Any], dtype: str, gpu: Any) -> None:
        self.buffer = gpu.copy_of(array)
        self.shape = array.shape
        self.dtype = DATA_TYPES[dtype].tvm
        self.device = _Place(gpu.current_device())

    def data_ptr(self) -> int:
        """The address."""
        return int(self.buffer.pointer)

    def is_contiguous(self) -> bool:
        """Always."""
        return True


class Bench:
    """Kernels by the names of their bundles, and the arrays that all of them use."""

    def __init__(self) -> None:
        self.kernels: dict[str, tuple[Kernel, list[dict[str, Any]]]] = {}
        self.arrays: dict[tuple[Any, ...], Any] = {}
        self.methods: dict[str, str] = {}
        self.chosen: Any = None

    def open(
        self, bundle: str, arguments: list[dict[str, Any]], outputs: list[str | None], ordinal: int | None = None
    ) -> dict[str, Any]:
        """Runs a kernel once; ``outputs`` are files for what it leaves in each parameter.  Answers with the nanoseconds of that."""
        kernel = load(bundle)
        if ordinal is not None and self.chosen is None:
            self.chosen = kernel._gpu.on_device(ordinal)
            self.chosen.__enter__()  # until this process ends
        tensors = [self._tensor(kernel, argument) for argument in arguments]
        for tensor, argument, parameter in zip(tensors, arguments, kernel.parameters, strict=True):
            if parameter.access != "in":
                self._refill(tensor, argument)
        start = time.perf_counter_ns()
        kernel(*tensors)
        if kernel.target.kind != "cpu":
            kernel._gpu.synchronize()
        took = time.perf_counter_ns() - start
        for tensor, file in zip(tensors, outputs, strict=True):
            if file is not None:
                Path(file).write_bytes(_host(tensor).tobytes())
        self.kernels[bundle] = kernel, arguments
        return {"ns": took}

    def time(self, bundle: str, warmup: int, rep: int) -> dict[str, Any]:
        """Samples in nanoseconds, and how they were taken."""
        kernel, arguments = self.kernels[bundle]
        tensors = [self._tensor(kernel, argument) for argument in arguments]
        method = self.methods.get(bundle, "auto")
        measured = kernel.get_profiler().measure(*tensors, warmup=warmup, rep=rep, method=method)
        if kernel.target.kind != "cpu":
            self.methods[bundle] = measured.method
        return {"samples": list(measured.samples_ns), "how": measured.how, "flushed": measured.flushed}

    def _tensor(self, kernel: Kernel, argument: dict[str, Any]) -> Any:
        """The array of an argument; one that a kernel writes is shared by kernels that write one like it."""
        key = (argument["file"], tuple(argument["shape"]), argument["dtype"], argument["name"])
        if key not in self.arrays:
            array = _read(argument)
            gpu = None if kernel.target.kind == "cpu" else kernel._gpu
            if gpu is not None:
                gpu.ensure_context()
            self.arrays[key] = array if gpu is None else OnGpu(array, argument["dtype"], gpu)
        return self.arrays[key]

    @staticmethod
    def _refill(tensor: Any, argument: dict[str, Any]) -> None:
        array = _read(argument)
        if isinstance(tensor, OnGpu):
            tensor.buffer.write(array)
        else:
            tensor[...] = array


def _read(argument: dict[str, Any]) -> np.ndarray[Any, Any]:
    """What is in an argument's file; without one NaN, or the largest integer: what a kernel leaves unwritten is seen."""
    dtype, shape = numpy_dtype(argument["dtype"]), tuple(argument["shape"])
    if argument["file"] is not None:
        raw = np.frombuffer(bytearray(Path(argument["file"]).read_bytes()), np.uint8)
        found: np.ndarray[Any, Any] = raw.view(dtype).reshape(shape)
        return found
    return unwritten(shape, argument["dtype"])


def unwritten(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """An output before a kernel has written it."""
    made = np.empty(shape, numpy_dtype(dtype))
    if DATA_TYPES[dtype].kind == "float":
        made[...] = np.nan
    else:
        made.view(np.uint8)[...] = 0 if dtype == "bool" else 0x5A
    return made


def _host(tensor: Any) -> np.ndarray[Any, Any]:
    if not isinstance(tensor, OnGpu):
        return np.asarray(tensor)
    array = np.empty(tensor.buffer.nbytes, np.uint8)
    tensor.buffer.read(array)
    return array


def serve(lines: TextIO, answers: TextIO) -> None:
    """Answers every line until there are no more."""
    bench = Bench()
    for line in lines:
        asked = json.loads(line)
        end_after(asked.pop("limit"))
        try:
            answer = getattr(bench, asked.pop("do"))(**asked)
        except TileLangError as error:
            answer = {"error": str(error)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        end_after(0.0)  # not at all: the next question may take its time to come
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main() -> None:
    """Talks on the pipes it was started with."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(sys.stdin, answers)
