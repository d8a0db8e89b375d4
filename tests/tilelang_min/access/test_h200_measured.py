"""Patterns measured on an H200 against the rules: ``tests/data/nvidia/h200_access``, from ``benchmarks/h200_access.py``.

Each file holds an instruction's patterns with what Nsight Compute counted: wavefronts and their ideal of shared memory, sectors and
their ideal of global memory, -1 for the space that the instruction does not reach.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tilelang_min.access import bank_conflicts, global_sectors
from tilelang_min.access.copies import count_bypass

DATA = Path(__file__).resolve().parents[2] / "data" / "nvidia" / "h200_access"
KINDS = sorted(path.stem for path in DATA.glob("*.json"))
Ints = npt.NDArray[np.int64]


def unpack(text: str, *shape: int) -> Ints:
    """Integers from a file: little-endian int32, compressed by zlib, in base64."""
    return np.frombuffer(zlib.decompress(b64decode(text)), "<i4").reshape(shape).astype(np.int64)


class Measured:
    """The patterns of one file."""

    def __init__(self, kind: str) -> None:
        self.content: dict[str, Any] = json.loads((DATA / f"{kind}.json").read_text())
        n = self.content["patterns"]
        self.target, self.source, self.size = (unpack(self.content[key], n, 32) for key in ("target", "source", "size"))
        self.active = unpack(self.content["active"], n, 32) > 0
        self.counts = unpack(self.content["counts"], n, 4)

    def family(self, request: int) -> str:
        names: list[str] = self.content["families"]
        return names[int(unpack(self.content["family"], -1)[request])]


def predicted_atomic(kind: str, at: Measured) -> Ints:
    """The same of atomics: ``reds`` on shared memory, ``redl`` the loads of their loops, ``redp`` adding ones, ``redg`` global."""
    where, name = kind.split("_")
    width = 64 if name.endswith("64") else 32
    result = np.full((len(at.target), 4), -1)
    if where == "redg":
        sectors = global_sectors(at.source, "atomic", width, mask=at.active)
        result[:, 2], result[:, 3] = sectors.per_request, sectors.per_request_ideal
        return result
    native = {"redp": "atomic_increment", "redl": "atomic_loop_load"}
    access = native.get(where, "atomic" if name in ("add32", "max32") else "atomic_loop")
    passes = bank_conflicts(at.target, access, width, mask=at.active)
    assert passes.rule == "known"
    result[:, 0], result[:, 1] = passes.per_request, passes.per_request_ideal
    return result


def predicted(kind: str, at: Measured) -> Ints:
    """What the rules say, in the order of the file's counts."""
    if kind.startswith("red"):
        return predicted_atomic(kind, at)
    name = kind.rstrip("zsub")
    operation, width = name.rstrip("0123456789"), 8 * int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))
    result = np.full((len(at.target), 4), -1)
    if operation in ("ca", "cg"):
        access = "cp_async" if operation == "ca" else "cp_async_bypass"
        reads = at.active & (at.size > 0)
        sized = kind != name and kind.rstrip("ub") != name
        passes: Any = bank_conflicts(
            at.target, access, width, mask=at.active, source=at.source, reads=reads if sized else None
        )
        sectors = global_sectors(
            at.source,
            access,
            width,
            mask=reads if sized else at.active,
            destination=at.target if operation == "cg" else None,
        )
        assert (passes.rule, sectors.rule) == ("known", "known")
        result[:, 0], result[:, 1] = passes.per_request, passes.per_request_ideal
        if kind.startswith("cg16z"):  # any number of bytes to read
            counted = count_bypass(at.target, at.active, at.source, reads, partial=True)
            result[:, 0], result[:, 1] = counted.transactions, counted.ideal
        result[:, 2], result[:, 3] = sectors.per_request, sectors.per_request_ideal
        return result
    access = "load" if operation.startswith("ld") else "store"
    if operation in ("ldg", "stg"):
        sectors = global_sectors(at.source, access, width, mask=at.active)
        result[:, 2], result[:, 3] = sectors.per_request, sectors.per_request_ideal
        return result
    if operation in ("ldsm", "stsm"):
        matrix = "ldmatrix" if operation == "ldsm" else "stmatrix"
        passes = bank_conflicts(at.target, matrix, matrices=width // 8)
    else:
        passes = bank_conflicts(at.target, access, width, mask=at.active)
    assert passes.rule == "known"
    result[:, 0], result[:, 1] = passes.per_request, passes.per_request_ideal
    return result


def test_all_instructions_are_there() -> None:
    copies = {"cg16", "cg16b", "cg16s", "cg16su", "cg16u", "cg16z", "cg16zu"}
    copies |= {f"ca{width}{form}" for width in (4, 8, 16) for form in ("", "z", "s", "su")}
    plain = {f"{operation}{width}" for operation in ("lds", "sts", "ldg", "stg") for width in (1, 2, 4, 8, 16)}
    matrices = {f"{operation}{count}" for operation in ("ldsm", "stsm") for count in (1, 2, 4)}
    loops = {"add64", "addf32", "addf64", "addf16x2", "addbf16x2"}
    atomics = {f"{where}_{name}" for where in ("reds", "redg") for name in loops | {"add32", "max32"}}
    atomics |= {f"redl_{name}" for name in loops} | {"redp_add32"}
    assert set(KINDS) == copies | plain | matrices | atomics | {"lds16b"}
    kept = sum(json.loads((DATA / f"{kind}.json").read_text())["patterns"] for kind in KINDS)
    assert kept == 10877  # as docs/memory-model.md says


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_measured(kind: str) -> None:
    measured = Measured(kind)
    assert len(measured.counts) >= 50
    assert len({tuple(row) for row in measured.counts.tolist()}) > 3
    wrong = np.flatnonzero((predicted(kind, measured) != measured.counts).any(axis=1))
    first = [(measured.family(int(i)), predicted(kind, measured)[i], measured.counts[i]) for i in wrong[:3]]
    assert not len(wrong), f"{len(wrong)} of {len(measured.counts)}: {first}"
