"""Where the buffers of a thread program lie: parameters, shared memory of a block, registers of a thread."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilelang_min.errors import SimulationError
from tilelang_min.program import ThreadProgram
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.simulate.tree import Buffer, Expression, KernelTree, Statement

SHARED_ALIGNMENT = 128  # of each buffer inside the block's shared memory, as lowering lays them out
BLOCK_GRANULE = 256  # a block's shared memory is a multiple of this: all banks of any target, so that patterns repeat


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A buffer in memory.  ``offset`` is in bytes from the start of the block's shared memory (0 for parameters)."""

    buffer: Buffer
    space: str  # "global" or "shared"
    itemsize: int
    offset: int


@dataclass
class Layout:
    """All buffers of one program.  ``block_bytes`` is the shared memory that the simulator keeps for each block."""

    program: ThreadProgram
    parameters: tuple[Buffer, ...]
    places: dict[int, Place] = field(default_factory=dict)
    locals: dict[int, Buffer] = field(default_factory=dict)
    block_bytes: int = 0

    @classmethod
    def of(cls, program: ThreadProgram, tree: KernelTree) -> Layout:
        """The layout of a program; offsets of shared buffers are those that the program lists."""
        layout = cls(program, tree.parameters)
        for buffer in tree.parameters:
            layout.places[buffer.key] = Place(buffer, "global", layout.itemsize(buffer.dtype), 0)
        layout._visit(tree.body)
        layout.block_bytes = -(-max(layout.block_bytes, 1) // BLOCK_GRANULE) * BLOCK_GRANULE
        return layout

    def itemsize(self, dtype: str) -> int:
        """Bytes of one element."""
        try:
            return int(numpy_dtype(dtype).itemsize)
        except TypeError:
            raise SimulationError(f"the simulator has no arithmetic for the type {dtype}") from None

    def place(self, buffer: Buffer) -> Place:
        """Where a global or shared buffer lies."""
        try:
            return self.places[buffer.key]
        except KeyError:
            raise SimulationError(f"thread program uses the buffer {buffer.name} before declaring it") from None

    def _visit(self, statement: Statement) -> None:
        if statement.kind == "allocate":
            assert statement.buffer is not None
            self._allocate(statement.buffer)
        elif statement.kind == "view":
            assert statement.buffer is not None
            self._view(statement.buffer, statement.args[0])
        for child in statement.body:
            if child is not None:
                self._visit(child)

    def _allocate(self, buffer: Buffer) -> None:
        if buffer.scope in ("local", "global"):  # "global" allocations are registers on a CPU
            self.locals[buffer.key] = buffer
            return
        if not buffer.scope.startswith("shared"):
            raise SimulationError(f"buffer {buffer.name} has the unknown scope {buffer.scope!r}")
        listed = {shared.name: shared.offset for shared in self.program.shared}
        offset = listed.get(buffer.name)
        if offset is None:  # the arena of dynamic shared memory, or a tile the program does not list
            used = [p.offset + p.buffer.elements * p.itemsize for p in self.places.values() if p.space == "shared"]
            offset = (
                0 if buffer.scope == "shared.dyn" else -(-max(used, default=0) // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
            )
        self._put(buffer, offset)

    def _view(self, buffer: Buffer, data: Expression) -> None:
        offset = 0
        while data.kind == "call":
            if data.value == "tirx.handle_add_byte_offset" and data.args[1].kind == "const":
                offset += int(data.args[1].value)
                data = data.args[0]
            elif data.value == "tirx.reinterpret":
                data = data.args[0]
            elif data.value == "tirx.address_of" and data.args[0].args[0].kind == "const":
                load = data.args[0]
                offset += int(load.args[0].value) * self.itemsize(load.value.dtype)
                data = Expression("buffer", value=load.value)
            else:
                break
        parent = self.places.get(data.value.key) if data.kind == "buffer" else None
        if parent is None or parent.space != "shared":
            raise SimulationError(f"buffer {buffer.name} is a view that the simulator cannot place")
        self._put(buffer, parent.offset + offset)

    def _put(self, buffer: Buffer, offset: int) -> None:
        place = Place(buffer, "shared", self.itemsize(buffer.dtype), offset)
        self.places[buffer.key] = place
        self.block_bytes = max(self.block_bytes, offset + buffer.elements * place.itemsize)
