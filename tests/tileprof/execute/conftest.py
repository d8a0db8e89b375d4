"""A folder with kernels, and a function that runs a workload in it through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sweep_folder import LIMIT_S, Folder, Outcome, make_folder

from tileprof.execute.child import environment


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return make_folder(tmp_path)


BAD_BINARIES = {"crash": "*(volatile int *)0 = 0;", "hang": "for (volatile int i = 0;; i++) ;"}

MAKE_BUNDLES = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import kernels
kernel = kernels.scale.for_target("cpu")(256)
for name in {names!r}:
    kernel.save(Path({folder!r}) / f"{{name}}.bundle")
"""


def make_bad_bundles(folder: Folder) -> None:
    """Bundles crash.bundle and hang.bundle: a good kernel's, with machine code that crashes or never ends."""
    code = MAKE_BUNDLES.format(folder=str(folder.path), names=[*BAD_BINARIES, "good"])
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True, timeout=LIMIT_S)
    for name, body in BAD_BINARIES.items():
        bundle = folder.path / f"{name}.bundle"
        record = json.loads((bundle / "kernel.json").read_text())
        source = folder.path / f"{name}.c"
        source.write_text(f"void {record['symbol']}(float *a, float *b, int first, int last) {{ {body} }}\n")
        flags = ["-shared", "-O1", "-nostdlib", "-fno-sanitize=undefined", "-fstack-size-section"]
        binary = str(bundle / record["binary"]["file"])
        command = [sys.executable, "-m", "ziglang", "cc", *flags, "-o", binary, str(source)]
        subprocess.run(command, check=True, timeout=LIMIT_S)
        del record["digests"]  # the file is no longer what the compiler wrote, and is meant to be used
        (bundle / "kernel.json").write_text(json.dumps(record))


FAILURES = """\
version: 1
name: failures
defaults: {timeout: 6s, timing: {warmup: 1, samples: 3}}
targets:
  cpu: {target: cpu}
  a100: {target: "cuda:sm_80"}
kernels:
  - {name: first, source: "kernels.py:scale", shapes: [{N: 1000}], reference: "kernels.py:double"}
  - {name: wrong, source: "kernels.py:scale", shapes: [{N: 100}], reference: "kernels.py:triple"}
  - {name: bad_reference, source: "kernels.py:scale", shapes: [{N: 100}], reference: "kernels.py:broken_reference", targets: [cpu]}
  - {name: short_reference, source: "kernels.py:scale", shapes: [{N: 100}], reference: "kernels.py:wrong_shape", targets: [cpu]}
  - {name: bad_input, source: "kernels.py:opaque", shapes: [{N: 100}], inputs: {Q: ones}, targets: [cpu]}
  - {name: bad_file, source: "raises.py:kernel", shapes: [{M: 1}], targets: [cpu]}
  - {name: misfit, source: "kernels.py:misfit", shapes: [{M: 64}], targets: [cpu]}
  - {name: rank, source: "kernels.py:rank", shapes: [{M: 64}], targets: [cpu]}
  - {name: hungry, source: "kernels.py:hungry", shapes: [{M: 64}], tiles: {block: [256]}, targets: [a100]}
  - {name: raising, source: "kernels.py:raising", shapes: [{M: 1}], targets: [cpu]}
  - {name: exiting, source: "kernels.py:exiting", shapes: [{M: 1}], targets: [cpu]}
  - {name: aborting, source: "kernels.py:aborting", shapes: [{M: 1}], targets: [cpu]}
  - {name: hanging, source: "kernels.py:hanging", shapes: [{M: 1}], targets: [cpu]}
  - {name: crash, bundle: crash.bundle, targets: [cpu]}
  - {name: hang, bundle: hang.bundle, targets: [cpu]}
  - {name: misplaced, bundle: good.bundle, targets: [a100]}
  - {name: foreign, callable: "kernels.py:foreign_raising", args: {N: 3}, targets: [cpu]}
  - {name: dying, command: ["python3", "-c", "import sys; print('no such device'); sys.exit({N})"], args: {N: 7}, targets: [cpu]}
  - {name: absent, command: ["./no-such-program"], targets: [cpu]}
  - {name: endless, command: ["sleep", "100"], targets: [cpu]}
  - {name: program, command: ["./a.out"], targets: [a100]}
  - {name: last, source: "kernels.py:scale", shapes: [{N: 1001}], reference: "kernels.py:double", inputs: {A: "kernels.py:ramp"}}
"""


@pytest.fixture(scope="session")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One sweep over everything that can go wrong with a case, between two cases that are fine."""
    folder = make_folder(tmp_path_factory.mktemp("failures"))
    (folder.path / "raises.py").write_text("x = 1 / 0\n\n\ndef kernel(M):\n    pass\n")
    make_bad_bundles(folder)
    return folder.run(FAILURES)


GOOD = """\
version: 1
name: small
defaults: {timeout: 60s, timing: {warmup: 1, samples: 4}, seed: 3}
targets:
  cpu: {target: cpu}
  a100: {target: "cuda:sm_80"}
  mi300x: {target: "hip:gfx942", profiler: rocprofv3}
kernels:
  - name: scale
    source: kernels.py:scale
    args: {dtype: [float32, float16]}
    shapes: [{N: 1000}]
    reference: kernels.py:double
"""


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A small run in which all is well."""
    return make_folder(tmp_path_factory.mktemp("good")).run(GOOD)


FOREIGN = f"""\
version: 1
name: foreign
defaults: {{timing: {{warmup: 2, samples: 5, rounds: 2}}, timeout: 60s}}
targets:
  cpu: {{target: cpu}}
  a100: {{target: "cuda:sm_80"}}
kernels:
  - {{name: prepared, callable: "kernels.py:foreign_work", shapes: [{{N: 100}}]}}
  - {{name: direct, callable: "kernels.py:foreign_direct", shapes: [{{N: 1000}}], targets: [cpu]}}
  - {{name: elsewhere, callable: "plain.py:work", python: {sys.executable}, shapes: [{{N: 5}}], targets: [cpu]}}
  - {{name: nowhere, callable: "plain.py:work", python: no-such-python, shapes: [{{N: 5}}], targets: [cpu]}}
  - {{name: program, command: ["python3", "-c", "print({{N}} + 1)"], shapes: [{{N: 41}}], targets: [cpu]}}
"""


@pytest.fixture(scope="session")
def foreign_run(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A run of cases that are not our kernels."""
    folder = make_folder(tmp_path_factory.mktemp("foreign"))
    (folder.path / "plain.py").write_text("def work(N):\n    return lambda: sum(range(N))\n")
    return folder.run(FOREIGN)
