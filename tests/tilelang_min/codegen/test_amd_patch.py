"""The text that TVM prints for amdgcn, pinned, and what becomes of it."""

from __future__ import annotations

import functools
import re

import amd_programs as programs
import pytest

from tilelang_min.codegen.amd.llvm_text import print_llvm
from tilelang_min.codegen.amd.patch import patch_llvm, shared_bytes
from tilelang_min.errors import CodegenError
from tilelang_min.program import ThreadProgram


@functools.cache
def printed() -> tuple[ThreadProgram, str]:
    program = programs.mfma()
    return program, print_llvm(program)


@pytest.mark.parametrize(
    "line",
    [
        "define dllexport amdgpu_kernel void @mfma(ptr addrspace(1) noalias %A, ptr addrspace(1) noalias %B, ptr addrspace(1) noalias %C) #0 {",  # noqa: E501
        "  call void @llvm.amdgcn.s.barrier()",
        "  call void @__tl_op(i32 4)",
        "@shmem = private addrspace(3) global [256 x half] undef, align 16",
        "@shmem.1 = private addrspace(3) global [256 x half] undef, align 16",
        'attributes #0 = { "amdgpu-flat-work-group-size"="1,256" "target-cpu"="gfx942" }',
        "!llvm.module.flags = !{!0, !1, !2}",
    ],
)
def test_tvm_prints_what_the_patch_expects(line: str) -> None:
    assert printed()[1].count(line + "\n") == 1


def test_patched_text() -> None:
    program, text = printed()
    patched = patch_llvm(text, program)
    assert patched.count("\ndefine ") == 1
    assert "define protected amdgpu_kernel void @mfma(" in patched
    assert '"amdgpu-flat-work-group-size"="64,64" "amdgpu-lds-size"="1024"' in patched
    assert '!{i32 1, !"amdhsa_code_object_version", i32 500}' in patched
    assert "tbaa !" not in patched
    assert "tvm_target" not in patched
    assert "shmem" not in patched
    fences = re.findall(
        r'fence syncscope\("workgroup"\) release\n  call void @llvm.amdgcn.s.barrier\(\)\n'
        r'  fence syncscope\("workgroup"\) acquire\n',
        patched,
    )
    assert len(fences) == 1
    assert "alloca [16 x float], align" in patched
    assert "alloca float, i32" not in patched
    assert re.search(r"@lds\.B_shared = internal addrspace\(3\) global \[256 x half\] poison, align 128, !abs", patched)
    offsets = [re.search(rf"@lds\.{t.name} = .*!absolute_symbol (!\d+)", patched) for t in program.shared]
    for tile, found in zip(program.shared, offsets):
        assert found
        assert f"{found[1]} = !{{i32 {tile.offset}, i32 {tile.offset + 1}}}" in patched


def test_waves_per_eu_and_another_thread_limit() -> None:
    program, text = printed()
    with_rocm = text.replace('"1,256"', '"1,1024"')  # where a driver is there to ask
    expected = '"64,64" "amdgpu-lds-size"="1024" "target-features"="-load-store-opt" "amdgpu-waves-per-eu"="2,4"'
    assert expected in patch_llvm(with_rocm, program, (2, 4))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("amdgpu_kernel", "amdgpu_cs", "0 kernels"),
        ("@mfma(", "@other(", "kernel other"),
        (", ptr addrspace(1) noalias %C)", ")", "for 3 pointers"),
        ("ptr addrspace(1) noalias %C)", "i32 %C)", "for 3 pointers"),
        ("amdgpu-flat-work-group-size", "amdgpu-max-work-group-size", "workgroup size"),
        ("call void @llvm.amdgcn.s.barrier()", "call void @llvm.amdgcn.s.barrier() #9", "barrier"),
        ("[256 x half] undef", "[256 x half] zeroinitializer", "LDS variables"),
        ("[256 x half]", "[128 x half]", "LDS variables"),
        ('!"tvm_target"', '!"tvm"', "module flags"),
    ],
)
def test_unexpected_text_is_refused(old: str, new: str, message: str) -> None:
    program, text = printed()
    changed = text.replace(old, new)
    assert changed != text
    with pytest.raises(CodegenError, match=message):
        patch_llvm(changed, program)


def test_shared_bytes_end_with_the_last_tile() -> None:
    assert shared_bytes(()) == 0
    assert shared_bytes(programs.gemm().shared) == 20480 + 17408
