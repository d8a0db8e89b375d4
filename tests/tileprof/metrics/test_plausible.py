from __future__ import annotations

import pytest

from tileprof.metrics import make
from tileprof.metrics.plausible import IMPLAUSIBLE_CLOCK, ZERO, flag_implausible, flagged
from tileprof.store.records import Metric, Provenance

TOOL = Provenance("measured", "ncu", "")


def row(metric: str, value: float, **more: object) -> Metric:
    made = make(metric, value, TOOL, **more)  # type: ignore[arg-type]
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("share", "flag"), [(0.29, IMPLAUSIBLE_CLOCK), (0.31, None), (1.0, None), (1.14, None), (1.16, IMPLAUSIBLE_CLOCK)]
)
def test_clocks_outside_of_what_the_device_can(share: float, flag: str | None) -> None:
    (found,) = flag_implausible([row("clock.hz", share * 2e9)], 2e9)
    assert (found.value, found.flag) == (share * 2e9, flag), "kept as it is"


def test_without_a_maximum_only_what_no_gpu_has_is_flagged() -> None:
    assert [m.flag for m in flag_implausible([row("clock.hz", 3208.0), row("clock.hz", 9e8)])] == [
        IMPLAUSIBLE_CLOCK,
        None,
    ]


def test_a_zero_in_a_launch_that_took_time() -> None:
    rows = [row("time.profiled_ns", 5000.0), row("executed.instructions", 0.0), row("dram.write_bytes", 0.0)]
    assert [m.flag for m in flag_implausible(rows)] == [None, ZERO, None], "a kernel may write nothing"


def test_all_zeros_are_doubtful_where_no_warp_was_counted() -> None:
    rows = [
        row("time.profiled_ns", 5000.0), row("launch.warps", 0.0), row("shared.conflicts", 0.0), row("registers.agpr", 0.0),
    ]  # fmt: skip
    assert [m.flag for m in flag_implausible(rows)] == [None, ZERO, ZERO, None]


def test_without_time_nothing_is_known_of_zeros() -> None:
    assert flag_implausible([row("launch.warps", 0.0)])[0].flag is None


def test_flags_that_are_there_stay() -> None:
    rows = [row("time.profiled_ns", 1.0), row("occupancy.achieved", 2.33)]
    assert [m.flag for m in flag_implausible(rows)] == [None, "out of range"]
    assert [m.value for m in flagged(flag_implausible(rows))] == [2.33]


def test_figures_of_operations_may_be_zero() -> None:
    rows = [row("time.profiled_ns", 1.0), row("executed.instructions", 0.0, operation=3)]
    assert flag_implausible(rows)[1].flag is None
