"""Timing: how many calls, by which method, what a measurement says of itself; against a driver that only writes down calls."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest

from tilelang_min import profiler
from tilelang_min.errors import LaunchError
from tilelang_min.runtime import cuda, cuda_timing, measuring
from tilelang_min.runtime.measuring import Measurement, measure_gpu, measure_host


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    file = Path(__file__).with_name("test_cuda_launch.py")
    spec = importlib.util.spec_from_file_location("fake_cuda_driver", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fake = module.FakeDriver()
    monkeypatch.setattr(cuda, "_driver", lambda: fake)
    monkeypatch.setattr(cuda, "native", fake.native)
    monkeypatch.setattr(cuda, "_devices", {})
    return fake


def launch(driver: Any) -> Any:
    return lambda: driver.calls.append(("work", cuda.current_stream()))


ORDER = ("work", "cuMemsetD8Async", "cuEventRecord", "cuEventRecordWithFlags", "cuStreamBeginCapture")
ORDER += ("cuStreamEndCapture", "cuGraphLaunch", "cuStreamSynchronize")


def test_a_graph_with_flushes_holds_all_samples(driver: Any) -> None:
    times = cuda_timing.time_graph(launch(driver), launches=2, warmup=1, flush_l2=True)
    names = [call[0] for call in driver.named(*ORDER)]
    sample = ["cuMemsetD8Async", "cuEventRecordWithFlags", "work", "cuEventRecordWithFlags"]
    assert names == [
        *("cuStreamSynchronize", "work", "cuStreamSynchronize", "cuStreamBeginCapture"),
        *(sample * 2),
        *("cuStreamEndCapture", "cuGraphLaunch", "cuGraphLaunch", "cuStreamSynchronize"),
    ]
    assert {call[1] for call in driver.named("work")} == {55}
    assert cuda.current_stream() == 0
    assert [call[3] for call in driver.named("cuEventRecordWithFlags")] == [1] * 4
    assert times == pytest.approx([2000.0, 4000.0])
    gone = [name for name, *_ in driver.named("cuGraphExecDestroy", "cuGraphDestroy", "cuStreamDestroy")]
    assert gone == ["cuGraphExecDestroy", "cuGraphDestroy", "cuStreamDestroy"]


def test_a_graph_without_flushes_is_a_batch(driver: Any) -> None:
    times = cuda_timing.time_graph(launch(driver), launches=3, warmup=0, flush_l2=False, batch=4)
    assert len(driver.named("work")) == 4
    assert len(driver.named("cuGraphLaunch")) == 4
    assert not driver.named("cuMemsetD8Async")
    assert times == pytest.approx([500.0, 1000.0, 1500.0])


def test_work_that_cannot_be_captured(driver: Any) -> None:
    driver.failures["cuStreamEndCapture"] = type(driver).CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(LaunchError, match="the work cannot be captured in a CUDA graph: cuStreamEndCapture failed"):
        cuda_timing.time_graph(launch(driver), launches=1)
    measured = measure_gpu(launch(driver), warmup=1, rep=2)
    assert measured.method == "events"
    assert "cannot be captured" in measured.note
    assert "cannot be captured" in measured.describe()
    with pytest.raises(LaunchError, match="cannot be captured"):
        measure_gpu(launch(driver), method="graph")


def test_short_work_is_timed_in_a_graph_and_long_work_launch_by_launch(driver: Any) -> None:
    short = measure_gpu(launch(driver), warmup=1, rep=2, flush_l2=False)
    assert (short.method, short.flushed, short.per_sample) == ("graph", False, cuda_timing.BATCH)
    assert short.how == "CUDA graphs of 20 launches each"
    driver.results["cuEventElapsedTime"] = lambda before, after: 1.0  # milliseconds
    long = measure_gpu(launch(driver))
    assert (long.method, long.flushed, len(long.samples_ns), long.warmup) == ("events", True, 100, 25 + 6)
    assert long.median_ms == 1.0
    assert long.describe() == "events around single launches, cache flushed before each, 100 samples after 31 calls"
    assert measure_gpu(launch(driver), rep_ms=0.1).samples_ns == (1e6,) * measuring.LEAST


def test_unknown_methods(driver: Any) -> None:
    with pytest.raises(LaunchError, match="no such method of timing: 'clock'") as caught:
        measure_gpu(launch(driver), method="clock")
    assert "events, graph" in (caught.value.remedy or "")
    with pytest.raises(LaunchError, match="no such method of timing"):
        profiler.measure(lambda: None, method="clock")


def test_quantiles() -> None:
    measured = Measurement((3e6, 1e6, 2e6, 4e6), "events", False, 3)
    assert (measured.median_ms, measured.quantile(0), measured.quantile(1)) == (2.5, 1e6, 4e6)
    assert measured.quantile(0.25) == pytest.approx(1.75e6)
    with pytest.raises(LaunchError, match="from 0 to 1"):
        measured.quantile(2)
    assert measured.to_json()["samples_ns"] == [3e6, 1e6, 2e6, 4e6]


def test_host_work() -> None:
    calls: list[int] = []
    measured = measure_host(lambda: calls.append(1), warmup=2, rep=7, flush=lambda: calls.append(0))
    assert (len(calls), sum(calls)) == (2 + 14, 9)
    assert (measured.method, measured.flushed, measured.warmup, len(measured.samples_ns)) == ("wall", True, 2, 7)
    slept = measure_host(lambda: time.sleep(0.002), rep_ms=12, warmup_ms=2)
    assert 2.0 <= slept.median_ms < 40
    assert slept.how == "wall clock around single calls"


def test_do_bench_of_a_function(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.results["cuEventElapsedTime"] = lambda before, after: 0.5
    assert profiler.do_bench(launch(driver)) == 0.5
    assert profiler.do_bench(launch(driver), quantiles=[0.2, 0.8]) == [0.5, 0.5]
    monkeypatch.setattr(cuda, "available", lambda: (False, "no GPU"))
    assert profiler.measure(lambda: None, rep_ms=0.01).method == "wall"
