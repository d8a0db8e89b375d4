"""Reading GCN assembly: classes of opcodes, and the rules by which instructions find their operation."""

from __future__ import annotations

import pytest

from tilelang_min.codegen.amd.gcn import classify
from tilelang_min.codegen.amd.listing import read_listing, with_offset_table, with_offsets
from tilelang_min.errors import CodegenError
from tilelang_min.program import INSTRUCTION_CLASSES, SourceLocation, TileOperation


@pytest.mark.parametrize(
    ("klass", "opcodes"),
    [
        ("matrix", "v_mfma_f32_32x32x8_f16 v_mfma_f32_32x32x8f16 v_smfmac_f32_16x16x32_f16 v_mfma_i32_16x16x16i8"),
        (
            "fma",
            "v_fma_f32 v_fmac_f32_e32 v_pk_fma_f32 v_pk_fma_f16 v_fma_mix_f32 v_fmamk_f32 v_mad_f32 v_dot2_f32_f16",
        ),
        (
            "float",
            "v_add_f32_e32 v_pk_add_f32 v_mul_f16_e64 v_max_f32_e32 v_cmp_gt_f32_e32 v_rndne_f32_e32 v_ldexp_f32",
        ),
        (
            "integer",
            "v_add_u32_e32 v_mad_u64_u32 v_mul_lo_u32 v_lshl_add_u64 v_cmp_gt_i32_e32 s_add_i32 s_and_saveexec_b64",
        ),
        ("integer", "v_add_co_u32_e32 v_mul_u32_u24_e32 s_cmp_lg_u32 v_max_i32_e32 v_mad_u32_u24 v_and_b32_e32"),
        ("convert", "v_cvt_f32_f16_e32 v_cvt_pkrtz_f16_f32 v_cvt_f32_i32_sdwa"),
        (
            "special",
            "v_exp_f32_e32 v_log_f16_e32 v_rcp_f32_e32 v_rsq_f32_e32 v_sqrt_f32_e32 v_sin_f32_e32 v_rcp_iflag_f32",
        ),
        (
            "move",
            "v_mov_b32_e32 v_accvgpr_write_b32 v_accvgpr_read_b32 v_cndmask_b32_e64 v_perm_b32 s_mov_b64 s_cselect_b32",
        ),
        ("move", "v_readfirstlane_b32 ds_bpermute_b32 ds_swizzle_b32 v_pk_mov_b32 v_mov_b32_dpp"),
        (
            "global_load",
            "global_load_dwordx4 global_load_ushort buffer_load_dword flat_load_dword global_load_short_d16_hi",
        ),
        ("global_store", "global_store_short global_store_dwordx2 buffer_store_dword global_atomic_add_f32"),
        ("shared_load", "ds_read_b128 ds_read2_b64 ds_read_u16_d16 ds_read2st64_b32"),
        ("shared_store", "ds_write_b64 ds_write2st64_b64 ds_write_b16"),
        ("async_copy", "global_load_lds_dword global_load_lds_dwordx4"),
        ("local_load", "scratch_load_dword scratch_load_dwordx4"),
        ("local_store", "scratch_store_dwordx2"),
        ("barrier", "s_barrier"),
        ("wait", "s_waitcnt s_waitcnt_vscnt"),
        ("branch", "s_branch s_cbranch_execz s_cbranch_scc1 s_endpgm"),
        ("constant_load", "s_load_dwordx4 s_buffer_load_dword"),
        ("other", "s_nop s_setprio s_sleep s_memtime v_nop s_setreg_imm32_b32 x_unheard_of"),
    ],
)
def test_class_of_opcode(klass: str, opcodes: str) -> None:
    assert klass in INSTRUCTION_CLASSES
    assert {opcode: classify(opcode) for opcode in opcodes.split()} == {opcode: klass for opcode in opcodes.split()}


OPERATIONS = tuple(
    TileOperation(i, kind, kind, SourceLocation("kernel.py", line, 0), None if i == 0 else 0)
    for i, (kind, line) in enumerate([("kernel", 1), ("copy", 5), ("copy", 5), ("gemm", 6), ("store", 7)])
)

