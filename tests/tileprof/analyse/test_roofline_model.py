"""Roofline arithmetic: ridges, attainable work, which ceiling a case is held to, and what cannot be plotted."""

from __future__ import annotations

import math

import pytest
from run_factory import CALIBRATED, DATASHEET_A100, make_case, make_metadata, make_run

from tileprof.analyse.roofline import (
    Point,
    Unplotted,
    attainable,
    compute_ceiling,
    point,
    ridge_intensity,
    roofline,
    rooflines,
)
from tileprof.store.records import Ceiling, Run, Timing

DRAM = Ceiling("cpu", "dram.bytes_per_s", "", 10e9, CALIBRATED)
VECTOR = Ceiling("cpu", "flops_per_s", "vector.float32", 200e9, CALIBRATED)


def test_ridge_and_attainable_by_hand() -> None:
    assert ridge_intensity(10e9, 200e9) == 20.0
    assert attainable(5.0, 10e9, 200e9) == 50e9
    assert attainable(20.0, 10e9, 200e9) == 200e9
    assert attainable(500.0, 10e9, 200e9) == 200e9


def test_a_measured_point_by_hand() -> None:
    case = make_case(
        "scale_add",
        "float32",
        "cpu",
        timing=Timing((4e6, 2e6, 9e6), "clock", 1, False),
        metadata={"flops": {"float32": 8_000_000}, "bytes_min": 4_000_000},
    )
    found = point(case, [DRAM], [VECTOR])
    assert isinstance(found, Point)
    assert found.intensity == 2.0
    assert found.time_ns == 4e6
    assert found.achieved == pytest.approx(2e9)  # 8 MFLOP in 4 ms
    assert found.attainable == 20e9
    assert found.share == pytest.approx(0.1)
    assert found.bound == "memory"


def test_a_case_that_was_not_run_is_predicted_and_has_no_share() -> None:
    found = point(make_case("matmul_padded", "float32", "cpu", status="not_run", timing=None), [DRAM], [VECTOR])
    assert isinstance(found, Point)
    assert (found.achieved, found.share, found.time_ns) == (None, None, None)
    assert found.attainable == 200e9
    assert found.bound == "compute"


def test_more_than_attainable_is_kept() -> None:
    case = make_case(
        "scale_add",
        "float32",
        "cpu",
        timing=Timing((1e3,), "clock", 1, False),
        metadata={"flops": {"float32": 8_000_000}, "bytes_min": 4_000_000},
    )
    found = point(case, [DRAM], [VECTOR])
    assert isinstance(found, Point)
    assert found.share == pytest.approx(400.0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"metadata": None, "status": "compile_error"}, "no binary"),
        ({"metadata": {"flops": {}, "bytes_min": 4}}, "no floating-point"),
        ({"metadata": {"flops": {"float32": 0}, "bytes_min": 4}}, "no floating-point"),
        ({"metadata": {"flops": {"float32": 8}, "bytes_min": 0}}, "least number of bytes"),
        ({"metadata": {"flops": {"float32": 8}, "bytes_min": None}}, "least number of bytes"),
        (
            {"status": "timeout", "timing": None, "reason": "no result after 20 s\nmore"},
            "timeout: no result after 20 s",
        ),
        ({"timing": Timing((0.0,), "clock", 0, False)}, "0.0 ns"),
        ({"timing": Timing((math.nan,), "clock", 0, False)}, "nan ns"),
    ],
)
def test_what_cannot_be_plotted_says_why(changes: dict[str, object], reason: str) -> None:
    found = point(make_case("scale_add", "float32", "cpu", **changes), [DRAM], [VECTOR])
    assert isinstance(found, Unplotted)
    assert reason in found.reason


def test_not_run_without_ceilings_is_listed_with_its_intensity() -> None:
    found = point(make_case("scale_add", "float32", "sm80"), [], [])
    assert isinstance(found, Unplotted)
    assert "0.1667 FLOP/byte" in found.reason


def peak(unit: str) -> Ceiling:
    return Ceiling("cuda:sm_80", "flops_per_s", unit, 1e12, DATASHEET_A100)


