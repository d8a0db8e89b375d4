"""Writes all files of a run that are rendered from its store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tileprof.analyse.diagnosis import diagnose
from tileprof.analyse.findings import Finding
from tileprof.analyse.verdicts import verdicts
from tileprof.report import folded, html, junit, result, sarif, speedscope, summary, table, trace
from tileprof.report.writing import replace_file
from tileprof.store.records import Run

RENDERERS: dict[str, Callable[[Run, Sequence[Finding]], str]] = {
    "result.json": lambda run, _: result.render(run),
    "metrics.csv": lambda run, _: table.render(run),
    "summary.md": summary.render,
    "junit.xml": lambda run, _: junit.render(run, verdicts(run)),
    "findings.sarif": sarif.render,
    "flame.speedscope.json": lambda run, _: speedscope.render(run),
    "flame.folded": lambda run, _: folded.render(run),
    "trace.json": lambda run, _: trace.render(run),
    "index.html": html.render,
}
"""File name -> what renders it.  The data come first: they are there even where a page cannot be drawn."""


def write_files(run: Run, directory: Path) -> list[Path]:
    """Render every file into ``directory``, replacing older ones in one step each.  Raises StoreError where it cannot write."""
    findings = diagnose(run)
    return [replace_file(directory / name, render(run, findings)) for name, render in RENDERERS.items()]
