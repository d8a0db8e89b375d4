"""findings.sarif: findings with a source line, for code scanning (SARIF 2.1.0).

One result a rule, place and target: of the cases that have it the one that loses most speaks, and the others are counted.  Findings
without a line have no place to be shown at, and are left to the report.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from tileprof.analyse.diagnosis import TITLES
from tileprof.analyse.findings import Finding
from tileprof.store.records import Run

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST = 5000
"""Results that GitHub keeps of a run."""

WORTH_A_WARNING = 0.1
"""Share of the time from which a finding is a warning and not a note."""


def render(run: Run, findings: Sequence[Finding]) -> str:
    """The file's text, findings in the order given, most valuable first."""
    groups: dict[tuple[str, str, int, str], list[Finding]] = {}
    for finding in findings:
        if finding.file and finding.line is not None and finding.line > 0:
            groups.setdefault((finding.rule, finding.file, finding.line, finding.target_name), []).append(finding)
    used = sorted({rule for rule, *_ in groups})
    results = [_result(found, used.index(found[0].rule)) for found in list(groups.values())[:MOST]]
    driver = {
        "name": "tileprof",
        "semanticVersion": run.version,
        "rules": [{"id": rule, "shortDescription": {"text": TITLES.get(rule, rule)}} for rule in used],
    }
    record = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def _result(found: Sequence[Finding], index: int) -> dict[str, Any]:
    worst = found[0]
    text = f"{worst.title}: {'; '.join(worst.evidence)}. {worst.advice}."
    if worst.gain is not None:
        text += f" Estimated gain {worst.gain * 100:.0f} % of the time ({worst.confidence}: {worst.basis})."
    text += f" Case {worst.case}" + (f", and {len(found) - 1} more." if len(found) > 1 else ".")
    identity = f"{worst.rule}|{worst.file}|{worst.line}|{worst.target_name}"
    return {
        "ruleId": worst.rule,
        "ruleIndex": index,
        "level": "warning" if (worst.gain or 0) >= WORTH_A_WARNING else "note",
        "message": {"text": text[:4000]},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(worst.file.lstrip("/"), errors="replace")},
                    "region": {"startLine": worst.line},
                }
            }
        ],
        "partialFingerprints": {"tileprof/v1": hashlib.sha256(identity.encode(errors="replace")).hexdigest()},
        "properties": {
            "target": worst.target_name,
            "cases": len(found),
            "gain": worst.gain,
            "confidence": worst.confidence,
        },
    }
