"""Problems found in a workload file: where, what, and the nearest valid word.

A :class:`Problem` knows its place; :func:`render_problems` turns all of them into the text a user sees, sorted by place, each
with its source line and a caret.  Nothing here knows the schema.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text file; ``line`` and ``column`` count from 0."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, at one place of the file."""

    mark: Mark
    message: str


def printable(name: str) -> str:
    """``name`` with what Python could not decode of a file's name decoded as UTF-8, else shown as ``\\xe9``.

    Such bytes are lone surrogates in Python, which can be neither printed nor stored.
    """
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option that ``word`` most likely misspells, or None where none comes close."""
    known = list(options)
    folded = {option.lower(): option for option in known}
    if word.lower() in folded:
        return folded[word.lower()]
    found = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def unknown(what: str, word: str, options: Iterable[str], *, most: int = 12) -> str:
    """A message for an unknown word: names the nearest valid one, or lists the valid ones where none is near."""
    known = sorted(set(options))
    guess = nearest(word, known)
    if guess is not None:
        return f"unknown {what} '{word}'; did you mean '{guess}'?"
    if not known:
        return f"unknown {what} '{word}'; none is defined"
    shown = ", ".join(known[:most]) + (", ..." if len(known) > most else "")
    return f"unknown {what} '{word}'; known: {shown}"


def render_problems(file: str, lines: Sequence[str], problems: Iterable[Problem]) -> str:
    """All problems as ``file:line:column: message`` with source line and caret, in the order of the file, none twice."""
    parts: list[str] = []
    for problem in sorted(set(problems), key=lambda p: (p.mark.line, p.mark.column, p.message)):
        line, column = problem.mark.line, problem.mark.column
        parts.append(f"{file}:{line + 1}:{column + 1}: {problem.message}")
        if line < len(lines):
            text = lines[line].rstrip()
            number = str(line + 1)
            # tabs keep their width under the caret when the padding repeats them
            padding = "".join("\t" if character == "\t" else " " for character in text[:column])
            parts.append(f"  {number} | {text}")
            parts.append(f"  {' ' * len(number)} | {padding}^")
    return "\n".join(parts)
