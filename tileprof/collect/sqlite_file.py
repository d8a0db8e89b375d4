"""SQLite files of profilers: opened so that nothing can be written, read by column names, with errors in the user's words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from tileprof.errors import ProfileFormatError

MAGIC = b"SQLite format 3\x00"
_REMEDY = "the profiler was ended while it wrote, or the file was cut in copying: export or collect it again"


class Database:
    """An open file; a context manager.  Raises :class:`ProfileFormatError` for what is no whole database."""

    def __init__(self, path: Path) -> None:
        self.path = path
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
            connection.row_factory = sqlite3.Row
            self._names = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master")}
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise ProfileFormatError(f"{path} is no whole SQLite file: {error}", remedy=_REMEDY) from None
        self._connection = connection

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @property
    def names(self) -> frozenset[str]:
        """Tables and views."""
        return frozenset(self._names)

    def has(self, table: str) -> bool:
        """Whether there is such a table or view: profilers make those that have something in them."""
        return table in self._names

    def columns(self, table: str) -> tuple[str, ...]:
        """Columns of a table or view, in its order."""
        return tuple(str(row["name"]) for row in self.query(f'PRAGMA table_info("{table}")'))

    def rows(self, table: str, *columns: str, order: str = "") -> Iterator[dict[str, Any]]:
        """Rows with these columns, one at a time; a column that this version lacks is None in each."""
        have = set(self.columns(table))
        present = [name for name in columns if name in have]
        if not present:
            return
        question = f"SELECT {', '.join(_quote(name) for name in present)} FROM {_quote(table)}"
        if order in have:
            question += f" ORDER BY {_quote(order)}"
        absent = {name: None for name in columns if name not in have}
        for row in self.query(question):
            yield {**dict(zip(present, row, strict=True)), **absent}

    def query(self, question: str, *values: object) -> Iterator[sqlite3.Row]:
        """Rows of a question of our own."""
        try:
            yield from self._connection.execute(question, values)
        except sqlite3.Error as error:
            raise ProfileFormatError(f"{self.path} is damaged: {error}", remedy=_REMEDY) from None


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
