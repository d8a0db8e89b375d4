"""AMD code generation end to end: what the binary says, what the listing says, what is refused."""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import subprocess
from pathlib import Path
from typing import Any

import amd_programs as programs
import numpy as np
import pytest
import tvm
from tvm import ir, tirx
from tvm.target import Target

from tilelang_min.codegen.amd import code_object, generate, patch, toolchain
from tilelang_min.codegen.amd.llvm_text import print_llvm, with_signed_powers
from tilelang_min.errors import CodegenError
from tilelang_min.program import INSTRUCTION_CLASSES, CompiledKernel, ThreadProgram

ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")
every_architecture = pytest.mark.parametrize("arch", ARCHITECTURES)


@functools.cache
def compiled(name: str, arch: str = "gfx942") -> tuple[ThreadProgram, CompiledKernel]:
    program: ThreadProgram = getattr(programs, name)(f"hip:{arch}")
    return program, generate(program)


def opcodes(kernel: CompiledKernel, operation: int | None | str = "all") -> list[str]:
    chosen = (i for i in kernel.listing.instructions if operation == "all" or i.operation == operation)
    return [i.opcode for i in chosen]


def texts(kernel: CompiledKernel) -> list[str]:
    return [i.text for i in kernel.listing.instructions]


# What the binary says


@every_architecture
@pytest.mark.parametrize("name", ["scale", "gemm", "ragged", "product_of_elements"])
def test_resources_equal_the_note_that_llvm_wrote(name: str, arch: str) -> None:
    """The assembly holds the metadata as YAML text, the binary as MessagePack: two roads to the same numbers."""
    _, kernel = compiled(name, arch)
    text = kernel.listing.text

    def field(key: str) -> int:
        (value,) = re.findall(rf"^ +(?:- )?\.{key}: +(\d+)$", text, re.MULTILINE)
        return int(value)

    found = kernel.resources
    assert found.vgprs == field("vgpr_count")
    assert found.agprs == field("agpr_count")
    assert found.sgprs == field("sgpr_count")
    assert found.spilled_vgprs == field("vgpr_spill_count") == 0
    assert found.spilled_sgprs == field("sgpr_spill_count") == 0
    assert found.shared_bytes_static == field("group_segment_fixed_size")
    assert found.stack_bytes == field("private_segment_fixed_size") == 0
    assert found.registers_per_thread is not None
    assert found.vgprs is not None
    assert found.registers_per_thread % 8 == 0
    assert 0 <= found.registers_per_thread - found.vgprs < 8
    assert found.spill_store_bytes is None
    assert found.spill_load_bytes is None
    assert field("max_flat_workgroup_size") == compiled(name, arch)[0].threads


@every_architecture
def test_lds_bytes_are_the_sum_of_the_tiles(arch: str) -> None:
    assert compiled("scale", arch)[1].resources.shared_bytes_static == 32 * 36 * 4
    # two stages of 128 x (32 + 8) and 32 x (128 + 8) halves
    assert compiled("gemm", arch)[1].resources.shared_bytes_static == 2 * 2 * (128 * 40 + 32 * 136)
    assert compiled("product_of_elements", arch)[1].resources.shared_bytes_static == 0


def test_tiles_stand_at_their_offsets() -> None:
    """The smaller tile comes first in the program; LLVM by itself would put the larger one at 0."""
    b = programs.Build("places", (1, 1, 1), 128, "hip:gfx942")
    source, result = b.parameter("A", "float32", (128,)), b.parameter("B", "float32", (128,), "out")
    small, large = b.shared("small", "float32", (128,)), b.shared("large", "float32", (1024,))
    body = [
        programs.mark(1),
        programs.store(small, programs.load(source, b.tx), b.tx),
        programs.store(large, programs.load(source, 127 - b.tx), b.tx),
        programs.barrier(),
        programs.store(result, programs.load(small, 127 - b.tx) + programs.load(large, b.tx ^ 5), b.tx),
    ]
    program = b.program(programs.operations(("kernel", 1), ("copy", 2)), body)
    assert [tile.offset for tile in program.shared] == [0, 512]
    kernel = generate(program)
    writes = [t for t in texts(kernel) if t.startswith("ds_write")]
    assert kernel.resources.shared_bytes_static == 512 + 4096
    # Accesses stay single (`-load-store-opt`): pairs have no public rule of bank conflicts.
    assert len(writes) == 2
    assert any(re.fullmatch(r"ds_write_b32 v\d+, v\d+", write) for write in writes)
    assert any(re.fullmatch(r"ds_write_b32 v\d+, v\d+ offset:512", write) for write in writes)
    assert "absolute_symbol" in kernel.source
    assert "@lds.small" in kernel.source
    assert "@shmem" not in kernel.source


