"""Lane maps against tables written out by hand from the PTX ISA and the AMD ISA documents, not from our formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from lane_tables import LDMATRIX_TABLE, LDMATRIX_TRANS_TABLE, MMA, Table, mfma

from tilelang_min.targets import LDMATRIX, LDMATRIX_TRANS, LaneMap, MatrixInstruction, resolve

NVIDIA = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
AMD = ("gfx90a", "gfx942", "gfx950")
MMA_NAME = re.compile(r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.(\w+)\.(\w+)\.(\w+)\.(\w+)")
MFMA_NAME = re.compile(
    r"llvm\.amdgcn\.mfma\.(?:scale\.)?([fi]\d+)\.(\d+)x(\d+)x(\d+)\.?(xf32|f8f6f4|bf16\.1k|i8|(?:[bf]p?[f\d]+\.?)+)"
)


def instructions() -> dict[tuple[str, tuple[int, ...]], MatrixInstruction]:
    """Every matrix instruction of every target, by name and modifiers."""
    targets = [*(f"cuda:{arch}" for arch in NVIDIA), *(f"hip:{arch}" for arch in AMD)]
    return {(each.name, each.modifiers): each for target in targets for each in resolve(target).instruction_set}


def tables(name: str) -> tuple[Table, Table, Table]:
    """The tables of an instruction, from the words of its name."""
    if found := MMA_NAME.fullmatch(name):
        return MMA[f"m{found[1]}n{found[2]}k{found[3]}.{found[5]}"]
    found = MFMA_NAME.fullmatch(name)
    assert found is not None, name
    assert found[2] == found[3], name
    return mfma(int(found[2]), int(found[4]), found[1] == "f64")


def maps() -> Iterator[tuple[str, LaneMap, Table, tuple[int, int]]]:
    """(label, map, table, extent of the matrix) of every map there is; equal ones once."""
    seen: set[object] = set()
    for each in instructions().values():
        extents = ((each.m, each.k), (each.k, each.n), (each.m, each.n))
        for side, table, extent in zip("abc", tables(each.name), extents, strict=True):
            lane_map: LaneMap = getattr(each, f"{side}_map")
            key = (lane_map, extent, id(table) if side == "c" else tuple(table))
            if key not in seen:
                seen.add(key)
                yield f"{each.name} {side}", lane_map, table, extent
    yield "ldmatrix", LDMATRIX, LDMATRIX_TABLE, (8, 8)
    yield "ldmatrix.trans", LDMATRIX_TRANS, LDMATRIX_TRANS_TABLE, (8, 8)


MAPS = list(maps())
EVERY = sorted(instructions())


def agrees(lane_map: LaneMap, table: Table) -> bool:
    return all(
        len(elements) == lane_map.items
        and all(lane_map(lane, item) == element for item, element in enumerate(elements))
        for lane, elements in table.items()
    )


@pytest.mark.parametrize("key", EVERY, ids=[f"{name}{modifiers or ''}" for name, modifiers in EVERY])
def test_every_instruction_agrees_with_its_tables(key: tuple[str, tuple[int, ...]]) -> None:
    each = instructions()[key]
    for side, table in zip("abc", tables(each.name), strict=True):
        assert agrees(getattr(each, f"{side}_map"), table), side


@pytest.mark.parametrize(("label", "lane_map", "table", "extent"), MAPS, ids=[entry[0] for entry in MAPS])
def test_agrees_with_the_table(label: str, lane_map: LaneMap, table: Table, extent: tuple[int, int]) -> None:
    assert agrees(lane_map, table), label


@pytest.mark.parametrize(("label", "lane_map", "table", "extent"), MAPS, ids=[entry[0] for entry in MAPS])
def test_covers_the_matrix_once(label: str, lane_map: LaneMap, table: Table, extent: tuple[int, int]) -> None:
    lane, item = np.meshgrid(np.arange(lane_map.lanes), np.arange(lane_map.items), indexing="ij")
    row, column = lane_map(lane, item)
    assert sorted(zip(row.ravel().tolist(), column.ravel().tolist(), strict=True)) == [
        (r, c) for r in range(extent[0]) for c in range(extent[1])
    ]


@pytest.mark.parametrize(("label", "lane_map", "table", "extent"), MAPS, ids=[entry[0] for entry in MAPS])
def test_changing_any_term_disagrees_with_the_table(
    label: str, lane_map: LaneMap, table: Table, extent: tuple[int, int]
) -> None:
    """The tables are strong enough: every single change of a map is noticed."""
    for side in ("row", "column"):
        terms = getattr(lane_map, side)
        for index, term in enumerate(terms):
            wrong_terms = [
                replace(term, divisor=term.divisor * 2),
                replace(term, modulus=term.modulus // 2),
                replace(term, stride=term.stride * 2),
                replace(term, stride=term.stride + 1),
                replace(term, stride=0),
                replace(term, source="item" if term.source == "lane" else "lane"),
            ]
            for wrong in wrong_terms:
                changed = (*terms[:index], wrong, *terms[index + 1 :])
                assert not agrees(replace(lane_map, **{side: changed}), table), (label, side, index, wrong)


TYPE_WORDS = {
    "f64": "float64",
    "f32": "float32",
    "xf32": "float32",
    "tf32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "bf16.1k": "bfloat16",
    "s8": "int8",
    "u8": "uint8",
    "i8": "int8",
    "s32": "int32",
    "i32": "int32",
    "e4m3": "float8_e4m3",
    "e5m2": "float8_e5m2",
}
BYTES = {"float64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}


@pytest.mark.parametrize("key", EVERY, ids=[f"{name}{modifiers or ''}" for name, modifiers in EVERY])
def test_the_record_says_what_the_name_says(key: tuple[str, tuple[int, ...]]) -> None:
    """Extents, types and operands: a call's operands have exactly the bits of the items."""
    each = instructions()[key]
    assert each.a_map.lanes * each.a_map.items == each.m * each.k
    assert each.b_map.lanes * each.b_map.items == each.k * each.n
    assert each.c_map.lanes * each.c_map.items == each.m * each.n
    size = {side: BYTES.get(getattr(each, f"{side}_dtype"), 1) * getattr(each, f"{side}_map").items for side in "abc"}
    if found := MMA_NAME.fullmatch(each.name):
        m, n, k, d, a, b, c = found.groups()
        assert (int(m), int(n), int(k)) == (each.m, each.n, each.k)
        assert [TYPE_WORDS[word] for word in (a, b, c)] == [each.a_dtype, each.b_dtype, each.c_dtype]
        assert d == c
        assert each.lossy == (a == "tf32")
        assert each.modifiers == ()
        for side in "abc":
            operand = getattr(each, f"{side}_operand")
            assert each.registers(side) * int(re.sub(r"\D", "", operand)) == 8 * size[side]
            assert operand in ("uint32", getattr(each, f"{side}_dtype"))
        return
    found = MFMA_NAME.fullmatch(each.name)
    assert found is not None
    c, m, n, k, rest = found.groups()
    assert (int(m), int(n), int(k)) == (each.m, each.n, each.k)
    assert TYPE_WORDS[c] == each.c_dtype
    assert each.lossy == (rest == "xf32")
    if rest in TYPE_WORDS:
        assert TYPE_WORDS[rest] == each.a_dtype == each.b_dtype
    for side in "abc":
        element, _, lanes = getattr(each, f"{side}_operand").partition("x")
        assert int(re.sub(r"\D", "", element)) * int(lanes or 1) == 8 * size[side], side
    assert each.modifiers[2:] == ((0,) if "scale" not in each.name else (0, 0, 0, 0))


