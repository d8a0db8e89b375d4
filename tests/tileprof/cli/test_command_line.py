"""The command line: what is wrong is said without a traceback, with the nearest word, and with the documented status."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tileprof.cli.main as main_module
from tileprof.cli import doctor
from tileprof.cli.doctor import OK, Finding, abilities, examine
from tileprof.cli.main import main
from tileprof.collect.tool import Availability
from tileprof.errors import MeasurementInvalid, StoreError
from tileprof.execute.runner import exit_status, parse_executor
from tileprof.plan.machine import Gpu, Machine
from tileprof.store.records import STATUSES

Call = Callable[..., tuple[int, str, str]]

WORKLOAD = """\
version: 1
name: small
targets: {laptop: {target: cpu}, a100: {target: "cuda:sm_80"}}
kernels:
  - {name: k, source: "k.py:factory", shapes: [{N: [1, 2, 3]}], tiles: {block: [1, 2]}}
"""


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    (tmp_path / "k.py").write_text("def factory(N, block):\n    raise AssertionError\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err + captured.out
        return status, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rum"], "No such command 'rum'. Did you mean 'run'?"),
        (["frobnicate"], "Commands are run, report, check, compare, import, conflicts, doctor, calibrate, schema."),
        (["compare", "a", "b"], "there is no run in a"),
        (["run"], "Missing argument 'WORKLOAD'"),
        (["run", "w.yaml", "--exekutor", "inline"], "Did you mean '--executor'?"),
        (["run", "none.yaml"], "there is no workload file none.yaml"),
        (["run", "v.yaml"], "did you mean w.yaml?"),
        (["run", "w.yaml", "--target", "lapto"], "unknown target 'lapto'; did you mean 'laptop'?"),
        (["run", "w.yaml", "--profiler", "timr"], "unknown profiler 'timr'; did you mean 'timer'?"),
        (
            ["run", "w.yaml", "--profiler", "rocprofv3"],
            "--profiler rocprofv3 measures the AMD GPU, and the targets are",
        ),
        (["run", "w.yaml", "--executor", "dask:tcp://x:1"], "--executor takes inline, local:N"),
        (["run", "w.yaml", "--executor", "local:0"], "--executor takes inline, local:N"),
        (["run", "w.yaml", "--against", "x"], "--against: there is no x"),
        (["run", "w.yaml", "--resume", "--force"], "--resume and --force exclude each other"),
        (["run", "w.yaml", "-o", "w.yaml/run"], "cannot write to w.yaml/run"),
        (["run", "w.yaml", "--resume", "-o", "new"], "there is no run to resume in new"),
        (["report", "."], "there is no run in ."),
        (["schema", "resul"], "'resul' is not one of 'workload', 'result'"),
    ],
)
def test_wrong_usage_has_status_2_and_a_way_out(call: Call, arguments: list[str], message: str) -> None:
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert message in err


def test_without_arguments_there_is_help(call: Call) -> None:
    status, _, err = call()
    assert status == 2
    for verb in ("run", "report", "conflicts", "doctor", "schema"):
        assert re.search(rf"^  {verb} ", err, re.MULTILINE)
    status, out, _ = call("--version")
    assert (status, out.startswith("tileprof, version ")) == (0, True)


def test_a_dry_run_lists_the_cases_and_writes_nothing(call: Call, tmp_path: Path) -> None:
    status, out, err = call("run", "w.yaml", "--dry-run", "--target", "laptop")
    assert status == 0
    assert out.splitlines()[0] == "k[N=1,block=1]@laptop  compile, simulate, launch, timer"
    assert len(out.splitlines()) == 6
    assert err == "6 cases: 6 on laptop\n"
    status, out, _ = call("run", "w.yaml", "--dry-run", "--profiler", "none")
    assert "k[N=1,block=1]@laptop  compile, simulate, launch\n" in out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["k.py", "w.yaml"]


def test_many_cases_want_a_confirmation(call: Call, tmp_path: Path) -> None:
    axis = ", ".join(str(i) for i in range(1, 102))
    text = WORKLOAD.replace("[1, 2, 3]", f"[{axis}]").replace("[1, 2]", f"[{axis}]")
    (tmp_path / "w.yaml").write_text(text)
    status, _, err = call("run", "w.yaml", "--target", "laptop")
    assert status == 2
    assert "the workload has 10,201 cases, more than 10,000" in err
    assert "--yes" in err
    assert not (tmp_path / "runs").exists()
    status, out, _ = call("run", "w.yaml", "--target", "laptop", "--dry-run")
    assert (status, len(out.splitlines())) == (0, 10_201)


@pytest.mark.parametrize("which", ["workload", "result"])
def test_schemas_are_printed_as_committed(call: Call, which: str) -> None:
    status, out, _ = call("schema", which)
    folder = {"workload": "workload", "result": "report"}[which]
    committed = Path(main_module.__file__).parents[1] / folder / f"{which}.schema.json"
    assert status == 0
    assert out == committed.read_text(), f"run: tileprof schema {which} > {committed}"
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(json.loads(out))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreError("no", remedy="do"), 2),
        (MeasurementInvalid("noise"), 3),
        (KeyboardInterrupt(), 130),
        (RuntimeError("a bug"), 70),
    ],
)
def test_statuses_of_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, status: int
) -> None:
    def fail(**_: Any) -> None:
        raise error

    monkeypatch.setattr(main_module.cli, "main", fail)
    assert main([]) == status
    err = capsys.readouterr().err
    assert ("Traceback" in err) == (status == 70)  # only a fault of ours shows its insides
    if isinstance(error, StoreError):
        assert err == "error: no\n  help: do\n"


def test_the_smallest_status_that_applies() -> None:
    class Result:
        def __init__(self, status: str) -> None:
            self.status = status

    def status_of(*words: str) -> int:
        return exit_status([Result(word) for word in words])  # type: ignore[misc]

    assert status_of() == 0
    assert status_of("ok", "not_run") == 0
    assert status_of("ok", "invalid_measurement") == 3
    assert status_of("invalid_measurement", "crashed", "ok") == 4
    failed = {word for word in STATUSES if status_of(word) == 4}
    assert failed == {"compile_error", "unsupported", "incorrect", "crashed", "timeout", "lost"}


def test_executors() -> None:
    assert (parse_executor("inline").compilers, parse_executor("inline").overlapping) == (1, False)
    assert (parse_executor("local:3").compilers, parse_executor("local:3").overlapping) == (3, True)


def test_doctor_names_each_remedy(call: Call) -> None:
    status, out, _ = call("doctor", "--json")
    record = json.loads(out)
    assert status == 0
    for finding in record["findings"]:
        assert finding["state"] in ("ok", "missing", "limited")
        assert finding["state"] == "ok" or finding["remedy"], finding
    assert {"Python", "apache-tvm", "nvidia-cuda-nvrtc", "ziglang", "ncu", "nsys", "rocprofv3", "perf", "torch"} <= {
        finding["name"] for finding in record["findings"]
    }
    status, out, _ = call("doctor")
    assert "This machine can:" in out
    assert "compile and simulate for CPUs, NVIDIA and AMD GPUs" in out


def test_doctor_tells_a_profiler_that_is_here_from_one_that_may_not_count() -> None:
    found = doctor.profiler("AMD", "rocprofv3", Availability("rocprofv3", True, "/opt/rocprofv3", "1.1.0"), "counters")
    assert (found.state, found.detail) == (OK, "1.1.0, /opt/rocprofv3: counters")
    refused = Availability("rocprofv3", False, "/opt/rocprofv3", "1.1.0", "no AMD GPU here", "use a machine with one")
    found = doctor.profiler("AMD", "rocprofv3", refused, "counters")
    assert (found.state, found.detail) == (doctor.LIMITED, "counters: no AMD GPU here")
    assert found.remedy == "use a machine with one"
    absent = Availability("rocprofv3", False, why="not found", remedy="install it")
    assert doctor.profiler("AMD", "rocprofv3", absent, "counters").state == doctor.MISSING


def test_doctor_on_a_machine_with_a_gpu() -> None:
    gpu = Gpu("nvidia", "NVIDIA H200", "9.0", "580.1")
    found = examine(Machine("cpu", "x86-64-v4", 16, 1 << 37, "Linux 6.1", "3.12.1", (gpu,), {}))
    (entry,) = [f for f in found if (f.area, f.name) == ("NVIDIA", "GPU")]
    assert (entry.state, entry.detail) == (OK, "NVIDIA H200, compute capability 9.0, driver 580.1")
    good = [Finding("compiling", "apache-tvm", OK, ""), entry, Finding("NVIDIA", "cuda-bindings", OK, "")]
    assert abilities(good)[-1] == "run and time on the NVIDIA GPU, without counters"
    more = [*good, Finding("NVIDIA", "ncu", OK, ""), Finding("NVIDIA", "ncu-report", OK, "")]
    assert abilities(more)[-1] == "run and time on the NVIDIA GPU, with counters"
    broken = [Finding("compiling", "apache-tvm", "missing", "", "install it", required=True)]
    assert abilities(broken)[0].startswith("compile: something is missing")


def test_help_is_quick_and_light() -> None:
    code = "import sys; from tileprof.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert not loaded & {"tvm", "torch", "pandas", "matplotlib"}
