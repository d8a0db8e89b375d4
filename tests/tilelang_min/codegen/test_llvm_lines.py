from __future__ import annotations

import re

import pytest

from tilelang_min.codegen.llvm_lines import attach_operations, operation_of_location
from tilelang_min.errors import CodegenError
from tilelang_min.program import SourceLocation, TileOperation


def operations(*places: tuple[str, int]) -> list[TileOperation]:
    """Operations 0, 1, ... at (file, line)."""
    return [TileOperation(i, "copy", "", SourceLocation(file, line, 4)) for i, (file, line) in enumerate(places)]


FOUR = operations(("a.py", 3), ("a.py", 5), ("a.py", 5), ("a.py", 7))

# As TVM prints it: what follows the loop stands before the loop's own increment and inner blocks.
LOOP = """\
define void @k(ptr %A, i32 %n) #0 !dbg !5 {
entry:
  %first = add i32 %n, 1, !dbg !16
    #dbg_value(i32 %first, !19, !DIExpression(), !16)
  call void @__tl_op(i32 1), !dbg !16
  br label %for_begin_i, !dbg !16

for_begin_i:                                      ; preds = %for_next_i, %entry
  %i = phi i32 [ 0, %entry ], [ %step, %for_next_i ]
  %more = icmp slt i32 %i, 8
  br i1 %more, label %for_body_i, label %for_end_i, !prof !20

for_body_i:                                       ; preds = %for_begin_i
  %in_body = add i32 %i, 1
  br i1 %more, label %if_then, label %if_else

for_end_i:                                        ; preds = %for_begin_i
  %after = add i32 %n, 2
  call void @__tl_op(i32 0)
  %last = add i32 %n, 3
  ret void

for_next_i:                                       ; preds = %if_end
  %step = add nsw i32 %i, 1
  br label %for_begin_i

if_then:                                          ; preds = %for_body_i
  tail call void @__tl_op(i32 noundef 2)
  %in_then = add i32 %i, 3
  br label %if_end

if_else:                                          ; preds = %for_body_i
  %in_else = add i32 %i, 4
  call void @__tl_op(i32 3)
  %in_else_3 = add i32 %i, 5
  br label %if_end

if_end:                                           ; preds = %if_else, %if_then
  %in_end = load float, ptr %A, align 4, !tbaa !23
  br label %for_next_i
}

declare void @__tl_op(i32)

define void @other() !dbg !5 {
entry:
  ret void, !dbg !16
}

attributes #0 = { "target-cpu"="x86-64-v4" }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3}

!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "TVM", emissionKind: FullDebug)
!1 = !DIFile(filename: "x", directory: ".")
!3 = !{i32 4, !"Debug Info Version", i32 3}
!5 = distinct !DISubprogram(name: "k", scope: !1, file: !1, unit: !0)
!16 = !DILocation(line: 0, scope: !5)
!19 = !DILocalVariable(name: "i", scope: !5, file: !1)
!20 = !{!"branch_weights", i32 1048576, i32 1}
!23 = !{!24, !24, i64 0}
!24 = !{!"0x55c95dc55c40", !25, i64 0}
!25 = !{!"tvm-tbaa"}
"""


def owners(text: str) -> dict[str, int | None]:
    """Operation of each named value."""
    locations = {
        number: operation_of_location(int(line), int(column))
        for number, line, column in re.findall(r"^!(\d+) = !DILocation\(line: (\d+), column: (\d+)", text, re.MULTILINE)
    }
    return {name: locations[number] for name, number in re.findall(r"^  %(\w+) = .*, !dbg !(\d+)$", text, re.MULTILINE)}


def test_a_marker_rules_in_program_order_whatever_the_order_of_blocks() -> None:
    found = owners(attach_operations(LOOP, FOUR))
    assert found == {
        "first": 0,
        "i": 1,
        "more": 1,
        "in_body": 1,
        "in_then": 2,
        "in_else": 2,  # the marker in the first branch rules on
        "in_else_3": 3,
        "in_end": 3,
        "step": 1,  # the increment belongs where the loop starts
        "after": 3,
        "last": 0,
    }


def test_markers_and_former_debug_information_are_gone() -> None:
    text = attach_operations(LOOP, FOUR)
    for gone in ("__tl_op", "#dbg_value", "FullDebug", "DILocalVariable", "0x55c9"):
        assert gone not in text
    assert "!23 = !{!24, !24, i64 0}" in text
    assert '!24 = !{!"buffer.0", !25, i64 0}' in text
    assert text.count("distinct !DICompileUnit(") == text.count("!llvm.dbg.cu") == 1
    assert re.search(r"^define void @k\(ptr %A, i32 %n\) #0 !dbg !\d+ \{$", text, re.MULTILINE)
    assert "define void @other() {\nentry:\n  ret void\n}" in text
    assert attach_operations(LOOP.replace("0x55c95dc55c40", "0x7fff12345678"), FOUR) == text


def test_two_operations_on_one_line_have_the_authors_line_and_columns_of_their_own() -> None:
    text = attach_operations(LOOP, FOUR)
    assert len(re.findall(r"DILocation\(line: 5, column: 2,", text)) == 1
    assert len(re.findall(r"DILocation\(line: 5, column: 3,", text)) == 1
    assert operation_of_location(5, 3) == 2
    assert operation_of_location(0, 3) is None
    assert operation_of_location(5, 0) is None
    assert operation_of_location(None, None) is None


def test_another_file_has_a_scope_of_its_own() -> None:
    text = attach_operations(LOOP, operations(("a.py", 3), ('d"ö.py', 9), ("a.py", 5), ("a.py", 7)))
    file = re.search(r'^!(\d+) = !DIFile\(filename: "d\\22\\C3\\B6.py"', text, re.MULTILINE)
    assert file
    scope = re.search(rf"^!(\d+) = !DILexicalBlockFile\(scope: !\d+, file: !{file[1]},", text, re.MULTILINE)
    assert scope
    assert f"!DILocation(line: 9, column: 2, scope: !{scope[1]})" in text


def test_instructions_of_several_lines_and_quoted_labels() -> None:
    text = """\
define amdgpu_kernel void @k(i32 %n) {
"first block":
  call void @__tl_op(i32 1)
  switch i32 %n, label %"b c" [
    i32 0, label %d
    i32 1, label %"b c"
  ]

"b c":                                            ; preds = %"first block"
  ret void

d:                                                ; preds = %"first block"
  %x = add i32 %n, 1
  br label %"b c"
}
"""
    done = attach_operations(text, FOUR)
    assert re.search(r"^  \], !dbg !\d+$", done, re.MULTILINE)
    assert "    i32 0, label %d\n" in done
    assert owners(done) == {"x": 1}
    assert '!"Debug Info Version"' in done  # added where the text has none


def test_chosen_functions_without_markers_belong_to_the_kernel() -> None:
    done = attach_operations("define void @k(i32 %n) {\n  %x = add i32 %n, 1\n  ret void\n}\n", FOUR, functions=("k",))
    assert owners(done) == {"x": 0}


def test_marks_without_operation_are_errors() -> None:
    with pytest.raises(CodegenError, match="marks operation 3"):
        attach_operations(LOOP, FOUR[:3])
    with pytest.raises(CodegenError, match="operation 0"):
        attach_operations(LOOP, FOUR[1:])
    with pytest.raises(CodegenError, match="more than 65534"):
        attach_operations(LOOP, [*FOUR, TileOperation(65535, "copy", "", SourceLocation("a.py", 1, 0))])
