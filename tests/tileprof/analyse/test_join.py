from __future__ import annotations

import copy
import dataclasses
import json
import zipfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tileprof.analyse.join import WITHOUT_BULK, join, join_bundle
from tileprof.analyse.sass_access import Access, access, misread_by_profiler, mnemonic, opcode
from tileprof.collect.ncu_file import KernelProfile, NcuReport, read
from tileprof.errors import ProfileFormatError
from tileprof.store.records import Metric

Sample = Callable[[str], Path]
# Lines of kernel.py -> operations: a store into S (line 5), loads from S (line 6), a store to B (line 7).
OPERATION_OF_LINE = {5: 1, 6: 2, 7: 3}


def operation(number: int, kind: str, line: int, reads: list[str], writes: list[str]) -> dict[str, Any]:
    location = {"file": "demo/kernel.py", "line": line, "column": 0, "text": ""}
    return {
        "id": number, "kind": kind, "label": kind, "location": location,
        "parent": 0 if number else None, "reads": reads, "writes": writes,
    }  # fmt: skip


KERNEL: dict[str, Any] = {
    "symbol": "_Z11conf_kernelILi8EEvPKfPfi",
    "grid": [4096, 1, 1],
    "threads": 256,
    "shared": [{"name": "S"}],
    "parameters": [{"name": "A"}, {"name": "B"}],
    "operations": [
        operation(0, "kernel", 1, [], []),
        operation(1, "copy", 5, ["A"], ["S"]),
        operation(2, "parallel", 6, ["S"], []),
        operation(3, "copy", 7, [], ["B"]),
    ],
}


@pytest.fixture(scope="module")
def report(ncu_sample: Sample) -> NcuReport:
    return read(ncu_sample("h200_bank_conflicts_2025.3"))


@pytest.fixture(scope="module")
def profile(report: NcuReport) -> KernelProfile:
    (kernel,) = report.of_symbol(KERNEL["symbol"])
    return kernel


def listing_of(profile: KernelProfile) -> dict[str, Any]:
    """The listing a bundle would have: every instruction of the binary, lines of kernel.py attributed."""
    rows = [
        [i.text, opcode(i.text), "other", OPERATION_OF_LINE.get(i.line or 0) if (i.file or "").endswith("kernel.py") else 0,
         i.line, i.offset]
        for i in profile.instructions
    ]  # fmt: skip
    return {"syntax": "sass", "columns": ["text", "opcode", "class", "operation", "line", "offset"], "rows": rows}


@pytest.fixture
def listing(profile: KernelProfile) -> dict[str, Any]:
    return listing_of(profile)


def table(metrics: tuple[Metric, ...], name: str) -> dict[tuple[int | None, str | None, str | None], float]:
    return {(m.operation, m.buffer, m.access): m.value for m in metrics if m.metric == name}


def test_known_conflicts_reach_their_operations(profile: KernelProfile, listing: dict[str, Any]) -> None:
    joined = join(profile, KERNEL, listing)
    assert (joined.key, joined.agreement, joined.notes) == ("offset", 1.0, ())
    store, load, whole = (1, "S", "store"), (2, "S", "load"), (None, None, None)
    ideal = {store: 32768, load: 2097152, whole: 2129920}
    real = {store: 262144, load: 16777216, whole: 17039360}
    assert table(joined.metrics, "shared.transactions_ideal") == ideal
    assert table(joined.metrics, "shared.transactions") == real
    assert table(joined.metrics, "shared.conflicts") == {key: real[key] - ideal[key] for key in real}
    assert table(joined.metrics, "shared.requests") == {store: 32768, load: 64 * 32768, whole: 65 * 32768}


def test_global_sectors_know_their_tensors(profile: KernelProfile, listing: dict[str, Any]) -> None:
    joined = join(profile, KERNEL, listing)
    expected = {(1, "A", "load"): 131072, (3, "B", "store"): 131072, (None, None, None): 262144}
    assert table(joined.metrics, "global.sectors") == expected
    assert table(joined.metrics, "global.sectors_ideal") == expected


