"""The thread program: what ``lower/`` makes, ``codegen/`` prints and ``simulate/`` executes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilelang_min.program.listing import Listing
from tilelang_min.program.metadata import Resources
from tilelang_min.program.operation import TileOperation

if TYPE_CHECKING:
    from tilelang_min.targets import Target

OPERATION_MARKER = "__tl_op"
"""Extern name of the marker statement ``Evaluate(call_extern("void", OPERATION_MARKER, operation_id))``.

A marker says: every following statement, in program order and across the ends of loops and branches, belongs to this
operation, until the next marker.  Lowering writes a marker wherever the operation changes, also at the top of a loop body
and behind a loop.
"""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor parameter of the kernel, in call order.  ``access`` is ``in``, ``out`` or ``inout``."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    access: str

    @property
    def elements(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True, slots=True)
class SharedBuffer:
    """A tile in shared memory as the thread program sees it: flat, in elements of ``dtype``.

    ``offset`` is the byte offset in the block's shared memory, ``bytes`` its whole size with padding and all stages;
    ``shape`` is one stage as the author wrote it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stages: int
    offset: int
    bytes: int


@dataclass(frozen=True)
class ThreadProgram:
    """A kernel as a TVM TIRx function, and what a reader of that function needs to know.

    ``function`` is a ``tvm.tirx.PrimFunc``; its parameters are pointers named as ``parameters`` (GPU), or those and two
    int32 ``block_begin``, ``block_end`` (CPU).  ``docs/architecture.md`` lists the node kinds it may hold.
    """

    name: str
    target: Target
    function: Any = field(repr=False)
    parameters: tuple[Parameter, ...]
    grid: tuple[int, int, int]
    threads: int
    shared: tuple[SharedBuffer, ...]
    shared_bytes_dynamic: int
    operations: tuple[TileOperation, ...]


@dataclass(frozen=True)
class CompiledKernel:
    """What a code generator returns.

    ``binary_kind`` is ``cubin``, ``hsaco`` or ``so``; ``source_language`` ``cuda`` or ``llvm``.  ``seconds`` are wall times
    by step, ``toolchain`` versions by tool, ``log`` the vendor compiler's output.
    """

    symbol: str
    binary: bytes = field(repr=False)
    binary_kind: str
    source: str = field(repr=False)
    source_language: str
    listing: Listing = field(repr=False)
    resources: Resources
    seconds: dict[str, float]
    toolchain: dict[str, str]
    log: str = field(repr=False, default="")
