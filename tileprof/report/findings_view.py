"""Findings on the page: one entry a rule, place and target, the case that loses most first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tileprof.analyse.diagnosis import TITLES
from tileprof.analyse.findings import Finding
from tileprof.report import numbers
from tileprof.report.text import shorten

MOST = 60
"""Entries before the rest is only counted."""

MOST_CASES = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding as shown.  ``width`` is the gain's bar in per cent; ``cases`` are (label, gain) of all that have it."""

    rule: str
    rule_title: str
    title: str
    place: str
    target_name: str
    gain: str
    width: int
    saved: str
    confidence: str
    basis: str
    evidence: tuple[str, ...]
    advice: str
    label: str
    cases: tuple[tuple[str, str], ...]
    more: int


@dataclass(frozen=True, slots=True)
class FindingsView:
    """All entries, and how many there are beyond those shown."""

    entries: tuple[Entry, ...]
    hidden: int


def view(findings: Sequence[Finding], labels: dict[str, str]) -> FindingsView:
    """Findings in their order, those at one place of one target together."""
    groups: dict[tuple[str, str, str, int | None, str], list[Finding]] = {}
    for found in findings:
        title = found.title if found.rule == "bank-conflicts" else ""
        groups.setdefault((found.rule, found.target_name, found.file, found.line, title), []).append(found)
    ordered = list(groups.values())
    return FindingsView(tuple(_entry(found, labels) for found in ordered[:MOST]), max(0, len(ordered) - MOST))


def gain_text(gain: float | None) -> str:
    """``60 %``, or a dash where there is no estimate."""
    return numbers.ABSENT if gain is None else f"{gain * 100:.0f}{numbers.NO_BREAK}%"


def _saved(found: Finding) -> str:
    if not found.saved_ns:
        return ""
    word = "of the prediction" if found.predicted else "saved"
    return f"{numbers.duration(found.saved_ns)} {word}"


def _entry(found: Sequence[Finding], labels: dict[str, str]) -> Entry:
    worst = found[0]
    place = f"{shorten(worst.file, 60)}:{worst.line}" if worst.file and worst.line is not None else ""
    return Entry(
        rule=worst.rule,
        rule_title=TITLES.get(worst.rule, worst.rule),
        title=worst.title,
        place=place,
        target_name=worst.target_name,
        gain=gain_text(worst.gain),
        width=round(100 * min(1.0, worst.gain or 0.0)),
        saved=_saved(worst),
        confidence=worst.confidence,
        basis=worst.basis,
        evidence=worst.evidence,
        advice=worst.advice,
        label=labels.get(worst.case, worst.case),
        cases=tuple((labels.get(f.case, f.case), gain_text(f.gain)) for f in found[:MOST_CASES])
        if len(found) > 1
        else (),
        more=max(0, len(found) - MOST_CASES),
    )