ASSEMBLY = """\
\t.text
k:                                      ; @k
.Lfunc_begin0:
\t.file\t1 "kernel.py"
\t.loc\t1 1 0                           ; kernel.py:1:0
\t.cfi_startproc
; %bb.0:                                ; %entry
\ts_load_dwordx4 s[4:7], s[0:1], 0x0
\ts_mov_b32 s9, 0x10
.Ltmp0:
\t.loc\t1 5 2 prologue_end              ; kernel.py:5:2
\tglobal_load_dword v1, v0, s[4:5]
\tv_mov_b32_e32 v8, 0
\t.loc\t1 5 3
\tglobal_load_dword v2, v0, s[6:7]
\t.loc\t1 0 3                           ; kernel.py:0:3
\tv_add_u32_e32 v5, v0, v0
\tv_lshlrev_b32_e32 v6, 2, v5
\t.loc\t1 5 0
\tds_write2_b32 v0, v1, v2 offset1:1
\t.loc\t1 6 4
\t; wave barrier
\tds_read_b32 v3, v0
\tv_fmac_f32_e32 v8, v3, v3
.LBB0_1:                                ; =>This Inner Loop
\t.loc\t1 0 4 is_stmt 0
\ts_or_b64 exec, exec, s[2:3]
\ts_cbranch_scc1 .LBB0_1
\t.loc\t1 7 5 is_stmt 1
\tglobal_store_dword v6, v8, s[6:7]
\t.loc\t1 1 1
\ts_endpgm
\t.section\t.rodata,"a",@progbits
\ts_nop 0
"""


def owners() -> dict[str, int | None]:
    return {i.text: i.operation for i in read_listing(ASSEMBLY, "k", OPERATIONS).instructions}


def test_location_decides() -> None:
    found = owners()
    assert found["global_load_dword v1, v0, s[4:5]"] == 1
    assert found["global_load_dword v2, v0, s[6:7]"] == 2
    assert found["ds_read_b32 v3, v0"] == 3
    assert found["s_endpgm"] == 0


def test_prologue_belongs_to_the_kernel() -> None:
    assert owners()["s_load_dwordx4 s[4:7], s[0:1], 0x0"] == 0
    assert owners()["s_mov_b32 s9, 0x10"] == 0


def test_merged_instruction_goes_to_the_nearest_operation_of_its_line() -> None:
    """Both copies stand on line 5; the second one's load is nearer."""
    assert owners()["ds_write2_b32 v0, v1, v2 offset1:1"] == 2


def test_instruction_without_location_goes_to_the_user_of_its_result() -> None:
    """v5 is used by the shift, v6 by the store: a chain."""
    assert owners()["v_add_u32_e32 v5, v0, v0"] == 4
    assert owners()["v_lshlrev_b32_e32 v6, 2, v5"] == 4


def test_constant_goes_to_its_user_whatever_its_location() -> None:
    assert owners()["v_mov_b32_e32 v8, 0"] == 3  # located at operation 1


def test_instruction_that_nothing_uses_goes_to_a_neighbour_in_its_block() -> None:
    """The block of the mask and the branch has no located instruction: nobody's."""
    found = owners()
    assert found["s_or_b64 exec, exec, s[2:3]"] is None
    assert found["s_cbranch_scc1 .LBB0_1"] is None


def test_lines_are_the_authors() -> None:
    lines = {i.text: i.line for i in read_listing(ASSEMBLY, "k", OPERATIONS).instructions}
    assert lines["global_load_dword v2, v0, s[6:7]"] == 5
    assert lines["global_store_dword v6, v8, s[6:7]"] == 7
    assert lines["s_cbranch_scc1 .LBB0_1"] is None


def test_listing_ends_with_the_kernel() -> None:
    listing = read_listing(ASSEMBLY, "k", OPERATIONS)
    assert listing.instructions[-1].opcode == "s_endpgm"
    assert listing.syntax == "gcn"
    assert listing.text == ASSEMBLY
    with pytest.raises(CodegenError, match="no kernel other"):
        read_listing(ASSEMBLY, "other", OPERATIONS)


def test_offset_table_labels_every_instruction() -> None:
    listing = read_listing(ASSEMBLY, "k", OPERATIONS)
    text = with_offset_table(ASSEMBLY, "k")
    count = len(listing.instructions)
    assert text.count("\n.Ltilelang") == count
    assert text.count("\t.long\t.Ltilelang") == count
    assert "\n.Ltilelang0:\n\ts_load_dwordx4" in text
    placed = with_offsets(listing, tuple(range(0, 4 * count, 4)))
    assert placed.instructions[2].offset == 8
    with pytest.raises(CodegenError, match="1 offsets"):
        with_offsets(listing, (0,))
