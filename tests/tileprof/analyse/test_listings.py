"""Generated code and listings by the author's line, of all three kinds of target."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import pytest

from tileprof.analyse.best import FASTEST, marks
from tileprof.analyse.listings import CodeLine, assembly_lines, generated_lines
from tileprof.report import code_view
from tileprof.report.code_view import code_data, pack_lines
from tileprof.store.reader import read_run

RECORDED = Path(__file__).resolve().parents[3] / "reports/h200-quickstart/run.sqlite"

SASS = """
\t.target\tsm_90a
tiled_kernel:
.text.tiled_kernel:
\t//## File "kernels/matmul.py", line 34
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "kernels/matmul.py", line 41
        /*0010*/                   S2R R55, SR_TID.X ;
.L_x_1:
        /*0020*/              @!P0 BRA `(.L_x_1) ;
"""
GCN = """
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
naive:                                  ; @naive
\t.loc\t1 17 0                          ; kernels/matmul.py:17:0
\ts_load_dwordx4 s[4:7], s[0:1], 0x0
.LBB0_1:                                ; %loop
\t.loc\t1 21 3
\tv_and_b32_e32 v1, 15, v0              ; a comment
"""
X86 = """naive:
     0:  cmp ecx, r8d                                                 ; operation 0, line 17
     3:  jge 0x237
"""


def test_listings_of_every_vendor() -> None:
    assert assembly_lines(SASS) == [
        CodeLine("0000  LDC R1, c[0x0][0x28]", 34),
        CodeLine("0010  S2R R55, SR_TID.X", 41),
        CodeLine(".L_x_1:", 41),
        CodeLine("0020  @!P0 BRA `(.L_x_1)", 41),
    ]
    assert assembly_lines(GCN) == [
        CodeLine("s_load_dwordx4 s[4:7], s[0:1], 0x0", 17),
        CodeLine(".LBB0_1:", 17),
        CodeLine("v_and_b32_e32 v1, 15, v0", 21),
    ]
    assert assembly_lines(X86) == [
        CodeLine("naive:", None), CodeLine("0  cmp ecx, r8d", 17), CodeLine("3  jge 0x237", None)
    ]  # fmt: skip
    assert assembly_lines("") == generated_lines("") == []


LLVM = """\
source_filename = "TVMMod"
@lds.A_shared = internal addrspace(3) global [4096 x float] poison, align 128, !absolute_symbol !406

define void @naive(ptr noalias %A, i32 %block) #0 !dbg !210 {
entry:
  %0 = alloca ptr, align 8, !dbg !211
  br i1 %1, label %a, label %b, !prof !31, !dbg !212

b:                                                ; preds = %a, %entry
  store i32 0, ptr %42, align 8, !tbaa !43, !dbg !212
  ret void
}

declare noundef i32 @llvm.amdgcn.workitem.id.x() #1
attributes #0 = { "target-cpu"="gfx942" }
!43 = !{!153, !153, i64 0}
!210 = distinct !DISubprogram(name: "naive", scope: !206, file: !206, line: 17, type: !209, scopeLine: 17)
!211 = !DILocation(line: 17, column: 1, scope: !210)
!212 = !DILocation(line: 24, column: 2, scope: !210)
"""


def test_generated_llvm_has_lines_and_no_notes_to_the_optimiser() -> None:
    assert generated_lines(LLVM) == [
        CodeLine("@lds.A_shared = internal addrspace(3) global [4096 x float] poison, align 128", None),
        CodeLine("define void @naive(ptr noalias %A, i32 %block) #0 {", 17),
        CodeLine("entry:", None),
        CodeLine("  %0 = alloca ptr, align 8", 17),
        CodeLine("  br i1 %1, label %a, label %b", 24),
        CodeLine("b:", None),
        CodeLine("  store i32 0, ptr %42, align 8", 24),
        CodeLine("  ret void", None),
        CodeLine("}", None),
    ]


def test_every_recorded_instruction_has_its_line() -> None:
    for case in read_run(RECORDED).cases:
        lines = assembly_lines(case.assembly)
        total = sum(((case.metadata or {})["instructions"]["total"]).values())
        code = [line for line in lines if not line.text.endswith(":")]
        assert len(code) >= total  # padding behind the last instruction is none of the kernel's
        assert all(line.line is not None for line in lines)
        assert {line.line for line in generated_lines(case.generated)} >= {
            o["location"]["line"] for o in case.operations[:1]
        }


def test_code_is_packed_within_its_budget() -> None:
    lines = [CodeLine("a", 1), CodeLine("b", 1), CodeLine("c </script>", None)]
    packed = pack_lines(lines)
    assert "<" not in packed
    record = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert record == {"text": "a\nb\nc </script>", "runs": [[1, 2], [None, 1]]}
    whole = code_data(read_run(RECORDED), code_view.MOST_ROOM)
    assert whole["left"] == 0
    data = code_data(read_run(RECORDED), 40_000)
    assert data["left"] > 0
    assert 30_000 < sum(len(text) for parts in data["cases"].values() for text in parts.values()) <= 40_000


def test_what_is_fastest_or_short_has_its_code_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    run = read_run(RECORDED)
    monkeypatch.setattr(code_view, "LEAST_ROOM", 20_000)
    data = code_data(run, 0)
    times = {case.id: case.timing.median_ns for case in run.cases if case.timing}
    fastest = [i for i, case in enumerate(run.cases) if marks(run.cases, times).get(case.id) == FASTEST]
    assert fastest
    assert all("assembly" in data["cases"][str(index)] for index in fastest)
    whole = sum(len(parts) == 2 for parts in data["cases"].values())
    assert data["left"] == len(run.cases) - whole > 0
    assert 15_000 < sum(len(text) for parts in data["cases"].values() for text in parts.values()) <= 20_000


def test_the_only_case_of_its_problem_is_its_fastest() -> None:
    recorded = read_run(Path(__file__).resolve().parents[3] / "reports/h200-attention/run.sqlite")
    data = code_data(recorded, 60_000)
    assert any("assembly" in parts for parts in data["cases"].values())  # though torch, which has no code, is faster
