"""Static facts about a compiled kernel."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA_VERSION = 1

Extent = int | str
"""A number, or text in the names of runtime dimensions that :mod:`tilelang_min.program.sizes` evaluates."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What the binary and the vendor compiler's log say a kernel uses.  None means that the target cannot know it.

    Units: registers are counts a thread; ``shared_bytes_*`` bytes a block; spills and stack bytes a thread.
    """

    registers_per_thread: int | None = None
    vgprs: int | None = None
    agprs: int | None = None
    sgprs: int | None = None
    shared_bytes_static: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    spilled_vgprs: int | None = None
    spilled_sgprs: int | None = None
    stack_bytes: int | None = None
    code_bytes: int | None = None


@dataclass(frozen=True)
class KernelMetadata:
    """Everything known about a kernel without running it.  ``None`` is "this target cannot know", never zero.

    Units: registers a thread, bytes a block for shared memory, bytes a thread for spills and stack, ``flops`` (by type) and
    ``bytes_min`` a launch, ``compile_seconds`` by step.  ``instructions`` is static: ``{"total": {class: n}, "by_operation":
    {id: {class: n}}, "attributed": fraction}``; the key "none" of ``by_operation`` holds what belongs to no operation.
    """

    target: str
    registers_per_thread: int | None
    vgprs: int | None
    agprs: int | None
    sgprs: int | None
    shared_bytes_static: int | None
    shared_bytes_dynamic: int | None
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    spilled_vgprs: int | None
    spilled_sgprs: int | None
    stack_bytes: int | None
    threads_per_block: int
    grid: tuple[Extent, Extent, Extent]
    cluster: tuple[int, int, int] | None
    max_blocks_per_unit: int | None
    occupancy: float | None
    occupancy_limiters: tuple[str, ...]
    instructions: dict[str, Any]
    code_bytes: int | None
    compile_seconds: dict[str, float]
    toolchain: dict[str, str]
    flops: dict[str, int] | None
    bytes_min: int | None
    schema_version: int = field(default=SCHEMA_VERSION)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary; :meth:`from_json` is its inverse."""
        record = asdict(self)
        for key in ("grid", "cluster", "occupancy_limiters"):
            if record[key] is not None:
                record[key] = list(record[key])
        return record

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> KernelMetadata:
        """The metadata that :meth:`to_json` wrote."""
        values = dict(record)
        for key in ("grid", "cluster", "occupancy_limiters"):
            if values[key] is not None:
                values[key] = tuple(values[key])
        return cls(**values)
