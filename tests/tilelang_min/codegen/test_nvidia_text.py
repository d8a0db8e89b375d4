"""The CUDA C++ that is given to NVRTC, and the header in front of it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import amd_programs
import nvidia_programs as programs
import pytest
import tvm_ffi
from tvm import tirx

from tilelang_min.codegen.nvidia.header import header, own_header
from tilelang_min.codegen.nvidia.lines import OperationLines
from tilelang_min.codegen.nvidia.names import with_safe_names
from tilelang_min.codegen.nvidia.nvrtc import compile_cubin
from tilelang_min.codegen.nvidia.printing import kernel_symbol, print_cuda
from tilelang_min.codegen.nvidia.text import finish, helpers_to_macros, markers_to_lines
from tilelang_min.codegen.nvidia.wheels import wheel_files
from tilelang_min.errors import CodegenError
from tilelang_min.program import SourceLocation, ThreadProgram, TileOperation

HOOK = "tirx.intrinsics.cuda.header_generator"


def source_of(program: ThreadProgram) -> str:
    return finish(print_cuda(program), OperationLines(program.operations))


@cache
def gemm_source() -> str:
    return source_of(programs.gemm())


def kernel_of(source: str) -> list[str]:
    """Lines of the kernel's definition."""
    lines = source.splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith('extern "C"'))
    return lines[last - 1 :]


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("nvidia_mma_tile.cu", source_of(programs.mma_tile()))


def test_every_line_of_the_kernel_names_its_operation() -> None:
    kernel = kernel_of(gemm_source())
    assert all(re.fullmatch(r'#line 1[0-9] "/home/author/kernel\.py"', line) for line in kernel[::2])
    assert not any(line.startswith("#") or not line.strip() for line in kernel[1::2])
    assert "__tl_op" not in gemm_source()


def test_each_statement_is_on_the_line_of_its_operation() -> None:
    kernel = kernel_of(gemm_source())
    lines: dict[str, set[int]] = {}
    for directive, text in zip(kernel[::2], kernel[1::2]):
        for word in ("mma_sync", "ldmatrix", "async_cg", "wait_group", "for (int ko", "float2"):
            if word in text:
                lines.setdefault(word, set()).add(int(directive.split()[1]))
    assert lines == {
        "mma_sync": {18},
        "ldmatrix": {18},
        "async_cg": {16, 17},
        "wait_group": {15},
        "for (int ko": {15},
        "float2": {19},
    }


def test_helpers_are_macros() -> None:
    assert not re.search(r"__device__ \w+ tvm_builtin", gemm_source())
    assert len(re.findall(r"^#define tvm_builtin_ptx_\w+\(", gemm_source(), re.MULTILINE)) == 6
    assert "#define tvm_builtin_cuda_cvta_generic_to_shared(p)" in gemm_source()


def test_macro_of_an_instruction() -> None:
    text = (
        "__forceinline__ __device__ void f(float& __d0, uint32_t __a0, const void* __p, bool c) {\n"
        '  asm volatile("mma {__d0}, {%1}; x" : "=f"(__d0) : "r"(__a0), "l"(__p), "r"(c) : "memory");\n'
        "}\n"
        "rest\n"
    )
    assert helpers_to_macros(text) == (
        '#define f(__d0, __a0, __p, c) asm volatile("mma {__d0}, {%1}; x" : "=f"(__d0) : "r"((uint32_t)(__a0)), '
        '"l"((const void*)(__p)), "r"((bool)(c)) : "memory")\n'
        "rest\n"
    )


def test_macro_of_an_expression() -> None:
    text = "__forceinline__ __device__ unsigned int f(void* p) {\n    return g(p);\n}\n"
    assert helpers_to_macros(text) == "#define f(p) ((unsigned int)(g((void*)(p))))\n"


def test_other_helpers_stay_functions() -> None:
    text = "__forceinline__ __device__ int f(int a) {\n  int b = a;\n  return b;\n}\n"
    assert helpers_to_macros(text) == text


def test_vectors_of_register_arrays_print_without_index_arithmetic() -> None:
    """One vector move each, at an offset known to the compiler."""
    source = source_of(amd_programs.scale("cuda:sm_80"))
    assert "int4" not in source.replace("uint4", "")
    assert source.count("*(float4*)(L_ptr + 0) = *(float4*)(S_ptr + ") == 4


def test_unrolling_leaves_no_sums_of_literals() -> None:
    assert not re.search(r"\(\d+ [*+] \d+\)", gemm_source())


def test_register_indices_are_literals() -> None:
    indices = re.findall(r"\b[abc]_ptr(?:\[([^]]*)\]| \+ ([^)]*)\))", "\n".join(kernel_of(gemm_source())[3::2]))
    assert len(indices) > 64 * 14
    declared_or_used = {first or second for first, second in indices}
    assert all(text.isdigit() for text in declared_or_used), declared_or_used


def lines_of(*lines: int) -> OperationLines:
    return OperationLines(
        TileOperation(i, "copy", "", SourceLocation("/k.py", line, 0)) for i, line in enumerate(lines)
    )


def test_markers_carry_over_the_ends_of_blocks() -> None:
    text = "void k() {\n  __tl_op(1);\n  for (;;) {\n    __tl_op(2);\n    b;\n  }\n  c;\n  __tl_op(1);\n\n  d;\n}\n"
    got = markers_to_lines(text, lines_of(7, 8, 9)).splitlines()
    assert [(int(a.split()[1]), b.strip()) for a, b in zip(got[::2], got[1::2])] == [
        (7, "void k() {"),
        (8, "for (;;) {"),
        (9, "b;"),
        (9, "}"),
        (9, "c;"),
        (8, "d;"),
        (8, "}"),
    ]


