"""Thread programs compiled for NVIDIA GPUs: figures against the log and the binary, instructions on their operations."""

from __future__ import annotations

import io
import re
import struct
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import amd_programs
import nvidia_programs as programs
import pytest
from elftools.elf.elffile import ELFFile

from tilelang_min.codegen.nvidia import generate
from tilelang_min.codegen.nvidia.nvrtc import compile_cubin, fixed_options
from tilelang_min.errors import CodegenError
from tilelang_min.program import CompiledKernel, SourceLocation, ThreadProgram

ARCHITECTURES = ("sm_80", "sm_90a")
MAKERS = {
    "scale": amd_programs.scale,
    "mma_tile": programs.mma_tile,
    "gemm": programs.gemm,
    "halves": programs.halves,
    "divide": programs.divide,
}


@cache
def compiled(name: str, arch: str) -> CompiledKernel:
    return generate(MAKERS[name](f"cuda:{arch}"))


@pytest.fixture(params=[(name, arch) for name in MAKERS for arch in ARCHITECTURES], ids=lambda p: f"{p[0]}-{p[1]}")
def case(request: pytest.FixtureRequest) -> CompiledKernel:
    return compiled(*request.param)


def register_count(cubin: bytes, symbol: str) -> int:
    """EIATTR_REGCOUNT (0x2f) of a kernel, from the section .nv.info."""
    elf = ELFFile(io.BytesIO(cubin))
    names = [entry.name for entry in elf.get_section_by_name(".symtab").iter_symbols()]
    data, at = elf.get_section_by_name(".nv.info").data(), 0
    while at < len(data):
        form, attribute = data[at], data[at + 1]
        size = struct.unpack_from("<H", data, at + 2)[0] if form == 4 else 0
        if form == 4 and attribute == 0x2F:
            index, count = struct.unpack_from("<II", data, at + 4)
            if names[index] == symbol:
                return int(count)
        at += 4 + size
    raise AssertionError("no register count in the cubin")


def shared_section(cubin: bytes, symbol: str, reserved: int) -> int:
    section = ELFFile(io.BytesIO(cubin)).get_section_by_name(f".nv.shared.{symbol}")
    return max(0, section["sh_size"] - reserved) if section is not None else 0


def test_figures_are_those_of_log_and_binary(case: CompiledKernel) -> None:
    figures, reserved = case.resources, 1024 if "for 'sm_90a'" in case.log else 0
    used = re.search(r"Used (\d+) registers", case.log)
    assert used is not None
    assert figures.registers_per_thread == int(used[1]) == register_count(case.binary, case.symbol)
    assert figures.shared_bytes_static == shared_section(case.binary, case.symbol, reserved)
    frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", case.log)
    assert frame is not None
    assert (figures.stack_bytes, figures.spill_store_bytes, figures.spill_load_bytes) == tuple(map(int, frame.groups()))
    assert figures.stack_bytes == 0, "register arrays must be indexed by constants"
    assert figures.vgprs is figures.agprs is figures.sgprs is None


def test_static_shared_bytes() -> None:
    assert compiled("scale", "sm_80").resources.shared_bytes_static == 32 * 36 * 4
    assert compiled("mma_tile", "sm_90a").resources.shared_bytes_static == 16 * 24 * 2 + 16 * 8 * 2
    assert compiled("gemm", "sm_80").resources.shared_bytes_static == 0  # its arena is dynamic


def test_nearly_every_instruction_belongs_to_an_operation(case: CompiledKernel) -> None:
    assert case.listing.attributed_fraction >= 0.95


def test_code_ends_before_the_padding(case: CompiledKernel) -> None:
    instructions = case.listing.instructions
    assert [i.offset for i in instructions] == list(range(0, 16 * len(instructions), 16))
    assert instructions[-1].opcode != "NOP"
    assert case.resources.code_bytes == 16 * len(instructions)
    text = ELFFile(io.BytesIO(case.binary)).get_section_by_name(f".text.{case.symbol}")
    assert case.resources.code_bytes < text["sh_size"]
    assert "BRA `(.L_x" in case.listing.text
    assert "NOP" in case.listing.text


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_operations_of_the_matrix_product(arch: str) -> None:
    """Counted by hand: 4 stages' worth of unrolled statements."""
    listing = compiled("gemm", arch).listing
    opcodes = Counter((i.operation, i.opcode.split(".")[0]) for i in listing.instructions)
    assert opcodes[5, "HMMA"] == 2 * 4 * 8 == listing.by_class()["matrix"]
    assert opcodes[5, "LDSM"] == 2 * (4 + 4) == listing.by_class()["ldmatrix"]
    assert opcodes[3, "LDGSTS"] == opcodes[4, "LDGSTS"] == 3 * 4  # two stages in front of the loop, one in it
    assert opcodes[6, "STG"] == 4 * 8 * 2 == listing.by_class()["global_store"]
    assert listing.by_class(2)["barrier"] == 1
    assert {i.line for i in listing.instructions if i.operation == 5} == {18}


