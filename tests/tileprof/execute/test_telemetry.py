"""Telemetry: what NVML says while a case is timed, and what it means when the clock was held down."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from tileprof.collect.timer import throttled
from tileprof.execute.results import CaseBuilder, Paths
from tileprof.launcher import telemetry
from tileprof.launcher.telemetry import AmdSmiGpu, NvmlGpu, Watch
from tileprof.workload.records import Case, KernelEntry, TargetEntry


class Nvml:
    """A stand-in with the names of NVML's bindings; ``reasons`` are given out one after the other, the last for ever."""

    def __init__(self, *reasons: int, power: bool = True) -> None:
        self.reasons = list(reasons)
        self.power = power

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return 1500

    def nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:
        return 1980

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        if not self.power:
            raise RuntimeError("Not Supported")
        return 650_000

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return self.reasons.pop(0) if len(self.reasons) > 1 else self.reasons[0]

    def nvmlDeviceGetTemperature(self, handle: str, kind: int) -> int:
        return 61

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.159"


def watched(nvml: Any) -> Any:
    gpu: Any = nvml if hasattr(nvml, "read") else NvmlGpu(nvml, "handle")
    looks, read = [0], gpu.read

    def look() -> Any:
        looks[0] += 1
        return read()

    gpu.read = look
    with Watch(lambda: gpu) as watch:
        end = time.monotonic() + 10
        while looks[0] < 5 and time.monotonic() < end:  # the thread may have to wait for a processor
            time.sleep(0.01)
    return watch.summary()


def test_what_is_seen_becomes_metrics() -> None:
    seen = watched(Nvml(1, 0))
    assert (seen["clock_hz"], seen["max_clock_hz"], seen["power_w"], seen["temperature_c"]) == (
        1.5e9,
        1.98e9,
        650.0,
        61,
    )
    assert seen["samples"] >= 3
    assert seen["reasons"] == {}  # idle, and the user's own clocks, are no throttling
    case = builder()
    case.take({"type": "telemetry", **seen})
    assert case.metrics == []  # shorter than what NVML looks at
    case.take({"type": "telemetry", **seen, "seconds": 0.5})
    figures = {metric.metric: (metric.value, metric.unit) for metric in case.metrics}
    assert figures == {"clock.hz": (1.5e9, "Hz"), "device.power": (650.0, "W"), "device.temperature": (61.0, "°C")}
    assert {metric.provenance.version for metric in case.metrics} == {"580.159"}
    assert case.status is None


def builder() -> CaseBuilder:
    target = TargetEntry("h200", "cuda:sm_90a", "cuda", ("timer",))
    return CaseBuilder(Case("k@h200", "0", KernelEntry("k"), target, {}, {}, {}), 0, Paths(), "k")


@pytest.mark.parametrize(
    ("bits", "status"), [(0x04, None), (0x40, "invalid_measurement"), (0x88, "invalid_measurement")]
)
def test_throttling_is_said_and_decides_whether_times_count(bits: int, status: str | None) -> None:
    case = builder()
    case.take({"type": "timed", "samples_ns": [10.0], "method": "events", "warmup": 1, "flushed": True})
    case.take({"type": "telemetry", **watched(Nvml(bits))})
    assert case.status == status
    text = case.reason if status else case.notes[0]
    assert text.startswith("the GPU was throttled: ")
    assert text.endswith("mean clock 1500 of 1980 MHz")
    (timed,) = [metric for metric in case.metrics if metric.metric == "time.ns"]
    assert timed.flag == ("throttled" if status else None)


def test_one_bad_sample_is_counted() -> None:
    seen = {"reasons": {"power cap": 1}, "samples": 7, "clock_hz": 1e9, "max_clock_hz": None}
    assert throttled(seen) == ("the GPU was throttled: power cap in 1 of 7 samples; mean clock 1000 MHz", False)


