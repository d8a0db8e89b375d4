"""The processes that compile: whatever becomes of one is its result, and the others go on."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilelang_min.errors import LanguageError
from tilelang_min.tune import compiling
from tilelang_min.tune.compiling import Send, run_all


def done(send: Send) -> None:
    send("value", os.getpid())


def refused(send: Send) -> None:
    raise LanguageError("no such thing", remedy="leave it out")


def failed(send: Send) -> None:
    raise ZeroDivisionError("by zero")


def crashed(send: Send) -> None:
    send("value", 7)
    os.write(2, b"LLVM ERROR: out of registers\n")
    os.abort()


def left(send: Send) -> None:
    os._exit(3)


def hangs(send: Send) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    send("child", child.pid)
    time.sleep(60)


def test_every_end_is_a_result() -> None:
    jobs: list[Callable[[Send], None]] = [hangs, done, refused, failed, crashed, left, done]
    start = time.monotonic()
    found = {each.number: each for each in run_all(jobs, timeout=2.0, workers=3)}
    assert time.monotonic() - start < 20
    assert [found[number].status for number in range(7)] == [
        *("timed out", "done", "refused", "failed", "crashed", "crashed", "done")
    ]
    assert found[0].reason == "it took longer than 2 s"
    assert found[1].sent["value"] not in (os.getpid(), found[6].sent["value"])
    assert "no such thing" in found[2].reason
    assert "leave it out" in found[2].reason
    assert "ZeroDivisionError: by zero" in found[3].reason
    assert f"{__file__}:" in found[3].reason
    assert found[4].reason == "the compiling process died of SIGABRT: LLVM ERROR: out of registers"
    assert found[4].sent == {"value": 7}  # what was said before counts
    assert "status 3" in found[5].reason
    ends = time.monotonic() + 10
    while lives(found[0].sent["child"]) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not lives(found[0].sent["child"])  # what a process has started ends with it


def lives(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nothing_is_left_when_the_search_is_given_up() -> None:
    found = run_all([done, hangs], timeout=60.0, workers=2)
    assert next(found).status == "done"
    start = time.monotonic()
    found.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 10


def test_large_answers_come_whole() -> None:
    data = os.urandom(5_000_000)
    (found,) = run_all([lambda send: send("value", data)], timeout=30.0)
    assert found.sent["value"] == data


def test_without_processes_jobs_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.sys, "platform", "darwin")
    found: list[Any] = list(run_all([done, refused], timeout=1.0))
    assert found[0].sent["value"] == os.getpid()
    assert found[1].status == "refused"


def test_a_worker_of_a_pool_has_no_processes_of_its_own() -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_run_in_a_worker) == (True, "done")


def _run_in_a_worker() -> tuple[bool, str]:
    (found,) = run_all([done], timeout=5.0)
    return found.sent["value"] == os.getpid(), found.status


@pytest.mark.parametrize("which", ["compiling", "measuring"])
def test_nothing_outlives_its_limit_where_the_parent_is_killed(which: str) -> None:
    started = subprocess.run([sys.executable, "-c", _KILLED, which], capture_output=True, text=True, timeout=60)
    assert started.returncode == -9, started.stderr
    child = int(started.stdout)
    ends = time.monotonic() + 30.0
    while _runs(child):
        assert time.monotonic() < ends, "it still runs"
        time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


_KILLED = """
import os, signal, sys, threading, time
from tilelang_min.tune import compiling, device
compiling.SPARE_S = device.SPARE_S = 0.2

def hang(send):
    os.write(1, str(os.getpid()).encode())
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)

if sys.argv[1] == "compiling":
    list(compiling.run_all([hang], timeout=1.0))
else:
    device._CHILD = (
        "import os, sys, time; from tilelang_min.tune import bench\\n"
        "bench.Bench.open = lambda *_, **__: (os.kill(os.getppid(), 9), time.sleep(600))\\n"
        "bench.main()"
    )
    measuring = device.Device()
    measuring._start()
    print(measuring.process.pid, flush=True)
    measuring.open("none", {}, 1.0)
"""
