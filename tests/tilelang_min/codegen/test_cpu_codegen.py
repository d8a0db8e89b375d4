from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_programs import gemm, load, loop, mark, program, run, scale, store, tile, unary, var
from elftools.elf.elffile import ELFFile
from tvm import ir, tirx

from tilelang_min.codegen.cpu import generate
from tilelang_min.errors import CodegenError, ResourceError
from tilelang_min.program import Parameter
from tilelang_min.targets import cpu, resolve

HERE = cpu.detect()
RED_ZONE = 128  # bytes below the stack pointer that a function without calls may use (System V ABI)
LEVELS = [level for level in cpu.ARCHITECTURES if cpu.ARCHITECTURES.index(level) <= cpu.ARCHITECTURES.index(HERE)]


@pytest.mark.parametrize("level", LEVELS)
def test_scale_with_a_ragged_end_leaves_the_rest_alone(level: str, tmp_path: Path) -> None:
    a = np.arange(1024, dtype=np.float32)
    b = np.full(1024, -1, np.float32)
    run(generate(scale(1000, target=f"cpu:{level}")), tmp_path, 8, a, b)
    assert np.array_equal(b[:1000], 2 * a[:1000])
    assert (b[1000:] == -1).all()


@pytest.mark.parametrize("level", LEVELS)
def test_gemm_against_float64(level: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((96, 80), np.float32), rng.standard_normal((80, 128), np.float32)
    c = np.full((96, 128), np.nan, np.float32)
    run(generate(gemm(96, 128, 80, f"cpu:{level}")), tmp_path, 6, a, b, c)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.skipif(HERE == "x86-64-v2", reason="this processor has no fused multiply-add")
def test_accumulators_stay_in_registers_and_nearly_all_code_has_an_operation() -> None:
    kernel = generate(gemm(64, 128, 64))
    listing = kernel.listing
    assert listing.attributed_fraction >= 0.95
    assert listing.syntax == "x86"
    counts = listing.by_operation()
    assert set(counts) - {None} == set(range(7))
    assert counts[5]["fma"] >= 16
    assert all("fma" not in by_class for operation, by_class in counts.items() if operation != 5)
    # The k loop: the instructions between the first and the last FMA that no jump separates hold no store.
    fmas = [i for i, one in enumerate(listing.instructions) if one.klass == "fma"]
    inner = listing.instructions[fmas[0] : fmas[-1] + 1]
    assert not [one.text for one in inner if one.klass.endswith("store")]
    lines = {one.operation: one.line for one in listing.instructions}
    assert lines[5] == 17
    assert kernel.resources.stack_bytes is not None
    tiles = 4 * (32 * 16 + 16 * 64 + 32 * 64)
    assert tiles - RED_ZONE <= kernel.resources.stack_bytes < tiles + 1024
    assert kernel.resources.registers_per_thread is None
    offsets = [one.offset for one in listing.instructions]
    assert offsets[0] == 0
    assert offsets == sorted(offsets)  # type: ignore[type-var]
    assert kernel.resources.code_bytes is not None
    assert offsets[-1] == kernel.resources.code_bytes - 1  # a one-byte ret
    assert listing.instructions[-1].opcode == "ret"


def test_two_operations_on_one_line_stay_apart() -> None:
    listing = generate(scale(lines=(5, 7, 7))).listing
    counts = listing.by_operation()
    assert counts[1]["global_load"] >= 1
    assert "global_store" not in counts[1]
    assert counts[2]["global_store"] >= 1
    assert {one.line for one in listing.instructions if one.operation in (1, 2)} == {7}


def test_the_shared_object_needs_nothing_and_offers_the_kernel_alone() -> None:
    elf = ELFFile(io.BytesIO(generate(gemm(32, 64, 16)).binary))
    symbols = [s for s in elf.get_section_by_name(".dynsym").iter_symbols() if s.name]
    assert [s.name for s in symbols] == ["gemm"]
    assert not [tag for tag in elf.get_section_by_name(".dynamic").iter_tags() if tag.entry.d_tag == "DT_NEEDED"]


def test_equal_programs_give_equal_text_and_binary() -> None:
    one, two = generate(scale()), generate(scale())
    assert one.source == two.source
    assert one.binary == two.binary
    assert "__tl_op" not in one.source
    assert set(one.seconds) == {"tvm", "lines", "clang", "link", "listing"}
    assert one.toolchain["apache-tvm"].startswith("0.27")


@pytest.mark.parametrize("offset", [1, 3, 7])
def test_arrays_need_no_more_than_their_elements_alignment(offset: int, tmp_path: Path) -> None:
    a, b = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    run(generate(scale(1000)), tmp_path, 8, a[offset:], b[offset:])
    assert np.array_equal(b[offset : 1000 + offset], 2 * a[offset : 1000 + offset])


@pytest.mark.parametrize("level", LEVELS)
def test_float16_in_and_out_with_float32_arithmetic(level: str, tmp_path: Path) -> None:
    a = np.random.default_rng(1).standard_normal(1024).astype(np.float16)
    b = np.zeros(1024, np.float16)

    def square_plus(x: Any) -> Any:
        wide = tirx.Cast("float32x8", x)
        return tirx.Cast("float16x8", wide * wide + wide)

    run(generate(unary(square_plus, 1024, dtype="float16", target=f"cpu:{level}")), tmp_path, 128, a, b)
    wide = a.astype(np.float64)
    assert np.array_equal(b, (wide * wide + wide).astype(np.float32).astype(np.float16))
    run(generate(unary(lambda x: x, 1016, dtype="float16", target=f"cpu:{level}")), tmp_path, 127, a[1:], b[3:])
    assert np.array_equal(b[3:1019], a[1:1017])


def big_tile(elements: int) -> Any:
    parameters = (Parameter("A", "float32", (elements,), "in"), Parameter("B", "float32", (elements,), "out"))

    def body(block: Any, a: Any, b: Any) -> list[Any]:
        t, i, j = tile("t", elements), var("i"), var("j")
        backwards = elements - 1 - j
        return [
            tirx.AllocBuffer(t),
            mark(1),
            loop(i, elements, store(t, load(a, i), i)),
            loop(j, elements, store(b, load(t, backwards), j)),
        ]

    return program("big", parameters, (1, 1, 1), body, (2, 3))


def test_a_tile_of_a_megabyte_lives_on_the_stack(tmp_path: Path) -> None:
    count = 300_000
    kernel = generate(big_tile(count))
    a, b = np.arange(count, dtype=np.float32), np.zeros(count, np.float32)
    run(kernel, tmp_path, 1, a, b)
    assert np.array_equal(b, a[::-1])
    assert kernel.resources.stack_bytes is not None
    assert kernel.resources.stack_bytes >= 4 * count - RED_ZONE


def test_tiles_beyond_any_stack_are_refused() -> None:
    with pytest.raises(ResourceError, match="bytes of stack"):
        generate(big_tile(20_000_000))


def test_a_function_without_definition_is_named() -> None:
    strange = unary(lambda x: tirx.call_pure_extern(ir.PrimType("float32x8"), "mystery", x), 64)
    with pytest.raises(CodegenError, match="mystery"):
        generate(strange)


def test_wrong_options_and_targets_are_errors() -> None:
    with pytest.raises(CodegenError, match="fast_math"):
        generate(scale(), options={"fast_math": True})
    with pytest.raises(CodegenError, match="level"):
        generate(scale(), options={"level": 9})
    with pytest.raises(CodegenError, match="not a CPU"):
        generate(replace(scale(), target=resolve("cuda:sm_80")))


def test_a_lower_level_of_optimisation_computes_the_same(tmp_path: Path) -> None:
    a, b = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    run(generate(scale(), options={"level": 0}), tmp_path, 8, a, b)
    assert np.array_equal(b, 2 * a)
