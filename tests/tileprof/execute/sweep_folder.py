"""A folder with kernels, and running workloads in it through the command line, for the end-to-end tests of sweeps."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tileprof.execute.child import environment
from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Run

LIMIT_S = 240


@dataclass(frozen=True)
class Outcome:
    """What a run of the command line left."""

    status: int
    out: str
    err: str
    directory: Path

    @property
    def run(self) -> Run:
        return read_run(self.directory / "run.sqlite")

    def case(self, name: str) -> CaseResult:
        (found,) = [case for case in self.run.cases if case.id == name]
        return found


@dataclass(frozen=True)
class Folder:
    """A folder that holds kernels.py."""

    path: Path
    variables: dict[str, str] = field(default_factory=dict)  # added to the environment

    def write(self, text: str, name: str = "w.yaml") -> Path:
        file = self.path / name
        file.write_text(text)
        return file

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The command line as a process, which hears SIGINT also where the tests were started in the background."""
        command = [sys.executable, "-m", "tileprof", *arguments]
        env = {**environment(), "TILELANG_CACHE_DIR": str(self.path / "cache"), **self.variables}
        return subprocess.Popen(
            command,
            cwd=self.path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def tileprof(self, *arguments: str, directory: str = "run") -> Outcome:
        """Run the command line to its end."""
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=LIMIT_S)
        return Outcome(process.returncode, out, err, self.path / directory)

    def run(self, text: str, *arguments: str, directory: str = "run") -> Outcome:
        """``tileprof run`` of a workload text."""
        file = self.write(text)
        return self.tileprof("run", file.name, "-o", directory, *arguments, directory=directory)


def make_folder(path: Path) -> Folder:
    shutil.copy(Path(__file__).with_name("sweep_kernels.py"), path / "kernels.py")
    return Folder(path)
