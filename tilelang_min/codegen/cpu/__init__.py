"""Thread program -> CPU kernel: TVM prints LLVM text, ziglang's clang and ld.lld make a shared object of it.

The one entry is ``generate``; it is imported lazily, so that importing this package imports no TVM.
"""

from tilelang_min.codegen.cpu.generate import generate

__all__ = ["generate"]
