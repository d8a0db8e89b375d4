"""One SQLite file a run: cases, operations, metrics, provenance.  Knows no profiler's format."""
