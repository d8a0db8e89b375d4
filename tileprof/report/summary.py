"""The run in Markdown: what a pull request or a job summary shows.  Short; the page has everything else."""

from __future__ import annotations

from collections.abc import Sequence

from tileprof.analyse.conflicts import ConflictRow, conflict_rows
from tileprof.analyse.diagnosis import diagnose
from tileprof.analyse.findings import Finding, grouped
from tileprof.analyse.labels import targets, variant_labels
from tileprof.analyse.roofline import Point, rooflines
from tileprof.report import numbers, overview
from tileprof.report.markdown import cut, escape, table
from tileprof.report.words import ACCESSES, words
from tileprof.store.records import CaseResult, Run

LONGEST = 60_000
"""Characters; a comment on a pull request holds 65,536."""


def render(run: Run, findings: Sequence[Finding] | None = None) -> str:
    """Markdown of a run: verdict, times, conflicts, what failed and what could not be measured.

    Names are escaped; tables are cut at :data:`MOST_ROWS` rows and the text at :data:`LONGEST` characters, and both say so.
    """
    labels = variant_labels(run.cases)
    found = diagnose(run) if findings is None else findings
    points = {point.case.id: point for roof in rooflines(run) for point in roof.points}
    parts = [
        _head(run),
        _times(run, labels, points),
        _findings(found, labels),
        _conflicts(run, labels),
        _suggestions(run, labels),
        _failures(run, labels),
        _unavailable(run),
        f"<sub>tileprof {escape(run.version)}; figures with a provenance stand in index.html.</sub>",
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    if len(text) <= LONGEST:
        return text
    note = "\n\n*Cut here: the whole summary is in index.html.*\n"
    return text[: LONGEST - len(note)].rsplit("\n", 1)[0] + note


def _head(run: Run) -> str:
    counts = ", ".join(f"{status.count} {status.word}" for status in overview.status_counts(run)) or "no cases"
    lines = [f"# {escape(run.name)}", ""]
    if run.description:
        lines += [escape(run.description, 400), ""]
    lines.append(f"**{counts}** · {overview.wall_time(run)} · {escape(run.started)}")
    return "\n".join(lines)


def _times(run: Run, labels: dict[str, str], points: dict[str, Point]) -> str:
    """Variants by targets: the measured time and its share of attainable, or how the case ended."""
    names = list(targets(run.cases))
    rows: dict[str, dict[str, str]] = {}
    for case in run.cases:
        label = labels[case.id] if labels[case.id] != case.id else case.id.rpartition("@")[0] or case.id
        rows.setdefault(label, {})[case.target_name] = _outcome(case, points.get(case.id))
    if not rows:
        return ""
    lines = [[escape(label, 80), *(cells.get(name, "") for name in names)] for label, cells in rows.items()]
    return "## Times (measured)\n\n" + table(["variant", *(escape(name, 40) for name in names)], lines)


def _outcome(case: CaseResult, point: Point | None) -> str:
    if case.timing is None or not case.timing.samples_ns:
        return overview.status_word(case.status)
    text = f"**{numbers.duration(case.timing.median_ns)}**"
    if point is not None and point.achieved is not None:
        text += f", {numbers.si(point.achieved, 'FLOP/s')}"
        if point.share is not None:
            text += f", {overview.attained(point.share)}"
    return text if case.status == "ok" else f"{text} ({overview.status_word(case.status)})"


def _conflicts(run: Run, labels: dict[str, str]) -> str:
    """Accesses with conflicts, or where simulation and measurement differ; worst first."""
    found: list[tuple[float, list[str]]] = []
    for case in run.cases:
        for row in conflict_rows(case):
            weight = max((_value(row, side) or 0 for side in ("simulated", "measured")), default=0)
            if weight > 0 or row.difference:
                found.append((weight, _conflict_cells(case, row, labels[case.id])))
    if not found:
        return ""
    found.sort(key=lambda pair: -pair[0])
    header = ["case", "operation", "buffer", "access", "simulated", "measured", "difference"]
    return "## Shared-memory conflicts, a launch\n\n" + table(header, [cells for _, cells in found], numeric_from=4)


def _findings(findings: Sequence[Finding], labels: dict[str, str]) -> str:
    """What is worth changing, by estimated gain; of a rule and line only the case that would gain most."""
    lines = []
    for found, count in grouped(findings):
        gain = f"**{found.gain * 100:.0f} %** " if found.gain is not None else ""
        place = f" ({escape(found.file, 60)}:{found.line})" if found.line is not None else ""
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(
            f"- {gain}{escape(found.title)}{place}, {escape(labels.get(found.case, found.case), 80)} @ "
            f"{escape(found.target_name, 30)}{more}, {found.confidence}: {escape(found.evidence[0], 200)}. "
            f"{escape(found.advice, 400)}"
        )
    return "## What to change, by estimated gain\n\n" + cut(lines) if lines else ""


def _suggestions(run: Run, labels: dict[str, str]) -> str:
    """Paddings and swizzles that remove conflicts, each once with the cases it is for."""
    texts: dict[str, list[str]] = {}
    for case in run.cases:
        for suggestion in case.suggestions:
            texts.setdefault(suggestion.text, []).append(f"{labels[case.id]} @ {case.target_name}")
    lines = [
        f"- {escape(text, 400)} ({escape(cases[0], 80)}{f' and {len(cases) - 1} more' if len(cases) > 1 else ''})"
        for text, cases in texts.items()
    ]
    return "## Layouts without conflicts, found by counting again\n\n" + cut(lines) if lines else ""


def _value(row: ConflictRow, side: str) -> float | None:
    conflicts = (row.simulated if side == "simulated" else row.measured).conflicts
    return None if conflicts is None else conflicts.value


def _conflict_cells(case: CaseResult, row: ConflictRow, label: str) -> list[str]:
    place = f" (line {row.line})" if row.line is not None else ""
    memory = f" ({words(case.target).shared})" if words(case.target).vendor == "AMD" else ""
    access = ACCESSES.get(row.access or "", row.access or numbers.ABSENT)
    if row.rule != "known" and row.simulated.exists:
        access += f", rule {row.rule}"
    return [
        f"{escape(label, 60)} @ {escape(case.target_name, 30)}",
        escape(row.label, 60) + place,
        escape(row.buffer or "all buffers", 40) + memory,
        escape(access),
        numbers.count(_value(row, "simulated")),
        numbers.count(_value(row, "measured")),
        numbers.difference(row.difference),
    ]


def _failures(run: Run, labels: dict[str, str]) -> str:
    lines = []
    for label, target, word, reason in overview.failures(run, labels):
        first = reason.strip().splitlines()[0]
        lines.append(f"- **{escape(label, 80)}** on {escape(target, 40)}: {word}. {escape(first, 300)}")
    return "## Failed\n\n" + cut(lines) if lines else ""


def _unavailable(run: Run) -> str:
    lines = []
    for missing in run.unavailable:
        remedy = f" *{escape(missing.remedy)}*" if missing.remedy else ""
        lines.append(f"- {escape(missing.what)} on {escape(missing.target, 40)}: {escape(missing.why)}.{remedy}")
    return "## Not measured\n\n" + cut(lines) if lines else ""
