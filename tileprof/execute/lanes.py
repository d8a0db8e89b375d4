"""Two kinds of lane through which cases go: compiling, and launching.  A lane is a thread with a child process.

A child that crashes or exceeds the time limit costs its case and nothing else: the lane starts a new one for the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tileprof.errors import StoreError
from tileprof.execute.child import Child, ChildDied, ChildTimeout
from tileprof.execute.results import CaseBuilder
from tileprof.store.tables import NO_SPACE_REMEDY

START_LIMIT_S = 180.0
"""Longest start of a child, imports included; a cold disk makes TVM's import slow."""


class Stopped(Exception):
    """The sweep is being ended; the case at hand is dropped."""


class Lane:
    """A child process that works on one case at a time, restarted when it is lost.

    ``who`` names it in messages, ``on_stage`` hears of (case id, stage).
    """

    def __init__(
        self, module: str, who: str, log: Path, stop: threading.Event, on_stage: Callable[[str, str], None]
    ) -> None:
        self.module = module
        self.who = who
        self.log = log
        self.stop = stop
        self.on_stage = on_stage
        self._child: Child | None = None
        self._lock = threading.Lock()

    def _ready_child(self) -> Child:
        """The running child, or a new one that has said it is ready."""
        if self._child is not None:
            return self._child
        with self._lock:
            if self.stop.is_set():
                raise Stopped
            self._child = Child(self.module, self.log)
        self._child.receive(START_LIMIT_S)
        return self._child

    def ask(
        self,
        request: Mapping[str, Any],
        builder: CaseBuilder,
        limit_s: float,
        heard: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """Send a request and pass every answer to ``heard``, until done, failed, crashed or out of time.

        Failures are noted in ``builder``.  Raises Stopped when the sweep is ending, StoreError when the child could not
        write.
        """
        try:
            child = self._ready_child()
            builder.begin()
            child.send(request)
            end = child.active_seconds() + limit_s
            while True:
                message = child.receive(max(0.0, end - child.active_seconds()))
                kind = message["type"]
                if kind == "no_space":
                    raise StoreError(
                        f"the run directory cannot be written: {message['reason']}", remedy=NO_SPACE_REMEDY
                    )
                if kind == "stage":
                    self.on_stage(builder.case.id, message["stage"])
                builder.take(message)
                heard(message)
                if kind in ("done", "failed"):
                    return
        except ChildTimeout:
            self.drop()
            self._check_stop()
            builder.fail("timeout", f"{builder.stage} did not end within {limit_s:g} s")
        except ChildDied as error:
            self.drop()
            self._check_stop()
            builder.fail("crashed", f"while {builder.stage}, the {self.who} {error.description}")
            if error.tail:
                builder.note(f"last output of the {self.who}:\n{error.tail}")
        finally:
            builder.end()

    def _check_stop(self) -> None:
        if self.stop.is_set():
            raise Stopped

    def drop(self) -> None:
        """Kill the child; the next request starts a new one."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.discard()

    def close(self) -> None:
        """End the child in good order."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.close()

    def kill(self) -> None:
        """Kill the child from another thread; the lane's own thread notices."""
        with self._lock:
            if self._child is not None:
                self._child.kill()

    def pause(self) -> None:
        """Stop the child until :meth:`resume`."""
        with self._lock:
            if self._child is not None:
                self._child.pause()

    def resume(self) -> None:
        """Let it go on."""
        with self._lock, suppress(OSError):
            if self._child is not None:
                self._child.resume()
