"""Compiles many configurations at once, each in a process of its own with a time limit.

A process is a fork of this one, in which the compiler is loaded: that takes milliseconds, and a factory that is a closure,
stands in a notebook or in ``__main__`` needs no name by which another interpreter would find it.  Whatever becomes of a
process, refusal, error, crash or endless loop, is the result of its configuration.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from tilelang_min.errors import TileLangError
from tilelang_min.tune.ends import SPARE_S, death, end_after

Send = Callable[[str, Any], None]


@dataclass
class Finished:
    """What one job sent, by name, and how it ended: ``status`` is ``done``, ``refused``, ``failed``, ``crashed`` or ``timed
    out``.
    """

    number: int
    sent: dict[str, Any] = field(default_factory=dict)
    status: str = "done"
    reason: str = ""
    seconds: float = 0.0


@dataclass
class _Running:
    finished: Finished
    process: BaseProcess
    connection: Connection
    errors: Any
    started: float


def processors() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    jobs: Sequence[Callable[[Send], None]], *, timeout: float, workers: int | None = None
) -> Iterator[Finished]:
    """Runs all jobs, at most ``workers`` at a time (default: one a processor), and yields each as it ends.

    A job is called with a function that sends named values (anything that can be pickled) to this process; what was sent before
    the end, whatever that is, is kept.  ``timeout``: seconds for each.
    """
    if not _can_fork():
        for number, job in enumerate(jobs):
            yield _here(number, job)
        return
    waiting = list(enumerate(jobs))[::-1]
    running: list[_Running] = []
    most = max(1, workers or processors())
    try:
        while waiting or running:
            while waiting and len(running) < most:
                running.append(_start(*waiting.pop(), timeout))
            ends = min(each.started for each in running) + timeout
            wait([each.connection for each in running], max(0.0, ends - time.monotonic()))
            for each in list(running):
                if _ended(each, timeout):
                    running.remove(each)
                    yield each.finished
    finally:
        for each in running:
            _kill(each)


def _can_fork() -> bool:
    """Libraries of macOS do not survive a fork; a worker of a pool (``multiprocessing`` says) may have no children."""
    return hasattr(os, "fork") and sys.platform != "darwin" and not multiprocessing.current_process().daemon


def _here(number: int, job: Callable[[Send], None]) -> Finished:
    """A job in this process, where there is no other way: without a limit, and a crash is one of this process."""
    finished, start = Finished(number), time.monotonic()
    finished.status, finished.reason = _outcome(job, finished.sent.__setitem__)
    finished.seconds = time.monotonic() - start
    return finished


def _outcome(job: Callable[[Send], None], send: Send) -> tuple[str, str]:
    """Runs a job; how it ended and why."""
    try:
        job(send)
    except TileLangError as error:
        return "refused", str(error)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        return "failed", f"{type(error).__name__}: {error}{place}"
    return "done", ""


def _start(number: int, job: Callable[[Send], None], timeout: float) -> _Running:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
    process = context.Process(target=_work, args=(job, theirs, errors.fileno(), timeout), daemon=True)
    with warnings.catch_warnings():
        # Python 3.12 warns of forks while threads run.  Locks of ours are made anew in the child (os.register_at_fork); one of
        # somebody else's costs this configuration its time limit.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    return _Running(Finished(number), process, ours, errors, time.monotonic())


def _work(job: Callable[[Send], None], connection: Connection, errors: int, timeout: float) -> None:
    """The child: a process group of its own, so that compilers that it starts end with it; stderr to a file."""
    os.setpgid(0, 0)
    end_after(timeout + SPARE_S)
    os.dup2(errors, 2)

    def send(name: str, value: Any) -> None:
        connection.send((name, value))

    status, reason = _outcome(job, send)
    connection.send(("", (status, reason)))
    connection.close()


def _ended(each: _Running, timeout: float) -> bool:
    """Takes what a process has sent; whether it has ended, or was ended."""
    finished = each.finished
    finished.seconds = time.monotonic() - each.started
    try:
        while each.connection.poll():
            name, value = each.connection.recv()
            if not name:
                finished.status, finished.reason = value
                _close(each)
                return True
            finished.sent[name] = value
    except (EOFError, OSError):  # it died without a word
        each.process.join(5.0)
        finished.status = "crashed"
        finished.reason = death(each.process.exitcode, "the compiling process", each.errors)
        _close(each)
        return True
    if finished.seconds < timeout:
        return False
    finished.status, finished.reason = "timed out", f"it took longer than {timeout:g} s"
    _kill(each)
    return True


def _close(each: _Running) -> None:
    """Ends a process that has said its last word; what it wrote to stderr goes where ours does."""
    each.process.join(1.0)
    if each.process.exitcode is None:
        _kill(each)
        return
    each.connection.close()
    with each.errors as stream, suppress(OSError, ValueError):
        stream.seek(0)
        if (text := stream.read().decode(errors="replace")) and each.finished.status != "crashed":
            sys.stderr.write(text)


def _kill(each: _Running) -> None:
    """Ends a process and all that it started."""
    with suppress(OSError):
        if each.process.pid:
            os.killpg(each.process.pid, signal.SIGKILL)
    with suppress(OSError):
        if each.process.pid and each.process.exitcode is None:
            os.kill(each.process.pid, signal.SIGKILL)
    each.process.join(5.0)
    each.connection.close()
    each.errors.close()
