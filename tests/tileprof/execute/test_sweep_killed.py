"""kill -9 of tileprof at random moments, then --resume: nothing finished is lost or run twice, and nothing stays behind."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

from tileprof.errors import StoreError
from tileprof.store.reader import read_run

CASES = 12
COUNTED = """
from pathlib import Path

import numpy as np


def reference(A, N):
    with open(Path(__file__).with_name("log.txt"), "a") as log:
        log.write(f"{N}\\n")
    return {"B": A.astype(np.float64) * 2}
"""
WORKLOAD = f"""
version: 1
name: killed
defaults: {{timing: {{warmup: 1, samples: 3, flush_l2: false}}, timeout: 60s}}
targets: {{cpu: {{target: cpu}}}}
kernels:
  - name: scale
    source: kernels.py:scale
    reference: counted.py:reference
    shapes: [{", ".join(f"{{N: {64 + n}}}" for n in range(CASES))}]
"""


def finished(folder: Path) -> dict[str, str]:
    """Id and hash of the cases in the store, which may not exist yet."""
    try:
        return {case.id: case.hash for case in read_run(folder / "run" / "run.sqlite").cases}
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


def test_nothing_finished_is_lost_or_run_twice(folder: Any) -> None:
    (folder.path / "counted.py").write_text(COUNTED)
    folder.write(WORKLOAD)
    folder.tileprof(
        "run", "w.yaml", "-o", "warm", "--target", "cpu"
    )  # so that the compiler's cache is full and runs are quick
    log = folder.path / "log.txt"
    log.unlink()
    chance = random.Random(int(os.environ.get("TILEPROF_TEST_SEED", "1")))
    kills = 0
    kept: dict[str, str] = {}
    while kills < 4:
        resume = ["--resume"] if (folder.path / "run").exists() else []
        with folder.start("run", "w.yaml", "-o", "run", *resume) as process:
            for line in process.stderr:
                if line.startswith("[") and f"/{CASES}]" in line:
                    break  # at least one more case than before: the test comes to an end
            time.sleep(chance.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
        kills += 1
        end = time.monotonic() + 10
        while descendants(folder.path) and time.monotonic() < end:
            time.sleep(0.05)
        assert descendants(folder.path) == []
        now = finished(folder.path)
        assert kept.items() <= now.items()
        kept = now
        if len(now) == CASES:
            break
    assert kept
    before = log.read_text().split()
    resumed = folder.tileprof("run", "w.yaml", "-o", "run", "--resume")
    again = resumed.err if resumed.status == 2 else ""
    assert resumed.status == 0 or "holds a finished run" in again
    assert len(finished(folder.path)) == CASES
    assert {case.status for case in resumed.run.cases} == {"ok"}
    after = log.read_text().split()[len(before) :]
    assert not {f"scale[N={n}]@cpu" for n in after} & set(kept)  # what was finished did not run again
    assert not list((folder.path / "run").glob("**/*.partial*"))
