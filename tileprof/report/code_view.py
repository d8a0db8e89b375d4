"""Generated code and assembly for the page: deflated, since a listing is larger than all figures, and opened when wanted.

A page holds as much code as it has room for; the bundles have the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tileprof.analyse.best import problem
from tileprof.analyse.listings import CodeLine, assembly_lines, generated_lines
from tileprof.report.packing import pack
from tileprof.store.records import CaseResult, Run

LEAST_ROOM, MOST_ROOM = 30_000, 150_000
"""Bytes of code in a page, as they stand there: what room the page leaves, within these."""

MOST_TRIED = 60
"""Cases whose code is packed to see whether it fits; of thousands that would take longer than all the rest of the page."""

LONGEST = 400
"""Characters of a line of code; the rest of a longer one says nothing to a reader."""


def code_data(run: Run, room: int) -> dict[str, Any]:
    """``cases``: code by the case's number in the run; ``left`` counts those of whose code not all is here.

    The assembly of the fastest case of each problem is taken first and then the shortest texts, so that as many as can be are here:
    a small kernel's listings take a hundredth of the room of what LLVM is given for an unrolled one.
    """
    with_code = [index for index, case in enumerate(run.cases) if case.assembly or case.generated]
    first = _fastest([run.cases[index] for index in with_code])
    with_code.sort(key=lambda index: run.cases[index].id not in first)  # the page begins with these, too
    texts = [
        (run.cases[index].id not in first or name != "assembly", len(text), index, name, text)
        for index in with_code[:MOST_TRIED]
        for name, text in _case(run.cases[index]).items()
    ]
    found: dict[int, dict[str, str]] = {}
    left = min(MOST_ROOM, max(LEAST_ROOM, room))
    incomplete = set(with_code[MOST_TRIED:])
    for _, size, index, name, text in sorted(texts):
        if size <= left:
            found.setdefault(index, {})[name] = text
            left -= size
        else:
            incomplete.add(index)
    return {"cases": {str(index): found[index] for index in with_code if index in found}, "left": len(incomplete)}


def _fastest(cases: Sequence[CaseResult]) -> set[str]:
    """Ids of the fastest case of each problem; the only one of its problem is that, too."""
    timed = [case for case in cases if case.timing is not None and case.timing.samples_ns]
    best: dict[str, tuple[float, str]] = {}
    for case in timed:
        if case.timing is not None:
            entry = (case.timing.median_ns, case.id)
            best[problem(case)] = min(best.get(problem(case), entry), entry)
    return {id for _, id in best.values()}


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
