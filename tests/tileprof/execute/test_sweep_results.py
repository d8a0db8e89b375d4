"""A run in which all is well: statuses, figures with their origin, files; then resuming and interrupting."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tileprof.execute.child import environment
from tileprof.launcher.jobs import run_case
from tileprof.report.files import RENDERERS
from tileprof.store.records import FAILED_STATUSES, CaseResult


def figure(case: CaseResult, metric: str, kind: str, **where: Any) -> float | None:
    """The value of a metric of the whole kernel, or of what ``where`` says."""
    place = {"operation": None, "buffer": None, "access": None, **where}
    found = [
        m.value
        for m in case.metrics
        if m.metric == metric and m.provenance.kind == kind and all(getattr(m, k) == v for k, v in place.items())
    ]
    assert len(found) <= 1
    return found[0] if found else None


def test_every_case_ends_as_it_should(good: Any) -> None:
    assert good.status == 0, good.err
    assert [(case.id, case.status) for case in good.run.cases] == [
        ("scale[float32,N=1000]@cpu", "ok"),
        ("scale[float32,N=1000]@a100", "not_run"),
        ("scale[float32,N=1000]@mi300x", "not_run"),
        ("scale[float16,N=1000]@cpu", "ok"),
        ("scale[float16,N=1000]@a100", "not_run"),
        ("scale[float16,N=1000]@mi300x", "not_run"),
    ]
    assert good.err.splitlines()[0] == "6 cases: 2 on cpu, 2 on a100, 2 on mi300x"
    assert good.out.splitlines()[-1] == "run/index.html"


def test_what_was_not_measured_is_listed(good: Any) -> None:
    found = {(entry.target, entry.what.split(":")[0]): entry for entry in good.run.unavailable}
    assert set(found) == {("cpu", "counters"), ("a100", "launches"), ("mi300x", "launches")}
    assert found["a100", "launches"].why == "no NVIDIA GPU on this machine"
    assert good.case("scale[float32,N=1000]@a100").reason == "no NVIDIA GPU on this machine"


@pytest.mark.parametrize("target", ["a100", "mi300x"])
def test_gpu_cases_are_simulated_and_their_blocks_checked(good: Any, target: str) -> None:
    case = good.case(f"scale[float32,N=1000]@{target}")
    assert case.timing is None
    assert case.check.ok
    # 1000 elements in blocks of 64: the last block is ragged, so it is a class of its own
    assert case.check.scope == "simulated blocks (0, 0, 0), (15, 0, 0) of 16: 104 elements"
    # each element is read and written once, 4 bytes
    assert figure(case, "global.bytes", "simulated") == 2 * 4000
    if target == "a100":
        assert figure(case, "global.sectors", "simulated") == 2 * 4000 / 32
    (store,) = [o["id"] for o in case.operations if o["kind"] == "parallel"]
    assert figure(case, "global.bytes", "simulated", operation=store, buffer="B", access="store") == 4000
    assert figure(case, "executed.instructions", "simulated") > 0
    assert figure(case, "registers.per_thread", "static") == case.metadata["registers_per_thread"]
    assert figure(case, "time.ns", "measured") is None
    assert figure(case, "shared.transactions", "simulated") is None  # none were made: missing, not zero


def test_cpu_cases_are_timed_and_checked_as_a_whole(good: Any) -> None:
    case = good.case("scale[float16,N=1000]@cpu")
    assert case.check.scope == "all"
    assert case.check.max_abs_error == 0  # doubling is exact
    assert len(case.timing.samples_ns) == 4
    assert case.timing.flush_l2
    assert figure(case, "time.ns", "measured") == case.timing.median_ns > 0
    assert {(c.target, c.provenance.kind) for c in good.run.ceilings} == {
        ("cpu", "measured"), ("cuda:sm_80", "datasheet"), ("hip:gfx942", "datasheet"),
    }  # fmt: skip


def test_files_of_the_run(good: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(__file__).parents[3] / "tileprof/report/result.schema.json").read_text())
    record = json.loads((good.directory / "result.json").read_text())
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(record)) == []
    record["provenances"][0]["kind"] = "guessed"
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(record))
    with (good.directory / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(case.metrics) for case in good.run.cases)
    case = good.case("scale[float32,N=1000]@a100")
    (row,) = [r for r in rows if r["case"] == case.id and r["metric"] == "global.bytes" and not r["operation"]]
    assert (float(row["value"]), row["unit"], row["provenance"]) == (8000.0, "bytes", "simulated")
    assert case.id in (good.directory / "index.html").read_text()
    bundle = good.directory / case.bundle
    assert json.loads((bundle / "kernel.json").read_text())["analyses"]["simulated"]
    for name in RENDERERS:
        assert str(Path.home()) + "/" not in (good.directory / name).read_text()
        assert str(good.directory.parent) not in (good.directory / name).read_text()


def test_rendering_again_gives_the_same_files(good: Any, folder: Any) -> None:
    before = {name: (good.directory / name).read_text() for name in RENDERERS}
    again = folder.tileprof("report", str(good.directory))
    assert again.status == 0
    assert {name: (good.directory / name).read_text() for name in RENDERERS} == before


SLOW = """\
version: 1
name: slow
defaults: {timeout: 100s, timing: {warmup: 1, samples: 3}}
targets: {cpu: {target: cpu}}
kernels:
  - {name: quick, source: "kernels.py:scale", shapes: [{N: 100}, {N: 200}], reference: "kernels.py:double"}
  - {name: stuck, source: "kernels.py:hanging", shapes: [{M: 1}]}
  - {name: late, source: "kernels.py:scale", shapes: [{N: 300}], reference: "kernels.py:double"}
