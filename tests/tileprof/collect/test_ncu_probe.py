"""A real counter read: whatever ncu does, one outcome, one sentence, and what to do about it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tileprof.cli import doctor
from tileprof.cli.doctor import LIMITED, MISSING, OK
from tileprof.collect import ncu, ncu_probe, probe_kernel
from tileprof.collect.ncu_probe import CounterRead, read_counter
from tileprof.collect.tool import Availability
from tileprof.errors import ProfilerUnavailable
from tileprof.execute import preflight, runner
from tileprof.execute.gpu_lock import first_device, held
from tileprof.execute.runner import RunOptions, prepare
from tileprof.plan.machine import Gpu, Machine

STAND_IN = """#!/bin/sh
[ "$1" = --version ] && { echo "Version VERSION (build 1)"; exit 0; }
printf '%s\\n' "$@" > ARGUMENTS
while [ $# -gt 0 ]; do case "$1" in --log-file) log=$2;; esac; shift; done
BEHAVIOUR
"""

TABLE = """cat > "$log" <<'END'
==PROF== Connected to process 7 (/usr/bin/python3.11)
==PROF== Profiling "tileprof_probe" - 0: 0%....50%....100% - 1 pass
==PROF== Disconnected from process 7
"ID","Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device","CC","smsp__warps_launched.sum"
"","","","","","","","","","warp"
"0","7","python3.11","127.0.0.1","tileprof_probe","(128, 1, 1)","(64, 1, 1)","0","9.0","VALUE"
END"""

ROOT_IN_A_CONTAINER = 0x00000000A80425FB  # what docker leaves root without further arguments
CAP_SYS_ADMIN = 1 << 21

GPU = Machine(
    "cpu", "x86-64-v4", 16, 1 << 37, "Linux 6.1", "3.12.1", (Gpu("nvidia", "NVIDIA H200", "9.0", "580.1"),),
    {"cuda-bindings": "13.0"},
)  # fmt: skip


class Standing:
    """A machine's file tree with a stand-in for ncu."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def make(self, behaviour: str, version: str = "2025.3.1.0", driver: str = "580.159.04", caps: int = 0) -> None:
        for folder in ("opt/nvidia/nsight-compute/2025.3.1", "proc/driver/nvidia", "proc/self"):
            (self.root / folder).mkdir(parents=True)
        tool = self.root / "opt/nvidia/nsight-compute/2025.3.1/ncu"
        text = STAND_IN.replace("VERSION", version).replace("ARGUMENTS", str(self.root / "arguments"))
        tool.write_text(text.replace("BEHAVIOUR", behaviour))
        tool.chmod(0o755)
        said = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {driver}  Release Build\n"
        (self.root / "proc/driver/nvidia/version").write_text(said)
        (self.root / "proc/self/status").write_text(f"Name:\tpython\nCapEff:\t{caps:016x}\n")

    def read(self, limit_s: float = 20.0) -> tuple[Availability, CounterRead | None]:
        return read_counter({"PATH": ""}, self.root, limit_s)

    @property
    def arguments(self) -> list[str]:
        return (self.root / "arguments").read_text().splitlines()


@pytest.fixture
def standing(tmp_path: Path) -> Standing:
    return Standing(tmp_path)


def says(*lines: str, status: int = 1) -> str:
    """A stand-in that writes these lines into its log."""
    return "\n".join([*(f"printf '%s\\n' '{line}' >> \"$log\"" for line in lines), f"exit {status}"])


def test_a_counter_that_is_read(standing: Standing) -> None:
    standing.make(TABLE.replace("VALUE", "256"))
    tool, read = standing.read()
    assert read is not None
    assert (tool.usable, read.outcome, read.value) == (True, ncu_probe.READ, 256.0)
    assert read.text == "a counter was read: 256 warps launched, as there were"
    line = standing.arguments
    assert line[line.index("--metrics") + 1] == "smsp__warps_launched.sum"
    assert line[-1].endswith("probe_kernel.py")  # a real kernel and not /bin/true, of which nothing would be read


PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
    "target device 0. For instructions on enabling permissions and to get more information see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)
NO_KERNELS = "==WARNING== No kernels were profiled."


@pytest.mark.parametrize(
    ("behaviour", "outcome", "text", "remedy"),
    [
        (says(PERMISSION), ncu.DENIED, "no permission to read the GPU's counters: ERR_NVGPUCTRPERM",
         "options nvidia NVreg_RestrictProfilingToAdminUsers=0"),
        # some versions tell it on standard error, and end with status 0
        (f"echo '{PERMISSION}' >&2; exit 0", ncu.DENIED, "no permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        (says(NO_KERNELS, status=0), ncu_probe.NOTHING, "no kernels were profiled, though one was launched",
         "unset CUDA_INJECTION64_PATH and LD_PRELOAD; run it by hand to see all that it says: "),
        (says("==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) "
              "is concurrently collecting profiling data."), ncu.BUSY,
         "another profiler or monitor holds the GPU's counters: Profiling failed", "dcgmi profile --pause"),
        (says("==ERROR== cuptiSubscribe: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"), ncu.BUSY,
         "another profiler", "torch.profiler, Proton, nsys and ncu"),
        (says("==ERROR== Failed to initialize the profiler: LibraryNotLoaded"), ncu.HIDDEN,
         "this machine hides the GPU's counters", "direct access to the GPU"),
        (says("==ERROR== Failed to create or open lock file /tmp/nsight-compute-lock."), ncu.LOCKED,
         "its lock belongs to another user", "set TMPDIR"),
        (says("==ERROR== An error was reported by the driver:",
              "==ERROR== Cuda driver is not compatible with Nsight Compute.",
              "==ERROR== The application returned an error code (11)."), ncu.DRIVER,
         "this ncu does not fit the driver: Cuda driver is not compatible", "the driver's CUDA release"),
        (says("==ERROR== failed to connect to the CUDA driver (stub libcuda)"), ncu.DRIVER, "stub libcuda", "newer driver"),
        (says("==ERROR== Failed to find metric smsp__warps_launched.sum"), ncu.NO_COUNTER,
         "ncu has no value for smsp__warps_launched.sum on this GPU", "install an ncu that knows this GPU"),
        (TABLE.replace("VALUE", "n/a"), ncu.NO_COUNTER, "on this GPU: n/a", "install an ncu"),
        (TABLE.replace("VALUE", "nan"), ncu.NO_COUNTER, "on this GPU: n/a", "install an ncu"),
        (TABLE.replace("VALUE", "0"), ncu_probe.IMPLAUSIBLE, "smsp__warps_launched.sum says 0 of a kernel of 256 warps",
         "MIG, vGPU"),
        (TABLE.replace("VALUE", "1,048,576"), ncu_probe.IMPLAUSIBLE, "says 1.04858e+06", "other programs use this GPU"),
        ("echo \"the probe's kernel did not run: cuInit fails: CUDA_ERROR_NO_DEVICE\"; "
         + says(NO_KERNELS, "==ERROR== The application returned an error code (3)."), ncu_probe.NO_LAUNCH,
         "the probe's kernel did not run: cuInit fails: CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES"),
        (says("==ERROR== Unknown Error on device 0."), ncu_probe.FAILED, "status 1: Unknown Error on device 0.",
         "run it by hand to see all that it says: "),
        ("echo 'ncu: error while loading shared libraries: libfoo.so' >&2; exit 127", ncu_probe.FAILED,
         "status 127: ncu: error while loading shared libraries", "run it by hand"),
        ("exit 0", ncu_probe.FAILED, "ended with status 0: no message", "run it by hand"),
        ("kill -9 $$", ncu_probe.FAILED, "ended with status -9", "run it by hand"),
    ],
)  # fmt: skip
def test_every_other_outcome_says_what_to_do(
    standing: Standing, behaviour: str, outcome: str, text: str, remedy: str
) -> None:
    standing.make(behaviour, caps=CAP_SYS_ADMIN)
    tool, read = standing.read()
    assert read is not None
    assert (read.outcome, tool.usable) == (outcome, False)
    assert text in read.text
    assert remedy in read.remedy
    assert (tool.why, tool.remedy) == (read.text, read.remedy)


def test_a_container_without_the_right_is_told_how_to_get_it(standing: Standing) -> None:
    standing.make(says(PERMISSION), caps=ROOT_IN_A_CONTAINER)
    (standing.root / ".dockerenv").touch()
    _, read = standing.read()
    assert read is not None
    assert read.outcome == ncu_probe.CONTAINER
    assert "docker run --cap-add=SYS_ADMIN" in read.remedy
    assert "securityContext" in read.remedy


def test_a_container_that_has_the_right_is_denied_by_the_driver(standing: Standing) -> None:
    standing.make(says(PERMISSION), caps=CAP_SYS_ADMIN)
    (standing.root / "proc/self/cgroup").write_text("0::/kubepods/burstable/pod1\n")
    _, read = standing.read()
    assert read is not None
    assert read.outcome == ncu.DENIED


def test_one_that_hangs_is_ended_with_everything_that_it_started(standing: Standing) -> None:
    standing.make("sleep 600 & echo $! > PID; sleep 600".replace("PID", str(standing.root / "pid")))
    start = time.monotonic()
    tool, read = standing.read(limit_s=0.5)
    assert read is not None
    assert time.monotonic() - start < 10
    assert (read.outcome, tool.usable) == (ncu_probe.HUNG, False)
    assert read.text == "ncu did not end within 0.5 s"
    assert "whether another ncu runs" in read.remedy
    child = Path("/proc") / (standing.root / "pid").read_text().strip() / "stat"
    end = time.monotonic() + 5
    while child.exists() and "Z" not in child.read_text().split() and time.monotonic() < end:
        time.sleep(0.02)
    assert not child.exists() or "Z" in child.read_text().split()


def test_who_else_may_hold_the_counters_is_named(standing: Standing) -> None:
    standing.make(says("==ERROR== Profiling failed because a driver resource was unavailable."))
    for number, name in ((41, "nv-hostengine"), (42, "bash"), (43, "nsys")):
        (standing.root / f"proc/{number}").mkdir()
        (standing.root / f"proc/{number}/comm").write_text(f"{name}\n")
    _, read = standing.read()
    assert read is not None
    assert read.text.endswith("running here: nsys (process 43), nv-hostengine (process 41)")


@pytest.mark.parametrize(
    ("version", "driver", "words"),
    [
        ("2025.3.1.0", "535.104.05", "ncu 2025.3.1 is of a CUDA release whose driver is 580, and here is 535.104.05"),
        ("2022.4.0.0", "580.159.04", "; ncu 2022.4.0, driver 580.159.04"),
    ],
)
def test_versions_that_do_not_fit_are_named(standing: Standing, version: str, driver: str, words: str) -> None:
    behaviour = says("==ERROR== Cuda driver is not compatible with Nsight Compute.")
    standing.make(behaviour, version=version, driver=driver)
    _, read = standing.read()
    assert read is not None
    assert words in read.text


def test_nothing_is_launched_without_ncu_or_a_driver(tmp_path: Path) -> None:
    tool, read = read_counter({"PATH": ""}, tmp_path)
    assert (tool.usable, tool.why, read) == (False, "not found", None)
    mine = tmp_path / "ncu"
    mine.write_text(f"#!/bin/sh\n[ $1 = --version ] || touch {tmp_path}/called\necho Version 2025.3.1\n")
    mine.chmod(0o755)
    tool, read = read_counter({"PATH": "", "TILEPROF_NCU": str(mine)}, tmp_path)
    assert (tool.usable, read) == (False, None)
    assert "no NVIDIA driver" in tool.why
    assert not (tmp_path / "called").exists()


def test_the_kernel_says_why_it_did_not_run() -> None:
    done = subprocess.run(
        [sys.executable, "-I", probe_kernel.__file__], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode == 0:  # there is a GPU, and it ran
        assert done.stdout == ""
        return
    assert done.returncode == 3
    assert done.stdout.startswith("the probe's kernel did not run: ")


@pytest.mark.parametrize(
    ("behaviour", "state", "words"),
    [
        (TABLE.replace("VALUE", "256"), OK, "2025.3.1, "),
        (says(PERMISSION), LIMITED, "counters per tile operation: no permission to read the GPU's counters"),
    ],
)
def test_doctor_tells_what_was_read(
    standing: Standing, monkeypatch: pytest.MonkeyPatch, behaviour: str, state: str, words: str
) -> None:
    monkeypatch.delenv("TILEPROF_NCU", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    standing.make(behaviour)
    found = doctor.counters("counters per tile operation", standing.root)
    assert found.state == state
    assert words in found.detail
    if state == OK:
        assert "a counter was read: 256 warps launched, as there were, in " in found.detail
    else:
        assert "NVreg_RestrictProfilingToAdminUsers=0" in found.remedy


def test_doctor_without_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEPROF_NCU", str(tmp_path / "none"))
    assert doctor.counters("counters", tmp_path).state == MISSING


def test_nothing_is_read_while_another_run_measures(
    standing: Standing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TILEPROF_NCU", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    standing.make(TABLE.replace("VALUE", "256"))
    heard: list[str] = []
    with held(first_device("nvidia"), threading.Event()):
        tool, read = preflight.read_counter(heard.append, longest_s=0.3, root=standing.root)
    assert (tool.usable, read) == (False, None)
    assert tool.why.startswith("not tried: the GPU was held by process")
    assert "another run measures on this GPU" in heard[0]
    assert not (standing.root / "arguments").exists()
    tool, read = preflight.read_counter(root=standing.root)
    assert (tool.usable, read is not None) == (True, True)


WORKLOAD = """\
version: 1
name: small
targets: {h200: {target: "cuda:sm_90a", profiler: PROFILER}, laptop: {target: cpu}}
kernels:
  - {name: k, source: "k.py:factory", shapes: [{N: 1}]}
"""


def test_a_run_reads_a_counter_first_and_goes_on_without_what_is_denied(
    standing: Standing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    standing.make(says(PERMISSION))
    asked: list[Any] = []

    def preflight(say: Any) -> Availability:
        asked.append(say)
        return standing.read()[0]

    monkeypatch.setattr(runner, "ncu_preflight", preflight)
    (tmp_path / "k.py").write_text("def factory(N):\n    raise AssertionError\n")
    workload = tmp_path / "w.yaml"
    workload.write_text(WORKLOAD.replace("PROFILER", "auto"))
    prepared = prepare(RunOptions(workload), GPU)
    plan = prepared.plan.targets["h200"]
    assert (plan.launches, plan.timed, plan.counters) == (True, True, ())
    (lost,) = [one for one in prepared.plan.unavailable if one.target == "h200"]
    assert lost.what == "counters"
    assert lost.why.startswith("ncu: no permission to read the GPU's counters")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in lost.remedy
    assert len(asked) == 1
    prepare(RunOptions(workload, targets=("laptop",)), GPU)
    prepare(RunOptions(workload, profilers=("timer",)), GPU)
    assert len(asked) == 1  # nothing is read where nothing would be counted
    workload.write_text(WORKLOAD.replace("PROFILER", "ncu"))
    with pytest.raises(ProfilerUnavailable, match="no permission") as caught:
        prepare(RunOptions(workload), GPU)
    assert "go on without it: --profiler auto" in (caught.value.remedy or "")