def test_instructions_and_samples_add_up(profile: KernelProfile, listing: dict[str, Any]) -> None:
    joined = join(profile, KERNEL, listing)
    exits = 32768  # EXIT stands on line 8, the closing brace, which is no operation
    assert table(joined.metrics, "executed.instructions")[None, None, "unattributed"] == exits
    assert joined.attributed == 1 - exits / 9043968
    for name in ("executed.instructions", "stall.samples", "stall.short_scoreboard"):
        rows = table(joined.metrics, name)
        assert sum(value for key, value in rows.items() if key != (None, None, None)) == rows[None, None, None]
    assert table(joined.metrics, "executed.instructions")[None, None, None] == 9043968
    assert table(joined.metrics, "stall.samples")[None, None, None] == 8478
    launch = {m.metric: m for m in joined.metrics if m.operation is None and m.access is None}
    assert launch["time.profiled_ns"].value == 92192
    assert {m.provenance.tool for m in joined.metrics} == {"ncu"}


def test_another_binary_is_joined_by_line(profile: KernelProfile, listing: dict[str, Any]) -> None:
    exact = join(profile, KERNEL, listing)
    for row in listing["rows"]:
        row[5] += 16
    joined = join(profile, KERNEL, listing)
    assert joined.key == "line"
    assert joined.agreement < 0.5
    assert "another binary" in joined.notes[0]
    for name in ("shared.transactions", "shared.transactions_ideal", "shared.conflicts", "global.sectors"):
        assert table(joined.metrics, name) == table(exact.metrics, name)
    rest = table(joined.metrics, "executed.instructions")[None, None, "unattributed"]
    assert rest > 0, "lines of the .cu file itself belong to no operation"
    assert joined.attributed == pytest.approx(1 - rest / 9043968)


def test_a_second_operation_on_a_line_is_told_by_its_file_name(profile: KernelProfile, listing: dict[str, Any]) -> None:
    renamed = [
        dataclasses.replace(i, file=f"{i.file}#op3") if i.line == 6 else dataclasses.replace(i, file=f"{i.file}#op99")
        for i in profile.instructions
    ]
    joined = join(dataclasses.replace(profile, instructions=tuple(renamed)), KERNEL, {**listing, "rows": []})
    rows = table(joined.metrics, "shared.transactions")
    assert rows[3, None, "load"] == 16777216
    assert rows[None, None, "unattributed"] == 262144, "operation 99 does not exist"


def test_what_belongs_to_no_operation_is_kept(profile: KernelProfile, listing: dict[str, Any]) -> None:
    for row in listing["rows"]:
        if row[3] == 1:
            row[3] = None
    joined = join(profile, KERNEL, listing)
    rows = table(joined.metrics, "shared.transactions")
    assert rows == {
        (2, "S", "load"): 16777216,
        (None, None, "unattributed"): 262144,
        (None, None, None): 17039360,
    }
    flags = {m.access: m.flag for m in joined.metrics if m.metric == "shared.transactions" and m.operation is None}
    assert flags == {"unattributed": "unattributed", None: None}
    assert joined.attributed is not None
    assert 0.9 < joined.attributed < 1


def test_a_sum_that_differs_from_the_total_is_flagged(profile: KernelProfile, listing: dict[str, Any]) -> None:
    lost = tuple(i for i in profile.instructions if not i.text.startswith("STS"))
    joined = join(dataclasses.replace(profile, instructions=lost), KERNEL, listing)
    flagged = {m.metric for m in joined.metrics if m.flag == "sum differs"}
    assert {"shared.transactions", "shared.transactions_ideal", "executed.instructions"} <= flagged
    assert "global.sectors" not in flagged
    assert any("instructions sum to 16777216, the profiler's total is 17039360" in note for note in joined.notes)


