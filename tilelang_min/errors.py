"""Every error the compiler raises on purpose, under one root.

An error says what is wrong, where (file, line, caret) and what to do instead.  ``str(error)`` is the whole message,
ready for a terminal; nothing here needs a traceback to be understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tilelang_min.program.operation import SourceLocation


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The remedy for an unknown word: what was probably meant, and all that is known."""
    import difflib

    words = list(known)
    near = difflib.get_close_matches(name, words, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}Known: {', '.join(words)}" if words else "leave it out: there are none"


class TileLangError(Exception):
    """Root of all errors of tilelang_min.

    ``message`` says what is wrong, ``remedy`` what to write or do instead, ``location`` points into the author's source.
    """

    def __init__(self, message: str, *, location: SourceLocation | None = None, remedy: str | None = None) -> None:
        self.message = message
        self.location = location
        self.remedy = remedy
        super().__init__(self.render())

    def render(self) -> str:
        """The message as shown to the user: place, source line with a caret, problem, remedy."""
        parts: list[str] = []
        if self.location is not None:
            parts.append(f"{self.location.file}:{self.location.line}:{self.location.column + 1}: {self.message}")
            if self.location.text:
                stripped = self.location.text.lstrip()
                indent = len(self.location.text) - len(stripped)
                parts.append(f"    {stripped.rstrip()}")
                parts.append("    " + " " * max(0, self.location.column - indent) + "^")
        else:
            parts.append(self.message)
        if self.remedy:
            parts.append(f"  help: {self.remedy}")
        return "\n".join(parts)


class LanguageError(TileLangError):
    """The kernel's source uses something that the language does not have, or uses it wrongly."""


class ShapeError(LanguageError):
    """Ranks or extents that do not fit together."""


class LayoutError(LanguageError):
    """Two uses of one buffer ask for different layouts."""


class ResourceError(TileLangError):
    """The program needs more shared memory, registers or threads than the target has."""


class TargetError(TileLangError):
    """An unknown or misspelt target, or one that cannot do what is asked."""


class CodegenError(TileLangError):
    """A vendor's compiler refused generated code; the message holds its log."""


class LaunchError(TileLangError):
    """The kernel cannot be launched here, or was called with arguments that do not fit."""


class BundleError(TileLangError):
    """A bundle is missing, damaged, or of a format this version does not read."""


class TuningError(TileLangError):
    """A search over configurations found none that works, or was asked for something that it cannot do."""


class UnknownMemoryRule(TileLangError):
    """No counting rule is known for this access on this target; the message names the instruction."""


class SimulationError(TileLangError):
    """The simulator met a program error (a race, an access out of range) or a construct it cannot execute."""


class PlacementError(SimulationError):
    """A shared tile cannot be placed as asked: an access would be misaligned or torn apart, or there is no such tile."""