def test_eight_bit_floats_by_their_words_and_formats() -> None:
    """AMD's words fp8 and bf8 mean one thing on gfx942, another on gfx950; NVIDIA's always the latter."""
    kinds = {"gfx942": ("float8_e4m3fnuz", "float8_e5m2fnuz"), "gfx950": ("float8_e4m3", "float8_e5m2")}
    for arch, (fp8, bf8) in kinds.items():
        have = {each.name: each for each in resolve(f"hip:{arch}").instruction_set}
        for shape in ("16x16x32", "32x32x16"):
            for a, b in (("fp8", "fp8"), ("fp8", "bf8"), ("bf8", "fp8"), ("bf8", "bf8")):
                each = have[f"llvm.amdgcn.mfma.f32.{shape}.{a}.{b}"]
                assert each.a_dtype == (fp8 if a == "fp8" else bf8)
                assert each.b_dtype == (fp8 if b == "fp8" else bf8)
    scaled = [each for each in resolve("hip:gfx950").instruction_set if "f8f6f4" in each.name]
    formats = {0: "float8_e4m3", 1: "float8_e5m2"}
    assert len(scaled) == 8
    assert all((formats[e.modifiers[0]], formats[e.modifiers[1]]) == (e.a_dtype, e.b_dtype) for e in scaled)