def test_arguments_keep_the_order_of_the_parameters() -> None:
    """`zz` before `aa`: TVM's own ROCm build sorts by name."""
    program, kernel = compiled("scale")
    note = code_object.read_note(kernel.binary, "scale")
    assert [p.name for p in program.parameters] == ["zz", "aa"]
    assert note.arguments == (("zz", 0, 8), ("aa", 8, 8))
    assert note.argument_bytes == 16
    assert note.wavefront_size == 64
    assert note.max_threads == 64


@every_architecture
def test_binary_is_a_loadable_code_object_of_version_5(arch: str) -> None:
    _, kernel = compiled("scale", arch)
    elf = code_object.open_elf(kernel.binary)
    assert elf["e_type"] == "ET_DYN"
    assert elf["e_machine"] == "EM_AMDGPU"
    assert kernel.binary[8] == 3  # e_ident[EI_ABIVERSION]: 3 is code object version 5
    dynamic = {s.name for s in elf.get_section_by_name(".dynsym").iter_symbols()}
    assert {"scale", "scale.kd"} <= dynamic
    assert code_object.read_note(kernel.binary, "scale").target == f"amdgcn-amd-amdhsa--{arch}"
    assert kernel.symbol == "scale"
    assert kernel.binary_kind == "hsaco"
    assert kernel.source_language == "llvm"
    assert elf.get_section_by_name(".tilelang.offsets") is None
    assert kernel.toolchain["clang"].startswith("22.")
    assert set(kernel.seconds) == {"print", "patch", "compile", "assemble", "link", "read"}


def test_equal_programs_give_equal_kernels_without_this_machine_in_them() -> None:
    first, second = compiled("mfma")[1], generate(programs.mfma())
    assert first.source == second.source
    assert first.binary == second.binary
    assert "0x5" not in first.source.split("attributes #0")[1]  # no heap addresses in the metadata
    assert b"/tilelang-" not in first.binary  # the folder in which the tools worked
    assert b"TVMMod" not in first.binary


# What the listing says


@every_architecture
@pytest.mark.parametrize("name", ["scale", "mfma", "gemm", "ragged", "product_of_elements"])
def test_listing_covers_the_symbol_and_its_operations(name: str, arch: str) -> None:
    program, kernel = compiled(name, arch)
    instructions = kernel.listing.instructions
    assert kernel.listing.syntax == "gcn"
    assert kernel.listing.attributed_fraction >= 0.95
    assert {i.klass for i in instructions} <= set(INSTRUCTION_CLASSES)
    assert {i.opcode for i in instructions if i.klass == "other"} <= {"s_nop", "s_setreg_imm32_b32"}
    offsets = [i.offset for i in instructions if i.offset is not None]
    assert len(offsets) == len(instructions)
    assert offsets[0] == 0
    assert {b - a for a, b in itertools.pairwise(offsets)} <= {4, 8, 12}
    assert instructions[-1].opcode == "s_endpgm"
    assert instructions[-1].operation == 0
    assert kernel.resources.code_bytes == offsets[-1] + 4
    lines = {o.id: o.location.line for o in program.operations}
    assert all(i.line == lines[i.operation] for i in instructions if i.operation is not None)


@every_architecture
def test_gemm_instructions_belong_to_the_operation_that_needs_them(arch: str) -> None:
    _, kernel = compiled("gemm", arch)
    where: dict[str, set[int | None]] = {}
    for i in kernel.listing.instructions:
        where.setdefault(i.klass, set()).add(i.operation)
    assert where["matrix"] == {5}
    assert where["shared_load"] == {5}
    assert where["shared_store"] == {3, 4}
    assert where["global_load"] == {3, 4}
    assert where["global_store"] == {6}
    assert opcodes(kernel, 2).count("s_barrier") >= 1  # marked as the loop's
    assert "s_cbranch_scc1" in opcodes(kernel, 2)
    assert opcodes(kernel, 6).count("global_store_dword") == 64
    # 2x2 products, 4 steps of 8: 16 in the loop; LLVM may peel iterations
    matrix = [o for o in opcodes(kernel) if o.startswith("v_mfma_f32_32x32x8")]
    assert len(matrix) % 16 == 0
    assert len(matrix) > 0


