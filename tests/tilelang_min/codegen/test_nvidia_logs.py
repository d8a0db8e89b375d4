"""Readers of what NVIDIA's tools print: ptxas logs and nvdisasm listings, on real and on small texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang_min.codegen.nvidia.lines import OperationLines
from tilelang_min.codegen.nvidia.ptxas_log import PtxasFigures, read_ptxas_log
from tilelang_min.codegen.nvidia.sass import read_listing, run_nvdisasm
from tilelang_min.codegen.nvidia.sass_classes import classify
from tilelang_min.errors import CodegenError
from tilelang_min.program import INSTRUCTION_CLASSES, Listing, SourceLocation, TileOperation

LOGS = Path(__file__).parents[2] / "data" / "nvidia" / "ptxas"
SPILLER, RECURSIVE, INDEXED = "_Z7spillerPfi", "_Z7recursePfi", "_Z6dynidxPii"
TILE_COPY = "_Z9tile_copyILi32EfEvPKT0_PS0_i"


def figures(file: str, name: str, arch: str | None = None) -> PtxasFigures | None:
    return read_ptxas_log((LOGS / file).read_text(), name, arch)


def test_spills_and_stack() -> None:
    assert figures("cuda13.0_sm_90a.log", SPILLER) == PtxasFigures(
        registers=32,
        stack_bytes=1656,
        spill_store_bytes=1880,
        spill_load_bytes=2052,
        shared_bytes=0,
        barriers=0,
        cumulative_stack_bytes=1656,
    )


def test_a_stack_frame_is_no_spill() -> None:
    found = figures("cuda13.0_sm_90a.log", INDEXED)
    assert found is not None
    assert (found.stack_bytes, found.spill_store_bytes, found.spill_load_bytes) == (128, 0, 0)


def test_figures_of_a_called_function_are_not_the_kernels() -> None:
    """The block of the function stands right behind the kernel's figures and has no registers."""
    found = figures("cuda12.9_sm_80.log", RECURSIVE)
    assert found is not None
    assert (found.registers, found.stack_bytes, found.spill_store_bytes) == (24, 0, 0)
    assert found.cumulative_stack_bytes is None  # recursion: nobody knows
    assert figures("cuda12.9_sm_80.log", "_Z6helperfi") is None


def test_shared_bytes_and_barriers() -> None:
    for file in ("cuda12.9_sm_80.log", "cuda13.0_sm_90a.log"):  # with and without constant banks behind
        found = figures(file, TILE_COPY)
        assert found is not None
        assert (found.registers, found.shared_bytes, found.barriers) == (32, 4224, 1)


def test_architectures_of_one_log() -> None:
    file = "cuda13.0_sm80+sm90a_warn-spills.log"
    stacks = [figures(file, SPILLER, arch) for arch in ("sm_80", "sm_90a", "sm_100a")]
    assert [found and found.stack_bytes for found in stacks] == [1640, 1656, None]
    assert figures(file, SPILLER) == stacks[0]


def test_name_must_be_whole() -> None:
    assert figures("cuda12.9_sm_80.log", "_Z7spiller") is None
    assert read_ptxas_log("", "k") is None


def lines(*numbers: int) -> OperationLines:
    return OperationLines(
        TileOperation(i, "copy", "", SourceLocation("/k.py", number, 0)) for i, number in enumerate(numbers)
    )


LISTING = """
//--------------------- .text.other              --------------------------
other:
.text.other:
	//## File "/k.py", line 11
        /*0000*/                   EXIT ;
//--------------------- .text.k                  --------------------------
	.section	.text.k,"ax",@progbits
        .size           k,(.L_x_9 - k)
k:
.text.k:
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
	//## File "/k.py", line 11
        /*0010*/                   LDG.E.128 R4, [R2.64] ;
	//## File "/inc/cuda_fp16.h", line 470 inlined at "/k.py", line 12
	//## File "/k.py", line 12
        /*0020*/                   HADD2.F32 R3, -RZ, R6.H0_H0 ;
	//## File "/inc/cuda_fp16.h", line 470
        /*0030*/              @!P0 STS [R3], R4 ;
	//## File "/k.py", line 13
        /*0040*/                   BRA `(.L_x_3) ;
.L_x_3:
        /*0050*/                   NOP;
        /*0060*/                   CALL.REL.NOINC `($__internal_0_$div) ;
        /*0070*/                   EXIT ;
$__internal_0_$div:
        /*0080*/                   MUFU.RCP R3, R4 ;
        /*0090*/                   CALL.REL.NOINC `($__internal_1_$inner) ;
        /*00a0*/                   RET.REL.NODEC R4 `(k) ;
$__internal_1_$inner:
        /*00b0*/                   FFMA R1, R2, R3, R4 ;
.L_x_4:
        /*00c0*/                   BRA `(.L_x_4);
        /*00d0*/                   NOP;
        /*00e0*/                   NOP;
.L_x_9:
"""


