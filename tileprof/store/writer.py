"""Writes a run into its SQLite file, one transaction a case, so that a killed run keeps every finished case."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import Any

from tileprof.errors import StoreError
from tileprof.store.codec import finite
from tileprof.store.records import CaseResult, Ceiling, Metric, Provenance, Run, Unavailable
from tileprof.store.tables import (
    APPLICATION_ID,
    METRICS,
    SCHEMA_VERSION,
    TABLES,
    UPGRADES,
    connect,
    connect_to_read,
    translated,
)


def _dump(value: Any) -> str:
    return json.dumps(finite(value), separators=(",", ":"))


class RunStore:
    """The open store of one run; a context manager.  Every method raises StoreError where it cannot write."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._provenances: dict[Provenance, int] = {}
        self._series: dict[tuple[object, ...], int] = {}

    @classmethod
    def create(cls, path: Path, *, most_pages: int | None = None) -> RunStore:
        """A new store at ``path``, which must not exist.  ``most_pages`` limits its size in pages of 4 KiB."""
        if path.exists():
            raise StoreError(f"{path} exists already")
        with translated(path):
            connection = connect(path, most_pages=most_pages)
            connection.executescript(TABLES + METRICS)
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
            for step in range(version, SCHEMA_VERSION):  # all of a step, or nothing of it
                script = f"BEGIN IMMEDIATE; {UPGRADES[step]} PRAGMA user_version = {step + 1}; COMMIT;"
                connection.executescript(script)
            store = cls(path, connection)
            store._recall()
            return store

    def _recall(self) -> None:
        """Learn the provenances and series that the file has."""
        for number, *row in self._connection.execute("SELECT number, kind, tool, version, detail FROM provenances"):
            self._provenances[Provenance(*row)] = number
        columns = "series, metric, unit, provenance, operation, buffer, access, flag"
        for number, *row in self._connection.execute(f"SELECT {columns} FROM series"):
            self._series[tuple(row)] = number

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
                self._provenances.clear()  # what was added with the transaction is gone with it
                self._series.clear()
                with suppress(sqlite3.Error):
                    self._recall()
                raise

    def write_header(self, run: Run, targets: Sequence[str] = ()) -> None:
        """Everything of ``run`` but its cases, ceilings and what was unavailable; replaces an earlier header.

        ``targets`` are those of the workload that the run is for: it is finished when all their cases are.
        """
        values = {
            "name": run.name,
            "description": run.description,
            "workload_file": run.workload_file,
            "version": run.version,
            "started": run.started,
            "finished": run.finished,
            "machine": run.machine,
            **({"targets": list(targets)} if targets else {}),
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
            _dump(case.checks), _dump(asdict(case.interleaved)) if case.interleaved else None,
            _dump(case.sizes),
        )  # fmt: skip
        with self._transaction() as connection:
            connection.execute("DELETE FROM cases WHERE id = ?", (case.id,))
            cursor = connection.execute(f"INSERT INTO cases VALUES (NULL, {', '.join('?' * len(row))})", row)
            number = int(cursor.lastrowid or 0)
            _add_operations(connection, number, case)
            _add_texts(connection, number, case)
            self._add_metrics(connection, number, case)

    def _add_metrics(self, connection: sqlite3.Connection, number: int, case: CaseResult) -> None:
        rows = []
        for place, metric in enumerate(case.metrics):
            value = float(metric.value)
            series = self._series_of(connection, metric)
            rows.append((number, series, place, metric.launch, value if math.isfinite(value) else None))
        rows.sort(key=itemgetter(1))  # in the order in which they lie in the file
        connection.executemany("INSERT INTO measurements VALUES (?, ?, ?, ?, ?)", rows)

    def _series_of(self, connection: sqlite3.Connection, metric: Metric) -> int:
        source = metric.provenance
        known = self._provenances.get(source)
        if known is None:
            row = (source.kind, source.tool, source.version, source.detail)
            cursor = connection.execute("INSERT INTO provenances VALUES (NULL, ?, ?, ?, ?)", row)
            known = self._provenances[source] = int(cursor.lastrowid or 0)
        what = (metric.metric, metric.unit, known, metric.operation, metric.buffer, metric.access, metric.flag)
        found = self._series.get(what)
        if found is None:
            cursor = connection.execute("INSERT INTO series VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", what)
            found = self._series[what] = int(cursor.lastrowid or 0)
        return found

    def keep_only(
        self,
        positions: dict[tuple[str, str], int],
        *,
        again: frozenset[str] = frozenset(),
        among: Container[tuple[str, str]] | None = None,
    ) -> set[tuple[str, str]]:
        """For resuming: keep the cases whose (id, hash) is in ``positions``, at their new places, and drop all others.

        Cases with a status in ``again`` are dropped too, where ``among`` is given only those in it.  Returns what is kept.
        """
        with self._transaction() as connection:
            found = connection.execute("SELECT number, id, hash, status FROM cases").fetchall()
            kept = {
                (i, digest): n
                for n, i, digest, status in found
                if (i, digest) in positions and not (status in again and (among is None or (i, digest) in among))
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