@every_architecture
def test_vectors_stay_whole(arch: str) -> None:
    """8 halves at aligned addresses are one 16-byte access, in LDS and in global memory; 4 halves 8 bytes."""
    found = opcodes(compiled("gemm", arch)[1])
    assert {o for o in found if o.startswith("global_load")} == {"global_load_dwordx4"}
    assert {o for o in found if o.startswith("ds_write")} == {"ds_write_b128"}
    reads = {o for o in found if o.startswith("ds_read")}
    assert reads & {"ds_read_b64", "ds_read2_b64", "ds_read2st64_b64"}
    assert not reads & {"ds_read_b32", "ds_read2_b32", "ds_read_u8"}
    scale = opcodes(compiled("scale", arch)[1])
    assert scale.count("ds_read_b128") == 4
    assert scale.count("global_store_dwordx4") == 4


def test_operations_that_share_a_line_stay_apart() -> None:
    """Operations 2 and 3 of `mfma` both stand on line 7: each has its own global load."""
    program, kernel = compiled("mfma")
    assert program.operations[2].location.line == program.operations[3].location.line == 7
    assert opcodes(kernel, 2).count("global_load_dwordx2") == 1
    assert opcodes(kernel, 3).count("global_load_dwordx2") == 1
    assert {i.line for i in kernel.listing.instructions if i.operation in (2, 3)} == {7}
    stores = [i for i in kernel.listing.instructions if i.klass == "shared_store"]
    assert sorted(store.operation or 0 for store in stores) == [2, 3]


@pytest.mark.parametrize(
    ("intrinsic", "opcode"),
    [
        ("llvm.amdgcn.mfma.f32.32x32x8f16", "v_mfma_f32_32x32x8_?f16"),
        ("llvm.amdgcn.mfma.f32.16x16x16f16", "v_mfma_f32_16x16x16_?f16"),
        ("llvm.amdgcn.mfma.f32.32x32x2f32", "v_mfma_f32_32x32x2_?f32"),
        ("llvm.amdgcn.mfma.f32.16x16x4f32", "v_mfma_f32_16x16x4_?f32"),
    ],
)
@every_architecture
def test_every_matrix_instruction_of_the_targets(intrinsic: str, opcode: str, arch: str) -> None:
    kernel = generate(programs.mfma(f"hip:{arch}", intrinsic))
    (matrix,) = [i for i in kernel.listing.instructions if i.klass == "matrix"]
    assert re.fullmatch(opcode, matrix.opcode)
    assert matrix.operation == 4


@every_architecture
def test_line_table_of_the_binary_agrees_with_the_listing(arch: str) -> None:
    """A profiler that reads only the binary finds the same lines."""
    program, kernel = compiled("gemm", arch)
    lines = {o.id: o.location.line for o in program.operations}
    elf = code_object.open_elf(kernel.binary)
    symbol = elf.get_section_by_name(".dynsym").get_symbol_by_name("gemm")[0]["st_value"]
    table: dict[int, tuple[int, int]] = {}
    info = elf.get_dwarf_info()
    for unit in info.iter_CUs():
        for entry in info.line_program_for_CU(unit).get_entries():
            if entry.state is not None and not entry.state.end_sequence:
                table[entry.state.address - symbol] = (entry.state.line, entry.state.column)
    compared = 0
    for i in kernel.listing.instructions:
        line, column = table.get(i.offset if i.offset is not None else -1, (0, 0))
        if line and column and i.klass != "move":
            assert (line, column) == (lines[column - 1], (i.operation or 0) + 1)
            compared += 1
    assert compared > 50


# Barriers


def waits_before_barriers(kernel: CompiledKernel) -> list[bool]:
    """For each barrier that follows an LDS write: whether all LDS traffic is waited for in between."""
    found, pending = [], None
    for text in texts(kernel):
        if text.startswith("ds_write"):
            pending = False
        elif pending is False and re.search(r"lgkmcnt\(0\)", text):
            pending = True
        elif text.startswith("s_barrier") and pending is not None:
            found.append(pending)
            pending = None
    return found


@every_architecture
@pytest.mark.parametrize("name", ["gemm", "ragged"])
def test_barriers_wait_for_lds_writes(name: str, arch: str) -> None:
    found = waits_before_barriers(compiled(name, arch)[1])
    assert found
    assert all(found)