def test_rules_of_attribution() -> None:
    listing = read_listing(LISTING, "k", lines(10, 11, 12, 13))
    assert [(i.offset, i.opcode, i.operation) for i in listing.instructions] == [
        (0x00, "IMAD.MOV.U32", 0),  # in front of the first row: the kernel
        (0x10, "LDG.E.128", 1),
        (0x20, "HADD2.F32", 2),  # where the function was inlined
        (0x30, "STS", None),  # a line that is nobody's
        (0x40, "BRA", 3),
        (0x50, "NOP", 3),
        (0x60, "CALL.REL.NOINC", 3),
        (0x70, "EXIT", 3),
        (0x80, "MUFU.RCP", 3),  # the only caller's
        (0x90, "CALL.REL.NOINC", 3),
        (0xA0, "RET.REL.NODEC", 3),
        (0xB0, "FFMA", 3),  # called by a subroutine
    ]
    assert listing.attributed_fraction == pytest.approx(11 / 12)
    assert [i.line for i in listing.instructions][:5] == [10, 11, 12, None, 13]
    assert listing.instructions[3].text == "@!P0 STS [R3], R4"
    assert Listing.from_json(listing.to_json(), LISTING) == listing


def test_kernel_that_is_not_there() -> None:
    with pytest.raises(CodegenError, match="no code of kernel x"):
        read_listing(LISTING, "x", lines(1))


def test_binary_that_is_none() -> None:
    with pytest.raises(CodegenError, match="nvdisasm cannot read the cubin"):
        run_nvdisasm(b"no elf")


@pytest.mark.parametrize(
    ("text", "klass"),
    [
        ("HMMA.16816.F32 R8, R4, R8, RZ", "matrix"),
        ("HGMMA.64x256x16.F32 R24, gdesc[UR4]", "matrix"),
        ("FFMA R1, R2, R3, R4", "fma"),
        ("HFMA2 R1, R2, R3, R4", "fma"),
        ("HFMA2.MMA R4, -RZ, RZ, 0, 2.384185791015625e-07", "move"),
        ("HADD2.F32 R3, -RZ, R6.H0_H0", "convert"),
        ("HADD2 R10, R7.H0_H0, 3, 3", "float"),
        ("FADD R1, R2, R3", "float"),
        ("IMAD.WIDE R2, R5, 0x4, R2", "integer"),
        ("IMAD.MOV.U32 R1, RZ, RZ, 0x2", "move"),
        ("LOP3.LUT R0, R0, 0xf0, RZ, 0xc0, !PT", "integer"),
        ("F2FP.PACK_AB R8, RZ, R8", "convert"),
        ("F2FP.F16.F32.PACK_AB R8, RZ, R8", "convert"),
        ("MUFU.EX2 R7, R7", "special"),
        ("LDG.E.128.CONSTANT R4, [R2.64]", "global_load"),
        ("STG.E.64 desc[UR8][R2.64], R8", "global_store"),
        ("LDS.128 R4, [R2]", "shared_load"),
        ("STS.U16 [R2], R4", "shared_store"),
        ("LDSM.16.MT88.4 R8, [R0+UR5]", "ldmatrix"),
        ("LDGSTS.E.BYPASS.128 [R9], [R2.64], !P1", "async_copy"),
        ("LDGDEPBAR", "async_copy"),
        ("DEPBAR.LE SB0, 0x0", "wait"),
        ("LDL.LU R3, [R1+0x10]", "local_load"),
        ("STL [R1+0x10], R3", "local_store"),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "barrier"),
        ("EXIT", "branch"),
        ("ULDC.64 UR4, c[0x0][0x118]", "constant_load"),
        ("LDC R1, c[0x0][0x28]", "constant_load"),
        ("S2R R0, SR_TID.X", "move"),
        ("NOP", "other"),
        ("UNHEARDOF.X R1", "other"),
    ],
)
def test_classes(text: str, klass: str) -> None:
    opcode, _, operands = text.partition(" ")
    assert klass in INSTRUCTION_CLASSES
    assert classify(opcode, operands) == klass


def test_never_executed() -> None:
    assert classify("LDS", "RZ, [RZ]", "@!PT") == "other"
    assert classify("LDS", "RZ, [RZ]", "@!P0") == "shared_load"
