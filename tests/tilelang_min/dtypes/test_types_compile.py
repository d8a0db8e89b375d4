"""Every data type and matrix instruction through the three code generators; CPU kernels are run."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm import tirx
from type_programs import (
    Build,
    arithmetic,
    conversions,
    elementwise,
    load,
    mark,
    matrices,
    store,
    through_shared,
    tvm_name,
)
from type_reference import converted, same, samples

from tilelang_min.codegen import amd, cpu, nvidia
from tilelang_min.program import CompiledKernel, ThreadProgram
from tilelang_min.program.dtypes import DATA_TYPES, numpy_dtype
from tilelang_min.simulate import simulate
from tilelang_min.targets import resolve

NVIDIA = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
AMD = ("gfx90a", "gfx942", "gfx950")
CPUS = ("cpu:x86-64-v2", "cpu")


def run(program: ThreadProgram, values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The outputs of a CPU kernel, run on this thread."""
    kernel = cpu.generate(program, options={"level": 2})
    path = folder / "kernel.so"
    path.write_bytes(kernel.binary)
    arrays = {
        p.name: np.ascontiguousarray(values[p.name]) if p.access == "in" else np.zeros(p.shape, numpy_dtype(p.dtype))
        for p in program.parameters
    }
    function = ctypes.CDLL(str(path))[kernel.symbol]
    function.argtypes = [ctypes.c_void_p] * len(arrays) + [ctypes.c_int32] * 2
    function(*(array.ctypes.data for array in arrays.values()), 0, program.grid[0])
    return {p.name: arrays[p.name] for p in program.parameters if p.access != "in"}


def inputs(program: ThreadProgram, count: int) -> dict[str, Any]:
    return {
        p.name: samples(p.dtype, count, np.random.default_rng(i))
        for i, p in enumerate(program.parameters)
        if p.access == "in"
    }


# ---- CPU --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "lanes"), [("cpu:x86-64-v2", 4), ("cpu", 1), ("cpu", 8), ("cpu", 16)])
def test_conversions_on_the_cpu(target: str, lanes: int, tmp_path: Path) -> None:
    program = conversions(target, lanes, 1024)
    values = inputs(program, 1024)
    for name, found in run(program, values, tmp_path).items():
        source, result = next((s, r) for s in DATA_TYPES for r in DATA_TYPES if name == f"B_{s}_{r}")
        expected, defined = converted(values[f"A_{source}"], source, result)
        wrong = ~same(found, expected) & defined
        assert not wrong.any(), (name, values[f"A_{source}"][wrong][:4], found[wrong][:4], expected[wrong][:4])


@pytest.mark.parametrize(("target", "lanes"), [("cpu:x86-64-v2", 4), ("cpu", 1), ("cpu", 16)])
def test_arithmetic_on_the_cpu(target: str, lanes: int, tmp_path: Path) -> None:
    """Bit for bit what the simulator says, which its own tests compare with the definition of the formats."""
    program = arithmetic(target, lanes, 512)
    values = inputs(program, 512)
    expected = simulate(program, values, count=False).outputs
    for name, found in run(program, values, tmp_path).items():
        wrong = ~same(found, expected[name])
        # The larger of NaN and a number is a matter of the instruction at hand.
        if name.endswith("_max"):
            wrong &= ~np.isnan(expected[name].astype(np.float64))
        assert not wrong.any(), (name, found[wrong][:4], expected[name][wrong][:4])


@pytest.mark.parametrize("dtype", list(DATA_TYPES))
def test_tiles_on_the_cpu(dtype: str, tmp_path: Path) -> None:
    values = samples(dtype, 256, np.random.default_rng(3))
    found = run(through_shared("cpu", dtype, 16), {"A0": values}, tmp_path)["B"]
    assert np.array_equal(found.view(np.uint8), values.view(np.uint8))


@pytest.mark.parametrize("target", CPUS)
def test_functions_and_choices_on_the_cpu(target: str, tmp_path: Path) -> None:
    """exp of a bfloat16, a guarded load with a constant, a select on an 8-bit float."""

    def function(x: Any, y: Any) -> Any:
        zero = tirx.FloatImm("bfloat16", 0.0)
        guarded = tirx.if_then_else(x < tirx.FloatImm("float8_e4m3fn", 2.0), tirx.exp(y), zero)
        return tirx.Select(y > zero, guarded, tirx.Cast("bfloat16", x))

    program = elementwise(target, ["float8_e4m3", "bfloat16"], "bfloat16", function)
    values = inputs(program, 256)
    with np.errstate(all="ignore"):
        expected = simulate(program, values, count=False).outputs["B"].astype(np.float32)
        found = run(program, values, tmp_path)["B"].astype(np.float32)
        close = np.isclose(found, expected, rtol=2.0**-7, atol=0, equal_nan=True)  # exp itself may be off by a last bit
    assert close.all()
    assert 20 < (expected == 0).sum() < 200  # both branches are taken


