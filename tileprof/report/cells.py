"""Cells: a figure as text with its exact value and its provenance, ready for a template.

Provenances repeat thousands of times in a page, so each distinct one is written once and cells carry its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tileprof.analyse.figures import Figure
from tileprof.collect.noise import NOISY
from tileprof.report import numbers
from tileprof.store.records import Provenance

DOUBTFUL = ("out of range", "sum differs", "parts exceed whole", "misread by profiler", NOISY)
"""Flags of figures that are shown and not believed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``text`` as shown, ``exact`` in full where the text is rounded, ``p`` the provenance's number, ``mark`` a CSS class."""

    text: str
    exact: str = ""
    p: int | None = None
    kind: str = ""
    mark: str = ""

    @property
    def absent(self) -> bool:
        """Whether this stands for a value that is not known."""
        return self.text == numbers.ABSENT


ABSENT = Cell(numbers.ABSENT)


def common(cells: Iterable[Cell]) -> int | None:
    """The provenance number of most cells of a row, the smallest of equally many; None where none has one."""
    counts = Counter(cell.p for cell in cells if cell.p is not None)
    return min(counts, key=lambda number: (-counts[number], number), default=None)


class ProvenanceTable:
    """All distinct provenances of a page, numbered from 1 in the order in which they are first used."""

    def __init__(self) -> None:
        self._numbers: dict[Provenance, int] = {}

    def number(self, provenance: Provenance) -> int:
        """The number of a provenance, given out on first use."""
        return self._numbers.setdefault(provenance, len(self._numbers) + 1)

    def rows(self) -> list[tuple[int, Provenance]]:
        """(number, provenance) of all that were used."""
        return [(number, provenance) for provenance, number in self._numbers.items()]

    def cell(self, text: str, provenance: Provenance, exact: str = "", mark: str = "") -> Cell:
        """A cell with provenance; the exact value is dropped where it says nothing more."""
        if text == numbers.ABSENT:
            return ABSENT
        return Cell(text, "" if exact == text else exact, self.number(provenance), provenance.kind, mark)

    def count(self, figure: Figure | None, mark: str = "") -> Cell:
        """A figure as a full count.  One that cannot be right is shown as it is, with its flag."""
        if figure is None:
            return ABSENT
        if figure.flag in DOUBTFUL:
            return self.cell(numbers.count(figure.value), figure.provenance, f"flagged: {figure.flag}", "flagged")
        return self.cell(numbers.count(figure.value), figure.provenance, mark=mark)
