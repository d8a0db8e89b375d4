"""Shared-memory conflicts of one kernel as a table: by operation, buffer and kind of access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tileprof.analyse.conflicts import Counts, conflict_rows
from tileprof.store.records import CaseResult

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    "line",
    "operation",
    "buffer",
    "access",
    "requests",
    "transactions",
    "transactions_ideal",
    "conflicts",
    "ways",
    "source",
)


@dataclass(frozen=True, slots=True)
class ConflictEntry:
    """One access of one operation, per launch.

    ``rule`` is ``known``, ``open`` (a hypothesis) or ``unknown`` (transactions None).  ``source``: ``simulated``, ``measured``
    or ``both``, in which case the counts are the measured ones and ``simulated_transactions`` holds the other.  ``operation``
    is the tile operation's source text.  ``suggestion``: for an access with conflicts, the smallest padding of its tile and
    the swizzle that remove them, each proved by counting again; None where there is none.
    """

    operation_id: int | None
    operation: str
    line: int | None
    buffer: str | None
    access: str | None
    requests: int | None
    transactions: int | None
    transactions_ideal: int | None
    conflicts: int | None
    ways: int | None
    source: str
    rule: str
    simulated_transactions: int | None
    suggestion: str | None = None


class MemoryConflicts:
    """All shared-memory accesses of a kernel; prints as a table.

    ``total``: extra transactions of all accesses whose rule is known, None where there are none; ``uncounted``: kinds of accesses
    that are not in it; ``by_operation`` and ``by_buffer`` the same split (by operation id, by buffer name); ``entries`` the rows;
    ``frame`` a pandas DataFrame of them; ``suggestions`` what removes the conflicts, by tile.
    """

    def __init__(self, case: CaseResult) -> None:
        self.kernel = case.id
        self.target = case.target
        self.suggestions = case.suggestions
        texts: dict[str, list[str]] = {}
        for suggestion in case.suggestions:
            texts.setdefault(suggestion.buffer, []).append(suggestion.text)
        self.entries: tuple[ConflictEntry, ...] = tuple(
            _entry(row, texts) for row in conflict_rows(case) if not row.subtotal
        )

    @property
    def total(self) -> int | None:
        """Extra transactions a launch, over the accesses whose rule is known; None where none was counted."""
        counted = [entry.conflicts for entry in self.entries if entry.rule == "known" and entry.conflicts is not None]
        return sum(counted) if counted else None

    @property
    def uncounted(self) -> tuple[str, ...]:
        """Kinds of accesses that are not in ``total``, because no rule of counting them is known."""
        return tuple(
            sorted({entry.access or "" for entry in self.entries if entry.conflicts is None or entry.rule != "known"})
        )

    @property
    def by_operation(self) -> dict[int | None, int]:
        """Extra transactions by operation id, known rules only."""
        return self._sums("operation_id")

    @property
    def by_buffer(self) -> dict[str | None, int]:
        """Extra transactions by buffer, known rules only."""
        return self._sums("buffer")

    def _sums(self, key: str) -> dict[Any, int]:
        sums: dict[Any, int] = {}
        for entry in self.entries:
            if entry.rule == "known" and entry.conflicts is not None:
                sums[getattr(entry, key)] = sums.get(getattr(entry, key), 0) + entry.conflicts
        return sums

    @property
    def frame(self) -> pd.DataFrame:
        """The entries as a DataFrame, one row each."""
        import pandas as pd

        return pd.DataFrame(
            [{name: getattr(entry, name) for name in ConflictEntry.__dataclass_fields__} for entry in self.entries],
            columns=list(ConflictEntry.__dataclass_fields__),
        )

    def __str__(self) -> str:
        advice = [f"  {suggestion.text}\n    {suggestion.proof}" for suggestion in self.suggestions]
        if not self.entries:
            return "\n".join([f"{self.kernel}: no shared-memory accesses were counted", *advice])
        rows = [list(_COLUMNS)]
        for entry in self.entries:
            cells = [_cell(getattr(entry, name)) for name in _COLUMNS]
            if entry.rule != "known":
                cells[-1] += f" ({entry.rule} rule)"
            rows.append(cells)
        widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
        numeric = {"line", "requests", "transactions", "transactions_ideal", "conflicts", "ways"}
        lines = []
        for row in rows:
            cells = [
                cell.rjust(width) if name in numeric else cell.ljust(width)
                for cell, width, name in zip(row, widths, _COLUMNS, strict=True)
            ]
            lines.append("  ".join(cells).rstrip())
        word = "LDS cycles" if self.target.startswith("hip") else "transactions"
        total, others = self.total, ", ".join(self.uncounted)
        verdict = f"{total:,} extra {word} a launch" if total else "no conflicts" if total == 0 else "nothing counted"
        if others:
            verdict += f"; not counted, for lack of a known rule: {others}"
        return "\n".join([f"{self.kernel} on {self.target}: {verdict}", *lines, *advice])

    __repr__ = __str__


def _entry(row: Any, suggestions: dict[str, list[str]]) -> ConflictEntry:
    chosen: Counts = row.measured if row.measured.transactions is not None else row.simulated
    conflicts = _integer(chosen.conflicts)
    found = suggestions.get(row.buffer, []) if conflicts and row.rule == "known" else []
    return ConflictEntry(
        operation_id=row.operation,
        operation=row.label,
        line=row.line,
        buffer=row.buffer,
        access=row.access,
        requests=_integer(chosen.requests),
        transactions=_integer(chosen.transactions),
        transactions_ideal=_integer(chosen.ideal),
        conflicts=conflicts,
        ways=_integer(row.simulated.ways),
        source=row.source,
        rule=row.rule or "known",
        simulated_transactions=_integer(row.simulated.transactions),
        suggestion="; or ".join(found) or None,
    )


def _integer(figure: Any) -> int | None:
    return None if figure is None else int(figure.value)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)
