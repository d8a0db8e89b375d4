"""Triton Proton's ``.hatchet``: a tree of scopes and kernels with sums of time, FLOP and bytes that the program itself stated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tileprof.collect.profile import ForeignLaunch, ForeignProfile, SourceValue
from tileprof.collect.scrub import kernel_name, path
from tileprof.errors import MeasurementInvalid, ProfileFormatError
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance

TOOL = "proton"
_INTERNAL = re.compile(r"^__proton_")
_PLACE = re.compile(r"^(.*):([^:@]+)@(\d+)$")  # file:function@line
_FLOPS = re.compile(r"^flops(\d*)$")
_FLOP_TYPES = {"8": "float8_e4m3", "16": "float16", "32": "float32", "64": "float64"}
_KEYS = {"frame", "metrics", "children"}


def is_hatchet(record: Any) -> bool:
    """Whether a JSON value is such a tree: a list whose first element has frame, metrics and children."""
    return isinstance(record, list) and bool(record) and isinstance(record[0], dict) and set(record[0]) >= _KEYS


def parse(record: Any, file: Path) -> ForeignProfile:
    """The profile in a tree that was read from ``file``.  Raises :class:`ProfileFormatError` for another form,
    :class:`MeasurementInvalid` without a kernel.
    """
    if not is_hatchet(record):
        raise ProfileFormatError(f"{file} is no tree of Proton")
    devices: Mapping[str, Mapping[str, Any]] = record[1] if len(record) > 1 and isinstance(record[1], dict) else {}
    launches: list[ForeignLaunch] = []
    internal = 0
    try:
        for node, scopes in _nodes(record[0]):
            if any(_INTERNAL.match(scope) for scope in scopes):
                internal += 1  # Proton's own bookkeeping
                continue
            launch = _launch(node, scopes, devices, len(launches))
            if launch is not None:
                launches.append(launch)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ProfileFormatError(f"{file} has a form that is not known here: {type(error).__name__}: {error}") from None
    if not launches:
        raise MeasurementInvalid(
            f"{file} holds no kernel", remedy="launch kernels between proton.start() and proton.finalize()"
        )
    notes = [f"{internal} kernels that Proton launched for itself were left out"] if internal else []
    gpus = tuple(
        {
            "vendor": "nvidia" if kind == "CUDA" else "amd",
            "name": _target(kind, info).partition(":")[2],
            "arch": _arch(kind, info),
        }
        for kind, found in devices.items()
        for info in found.values()
    )
    return ForeignProfile("Proton hatchet", TOOL, "", tuple(launches), gpus=gpus, notes=tuple(notes))


def _nodes(root: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...]]]:
    """Nodes with a time, each with the names of the scopes around it, outermost first."""
    stack: list[tuple[Mapping[str, Any], tuple[str, ...]]] = [(root, ())]
    while stack:
        node, scopes = stack.pop()
        metrics = node.get("metrics") or {}
        if _time(metrics) and "device_type" in metrics:
            yield node, scopes
        name = str(node["frame"]["name"])
        inner = scopes if name == "ROOT" else (*scopes, name)
        stack.extend((child, inner) for child in reversed(node.get("children") or []))


def _time(metrics: Mapping[str, Any]) -> float:
    """Nanoseconds; the unit is in the name."""
    for name, value in metrics.items():
        found = re.match(r"^time \((ns|us|ms|s)\)", name)
        if found and isinstance(value, int | float):
            return float(value) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[found[1]]
    return 0.0


def _launch(
    node: Mapping[str, Any], scopes: tuple[str, ...], devices: Mapping[str, Mapping[str, Any]], index: int
) -> ForeignLaunch | None:
    metrics = node["metrics"]
    kind, number_of = str(metrics["device_type"]), str(metrics.get("device_id", "0"))
    info = devices.get(kind, {}).get(number_of, {})
    count = int(metrics.get("count") or 1)
    total = _time(metrics)
    name, line = _place(str(node["frame"]["name"]))
    clock = info.get("clock_rate")
    rows = tuple(_metrics(metrics, total, count, index))
    return ForeignLaunch(
        index=index,
        kernel=name,
        target=_target(kind, info),
        device="",
        count=count,
        metrics=rows,
        lines=(SourceValue(line[0], line[1], "", {}),) if line else (),
        ranges=tuple(path(scope) for scope in scopes),
        max_clock_hz=float(clock) * 1e3 if clock else None,  # in kHz
    )


def _place(frame: str) -> tuple[str, tuple[str, int] | None]:
    found = _PLACE.match(frame)
    if found is None:
        return kernel_name(frame), None
    return found[2], (path(found[1]), int(found[3]))


def _metrics(metrics: Mapping[str, Any], total: float, count: int, index: int) -> Iterator[Metric]:
    """Means of one launch; FLOP and bytes are what the program states, not what was counted."""
    measured = Provenance("measured", TOOL, "", f"mean of {count} launches")
    stated = Provenance("derived", TOOL, "", f"stated by the program's metadata hook, mean of {count} launches")
    made = [
        make("time.profiled_ns", total / count, measured, launch=index),
        make("launch.count", count, measured, launch=index),
    ]
    for name, value in metrics.items():
        if not isinstance(value, int | float) or not value:
            continue
        if name == "bytes":
            made.append(make("bytes.min", value / count, stated, launch=index))
        elif (found := _FLOPS.match(name)) and found[1] in _FLOP_TYPES:
            made.append(make(f"flop.{_FLOP_TYPES[found[1]]}", value / count, stated, launch=index))
    yield from (metric for metric in made if metric is not None)


def _arch(kind: str, info: Mapping[str, Any]) -> str:
    arch = str(info.get("arch", ""))
    return f"sm_{arch}" if kind == "CUDA" and arch.isdigit() else arch


def _target(kind: str, info: Mapping[str, Any]) -> str:
    family = "cuda" if kind == "CUDA" else "hip"
    arch = _arch(kind, info)
    return f"{family}:{arch}" if arch else family
