"""``kernel.explain()``: what the compiler decided and why, and what limits the kernel, as text for people.

Everything is in the bundle: no compiler is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilelang_min.targets import Target, occupancy

if TYPE_CHECKING:
    from tilelang_min.program import KernelMetadata, TileOperation
    from tilelang_min.runtime.bundle import Bundle

_PRODUCTS = {
    "mma": "tensor cores",
    "wgmma": "tensor cores, by warp groups",
    "mfma": "matrix cores",
    "outer": "no matrix instruction: fused multiply-adds of register blocks",
    "plain": "no matrix instruction: fused multiply-adds, element by element",
    "vector": "vector instructions of the processor",
}


def explain(bundle: Bundle, target: Target) -> str:
    """The whole text; sections that say nothing of this kernel are left out."""
    record, metadata = bundle.complete().record, bundle.metadata
    decided = record.get("decisions", {})
    operations = bundle.operations
    x, y, z = (f"({extent})" if isinstance(extent, str) else extent for extent in record["grid"])
    threads = "" if target.kind == "cpu" else f", {record['threads']} threads a block"
    sections = {
        "": [f"{record['name']} for {record['target']}: grid {x}x{y}x{z}{threads}"],
        _memory_name(target): list(_shared(bundle, decided, metadata, target)),
        "fragments (registers of all threads of a block)": [
            f"{name}: {text}" for name, text in decided.get("fragments", {}).items()
        ],
        "pipelines": [line for item in decided.get("pipelines", ()) for line in _pipeline(item, operations)],
        "matrix products": [line for item in decided.get("products", ()) for line in _product(item, operations)],
        "warp groups": decided.get("warp_groups", []),
        "barriers": list(_barriers(decided.get("barriers", ()), operations)),
        "resources": list(_resources(metadata, target)),
        "notes": list(record.get("notes", ())),
    }
    return "\n\n".join(
        "\n".join([title, *(f"  {line}" for line in lines)] if title else lines)
        for title, lines in sections.items()
        if lines
    )


def _memory_name(target: Target) -> str:
    return {"cuda": "shared memory", "hip": "LDS", "cpu": "tiles (memory of the task)"}[target.kind]


def _place(operation: TileOperation) -> str:
    return f"line {operation.location.line}, {operation.label}"


def _shared(bundle: Bundle, decided: dict[str, Any], metadata: KernelMetadata, target: Target) -> Iterator[str]:
    tiles = sorted(bundle.shared, key=lambda tile: -tile.bytes)
    layouts = decided.get("shared_layouts", {})
    for tile in tiles:
        stages = f" x {tile.stages} stages" if tile.stages > 1 else ""
        layout = layouts.get(tile.name, "plain rows") if target.kind != "cpu" else "plain rows"
        yield (
            f"{tile.name}: {tile.dtype} {'x'.join(map(str, tile.shape))}{stages}, {tile.bytes:,} bytes "
            f"at {tile.offset:,}; {layout}"
        )
    used = (metadata.shared_bytes_static or 0) + (metadata.shared_bytes_dynamic or 0)
    if tiles and target.kind != "cpu":
        yield f"in all {used:,} of the {target.shared.block_limit:,} bytes that a block may have"


def _pipeline(item: dict[str, Any], operations: Sequence[TileOperation]) -> Iterator[str]:
    loop = operations[item["operation"]]
    iterations = "" if item["iterations"] is None else f", {item['iterations']} iterations"
    yield f"{_place(loop)}{iterations}: num_stages={item['asked']}, {item['stages']} used; {item['how']}"
    for number in item["ahead"]:
        yield f"  ahead by {item['stages'] - 1}: {_place(operations[number])}"
    if item.get("operands"):
        yield f"  {item['operands']}"
    for number, reason in item["stay"].items():
        yield f"  in step: {_place(operations[int(number)])}: {reason}"


def _product(item: dict[str, Any], operations: Sequence[TileOperation]) -> Iterator[str]:
    m, n, k = item["shape"]
    a, b, c = item["types"]
    yield f"{_place(operations[item['operation']])}: {m}x{n}x{k}, {a} x {b} -> {c}"
    instruction = f" ({item['instruction']})" if item["instruction"] else ""
    yield f"  taken: {_PRODUCTS.get(item['kind'], item['kind'])}{instruction}"
    if item["layout"]:
        yield f"  C: {item['layout']}"
    for reason in item["refused"]:
        yield f"  refused: {reason}"


def _barriers(items: Sequence[dict[str, Any]], operations: Sequence[TileOperation]) -> Iterator[str]:
    for item in items:
        yield f"before {_place(operations[item['operation']])}" + (f": {item['reason']}" if item["reason"] else "")


def _resources(metadata: KernelMetadata, target: Target) -> Iterator[str]:
    if metadata.registers_per_thread is not None:
        parts = [("VGPRs", metadata.vgprs), ("AGPRs", metadata.agprs), ("SGPRs", metadata.sgprs)]
        detail = ", ".join(f"{count} {name}" for name, count in parts if count is not None)
        yield (
            f"registers: {metadata.registers_per_thread} of {target.registers.per_thread} a thread"
            + (f" ({detail})" if detail else "")
        )
    spills = [
        ("bytes stored", metadata.spill_store_bytes),
        ("bytes loaded", metadata.spill_load_bytes),
        ("VGPRs", metadata.spilled_vgprs),
        ("SGPRs", metadata.spilled_sgprs),
    ]
    known = [(what, count) for what, count in spills if count is not None]
    if known:
        yield "spills: " + (", ".join(f"{count} {what}" for what, count in known if count) or "none")
    if metadata.stack_bytes:
        yield f"stack: {metadata.stack_bytes:,} bytes a {'task' if target.kind == 'cpu' else 'thread'}"
    yield from _occupancy(metadata, target)
    total = metadata.instructions["total"]
    most = sorted(total.items(), key=lambda item: -item[1])[:6]
    yield f"instructions: {sum(total.values()):,} ({', '.join(f'{count} {name}' for name, count in most)})"


def _occupancy(metadata: KernelMetadata, target: Target) -> Iterator[str]:
    if metadata.occupancy is None or target.limits is None:
        return
    unit = "CU" if target.kind == "hip" else "SM"
    yield (
        f"occupancy: {metadata.occupancy:.0%}, {metadata.max_blocks_per_unit} blocks a {unit}; "
        f"limited by {', '.join(metadata.occupancy_limiters)}"
    )
    allowed = occupancy(
        target,
        threads=metadata.threads_per_block,
        registers_per_thread=metadata.registers_per_thread,
        shared_bytes=(metadata.shared_bytes_static or 0) + (metadata.shared_bytes_dynamic or 0),
    ).limits
    for name, blocks in sorted(allowed.items(), key=lambda item: item[1]):
        yield f"  {name}: {blocks} blocks"