def test_another_launch_is_noted(profile: KernelProfile, listing: dict[str, Any]) -> None:
    joined = join(profile, {**KERNEL, "grid": [2048, 1, 1], "threads": 128}, listing)
    assert len(joined.notes) == 2
    assert "(2048, 1, 1)" in joined.notes[0]
    assert "128" in joined.notes[1]


def test_a_grid_that_is_known_at_launch(report: NcuReport, listing: dict[str, Any], tmp_path: Path) -> None:
    """The bundle has a recipe; who launched it knows the grid, and who only has a profile takes the profile's word."""
    (tmp_path / "kernel.json").write_text(json.dumps({**KERNEL, "grid": ["(m + 63) // 64", 1, 1]}))
    (tmp_path / "listing.json").write_text(json.dumps(listing))
    for grid, differs in ((None, False), ([4096, 1, 1], False), ([64, 1, 1], True)):
        (joined,) = join_bundle(report, tmp_path, grid)
        assert joined.key == "offset"
        assert any("the bundle (64, 1, 1)" in note for note in joined.notes) == differs


def test_resources_tell_variants_apart_whose_opcodes_are_the_same(report: NcuReport, tmp_path: Path) -> None:
    """conf_kernel<2> and <4> have the same opcodes, and differ in constants and in shared memory."""
    two, four = report.kernels[1:3]
    (tmp_path / "listing.json").write_text(json.dumps(listing_of(two)))
    both = dataclasses.replace(report, kernels=(two, dataclasses.replace(four, symbol=two.symbol)))
    for shared_bytes, transactions in ((8192, 4259840), (16384, 8519680)):
        metadata = {"shared_bytes_static": shared_bytes, "registers_per_thread": 23}
        (tmp_path / "kernel.json").write_text(json.dumps({**KERNEL, "symbol": two.symbol, "metadata": metadata}))
        (joined,) = join_bundle(both, tmp_path)
        assert joined.key == "offset"
        assert table(joined.metrics, "shared.transactions")[None, None, None] == transactions


def test_two_candidate_buffers_are_not_guessed(profile: KernelProfile, listing: dict[str, Any]) -> None:
    kernel = copy.deepcopy(KERNEL)
    kernel["shared"].append({"name": "T"})
    kernel["operations"][2]["reads"] = ["S", "T"]
    rows = table(join(profile, kernel, listing).metrics, "shared.transactions")
    assert rows[2, None, "load"] == 16777216


def test_asynchronous_copies_and_ldmatrix(ncu_sample: Sample) -> None:
    gemm = read(ncu_sample("a100_imma_gemm_full_source_2024.1")).kernels[0]
    kernel = {
        **KERNEL,
        "symbol": gemm.symbol,
        "grid": [3, 4, 1],
        "threads": 128,
        "operations": [operation(0, "kernel", 1, [], [])],
    }
    rows = [[i.text, opcode(i.text), "other", 0, i.line, i.offset] for i in gemm.instructions]
    joined = join(gemm, kernel, {"columns": ["text", "opcode", "class", "operation", "line", "offset"], "rows": rows})
    real = {key[2]: value for key, value in table(joined.metrics, "shared.transactions").items()}
    assert real == {"cp_async_bypass": 14592, "ldmatrix": 19968, "load": 6144, "store": 4608, None: 45312}
    conflicts = {key[2]: value for key, value in table(joined.metrics, "shared.conflicts").items()}
    assert conflicts == {"cp_async_bypass": 7296, "ldmatrix": 0, "load": 3072, "store": 0, None: 10368}
    requests = {key[2]: value for key, value in table(joined.metrics, "shared.requests").items()}
    assert requests["load"] == 16 * 48, "16 LDS.128 in each of 48 warps; @!PT LDS RZ, [RZ] is no access"
    sectors = {key[2]: value for key, value in table(joined.metrics, "global.sectors").items()}
    assert set(sectors) == {"cp_async_bypass", "load", "store", None}
    assert sectors[None] == 32256