def test_conversions_stay_on_their_operation() -> None:
    """They are functions of cuda_fp16.h: two halves are packed by one instruction."""
    listing = compiled("halves", "sm_80").listing
    assert [listing.by_class(operation).get("convert") for operation in (1, 2, 3)] == [8, 4, 4]


def test_operations_on_one_line_stay_apart() -> None:
    apart = compiled("mma_tile", "sm_80")
    together = generate(programs.mma_tile(lines=(5, 5, 5, 5, 5)))
    assert [i.operation for i in together.listing.instructions] == [i.operation for i in apart.listing.instructions]
    assert {i.line for i in together.listing.instructions} == {5}
    assert together.binary != apart.binary


def test_same_line_of_two_files_stays_apart() -> None:
    """ptxas starts no new row where only the file changes."""
    program = programs.mma_tile(lines=(5, 5, 5, 5, 5))
    moved = tuple(
        replace(o, location=replace(o.location, file=f"/home/author/part{o.id}.py")) for o in program.operations
    )
    listing = generate(replace(program, operations=moved)).listing
    expected = compiled("mma_tile", "sm_80").listing
    assert listing.by_operation() == expected.by_operation()


@pytest.mark.parametrize("file", ["kernel.py", '/tmp/a "b"\\c.py', "/tmp/größe.py", "<cell 3>", "/a/../b.py"])
def test_any_file_name(file: str) -> None:
    program = programs.mma_tile()
    moved = tuple(replace(o, location=SourceLocation(file, o.location.line, 0)) for o in program.operations)
    assert (
        generate(replace(program, operations=moved)).listing.by_operation()
        == compiled("mma_tile", "sm_80").listing.by_operation()
    )


def test_subroutine_belongs_to_its_only_caller() -> None:
    listing = compiled("divide", "sm_80").listing
    assert any(i.opcode.startswith("CALL") for i in listing.instructions)
    inside = [i for i in listing.instructions if i.offset is not None and i.offset >= first_subroutine(listing.text)]
    assert len(inside) > 50
    assert {i.operation for i in inside} == {2}


def test_subroutine_of_several_callers_belongs_to_the_kernel() -> None:
    listing = generate(programs.divide(both=True)).listing
    inside = [i for i in listing.instructions if i.offset is not None and i.offset >= first_subroutine(listing.text)]
    assert {i.operation for i in inside} == {0}
    assert {i.operation for i in listing.instructions if i.opcode.startswith("CALL")} == {2, 3}


def first_subroutine(text: str) -> int:
    found = re.search(r"^\$__internal\S+:\s+/\*([0-9a-f]+)\*/", text, re.MULTILINE)
    assert found is not None
    return int(found[1], 16)


def test_spills_are_counted() -> None:
    kernel = generate(programs.gemm(), options={"max_registers": 128})
    assert kernel.resources.registers_per_thread is not None
    assert kernel.resources.registers_per_thread <= 128
    assert kernel.resources.spill_store_bytes
    assert kernel.resources.spill_load_bytes
    classes = kernel.listing.by_class()
    assert 0 < classes["local_store"] * 4 <= kernel.resources.spill_store_bytes
    assert "__maxnreg__(128)" in kernel.source


def test_launch_bounds() -> None:
    kernel = generate(amd_programs.scale("cuda:sm_80"), options={"min_blocks": 2})
    assert "__launch_bounds__(64, 2)" in kernel.source


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threads": 3}, "unknown option 'threads'"),
        ({"min_blocks": "2"}, "min_blocks is '2'"),
        ({"min_blocks": True}, "min_blocks is True"),
        ({"min_blocks": 1, "max_registers": 64}, "exclude each other"),
    ],
)
def test_wrong_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(CodegenError, match=words):
        generate(amd_programs.scale("cuda:sm_80"), options=options)