# ---- NVIDIA -----------------------------------------------------------------------------------------------------------


def opcodes(kernel: CompiledKernel, word: str) -> Counter[str]:
    return Counter(i.opcode for i in kernel.listing.instructions if word in i.opcode)


@pytest.mark.parametrize("arch", NVIDIA)
def test_nvidia_matrix_instructions(arch: str) -> None:
    """One machine instruction for each of the program's, but for what the architecture lacks."""
    instructions = resolve(f"cuda:{arch}").instruction_set
    kernel = nvidia.generate(matrices(f"cuda:{arch}", instructions))
    found = opcodes(kernel, "MMA")
    emulated = sum("float8" in each.a_dtype for each in instructions) if arch in ("sm_90a", "sm_100a") else 0
    assert sum(found.values()) == len(instructions) + emulated
    kinds = {opcode.split(".")[0] for opcode in found}
    assert kinds >= {"HMMA", "IMMA"} | ({"DMMA"} if arch != "sm_75" else set())
    assert any(".BF16" in opcode for opcode in found) == any(".TF32" in opcode for opcode in found) == (arch != "sm_75")
    assert ("QMMA" in kinds) == (arch in ("sm_89", "sm_120a"))
    assert kernel.resources.spill_load_bytes == kernel.resources.stack_bytes == 0
    belongs = [i.operation for i in kernel.listing.instructions if "MMA" in i.opcode]
    assert belongs.count(3) == len(belongs)


@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_89", "sm_120a"])  # instructions differ from sm_80 and sm_89 on
def test_nvidia_conversions(arch: str) -> None:
    kernel = nvidia.generate(conversions(f"cuda:{arch}", 4, 256))
    assert kernel.resources.stack_bytes == 0
    new = arch not in ("sm_75", "sm_80", "sm_86")
    assert any("E4M3" in opcode for opcode in opcodes(kernel, "F2FP")) == new
    assert any("BF16" in opcode for opcode in opcodes(kernel, "F2FP")) == (arch != "sm_75")
    assert kernel.listing.attributed_fraction > 0.95
    named = Counter(i.operation for i in kernel.listing.instructions)
    assert named[2] > 0.95 * sum(named.values()) - 20  # no helper of a header takes them away


@pytest.mark.parametrize(("arch", "lanes"), [("sm_75", 1), ("sm_80", 16), ("sm_90a", 8)])
def test_nvidia_arithmetic(arch: str, lanes: int) -> None:
    """Vectors of 16 bytes are loaded and stored whole, also where they are computed in parts."""
    kernel = nvidia.generate(arithmetic(f"cuda:{arch}", lanes, 64 * lanes))
    assert kernel.resources.stack_bytes == 0
    types = [known for known in DATA_TYPES.values() if known.size * lanes <= 16 and known.kind != "bool"]
    whole = [known for known in types if known.size * lanes == 16]
    stores = opcodes(kernel, "STG")
    assert sum(stores.values()) == 6 * len(types)
    assert sum(n for opcode, n in stores.items() if ".128" in opcode) == 6 * len(whole)


def test_nvidia_vectors_of_one_value() -> None:
    """Constants and loaded values, 4 to 16 bytes of every small type."""
    b = Build("cuda:sm_80", threads=64)
    body, sizes = [mark(1)], []
    for dtype in ("int8", "uint8", "int16", "uint16", "bfloat16", "float8_e5m2", "bool", "float16", "int64"):
        source = b.parameter(f"A_{dtype}", dtype, (64,))
        for lanes in (2, 4, 8, 16):
            size = lanes * DATA_TYPES[dtype].size
            if size in (4, 8, 16):
                out = b.parameter(f"B_{dtype}_{size}", dtype, (128 * lanes,), "out")
                sizes.append(size)
                for i, value in enumerate((tirx.const(1, tvm_name(dtype)), load(source, b.thread))):
                    body.append(store(out, tirx.Broadcast(value, lanes), (b.thread + 64 * i) * lanes, lanes))
    stores = opcodes(nvidia.generate(b.program(*body)), "STG")
    assert sum(n for opcode, n in stores.items() if ".128" in opcode) == 2 * sizes.count(16)
    assert sum(n for opcode, n in stores.items() if ".64" in opcode.replace(".E.128", "")) == 2 * sizes.count(8)
    assert stores.total() == 2 * len(sizes)


