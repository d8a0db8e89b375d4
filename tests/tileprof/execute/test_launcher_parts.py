"""Inputs, comparison and timing of the launcher, without a kernel."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
from tileprof.execute.child import environment
from tileprof.launcher import jobs
from tileprof.launcher.compare import compare, default_tolerance
from tileprof.launcher.inputs import InputCache, make_arguments, make_array, poison, written
from tileprof.launcher.jobs import SEQUENCE_FAILED
from tileprof.launcher.timing import CacheFlusher, time_launches, time_rounds


def test_inputs_are_the_same_for_a_seed_and_differ_by_name() -> None:
    a = make_array("normal", "A", (64, 64), "float16", 3)
    assert np.array_equal(a, make_array("normal", "A", (64, 64), "float16", 3))
    assert not np.array_equal(a, make_array("normal", "B", (64, 64), "float16", 3))
    assert not np.array_equal(a, make_array("normal", "A", (64, 64), "float16", 4))
    assert abs(float(a.astype(np.float64).mean())) < 0.06
    assert abs(float(a.astype(np.float64).std()) - 1) < 0.05


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint32", "bool"])
def test_kinds_of_input(dtype: str) -> None:
    shape = (3, 700)
    for kind in ("normal", "uniform", "zeros", "ones", "arange"):
        array = make_array(kind, "A", shape, dtype, 0)
        assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert make_array("zeros", "A", shape, dtype, 0).astype(float).sum() == 0
    assert make_array("ones", "A", shape, dtype, 0).astype(float).sum() == 2100
    uniform = make_array("uniform", "A", shape, dtype, 0).astype(float)
    low, high = {"f": (0, 1), "i": (-4, 4), "u": (0, 4), "b": (0, 1)}[np.dtype(dtype).kind]
    assert uniform.min() >= low
    assert uniform.max() <= high
    arange = make_array("arange", "A", shape, "float16", 0).astype(float).ravel()
    assert arange[:3].tolist() == [0, 1, 2]
    assert arange[1023:1026].tolist() == [1023, 0, 1]


def test_what_was_not_written_shows() -> None:
    for dtype in ("float16", "float32", "float64", "int32"):
        before = poison((4, 8), dtype)
        after = before.copy()
        after[1, 2:5] = 0
        after[2, 0] = np.nan if dtype.startswith("float") else 7  # a NaN that a kernel computes has other bits
        mask = written(before, after)
        assert sorted(zip(*np.nonzero(mask))) == [(1, 2), (1, 3), (1, 4), (2, 0)]
        assert not dtype.startswith("float") or np.isnan(before).all()


def test_arguments_of_a_kernel() -> None:
    parameters = [
        {"name": "A", "dtype": "float32", "shape": [2, 3], "access": "in"},
        {"name": "B", "dtype": "float32", "shape": [2, 3], "access": "inout"},
        {"name": "C", "dtype": "float32", "shape": [2], "access": "out"},
        {"name": "D", "dtype": "float32", "shape": [2], "access": "out"},
    ]
    given = {"A": np.arange(6, dtype=np.float32).reshape(2, 3)}
    made = make_arguments(parameters, {"B": "ones", "D": "zeros"}, 0, given)
    assert list(made) == ["A", "B", "C", "D"]
    assert made["A"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made["A"] is not given["A"]
    assert made["B"].sum() == 6
    assert np.isnan(made["C"]).all()
    assert made["D"].tolist() == [0, 0]


def test_comparison_follows_the_tolerance() -> None:
    reference = {"C": np.array([[100.0, 1.0], [0.0, -2.0]])}
    right = {"C": np.array([[100.9, 1.0], [0.05, -2.0]], np.float32)}
    outcome = compare(right, reference, rtol=1e-2, atol=0.1)
    assert (outcome.ok, outcome.compared) == (True, 4)
    assert outcome.max_abs_error == pytest.approx(0.9, rel=1e-5)
    wrong = compare(right, reference, rtol=1e-3, atol=0.01)
    assert not wrong.ok
    assert wrong.worst == "C[0, 0] is 100.9, the reference 100"
    # relative to the reference where it is large, to its root mean square where it is small: 0.9 / 100
    assert outcome.max_rel_error == pytest.approx(0.009, rel=1e-4)


def test_not_a_number_and_infinity_are_errors_unless_meant() -> None:
    reference = {"C": np.array([1.0, np.inf, np.nan, 2.0])}
    assert compare({"C": np.array([1.0, np.inf, np.nan, 2.0])}, reference, 0, 0).ok
    outcome = compare({"C": np.array([1.0, np.inf, np.nan, np.nan])}, reference, 1, 1)
    assert not outcome.ok
    assert math.isinf(outcome.max_abs_error)
    assert outcome.worst == "C[3] is nan, the reference 2"
    finite = compare({"C": np.array([1.0, 5.0, np.nan, 2.0])}, reference, 1, 1)
    assert not finite.ok
    assert math.isinf(finite.max_rel_error)


def test_only_what_the_mask_has_is_compared() -> None:
    reference = {"C": np.zeros((2, 2))}
    result = {"C": np.array([[0.0, 9.0], [9.0, 1.0]])}
    mask = {"C": np.array([[True, False], [False, True]])}
    outcome = compare(result, reference, 0, 0.5, mask)
    assert (outcome.ok, outcome.compared, outcome.max_abs_error) == (False, 2, 1.0)
    assert outcome.worst == "C[1, 1] is 1, the reference 0"
    nothing = compare(result, reference, 0, 0, {"C": np.zeros((2, 2), bool)})
    assert (nothing.ok, nothing.compared) == (True, 0)


def test_a_reference_of_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\), the kernel's \(2,\)"):
        compare({"C": np.zeros(2)}, {"C": np.zeros(3)}, 0, 0)


def test_the_narrowest_type_sets_the_default_tolerance() -> None:
    assert default_tolerance(["float16", "float32"]) == default_tolerance(["float16"])
    assert default_tolerance(["float32"])[0] < default_tolerance(["float16"])[0]
    assert default_tolerance(["int32"]) == (0.0, 0.0)


def test_samples_and_budget() -> None:
    calls: list[str] = []

    def measure() -> float:
        calls.append("launch")
        return 1e6

    every = time_launches(measure, warmup=2, samples=4, rounds=2, budget_s=60, flush=lambda: calls.append("flush"))
    assert calls == ["launch"] * 2 + ["flush", "launch"] * 4 + ["launch"] * 2 + ["flush", "launch"] * 4
    assert (every.samples_ns, every.warmup, every.flushed, every.wanted) == ((1e6,) * 8, 4, True, 8)
    # a budget of 10 launches: 5 of warm-up, then samples until it is spent
    limited = time_launches(measure, warmup=100, samples=100, rounds=1, budget_s=0.0095)
    assert (limited.warmup, len(limited.samples_ns), limited.wanted) == (5, 5, 100)
    slow = time_launches(measure, warmup=1, samples=100, rounds=1, budget_s=1e-9)
    assert (slow.warmup, len(slow.samples_ns)) == (1, 3)


def test_rounds_of_enqueued_launches_and_their_budget() -> None:
    asked: list[tuple[int, int]] = []

    def measure(warmup: int, launches: int) -> list[float]:
        asked.append((warmup, launches))
        return [1e6] * launches

    every = time_rounds(measure, warmup=5, samples=50, rounds=2, budget_s=60)
    assert asked == [(0, 1), (5, 50), (5, 50)]
    assert (len(every.samples_ns), every.warmup, every.flushed, every.wanted) == (100, 11, True, 100)
    asked.clear()
    limited = time_rounds(measure, warmup=5, samples=50, rounds=2, budget_s=0.008)
    assert asked == [(0, 1), (4, 4), (4, 4)]
    assert (len(limited.samples_ns), limited.wanted) == (8, 100)
    assert len(time_rounds(measure, warmup=0, samples=50, rounds=1, budget_s=1e-9).samples_ns) == 3


def test_flushing_writes_more_than_the_cache() -> None:
    flusher = CacheFlusher(1 << 20)
    assert flusher.bytes == 2 << 20
    flusher()
    flusher()
    assert int(flusher._buffer.min()) == int(flusher._buffer.max()) == 2


def test_the_launcher_imports_no_compiler(tmp_path: Path) -> None:
    code = "import tileprof.launcher.__main__, sys; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "tilelang_min" in loaded
    assert not loaded & {
        "tvm",
        "tvm_ffi",
        "torch",
        "pandas",
        "matplotlib",
        "pydantic",
        "jinja2",
        "rich",
        "click",
        "yaml",
    }


def test_inputs_of_variants_are_made_once() -> None:
    parameters = [
        {"name": name, "dtype": "float32", "shape": [64, 64], "access": access}
        for name, access in (("A", "in"), ("B", "inout"), ("C", "out"))
    ]
    cache = InputCache(most_bytes=3 * 64 * 64 * 4)
    first, second = (make_arguments(parameters, {}, 0, {}, cache) for _ in range(2))
    assert first["A"] is second["A"]
    assert first["B"] is not second["B"], "a kernel writes to it"
    plain = make_arguments(parameters, {}, 0, {})
    assert all(np.array_equal(first[name], plain[name], equal_nan=True) for name in "ABC")
    for seed in range(1, 5):
        assert make_arguments(parameters, {}, seed, {}, cache)["A"] is not first["A"]
    again = make_arguments(parameters, {}, 0, {}, cache)["A"]
    assert again is not first["A"], "the oldest was let go"
    assert np.array_equal(again, first["A"])


RECORDED = """
import json, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import kernels
bundles = []
for size in (64, 96):
    kernels.scale.for_target("cpu")(size).save(Path({folder!r}) / f"{{size}}.tlk")
    bundles.append(dict(bundle=f"{folder}/{{size}}.tlk", inputs=dict(A="arange"), seed=0, reference=None))
