"""Suggestions against bank conflicts, proved end to end: what they promise is what the changed kernel counts."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count as numbers
from pathlib import Path
from typing import Any

import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.access import BankConflicts
from tilelang_min.driver.analysis import analyse_program
from tilelang_min.driver.build import thread_program
from tilelang_min.driver.suggestion_records import Suggestion, Trial
from tilelang_min.driver.suggestions import suggest_for
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import AccessCount, recording
from tilelang_min.targets import resolve

SOURCE = (Path(__file__).resolve().parents[3] / "workloads" / "kernels" / "matmul.py").read_text()
TILES = {"A_shared": ("block_M", "block_K"), "B_shared": ("block_K", "block_N")}
CASES = [
    (target, dtype, block_K)
    for target in ("cuda:sm_80", "hip:gfx942")
    for dtype, block_K in (("float32", 32), ("float16", 64))
]

Lowered = tuple[ThreadProgram, dict[int, Any]]


def padded_source(paddings: dict[str, int]) -> str:
    """The quickstart's kernels, with the suggested change made to the tiles of `tiled` as its text says."""
    text = SOURCE[: SOURCE.index("def padded")].rstrip().removesuffix("@tilelang.jit")
    for name, padding in paddings.items():
        rows, row = TILES[name]
        declared = f"{name} = T.alloc_shared(({rows}, {row}), dtype)"
        assert declared in text
        text = text.replace(declared, "\0")
        text = re.sub(rf"\b{name}\b", f"{name}[:, 0:{row}]", text)
        text = text.replace(f"{name}[:, 0:{row}]: T.rows()", f"{name}: T.rows()")
        text = text.replace("\0", f"{name} = T.alloc_shared(({rows}, {row} + {padding}), dtype)")
    return text


@pytest.fixture(scope="module")
def lower(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Lowered]:
    """A function (target, dtype, block_K, paddings): the thread program of `tiled` so padded, and its matrix plans."""
    folder = tmp_path_factory.mktemp("kernels")
    number = numbers()

    def run(target: str, dtype: str, block_K: int, paddings: dict[str, int], num_stages: int = 1) -> Lowered:
        path = folder / f"kernel{next(number)}.py"
        path.write_text(padded_source(paddings))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = module.tiled.prim_func(256, 256, 256, dtype=dtype, block_K=block_K, num_stages=num_stages)
        _, layouts, program = thread_program(kernel, resolve(target))
        assert layouts is not None
        return program, {number: plan.kind for number, plan in layouts.gemms.items()}

    return run


def tile_counts(program: ThreadProgram, tile: str) -> dict[tuple[int, str, int], AccessCount]:
    """Counts of a launch for one tile, by operation, access and width."""
    counts = analyse_program(program).counts
    return {(c.operation, c.access, c.width_bits): c for c in counts if c.space == "shared" and c.buffer == tile}


@pytest.mark.parametrize(("target", "dtype", "block_K"), CASES)
def test_the_suggested_padding_removes_the_conflicts_of_the_quickstart_kernel(
    lower: Callable[..., Lowered], target: str, dtype: str, block_K: int
) -> None:
    program, plans = lower(target, dtype, block_K, {})
    paddings = {s.buffer: s for s in suggest_for(program) if s.kind == "padding"}
    # Rows of 128 bytes: columns of A conflict; B is read by columns by ldmatrix alone.
    assert set(paddings) == ({"A_shared", "B_shared"} if plans == {5: "mma"} else {"A_shared"})

    real, real_plans = lower(target, dtype, block_K, {name: s.padding for name, s in paddings.items()})
    assert real_plans == plans
    assert sum(tile.bytes for tile in real.shared) == sum(tile.bytes for tile in program.shared) + sum(
        suggestion.extra_bytes for suggestion in paddings.values()
    )
    for name, suggestion in paddings.items():
        before, after = tile_counts(program, name), tile_counts(real, name)
        assert suggestion.conflicts_before == sum(c.conflicts or 0 for c in before.values()) > 0
        assert suggestion.conflicts_after == sum(c.conflicts or 0 for c in after.values()) == 0
        # The prediction holds for each kind of access, of which the changed kernel has the same.
        assert {(c.operation, c.access, c.width_bits): (c.before, c.after, c.rule) for c in suggestion.accesses} == {
            key: (before[key].conflicts, c.conflicts, c.rule) for key, c in after.items()
        }
        assert {k: (c.requests, c.bytes) for k, c in before.items()} == {
            k: (c.requests, c.bytes) for k, c in after.items()
        }