def test_without_fences_the_wait_would_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the fences are for; shows that the test above can fail."""
    monkeypatch.setattr(patch, "_FENCED_BARRIER", "  call void @llvm.amdgcn.s.barrier()")
    assert not all(waits_before_barriers(generate(programs.gemm())))


def test_barrier_of_global_loads_in_flight_does_not_wait_for_them() -> None:
    """The fence orders LDS; loads from global memory that are still in flight pass a barrier of the workgroup."""
    b = programs.Build("flight", (1, 1, 1), 256, "hip:gfx942")
    source, result = b.parameter("A", "float32", (512,)), b.parameter("B", "float32", (256,), "out")
    tile, held = b.shared("S", "float32", (256,)), programs.local("L", 1, "float32")
    body = [
        programs.mark(1),
        programs.store(tile, programs.f32(1.0), b.tx),
        programs.store(held, programs.load(source, b.tx), 0),
        programs.barrier(),
        programs.store(result, programs.load(tile, 255 - b.tx) + programs.load(held, 0), b.tx),
    ]
    kernel = generate(b.program(programs.operations(("kernel", 1), ("copy", 2)), body, [held]))
    found = texts(kernel)
    assert not any("vmcnt(0)" in t for t in found[: found.index("s_barrier")])
    assert any("vmcnt(0)" in t for t in found[found.index("s_barrier") :])


# Other constructs


@every_architecture
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_plain_loop_contracts_to_fused_multiply_adds(dtype: str, arch: str) -> None:
    kernel = generate(programs.product_of_elements(f"hip:{arch}", dtype))
    counts = kernel.listing.by_class()
    assert counts["fma"] >= 1
    assert "float" not in counts  # no separate multiply or add
    assert kernel.listing.by_class(3)["fma"] == counts["fma"]
    assert "s_cbranch_scc1" in opcodes(kernel, 2)
    if dtype == "float16":
        assert any(o.startswith(("v_fma_mix", "v_cvt_f32_f16")) for o in opcodes(kernel, 3))


def test_guards_are_kept() -> None:
    """Ragged ends: the load and the store stand under an execution mask, the Select is no branch."""
    _, kernel = compiled("ragged")
    found = opcodes(kernel)
    assert found.count("s_and_saveexec_b64") == 2
    assert "v_cndmask_b32_e32" in opcodes(kernel, 2)
    assert found.index("s_and_saveexec_b64") < found.index("global_load_ushort")


def test_unrolled_loops_are_unrolled_and_serial_ones_stay() -> None:
    source = compiled("scale")[1].source
    assert source.count("store <4 x float>") == 1 + 4  # one in the serial loop, four unrolled
    assert "for_begin_i:" in source
    assert "for_begin_j:" not in source


HARDWARE = {
    "exp": "v_exp_",
    "exp2": "v_exp_",
    "log": "v_log_",
    "log2": "v_log_",
    "sqrt": "v_sqrt_",
    "rsqrt": "v_sqrt_",
    "tanh": "v_exp_",
    "sigmoid": "v_exp_",
    "abs": "v_and_b32",
    "floor": "v_floor_",
    "ceil": "v_ceil_",
    "trunc": "v_trunc_",
    "sin": "v_sin_",
    "cos": "v_cos_",
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", sorted(HARDWARE))
def test_math_functions_need_no_library(name: str, dtype: str) -> None:
    kernel = generate(programs.map_elements(lambda x: getattr(tirx, name)(x), dtype=dtype))
    assert any(o.startswith(HARDWARE[name]) for o in opcodes(kernel))
    assert not any(o.startswith("s_swappc") for o in opcodes(kernel))


def test_vector_guard_binding_and_integer_division() -> None:
    """A guarded vector load, a named scalar, division and remainder by 3, minimum, logic."""
    b = programs.Build("mix", (4, 1, 1), 64, "hip:gfx942")
    source, result = b.parameter("A", "float16", (2000,)), b.parameter("B", "float32", (2000,), "out")
    held, s = programs.local("L", 8, "float16"), programs.var("s")
    index = (b.bx * 64 + b.tx) * 8
    zero = tirx.Broadcast(tirx.FloatImm("float16", 0.0), 8)
    guarded = tirx.if_then_else(index < 2000, programs.load(source, index, 8), zero)
    third = tirx.Cast("float32", programs.load(held, 3))
    keep = tirx.And(s < 700, tirx.Not(tirx.EQ(tirx.FloorMod(b.tx, 3), 1)))
    body = [
        programs.mark(1),
        tirx.Bind(s, tirx.FloorDiv(index, 3)),
        programs.store(held, guarded, 0, 8),
        tirx.IfThenElse(keep, programs.store(result, tirx.Min(third, programs.f32(4.0)), s), None),
    ]
    kernel = generate(b.program(programs.operations(("kernel", 1), ("parallel", 2)), body, [held]))
    assert "v_min_f32_e32" in opcodes(kernel)
    assert kernel.resources.stack_bytes == 0


def test_power_of_a_negative_base(tmp_path: Path) -> None:
    """Run on the CPU: the rewritten power against NumPy, also where LLVM's expansion for amdgcn is NaN."""
    base = np.array([-2.5, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0], "float32")
    exponents = np.array([-3.0, -2.0, 0.0, 1.0, 2.0, 3.0, 0.5], "float32")
    x, y = (a.ravel().copy() for a in np.meshgrid(base, exponents))
    pointers = [tirx.Var(name, ir.PointerType(ir.PrimType("float32"), "global")) for name in "XYZ"]
    buffers = [tirx.decl_buffer((len(x),), "float32", p.name, data=p, data_alignment=4) for p in pointers]
    i = programs.var("i")
    power = tirx.pow(programs.load(buffers[0], i), programs.load(buffers[1], i))
    steps = [tirx.DeclBuffer(b, data=p) for b, p in zip(buffers, pointers)]
    body = tirx.SeqStmt([*steps, programs.loop(i, len(x), programs.store(buffers[2], power, i))])
    target = Target("llvm")
    function = with_signed_powers(tirx.PrimFunc(pointers, body))
    assert str(function).count("pow") > str(body).count("pow") >= 1
    module = ir.IRModule.from_expr(function.with_attr({"global_symbol": "power", "target": target}))
    for step in (tirx.transform.FlattenBuffer(), tirx.transform.LowerIntrin()):
        module = step(module)
    tvm.get_global_func("target.build.llvm")(module, target).write_to_file(str(tmp_path / "power.o"), "o")
    linker = [toolchain.zig(), "ld.lld", "-shared", str(tmp_path / "power.o"), "-o", str(tmp_path / "power.so")]
    subprocess.run(linker, check=True)
    z = np.zeros_like(x)
    ctypes.CDLL(str(tmp_path / "power.so")).power(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, z)))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(z, np.power(x.astype("float64"), y), rtol=1e-5)


