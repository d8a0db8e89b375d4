"""What the GPU does while it is timed: clock, temperature, power, and why it is slower than it could be.

NVIDIA's GPUs are asked through NVML, AMD's through AMD SMI, from a thread of its own every few milliseconds.  Without the vendor's
Python package (``nvidia-ml-py``, ``amdsmi``), or where the driver refuses, there is no telemetry, and the timing is as it was.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from tilelang_min import targets

INTERVAL_S = 0.004

REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Reasons for lower clocks (NVML API, nvmlClocksEventReasons) that are not the user's own settings or an idle GPU."""

AMD_REASONS = ((0, 8, "power cap"), (16, 24, "current limit"), (32, 46, "hardware thermal slowdown"))
"""The same of AMD's ``indep_throttle_status``: first bit, bit behind the last, reason (Linux, amdgpu_smu.h, SMU_THROTTLER_*)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one look at the GPU gives; what it does not give is None."""

    clock_hz: float | None
    power_w: float | None
    reasons: tuple[str, ...]


class Gpu(Protocol):
    """A GPU that can be asked.  ``tool`` is what asks it."""

    tool: str

    def read(self) -> Reading: ...
    def temperature_c(self) -> float | None: ...
    def max_clock_hz(self) -> float | None: ...
    def driver(self) -> str: ...


def first_visible(variable: str, environment: Mapping[str, str] | None = None) -> str:
    """Number or UUID of the first GPU that a vendor's environment variable leaves visible: what launches use."""
    environment = os.environ if environment is None else environment
    return environment.get(variable, "").split(",")[0].strip() or "0"


class NvmlGpu:
    """A GPU through NVML's Python module."""

    tool = "nvml"

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle

    def _ask(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, name)(self._handle, *arguments)
        except Exception:  # a value that this GPU or driver does not give
            return None

    def read(self) -> Reading:
        """Clock of the multiprocessors, power, and what holds the clock down."""
        clock = self._ask("nvmlDeviceGetClockInfo", 1)  # NVML_CLOCK_SM
        power = self._ask("nvmlDeviceGetPowerUsage")
        bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        reasons = tuple(reason for bit, reason in REASONS.items() if bits & bit)
        return Reading(clock * 1e6 if clock else None, power / 1e3 if power else None, reasons)

    def temperature_c(self) -> float | None:
        """Degrees of the chip."""
        found: float | None = self._ask("nvmlDeviceGetTemperature", 0)
        return found

    def max_clock_hz(self) -> float | None:
        """The highest clock of the multiprocessors."""
        highest = self._ask("nvmlDeviceGetMaxClockInfo", 1)
        return highest * 1e6 if highest else None

    def driver(self) -> str:
        """Version of the driver, "" where it is not told."""
        try:
            driver = self._nvml.nvmlSystemGetDriverVersion()
        except Exception:  # without a version the figures still hold
            return ""
        return driver.decode() if isinstance(driver, bytes) else str(driver)


