"""Static facts of compiled kernels: equal to what the vendors' own records of the same compile say."""

from __future__ import annotations

import io
import re
from functools import lru_cache
from typing import Any

import msgpack
import pytest
from elftools.elf.elffile import ELFFile
from quickstart_kernels import KERNELS, kernel

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.codegen import nvidia
from tilelang_min.driver.build import thread_program
from tilelang_min.driver.kernel import Kernel
from tilelang_min.program import INSTRUCTION_CLASSES

TARGETS = ("cpu", "cuda:sm_80", "hip:gfx942")


@lru_cache
def compiled(name: str, dtype: str, target: str) -> Kernel:
    return tilelang.compile(kernel(name, dtype), target, cache=False)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", KERNELS)
def test_instructions_belong_to_operations(name: str, dtype: str, target: str) -> None:
    """At least 95 %; every operation that does something has instructions; counts add up."""
    made = compiled(name, dtype, target)
    counts = made.metadata.instructions
    assert counts["attributed"] >= 0.95
    assert sum(counts["total"].values()) == len(made.listing.instructions) > 20
    assert set(counts["total"]) <= set(INSTRUCTION_CLASSES)
    summed: dict[str, int] = {}
    for by_class in counts["by_operation"].values():
        for klass, number in by_class.items():
            summed[klass] = summed.get(klass, 0) + number
    assert summed == counts["total"]
    busy = {operation.id for operation in made.operations if operation.kind in ("copy", "gemm", "parallel")}
    assert busy <= {int(key) for key in counts["by_operation"] if key != "none"}


