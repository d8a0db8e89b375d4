"""Findings: the record, and how they are ranked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tileprof.analyse.bounds import Facts

SURE, LIKELY, PERHAPS = "sure", "likely", "perhaps"
"""How sure a finding is: hardware measured it; a settled rule or model says so; an indication."""

LEAST_GAIN = 0.01
"""Findings that are estimated to save less of a measured time are left out."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of one case, or what it is limited by.

    ``gain`` is the share of the case's time that the change is estimated to save (None: no estimate), ``basis`` how that was
    estimated, ``predicted`` whether the time itself is a prediction.  ``evidence`` are figures in words, ``advice`` what to
    change.  ``operation``, ``file`` and ``line`` say where, None for the kernel as a whole.
    """

    rule: str
    case: str
    target_name: str
    title: str
    evidence: tuple[str, ...]
    advice: str
    confidence: str
    gain: float | None
    basis: str
    saved_ns: float | None = None
    operation: int | None = None
    file: str = ""
    line: int | None = None
    predicted: bool = False


def finding(
    facts: Facts,
    rule: str,
    title: str,
    evidence: Iterable[str],
    advice: str,
    confidence: str,
    gain: float | None,
    basis: str,
    operation: int | None = None,
) -> Finding:
    """A finding on a case, at the place of an operation or of the kernel."""
    operations = facts.case.operations
    record = next((o for o in operations if o["id"] == operation), None) if operation is not None else None
    where = (record or (operations[0] if operations else None) or {}).get("location") or {}
    if gain == 0 and not facts.measured:
        gain = None  # the prediction has another limit; that is no estimate of this one
    saved = gain * facts.time_ns if gain is not None and facts.time_ns is not None else None
    return Finding(
        rule, facts.case.id, facts.case.target_name, title, tuple(evidence), advice, confidence, gain, basis, saved,
        operation if record is not None else None, str(where.get("file") or ""), where.get("line"),
        not facts.measured,
    )  # fmt: skip


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """By estimated gain, largest first; those without an estimate last; surer ones before others of equal gain."""
    order = {SURE: 0, LIKELY: 1, PERHAPS: 2}
    return sorted(findings, key=lambda f: (f.gain is None, -(f.gain or 0.0), order[f.confidence], f.rule, f.line or 0))


def grouped(findings: Iterable[Finding]) -> list[tuple[Finding, int]]:
    """Of each rule, target and source line the first finding, and of how many cases it is; in the order of the findings."""
    found: dict[tuple[str, str, str, int | None], list[Finding]] = {}
    for each in findings:
        found.setdefault((each.rule, each.target_name, each.file, each.line), []).append(each)
    return [(group[0], len({each.case for each in group})) for group in found.values()]
