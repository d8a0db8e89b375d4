"""One table between the fields of KernelMetadata, the canonical metrics and the keys of workload files.

The last two are the same words.  Also turns the metadata of a case (its JSON form) into metric records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tileprof.metrics.catalogue import make
from tileprof.store.records import Metric, Provenance

METADATA_FIELDS: dict[str, str] = {
    "registers_per_thread": "registers.per_thread",
    "vgprs": "registers.vgpr",
    "agprs": "registers.agpr",
    "sgprs": "registers.sgpr",
    "shared_bytes_static": "shared.static_bytes",
    "shared_bytes_dynamic": "shared.dynamic_bytes",
    "spill_store_bytes": "spill.store_bytes",
    "spill_load_bytes": "spill.load_bytes",
    "spilled_vgprs": "spill.vgpr",
    "spilled_sgprs": "spill.sgpr",
    "stack_bytes": "scratch.bytes",
    "threads_per_block": "launch.threads_per_block",
    "grid": "launch.blocks",
    "max_blocks_per_unit": "occupancy.blocks_per_unit",
    "occupancy": "occupancy.theoretical",
    "code_bytes": "code.bytes",
    "compile_seconds": "compile.seconds",
    "bytes_min": "bytes.min",
    "flops": "flop.*",
    "instructions": "instructions.*",
}
"""Field of KernelMetadata -> metric; ``*`` stands for the keys of a field that is a dictionary."""

NOT_METRICS = ("target", "cluster", "occupancy_limiters", "toolchain", "schema_version")
"""Fields of KernelMetadata that are no numbers."""

_DERIVED = {
    "occupancy": "occupancy model of the target: registers, shared memory, threads and barriers of one block",
    "max_blocks_per_unit": "occupancy model of the target: registers, shared memory, threads and barriers of one block",
}


def metadata_metrics(metadata: dict[str, Any], version: str = "") -> list[Metric]:
    """Metric records of a kernel's static facts, whole kernel and per operation; fields that are None give none.

    ``metadata`` is ``KernelMetadata.to_json()``; ``version`` the version of the compiler that made it.  Per-operation rows
    are static instruction counts; instructions of no operation have access ``unattributed``, as measured ones have.
    """
    return list(_rows(metadata, version))


def _rows(metadata: dict[str, Any], version: str) -> Iterator[Metric]:
    static = Provenance("static", "tilelang_min", version)
    for field, name in METADATA_FIELDS.items():
        value = metadata.get(field)
        if value is None:
            continue
        if field == "instructions":
            yield from _instructions(value, static)
        elif field == "flops":
            for dtype, count in value.items():
                yield from _one(make(f"flop.{dtype}", float(count), static))
        elif field == "grid":
            if any(isinstance(extent, str) for extent in value):
                continue  # how many blocks there are is known at launch alone
            yield from _one(make(name, float(math.prod(value)), static))
        elif field == "compile_seconds":
            yield from _one(make(name, float(sum(value.values())), Provenance("measured", "tilelang_min", version)))
        elif field in _DERIVED:
            yield from _one(make(name, float(value), Provenance("derived", "tilelang_min", version, _DERIVED[field])))
        else:
            yield from _one(make(name, float(value), static))


def _instructions(instructions: dict[str, Any], static: Provenance) -> Iterator[Metric]:
    if (fraction := instructions.get("attributed")) is not None:
        yield from _one(make("listing.attributed", float(fraction), static))
    for klass, count in (instructions.get("total") or {}).items():
        yield from _one(make(f"instructions.{klass}", float(count), static))
    for key, counts in (instructions.get("by_operation") or {}).items():
        unattributed = str(key).lower() == "none"
        for klass, count in counts.items():
            yield from _one(
                make(
                    f"instructions.{klass}",
                    float(count),
                    static,
                    operation=None if unattributed else int(key),
                    access="unattributed" if unattributed else None,
                    flag="unattributed" if unattributed else None,
                )
            )


def _one(metric: Metric | None) -> Iterator[Metric]:
    if metric is not None:
        yield metric