def has(target: str, a: str, c: str, b: str | None = None) -> set[str]:
    """Shapes (m x k) of a target's instructions of these types."""
    wanted = (a, b or a, c)
    return {f"{e.m}x{e.k}" for e in resolve(target).instruction_set if (e.a_dtype, e.b_dtype, e.c_dtype) == wanted}


def test_which_nvidia_targets_have_which() -> None:
    assert has("cuda:sm_75", "float16", "float32") == has("cuda:sm_75", "float16", "float16") == {"16x8"}
    assert has("cuda:sm_75", "int8", "int32") == has("cuda:sm_75", "uint8", "int32", "int8") == {"8x16"}
    for dtype in ("bfloat16", "float32", "float64", "float8_e4m3"):
        assert not has("cuda:sm_75", dtype, "float64" if dtype == "float64" else "float32")
    for arch in NVIDIA[1:]:
        target = f"cuda:{arch}"
        assert has(target, "float16", "float32") == has(target, "float16", "float16") == {"16x16", "16x8"}
        assert has(target, "bfloat16", "float32") == {"16x16"}
        assert has(target, "float32", "float32") == {"16x8"}
        for a in ("int8", "uint8"):
            assert all(has(target, a, "int32", b) == {"16x32", "8x16"} for b in ("int8", "uint8"))
        late = arch in NVIDIA[3:]
        for a in ("float8_e4m3", "float8_e5m2"):
            assert all(
                has(target, a, "float32", b) == ({"16x32"} if late else set()) for b in ("float8_e4m3", "float8_e5m2")
            )
        wide = {"16x16"} if arch == "sm_90a" else set()
        assert has(target, "float64", "float64") == {"8x4"} | wide


def test_which_amd_targets_have_which() -> None:
    for arch in AMD:
        target, new = f"hip:{arch}", arch == "gfx950"
        wide = {"32x16", "16x32"} if new else set()
        assert has(target, "float16", "float32") == has(target, "bfloat16", "float32") == {"32x8", "16x16"} | wide
        assert has(target, "float64", "float64") == {"16x4"}
        assert has(target, "float32", "float32") == {"32x2", "16x4"} | ({"32x4", "16x8"} if arch == "gfx942" else set())
    assert has("hip:gfx90a", "int8", "int32") == {"32x8", "16x16"}
    assert has("hip:gfx942", "int8", "int32") == {"32x16", "16x32"}
    assert has("hip:gfx950", "int8", "int32") == {"32x16", "16x32", "32x32", "16x64"}
    assert has("hip:gfx950", "float8_e4m3", "float32", "float8_e5m2") == {"32x16", "16x32", "32x64", "16x128"}
    assert not has("hip:gfx90a", "float8_e4m3", "float32")
    assert not has("hip:gfx942", "float8_e4m3", "float32")
    assert not any("uint8" in (e.a_dtype, e.b_dtype) for arch in AMD for e in resolve(f"hip:{arch}").instruction_set)


def test_what_lowering_chooses_from_by_itself() -> None:
    """Never a lossy instruction, and always ones that the instruction set has."""
    targets = [*(f"cuda:{arch}" for arch in NVIDIA), *(f"hip:{arch}" for arch in AMD), "cpu:x86-64-v3"]
    for target in map(resolve, targets):
        assert set(target.matrix_instructions) <= set(target.instruction_set)
        assert not any(each.lossy for each in target.matrix_instructions)
        assert len({(e.name, e.modifiers) for e in target.instruction_set}) == len(target.instruction_set)
    assert resolve("cpu:x86-64-v3").instruction_set == ()