def test_from_a_bundle(report: NcuReport, listing: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "kernel.json").write_text(json.dumps(KERNEL))
    with pytest.raises(ProfileFormatError, match="no bundle with a listing"):
        join_bundle(report, tmp_path)
    (tmp_path / "listing.json").write_text(json.dumps(listing))
    (joined,) = join_bundle(report, tmp_path)
    assert joined.key == "offset"
    with zipfile.ZipFile(tmp_path / "bundle.tlk", "w") as archive:
        for name in ("kernel.json", "listing.json"):
            archive.write(tmp_path / name, name)
    assert join_bundle(report, tmp_path / "bundle.tlk") == [joined]
    (tmp_path / "kernel.json").write_text(json.dumps({**KERNEL, "symbol": "matmul"}))
    with pytest.raises(ProfileFormatError, match=r"no complete launch of kernel matmul; it has _Z11conf_kernelILi1"):
        join_bundle(report, tmp_path)


@pytest.mark.parametrize("name", ["h200_bank_conflicts_2025.3", "a100_imma_gemm_full_source_2024.1"])
def test_texts_of_some_instructions_are_enough(ncu_sample: Sample, name: str) -> None:
    """Of those that reach memory all are read, of others a few: the same figures, and the same binary is recognised."""
    full = read(ncu_sample(name)).kernels
    few = read(ncu_sample(name), every=8).kernels
    for whole, sparse in zip(full, few, strict=True):
        texts = [one.text for one in sparse.instructions]
        assert 0 < sum(map(bool, texts)) < 0.6 * len(texts)
        listing = listing_of(whole)
        kernel = {**KERNEL, "symbol": whole.symbol}
        one, other = join(whole, kernel, listing), join(sparse, kernel, listing)
        assert other.metrics == one.metrics
        assert (other.key, other.agreement) == ("offset", 1.0)
        elsewhere = {**listing, "rows": [[*row[:5], row[5] + 16] for row in listing["rows"]]}
        assert join(sparse, kernel, elsewhere).key == "line"


def test_variants_that_share_a_symbol_are_told_apart(
    report: NcuReport, profile: KernelProfile, listing: dict[str, Any], tmp_path: Path
) -> None:
    """All five kernels under one symbol: only the one whose instructions are the bundle's is taken."""
    same = tuple(
        dataclasses.replace(kernel, symbol=profile.symbol) for kernel in report.kernels if kernel.name[:4] != "void"
    )
    mixed = dataclasses.replace(report, kernels=(*same, profile))
    (tmp_path / "kernel.json").write_text(json.dumps(KERNEL))
    (tmp_path / "listing.json").write_text(json.dumps(listing))
    joined = join_bundle(mixed, tmp_path)
    assert len(same) == 1
    assert [one.key for one in joined] == ["offset"]
    assert table(joined[0].metrics, "stall.samples")[None, None, None] == 8478


def test_an_interrupted_launch_is_not_joined(ncu_sample: Sample, listing: dict[str, Any], tmp_path: Path) -> None:
    interrupted = read(ncu_sample("h800_interrupted_nan_2023.3"))
    (tmp_path / "kernel.json").write_text(json.dumps({**KERNEL, "symbol": interrupted.kernels[-1].symbol}))
    (tmp_path / "listing.json").write_text(json.dumps(listing))
    with pytest.raises(ProfileFormatError, match="no complete launch"):
        join_bundle(interrupted, tmp_path)


