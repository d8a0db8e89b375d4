"""The run's SQLite file as such: its tables, its version, how it is opened, and its errors in the user's words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tileprof.errors import StoreError

SCHEMA_VERSION = 6
"""Of the tables below; a file of a later version is refused."""

APPLICATION_ID = 0x54505246  # "TPRF", in the header of every file of ours

NO_SPACE_REMEDY = "free some space and continue with --resume, or choose another place with -o"
"""What to do when a run directory cannot be written any more."""

TABLES = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cases (
  number INTEGER PRIMARY KEY, position INTEGER NOT NULL, id TEXT NOT NULL UNIQUE, hash TEXT NOT NULL,
  kernel TEXT NOT NULL, target_name TEXT NOT NULL, target TEXT NOT NULL,
  args TEXT NOT NULL, shape TEXT NOT NULL, tiles TEXT NOT NULL,
  status TEXT NOT NULL, reason TEXT NOT NULL, metadata TEXT, bundle TEXT, timing TEXT, numerics TEXT,
  notes TEXT NOT NULL, seconds REAL NOT NULL, suggestions TEXT NOT NULL DEFAULT '[]',
  checks TEXT NOT NULL DEFAULT '{}', interleaved TEXT, sizes TEXT NOT NULL DEFAULT '{}');
CREATE TABLE operations (
  case_number INTEGER NOT NULL REFERENCES cases ON DELETE CASCADE, operation INTEGER NOT NULL, kind TEXT NOT NULL,
  label TEXT NOT NULL, file TEXT, line INTEGER, record TEXT NOT NULL,
  PRIMARY KEY (case_number, operation)) WITHOUT ROWID;
CREATE TABLE texts (digest TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE case_texts (
  case_number INTEGER NOT NULL REFERENCES cases ON DELETE CASCADE, kind TEXT NOT NULL, name TEXT NOT NULL,
  digest TEXT NOT NULL REFERENCES texts, PRIMARY KEY (case_number, kind, name)) WITHOUT ROWID;
CREATE TABLE provenances (
  number INTEGER PRIMARY KEY, kind TEXT NOT NULL, tool TEXT NOT NULL, version TEXT NOT NULL, detail TEXT NOT NULL,
  UNIQUE (kind, tool, version, detail));
CREATE TABLE ceilings (
  target TEXT NOT NULL, quantity TEXT NOT NULL, unit_class TEXT NOT NULL, record TEXT NOT NULL,
  PRIMARY KEY (target, quantity, unit_class));
CREATE TABLE unavailable (record TEXT NOT NULL UNIQUE);
"""

# ``number`` is the place of a metric in its case; measurements of one series lie together, so that a question about it is quick.
# What a number is, apart from its launch, is said once: profiles have the same hundred metrics for thousands of launches.
METRICS = """
CREATE TABLE series (
  series INTEGER PRIMARY KEY, metric TEXT NOT NULL, unit TEXT NOT NULL, provenance INTEGER NOT NULL REFERENCES provenances,
  operation INTEGER, buffer TEXT, access TEXT, flag TEXT);
CREATE TABLE measurements (
  case_number INTEGER NOT NULL REFERENCES cases ON DELETE CASCADE, series INTEGER NOT NULL REFERENCES series,
  number INTEGER NOT NULL, launch INTEGER, value REAL, PRIMARY KEY (case_number, series, number)) WITHOUT ROWID;
CREATE VIEW metrics AS
  SELECT number, case_number, metric, value, unit, provenance, operation, buffer, access, launch, flag
  FROM measurements JOIN series USING (series);
"""

UPGRADES = {
    1: "ALTER TABLE cases ADD COLUMN suggestions TEXT NOT NULL DEFAULT '[]';",
    2: "ALTER TABLE metrics RENAME TO old; DROP INDEX metrics_by_case;"
    + METRICS
    + """
INSERT INTO series (metric, unit, provenance, operation, buffer, access, flag)
  SELECT DISTINCT metric, unit, provenance, operation, buffer, access, flag FROM old;
INSERT INTO measurements (case_number, series, number, launch, value)
  SELECT o.case_number, s.series, o.rowid, o.launch, o.value FROM old o JOIN series s
  ON s.metric = o.metric AND s.unit = o.unit AND s.provenance = o.provenance AND s.operation IS o.operation
    AND s.buffer IS o.buffer AND s.access IS o.access AND s.flag IS o.flag;
DROP TABLE old;
""",
    3: "ALTER TABLE cases ADD COLUMN checks TEXT NOT NULL DEFAULT '{}'; ALTER TABLE cases ADD COLUMN interleaved TEXT;",
    4: "",  # the header has the targets of the run
    5: "ALTER TABLE cases ADD COLUMN sizes TEXT NOT NULL DEFAULT '{}';",
}
"""What makes a file of version n one of version n + 1, before it is written on; reading does without."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors inside the block as StoreError with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        message, remedy = f"{path}: {text}", None
        if "full" in text or "I/O error" in text:
            message, remedy = f"{path} cannot grow: {text}", NO_SPACE_REMEDY
        elif "readonly" in text or "unable to open" in text:
            message, remedy = f"{path} cannot be written: {text}", "check its directory, or choose another with -o"
        elif "locked" in text:
            message, remedy = f"{path} is in use by another process", "wait for it, or choose another with -o"
        elif "not a database" in text or "malformed" in text or "no such table" in text:
            message, remedy = f"{path} is damaged, or no run of tileprof: {text}", "run again with --force"
        raise StoreError(message, remedy=remedy) from error


def connect(path: Path, *, most_pages: int | None = None) -> sqlite3.Connection:
    """A connection for writing, with write-ahead logging where the file system can, else another journal.

    ``most_pages`` limits the file's size in pages of 4 KiB, as a full disk would.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA busy_timeout = 2000")
        if most_pages is not None:
            connection.execute(f"PRAGMA max_page_count = {int(most_pages)}")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write; the caller closes it.  Raises StoreError unless it is a store that is known."""
    if not path.is_file():
        raise StoreError(f"there is no run in {path.parent}", remedy="name a directory that `tileprof run` wrote")
    with translated(path):
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        except BaseException:
            connection.close()
            raise
    if application == APPLICATION_ID and version in (*UPGRADES, SCHEMA_VERSION):
        return connection
    connection.close()
    if application != APPLICATION_ID:
        raise StoreError(f"{path} is no run of tileprof")
    raise StoreError(
        f"{path} has version {version} of the store, and this tileprof reads up to version {SCHEMA_VERSION}",
        remedy="use the tileprof that wrote it, or run the workload again",
    )
