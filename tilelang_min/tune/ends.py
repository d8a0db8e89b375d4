"""How the processes of a search end: by their own clock where nobody is left to end them, and the words for how they did."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import BinaryIO

SPARE_S = 10.0
"""Seconds beyond its limit after which a process ends by itself."""


def end_after(seconds: float) -> None:
    """This process ends so many seconds from now, whatever it does (0: not at all): its parent may have been killed."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def death(code: int | None, what: str, errors: BinaryIO) -> str:
    """How ``what`` ended, with the last line that it wrote to ``errors``."""
    errors.seek(0)
    lines = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    last = f": {lines[-1]}" if lines else ""
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"{what} died of {signal.Signals(-code).name}{last}"
    return f"{what} ended with status {code}{last}"
