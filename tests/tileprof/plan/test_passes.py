from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tileprof.metrics import amd
from tileprof.metrics.amd_blocks import BLOCK_LIMITS, CYCLES, DERIVED, block_of, places
from tileprof.plan.passes import over_limit, plan_passes


def test_limits_are_those_of_rocms_planner() -> None:
    expected = {"SQ": 8, "TA": 2, "TD": 2, "TCP": 4, "TCC": 4, "CPC": 2, "CPF": 2, "SPI": 6, "GRBM": 2, "GDS": 4}
    assert {block: limit for block, limit in BLOCK_LIMITS.items() if block != "ACCUM"} == expected


def test_blocks_of_counters() -> None:
    assert block_of("SQ_WAVES") == "SQ"
    assert block_of("SQC_DCACHE_HITS") == "SQ", "SQC counters take SQ's places"
    assert block_of("TCC_EA0_RDREQ_sum") == "TCC"
    assert block_of("TCP_TCC_READ_REQ_sum") == "TCP"
    assert block_of("TCC_HIT[0]") == "TCC"
    assert block_of("FETCH_SIZE") is None
    assert block_of("MY_COUNTER") is None
    assert places("SQ_LEVEL_WAVES_ACCUM") == {"SQ": 2, "ACCUM": 1}
    assert places("LdsBankConflict") == {"SQ": 1, "GRBM": 1}


def test_nine_counters_of_a_block_take_two_passes() -> None:
    plan = plan_passes([[f"SQ_C{i}"] for i in range(9)])
    assert len(plan.passes) == 2
    assert all(CYCLES in one for one in plan.passes), "in every pass, to see clocks drift"
    assert len(plan_passes([[f"SQ_C{i}"] for i in range(8)]).passes) == 1


def test_rocms_own_file_is_over_its_limit() -> None:
    five = ["TCC_HIT_sum", "TCC_MISS_sum", "TCC_REQ_sum", "TCC_EA0_RDREQ_sum", "TCC_BUBBLE_sum"]
    assert over_limit(five) == {"TCC": 5}
    assert [over_limit(one) for one in plan_passes([five]).passes] == [{}, {}]


def test_the_four_passes_of_the_reference_are_within_limits() -> None:
    passes = [
        "SQ_INSTS_VALU_ADD_F16 SQ_INSTS_VALU_MUL_F16 SQ_INSTS_VALU_FMA_F16 SQ_INSTS_VALU_TRANS_F16 SQ_INSTS_VALU_ADD_F32 "
        "SQ_INSTS_VALU_MUL_F32 SQ_INSTS_VALU_FMA_F32 SQ_INSTS_VALU_TRANS_F32 TCC_HIT_sum TCC_MISS_sum TCC_REQ_sum "
        "TCP_TOTAL_CACHE_ACCESSES_sum GRBM_GUI_ACTIVE",
        "SQ_WAVES SQ_WAVE_CYCLES SQ_WAIT_ANY SQ_WAIT_INST_ANY SQ_WAIT_INST_LDS SQ_ACTIVE_INST_ANY SQ_ACTIVE_INST_VALU "
        "SQ_VALU_MFMA_BUSY_CYCLES GRBM_GUI_ACTIVE",
    ]
    assert [over_limit(one.split()) for one in passes] == [{}, {}]


def test_everything_of_an_architecture_fits_into_few_passes() -> None:
    for arch in ("gfx90a", "gfx942", "gfx950"):
        groups = [f.counters for f in amd.FORMULAS if f.arches and f.holds_on(arch)]
        plan = plan_passes(groups)
        assert plan.unknown == ()
        assert not any(over_limit(one) for one in plan.passes)
        needed = {name for group in groups for name in group}
        by_block: dict[str, int] = {}
        for name in needed:
            for block, count in (places(name) or {}).items():
                by_block[block] = by_block.get(block, 0) + count
        fewest = max(-(-count // BLOCK_LIMITS[block]) for block, count in by_block.items())
        assert len(plan.passes) <= fewest + 2, f"{arch}: {len(plan.passes)} passes, {fewest} at least"


def test_a_formulas_counters_stay_together() -> None:
    ratio = ("TCC_HIT_sum", "TCC_MISS_sum")
    plan = plan_passes([["TCC_REQ_sum", "TCC_EA0_RDREQ_sum", "TCC_EA0_WRREQ_sum"], ratio])
    assert any(set(ratio) <= set(one) for one in plan.passes)


def test_unknown_counters_go_alone() -> None:
    plan = plan_passes([["SQ_WAVES", "STRANGE"]])
    assert plan.unknown == ("STRANGE",)
    assert plan.passes == ((CYCLES, "SQ_WAVES"), (CYCLES, "STRANGE"))


def test_nothing_asked_needs_no_pass() -> None:
    assert plan_passes([]).passes == ()


_COUNTERS = st.sampled_from(
    [f"{block}_C{i}" for block in ("SQ", "SQC", "TCC", "TCP", "TA", "SPI") for i in range(10)]
    + ["SQ_LEVEL_WAVES_ACCUM", "SQ_INST_LEVEL_LDS_ACCUM", *DERIVED, "STRANGE"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_COUNTERS, min_size=1, max_size=12), max_size=10))
def test_any_set_is_collected_once_and_within_limits(groups: list[list[str]]) -> None:
    plan = plan_passes(groups)
    collected = [name for one in plan.passes for name in one if name != CYCLES]
    assert sorted(collected) == sorted({name for group in groups for name in group})
    assert not any(over_limit(one) for one in plan.passes)
