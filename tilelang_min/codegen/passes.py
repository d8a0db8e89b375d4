"""The passes of TVM that every printer runs on a thread program.  They add and move no barrier."""

from __future__ import annotations

from typing import Any

# Loops are expanded where they are marked, nowhere else.  By default TVM expands a loop too if statements times iterations are
# no more than none, which it counts in 32 bits: 2^31 and more are negative, and the loop would be written out for ever.
_MARKED_LOOPS_ALONE = {"tirx.UnrollLoop": {"auto_max_depth": -1}}


def lowered(module: Any, *, flatten: bool = False) -> Any:
    """The IRModule with vectors and intrinsics as printers take them and marked loops expanded; ``flatten``: buffers too."""
    from tvm.ir.transform import PassContext
    from tvm.tirx import transform

    with PassContext(config=_MARKED_LOOPS_ALONE):
        for step in (
            transform.LowerTIRxOpaque(),
            *([transform.FlattenBuffer()] if flatten else []),
            transform.VectorizeLoop(True),
            transform.UnrollLoop(),
            transform.LowerIntrin(),
        ):
            module = step(module)
    return module
