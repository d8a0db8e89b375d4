from __future__ import annotations

import pytest
from cpu_programs import operations

from tilelang_min.codegen.cpu import toolchain
from tilelang_min.codegen.cpu.attribution import Decoded, attribute
from tilelang_min.codegen.cpu.classes import classify
from tilelang_min.codegen.cpu.disassembly import read_shared_object
from tilelang_min.errors import CodegenError
from tilelang_min.program import INSTRUCTION_CLASSES

CLASSES = {
    "fma": ["vfmadd231ps zmm0, zmm1, zmmword ptr [rdx]", "vfnmadd213ss xmm0, xmm1, xmm2", "vpdpbusd zmm0, zmm1, zmm2"],
    "matrix": ["tdpbf16ps tmm0, tmm1, tmm2"],
    "float": ["vaddps zmm0, zmm1, zmm2", "mulsd xmm0, xmm1", "vdivps ymm0, ymm1, ymm2", "vcmpltps k1, zmm0, zmm1"],
    "special": ["vsqrtps zmm0, zmm1", "vrcp14ps zmm0, zmm1", "rsqrtps xmm0, xmm1"],
    "convert": ["vcvtph2ps zmm0, ymmword ptr [rsi]", "cvtsi2ss xmm0, eax", "vpmovzxbd zmm0, xmm1", "cdqe"],
    "integer": [
        "add rax, 0x40",
        "lea rax, [rsp + 8]",
        "vpandd zmm0, zmm1, zmm2",
        "vxorps xmm0, xmm1, xmm2",
        "shl eax, 4",
    ],
    "move": ["mov rax, rbx", "vbroadcastss zmm0, xmm1", "vpermt2ps zmm0, zmm1, zmm2", "cmovl eax, ebx", "xor eax, eax"],
    "global_load": [
        "mov eax, dword ptr [rdi]",
        "vmovups zmm0, zmmword ptr [rsp + rax*4 + 64]",
        "vbroadcastss zmm0, [rdi]",
    ],
    "global_store": [
        "vmovups zmmword ptr [rdi + 64], zmm0",
        "vpextrw word ptr [rsi], xmm0, 0",
        "mov dword ptr [rax], 1",
    ],
    "local_load": ["vmovaps zmm0, zmmword ptr [rsp + 0x40]", "mov rax, qword ptr [rbp - 8]", "pop rbx"],
    "local_store": ["vmovaps zmmword ptr [rsp], zmm0", "push r15"],
    "constant_load": ["vmovdqa64 zmm0, zmmword ptr [rip + 0x1b2]", "vbroadcastss ymm1, dword ptr [rip]"],
    "branch": ["jne 0x40", "jmp 0x10", "ret", "call 0x100"],
    "other": ["vzeroupper", "nop word ptr cs:[rax + rax]", "prefetcht0 byte ptr [rdi]", "unheardof eax"],
}


@pytest.mark.parametrize(("klass", "text"), [(klass, text) for klass, texts in CLASSES.items() for text in texts])
def test_classes(klass: str, text: str) -> None:
    mnemonic, _, operands = text.partition(" ")
    assert klass in INSTRUCTION_CLASSES
    assert classify(mnemonic, operands) == klass


def owners(*rows: tuple[str, int | None]) -> list[int | None]:
    decoded = []
    for index, (text, operation) in enumerate(rows):
        mnemonic, _, operands = text.partition(" ")
        decoded.append(Decoded(4 * index, mnemonic, operands, operation))
    return attribute(decoded)


def test_a_constant_belongs_to_the_operation_that_uses_it() -> None:
    found = owners(
        ("vxorps xmm3, xmm3, xmm3", None),
        ("xor eax, eax", None),
        ("vmovups zmm1, zmmword ptr [rdi]", 1),
        ("mov ecx, dword ptr [rsi + rax*4]", 2),
        ("vfmadd231ps zmm3, zmm1, zmm2", 5),
    )
    assert found == [5, 2, 1, 2, 5]


def test_a_chain_and_a_spill_end_at_their_user() -> None:
    found = owners(
        ("mov edx, edi", None),
        ("mov qword ptr [rsp + 0x18], rdx", None),
        ("vmovups zmm1, zmmword ptr [rsi]", 1),
        ("mov r8, qword ptr [rsp + 0x18]", 4),
    )
    assert found == [4, 4, 1, 4]


def test_a_value_overwritten_before_its_use_is_not_this_ones() -> None:
    found = owners(
        ("vmovups zmm1, zmmword ptr [rsi]", 2),
        ("mov rax, rdi", None),
        ("mov rax, rsi", 3),
        ("add rcx, rax", 4),
    )
    assert found == [2, 3, 3, 4]  # no use: the following neighbour


def test_comparisons_nops_and_blocks_without_operations() -> None:
    found = owners(
        ("nop", None),  # 0
        ("inc rax", 1),  # 4
        ("cmp rax, rbx", None),  # 8
        ("jne 0x4", 2),  # 12
        ("cmp rcx, rdx", None),  # 16: a block of its own, between 2 and 2
        ("jae 0x4", None),  # 20
        ("ret ", 2),  # 24
        ("cmp rcx, rdx", None),  # 28: nothing on the other side
    )
    assert found == [1, 1, 2, 2, 2, 2, 2, None]


def test_a_wrong_symbol_and_a_refused_text_are_errors() -> None:
    triple = 'target triple = "x86_64-unknown-linux-gnu"\n'
    text = f"{triple}define void @k() {{\n  ret void\n}}\n"
    binary, log, _ = toolchain.build_shared_object(text, "k")
    assert log == ""
    assert [one.text for one in read_shared_object(binary, "k", operations(1)).listing.instructions] == ["ret"]
    with pytest.raises(CodegenError, match="no function other"):
        read_shared_object(binary, "other", operations(1))
    with pytest.raises(CodegenError, match=r"clang refused(.|\n)*expected"):
        toolchain.build_shared_object("define void @k() { nonsense }", "k")
    with pytest.raises(CodegenError, match="sinf, strange"):
        toolchain.build_shared_object(
            "declare void @strange()\ndeclare void @sinf()\n"
            "define void @k() {\n  call void @strange()\n  call void @sinf()\n  ret void\n}\n",
            "k",
        )
