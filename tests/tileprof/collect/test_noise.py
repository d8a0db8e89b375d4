"""Times that lie too far apart are noisy: said and flagged, wherever a median of them is shown."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from run_factory import make_case, make_run

from tileprof.cli.progress import outcome
from tileprof.cli.summary import print_summary
from tileprof.collect.cycles import cost_is_known, cycles_metrics, overhead_note
from tileprof.collect.noise import is_noisy, noise_note, waiting_note
from tileprof.collect.timer import timing_metrics
from tileprof.execute.results import CaseBuilder, Paths
from tileprof.launcher.waiting import Waiting
from tileprof.store.records import Timing
from tileprof.workload.records import Case, KernelEntry, TargetEntry

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


def tasks(folder: Path, **threads: tuple[int, int]) -> Path:
    """What the kernel says of each thread: (nanoseconds it ran, nanoseconds it waited)."""
    for name, (ran, waited) in threads.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "schedstat").write_text(f"{ran} {waited} 17\n")
    return folder


def test_waiting_is_summed_over_threads(tmp_path: Path) -> None:
    folder = tasks(tmp_path / "task", a=(1000, 50), b=(2000, 0))
    with Waiting(folder) as watch:
        tasks(folder, a=(1600, 250), b=(2400, 100), c=(30, 7))  # one that began meanwhile
        (folder / "d").mkdir()  # and one that is gone before it is asked
    assert watch.summary() == {"ran_ns": 1030, "waited_ns": 307}
    with Waiting(tmp_path / "none") as nothing:
        pass
    assert nothing.summary() is None


def test_threads_that_share_their_processors_are_seen_to_wait() -> None:
    """Four busy threads for every processor: each must wait for some of the time."""
    if not Path("/proc/self/schedstat").exists() or Path("/proc/self/schedstat").read_text().split()[0] == "0":
        pytest.skip("this kernel keeps no times of threads")
    spin = "import time; end = time.monotonic() + 1.0\nwhile time.monotonic() < end: pass"
    count = 3 * len(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(count)]
    time.sleep(0.3)  # until they are at work
    with Waiting() as watch:
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            pass
    for other in others:
        other.wait()
    found = watch.summary()
    assert found is not None
    assert waiting_note(**found) is not None


def builder() -> CaseBuilder:
    target = TargetEntry("cpu", "cpu", "cpu", ("timer",))
    return CaseBuilder(Case("k@cpu", "0" * 16, KernelEntry("k"), target, {}, {}, {}), 0, Paths(), "kernels/k")


@pytest.mark.parametrize(("waited", "flag"), [(5_000, None), (900_000, "noisy")])
def test_times_of_threads_that_waited_are_noisy_however_alike(waited: int, flag: str | None) -> None:
    made = builder()
    made.take({"type": "timed", "samples_ns": [4.2e6] * 5, "method": "wall clock", "warmup": 1, "flushed": True})
    made.take({"type": "waited", "ran_ns": 100_000, "waited_ns": waited})
    (record,) = [metric for metric in made.build().metrics if metric.metric == "time.ns"]
    assert record.flag == flag
    notes = [note for note in made.notes if note.startswith("noisy times: ")]
    assert len(notes) == (flag is not None)
    assert all("the kernel's threads waited for a processor 90% of the time" in note for note in notes)


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
