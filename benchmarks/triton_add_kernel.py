"""An addition in Triton, for ``launch.py``: Triton reads the source of a kernel, so it stands in a file of its own."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(a, b, c, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """c = a + b for one block."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + offsets, tl.load(a + offsets) + tl.load(b + offsets))
