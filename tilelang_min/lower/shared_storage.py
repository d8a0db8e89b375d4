"""Where shared tiles lie: a static array for each, or one dynamic arena with all of them."""

from __future__ import annotations

from dataclasses import replace

from tvm import ir, tirx

from tilelang_min.ir.shared_layout import ARENA_ALIGNMENT, TILE_ALIGNMENT, placed
from tilelang_min.lower.context import Context
from tilelang_min.program import SharedBuffer


def allocate_shared(context: Context) -> None:
    """Storage of all shared tiles: static, or one dynamic arena where they exceed the static limit.

    Where bulk copies may fill them, tiles that need the arena's alignment lie in it too.
    """
    tiles = [buffer for buffer in context.program.buffers if buffer.scope == "shared"]
    layouts = [context.layout_of(buffer) for buffer in tiles]
    stages_of = [context.program.stages.get(buffer.name, 1) for buffer in tiles]
    offsets, end = placed(zip(layouts, stages_of, strict=True))
    for buffer, layout, stages, offset in zip(tiles, layouts, stages_of, offsets, strict=True):
        place = SharedBuffer(buffer.name, buffer.dtype, buffer.shape, stages, offset, layout.bytes(stages))
        if not layout.is_plain or (stages > 1 and layout.pitch != layout.elements):
            place = replace(
                place,
                layout=layout.describe(),
                panel=layout.panel,
                row_stride=layout.row_stride,
                pitch=layout.pitch,
                shift=layout.shift,
                mask=layout.mask,
            )
        context.shared.append(place)
    aligned = "tma" in context.target.features and any(layout.alignment > TILE_ALIGNMENT for layout in layouts)
    dynamic = context.target.kind == "cuda" and (end > context.target.shared.static_limit or aligned)
    arena = None
    if dynamic:
        context.shared_bytes_dynamic = end
        arena = tirx.decl_buffer(
            (end,), "uint8", context.fresh("shared_memory"), scope="shared.dyn", data_alignment=ARENA_ALIGNMENT
        )
        context.allocations.append(tirx.AllocBuffer(arena))
    for buffer, place, layout in zip(tiles, context.shared, layouts, strict=True):
        elements = place.bytes // layout.itemsize
        if arena is None:
            flat = tirx.decl_buffer(
                (elements,),
                buffer.tvm_dtype,
                context.fresh(buffer.name),
                scope="shared",
                data_alignment=TILE_ALIGNMENT,
            )
            context.allocations.append(tirx.AllocBuffer(flat))
        else:
            pointer_type = ir.PointerType(ir.PrimType(buffer.tvm_dtype), "shared.dyn")
            pointer = tirx.call_intrin(pointer_type, "tirx.handle_add_byte_offset", arena.data, place.offset)
            flat = tirx.decl_buffer(
                (elements,),
                buffer.tvm_dtype,
                context.fresh(buffer.name),
                scope="shared.dyn",
                data_alignment=TILE_ALIGNMENT,
            )
            context.allocations.append(tirx.DeclBuffer(flat, data=pointer))
        context.storage[buffer.name] = flat
