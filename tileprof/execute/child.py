"""A child process of its own process group that answers requests with JSON lines, under a time limit.

It can be paused, so that another child has the processors to itself; paused time does not count.  Whatever happens to the
child, nothing of its group outlives :meth:`Child.kill`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tileprof
from tileprof.errors import TileprofError

_TICK_S = 0.1  # how soon a pause or the end of one is noticed
_READ_BYTES = 1 << 16
_EXIT_S = 2.0
_TAIL_LINES = 12


class ChildDied(TileprofError):
    """The child ended before it answered; ``description`` says how, ``tail`` is the end of what it printed."""

    def __init__(self, description: str, tail: str) -> None:
        super().__init__(description)
        self.description = description
        self.tail = tail


class ChildTimeout(TileprofError):
    """The child did not answer in time."""


_MARK = "TILEPROF_CHILD"
"""Environment variable that tells the descendants of a child from all other processes, whatever sessions they open."""


def environment(mark: str = "") -> dict[str, str]:
    """The environment of children: this process's, with this very tileprof on their module path, wherever they start.

    ``mark`` is what :func:`end_descendants` finds them by.
    """
    root = str(Path(tileprof.__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH", "")
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": f"{root}{os.pathsep}{known}" if known else root,
        **({_MARK: mark} if mark else {}),
    }


def new_mark() -> str:
    """A mark that no other child has."""
    return f"{os.getpid()}-{uuid.uuid4().hex}"


def end_descendants(mark: str) -> None:
    """Kill every process that carries ``mark``: also those that left the group for a session of their own."""
    wanted = f"{_MARK}={mark}".encode()
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError, ValueError):  # another user's, or gone meanwhile
            if wanted in place.read_bytes().split(b"\0"):
                os.kill(int(place.parent.name), signal.SIGKILL)


def tail_of(log: Path, start: int = 0) -> str:
    """The last lines of a log behind its byte ``start``; "" where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_TAIL_LINES:])


class Child:
    """``python -m MODULE`` with a conversation over its standard streams.

    What it prints goes to the file ``log``.  One thread may converse; any may pause, resume and kill.
    """

    def __init__(self, module: str, log: Path) -> None:
        self.module = module
        self._log = log
        self._log_start = log.stat().st_size if log.exists() else 0
        self._buffer = b""
        self._lock = threading.Lock()
        self._paused_at: float | None = None
        self._paused_total = 0.0
        self._killed = False
        self._mark = new_mark()
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(self._mark),
                start_new_session=True,
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("pipes were asked for and not made")
        self._input, self._output = stdin, stdout

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one request; a child that has died is noticed by :meth:`receive`."""
        with suppress(OSError, ValueError):
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()

    def receive(self, limit_s: float) -> dict[str, Any]:
        """The next message.  Raises ChildTimeout after ``limit_s`` seconds without a pause, ChildDied at the child's end."""
        end = self.active_seconds() + limit_s
        while b"\n" not in self._buffer:
            if self.active_seconds() > end:
                raise ChildTimeout(f"no answer for {limit_s:g} s")
            ready, _, _ = select.select([self._output], [], [], _TICK_S)
            if not ready:
                continue
            data = os.read(self._output.fileno(), _READ_BYTES)
            if not data:
                raise ChildDied(self._describe_end(), self.tail())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def _describe_end(self) -> str:
        """How the process ended, in words."""
        try:
            status = self._process.wait(timeout=_EXIT_S)
        except subprocess.TimeoutExpired:
            return "closed its output"
        if status >= 0:
            return f"ended with status {status}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        meaning = {
            "SIGSEGV": "an access outside its memory",
            "SIGBUS": "an access outside its memory",
            "SIGILL": "an instruction that this processor does not have",
            "SIGFPE": "an arithmetic exception such as an integer division by zero",
            "SIGABRT": "it aborted itself",
            "SIGKILL": "it was killed, perhaps since memory ran out",
        }.get(name)
        return f"was ended by {name}" + (f": {meaning}" if meaning else "")

    def tail(self) -> str:
        """The last lines that the child printed."""
        return tail_of(self._log, self._log_start)

    def active_seconds(self) -> float:
        """A clock that stands still while the child is paused."""
        with self._lock:
            now = time.monotonic() if self._paused_at is None else self._paused_at
            return now - self._paused_total

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def pause(self) -> None:
        """Stop the whole group until :meth:`resume`."""
        with self._lock:
            if self._paused_at is None and not self._killed:
                self._paused_at = time.monotonic()
                self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused group go on."""
        with self._lock:
            if self._paused_at is not None:
                self._paused_total += time.monotonic() - self._paused_at
                self._paused_at = None
                self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End the child: ask it by closing its input, kill it when it does not listen, and free the pipes.

        Only for the thread that converses.
        """
        self.resume()
        with suppress(OSError):
            self._input.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_EXIT_S)
        self.discard()

    def discard(self) -> None:
        """Kill the child and free the pipes.  Only for the thread that converses."""
        self.kill()
        for pipe in (self._input, self._output):
            with suppress(OSError):
                pipe.close()

    def kill(self) -> None:
        """Kill the whole group at once, children of the child included; any thread may."""
        with self._lock:
            self._killed = True
            # also when the child itself has ended: the group lives as long as one member of it
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            end_descendants(self._mark)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_EXIT_S)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit status (below zero: of a signal), and the time from before its start to its end."""

    status: int
    wall_ns: int


def run_command(
    command: Sequence[str],
    limit_s: float,
    log: Path,
    stop: threading.Event,
    cwd: Path | None = None,
    journal: Path | None = None,
) -> int | None:
    """The exit status of :func:`timed_command`."""
    ended = timed_command(command, limit_s, log, stop, cwd, journal)
    return None if ended is None else ended.status


def timed_command(
    command: Sequence[str],
    limit_s: float,
    log: Path,
    stop: threading.Event,
    cwd: Path | None = None,
    journal: Path | None = None,
) -> Ended | None:
    """Run a command in a process group of its own, output to ``log``; how it ended, or None once ``stop`` is set.

    It starts in the folder ``cwd``.  Raises ChildTimeout after ``limit_s`` seconds, or, where it writes its progress to the file
    ``journal``, so long after its last line there; OSError where it cannot be started.  Nothing of the group is left running in
    any case; clearing up is not in the time.
    """
    mark = new_mark()
    with log.open("ab") as output:
        surroundings = environment(mark)
        begin = time.perf_counter_ns()
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=surroundings,
            cwd=cwd,
            start_new_session=True,
        )
        end, written = time.monotonic() + limit_s, 0
        handle = _process_handle(process.pid)
        try:
            while not stop.is_set():
                if _ends_within(process, handle, _TICK_S):
                    wall_ns = time.perf_counter_ns() - begin
                    return Ended(process.wait(), wall_ns)
                if journal is not None and (size := _size(journal)) != written:
                    end, written = time.monotonic() + limit_s, size
                if time.monotonic() > end:
                    raise ChildTimeout(f"no end after {limit_s:g} s")
            return None
        finally:
            if handle is not None:
                os.close(handle)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            end_descendants(mark)
            process.wait()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _process_handle(pid: int) -> int | None:
    """A descriptor that is readable once the process has ended; None where the kernel or a sandbox has no such thing."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _ends_within(process: subprocess.Popen[bytes], handle: int | None, seconds: float) -> bool:
    """Whether the process ends in that time.  Without a handle it is looked at in steps of up to 50 ms."""
    if handle is not None:
        return bool(select.select([handle], [], [], seconds)[0])
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
        return True
    return False