def open_nvml() -> NvmlGpu | None:
    """The first GPU that CUDA sees, through NVML; None where there is none."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        chosen = first_visible("CUDA_VISIBLE_DEVICES")
        if chosen.isdigit():
            return NvmlGpu(nvml, nvml.nvmlDeviceGetHandleByIndex(int(chosen)))
        return NvmlGpu(nvml, nvml.nvmlDeviceGetHandleByUUID(chosen))
    except Exception:  # not installed, no driver, no permission: each binding version raises its own
        return None


class AmdSmiGpu:
    """A GPU through AMD SMI's Python module, whose ``amdsmi_get_gpu_metrics_info`` has all readings at once.

    Written from its documentation: no AMD GPU was at hand.
    """

    tool = "amdsmi"

    def __init__(self, smi: Any, handle: Any) -> None:
        self._smi, self._handle = smi, handle

    def _ask(self, name: str, *arguments: Any) -> Mapping[str, Any]:
        try:
            found: Mapping[str, Any] = getattr(self._smi, name)(self._handle, *arguments)
        except Exception:  # a value that this GPU or driver does not give
            return {}
        return found

    def read(self) -> Reading:
        """Mean clock of the dies, power of the socket, and what holds the clock down."""
        values = self._ask("amdsmi_get_gpu_metrics_info")
        clocks = _numbers(values.get("current_gfxclks") or ()) or _numbers([values.get("current_gfxclk")])
        power = _numbers([values.get("current_socket_power")]) or _numbers([values.get("average_socket_power")])
        status = values.get("indep_throttle_status")
        bits = status if isinstance(status, int) and status != (1 << 64) - 1 else 0
        reasons = tuple(why for first, end, why in AMD_REASONS if bits >> first & ((1 << end - first) - 1))
        return Reading(sum(clocks) / len(clocks) * 1e6 if clocks else None, power[0] if power else None, reasons)

    def temperature_c(self) -> float | None:
        """Degrees of the hottest place of the chip."""
        found = _numbers([self._ask("amdsmi_get_gpu_metrics_info").get("temperature_hotspot")])
        return found[0] if found else None

    def max_clock_hz(self) -> float | None:
        """The highest clock of the compute units."""
        try:
            kind = self._smi.AmdSmiClkType.GFX
        except AttributeError:
            return None
        found = _numbers([self._ask("amdsmi_get_clock_info", kind).get("max_clk")])
        return found[0] * 1e6 if found else None

    def driver(self) -> str:
        """Version of the driver, "" where it is not told."""
        return str(self._ask("amdsmi_get_gpu_driver_info").get("driver_version", ""))


_NO_VALUE = 0xFFFF
"""What a metric of 16 bits holds where there is none; the Python module says ``N/A`` as well."""


def _numbers(values: Iterable[Any]) -> list[float]:
    """Those that are readings."""
    return [float(value) for value in values if isinstance(value, int | float) and 0 < value < _NO_VALUE]


def open_amdsmi() -> AmdSmiGpu | None:
    """The first GPU that HIP sees, through AMD SMI; None where there is none."""
    try:
        smi = importlib.import_module("amdsmi")
        smi.amdsmi_init()
        handles = list(smi.amdsmi_get_processor_handles())
        seen = targets.kfd.visible(targets.amd_gpus())
        for handle in handles:
            if seen and str(smi.amdsmi_get_gpu_device_bdf(handle)).lower().startswith(seen[0].pci):
                return AmdSmiGpu(smi, handle)
        chosen = first_visible("HIP_VISIBLE_DEVICES")
        return AmdSmiGpu(smi, handles[int(chosen)])
    except Exception:  # not installed, no driver, no permission
        return None


OPENERS: dict[str, Callable[[], Gpu | None]] = {"cuda": open_nvml, "hip": open_amdsmi}
"""What opens the first GPU of a kind."""


class Watch:
    """Samples the GPU inside the block; :meth:`summary` says what it saw, None where it saw nothing."""

    def __init__(self, opened: Callable[[], Gpu | None] = open_nvml) -> None:
        self._gpu = opened()
        self._stop = threading.Event()
        self._started = self._seconds = 0.0
        self._thread: threading.Thread | None = None
        self._clocks: list[float] = []
        self._powers: list[float] = []
        self._reasons: dict[str, int] = {}
        self._temperature: float | None = None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if self._gpu is not None:
            self._thread = threading.Thread(target=self._watch, args=(self._gpu,), daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds = time.monotonic() - self._started
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, gpu: Gpu) -> None:
        while not self._stop.is_set():
            self.sample(gpu)
            self._stop.wait(INTERVAL_S)
        self._temperature = gpu.temperature_c()

    def sample(self, gpu: Gpu) -> None:
        """Ask once."""
        reading = gpu.read()
        if reading.clock_hz:
            self._clocks.append(reading.clock_hz)
        if reading.power_w:
            self._powers.append(reading.power_w)
        for reason in reading.reasons:
            self._reasons[reason] = self._reasons.get(reason, 0) + 1

    def summary(self) -> dict[str, Any] | None:
        """``clock_hz`` and ``power_w`` (means), ``max_clock_hz``, ``temperature_c``, ``samples``, ``seconds``, ``tool``,
        ``driver``, and ``reasons``: how many samples saw each."""
        if self._gpu is None or not self._clocks:
            return None
        return {
            "clock_hz": sum(self._clocks) / len(self._clocks),
            "max_clock_hz": self._gpu.max_clock_hz(),
            "power_w": sum(self._powers) / len(self._powers) if self._powers else None,
            "temperature_c": self._temperature,
            "samples": len(self._clocks),
            "seconds": self._seconds,
            "tool": self._gpu.tool,
            "driver": self._gpu.driver(),
            "reasons": dict(self._reasons),
        }
