"""Generated code and listings by the author's line, of all three kinds of target."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

from tileprof.analyse.listings import CodeLine, assembly_lines, generated_lines
from tileprof.report.code_view import BUDGET, code_data, pack
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
    packed = pack(lines)
    assert "<" not in packed
    record = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert record == {"text": "a\nb\nc </script>", "runs": [[1, 2], [None, 1]]}
    data = code_data(read_run(RECORDED))
    assert data["left"] == 0
    assert sum(len(text) for parts in data["cases"].values() for text in parts.values()) < BUDGET
