"""Thread program -> CPU kernel: TVM prints LLVM text, ziglang's clang and ld.lld make a shared object of it.

The one entry is ``generate``.

What lowering should write so that LLVM keeps accumulators in registers
------------------------------------------------------------------------

Tiles are arrays on the stack; LLVM splits an array into registers when every index into it is a constant, whatever its size
(the limit of 1024 bytes belongs to TVM's heap workspaces, which are not used here).  So, for a register block of MR rows by
NR columns with vectors of L lanes:

* ``acc``: one ``AllocBuffer`` of MR * NR elements (or one of L elements for each vector: the same code, more text), accessed
  only as ``Ramp(constant, 1, L)`` in UNROLLED loops;
* load ``acc`` from the fragment before the k loop (or start at zero), store (or add) it behind;
* a SERIAL k loop around ``acc[i, j] = acc[i, j] + Broadcast(A[i, k], L) * B[k, j]``, i and j UNROLLED: LLVM contracts it to
  one FMA each, loads B once and broadcasts A once a row, and unrolls k itself.

At most 24 accumulators of 32 registers (x86-64-v4) or 12 of 16 (v3).  Measured for one 128 x 128 x 32 float32 tile step in
cache, one thread of a Sapphire Rapids server (GFLOP/s, with copies of the accumulators in and out): v4, L = 16: 8x32 154-162,
4x64 163, 6x64 160, 12x32 158, 16x16 148, 4x128 (spills) 112; v3, L = 8: 6x16 87, 4x24 88, 4x16 80.  A product of 1024^3 with
such tiles and their copies: 100 to 115, OpenBLAS there: 97 to 107.

float16 tiles: converting each element of A and B where it is used halves the speed (47); widening A once for each product,
and B as its panels are packed, keeps it.  What became of this, and the figures of whole products: ``docs/cpu.md``.
"""

from tilelang_min.codegen.cpu.generate import OPTIONS, generate

__all__ = ["OPTIONS", "generate"]
