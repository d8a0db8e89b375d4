"""The summary that rocprofv3 prints with ``-S``: tables of kernels and calls with their times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tileprof.collect.csv_rows import number, whole
from tileprof.collect.profile import CallStatistic, ForeignProfile
from tileprof.collect.rocprofv3_csv import summaries
from tileprof.collect.scrub import plain
from tileprof.errors import ProfileFormatError

TOOL = "rocprofv3"
_KERNELS = "KERNEL_DISPATCH"
_COLUMNS = {
    "NAME": "name", "DOMAIN": "domain", "CALLS": "calls", "DURATION (nsec)": "totaldurationns", "AVERAGE (nsec)": "averagens",
    "MIN (nsec)": "minns", "MAX (nsec)": "maxns",
}  # fmt: skip


def is_summary(text: str) -> bool:
    """Whether a text is such a summary."""
    return re.search(r"^ROCPROFV3 .*SUMMARY:", plain(text), re.MULTILINE) is not None


def read(text: str, path: Path) -> ForeignProfile:
    """The tables in a text.  A row that several tables have, by domain and together, counts once."""
    rows: dict[tuple[str, str], Mapping[str, str]] = {}
    header: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not header:
            header = cells
        elif not set(line) <= set("|-: ") and len(cells) == len(header):
            row = {_COLUMNS.get(name, name): cell for name, cell in zip(header, cells, strict=True)}
            if row.get("domain") and row.get("name"):
                rows.setdefault((row["domain"], row["name"]), row)
    if not rows:
        raise ProfileFormatError(
            f"{path} is a summary of rocprofv3 without rows in nanoseconds", remedy="rocprofv3 -S -u nsec"
        )
    kernels = [dict(row) for (domain, _), row in rows.items() if domain == _KERNELS]
    calls = tuple(
        CallStatistic(domain, name, whole(row["calls"]) or 0, number(row["totaldurationns"]) or 0.0)
        for (domain, name), row in rows.items()
        if domain != _KERNELS
    )
    return ForeignProfile("rocprofv3 summary", TOOL, "", tuple(summaries(kernels, "hip", TOOL, 0)), calls=calls)