@pytest.mark.parametrize(("target", "dtype", "block_K"), CASES)
def test_smaller_paddings_were_refused_and_really_are_slower(
    lower: Callable[..., Lowered], target: str, dtype: str, block_K: int
) -> None:
    """Rows that are no multiple of 16 bytes: the compiler moves narrower pieces, by more instructions, and without ldmatrix."""
    program, plans = lower(target, dtype, block_K, {})
    padding = next(s for s in suggest_for(program) if s.kind == "padding")
    lanes = 16 // {"float32": 4, "float16": 2}[dtype]
    assert padding.padding == lanes
    assert [trial.padding for trial in padding.tried] == list(range(1, lanes + 1))
    assert padding.tried[-1] == Trial(lanes, 0, 0)
    for trial in padding.tried[:-1]:
        assert trial.conflicts is None
        assert re.fullmatch(r"it breaks the 16-byte alignment of the .* in T\.\w+\(.*\) \(line \d+\)", trial.reason)
    real, real_plans = lower(target, dtype, block_K, {padding.buffer: lanes - 1})
    if plans == {5: "mma"}:
        assert real_plans == {5: "outer"}
    wide, narrow = (sum(c.requests for c in tile_counts(p, padding.buffer).values()) for p in (program, real))
    assert narrow >= 4 * wide


@tilelang.jit
def gather(pad=0):
    """Two of every 32 columns are read by 16 rows of a warp at once: lane 2 i + j reads element (i, 3 j)."""

    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), out: T.Tensor((32, 2), "float32")):
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((32, 32 + pad), "float32")
            T.annotate_layout({S: T.rows()})
            for i, j in T.Parallel(32, 32):
                S[i, j] = A[j, i]
            for i, j in T.Parallel(32, 2):
                out[i, j] = S[i, j * 3]

    return main


def gathered(target: str, pad: int = 0) -> ThreadProgram:
    return thread_program(gather.prim_func(pad), resolve(target))[2]


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_the_next_smaller_padding_really_has_conflicts(target: str) -> None:
    """Rows of 33 put (i, 3) into the bank of (i + 3, 0); of 34, columns 0 and 3 into odd and even banks."""
    (padding, *rest) = suggest_for(gathered(target))
    assert (padding.kind, padding.padding, padding.conflicts_after, padding.extra_bytes) == ("padding", 2, 0, 256)
    tried = {trial.padding: trial.conflicts for trial in padding.tried}
    assert set(tried) == {1, 2}
    for pad in (0, 1, 2):
        real = sum(c.conflicts or 0 for c in tile_counts(gathered(target, pad), "S").values())
        assert real == tried.get(pad, padding.conflicts_before), pad
    assert tried[1]
    assert padding.proof == f"padding 1: leaves {tried[1]:,} conflicts"
    # Swizzling moves whole chunks: 16 rows over 8 chunks are never fewer than 2 passes.
    assert [(s.kind, bool(s.conflicts_after)) for s in rest] == [("swizzle", True)]
    assert "and no swizzle leaves fewer" in rest[0].text


def test_swizzles_in_each_mode(lower: Callable[..., Lowered]) -> None:
    """Eight rows of 128 bytes: n chunks of a segment take turns, so that 8 / n rows share a bank."""
    program, _ = lower("cuda:sm_80", "float16", 64, {})
    swizzle = next(s for s in suggest_for(program) if s.kind == "swizzle")
    ideal = tile_counts(program, "A_shared")[5, "ldmatrix", 128].transactions_ideal
    assert ideal
    assert swizzle.tried == (Trial(0, 128, 0), Trial(0, 64, ideal), Trial(0, 32, 3 * ideal))
    assert (swizzle.swizzle_bytes, swizzle.extra_bytes, swizzle.conflicts_after) == (128, 0, 0)
    assert "(j // 8 ^ i % 8) * 8 + j % 8" in swizzle.text
    assert swizzle.proof == f"mode 64: leaves {ideal:,} conflicts; mode 32: leaves {3 * ideal:,} conflicts"


@pytest.mark.parametrize(("dtype", "block_K"), [("float32", 32), ("float16", 64)])
def test_the_prediction_holds_for_copies_in_flight(lower: Callable[..., Lowered], dtype: str, block_K: int) -> None:
    """Two stages by cp.async: whatever the suggested padding costs its writes, the padded kernel counts just that."""
    program, _ = lower("cuda:sm_90a", dtype, block_K, {}, num_stages=2)
    padding = next(s for s in suggest_for(program) if s.kind == "padding")
    real = tile_counts(
        lower("cuda:sm_90a", dtype, block_K, {padding.buffer: padding.padding}, num_stages=2)[0], padding.buffer
    )
    assert {(c.operation, c.access, c.width_bits): (c.after, c.rule) for c in padding.accesses} == {
        key: (c.conflicts, c.rule) for key, c in real.items()
    }
    assert padding.conflicts_after == sum(c.conflicts or 0 for c in real.values() if c.rule == "known")


