"""Text and JSON files that profilers wrote: encodings, and what is wrong with files that are empty or cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tileprof.errors import ProfileFormatError


def decode(data: bytes) -> str:
    """Text of a file: UTF-8 with or without byte order mark, UTF-16 with one; other bytes are replaced."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def read_text(path: Path) -> str:
    """The text of a file.  Raises :class:`ProfileFormatError` where there is none, or nothing in it."""
    try:
        text = decode(path.read_bytes())
    except OSError as error:
        raise ProfileFormatError(f"{path} cannot be read: {error.strerror}") from None
    if not text.strip():
        raise nothing_in(path)
    return text


def nothing_in(path: Path) -> ProfileFormatError:
    """The error of a file without content."""
    return ProfileFormatError(
        f"{path} is empty", remedy="the profiler wrote nothing: its own output says why, or it was ended too early"
    )


def read_json(path: Path) -> Any:
    """The value in a JSON file.  Raises :class:`ProfileFormatError` where it is cut, and as :func:`read_text`."""
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise ProfileFormatError(
            f"{path} is no whole JSON file: {error}", remedy="the profiler was ended while it wrote; collect it again"
        ) from None
