"""A workload of a kernel without a factory: dimensions of ``T.const`` are its shapes, outputs are compared like others."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweep_folder import make_folder

from tileprof.errors import WorkloadError
from tileprof.workload import load_workload

KERNEL = """\
import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def scale(A, rows: T.Tensor((4,), "float32"), block=64, factor=2.0, *, dtype="float32"):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], dtype]
    B = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block), M, threads=64) as (bx, by):
        for i in T.Parallel(block):
            B[by, bx * block + i] = A[by, bx * block + i] * factor + rows[by]
    return B


def reference(A, rows, factor=2.0):
    return {"B": A * factor + rows[:, None]}
"""
WORKLOAD = """\
version: 1
name: eager
defaults: {timing: {warmup: 1, samples: 3}}
targets: {here: {target: cpu}, a100: {target: "cuda:sm_80"}}
kernels:
  - name: scale
    source: eager.py:scale
    args: {dtype: float32}
    shapes: [{M: 4, N: 1000}]
    tiles: {block: [64, 128]}
    inputs: {rows: arange}
    reference: eager.py:reference
"""


def test_cases_run_and_are_right(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    folder.write(KERNEL, "eager.py")
    made = folder.run(WORKLOAD)
    assert made.status == 0, made.err
    assert [(case.id, case.status) for case in made.run.cases] == [
        ("scale[M=4,N=1000,block=64]@here", "ok"),
        ("scale[M=4,N=1000,block=64]@a100", "not_run"),
        ("scale[M=4,N=1000,block=128]@here", "ok"),
        ("scale[M=4,N=1000,block=128]@a100", "not_run"),
    ]
    for case in made.run.cases:
        assert case.check is not None
        assert case.check.ok
        assert (case.timing is not None) == case.id.endswith("@here")


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("N: 1000}", "N: 1000, K: 1}", "9:30: unknown parameter of scale 'K'"),
        ("N: 1000}", "N: 1000, A: 1}", "9:30: unknown parameter of scale 'A'"),
        (", N: 1000", "", "9:14: no value for N, which scale needs: give it in args, shapes or tiles"),
        ("{rows: arange}", "{row: arange}", "11:14: unknown tensor of the kernel 'row'; did you mean 'rows'?"),
    ],
)
def test_mistakes_are_found_without_running_the_file(tmp_path: Path, wrong: str, right: str, message: str) -> None:
    (tmp_path / "eager.py").write_text(KERNEL + "raise AssertionError")
    file = tmp_path / "w.yaml"
    file.write_text(WORKLOAD.replace(wrong, right))
    with pytest.raises(WorkloadError) as caught:
        load_workload(file)
    assert message in str(caught.value)