def test_refused_text_shows_the_log() -> None:
    with pytest.raises(CodegenError) as caught:
        compile_cubin('extern "C" __global__ void bad(float* a) { a[0] = nothing; }', arch="sm_80", name="bad")
    assert "kernel bad" in str(caught.value)
    assert 'identifier "nothing" is undefined' in str(caught.value)


def test_unknown_architecture_shows_the_log() -> None:
    with pytest.raises(CodegenError, match="sm_12"):
        compile_cubin('extern "C" __global__ void k() {}', arch="sm_12", name="k")


def test_marker_of_an_unlisted_operation() -> None:
    program = programs.mma_tile()
    short = replace(program, operations=program.operations[:3])
    with pytest.raises(CodegenError, match="marks operation 3"):
        generate(short)


def test_buffers_must_be_flat() -> None:
    program: ThreadProgram = amd_programs.scale("cuda:sm_80")
    from tvm import ir, tirx

    pointer = tirx.Var("A", ir.PointerType(ir.PrimType("float32"), "global"))
    square = tirx.decl_buffer((4, 4), "float32", "A", data=pointer)
    body = tirx.SeqStmt([tirx.DeclBuffer(square, data=pointer), tirx.Evaluate(0)])
    with pytest.raises(CodegenError, match="buffer A of the thread program has 2 dimensions"):
        generate(replace(program, function=tirx.PrimFunc([pointer], body)))


def test_binary_does_not_depend_on_the_current_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert generate(programs.mma_tile()).binary == compiled("mma_tile", "sm_80").binary


def test_tools_and_steps_are_named(case: CompiledKernel) -> None:
    assert set(case.seconds) == {"print", "nvrtc"}
    assert all(value > 0 for value in case.seconds.values())
    assert set(case.toolchain) == {"tvm", "nvrtc", "nvdisasm"}
    assert all(re.fullmatch(r"\d+(\.\w+)+", value) for value in case.toolchain.values())
    assert (case.binary_kind, case.source_language, case.listing.syntax) == ("cubin", "cuda", "sass")
    assert case.binary.startswith(b"\x7fELF")


def test_a_long_loop_of_float16_arithmetic_compiles_at_once() -> None:
    """NVRTC takes the assembly of float16 arithmetic for nothing: it unrolled such a loop whole, and did not end in minutes."""
    import tilelang_min as tilelang
    import tilelang_min.language as T

    def factory(dtype: str) -> Any:
        @T.prim_func
        def main(A: T.Tensor((1024,), dtype), B: T.Tensor((1024,), dtype)):
            with T.Kernel(1, threads=64):
                x = T.alloc_fragment((1024,), dtype)
                T.copy(A, x)
                for _r in T.serial(512):
                    for i in T.Parallel(1024):
                        x[i] = x[i] * x[i] + 1.0
                T.copy(x, B)

        return main

    half = tilelang.compile(factory("float16"), "cuda:sm_90a", cache=False)
    assert "#pragma unroll 4\n" in half.source()
    assert half.metadata.compile_seconds["nvrtc"] < 20
    assert "#pragma unroll" not in tilelang.compile(factory("float32"), "cuda:sm_90a", cache=False).source()


def test_nvrtc_keeps_nothing() -> None:
    """What it takes from its own cache comes without the report that registers and spills are read from."""
    assert "--no-cache" in fixed_options("sm_90a", "12.9")
    assert "--no-cache" in fixed_options("sm_90a", "13.5")
    assert "--no-cache" not in fixed_options("sm_70", "12.8")  # does not know it


def test_rounding_to_bfloat16_inside_a_chain_takes_one_instruction() -> None:
    """A value rounded and used again is the upper half of a pair; what is stored is packed two by two."""
    import tilelang_min as tilelang
    import tilelang_min.language as T

    @T.prim_func
    def chain(A: T.Tensor((2048,), "bfloat16"), B: T.Tensor((2048,), "bfloat16")):
        with T.Kernel(1, threads=256):
            for i in T.Parallel(2048):
                B[i] = (A[i] * 3 + A[i]) * 5

    kernel = tilelang.compile(chain, "cuda:sm_90a")
    listing = kernel.assembly()
    assert "F2F." not in listing
    pairs = re.findall(r"F2FP\.BF16\.F32\.PACK_AB \w+, (\w+), (\w+)", listing)
    assert sum(low == "RZ" for _, low in pairs) == 8 * 2  # eight elements a thread, two roundings in between
    assert sum(low != "RZ" for _, low in pairs) == 4
    assert "__tl_convert_bfloat16_float32(__tl_convert_float32_bfloat16(" not in kernel.source()
