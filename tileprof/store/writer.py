"""Writes a run into its SQLite file, one transaction a case, so that a killed run keeps every finished case."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tileprof.errors import StoreError
from tileprof.store.codec import finite
from tileprof.store.records import CaseResult, Ceiling, Provenance, Run, Unavailable
from tileprof.store.tables import APPLICATION_ID, SCHEMA_VERSION, TABLES, UPGRADES, connect, connect_to_read, translated


def _dump(value: Any) -> str:
    return json.dumps(finite(value), separators=(",", ":"))


class RunStore:
    """The open store of one run; a context manager.  Every method raises StoreError where it cannot write."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def create(cls, path: Path, *, most_pages: int | None = None) -> RunStore:
        """A new store at ``path``, which must not exist.  ``most_pages`` limits its size in pages of 4 KiB."""
        if path.exists():
            raise StoreError(f"{path} exists already")
        with translated(path):
            connection = connect(path, most_pages=most_pages)
            connection.executescript(TABLES)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return cls(path, connection)

    @classmethod
    def open(cls, path: Path) -> RunStore:
        """The existing store at ``path``, to be written on."""
        connect_to_read(path).close()
        with translated(path):
            connection = connect(path)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            for step in range(version, SCHEMA_VERSION):
                connection.execute(UPGRADES[step])
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            return cls(path, connection)

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Fold the write-ahead log into the file, and close it."""
        # on a full disk the log stays beside the file, and is read with it
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def write_header(self, run: Run) -> None:
        """Everything of ``run`` but its cases, ceilings and what was unavailable; replaces an earlier header."""
        values = {
            "name": run.name,
            "description": run.description,
            "workload_file": run.workload_file,
            "version": run.version,
            "started": run.started,
            "finished": run.finished,
            "machine": run.machine,
        }
        with self._transaction() as connection:
            rows = [(key, _dump(value)) for key, value in values.items()]
            connection.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)

    def finish(self, finished: str) -> None:
        """Mark the run as complete at the time ``finished`` (ISO 8601, UTC)."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO run VALUES ('finished', ?)", (_dump(finished),))

    def add_ceilings(self, ceilings: Iterable[Ceiling]) -> None:
        """Add limits of machines; one of the same target, quantity and unit class is replaced."""
        rows = [(c.target, c.quantity, c.unit_class, _dump(asdict(c))) for c in ceilings]
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO ceilings VALUES (?, ?, ?, ?)", rows)

    def set_unavailable(self, entries: Iterable[Unavailable]) -> None:
        """Replace the list of what could not be measured."""
        rows = [(_dump(asdict(entry)),) for entry in entries]
        with self._transaction() as connection:
            connection.execute("DELETE FROM unavailable")
            connection.executemany("INSERT OR IGNORE INTO unavailable VALUES (?)", rows)

    def add_case(self, case: CaseResult, position: int) -> None:
        """Write one finished case; ``position`` is its place in the workload.  A result of the same id is replaced."""
        row = (
            position, case.id, case.hash, case.kernel, case.target_name, case.target,
            _dump(case.args), _dump(case.shape), _dump(case.tiles), case.status, case.reason,
            _dump(case.metadata) if case.metadata is not None else None, case.bundle,
            _dump(asdict(case.timing)) if case.timing else None,
            _dump(asdict(case.check)) if case.check else None,
            _dump(case.notes), case.seconds, _dump([asdict(suggestion) for suggestion in case.suggestions]),
        )  # fmt: skip
        with self._transaction() as connection:
            connection.execute("DELETE FROM cases WHERE id = ?", (case.id,))
            cursor = connection.execute(f"INSERT INTO cases VALUES (NULL, {', '.join('?' * len(row))})", row)
            number = int(cursor.lastrowid or 0)
            _add_operations(connection, number, case)
            _add_texts(connection, number, case)
            _add_metrics(connection, number, case)

    def keep_only(
        self, positions: dict[tuple[str, str], int], *, again: frozenset[str] = frozenset()
    ) -> set[tuple[str, str]]:
        """For resuming: keep the cases whose (id, hash) is in ``positions``, at their new places, and drop all others.

        Cases with a status in ``again`` are dropped too.  Returns what is kept.
        """
        with self._transaction() as connection:
            found = connection.execute("SELECT number, id, hash, status FROM cases").fetchall()
            kept = {
                (i, digest): n for n, i, digest, status in found if (i, digest) in positions and status not in again
            }
            stays = set(kept.values())
            dropped = [(number,) for number, *_ in found if number not in stays]
            connection.executemany("DELETE FROM cases WHERE number = ?", dropped)
            places = [(positions[key], number) for key, number in kept.items()]
            connection.executemany("UPDATE cases SET position = ? WHERE number = ?", places)
        return set(kept)


def _add_operations(connection: sqlite3.Connection, number: int, case: CaseResult) -> None:
    rows = []
    for operation in case.operations:
        location = operation.get("location") or {}
        place = (location.get("file"), location.get("line"))
        rows.append((number, operation["id"], operation["kind"], operation["label"], *place, _dump(operation)))
    connection.executemany("INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def _add_texts(connection: sqlite3.Connection, number: int, case: CaseResult) -> None:
    """Sources and listings; equal texts, as those of one kernel file in all its cases, are kept once."""
    texts = [("source", name, text) for name, text in case.sources.items()]
    texts += [("generated", "", case.generated), ("assembly", "", case.assembly)]
    for kind, name, text in texts:
        digest = hashlib.sha256(text.encode()).hexdigest()
        connection.execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (digest, text))
        connection.execute("INSERT INTO case_texts VALUES (?, ?, ?, ?)", (number, kind, name, digest))


def _add_metrics(connection: sqlite3.Connection, number: int, case: CaseResult) -> None:
    known: dict[Provenance, int] = {}
    rows = []
    for metric in case.metrics:
        source = metric.provenance
        if source not in known:
            known[source] = _provenance_number(connection, source)
        where = (metric.operation, metric.buffer, metric.access, metric.launch, metric.flag)
        rows.append((number, metric.metric, finite(float(metric.value)), metric.unit, known[source], *where))
    connection.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _provenance_number(connection: sqlite3.Connection, provenance: Provenance) -> int:
    row = (provenance.kind, provenance.tool, provenance.version, provenance.detail)
    connection.execute("INSERT OR IGNORE INTO provenances VALUES (NULL, ?, ?, ?, ?)", row)
    question = "SELECT number FROM provenances WHERE kind = ? AND tool = ? AND version = ? AND detail = ?"
    (number,) = connection.execute(question, row).fetchone()
    return int(number)
