"""The parent's side of the process that runs kernels (:mod:`tilelang_min.tune.bench`): asks it, with a time limit, and starts
another one when it dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Self

from tilelang_min.tune.ends import SPARE_S, death

_ROOT = str(Path(__file__).resolve().parent.parent.parent)
_CHILD = f"import sys; sys.path.insert(0, {_ROOT!r}); from tilelang_min.tune.bench import main; main()"


class Trouble(Exception):
    """A kernel that could not be run or timed: ``outcome`` is ``failed``, ``crashed`` or ``timed out``."""

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


class Device:
    """A process with kernels in it.  One that dies takes no result with it: the next question starts another.

    ``ordinal``: the GPU to run them on; None for the first, and on a CPU.
    """

    def __init__(self, ordinal: int | None = None) -> None:
        self.ordinal = ordinal
        self.process: subprocess.Popen[bytes] | None = None
        self.errors: Any = None
        self.opened: dict[str, dict[str, Any]] = {}
        self.alive: set[str] = set()
        self.rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def open(self, bundle: str, question: dict[str, Any], timeout: float) -> float:
        """Run a kernel once; the nanoseconds that took.  Raises Trouble."""
        self.opened[bundle] = question
        answer = self._ask({"do": "open", "bundle": bundle, "ordinal": self.ordinal, **question}, timeout)
        self.alive.add(bundle)
        return float(answer["ns"])

    def time(self, bundle: str, warmup: int, rep: int, timeout: float) -> dict[str, Any]:
        """Samples of a kernel that was opened, in nanoseconds.  Raises Trouble."""
        if bundle not in self.alive:  # in a process that has died
            quiet = {**self.opened[bundle], "outputs": [None] * len(self.opened[bundle]["arguments"])}
            self._ask({"do": "open", "bundle": bundle, "ordinal": self.ordinal, **quiet}, timeout)
            self.alive.add(bundle)
        return self._ask({"do": "time", "bundle": bundle, "warmup": warmup, "rep": rep}, timeout)

    def _ask(self, question: dict[str, Any], timeout: float) -> dict[str, Any]:
        if self.process is None:
            self._start()
        process = self.process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({**question, "limit": timeout + SPARE_S}).encode() + b"\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._line(timeout))
        except TimeoutError:
            self._end()
            raise Trouble("timed out", f"running it took longer than {timeout:g} s") from None
        except (OSError, EOFError):
            with suppress(subprocess.TimeoutExpired):
                process.wait(5.0)
            reason = death(process.returncode, "the process that ran it", self.errors)
            self._end()
            raise Trouble("crashed", reason) from None
        if "error" in answer:
            # After an illegal access a GPU's context answers nothing but that error: the next kernel gets a new process.
            self._end()
            raise Trouble("failed", answer["error"])
        return answer

    def _start(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,
        )
        self.rest = b""

    def _line(self, timeout: float) -> bytes:
        """The next line of the answers.  EOFError where there will be none, TimeoutError where it takes too long."""
        assert self.process is not None
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        ends = time.monotonic() + timeout
        while b"\n" not in self.rest:
            if not wait([descriptor], max(0.0, ends - time.monotonic())):  # of any number, unlike select
                raise TimeoutError
            part = os.read(descriptor, 1 << 16)
            if not part:
                raise EOFError
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def _end(self) -> None:
        process, self.process = self.process, None
        self.alive.clear()
        if process is None:
            return
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, self.errors):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
