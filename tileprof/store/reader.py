"""Reads a run back from its SQLite file.  Reading never writes, and works on the run of a process that was killed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tileprof.store.codec import ceiling_from_json, check_from_json, interleaved_from_json, number, timing_from_json
from tileprof.store.records import CaseResult, Metric, Provenance, Run, Suggestion, Unavailable
from tileprof.store.tables import connect_to_read, translated

MOST_LAUNCHES = 64
"""A case with more launches is read as their means."""


def read_run(path: Path, most_launches: int | None = MOST_LAUNCHES) -> Run:
    """The run stored in the file ``path``.

    Of a case with more than ``most_launches`` launches (None: any number) each metric is read as one record, the mean, whose
    provenance says of how many, and between what; the store keeps the single ones.  Raises StoreError.
    """
    connection = connect_to_read(path)
    connection.row_factory = sqlite3.Row
    try:
        with translated(path):
            return _Reader(connection, most_launches).run()
    finally:
        connection.close()


def read_header(path: Path) -> dict[str, Any]:
    """Name, times, machine and the like of the run stored in ``path``, without its cases."""
    connection = connect_to_read(path)
    try:
        with translated(path):
            return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM run")}
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class StoredCase:
    """A finished case in few words."""

    id: str
    hash: str
    target_name: str
    status: str
    bundle: str | None
    timed: bool


def read_outline(path: Path) -> tuple[StoredCase, ...]:
    """The cases of the run stored in ``path``, without what they hold."""
    connection = connect_to_read(path)
    try:
        with translated(path):
            columns = "id, hash, target_name, status, bundle, timing IS NOT NULL"
            rows = connection.execute(f"SELECT {columns} FROM cases ORDER BY position, number")
            return tuple(StoredCase(*row) for row in rows)
    finally:
        connection.close()


def read_unavailable(path: Path) -> tuple[Unavailable, ...]:
    """What could not be measured in the run stored in ``path``."""
    connection = connect_to_read(path)
    try:
        with translated(path):
            rows = connection.execute("SELECT record FROM unavailable ORDER BY rowid")
            return tuple(Unavailable(**json.loads(record)) for (record,) in rows)
    finally:
        connection.close()


_RUN_FIELDS = frozenset(field.name for field in fields(Run))


class _Reader:
    """Builds the records from the tables."""

    def __init__(self, connection: sqlite3.Connection, most_launches: int | None) -> None:
        self.connection = connection
        self.most_launches = most_launches
        (self.version,) = connection.execute("PRAGMA user_version").fetchone()
        self.provenances = {
            row["number"]: Provenance(row["kind"], row["tool"], row["version"], row["detail"])
            for row in self.rows("SELECT * FROM provenances")
        }

    def rows(self, question: str, *values: object) -> list[sqlite3.Row]:
        return self.connection.execute(question, values).fetchall()

    def run(self) -> Run:
        stored = {row["key"]: json.loads(row["value"]) for row in self.rows("SELECT * FROM run")}
        header = {key: value for key, value in stored.items() if key in _RUN_FIELDS}  # the rest is for resuming
        ceilings = [json.loads(row["record"]) for row in self.rows("SELECT record FROM ceilings ORDER BY rowid")]
        missing = [json.loads(row["record"]) for row in self.rows("SELECT record FROM unavailable ORDER BY rowid")]
        return Run(
            **header,
            cases=tuple(self.cases()),
            ceilings=tuple(ceiling_from_json(record) for record in ceilings),
            unavailable=tuple(Unavailable(**record) for record in missing),
        )

    def cases(self) -> Iterator[CaseResult]:
        for row in self.rows("SELECT * FROM cases ORDER BY position, number"):
            yield self.case(row)

    def case(self, row: sqlite3.Row) -> CaseResult:
        case_number = row["number"]
        question = (
            "SELECT kind, name, text FROM case_texts JOIN texts USING (digest) WHERE case_number = ? ORDER BY name"
        )
        texts = self.rows(question, case_number)
        single = {text["kind"]: text["text"] for text in texts if text["kind"] != "source"}
        operations = self.rows("SELECT record FROM operations WHERE case_number = ? ORDER BY operation", case_number)
        metrics = self.metrics(case_number)
        columns = row.keys()  # a file of an older version has fewer
        return CaseResult(
            id=row["id"],
            hash=row["hash"],
            kernel=row["kernel"],
            target_name=row["target_name"],
            target=row["target"],
            args=json.loads(row["args"]),
            shape=json.loads(row["shape"]),
            tiles=json.loads(row["tiles"]),
            status=row["status"],
            reason=row["reason"],
            metadata=json.loads(row["metadata"]) if row["metadata"] else None,
            operations=tuple(json.loads(operation["record"]) for operation in operations),
            sources={text["name"]: text["text"] for text in texts if text["kind"] == "source"},
            generated=single.get("generated", ""),
            assembly=single.get("assembly", ""),
            bundle=row["bundle"],
            metrics=metrics,
            timing=timing_from_json(json.loads(row["timing"])) if row["timing"] else None,
            check=check_from_json(json.loads(row["numerics"])) if row["numerics"] else None,
            notes=tuple(json.loads(row["notes"])),
            seconds=row["seconds"],
            suggestions=tuple(
                Suggestion(**record) for record in (json.loads(row["suggestions"]) if "suggestions" in columns else ())
            ),
            checks=json.loads(row["checks"]) if "checks" in columns else {},
            interleaved=interleaved_from_json(json.loads(row["interleaved"]))
            if "interleaved" in columns and row["interleaved"]
            else None,
            sizes=json.loads(row["sizes"]) if "sizes" in columns else {},
        )

    def metrics(self, case_number: int) -> tuple[Metric, ...]:
        """All metrics of a case in the order in which they were written, or the means over its launches."""
        if self.version < 3:
            rows = self.rows("SELECT * FROM metrics WHERE case_number = ? ORDER BY rowid", case_number)
            return tuple(self.metric(row) for row in rows)
        question = """
            SELECT MIN(number) AS number, series, COUNT(DISTINCT launch) AS launches, COUNT(*) AS times, COUNT(value) AS known,
              AVG(value) AS value, MIN(value) AS least, MAX(value) AS most
            FROM measurements WHERE case_number = ? GROUP BY series ORDER BY 1"""
        groups = self.rows(question, case_number)
        if self.most_launches is None or all(group["launches"] <= self.most_launches for group in groups):
            rows = self.rows("SELECT * FROM metrics WHERE case_number = ? ORDER BY number", case_number)
            return tuple(self.metric(row) for row in rows)
        return tuple(self.mean(group) for group in groups)

    def mean(self, group: sqlite3.Row) -> Metric:
        """One record for a metric of many launches."""
        (what,) = self.rows(
            "SELECT *, NULL AS launch, ? AS value FROM series WHERE series = ?", group["value"], group["series"]
        )
        record = self.metric(what)
        if group["times"] == 1:
            return record
        source = record.provenance
        missing = group["times"] - group["known"]
        detail = f"mean of {group['known']:,} launches" + (f" ({missing:,} without a value)" if missing else "")
        if group["known"]:
            detail += f", {group['least']:g} to {group['most']:g}"
        detail = f"{source.detail}; {detail}" if source.detail else detail
        return replace(record, provenance=replace(source, detail=detail))

    def metric(self, row: sqlite3.Row) -> Metric:
        return Metric(
            metric=row["metric"],
            value=number(row["value"]),
            unit=row["unit"],
            provenance=self.provenances[row["provenance"]],
            operation=row["operation"],
            buffer=row["buffer"],
            access=row["access"],
            launch=row["launch"],
            flag=row["flag"],
        )
