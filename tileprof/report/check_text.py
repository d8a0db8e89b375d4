"""Verdicts in Markdown, for a job's summary, and in JSON, for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from tileprof.analyse.verdicts import BETTER, CHANGED, FAIL, OPEN, PASS, RETRY, Verdict
from tileprof.report.markdown import cut, escape, table
from tileprof.store.codec import finite
from tileprof.store.records import Run

FORMAT = 1

_WORDS = {
    FAIL: "failed",
    RETRY: "to measure again",
    OPEN: "not judged",
    BETTER: "better",
    CHANGED: "changed",
    PASS: "as before or within limits",
}
_HEADINGS = {
    FAIL: "Failed",
    RETRY: "Too noisy to say",
    BETTER: "Better",
    CHANGED: "Different, and neither better nor worse",
    OPEN: "Not judged",
}


def headline(verdicts: Sequence[Verdict]) -> str:
    """``2 failed, 1 better, 120 as before or within limits; 24 cases ended well``.

    That a case ended well is no comparison: where nothing else was judged, it says so.
    """
    ended = sum(verdict.kind == "status" and verdict.outcome == PASS for verdict in verdicts)
    counts = Counter(verdict.outcome for verdict in verdicts)
    counts[PASS] -= ended
    judged = ", ".join(f"{counts[outcome]:,} {word}" for outcome, word in _WORDS.items() if counts[outcome])
    if all(verdict.kind == "status" for verdict in verdicts):
        nothing = "nothing to compare: the workload has no checks, and there is no baseline"
        judged = f"{judged}, {nothing}" if judged else nothing
    return f"{judged}; {ended:,} case{'s' if ended != 1 else ''} ended well" if ended else judged


def render(run: Run, verdicts: Sequence[Verdict]) -> str:
    """The verdicts in Markdown, worst first; what passed is only counted."""
    failed = any(verdict.outcome == FAIL for verdict in verdicts)
    unsure = any(verdict.outcome == RETRY for verdict in verdicts)
    word = "failed" if failed else "cannot say: measure again" if unsure else "passed"
    parts = [f"# {escape(run.name)}: {word}", f"**{headline(verdicts)}**"]
    for outcome, heading in _HEADINGS.items():
        found = [verdict for verdict in verdicts if verdict.outcome == outcome]
        if not found:
            continue
        if outcome == OPEN:
            reasons: dict[str, list[str]] = {}
            for verdict in found:
                reasons.setdefault(verdict.message, []).append(verdict.case)
            lines = [f"- {escape(reason, 300)} ({_cases(cases)})" for reason, cases in reasons.items()]
            parts.append(f"## {heading}\n\n" + cut(lines))
        else:
            rows = [[escape(v.case, 100), escape(v.metric), escape(v.message, 300)] for v in found]
            parts.append(f"## {heading}\n\n" + table(["case", "figure", "what"], rows))
    return "\n\n".join(parts) + "\n"


def _cases(cases: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(cases))
    return escape(distinct[0], 100) if len(distinct) == 1 else f"{len(distinct):,} cases"


def to_json(run: Run, verdicts: Sequence[Verdict], status: int) -> str:
    """The verdicts as JSON: ``format``, ``run``, ``exit_status`` and a list of records."""
    record = {
        "format": FORMAT,
        "run": run.name,
        "started": run.started,
        "exit_status": status,
        "verdicts": [finite(asdict(verdict)) for verdict in verdicts],
    }
    return json.dumps(record, indent=1, allow_nan=False) + "\n"
