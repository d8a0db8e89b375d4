"""What travels between the rooms of the compiler: plain records, no behaviour that depends on a target.

The thread program (:class:`ThreadProgram`) is the one object that ``lower/`` makes, ``codegen/`` prints and ``simulate/``
executes.  Tile operations, listings and metadata are the facts attached to it.  Importing this package imports no TVM.
"""

from tilelang_min.program.listing import INSTRUCTION_CLASSES, Instruction, Listing
from tilelang_min.program.metadata import KernelMetadata, Resources
from tilelang_min.program.operation import SourceLocation, TileOperation
from tilelang_min.program.thread_program import (
    OPERATION_MARKER,
    CompiledKernel,
    Parameter,
    SharedBuffer,
    TensorMap,
    ThreadProgram,
)

__all__ = [
    "INSTRUCTION_CLASSES",
    "OPERATION_MARKER",
    "CompiledKernel",
    "Instruction",
    "KernelMetadata",
    "Listing",
    "Parameter",
    "Resources",
    "SharedBuffer",
    "SourceLocation",
    "TensorMap",
    "ThreadProgram",
    "TileOperation",
]