"""


def processes_in(folder: Path) -> list[str]:
    """Command lines of processes whose working directory is below ``folder``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "cwd").resolve()).startswith(str(folder)):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_finished_cases_and_resume_goes_on(folder: Any, number: signal.Signals) -> None:
    folder.write(SLOW)
    with folder.start("run", "w.yaml", "-o", "run") as process:
        done = 0
        for line in process.stderr:
            done += line.startswith("[")
            if done == 2:
                break
        time.sleep(0.3)
        process.send_signal(number)
        start = time.monotonic()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert time.monotonic() - start < 10
    assert "2 of 4 cases are kept in run; continue with --resume" in err
    assert "Traceback" not in err
    assert processes_in(folder.path) == []
    refused = folder.tileprof("run", "w.yaml", "-o", "run")
    assert (refused.status, "--resume" in refused.err) == (2, True)
    if number == signal.SIGTERM:
        return  # one resumed run is enough
    text = SLOW.replace("kernels.py:hanging", "kernels.py:scale").replace("{M: 1}", "{N: 7}").replace("100s", "99s")
    resumed = folder.run(text, "--resume")
    assert resumed.status == 0
    assert "2 of 4 cases are kept from before" in resumed.err
    assert [case.id for case in resumed.run.cases] == [
        "quick[N=100]@cpu", "quick[N=200]@cpu", "stuck[N=7]@cpu", "late[N=300]@cpu",
    ]  # fmt: skip
    again = folder.run(text, "--resume")
    assert (again.status, "holds a finished run" in again.err) == (2, True)


