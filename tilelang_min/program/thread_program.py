"""The thread program: what ``lower/`` makes, ``codegen/`` prints and ``simulate/`` executes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilelang_min.errors import LaunchError
from tilelang_min.program.listing import Listing
from tilelang_min.program.metadata import Extent, Resources
from tilelang_min.program.operation import TileOperation

if TYPE_CHECKING:
    from tilelang_min.targets import Target

STREAM_ATTRIBUTE = "tl.stream"
"""Attribute of a CPU's function: names of parameters, blanks between, whose vector stores should go past the caches."""

OPERATION_MARKER = "__tl_op"
"""Extern name of the marker statement ``Evaluate(call_extern("void", OPERATION_MARKER, operation_id))``.

A marker says: every following statement, in program order and across the ends of loops and branches, belongs to this
operation, until the next marker.  Lowering writes a marker wherever the operation changes, also at the top of a loop body
and behind a loop.
"""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor parameter of the kernel, in call order.  ``access`` is ``in``, ``out`` or ``inout``.

    A dimension that is known at launch alone is the name of its size.
    """

    name: str
    dtype: str
    shape: tuple[Extent, ...]
    access: str

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape in numbers; LaunchError where a dimension is known at launch alone."""
        if all(isinstance(extent, int) for extent in self.shape):
            return tuple(extent for extent in self.shape if isinstance(extent, int))
        raise LaunchError(
            f"parameter {self.name} has the shape {self.shape}, which is known at launch alone",
            remedy="pass tensors, or give sizes",
        )

    @property
    def elements(self) -> int:
        """Number of elements; LaunchError as for :attr:`extents`."""
        count = 1
        for extent in self.extents:
            count *= extent
        return count


@dataclass(frozen=True, slots=True)
class SharedBuffer:
    """A tile in shared memory as the thread program sees it: flat, in elements of ``dtype``.

    ``offset`` is the byte offset in the block's shared memory, ``bytes`` its whole size with padding and all stages;
    ``shape`` is one stage as the author wrote it.  ``layout`` says for people where its elements lie.  For programs the numbers of
    ``ir/shared_layout.py``, in elements: panels of ``panel`` columns, rows ``row_stride`` apart, in each unit ``u`` of 16 bytes
    of row r at ``u ^ (r >> shift & mask)`` (``r << -shift`` where it is negative), stages ``pitch`` apart; 0 (panel, stride, pitch)
    is row after row as ``shape`` says.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stages: int
    offset: int
    bytes: int
    layout: str = "plain rows"
    panel: int = 0
    row_stride: int = 0
    pitch: int = 0
    shift: int = 0
    mask: int = 0


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor map of NVIDIA's tensor memory accelerator: how boxes of one parameter travel to shared memory and back.

    ``name`` is the kernel parameter that holds the map, ``parameter`` the tensor it describes.  ``shape`` and ``box`` are in
    elements, outermost dimension first, of a dense row-major view of the tensor; ``swizzle`` is 0, 32, 64 or 128 bytes, and then
    the innermost extent of the box is at most that many bytes.  Elements out of range read as zero and are not written.
    ``promotion`` are the bytes, 128 or 256, to which the second-level cache extends what it misses.
    """

    name: str
    parameter: str
    dtype: str
    shape: tuple[Extent, ...]
    box: tuple[int, ...]
    swizzle: int
    promotion: int = 256

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape in numbers; LaunchError where a dimension is known at launch alone."""
        return Parameter(self.parameter, self.dtype, self.shape, "in").extents

    def at(self, sizes: Mapping[str, int]) -> TensorMap:
        """The map with these sizes in place of names of runtime dimensions."""
        shape = tuple(sizes[extent] if isinstance(extent, str) else extent for extent in self.shape)
        return replace(self, shape=shape)


@dataclass(frozen=True)
class ThreadProgram:
    """A kernel as a TVM TIRx function, and what a reader of that function needs to know.

    ``function`` is a ``tvm.tirx.PrimFunc``; its parameters are pointers named as ``parameters`` (GPU), behind them the maps
    named as ``tensor_maps`` (NVIDIA), or pointers and two int32 ``block_begin``, ``block_end`` (CPU).  ``cluster`` is how many
    blocks, in each direction, start together and see one another's shared memory.
    ``consumer_threads``: those that the author asked for, where a warp group behind them only brings tiles (None: there is none).
    ``docs/architecture.md`` lists the node kinds it may hold.

    ``sizes`` names the runtime dimensions, int32 parameters of the function behind the pointers; ``extents`` is then the grid in
    terms of them, and ``grid`` that of a launch where all of them are 1.
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
    tensor_maps: tuple[TensorMap, ...] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)
    consumer_threads: int | None = None
    sizes: tuple[str, ...] = ()
    extents: tuple[Extent, Extent, Extent] | None = None


@dataclass(frozen=True)
class CompiledKernel:
    """What a code generator returns.

    ``binary_kind`` is ``cubin``, ``hsaco`` or ``so``; ``source_language`` ``cuda`` or ``llvm``; ``syntax`` that of the listing.
    ``disassemble`` makes the listing: at once where ``listing_is_quick``, else by a process that takes about as long as
    compiling did, so that who only launches should not wait for it.  ``seconds`` are wall times by step, ``toolchain`` versions
    by tool, ``log`` the vendor compiler's output.
    """

    symbol: str
    binary: bytes = field(repr=False)
    binary_kind: str
    source: str = field(repr=False)
    source_language: str
    syntax: str
    disassemble: Callable[[], Listing] = field(repr=False)
    resources: Resources
    seconds: dict[str, float]
    toolchain: dict[str, str]
    log: str = field(repr=False, default="")
    listing_is_quick: bool = True

    @cached_property
    def listing(self) -> Listing:
        """The machine listing; made when it is first asked for."""
        return self.disassemble()