def test_what_the_gpu_does_not_give_is_missing() -> None:
    seen = watched(Nvml(0, power=False))
    assert seen["power_w"] is None
    case = builder()
    case.take({"type": "telemetry", **seen, "seconds": 0.5})
    assert {metric.metric for metric in case.metrics} == {"clock.hz", "device.temperature"}


def test_without_nvml_there_is_no_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(telemetry, "importlib", SimpleNamespace(import_module=absent))
    assert telemetry.open_nvml() is None
    assert telemetry.open_amdsmi() is None
    with Watch() as watch:
        pass
    assert watch.summary() is None


class Smi:
    """A stand-in with the names of AMD SMI's Python module, for a GPU of four dies."""

    AmdSmiClkType = SimpleNamespace(GFX="gfx")

    def __init__(self, status: int | str = 0, handles: tuple[str, ...] = ("0000:03:00.0", "0000:c1:00.0")) -> None:
        self.status = status
        self.handles = handles

    def amdsmi_init(self) -> None:
        pass

    def amdsmi_get_processor_handles(self) -> tuple[str, ...]:
        return self.handles

    def amdsmi_get_gpu_device_bdf(self, handle: str) -> str:
        return handle

    def amdsmi_get_gpu_metrics_info(self, handle: str) -> dict[str, Any]:
        return {
            "current_gfxclk": "N/A",
            "current_gfxclks": [2100, 2000, 1900, 2000, "N/A", 0xFFFF],
            "current_socket_power": 640,
            "average_socket_power": 0xFFFF,
            "temperature_hotspot": 71,
            "indep_throttle_status": self.status,
        }

    def amdsmi_get_clock_info(self, handle: str, kind: str) -> dict[str, Any]:
        return {"clk": 2000, "max_clk": 2100}

    def amdsmi_get_gpu_driver_info(self, handle: str) -> dict[str, Any]:
        return {"driver_name": "amdgpu", "driver_version": "6.12.12"}


@pytest.mark.parametrize(
    ("status", "reasons"),
    [
        (0, set()),
        ("N/A", set()),
        ((1 << 64) - 1, set()),
        (1 << 1, {"power cap"}),
        (1 << 22, {"current limit"}),
        (1 << 36 | 1, {"hardware thermal slowdown", "power cap"}),
    ],
)
def test_an_amd_gpu_is_asked_through_amd_smi(status: int | str, reasons: set[str]) -> None:
    seen = watched(AmdSmiGpu(Smi(status), "0000:c1:00.0"))
    figures = {name: seen[name] for name in ("clock_hz", "max_clock_hz", "power_w", "temperature_c", "tool", "driver")}
    assert figures == {
        "clock_hz": pytest.approx(2.0e9),
        "max_clock_hz": 2.1e9,
        "power_w": 640.0,
        "temperature_c": 71.0,
        "tool": "amdsmi",
        "driver": "6.12.12",
    }
    assert set(seen["reasons"]) == reasons
    case = builder()
    case.take({"type": "telemetry", **seen, "seconds": 0.5})
    assert {metric.provenance.tool for metric in case.metrics} == {"amdsmi"}


def test_the_first_gpu_that_hip_sees_is_found_by_its_place_on_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    smi = Smi()
    monkeypatch.setattr(telemetry, "importlib", SimpleNamespace(import_module=lambda name: smi))
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    seen = telemetry.targets.KfdGpu(4, "gfx942", "", "0000:c1:00", "", 304, 8)
    monkeypatch.setattr(telemetry.targets, "amd_gpus", lambda: (seen,))
    assert (telemetry.open_amdsmi() or AmdSmiGpu(smi, ""))._handle == "0000:c1:00.0"
    monkeypatch.setattr(telemetry.targets, "amd_gpus", lambda: ())
    assert (telemetry.open_amdsmi() or AmdSmiGpu(smi, ""))._handle == "0000:03:00.0"


def test_a_gpu_that_tells_nothing_has_no_telemetry() -> None:
    class Silent:
        pass

    assert watched(AmdSmiGpu(Silent(), "")) is None
