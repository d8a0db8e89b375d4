"""PC samples joined with tile operations: exactly where their places fit the bundle's listing, by source line where they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tileprof.analyse.join_samples import _begins, join_samples
from tileprof.collect.pc_samples import Sample
from tileprof.errors import ProfileFormatError
from tileprof.store.records import Metric, Provenance

HOW = Provenance("measured", "rocprofv3", "1.0.0", "PC samples (stochastic) of 10 launches")
WAIT = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT"


def turn() -> Any:
    @T.prim_func
    def turn(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            tile = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], tile)
            for j, i in T.Parallel(32, 32):
                B[bx * 32 + j, by * 32 + i] = tile[i, j]

    return turn


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    return tilelang.compile(turn(), "hip:gfx942", cache=False).save(folder / "turn.bundle")


def rows(bundle: Path) -> list[dict[str, Any]]:
    listing = json.loads((bundle / "listing.json").read_text())
    return [dict(zip(listing["columns"], row, strict=True)) for row in listing["rows"] if row[-1] is not None]


def by_operation(metrics: tuple[Metric, ...], name: str) -> dict[int | None, float]:
    return {m.operation: m.value for m in metrics if m.metric == name and m.access is None}


@pytest.mark.parametrize("way", range(3))
def test_whatever_a_place_is_counted_from(bundle: Path, way: int) -> None:
    """The address in the code object, the place in the file, or the place in the kernel."""
    kernel = json.loads((bundle / "kernel.json").read_text())
    begins = _begins((bundle / kernel["binary"]["file"]).read_bytes(), kernel["symbol"])
    assert len(set(begins)) == 3
    samples = [Sample(row["text"], "", WAIT, 0, begins[way] + row["offset"]) for row in rows(bundle)]
    joined = join_samples(samples, bundle, HOW)
    assert (joined.key, joined.notes) == ("offset", ())
    expected: dict[int | None, float] = {None: len(samples)}
    for row in rows(bundle):
        expected[row["operation"]] = expected.get(row["operation"], 0) + 1
    assert by_operation(joined.metrics, "stall.samples") == expected
    assert by_operation(joined.metrics, "stall.waitcnt") == expected
    assert {m.provenance for m in joined.metrics} == {HOW}


def test_another_binary_is_joined_by_line(bundle: Path) -> None:
    kernel = json.loads((bundle / "kernel.json").read_text())
    copy = next(one for one in kernel["operations"] if one["kind"] == "copy")
    place = f"{copy['location']['file']}:{copy['location']['line']}"
    samples = [Sample("s_nop 0", place, offset=7), Sample("s_nop 1", place), Sample("s_nop 2", "elsewhere.py:1")]
    joined = join_samples(samples, bundle, HOW)
    assert joined.key == "line"
    assert "joined by source line" in joined.notes[0]
    assert by_operation(joined.metrics, "stall.samples") == {copy["id"]: 2, None: 3}
    (rest,) = [m for m in joined.metrics if m.access is not None]
    assert (rest.value, rest.flag) == (1, "unattributed")


def test_what_is_no_bundle(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(ProfileFormatError, match="no bundle with a listing"):
        join_samples([], tmp_path, HOW)
    for name in ("kernel.json", "listing.json"):
        (tmp_path / name).write_bytes((bundle / name).read_bytes())
    kernel = json.loads((tmp_path / "kernel.json").read_text())
    (tmp_path / kernel["binary"]["file"]).write_bytes(b"no code object")
    with pytest.raises(ProfileFormatError, match="its binary cannot be read"):
        join_samples([], tmp_path, HOW)
