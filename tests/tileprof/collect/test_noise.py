"""Times that lie too far apart are noisy: said and flagged, wherever a median of them is shown."""

from __future__ import annotations

from typing import Any

import pytest
from run_factory import make_case, make_run

from tileprof.cli.progress import outcome
from tileprof.cli.summary import print_summary
from tileprof.collect.cycles import cost_is_known, cycles_metrics, overhead_note
from tileprof.collect.noise import is_noisy, noise_note
from tileprof.collect.timer import timing_metrics
from tileprof.store.records import Timing

STEADY = (41.0e3, 41.2e3, 41.3e3, 41.3e3, 41.9e3, 60.0e3)  # one launch that was held up says nothing
HALF_HELD_UP = (32.0e3, 33.0e3, 4.2e6, 4.9e6, 5.0e6)
MOSTLY_HELD_UP = (
    32.0e3,
    4.20e6,
    4.21e6,
    4.22e6,
    4.23e6,
    4.24e6,
)  # quartiles lie close together, and the median is wrong


@pytest.mark.parametrize(
    ("samples", "noisy"),
    [(STEADY, False), (HALF_HELD_UP, True), (MOSTLY_HELD_UP, True), ((5.0,), False), ((5.0, 9.0), True)],
)
def test_what_is_noisy(samples: tuple[float, ...], noisy: bool) -> None:
    assert is_noisy(samples) is noisy
    assert (noise_note(samples) is not None) is noisy
    (record,) = timing_metrics(Timing(samples, "monotonic clock", 1, True))
    assert record.flag == ("noisy" if noisy else None)


def test_the_note_has_the_figures_and_what_to_do() -> None:
    assert noise_note(()) is None
    assert noise_note(HALF_HELD_UP) == (
        "noisy times: the middle half of 5 launches took 33 us to 4.9 ms, the fastest 32 us, the median is 4.2 ms: other work on "
        "this machine or a changing clock; time again when it is quiet, or with more samples and rounds"
    )


def message(plain: tuple[float, ...], clocked: tuple[float, ...]) -> dict[str, Any]:
    cycles = {
        "operations": [], "worker": "thread", "workers": 2, "elapsed": 10, "longest": 6, "blocks": 1, "recorded": 1
    }  # fmt: skip
    return {"plain_ns": plain, "clocked_ns": clocked, "cycles": cycles}


FASTER = tuple(sample * 0.5 for sample in STEADY)


@pytest.mark.parametrize(
    ("plain", "clocked", "known"),
    [
        (STEADY, tuple(sample * 1.03 for sample in STEADY), True),
        (STEADY, tuple(sample * 0.98 for sample in STEADY), True),  # as near as times are
        (HALF_HELD_UP, STEADY, False),  # -99 % with clock reads
        (STEADY, HALF_HELD_UP, False),  # +10,000 %
        (STEADY, FASTER, False),  # steady, and impossible: the machine was another meanwhile
    ],
)
def test_the_cost_of_clock_reads_is_not_said_where_it_is_not_known(
    plain: tuple[float, ...], clocked: tuple[float, ...], known: bool
) -> None:
    told = message(plain, clocked)
    assert cost_is_known(told) is known
    (record,) = [row for row in cycles_metrics(told) if row.metric == "cycles.slowdown"]
    assert record.flag == (None if known else "noisy")
    note = overhead_note(told)
    assert ("%" in note) is known
    case = make_case("matmul_tiled", "float32", "cpu", metrics=(record,), notes=(note,))
    assert ("% with clock reads" in outcome(case)) is known
    assert ("too noisy to say what clock reads cost" in outcome(case)) is not known


def test_run_tells_of_noisy_cases_and_of_no_more_than_a_few(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    timing = Timing(HALF_HELD_UP, "monotonic clock", 1, True)
    note = noise_note(HALF_HELD_UP)
    assert note is not None
    cases = tuple(
        make_case("matmul_tiled", "float32", "cpu", id=f"k{number}@cpu", notes=(note,), timing=timing,
                  metrics=tuple(timing_metrics(timing)))
        for number in range(5)
    )  # fmt: skip
    assert outcome(cases[0]) == "ran: 4.200 ms: noisy"
    print_summary(make_run(cases=cases), tmp_path)
    out = capsys.readouterr().out
    assert out.count("the middle half of 5 launches took 33 us to 4.9 ms") == 3
    assert "noisy times of 2 more cases; the report has them" in out
