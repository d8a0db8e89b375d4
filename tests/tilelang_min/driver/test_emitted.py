"""Counts of LDS accesses are held against the instructions that LLVM emitted for them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver.emitted import check_emitted
from tilelang_min.program import Instruction, SourceLocation, TileOperation
from tilelang_min.simulate import AccessCount

OPERATIONS = (TileOperation(3, "copy", "T.copy(A, S)", SourceLocation("kernel.py", 7, 4), ("A",), ("S",)),)


def count(access: str, width: int, rule: str = "known", space: str = "shared") -> AccessCount:
    shared = (10, 8, 2, None, None) if space == "shared" else (None, None, None, 4, 4)
    return AccessCount(3, "S", space, access, width, 4, *shared, 512, rule)


def listing(*opcodes: str, operation: int = 3) -> list[Instruction]:
    return [Instruction(f"{opcode} v1, v2", opcode, "shared_load", operation) for opcode in opcodes]


def rules(counts: list[AccessCount], *opcodes: str) -> tuple[list[str], tuple[str, ...]]:
    checked, notes = check_emitted(counts, listing(*opcodes), OPERATIONS)
    return [one.rule for one in checked], notes


def test_instructions_as_planned_leave_rules_alone() -> None:
    counts = [count("load", 128), count("load", 32), count("store", 64), count("load", 16, "open")]
    emitted = ("ds_read_b128", "ds_read_b32", "ds_read_b32", "ds_write_b64", "ds_read_u16", "v_add_f32")
    assert rules(counts, *emitted) == (["known", "known", "known", "open"], ())


def test_two_accesses_in_one_instruction_have_no_rule() -> None:
    found, (note,) = rules([count("load", 128), count("load", 32)], "ds_read_b128", "ds_read2_b32", "ds_read_b32")
    assert found == ["known", "open"]
    assert note == (
        "T.copy(A, S) (line 7): LLVM emitted ds_read2_b32 for a load of 32 bits of S; no rule is known for that, counted are "
        "single accesses"
    )
    found, (note,) = rules([count("store", 64), count("load", 64)], "ds_write2st64_b64", "ds_read_b64")
    assert found == ["open", "known"]
    assert "ds_write2st64_b64 for a store" in note


def test_accesses_joined_into_wider_ones() -> None:
    assert rules([count("load", 32)], "ds_read_b64")[0] == ["open"]
    assert rules([count("load", 32)], "ds_read_b64", "ds_read_b32")[0] == ["open"]
    assert rules([count("load", 32), count("load", 64)], "ds_read_b64", "ds_read_b32")[0] == ["known", "known"]


def test_wide_accesses_split() -> None:
    assert rules([count("load", 128)], "ds_read2_b64")[0] == ["open"]
    assert rules([count("store", 128)], "ds_write_b64", "ds_write_b64")[0] == ["open"]


def test_other_operations_and_spaces_do_not_matter() -> None:
    counts = [count("load", 32), count("load", 32, space="global")]
    rows = [*listing("ds_read_b32"), *listing("ds_read2_b32", operation=4)]
    checked, notes = check_emitted(counts, rows, OPERATIONS)
    assert list(checked) == counts
    assert notes == ()


@tilelang.jit(target="hip:gfx942")
def two_words(n: int) -> Any:
    """Each thread reads two words far apart, which LLVM would join."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((256,), "float32")
            T.copy(A[0:256], S)
            for i in T.Parallel(64):
                B[i] = S[i] + S[i + 64]

    return main


def test_a_compiled_kernel_holds_what_was_counted() -> None:
    """Code generation keeps LLVM from joining the two reads, so the rule of single ones holds; joined ones are above."""
    kernel = two_words(256)
    opcodes = Counter(instruction.opcode for instruction in kernel.listing.instructions)
    assert opcodes["ds_read_b32"] == 2
    assert not [opcode for opcode in opcodes if opcode.startswith(("ds_read2", "ds_write2"))]
    analysis = kernel.analyse()
    (load,) = (one for one in analysis.counts if one.space == "shared" and one.access == "load")
    assert load.rule == "known"
    assert load.transactions == 2 * 2  # two loads of a wavefront, two cycles each
    assert analysis.notes == ()
    assert kernel.analyse().counts == analysis.counts  # as stored