bundles.insert(1, dict(bundle={folder!r} + "/none.tlk", inputs=dict(), seed=0, reference=None))
job = dict(cases=bundles, journal={folder!r} + "/journal")
Path({folder!r}, "job.json").write_text(json.dumps(job))
"""


def test_a_profiled_process_launches_each_case_and_keeps_a_journal(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("sweep_kernels.py"), tmp_path / "kernels.py")
    code = RECORDED.format(folder=str(tmp_path))
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True, timeout=120)
    command = [sys.executable, "-m", "tileprof.launcher", str(tmp_path / "job.json")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [(line["case"], line["state"]) for line in lines] == [
        (0, "begun"), (0, "recorded"), (1, "begun"), (1, "failed"), (2, "begun"), (2, "recorded"),
    ]  # fmt: skip
    assert "none.tlk" in lines[3]["reason"]

    job = json.loads((tmp_path / "job.json").read_text())
    named = [{**one, "launches": 1, "name": f"case {number}"} for number, one in enumerate(job["cases"])]
    (tmp_path / "job.json").write_text(json.dumps({"sequence": named, "journal": str(tmp_path / "sequence")}))
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.count(SEQUENCE_FAILED)) == (0, 1)
    assert [json.loads(line)["case"] for line in (tmp_path / "sequence").read_text().splitlines()] == [0, 1, 2]


def test_a_baseline_or_clock_reads_that_cannot_be_launched_cost_the_case_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused() -> None:
        raise tilelang.errors.LaunchError("too many threads")

    class Runner:
        def __init__(self, job: dict[str, Any]) -> None:
            if job["bundle"] == "gone":
                raise FileNotFoundError(2, "No such file or directory", "gone")
            self.parameters, self.kind, self.launch = [], "cpu", refused

    monkeypatch.setattr(jobs, "CaseRunner", Runner)
    told: list[str] = []

    def send(kind: str, **message: Any) -> None:
        if kind == "note":
            told.append(message["text"])

    against = {"bundle": "old", "base": "monday", "base_hash": "0"}
    jobs._interleave(Runner({"bundle": "new"}), {"against": against, "timing": {}}, send)  # type: ignore[arg-type]
    jobs._clock(Runner({"bundle": "new"}), {"instrumented": {"operations": "gone"}}, send)  # type: ignore[arg-type]
    assert "not compared with monday: its kernel cannot be launched: " in told[0]
    assert "too many threads" in told[0]
    assert told[1] == "no cycles: [Errno 2] No such file or directory: 'gone'"
    assert len(told) == 2
