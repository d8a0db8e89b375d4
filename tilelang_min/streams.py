"""Standard output and error of a command line: a reader that goes away or a poor encoding ends no work.

``program | head`` closes the pipe while the program is at work: what is written from then on goes nowhere, and the program comes to
its own end with its own status.  A full disk is the same, but is told.  Characters that the stream's encoding lacks are
written in ASCII.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, TextIO, cast

_PLAIN = {
    "\N{EM DASH}": "-", "\N{EN DASH}": "-", "\N{MINUS SIGN}": "-", "\N{MULTIPLICATION SIGN}": "x", "\N{MIDDLE DOT}": ".",
    "\N{RIGHTWARDS ARROW}": "->", "\N{LESS-THAN OR EQUAL TO}": "<=", "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{ALMOST EQUAL TO}": "~", "\N{PLUS-MINUS SIGN}": "+-", "\N{MICRO SIGN}": "u", "\N{GREEK SMALL LETTER MU}": "u",
    "\N{BULLET}": "*", "\N{CHECK MARK}": "ok", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
}  # fmt: skip
"""Characters of our texts that ASCII has no decomposition for."""

_HANDLER = "tilelang_min.plain"


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """A codec error handler: the bytes of an undecodable file name as they were, else ASCII that reads alike, else an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    if 0xDC80 <= ord(character) <= 0xDCFF:  # how Python holds a byte of a file name that is not in its encoding
        return bytes([ord(character) - 0xDC00]), error.start + 1
    shown = _PLAIN.get(character) or unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return shown or character.encode("ascii", "backslashreplace").decode(), error.start + 1


codecs.register_error(_HANDLER, _plain)


class _Outlet(io.FileIO):
    """The descriptor behind a stream, which becomes /dev/null once it cannot be written."""

    lost: OSError | None = None
    """Why something was lost; a reader that went away wanted no more, and is none."""

    def write(self, data: bytes) -> int | None:  # type: ignore[override]  # any buffer, as the base has it
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EPIPE:
                self.lost = error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return memoryview(data).nbytes


@dataclass
class Streams:
    """What became of the standard streams; complete when the block of :func:`steady_streams` has ended."""

    outlets: dict[str, _Outlet] = field(default_factory=dict)

    @property
    def output_lost(self) -> OSError | None:
        """Why standard output is incomplete, other than for a reader that went away; None where it is not."""
        outlet = self.outlets.get("stdout")
        return None if outlet is None else outlet.lost


@contextmanager
def steady_streams() -> Iterator[Streams]:
    """Inside the block ``sys.stdout`` and ``sys.stderr`` raise nothing, whatever becomes of where they lead.

    Streams without a descriptor, such as those of a test, are left as they are.
    """
    streams = Streams()
    before = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    for name, stream in before.items():
        outlet = _outlet(stream)
        if outlet is not None:
            streams.outlets[name] = outlet
            setattr(sys, name, _text(stream, outlet))
    try:
        yield streams
    finally:
        for name in streams.outlets:
            getattr(sys, name).flush()
        for name, stream in before.items():
            setattr(sys, name, stream)


def _outlet(stream: TextIO | None) -> _Outlet | None:
    if not isinstance(stream, io.TextIOWrapper):
        return None
    with suppress(OSError):  # io.UnsupportedOperation is one; and what stands in a buffer may have nowhere to go
        stream.flush()
        return _Outlet(stream.fileno(), "wb", closefd=False)
    return None


def _text(stream: io.TextIOWrapper, outlet: _Outlet) -> io.TextIOWrapper:
    """A stream on ``outlet`` that is otherwise as ``stream`` was."""
    return io.TextIOWrapper(
        cast(BinaryIO, io.BufferedWriter(cast(io.RawIOBase, outlet))),
        encoding=stream.encoding,
        errors=_HANDLER,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