@pytest.mark.parametrize("target", TARGETS)
def test_classes_of_instructions_say_what_a_kernel_does(target: str) -> None:
    """A half-precision product uses matrix instructions on GPUs, multiply-adds on the CPU, all of them in T.gemm."""
    made = compiled("padded", "float16", target)
    (product,) = (operation.id for operation in made.operations if operation.kind == "gemm")
    klass = "fma" if target == "cpu" else "matrix"
    by_operation = made.metadata.instructions["by_operation"]
    assert by_operation[str(product)][klass] == made.metadata.instructions["total"][klass] > 0
    if target == "cuda:sm_80":
        copies = [str(operation.id) for operation in made.operations if operation.label.startswith("T.copy(A[")]
        assert by_operation[copies[0]]["async_copy"] > 0
        assert made.metadata.instructions["total"]["ldmatrix"] == by_operation[str(product)]["ldmatrix"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", KERNELS)
def test_nvidia_figures_are_those_of_ptxas(name: str, dtype: str) -> None:
    """Read from the log's text here, by other means than the compiler's own reader."""
    target = tilelang.targets.resolve("cuda:sm_80")
    generated = nvidia.generate(thread_program(kernel(name, dtype), target)[2])
    log = generated.log
    metadata = compiled(name, dtype, "cuda:sm_80").metadata
    (registers,) = re.findall(r"Used (\d+) registers", log)
    shared = re.findall(r"(\d+) bytes smem", log)
    (stack, stores, loads) = re.findall(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log
    )[0]
    assert metadata.registers_per_thread == int(registers) > 0
    assert metadata.shared_bytes_static == (int(shared[0]) if shared else 0)
    assert metadata.spill_store_bytes == int(stores)
    assert metadata.spill_load_bytes == int(loads)
    assert metadata.stack_bytes == int(stack)
    assert metadata.shared_bytes_dynamic == 0
    tiles = sum(tile.bytes for tile in thread_program(kernel(name, dtype), target)[2].shared)
    assert metadata.shared_bytes_static == tiles
    assert (metadata.vgprs, metadata.agprs, metadata.sgprs, metadata.spilled_vgprs, metadata.spilled_sgprs) == (
        None,
    ) * 5


def amdgpu_note(binary: bytes) -> dict[str, Any]:
    """The kernel's entry in the AMDGPU note of a code object."""
    elf = ELFFile(io.BytesIO(binary))
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_NOTE":
            for note in section.iter_notes():
                if note["n_name"] == "AMDGPU":
                    data = note["n_descdata"] if isinstance(note["n_descdata"], bytes) else note["n_descdata"].encode()
                    (entry,) = msgpack.unpackb(data)["amdhsa.kernels"]
                    return dict(entry)
    raise AssertionError("no AMDGPU note")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", KERNELS)
def test_amd_figures_are_those_of_the_code_object(name: str, dtype: str) -> None:
    made = compiled(name, dtype, "hip:gfx942")
    note = amdgpu_note(made.bundle.binary)
    metadata = made.metadata
    assert note[".name"] == made.name
    assert metadata.vgprs == note[".vgpr_count"] > 0
    assert metadata.agprs == note[".agpr_count"]
    assert metadata.sgprs == note[".sgpr_count"]
    assert metadata.spilled_vgprs == note[".vgpr_spill_count"]
    assert metadata.spilled_sgprs == note[".sgpr_spill_count"]
    assert metadata.shared_bytes_static == note[".group_segment_fixed_size"]
    assert metadata.stack_bytes == note[".private_segment_fixed_size"]
    assert metadata.threads_per_block == note[".max_flat_workgroup_size"]
    assert metadata.shared_bytes_static == sum(tile.bytes for tile in made.bundle.shared)
    assert (metadata.spill_store_bytes, metadata.spill_load_bytes) == (None, None)
    # What the hardware allocates: all registers, in granules of 8.
    assert metadata.registers_per_thread == -(-note[".vgpr_count"] // 8) * 8


def test_figures_of_a_cpu_kernel() -> None:
    metadata = compiled("padded", "float32", "cpu").metadata
    assert metadata.target == "cpu"
    for field in "registers_per_thread vgprs agprs sgprs spill_store_bytes spill_load_bytes occupancy max_blocks_per_unit".split():
        assert getattr(metadata, field) is None
    assert metadata.occupancy_limiters == ()
    assert metadata.threads_per_block == 1
    assert metadata.grid == (2, 2, 1)
    assert metadata.code_bytes is not None
    assert metadata.code_bytes > 1000
    assert metadata.flops == {"float32": 2 * 128**3}
    assert metadata.bytes_min == 3 * 4 * 128 * 128


@pytest.mark.parametrize("target", TARGETS)
def test_metadata_survives_json(target: str) -> None:
    metadata = compiled("tiled", "float16", target).metadata
    assert type(metadata).from_json(metadata.to_json()) == metadata
    assert metadata.schema_version == 1
    assert set(metadata.compile_seconds) >= {"frontend", "transform", "lower"}
    assert all(seconds >= 0 for seconds in metadata.compile_seconds.values())
    assert metadata.toolchain


def test_spills_are_seen() -> None:
    """Accumulators that do not fit: ptxas says so, and so do the metadata and the listing."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 224), "float16"), C: T.Tensor((128, 224), "float32")
    ):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((128, 32), "float16")
            R = T.alloc_shared((32, 224), "float16")
            F = T.alloc_fragment((128, 224), "float32")
            T.clear(F)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 32], S)
                T.copy(B[k * 32, 0], R)
                T.gemm(S, R, F)
            T.copy(F, C)

    metadata = tilelang.compile(main, "cuda:sm_80", cache=False).metadata
    assert metadata.registers_per_thread == 255
    assert (metadata.spill_store_bytes or 0) > 0
    assert metadata.instructions["total"]["local_store"] > 0


def test_occupancy_is_that_of_the_registers_and_tiles() -> None:
    metadata = compiled("padded", "float32", "cuda:sm_80").metadata
    target = tilelang.targets.resolve("cuda:sm_80")
    expected = tilelang.targets.occupancy(
        target,
        threads=128,
        registers_per_thread=metadata.registers_per_thread or 0,
        shared_bytes=metadata.shared_bytes_static or 0,
    )
    assert metadata.max_blocks_per_unit == expected.max_blocks_per_unit
    assert metadata.occupancy == expected.occupancy
    assert metadata.occupancy_limiters == tuple(expected.limiters)