@pytest.mark.parametrize(
    ("text", "memory", "expected"),
    [
        ("LDS.128 R4, [R2]", None, Access("load", ("shared",))),
        ("@!P0 STS [R7+UR4], R4", None, Access("store", ("shared",))),
        ("@P2 LDG.E.CONSTANT R4, desc[UR6][R4.64]", None, Access("load", ("global",))),
        ("LDSM.16.M88.4 R4, [R2]", None, Access("ldmatrix", ("shared",))),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R1], [R2.64]", None, Access("cp_async_bypass", ("shared", "global"))),
        ("LDGSTS.E.64 [R1], [R2.64]", None, Access("cp_async", ("shared", "global"))),
        ("@UP0 RED.E.ADD.STRONG.GPU [R2], R3", None, Access("atomic", ("global",))),
        ("LD.E R4, [R2]", 16, Access("load", ("shared",))),
        ("LD.E R4, [R2]", 0, None),
        ("@!PT LDS RZ, [RZ]", None, None),
        ("LDL R1, [R2]", 8, None),
        ("LDC R1, c[0x0][0x28]", None, None),
        ("HMMA.16816.F32 R4, R8, R12, R4", None, None),
    ],
)
def test_access_by_opcode(text: str, memory: int | None, expected: Access | None) -> None:
    assert access(text, memory) == expected


def test_opcodes() -> None:
    assert opcode("@P0 LDG.E.128.CONSTANT R4, [R2]") == "LDG.E.128.CONSTANT"
    assert mnemonic("@!UPT UIADD3 UR4, UR4, 0x1, URZ") == "UIADD3"
    assert opcode("") == ""
    counts: dict[str, int] = defaultdict(int)
    for line in ("PLOP3.LUT P0, PT, PT", "P2R R1, PR", "UPLOP3.LUT UP0"):
        counts[mnemonic(line)] += 1
    assert dict(counts) == {"PLOP3": 1, "P2R": 1, "UPLOP3": 1}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("@P0 LDGSTS.E.BYPASS.128 [R3], desc[UR4][R8.64] ;", True),
        ("@!P0 LDGSTS.E.BYPASS.128 [R3], desc[UR4][R8.64] ;", True),
        ("LDGSTS.E.BYPASS.128.ZFILL [R3], desc[UR4][R8.64], P0 ;", True),
        ("@P1 LDGSTS.E.BYPASS.128 [R3], desc[UR4][R8.64] ;", False),
        ("@UP0 LDGSTS.E.BYPASS.128 [R3], desc[UR4][R8.64] ;", False),
        ("@P0 LDGSTS.E.64 [R3], desc[UR4][R8.64] ;", False),
        ("@P0 LDS.128 R4, [R3] ;", False),
    ],
)
def test_what_the_profiler_misreads_is_known(text: str, wrong: bool) -> None:
    assert misread_by_profiler(text) is wrong


def test_misread_counts_are_flagged_and_said(profile: KernelProfile) -> None:
    """The sample's stores of line 5 turned into copies guarded by P0: their counts are kept, and not believed."""
    text = "@P0 LDGSTS.E.BYPASS.128 [R3], desc[UR4][R8.64]"
    instructions = tuple(
        dataclasses.replace(item, text=text) if item.line == 5 and item.text.startswith("STS") else item
        for item in profile.instructions
    )
    changed = dataclasses.replace(profile, instructions=instructions)
    joined = join(changed, KERNEL, listing_of(changed))
    flags = {m.metric: m.flag for m in joined.metrics if m.operation == 1 and m.access == "cp_async_bypass"}
    assert flags["shared.transactions"] == flags["shared.conflicts"] == "misread by profiler"
    assert flags["shared.requests"] is None
    assert any("P0" in note for note in joined.notes)


def test_sectors_without_bulk_copies_are_flagged(profile: KernelProfile, listing: dict[str, Any]) -> None:
    """The tensor memory accelerator's traffic is in no counter of instructions: the kernel's total is not all of it."""
    plain = {m.metric: m.flag for m in join(profile, KERNEL, listing).metrics if m.operation is None}
    assert plain["global.sectors"] is None
    at = {name: place for place, name in enumerate(listing["columns"])}
    more = copy.deepcopy(listing)
    row = list(more["rows"][-1])
    row[at["opcode"]], row[at["offset"]] = "UTMALDG.2D", row[at["offset"]] + 16
    more["rows"].append(row)
    flags = {m.metric: m.flag for m in join(profile, KERNEL, more).metrics if m.operation is None}
    assert flags["global.sectors"] == WITHOUT_BULK
    assert flags["shared.transactions"] is None