def test_a_disk_that_fills_up_ends_the_run_with_a_remedy(folder: Any) -> None:
    """A limit on the size of files stands for the disk: writing beyond it fails in the same calls."""
    axis = ", ".join(f"{{N: {n}}}" for n in range(64, 64 + 40))
    text = SLOW.replace("[{N: 100}, {N: 200}]", f"[{axis}]")
    folder.write(text)
    limit = 320 << 10
    previous = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, previous[1]))
    try:
        process = folder.start("run", "w.yaml", "-o", "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, previous)
    with process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "help: free some space and continue with --resume" in err
    assert "Traceback" not in err
    assert processes_in(folder.path) == []
    finished = folder.tileprof("report", "run")
    assert finished.status == 0
    cases = finished.run.cases
    assert 0 < len(cases) < 40
    assert not [case for case in cases if case.status in FAILED_STATUSES]


@pytest.mark.parametrize(("executor", "target"), [("local:2", "mi300x"), ("inline", "cpu")])
def test_other_executors_give_the_same_results(good: Any, folder: Any, executor: str, target: str) -> None:
    text = (good.directory.parent / "w.yaml").read_text()
    other = folder.run(text, "--executor", executor, "--target", "a100", "--target", target)
    assert other.status == 0
    assert len(other.run.cases) == 4
    for case in other.run.cases:
        same = good.case(case.id)
        assert case.hash == same.hash
        simulated = [m for m in same.metrics if m.provenance.kind == "simulated"]
        assert [m for m in case.metrics if m.provenance.kind == "simulated"] == simulated


NO_TVM = """\
import sys

class NoTvm:
    def find_spec(self, name, path=None, target=None):
        if name == "tvm":
            raise ModuleNotFoundError("there is no TVM here", name=name)

sys.meta_path.insert(0, NoTvm())
"""
"""Hides TVM wherever it is installed, also beside this project."""


def test_a_host_without_the_compiler_launches_bundles(good: Any, folder: Any) -> None:
    hidden = folder.path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(NO_TVM)
    folder.variables["PYTHONPATH"] = os.pathsep.join([str(hidden), environment()["PYTHONPATH"]])
    folder.variables["TILELANG_CACHE_DIR"] = str(folder.path / "empty")  # a cached kernel would need no compiler
    case = good.case("scale[float32,N=1000]@cpu")
    text = f"""\
version: 1
name: host
defaults: {{timing: {{warmup: 1, samples: 3}}}}
targets: {{cpu: {{target: cpu}}}}
kernels:
  - {{name: made, bundle: "{good.directory / case.bundle}", reference: "kernels.py:double"}}
  - {{name: source, source: "kernels.py:scale", shapes: [{{N: 77}}]}}
"""
    outcome = folder.run(text, "--force")
    assert outcome.status == 4
    made, source = outcome.run.cases
    assert (made.status, made.check.scope, len(made.timing.samples_ns)) == ("ok", "all", 3)
    assert "simulated when the bundle was made: TVM is not installed here" in made.notes
    assert figure(made, "global.bytes", "simulated") == figure(case, "global.bytes", "simulated")
    assert (source.status, "there is no TVM here" in source.reason) == ("compile_error", True)


@pytest.mark.parametrize(
    ("graph", "method", "launches"),
    [
        # one untimed launch, two to see how, one to estimate, two of warm-up and four samples
        ("off", "events around single launches", 10),
        # one untimed launch; two to see how long, to warm up and to capture; twice more to warm up and to capture
        ("on", "CUDA graphs of 20 launches each", 1 + 21 + 20 + 22),
    ],
)
def test_a_gpu_case_is_launched_through_the_driver(
    good: Any, monkeypatch: pytest.MonkeyPatch, graph: str, method: str, launches: int
) -> None:
    """Against a driver that only writes down what it is asked: arrays go to the device, launches are timed with events."""
    file = Path(__file__).parents[2] / "tilelang_min" / "runtime" / "test_cuda_launch.py"
    spec = importlib.util.spec_from_file_location("fake_cuda_driver", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    driver = module.FakeDriver()
    monkeypatch.setattr(module.cuda, "_driver", lambda: driver)
    monkeypatch.setattr(module.cuda, "native", driver.native)
    case = good.case("scale[float32,N=1000]@a100")
    messages: list[dict[str, Any]] = []
    policy = {"warmup": 2, "samples": 4, "rounds": 1, "flush_l2": False, "graph": graph, "budget_s": 10.0}
    job = {
        "bundle": str(good.directory / case.bundle), "inputs": {"A": "ones"}, "seed": 0, "reference": None,
        "rtol": 0.0, "atol": 0.0, "timing": policy,
    }  # fmt: skip
    run_case(job, lambda kind, **values: messages.append({"type": kind, **values}))
    assert [message["type"] for message in messages] == ["stage", "stage", "timed"]
    timed = messages[-1]
    assert (len(timed["samples_ns"]), timed["warmup"], timed["flushed"]) == (4, 3, False)
    assert timed["method"] == method
    assert len(driver.named("launch")) == launches
    assert driver.named("cuMemcpyHtoD")
