"""Rows of profilers' CSV files, read by header and never by position.

Profilers quote everything or only what needs it, forget to escape quotes inside kernel names, write a byte order mark, blank
lines, messages before the header, or stop in the middle of a line.  Headers differ in case and order between versions.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tileprof.collect.scrub import plain
from tileprof.collect.text_file import read_text
from tileprof.errors import ProfileFormatError

csv.field_size_limit(1 << 24)


@dataclass(frozen=True)
class Table:
    """A table with ``header`` in lower case; ``dropped`` counts rows that were cut or damaged."""

    header: tuple[str, ...]
    rows: tuple[dict[str, str], ...]
    dropped: int = 0

    def has(self, *names: str) -> bool:
        """Whether all these columns (any case) are there."""
        return all(name.lower() in self.header for name in names)


def split_line(line: str) -> list[str]:
    """Fields of one line, also where quotes inside quoted fields are bare, as rocprofv3 writes them in kernel names.

    A quote then ends a field only where a comma or the end of the line follows.
    """
    fields = next(csv.reader([line]), [])
    if not any('"' in item for item in fields):
        return fields
    return [item.replace('""', '"') for item in _tokens(line)]


_FIELD = re.compile(r'"((?:[^"]|""|"(?!,|$))*)"(?=,|$)|([^,]*)')


def _tokens(line: str) -> Iterator[str]:
    position = 0
    while position <= len(line):
        found = _FIELD.match(line, position)
        if found is None:  # cannot be: the second form matches anything
            return
        yield found[1] if found[1] is not None else found[2]
        position = found.end() + 1


def parse(text: str, path: Path, *, starts: Sequence[str] = (), pad: bool = False) -> Table:
    """The table in a text.  ``starts`` are names of which the header must have one: lines before it are passed over.

    Rows with another number of fields than the header are dropped and counted, blank lines are not rows; with ``pad`` a row may
    lack columns at its end, as long as it is not the last line of a file that was cut.  Raises
    :class:`ProfileFormatError` where there is no header.
    """
    lines = _logical_lines(text)
    wanted = {name.lower() for name in starts}
    header: tuple[str, ...] = ()
    for line in lines:
        header = tuple(item.strip().lower() for item in split_line(plain(line)))
        if len(header) > 1 and (not wanted or wanted & set(header)):
            break
    else:
        what = f" with a column {' or '.join(starts)}" if starts else ""
        raise ProfileFormatError(f"{path} has no line of column names{what}", remedy="export it again as CSV")
    rows: list[dict[str, str]] = []
    dropped = 0
    for line in lines:
        if not line.strip():
            continue
        if line.count('"') % 2:  # cut inside a quoted field
            dropped += 1
            continue
        fields = split_line(line)
        if pad and len(fields) < len(header) and line.rstrip().endswith(('"', ",")):
            fields += [""] * (len(header) - len(fields))
        if len(fields) == len(header):
            rows.append(dict(zip(header, fields, strict=True)))
        else:
            dropped += 1
    return Table(header, tuple(rows), dropped)


def read(path: Path, *, starts: Sequence[str] = (), pad: bool = False) -> Table:
    """The table in a file; as :func:`parse`."""
    return parse(read_text(path), path, starts=starts, pad=pad)


def _logical_lines(text: str) -> Iterator[str]:
    """Lines; one that ends inside a quoted field goes on with the next, unless that starts a row of its own."""
    pending = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        joined = f"{pending}\n{line}" if pending else line
        if joined.count('"') % 2 and len(joined) < _LONGEST:
            pending = joined
            continue
        pending = ""
        yield joined
    if pending:
        yield from pending.split("\n")  # a quote that never closes: the lines as they are


_LONGEST = 1 << 20


def number(text: str | None) -> float | None:
    """A number as profilers write it, or None: ``12,319,469``, ``4,963,609,951.19``, ``8.1E+14``, ``n/a``, empty, ``nan``.

    A thousands separator must stand before three digits each time; where it is a dot and the decimal mark a comma, as some
    locales have it, ``27.595.520`` and ``65,77`` are read so.  NaN and infinities are no values.
    """
    word = (text or "").strip().strip('"')
    if not word or not re.search(r"\d", word):
        return None
    if re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", word):
        word = word.replace(",", "")
    elif re.fullmatch(r"[+-]?\d{1,3}(?:\.\d{3}){2,}(?:,\d*)?", word) or re.fullmatch(
        r"[+-]?\d{1,3}(?:\.\d{3})+,\d*", word
    ):
        word = word.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"[+-]?\d+,\d{1,2}", word):
        word = word.replace(",", ".")
    try:
        value = float(word)
    except ValueError:
        return None
    return value if value - value == 0 else None  # neither NaN nor infinite


def whole(text: str | None) -> int | None:
    """A whole number, exactly where it is written as one (64-bit times lose digits as floats), or None."""
    word = (text or "").strip()
    if re.fullmatch(r"[+-]?\d+", word):
        return int(word)
    value = number(word)
    return None if value is None else int(value)
