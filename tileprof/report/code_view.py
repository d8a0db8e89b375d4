"""Generated code and assembly for the page: deflated, since a listing is larger than all figures, and opened when wanted.

A page holds as many cases' code as its budget allows, the fastest of each problem first; bundles have the rest.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

from tileprof.analyse.best import marks
from tileprof.analyse.listings import CodeLine, assembly_lines, generated_lines
from tileprof.store.records import CaseResult, Run

BUDGET = 500_000
"""Bytes of code in a page, as they stand there."""

LONGEST = 400
"""Characters of a line of code; the rest of a longer one says nothing to a reader."""


def code_data(run: Run) -> dict[str, Any]:
    """``cases``: code by the case's number in the run; ``left`` counts those for which there was no room."""
    times = {case.id: case.timing.median_ns for case in run.cases if case.timing is not None and case.timing.samples_ns}
    best = marks(run.cases, times)
    order = sorted(range(len(run.cases)), key=lambda index: (-best.get(run.cases[index].id, 0), index))
    found: dict[str, dict[str, str]] = {}
    left, spent = 0, 0
    for index in order:
        case = run.cases[index]
        if not case.assembly and not case.generated:
            continue
        if spent > BUDGET:
            left += 1
            continue
        packed = _case(case)
        spent += sum(len(text) for text in packed.values())
        if packed:
            found[str(index)] = packed
    return {"cases": found, "left": left}


def _case(case: CaseResult) -> dict[str, str]:
    parts = {"assembly": assembly_lines(case.assembly), "generated": generated_lines(case.generated)}
    return {name: pack(lines) for name, lines in parts.items() if lines}


def pack(lines: Sequence[CodeLine]) -> str:
    """Lines as base64 of deflated JSON: the text, and runs of [author's line, how many lines of code]."""
    runs: list[list[int | None]] = []
    for line in lines:
        if runs and runs[-1][0] == line.line:
            runs[-1][1] = (runs[-1][1] or 0) + 1
        else:
            runs.append([line.line, 1])
    text = "\n".join(line.text[:LONGEST] for line in lines)
    record = json.dumps({"text": text, "runs": runs}, separators=(",", ":"), ensure_ascii=True)
    return base64.b64encode(zlib.compress(record.encode(), 6)).decode()
