"""The author's source with figures by line: code rendered once, figures of the chosen case beside it."""

from __future__ import annotations

import io
import keyword
import math
import tokenize
from dataclasses import dataclass
from typing import Any

from tileprof.analyse.labels import targets
from tileprof.analyse.lines import LINE_METRICS, LineFigures, LineMetric, line_figures
from tileprof.report import numbers
from tileprof.report.cells import ABSENT, DOUBTFUL, Cell, ProvenanceTable
from tileprof.report.words import words
from tileprof.store.records import CaseResult, Run

HEAT_STEPS = 6

MOST_CASES = 1000
"""Cases of a file whose figures can be chosen, the fastest."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a line; ``kind`` is a CSS class: k keyword, s string, c comment, n number, f decorator, empty for the rest."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of code, and whether any case has figures on it."""

    number: int
    tokens: tuple[Token, ...]
    active: bool
    cells: tuple[tuple[Cell, int], ...]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One source text with the cases compiled from it.

    ``quantities`` are the headings above the columns with the number of columns under each; ``shown`` is the key of the case
    whose figures stand in the page at first.
    """

    name: str
    columns: tuple[LineMetric, ...]
    quantities: tuple[tuple[str, int], ...]
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    shown: str
    shown_label: str
    lines: tuple[SourceLine, ...]
    data: dict[str, Any]
    hidden: int = 0


def source_files(run: Run, labels: dict[str, str], provenances: ProvenanceTable) -> list[SourceFile]:
    """Distinct source texts of the run; the same file in two versions is two entries."""
    keys = {case.id: str(index) for index, case in enumerate(run.cases)}
    users: dict[tuple[str, str], list[CaseResult]] = {}
    for case in run.cases:
        for name, text in case.sources.items():
            users.setdefault((name, text), []).append(case)
    files = []
    for (name, text), cases in users.items():
        found = _file(name, text, cases, keys, labels, provenances, targets(run.cases))
        if found is not None:
            files.append(found)
    return files


def _file(
    name: str,
    text: str,
    cases: list[CaseResult],
    keys: dict[str, str],
    labels: dict[str, str],
    provenances: ProvenanceTable,
    names: dict[str, str],
) -> SourceFile | None:
    hidden = max(0, len(cases) - MOST_CASES)
    if hidden:
        cases = sorted(cases, key=_time)[:MOST_CASES]
    figures = {case.id: {line.line: line for line in line_figures(case) if line.file == name} for case in cases}
    with_figures = [case for case in cases if figures[case.id]]
    if not with_figures:
        return None
    ids = {key for by_line in figures.values() for line in by_line.values() for key in line.figures}
    columns = tuple(column for column in LINE_METRICS if column.id in ids)
    shown = max(with_figures, key=lambda case: sum(len(line.figures) for line in figures[case.id].values()))
    active = {number for by_line in figures.values() for number in by_line}
    lines = tuple(
        SourceLine(
            number,
            tokens,
            number in active,
            _cells(figures[shown.id], number, columns, provenances) if number in active else (),
        )
        for number, tokens in enumerate(highlight(text), start=1)
    )
    groups = tuple(
        (
            f"{target_name} · {target}",
            tuple((keys[c.id], labels[c.id]) for c in with_figures if c.target_name == target_name),
        )
        for target_name, target in names.items()
        if any(c.target_name == target_name for c in with_figures)
    )
    data = {
        "columns": [column.id for column in columns],
        "cases": {keys[case.id]: _case_data(case, figures[case.id], columns, provenances) for case in with_figures},
    }
    label = f"{labels[shown.id]} @ {shown.target_name}"
    quantities: dict[str, int] = {}
    for column in columns:
        quantities[column.label] = quantities.get(column.label, 0) + 1
    return SourceFile(name, columns, tuple(quantities.items()), groups, keys[shown.id], label, lines, data, hidden)


def _time(case: CaseResult) -> float:
    """For taking the fastest; cases without a time come last."""
    return case.timing.median_ns if case.timing is not None and case.timing.samples_ns else math.inf


def _case_data(
    case: CaseResult, by_line: dict[int, LineFigures], columns: tuple[LineMetric, ...], provenances: ProvenanceTable
) -> dict[str, Any]:
    """Lines of a case, the values of each column by line (null: not known), and each column's provenance."""
    lines = sorted(by_line)
    values: list[list[float | None] | int] = []
    sources: list[int] = []
    for column in columns:
        found = [by_line[line].figures.get(column.id) for line in lines]
        present = [figure for figure in found if figure is not None]
        values.append([None if f is None else _whole(f.value) for f in found] if present else 0)
        sources.append(provenances.number(present[0].provenance) if present else 0)
    return {"lines": lines, "values": values, "p": sources, "shared": words(case.target).shared}


