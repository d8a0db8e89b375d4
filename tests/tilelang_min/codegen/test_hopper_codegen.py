"""Hopper kernels as CUDA C++ and as SASS: what is printed, and what ptxas makes of it.  Needs NVRTC and nvdisasm, no GPU."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import tilelang_min.language as T
from tilelang_min.codegen import nvidia
from tilelang_min.codegen.nvidia.lines import OperationLines
from tilelang_min.codegen.nvidia.sass import read_listing
from tilelang_min.driver.build import thread_program
from tilelang_min.program import CompiledKernel, SourceLocation, TileOperation
from tilelang_min.targets import resolve
from tilelang_min.transform.hopper import HopperOptions


def kernel(m: int, n: int, k: int) -> Any:
    """128 x 128 x 64 in four stages, two consumer groups, the result in float16."""

    @T.prim_func
    def product(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, 128), T.ceildiv(m, 128), threads=256) as (bx, by):
            A_shared = T.alloc_shared((128, 64), "float16")
            B_shared = T.alloc_shared((64, 128), "float16")
            C_local = T.alloc_fragment((128, 128), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, 64), num_stages=4):
                T.copy(A[by * 128, ko * 64], A_shared)
                T.copy(B[ko * 64, bx * 128], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 128, bx * 128])

    return product


@pytest.fixture(scope="module")
def compiled() -> CompiledKernel:
    _, _, program = thread_program(kernel(2048, 2056, 1000), resolve("cuda:sm_90a"), hopper=HopperOptions())
    return nvidia.generate(program)


def test_golden_source(compiled: CompiledKernel, golden: Any) -> None:
    text = "\n".join(line for line in compiled.source.splitlines() if not line.startswith("#line")) + "\n"
    golden("hopper_product.cu", text)


def test_machine_code(compiled: CompiledKernel) -> None:
    """Tiles go both ways by the copy engine, nothing is spilled, and products are not made to wait for one another."""
    opcodes = Counter(item.opcode.split(".")[0] for item in compiled.listing.instructions)
    assert (opcodes["HGMMA"], opcodes["UTMALDG"], opcodes["UTMASTG"], opcodes["USETMAXREG"]) == (4, 3, 2, 2)
    assert compiled.resources.spill_store_bytes == 0
    assert compiled.resources.registers_per_thread == 168
    assert "Potential Performance Loss" not in compiled.log
    assert "C7508" not in compiled.log  # the shift of registers is heeded


def test_every_instruction_has_its_operation(compiled: CompiledKernel) -> None:
    owners = {(item.opcode.split(".")[0], item.operation) for item in compiled.listing.instructions}
    assert [owner for name, owner in owners if name == "HGMMA"] == [5]
    assert {owner for name, owner in owners if name == "UTMALDG"} == {3, 4}
    assert {owner for name, owner in owners if name == "UTMASTG"} == {6}
    assert compiled.listing.attributed_fraction == 1.0


LISTING = """
//--------------------- .text.k                  --------------------------
.text.k:
	//## File "/k.py", line 11
        /*0000*/                   HGMMA.64x8x16.F32 R4, gdesc[UR4], R4 ;
	//## File "/k.py", line 12
        /*0010*/                   R2UR UR4, R2 ;
	//## File "/k.py", line 11
        /*0020*/                   SYNCS.ARRIVE.TRANS64 RZ, [R3], RZ ;
        /*0030*/                   HGMMA.64x8x16.F32 R4, gdesc[UR4], R4 ;
	//## File "/k.py", line 13
        /*0040*/                   QGMMA.64x8x32.F32 R4, gdesc[UR4], R4 ;
        /*0050*/                   EXIT ;
"""


def test_products_belong_to_a_product() -> None:
    kinds = {11: "copy", 12: "gemm", 13: "gemm"}
    operations = [
        TileOperation(number, kind, "", SourceLocation("/k.py", line, 0))
        for number, (line, kind) in enumerate(kinds.items())
    ]
    listing = read_listing(LISTING, "k", OperationLines(operations))
    assert [item.operation for item in listing.instructions] == [1, 1, 0, 1, 2, 2]
