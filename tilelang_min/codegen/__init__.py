"""Thread program -> binary, listing and static facts, one room for each vendor.

A room has one entry, ``generate(program, *, options=None) -> CompiledKernel``.  Nothing is shared between the rooms, and
importing this package imports none of them: ``from tilelang_min.codegen.nvidia import generate``.
"""