def test_marker_within_a_line_is_an_error() -> None:
    with pytest.raises(CodegenError, match="marker"):
        markers_to_lines("void k() { __tl_op(1); }\n", lines_of(1, 2))


def test_lines_are_the_authors_where_they_can_be() -> None:
    lines = lines_of(4, 9, 9, 4)
    assert [lines.place(i) for i in range(4)] == [
        ("/k.py", 4),
        ("/k.py", 9),
        ("/k.py#op2", 1_000_002),
        ("/k.py#op3", 1_000_003),
    ]
    assert [lines.operation(*lines.place(i)) for i in range(4)] == [0, 1, 2, 3]
    assert [lines.source_line(i) for i in range(4)] == [4, 9, 9, 4]
    assert lines.operation("/k.py", 5) is None
    assert lines.operation("/k.py#op2", 9) is None


def test_header_is_lean() -> None:
    assert "#include" not in header([])
    assert "<cuda_fp16.h>" in header(["fp16"])
    assert "cuda/std" not in gemm_source()


def test_nothing_is_compiled_while_printing() -> None:
    """With a GPU present TVM hands printed text to its compile hook at once: it must be ours, and TVM's own again after."""
    import tvm.support.nvcc  # noqa: F401  (registers the hook)

    before = tvm_ffi.get_global_func("tvm_callback_cuda_compile")
    with own_header():
        assert bytes(tvm_ffi.get_global_func("tvm_callback_cuda_compile")("not CUDA at all")) == b""
    assert tvm_ffi.get_global_func("tvm_callback_cuda_compile").same_as(before)


def test_own_header_leaves_nothing_behind() -> None:
    generator = tvm_ffi.get_global_func(HOOK)
    before = str(generator([]))
    assert "cuda/std" in before  # TVM's own
    with own_header():
        assert str(tvm_ffi.get_global_func(HOOK)([])) == header([])
    assert str(tvm_ffi.get_global_func(HOOK)([])) == before
    with pytest.raises(KeyError), own_header():
        raise KeyError
    assert str(tvm_ffi.get_global_func(HOOK)([])) == before


def test_header_piece_that_is_not_served() -> None:
    from tvm.script import tirx as script

    program = programs.halves()

    def elect(store: Any) -> Any:
        return tirx.SeqStmt([tirx.Evaluate(script.cuda.elect_sync()), store])

    function = tvm_ffi.structural_map(program.function, [(tirx.BufferStore, elect)])
    with pytest.raises(CodegenError, match="elect_one_sync"):
        print_cuda(replace(program, function=function))


def test_importing_the_room_imports_no_tvm() -> None:
    code = "import sys; import tilelang_min.codegen.nvidia; sys.exit('tvm' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["main", "exp", "max", "float", "class", "__nv", "größe"])
def test_any_kernel_name(name: str) -> None:
    program = replace(amd_programs.scale("cuda:sm_80"), name=name)
    symbol, source = kernel_symbol(program), source_of(program)
    assert symbol == {"__nv": "v_nv_kernel_", "größe": "gr__e_kernel"}.get(name, f"{name}_kernel")
    assert f" {symbol}(float" in source
    assert f"'{symbol}'" in compile_cubin(source, arch="sm_80", name=name).log


def one_copy(source: str, tile: str) -> ThreadProgram:
    """O = A through shared memory, under names to try."""
    b = amd_programs.Build("copy", (1, 1, 1), 32, "cuda:sm_80")
    a, out = b.parameter(source, "float16", (32,)), b.parameter("O", "float16", (32,), "out")
    shared = b.shared(tile, "float16", (32,))
    larger = tirx.Max(amd_programs.load(shared, b.tx), tirx.FloatImm("float16", 0.0))
    body = [amd_programs.store(shared, amd_programs.load(a, b.tx), b.tx), amd_programs.store(out, larger, b.tx)]
    return b.program(amd_programs.operations(("kernel", 1)), body)


@pytest.mark.parametrize("name", ["new", "this", "max", "half", "threadIdx", "__syncthreads", "uint4", "größe", "bool"])
def test_any_parameter_and_tile_name(name: str) -> None:
    source = source_of(one_copy(name, name))
    assert f" {name}," not in source
    assert "'copy_kernel'" in compile_cubin(source, arch="sm_80", name=name).log


def test_ordinary_names_are_kept() -> None:
    source = source_of(one_copy("A", "A_shared"))
    assert "copy_kernel(half* __restrict__ A, half* __restrict__ O)" in source
    assert "A_shared_ptr[32]" in source
    function = programs.mma_tile().function
    assert with_safe_names(function) is function


def test_wheels_of_several_cuda_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch may bring CUDA 12's wheels: the newest is taken, whatever the names of its folder."""
    files = ["cuda_nvrtc/lib/libnvrtc.so.12", "cu13/lib/libnvrtc.so.13", "cu14/lib/libnvrtc.so.14"]
    for file in files:
        (tmp_path / "nvidia" / file).parent.mkdir(parents=True)
        (tmp_path / "nvidia" / file).touch()
    spec = importlib.machinery.ModuleSpec("nvidia", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "nvidia")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    found = [path.name for path in wheel_files("*/lib/libnvrtc.so.*")]
    assert found == ["libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12"]
