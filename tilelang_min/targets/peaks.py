"""Datasheet ceilings of a device in units per second, for rooflines."""

from __future__ import annotations

from tilelang_min.targets.records import Device


def flops_per_second(device: Device, rate: str) -> float | None:
    """Dense floating-point (or integer) operations a second for ``matrix.float16``, ``vector.float32``, ...; None if
    unknown.

    Units x operations per clock x the clock at which the vendor states that rate; a fused multiply-add counts 2.
    """
    per_clock = device.flops_per_clock_per_unit.get(rate)
    if per_clock is None:
        return None
    return device.units * per_clock * device.clock_hz_by_rate.get(rate, device.clock_hz)


def dram_bytes_per_second(device: Device) -> float:
    """Device memory bandwidth, bytes a second."""
    return float(device.dram_bytes_per_s)


def shared_bytes_per_second(device: Device) -> float:
    """Shared memory bandwidth of all units together at the highest clock, bytes a second."""
    return float(device.units * device.shared_bytes_per_clock_per_unit * device.clock_hz)
