"""Generated code and assembly for the page: deflated, since a listing is larger than all figures, and opened when wanted.

A page holds as much code as its budget allows; the bundles have the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tileprof.analyse.best import FASTEST, NEITHER, marks
from tileprof.analyse.listings import CodeLine, assembly_lines, generated_lines
from tileprof.report.packing import pack
from tileprof.store.records import CaseResult, Run

BUDGET = 60_000
"""Bytes of code in a page of many cases, as they stand there; with them the quickstart's page keeps below 300 kB."""

BUDGET_OF_FEW, FEW = 150_000, 4
"""The same in a page of so few cases that it was made to look at their code."""

MOST_TRIED = 60
"""Cases whose code is packed to see whether it fits; of thousands that would take longer than all the rest of the page."""

LONGEST = 400
"""Characters of a line of code; the rest of a longer one says nothing to a reader."""


def code_data(run: Run) -> dict[str, Any]:
    """``cases``: code by the case's number in the run; ``left`` counts those of whose code not all is here.

    The assembly of the fastest cases is taken first and then the shortest texts, so that as many as can be are here: a small
    kernel's listings take a hundredth of the room of what LLVM is given for an unrolled one.
    """
    times = {case.id: case.timing.median_ns for case in run.cases if case.timing is not None and case.timing.samples_ns}
    best = marks(run.cases, times)
    with_code = [index for index, case in enumerate(run.cases) if case.assembly or case.generated]
    with_code.sort(key=lambda index: -best.get(run.cases[index].id, NEITHER))  # the page begins with these, too
    texts = [
        (best.get(run.cases[index].id) != FASTEST or name != "assembly", len(text), index, name, text)
        for index in with_code[:MOST_TRIED]
        for name, text in _case(run.cases[index]).items()
    ]
    found: dict[int, dict[str, str]] = {}
    room = BUDGET_OF_FEW if len(run.cases) <= FEW else BUDGET
    incomplete = set(with_code[MOST_TRIED:])
    for _, size, index, name, text in sorted(texts):
        if size <= room:
            found.setdefault(index, {})[name] = text
            room -= size
        else:
            incomplete.add(index)
    return {"cases": {str(index): found[index] for index in with_code if index in found}, "left": len(incomplete)}


def _case(case: CaseResult) -> dict[str, str]:
    parts = {"assembly": assembly_lines(case.assembly), "generated": generated_lines(case.generated)}
    return {name: pack_lines(lines) for name, lines in parts.items() if lines}


def pack_lines(lines: Sequence[CodeLine]) -> str:
    """Lines as base64 of deflated JSON: the text, and runs of [author's line, how many lines of code]."""
    runs: list[list[int | None]] = []
    for line in lines:
        if runs and runs[-1][0] == line.line:
            runs[-1][1] = (runs[-1][1] or 0) + 1
        else:
            runs.append([line.line, 1])
    return pack({"text": "\n".join(line.text[:LONGEST] for line in lines), "runs": runs})