def _cells(
    by_line: dict[int, LineFigures], number: int, columns: tuple[LineMetric, ...], provenances: ProvenanceTable
) -> tuple[tuple[Cell, int], ...]:
    found = []
    for column in columns:
        line = by_line.get(number)
        figure = line.figures.get(column.id) if line is not None else None
        if figure is None:
            found.append((ABSENT if line is not None else Cell(""), 0))
            continue
        top = max(other.figures[column.id].value for other in by_line.values() if column.id in other.figures)
        text = numbers.si(figure.value)
        doubt = f", flagged: {figure.flag}" if figure.flag in DOUBTFUL else ""
        cell = provenances.cell(text, figure.provenance, numbers.count(figure.value) + doubt)
        found.append((cell, heat(figure.value, top)))
    return tuple(found)


def heat(value: float, top: float) -> int:
    """0 to 6 by share of the column's largest value; the script on the page does the same."""
    if not (math.isfinite(top) and math.isfinite(value)) or top <= 0 or value <= 0:
        return 0
    return max(1, min(HEAT_STEPS, int(value / top * HEAT_STEPS + 0.5)))


def highlight(text: str) -> list[tuple[Token, ...]]:
    """Python source as coloured tokens, line by line; text that is not Python is returned plain."""
    # Lines as Python's parser counts them; str.splitlines would also split at form feeds and Unicode separators.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.removesuffix("\n").split("\n")
    kinds: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = _kind(token)
            if kind:
                _mark(kinds, lines, token.start, token.end, kind)
    except (tokenize.TokenError, SyntaxError):  # IndentationError is a SyntaxError
        return [(Token(line),) for line in lines]
    return [tuple(_pieces(line, spans)) for line, spans in zip(lines, kinds)]


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return "k" if keyword.iskeyword(token.string) else ""
    if token.type == tokenize.OP:
        return "f" if token.string == "@" and token.line.lstrip().startswith("@") else ""
    strings = {
        tokenize.STRING,
        *(getattr(tokenize, n) for n in ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END") if hasattr(tokenize, n)),
    }
    return "s" if token.type in strings else {tokenize.COMMENT: "c", tokenize.NUMBER: "n"}.get(token.type, "")


def _mark(
    kinds: list[list[tuple[int, int, str]]], lines: list[str], start: tuple[int, int], end: tuple[int, int], kind: str
) -> None:
    for row in range(start[0], min(end[0], len(lines)) + 1):
        left = start[1] if row == start[0] else 0
        right = end[1] if row == end[0] else len(lines[row - 1])
        if right > left:
            kinds[row - 1].append((left, right, kind))


def _pieces(line: str, spans: list[tuple[int, int, str]]) -> list[Token]:
    pieces, at = [], 0
    for left, right, kind in sorted(spans):
        if left < at:
            continue
        if left > at:
            pieces.append(Token(line[at:left]))
        pieces.append(Token(line[left:right], kind))
        at = right
    if at < len(line):
        pieces.append(Token(line[at:]))
    return pieces


def _whole(value: float) -> float | None:
    """JSON has no NaN and no infinity; whole numbers lose their ``.0``."""
    if not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else value
