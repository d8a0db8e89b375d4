"""kill -9 of tileprof at random moments, then --resume: nothing finished is lost or run twice, and nothing stays behind."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tileprof.errors import StoreError
from tileprof.store.reader import read_run

COUNTED = """
from pathlib import Path

import numpy as np


def reference(A, N):
    with open(Path(__file__).with_name("log.txt"), "a") as log:
        log.write(f"scale[N={N}]@cpu\\n")
    return {"B": A.astype(np.float64) * 2}
"""


@dataclass(frozen=True)
class Sweep:
    """A workload whose cases write their ids to log.txt, and the choices of targets with which it may be resumed."""

    text: str
    cases: int
    kills: int
    choices: tuple[tuple[str, ...], ...] = ((),)


COMPILED = Sweep(
    f"""\
version: 1
name: killed
defaults: {{timing: {{warmup: 1, samples: 3, flush_l2: false}}, timeout: 60s}}
targets: {{cpu: {{target: cpu}}}}
kernels:
  - name: scale
    source: kernels.py:scale
    reference: counted.py:reference
    shapes: [{", ".join(f"{{N: {64 + n}}}" for n in range(12))}]
""",
    cases=12,
    kills=3,
)
COMMANDS = Sweep(
    """\
version: 1
name: killed
defaults: {timing: {warmup: 0, samples: 1}, timeout: 60s}
targets: {one: {target: cpu, profiler: none}, two: {target: cpu, profiler: none}, a100: {target: "cuda:sm_80"}}
kernels:
"""
    + "".join(
        f"  - {{name: {target}, targets: [{target}, a100], args: {{N: [1, 2, 3, 4, 5, 6, 7, 8]}},\n"
        f"     command: [sh, -c, 'echo \"{target}[N={{N}}]@{target}\" >> log.txt; sleep 0.05']}}\n"
        for target in ("one", "two")
    ),
    cases=32,
    kills=5,
    choices=((), ("one",), ("two",), ("two", "a100")),
)


def finished(folder: Path) -> dict[str, tuple[str, float]]:
    """Id, hash and seconds of the cases in the store, which may not exist yet.  A case that ran again took other seconds."""
    try:
        return {case.id: (case.hash, case.seconds) for case in read_run(folder / "run" / "run.sqlite").cases}
    except StoreError:
        return {}


def descendants(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "cwd").resolve()).startswith(str(folder)):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def ran(folder: Path) -> list[str]:
    """Ids of the cases that have run, as often as they did."""
    log = folder / "log.txt"
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize("sweep", [COMPILED, COMMANDS], ids=["compiled", "commands"])
def test_nothing_finished_is_lost_or_run_twice(folder: Any, sweep: Sweep) -> None:
    (folder.path / "counted.py").write_text(COUNTED)
    folder.write(sweep.text)
    if sweep is COMPILED:  # so that the compiler's cache is full and runs are quick
        folder.tileprof("run", "w.yaml", "-o", "warm")
        (folder.path / "log.txt").unlink()
    chance = random.Random(int(os.environ.get("TILEPROF_TEST_SEED", "1")))
    kept: dict[str, tuple[str, float]] = {}
    for _ in range(sweep.kills):
        before = len(ran(folder.path))
        resume = ["--resume"] if (folder.path / "run").exists() else []
        chosen = [word for target in chance.choice(sweep.choices) for word in ("--target", target)]
        with folder.start("run", "w.yaml", "-o", "run", *resume, *chosen) as process:
            for line in process.stderr:
                if re.match(r"\[\d+/\d+\]", line):
                    break  # at least one more case than before: the test comes to an end
            time.sleep(chance.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
        end = time.monotonic() + 10
        while descendants(folder.path) and time.monotonic() < end:
            time.sleep(0.05)
        assert descendants(folder.path) == []
        now = finished(folder.path)
        assert kept.items() <= now.items()  # nothing was lost, whatever was asked for
        assert not set(ran(folder.path)[before:]) & set(kept)  # and nothing that was finished ran again
        kept = now
        if len(now) == sweep.cases:
            break
    assert kept
    before = len(ran(folder.path))
    resumed = folder.tileprof("run", "w.yaml", "-o", "run", "--resume")
    assert resumed.status == 0 or "holds a finished run" in resumed.err
    now = finished(folder.path)
    assert (len(now), kept.items() <= now.items()) == (sweep.cases, True)
    assert {case.status for case in resumed.run.cases} <= {"ok", "not_run"}
    assert resumed.run.finished is not None
    assert not set(ran(folder.path)[before:]) & set(kept)
    assert not list((folder.path / "run").glob("**/*.partial*"))
