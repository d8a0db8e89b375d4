"""Removing what names a person or a machine from texts that a profile carries: paths, kernel names, notes.

Readers take only the fields that they need, so environments, host names and command lines never get this far; what is left are
paths on the profiled machine.
"""

from __future__ import annotations

import re

_HOME = re.compile(
    r"""(?ix)
    (?: (?:[a-z]:)? [\\/] (?:users|documents\ and\ settings) [\\/] | /home/ | /export/home/ | /u(?:sers|1)?/ (?=[^/\s]+/) )
    [^\\/\s:"'<>|]+
    """
)
_ROOT_HOME = re.compile(r"(?<![\w.])/root(?=/)")
_LIBRARY = re.compile(r"""[^\s:"'<>|()]*[\\/](?=(?:site|dist)-packages[\\/])""")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def path(text: str) -> str:
    """A path or text with home directories as ``~``: ``/home/jane/k.py`` becomes ``~/k.py``.

    Of installed packages only what is the same everywhere stays: ``site-packages/triton/language/standard.py``.
    """
    return _ROOT_HOME.sub("~", _HOME.sub("~", _LIBRARY.sub("", text)))


def plain(text: str) -> str:
    """Text without terminal colours and control characters."""
    return _CONTROL.sub(" ", _ANSI.sub("", text))


_SUFFIX = re.compile(r"(?:\s*\[clone \.kd\]|\s*\(\.kd\)|\.kd)\s*$")


def kernel_name(text: str) -> str:
    """A kernel's name without quotes around it and what AMD's tools append: `` [clone .kd]``, `` (.kd)``, ``.kd``."""
    name = plain(text).strip()
    if len(name) >= 2 and name[0] == name[-1] == '"':
        name = name[1:-1].replace('""', '"')
    return path(_SUFFIX.sub("", name)) or "(no name)"