def test_nvidia_named_vectors_computed_in_parts() -> None:
    """A named vector of sixteen int8 and one of eight bfloat16, made and used where no printable type is wide enough."""
    b = Build("cuda:sm_80", threads=32)
    a_in, a_out = b.parameter("A", "int8", (512,)), b.parameter("B", "int8", (512,), "out")
    c_in, c_out = b.parameter("C", "bfloat16", (256,)), b.parameter("D", "bfloat16", (256,), "out")
    v, w = tirx.Var("v", "int8x16"), tirx.Var("w", "bfloat16x8")
    four, eight = load(a_in, b.thread * 16, 16), load(c_in, b.thread * 8, 8)
    zero = tirx.Broadcast(tirx.FloatImm("bfloat16", 0.0), 8)
    program = b.program(
        *(mark(1), tirx.Bind(v, four + four), store(a_out, v * v, b.thread * 16, 16)),
        *(mark(2), tirx.Bind(w, tirx.Select(eight > zero, eight, zero)), store(c_out, w + w, b.thread * 8, 8)),
    )
    stores = opcodes(nvidia.generate(program), "STG")
    assert stores.total() == 2
    assert all(".128" in opcode for opcode in stores)
    a, c = samples("int8", 512, np.random.default_rng(1)), samples("bfloat16", 256, np.random.default_rng(2))
    outputs = simulate(program, {"A": a, "C": c}).outputs
    assert np.array_equal(outputs["B"], (4 * a.astype(np.int32) ** 2).astype(np.int8))
    wide = c.astype(np.float32)
    with np.errstate(all="ignore"):
        assert same(outputs["D"], 2 * np.where(wide > 0, wide, np.float32(0))).all()


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "float8_e5m2"])
def test_nvidia_functions(dtype: str) -> None:
    """All functions of the language in one kernel; a power of narrow floats is not among them."""

    def every(x: Any) -> Any:
        names = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid")
        total = sum((getattr(tirx, name)(x) for name in names[1:]), getattr(tirx, names[0])(x))
        return tirx.pow(total, x) if dtype in ("float64", "float16") else total

    kernel = nvidia.generate(elementwise("cuda:sm_80", [dtype], dtype, every))
    assert kernel.resources.stack_bytes == 0 or dtype == "float64"


def test_nvidia_bools_are_bytes() -> None:
    """Four bools are four bytes in memory, sixteen move at once."""
    for lanes, width in ((4, None), (16, ".128")):
        kernel = nvidia.generate(through_shared("cuda:sm_80", "bool", lanes))
        (store,) = opcodes(kernel, "STG")
        assert (width in store) if width else ("64" not in store and "U8" not in store)


def test_nvidia_narrow_types_do_not_change_programs_without_them() -> None:
    """float32, float16 and 32-bit integers are printed as they were: no copy through arrays, no conversion macro."""
    program = elementwise(
        "cuda:sm_80", ["float32", "float16"], "float32", lambda x, y: x * tirx.Cast("float32x4", y), lanes=4
    )
    text = nvidia.generate(program).source
    assert "__tl_convert" not in text
    assert not re.search(r"\bv\d+_ptr\b", text)


# ---- AMD --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", AMD)
def test_amd_matrix_instructions(arch: str) -> None:
    instructions = resolve(f"hip:{arch}").instruction_set
    kernel = amd.generate(matrices(f"hip:{arch}", instructions))
    found = opcodes(kernel, "mfma")
    shapes = Counter(re.search(r"\d+x\d+x\d+", each.name)[0] for each in instructions)  # type: ignore[index]
    assert Counter(re.search(r"\d+x\d+x\d+", opcode)[0] for opcode in found.elements()) == shapes  # type: ignore[index]
    assert not kernel.resources.spilled_vgprs
    belongs = [i.operation for i in kernel.listing.instructions if "mfma" in i.opcode]
    assert belongs.count(3) == len(belongs)


@pytest.mark.parametrize("arch", AMD)
def test_amd_conversions_and_arithmetic(arch: str) -> None:
    for lanes in (1, 4):
        kernel = amd.generate(conversions(f"hip:{arch}", lanes, 64 * lanes))
        assert bool(opcodes(kernel, "cvt_pk_fp8")) == bool(opcodes(kernel, "cvt_pk_bf16")) == (arch == "gfx950")
        assert kernel.listing.attributed_fraction > 0.95
    amd.generate(arithmetic(f"hip:{arch}", 16, 1024))


@pytest.mark.parametrize("dtype", list(DATA_TYPES))
def test_amd_tiles_of_every_type(dtype: str) -> None:
    kernel = amd.generate(through_shared("hip:gfx942", dtype, 16 // DATA_TYPES[dtype].size))
    assert opcodes(kernel, "ds_write_b128").total() == opcodes(kernel, "ds_read_b128").total() == 1
