"""``tilelang.profile(kernel)``: what a script gets, on any machine."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

import tilelang_min as tilelang
import tilelang_min.language as T
from tileprof.errors import ProfilerUnavailable, UsageError
from tileprof.session import measured
from tileprof.session.report import Report
from tileprof.workload import load_workload


@tilelang.jit
def product(M, N, K, pad=0):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, 64 + pad), "float16")
            B_shared = T.alloc_shared((64, 64 + pad), "float16")
            T.annotate_layout({A_shared: T.rows(), B_shared: T.rows()})
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(K // 64, num_stages=1):
                T.copy(A[by * 64, ko * 64], A_shared[:, 0:64])
                T.copy(B[ko * 64, bx * 64], B_shared[:, 0:64])
                T.gemm(A_shared[:, 0:64], B_shared[:, 0:64], C_local)
            T.copy(C_local, C[by * 64, bx * 64])

    return main


@pytest.fixture(scope="module")
def plain() -> Any:
    return tilelang.profile(product.for_target("cuda:sm_80")(128, 128, 128))


def test_conflicts_of_plain_rows_by_operation_and_buffer(plain: Any) -> None:
    conflicts = plain.memory_conflicts()
    # 4 blocks x 2 steps of K x 4 warps; rows of 128 bytes put the 8 rows of an 8x8 matrix into the same banks: 8 passes for 1.
    # A warp of the 2x2 grid reads 32 rows of A: 2 row tiles x 4 steps of 16 = 8 ldmatrix.x4 of 4 matrices; the same for B.
    requests = 4 * 2 * 4 * 8
    extra = requests * 4 * (8 - 1)
    assert conflicts.by_buffer == {"A_shared": extra, "B_shared": extra}
    assert conflicts.total == 2 * extra
    rows = {(entry.buffer, entry.access): entry for entry in conflicts.entries}
    entry = rows["A_shared", "ldmatrix"]
    assert (entry.requests, entry.transactions, entry.transactions_ideal, entry.ways) == (
        requests,
        requests * 32,
        requests * 4,
        8,
    )
    assert entry.operation.startswith("T.gemm(A_shared")
    assert entry.source == "simulated"
    assert rows["A_shared", "store"].conflicts == 0
    text = str(conflicts)
    assert f"{2 * extra:,} extra transactions" in text
    assert "T.gemm(A_shared[:, 0:64], B_shared[:, 0:64], C_local)" in text


def test_conflicting_accesses_have_a_suggestion(plain: Any) -> None:
    conflicts = plain.memory_conflicts()
    for entry in conflicts.entries:
        assert bool(entry.suggestion) == bool(entry.conflicts)
    entry = next(entry for entry in conflicts.entries if entry.buffer == "B_shared" and entry.conflicts)
    assert entry.suggestion.startswith('pad B_shared by 8 elements: T.alloc_shared((64, 64 + 8), "float16")')
    assert "; or swizzle B_shared in 128-byte mode" in entry.suggestion
    assert [(s.buffer, s.kind) for s in conflicts.suggestions] == [
        (buffer, kind) for buffer in ("A_shared", "B_shared") for kind in ("padding", "swizzle")
    ]
    text = str(conflicts)
    assert "pad A_shared by 8 elements" in text
    assert "padding 1 to 7: it breaks the 16-byte alignment of" in text
    assert set(conflicts.frame["suggestion"].dropna()) == {e.suggestion for e in conflicts.entries if e.suggestion}


def test_padding_removes_them() -> None:
    """As the suggestion says."""
    conflicts = tilelang.profile(product.for_target("cuda:sm_80")(128, 128, 128, pad=8)).memory_conflicts()
    assert conflicts.total == 0
    assert conflicts.suggestions == ()
    assert "no conflicts" in str(conflicts)


def test_amd_says_lds_cycles() -> None:
    conflicts = tilelang.profile(product.for_target("hip:gfx942")(128, 128, 128)).memory_conflicts()
    assert conflicts.total > 0
    assert "extra LDS cycles" in str(conflicts)


def test_frame_has_a_row_for_each_entry(plain: Any) -> None:
    conflicts = plain.memory_conflicts()
    frame = conflicts.frame
    assert len(frame) == len(conflicts.entries)
    assert frame["conflicts"].sum() == conflicts.total


def test_nothing_is_launched_without_arguments(plain: Any) -> None:
    assert plain.case.status == "not_run"
    assert plain.case.timing is None
    assert not (plain.metrics["metric"] == "time.ns").any()
    assert any(item.what == "time.ns" for item in plain.run.unavailable)


def test_with_arguments_the_kernel_is_timed_and_writes_its_output() -> None:
    kernel = product.for_target("cpu")(128, 128, 128)
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((128, 128)).astype("float16") for _ in range(2))
    c = np.full((128, 128), np.nan, "float32")
    report = tilelang.profile(kernel, a, b, c)
    np.testing.assert_allclose(c, a.astype("float64") @ b.astype("float64"), rtol=2e-3, atol=1e-3)
    assert report.case.status == "ok"
    times = report.metrics[report.metrics["metric"] == "time.ns"]
    assert list(times["provenance"]) == ["measured"]
    assert times["value"].iloc[0] == report.case.timing.median_ns > 0


def test_metrics_frame_has_the_promised_columns(plain: Any) -> None:
    frame = plain.metrics
    assert {"case", "kernel", "launch", "operation", "metric", "value", "unit", "provenance"} <= set(frame.columns)
    registers = frame[(frame["metric"] == "registers.per_thread") & frame["operation"].isna()]
    assert registers["value"].iloc[0] > 0
    assert registers["provenance"].iloc[0] == "static"


def test_report_files(plain: Any, tmp_path: Path) -> None:
    page = plain.visualize(tmp_path / "gemm.html")
    text = page.read_text()
    assert "A_shared" in text
    assert "pad A_shared by 8 elements: T.alloc_shared((64, 64 + 8), &#34;float16&#34;)" in text
    assert not re.search(r"(?:src|href)=.https?:", text)
    assert plain.visualize().exists()
    plain.roofline(tmp_path / "roofline.svg")
    assert (tmp_path / "roofline.svg").read_text().lstrip().startswith("<?xml")
    record = json.loads(plain.to_json(tmp_path / "gemm.json").read_text())
    assert record["cases"][0]["kernel"] == "product"


def tensors() -> list[Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((128, 128)).astype(np.float16) for _ in range(2))
    return [a, b, np.full((128, 128), np.nan, np.float32)]


def test_a_counter_tool_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    kernel = product.for_target("cpu")(128, 128, 128)
    with pytest.raises(ProfilerUnavailable, match="perf") as caught:
        tilelang.profile(kernel, *tensors(), profiler="perf")
    assert caught.value.remedy
    with pytest.raises(UsageError, match="there are no tensors to launch on"):
        tilelang.profile(kernel, profiler="ncu")
    with pytest.raises(UsageError, match="there is no profiler 'ncuu'") as missing:
        tilelang.profile(kernel, *tensors(), profiler="ncuu")
    assert "did you mean 'ncu'?" in (missing.value.remedy or "")


def test_a_child_process_measures_copies_of_the_tensors(tmp_path: Path) -> None:
    """The timer stands in for counter tools, which nobody has everywhere."""
    kernel = product.for_target("cpu")(128, 128, 128)
    a, b, c = tensors()
    report = Report(measured.profiled(kernel, (a, b, c), "timer"))
    assert report.case.status == "ok"
    assert report.case.timing is not None
    assert (report.run.name, report.case.kernel) == ("product", "product")
    assert np.abs(c - a.astype(np.float64) @ b.astype(np.float64)).max() < 0.1  # written as by a call
    path = measured._written(kernel, (a, b, c), tmp_path, "timer")
    assert "inputs.py:saved" in path.read_text()
    saved = runpy.run_path(str(tmp_path / "inputs.py"))["saved"]
    assert np.array_equal(saved("B", "float16", (128, 128)), b)


def test_a_child_process_launches_with_the_sizes_of_the_tensors(tmp_path: Path) -> None:
    kernel = tilelang.compile(product.prim_func(T.dynamic("m"), 64, 64), "cpu")
    a, b, c = np.ones((128, 64), np.float16), np.ones((64, 64), np.float16), np.zeros((128, 64), np.float32)
    workload = load_workload(measured._written(kernel, (a, b, c), tmp_path, "timer"))
    assert workload.kernels[0].sizes == ({"m": 128},)
    saved = runpy.run_path(str(tmp_path / "inputs.py"))["saved"]
    assert np.array_equal(saved("A", "float16", (128, 64)), a)


@pytest.mark.parametrize(("name", "written"), [("_main", "kernel_main"), ("k" * 300, "k" * 80), ("größe", "gr__e")])
def test_any_name_of_a_kernel_makes_a_workload(tmp_path: Path, name: str, written: str) -> None:
    kernel = product.for_target("cpu")(128, 128, 128)
    stand_in: Any = SimpleNamespace(
        name=name,
        parameters=kernel.parameters,
        target=kernel.target,
        save=lambda path: kernel.save(path),
        sizes_of=lambda args: {},
    )
    workload = load_workload(measured._written(stand_in, tensors(), tmp_path, "timer"))
    assert (workload.name, workload.kernels[0].name) == (written, written)


def test_what_is_waited_for_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def waiting(options: Any, *, say: Any) -> None:
        say("another run measures on this GPU (process 7): waiting for it")
        raise ProfilerUnavailable("ncu is gone")

    monkeypatch.setattr(measured, "prepare", waiting)
    with pytest.raises(ProfilerUnavailable, match="gone"):
        measured.profiled(product.for_target("cpu")(128, 128, 128), tensors(), "ncu")
    assert capsys.readouterr().err == "another run measures on this GPU (process 7): waiting for it\n"


def test_large_tensors_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "MOST_SAVED", 1000)
    path = measured._written(product.for_target("cpu")(128, 128, 128), tensors(), tmp_path, "timer")
    workload = yaml.safe_load(path.read_text())
    assert workload["kernels"][0]["inputs"] == {"A": "normal", "B": "normal"}
    assert workload["description"].endswith("on random tensors of the same shapes")
    assert not list(tmp_path.glob("*.npy"))


def test_cycles_of_operations_in_this_process() -> None:
    kernel = product.for_target("cpu")(128, 128, 128)
    report = tilelang.profile(kernel, *tensors(), profiler="cycles")
    cycles = {m.operation for m in report.case.metrics if m.metric == "cycles.sum" and m.value > 0}
    product_line = next(o["id"] for o in report.case.operations if o["kind"] == "gemm")
    assert {None, product_line} <= cycles
    assert any(note.startswith("cycles: ") for note in report.case.notes)


def test_what_is_no_kernel() -> None:
    with pytest.raises(UsageError, match="takes a compiled kernel, not function") as caught:
        tilelang.profile(product)
    assert "call the factory first" in (caught.value.remedy or "")


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_kernels_of_runtime_sizes(target: str) -> None:
    m: Any = T.dynamic("m")

    @T.prim_func
    def dynamic(A: T.Tensor((m, 64), "float32"), B: T.Tensor((m, 64), "float32")):
        with T.Kernel(T.ceildiv(m, 4), threads=64) as bx:
            for i, j in T.Parallel(4, 64):
                B[bx * 4 + i, j] = A[bx * 4 + i, j] + 1.0

    kernel = tilelang.compile(dynamic, target)
    report = tilelang.profile(kernel)
    assert any(item.what == "simulated counts" for item in report.run.unavailable)
    assert report.memory_conflicts().total is None
    a = np.ones((10, 64), np.float32)
    sized = tilelang.profile(kernel, a, a.copy(), profiler="none")
    sectors = [x.value for x in sized.case.metrics if x.metric == "global.sectors" and x.operation is not None]
    assert target == "cpu" or sum(sectors) == 2 * 10 * 64 * 4 / 32


def test_what_was_not_counted_is_no_zero() -> None:
    conflicts = tilelang.profile(product.for_target("cpu")(128, 128, 128)).memory_conflicts()
    assert conflicts.total is None
    assert list(conflicts.frame.columns)[:3] == ["operation_id", "operation", "line"]
    assert "no shared-memory accesses were counted" in str(conflicts)

    @T.prim_func
    def by_warp_groups(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            A_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.copy(A, A_shared)
            T.clear(C_local)
            T.gemm(A_shared, A_shared, C_local)
            T.copy(C_local, C)

    conflicts = tilelang.profile(tilelang.compile(by_warp_groups, "cuda:sm_90a")).memory_conflicts()
    assert "wgmma" in conflicts.uncounted
    assert "not counted, for lack of a known rule: " in str(conflicts)
