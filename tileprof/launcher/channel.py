"""The child's end of the conversation with tileprof: JSON lines in and out, and a clean death.

What the measured code prints must not mix with the messages: standard output of the process goes to standard error, and
messages take the descriptor that standard output had.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1


class Channel:
    """Messages to and from the parent."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._input = os.fdopen(read_fd, "r", encoding="utf-8")
        self._output = os.fdopen(write_fd, "w", encoding="utf-8")

    def send(self, kind: str, **values: Any) -> None:
        """Send one message; NaN and infinities are sent as Python's json writes them."""
        self._output.write(json.dumps({"type": kind, **values}) + "\n")
        self._output.flush()

    def receive(self) -> dict[str, Any] | None:
        """The next request, or None when the parent is done."""
        line = self._input.readline()
        if not line:
            return None
        message: dict[str, Any] = json.loads(line)
        return message


def open_channel() -> Channel:
    """Take over standard input and output for messages, and arrange for this process to die with its parent."""
    _die_with_parent()
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides, also where both share a terminal
    read_fd, write_fd = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return Channel(read_fd, write_fd)


def _die_with_parent() -> None:
    """Ask Linux to kill this process when the thread that started it ends."""
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return  # then the end of the parent shows as the end of standard input
