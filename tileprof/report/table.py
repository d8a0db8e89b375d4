"""metrics.csv: every metric of a run as one row, for spreadsheets and pandas."""

from __future__ import annotations

import csv
import io

from tileprof.store.codec import finite
from tileprof.store.records import Run

COLUMNS = (
    "case", "kernel", "target", "status", "launch", "operation", "line", "buffer", "access", "metric", "value", "unit",
    "provenance", "tool", "version", "detail", "flag",
)  # fmt: skip


def render(run: Run) -> str:
    """The table as CSV text with a header row; what is not known is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for case in run.cases:
        lines = {operation["id"]: operation["location"]["line"] for operation in case.operations}
        for metric in case.metrics:
            source = metric.provenance
            line = lines.get(metric.operation) if metric.operation is not None else None
            writer.writerow(
                [
                    case.id, case.kernel, case.target_name, case.status, metric.launch, metric.operation, line,
                    metric.buffer, metric.access, metric.metric, finite(metric.value), metric.unit,
                    source.kind, source.tool, source.version, source.detail, metric.flag,
                ]
            )  # fmt: skip
    return text.getvalue()