# Options and refusals


def test_waves_per_eu_limits_registers_and_spills_are_counted() -> None:
    free = generate(programs.many_registers())
    kernel = generate(programs.many_registers(), options={"waves_per_eu": 8})
    found = kernel.resources
    assert '"amdgpu-waves-per-eu"="8,8"' in kernel.source
    assert (free.resources.registers_per_thread or 0) > 96
    assert free.resources.spilled_vgprs == 0
    assert found.registers_per_thread == 64  # 512 / 8
    assert (found.spilled_vgprs or 0) > 30
    assert (found.stack_bytes or 0) > 4 * 30
    counts = kernel.listing.by_class()
    assert counts["local_load"] >= 1
    assert counts["local_store"] >= 1
    assert kernel.listing.attributed_fraction >= 0.95


@pytest.mark.parametrize("options", [{"waves_per_eu": 9}, {"waves_per_eu": (4, 2)}, {"waves": 2}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(CodegenError, match="waves"):
        generate(programs.scale(), options=options)


def test_intrinsic_that_the_target_lacks_is_named() -> None:
    """LLVM aborts on it; here that is an error of this kernel."""
    generate(programs.mfma("hip:gfx950", "llvm.amdgcn.mfma.f32.16x16x32.f16"))
    with pytest.raises(CodegenError, match=r"refused llvm\.amdgcn\.mfma\.f32\.16x16x32\.f16") as caught:
        generate(programs.mfma("hip:gfx942", "llvm.amdgcn.mfma.f32.16x16x32.f16"))
    assert "Cannot select" in str(caught.value)


def test_function_without_code_is_named() -> None:
    with pytest.raises(CodegenError, match="calls erff, which hip:gfx942 has no code for"):
        generate(programs.map_elements(tirx.erf))


def test_too_much_lds_is_an_error_with_the_numbers() -> None:
    with pytest.raises(CodegenError, match=r"local memory \(\d+\) exceeds limit \(65536\)"):
        generate(programs.gemm(pad=320))


def test_other_targets_are_refused() -> None:
    with pytest.raises(CodegenError, match="no AMD code generator for cuda:sm_80"):
        generate(programs.scale("cuda:sm_80"))


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain.zig.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    try:
        with pytest.raises(CodegenError, match="ziglang package is not installed"):
            toolchain.zig()
    finally:
        toolchain.zig.cache_clear()


def test_printing_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    """TVM's warning about a missing ROCm driver does not reach the terminal."""
    print_llvm(programs.scale())
    assert capfd.readouterr().err == ""
