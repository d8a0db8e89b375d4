"""What the GPU does while it is timed: clock, temperature, power, and why it is slower than it could be, through NVML.

NVML is asked from a thread of its own every few milliseconds; without the package ``nvidia-ml-py``, or where the driver refuses,
there is no telemetry, and the timing is as it was.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

INTERVAL_S = 0.004

REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Reasons for lower clocks (NVML API, nvmlClocksEventReasons) that are not the user's own settings or an idle GPU."""


def first_visible(variable: str, environment: Mapping[str, str] | None = None) -> str:
    """Number or UUID of the first GPU that a vendor's environment variable leaves visible: what launches use."""
    environment = os.environ if environment is None else environment
    return environment.get(variable, "").split(",")[0].strip() or "0"


def open_nvml() -> tuple[Any, Any] | None:
    """NVML's Python module, started, and a handle of the first GPU that CUDA sees; None where there is none."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        chosen = first_visible("CUDA_VISIBLE_DEVICES")
        if chosen.isdigit():
            return nvml, nvml.nvmlDeviceGetHandleByIndex(int(chosen))
        return nvml, nvml.nvmlDeviceGetHandleByUUID(chosen)
    except Exception:  # not installed, no driver, no permission: each binding version raises its own
        return None


class Watch:
    """Samples the GPU inside the block; :meth:`summary` says what it saw, None where it saw nothing."""

    def __init__(self, opened: Callable[[], tuple[Any, Any] | None] = open_nvml) -> None:
        found = opened()
        self._nvml: Any = found[0] if found is not None else None
        self._handle: Any = found[1] if found is not None else None
        self._stop = threading.Event()
        self._started = self._seconds = 0.0
        self._thread: threading.Thread | None = None
        self._clocks: list[float] = []
        self._powers: list[float] = []
        self._reasons: dict[str, int] = {}
        self._temperature: float | None = None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if self._nvml is not None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds = time.monotonic() - self._started
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _ask(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, name)(self._handle, *arguments)
        except Exception:  # a value that this GPU or driver does not give
            return None

    def _watch(self) -> None:
        while not self._stop.is_set():
            self.sample()
            self._stop.wait(INTERVAL_S)
        self._temperature = self._ask("nvmlDeviceGetTemperature", 0)

    def sample(self) -> None:
        """Ask once."""
        clock = self._ask("nvmlDeviceGetClockInfo", 1)  # NVML_CLOCK_SM
        power = self._ask("nvmlDeviceGetPowerUsage")
        bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        if clock:
            self._clocks.append(clock * 1e6)
        if power:
            self._powers.append(power / 1e3)
        for bit, reason in REASONS.items():
            if bits and bits & bit:
                self._reasons[reason] = self._reasons.get(reason, 0) + 1

    def summary(self) -> dict[str, Any] | None:
        """``clock_hz`` and ``power_w`` (means), ``max_clock_hz``, ``temperature_c``, ``samples``, ``seconds``, ``driver``, and
        ``reasons``: how many samples saw each."""
        if self._nvml is None or not self._clocks:
            return None
        highest = self._ask("nvmlDeviceGetMaxClockInfo", 1)
        try:
            driver = self._nvml.nvmlSystemGetDriverVersion()
        except Exception:  # without a version the figures still hold
            driver = ""
        return {
            "clock_hz": sum(self._clocks) / len(self._clocks),
            "max_clock_hz": highest * 1e6 if highest else None,
            "power_w": sum(self._powers) / len(self._powers) if self._powers else None,
            "temperature_c": self._temperature,
            "samples": len(self._clocks),
            "seconds": self._seconds,
            "driver": driver.decode() if isinstance(driver, bytes) else str(driver),
            "reasons": dict(self._reasons),
        }