@pytest.mark.parametrize(
    ("matrix", "flops_type", "known", "chosen"),
    [
        (0, "float32", ["matrix.float16", "vector.float32"], "vector.float32"),
        (9, "float16", ["matrix.float16", "vector.float32"], "matrix.float16"),
        (9, "float32", ["matrix.float16", "matrix.float32", "vector.float32"], "matrix.float32"),
        (9, "float32", ["matrix.float16", "vector.float32"], "matrix.float16"),
        (0, "float16", ["vector.float32"], "vector.float32"),
        (0, "float16", ["vector.float16", "vector.float32"], "vector.float16"),
        (0, "float64", ["vector.float32"], None),
    ],
)
def test_the_ceiling_a_kernel_is_held_to(matrix: int, flops_type: str, known: list[str], chosen: str | None) -> None:
    metadata = {"instructions": {"total": {"matrix": matrix, "fma": 4}}}
    found = compute_ceiling(metadata, flops_type, [peak(name) for name in known])
    assert (found.unit_class if found else None) == chosen


def test_measured_ceilings_come_before_datasheet_ones() -> None:
    nominal = Ceiling("cpu", "dram.bytes_per_s", "", 40e9, DATASHEET_A100)
    found = point(make_case("scale_add", "float32", "cpu"), [nominal, DRAM], [VECTOR])
    assert isinstance(found, Point)
    assert found.bandwidth is DRAM


def test_rooflines_of_the_quickstart(run: Run) -> None:
    cpu, nvidia, amd = rooflines(run)
    assert [len(roof.points) for roof in (cpu, nvidia, amd)] == [7, 8, 7]
    assert [u.case.id for u in cpu.unplotted] == ["matmul_naive[float16,M=1024,N=1024,K=1024]@cpu"]
    assert "compile_error" in amd.unplotted[0].reason
    assert [c.quantity for c in nvidia.level_bandwidths] == ["shared.bytes_per_s"]
    assert nvidia.other_ceilings == ()
    measured = [p for p in nvidia.points if p.achieved is not None]
    assert [p.case.id for p in measured] == ["matmul_tiled[float16,M=1024,N=1024,K=1024]@sm80"]
    levels = {level.level: level for level in measured[0].levels}
    assert set(levels) == {"dram", "shared"}
    # Sums over operations: 8 requests x 32 passes twice, 32 x 24 once, of 128 bytes, each 8,192 times.
    assert levels["shared"].moved == 128 * 8192 * (8 * 32 * 2 + 32 * 24)
    assert levels["shared"].intensity == pytest.approx(2 * 1024**3 / levels["shared"].moved)
    assert measured[0].time_ns is not None
    assert levels["shared"].share == pytest.approx(levels["shared"].moved / measured[0].time_ns * 1e9 / 19.49e12)
    assert levels["dram"].intensity == pytest.approx(2 * 1024**3 / (4_718_592 + 4_210_688))
    assert levels["dram"].kind == "measured"
    assert ridge_intensity(13.8e9, 151.2e9) == pytest.approx(cpu.ridges[0].intensity)


def test_only_ceilings_in_use_are_drawn() -> None:
    run = make_run(ceilings=(DRAM, VECTOR, Ceiling("cpu", "flops_per_s", "matrix.int8", 9e12, CALIBRATED)))
    roof = roofline(run, "cpu", "cpu")
    assert [c.unit_class for c in roof.peaks] == ["vector.float32"]
    assert [c.unit_class for c in roof.other_ceilings] == ["matrix.int8"]


def test_ceilings_without_sense_are_ignored() -> None:
    run = make_run(ceilings=(Ceiling("cpu", "dram.bytes_per_s", "", math.inf, CALIBRATED),))
    assert roofline(run, "cpu", "cpu").bandwidths == ()


def test_metadata_of_the_factory_is_what_the_model_reads() -> None:
    metadata = make_metadata("matmul_padded", "float16", "cuda:sm_80")
    assert sum(metadata["flops"].values()) == 2 * 1024**3
    assert metadata["bytes_min"] == 2 * 2 * 1024**2 + 4 * 1024**2


def test_warp_products_on_hopper_are_held_to_their_own_rate() -> None:
    """mma.sync reaches two thirds of what wgmma reaches there."""
    peaks = [peak("matrix.float16"), peak("matrix.float16.mma_sync")]
    metadata = {"instructions": {"total": {"matrix": 8}}}
    warp = compute_ceiling(metadata, "float16", peaks, "HMMA.16816.F32 R4, R8, R12, R4 ;")
    group = compute_ceiling(metadata, "float16", peaks, "HGMMA.64x128x16.F32 R24, gdesc[UR4] ;")
    assert warp is not None
    assert group is not None
    assert (warp.unit_class, group.unit_class) == ("matrix.float16.mma_sync", "matrix.float16")
