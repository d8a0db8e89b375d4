from __future__ import annotations

import dataclasses
import math

import pytest

from tilelang_min.program import INSTRUCTION_CLASSES, KernelMetadata
from tileprof.errors import ProfileFormatError
from tileprof.metrics import METADATA_FIELDS, METRICS, UnknownMetric, convert, known_unit, lookup, make, names
from tileprof.metrics.catalogue import INSTRUCTION_CLASSES as CATALOGUE_CLASSES
from tileprof.metrics.from_metadata import NOT_METRICS, metadata_metrics
from tileprof.metrics.ncu_names import INSTRUCTION_COUNTERS, LAUNCH_COUNTERS, STALL_COUNTERS, requested
from tileprof.store.records import Provenance

MEASURED = Provenance("measured", "ncu", "2025.3.1")


def test_lookup_gives_unit_and_meaning() -> None:
    info = lookup("shared.conflicts")
    assert (info.unit, info.better) == ("transactions", "lower")
    assert "bank conflicts" in info.meaning


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("shared.conflict", "shared.conflicts"),
        ("register.per_thread", "registers.per_thread"),
        ("spill.store_byte", "spill.store_bytes"),
        ("stall.long_scorebord", "stall.long_scoreboard"),
        ("instructions.matrixx", "instructions.matrix"),
        ("SHARED.TRANSACTIONS_IDEAL".lower()[:-1], "shared.transactions_ideal"),
    ],
)
def test_an_unknown_name_names_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(UnknownMetric, match=right):
        lookup(wrong)


def test_an_unknown_name_without_any_near_one_names_the_groups() -> None:
    with pytest.raises(UnknownMetric, match="groups are time, clock, device, cycles, dram"):
        lookup("qqqq")


def test_families_are_complete() -> None:
    assert tuple(CATALOGUE_CLASSES) == INSTRUCTION_CLASSES
    assert set(names("instructions")) == {f"instructions.{klass}" for klass in INSTRUCTION_CLASSES}
    assert "stall.long_scoreboard" in names("stall")


def test_every_metadata_field_is_a_metric_or_said_to_be_none() -> None:
    fields = {field.name for field in dataclasses.fields(KernelMetadata)}
    assert fields == set(METADATA_FIELDS) | set(NOT_METRICS)
    for metric in METADATA_FIELDS.values():
        assert metric.endswith(".*") or metric in METRICS


def test_raw_names_lead_to_canonical_ones() -> None:
    for canonical in [c.canonical for c in LAUNCH_COUNTERS] + [*INSTRUCTION_COUNTERS, *STALL_COUNTERS]:
        lookup(canonical)
    assert STALL_COUNTERS["stall.no_instruction"] == "smsp__pcsamp_warps_issue_stalled_no_instructions"


def test_requested_names_follow_the_chip() -> None:
    assert "dram__bytes_read.sum" in requested(9)
    assert "dram__bytes_op_read.sum" in requested(12)
    assert "dram__bytes_read.sum" not in requested(12)
    assert "memory_l1_wavefronts_shared_ideal" in requested()


def test_make_keeps_missing_missing_and_flags_what_cannot_be() -> None:
    assert make("time.ns", None, MEASURED) is None
    assert make("time.ns", math.nan, MEASURED) is None
    good = make("occupancy.achieved", 0.5, MEASURED)
    assert good is not None
    assert (good.value, good.unit, good.flag) == (0.5, "ratio", None)
    for name, value in (("occupancy.achieved", 2.33), ("shared.conflicts", -1.0), ("time.ns", math.inf)):
        bad = make(name, value, MEASURED)
        assert bad is not None
        assert (bad.value, bad.flag) == (value, "out of range")


@pytest.mark.parametrize(
    ("value", "unit", "canonical", "expected"),
    [
        (1.5, "us", "ns", 1500.0),
        (2.0, "usecond", "ns", 2000.0),
        (1.5, "Kbyte", "bytes", 1500.0),
        (2.0, "Ghz", "Hz", 2e9),
        (1.51, "cycle/nsecond", "Hz", 1.51e9),
        (85.4, "%", "ratio", 0.854),
        (23.0, "register/thread", "registers", 23.0),
        (7.0, "", "transactions", 7.0),
    ],
)
def test_units(value: float, unit: str, canonical: str, expected: float) -> None:
    assert convert(value, unit, canonical) == pytest.approx(expected)


def test_units_of_another_quantity_are_an_error() -> None:
    with pytest.raises(ProfileFormatError, match="'us' cannot be turned into 'bytes'"):
        convert(1.0, "us", "bytes")
    assert known_unit("furlong") is None


def _metadata() -> KernelMetadata:
    return KernelMetadata(
        target="cuda:sm_80",
        registers_per_thread=40,
        vgprs=None,
        agprs=None,
        sgprs=None,
        shared_bytes_static=4096,
        shared_bytes_dynamic=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
        spilled_vgprs=None,
        spilled_sgprs=None,
        stack_bytes=0,
        threads_per_block=128,
        grid=(8, 4, 1),
        cluster=None,
        max_blocks_per_unit=4,
        occupancy=0.25,
        occupancy_limiters=("registers",),
        instructions={
            "total": {"fma": 10, "other": 2},
            "by_operation": {"3": {"fma": 10}, "none": {"other": 2}},
            "attributed": 10 / 12,
        },
        code_bytes=1024,
        compile_seconds={"lower": 0.25, "nvrtc": 0.5},
        toolchain={"nvrtc": "13.5"},
        flops={"float16": 2048},
        bytes_min=512,
    )


def test_metadata_becomes_metrics() -> None:
    rows = metadata_metrics(_metadata().to_json(), "0.1")
    whole = {r.metric: r for r in rows if r.operation is None and r.access is None}
    values = {name: row.value for name, row in whole.items()}
    assert values == {
        "registers.per_thread": 40,
        "shared.static_bytes": 4096,
        "shared.dynamic_bytes": 0,
        "spill.store_bytes": 0,
        "spill.load_bytes": 0,
        "scratch.bytes": 0,
        "launch.threads_per_block": 128,
        "launch.blocks": 32,
        "occupancy.blocks_per_unit": 4,
        "occupancy.theoretical": 0.25,
        "code.bytes": 1024,
        "compile.seconds": 0.75,
        "bytes.min": 512,
        "flop.float16": 2048,
        "instructions.fma": 10,
        "instructions.other": 2,
        "listing.attributed": pytest.approx(10 / 12),
    }
    assert whole["registers.per_thread"].provenance == Provenance("static", "tilelang_min", "0.1")
    assert whole["occupancy.theoretical"].provenance.kind == "derived"
    assert whole["compile.seconds"].provenance.kind == "measured"
    by_operation = [(r.metric, r.operation, r.value) for r in rows if r.operation is not None]
    assert by_operation == [("instructions.fma", 3, 10)]
    rest = [(r.metric, r.value, r.flag) for r in rows if r.access == "unattributed"]
    assert rest == [("instructions.other", 2, "unattributed")]
