from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from tileprof.collect.perf import EVENTS, SOFTWARE, Counting, Event, available, metrics_of, open_event

SOFT = [event for event in EVENTS if event.type == SOFTWARE]


def refusing(code: int):  # type: ignore[no-untyped-def]
    def opener(event: Event, thread: int) -> int:
        raise OSError(code, os.strerror(code))

    return opener


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "proc/sys/kernel/perf_event_paranoid"
    path.parent.mkdir(parents=True)
    path.write_text("3\n")
    return tmp_path


@pytest.mark.parametrize(
    ("code", "why", "remedy"),
    [
        (
            errno.EACCES,
            "denies counters to this user (perf_event_paranoid is 3)",
            "sysctl kernel.perf_event_paranoid=1",
        ),
        (errno.EPERM, "denies counters", "--cap-add=PERFMON"),
        (errno.ENOENT, "no hardware counters, as most virtual machines", "without virtualisation"),
        (errno.ENOSYS, "a sandbox blocks it", "seccomp"),
        (errno.EINVAL, "the kernel refused", "sysctl"),
    ],
)
def test_a_refusal_comes_with_its_reason_and_remedy(root: Path, code: int, why: str, remedy: str) -> None:
    state = available(root, refusing(code))
    assert not state.usable
    assert why in state.why
    assert remedy in state.remedy


def test_a_kernel_without_perf_events(tmp_path: Path) -> None:
    assert "no perf events" in available(tmp_path, refusing(errno.ENOSYS)).why


def test_usable_where_an_event_opens(root: Path) -> None:
    state = available(root, lambda event, thread: os.open(os.devnull, os.O_RDONLY))
    assert (state.usable, state.tool) == (True, "perf")


def soft_events_work() -> bool:
    try:
        os.close(open_event(SOFT[0], 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not soft_events_work(), reason="this kernel gives no perf events at all")
def test_counting_on_this_kernel_over_all_threads() -> None:
    """What the kernel itself counts is there in virtual machines, too."""
    go, stop = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        while not stop.is_set():
            sum(range(1000))

    other = threading.Thread(target=work)
    other.start()
    with Counting(SOFT) as counting:
        go.set()
        data = bytearray(8 << 20)  # touched for the first time
        for i in range(0, len(data), 4096):
            data[i] = 1
        for _ in range(200):
            sum(range(10000))
        stop.set()
        other.join()
    readings = counting.readings
    assert readings["cpu.task_ns"].value > 1e6
    assert readings["cpu.task_ns"].share == pytest.approx(1.0, abs=0.05)
    rows = {
        m.metric: m.value for m in metrics_of({k: {"value": v.value, "share": v.share} for k, v in readings.items()}, 2)
    }
    assert rows["cpu.task_ns"] == pytest.approx(readings["cpu.task_ns"].value / 2)


def test_events_that_are_not_there_are_missing() -> None:
    with Counting(EVENTS, refusing(errno.ENOENT)) as counting:
        pass
    assert counting.readings == {}
    assert metrics_of({}, 5) == []


def test_figures_of_a_launch_and_what_follows_from_them() -> None:
    readings = {
        "cpu.cycles": {"value": 4e9, "share": 1.0},
        "executed.instructions": {"value": 8e9, "share": 0.5},
        "cpu.task_ns": {"value": 2e9, "share": 1.0},
    }
    rows = {m.metric: m for m in metrics_of(readings, 4)}
    assert rows["cpu.cycles"].value == 1e9
    assert rows["executed.per_cycle"].value == 2
    assert rows["clock.hz"].value == 2e9
    assert "counted 50% of the time and scaled" in rows["executed.instructions"].provenance.detail
    assert rows["executed.per_cycle"].provenance.kind == "derived"