@pytest.mark.parametrize("rule", ["open", "known"])
def test_copies_that_get_worse_are_told_or_count(
    lower: Callable[..., Lowered], monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """Two stages: the tile is filled by cp.async, here by a rule that triples its passes in rows of more than a line."""
    real = recording.bank_conflicts

    def crowded(addresses: Any, access: str, *rest: Any) -> BankConflicts:
        found = real(addresses, access, *rest)
        if not access.startswith("cp_async"):
            return found
        times = 3 if addresses[0].max() // 128 - addresses[0].min() // 128 > 3 else 1  # 512 bytes in more than 4 lines
        return replace(found, per_request=found.per_request_ideal * times, rule=rule)

    monkeypatch.setattr(recording, "bank_conflicts", crowded)
    program, _ = lower("cuda:sm_80", "float16", 64, {}, num_stages=2)
    padding, swizzle = sorted(suggest_for(program)[:2], key=lambda suggestion: suggestion.kind)
    assert padding.extra_bytes == 2 * 64 * padding.padding * 2
    copy = next(c for c in padding.accesses if c.access.startswith("cp_async"))
    assert (copy.before, bool(copy.after), copy.rule) == (0, True, rule)
    line = next(o.location.line for o in program.operations if o.id == copy.operation)
    warning = f"the cp.async in line {line} goes from 0 to {copy.after:,} conflicts"
    assert padding.padding == 8
    if rule == "open":
        assert padding.conflicts_after == 0
        assert f"{warning} (by a rule that is open)" in padding.text
    else:
        assert padding.conflicts_after == copy.after
        assert len(padding.tried) == 64  # no padding of up to a row is without conflicts
        assert padding.text.endswith(warning)
        assert "padding 1 to 7, 9 to 15, 17 to 23, 25 to 31, ...: it breaks" in padding.proof
        assert suggest_for(program)[0].kind == "swizzle"  # what removes more comes first
        assert f"leaves {copy.after:,} of {padding.conflicts_before:,} conflicts" in padding.text
    assert swizzle.conflicts_after == 0
    assert "cp.async" not in swizzle.text


def test_text_for_people(lower: Callable[..., Lowered]) -> None:
    program, _ = lower("hip:gfx942", "float32", 32, {})
    (padding, swizzle) = suggest_for(program, registers_per_thread=64)
    # 16 KiB a block leave 4 blocks of two wavefronts on a unit of 64 KiB and 32 wavefronts; 17 KiB leave 3.
    assert (padding.occupancy_before, padding.occupancy_after) == (4 * 2 / 32, 3 * 2 / 32)
    assert padding.text == (
        'pad A_shared by 4 elements: T.alloc_shared((64, 32 + 4), "float32"), used as A_shared[:, 0:32]; '
        f"removes all {padding.conflicts_before:,} conflicts; 1,024 bytes more a block, occupancy 25% -> 18.8%"
    )
    assert padding.proof.startswith("padding 1 to 3: it breaks the 16-byte alignment of the 128-bit store in T.copy(A[")
    assert swizzle.text.startswith(
        "swizzle A_shared in 128-byte mode, column j of row i to (j // 4 ^ i % 8) * 4 + j % 4"
    )
    assert swizzle.text.endswith("; no more memory, occupancy 25% as before")


@tilelang.jit
def big(rows, row):
    """A tile that takes nearly all of a block's shared memory, read by columns."""

    @T.prim_func
    def main(A: T.Tensor((rows, row), "float32"), out: T.Tensor((row, rows), "float32")):
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((rows, row), "float32")
            T.annotate_layout({S: T.rows()})
            T.copy(A[0, 0], S)
            for j, i in T.Parallel(row, rows):
                out[j, i] = S[i, j]

    return main


def test_a_padding_that_does_not_fit_is_refused() -> None:
    """64 KiB of LDS hold 512 rows of 32 floats exactly."""
    suggestions = suggest_for(thread_program(big.prim_func(512, 32), resolve("hip:gfx942"))[2])
    assert [s.kind for s in suggestions] == ["swizzle"]
    padded = suggest_for(thread_program(big.prim_func(448, 32), resolve("hip:gfx942"))[2])[0]
    refused = [trial for trial in padded.tried if "bytes of shared memory" in trial.reason]
    assert refused[0] == Trial(5, 0, None, "it needs 66,304 bytes of shared memory, hip:gfx942 has 65,536")
    # Vectors of 4 can be stored to rows of 36 only, and 64 rows of 36 are 8 to a bank.
    assert (padded.padding, padded.conflicts_after > 0) == (4, True)


def test_nothing_to_suggest() -> None:
    assert suggest_for(gathered("cuda:sm_80", pad=2)) == []
    assert gather.for_target("cpu")().suggestions() == []


def test_suggestions_of_a_kernel_are_kept_in_its_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = gather.for_target("hip:gfx942")()
    suggestions = kernel.suggestions()
    assert [s.kind for s in suggestions] == ["padding", "swizzle"]
    assert all(isinstance(s, Suggestion) and s.occupancy_before is not None for s in suggestions)
    loaded = tilelang.load(kernel.save(tmp_path / "kernel.tlk"))
    monkeypatch.setattr("tilelang_min.driver.suggestions.suggest", None)
    assert loaded.suggestions() == suggestions
