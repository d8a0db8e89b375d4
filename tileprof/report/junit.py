"""junit.xml: verdicts as test cases, for whatever shows test results.

A suite a kernel and target, a case a verdict.  A failure is a failure, noise an error (worth running again), what was not judged is
skipped with its reason.  Exact figures that are as they were are one test case together, for there are many of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from tileprof.analyse.verdicts import FAIL, OPEN, PASS, RETRY, Verdict
from tileprof.store.records import Run

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""

LONGEST = 1000


def render(run: Run, verdicts: Sequence[Verdict]) -> str:
    """The verdicts as JUnit's XML, in the form that Jenkins' xUnit plug-in publishes as ``junit-10.xsd``."""
    seconds = {case.id: case.seconds for case in run.cases}
    root = ElementTree.Element("testsuites", name=clean(run.name))
    suites: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        suites.setdefault((verdict.kernel, verdict.target), []).append(verdict)
    for (kernel, target), found in suites.items():
        cases = _merged(found)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=clean(f"{kernel}@{target}"),
            tests=str(len(cases)),
            failures=str(sum(v.outcome == FAIL for v in cases)),
            errors=str(sum(v.outcome == RETRY for v in cases)),
            skipped=str(sum(v.outcome == OPEN for v in cases)),
            timestamp=run.started.removesuffix("Z").partition("+")[0],
            time=f"{sum(seconds.get(case, 0.0) for case in dict.fromkeys(v.case for v in found)):.3f}",
        )
        for verdict in cases:
            _case(suite, verdict, seconds.get(verdict.case, 0.0))
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """Text without what XML cannot hold, cut to a readable length."""
    text = _FORBIDDEN.sub("�", text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _merged(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts, with exact figures of one case that passed merged into one."""
    kept: list[Verdict] = []
    passed: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.kind == "exact" and verdict.outcome == PASS:
            passed.setdefault(verdict.case, []).append(verdict)
        else:
            kept.append(verdict)
    for case, found in passed.items():
        first, names = found[0], ", ".join(v.metric for v in found)
        kept.append(
            Verdict(
                case, first.kernel, first.target, "unchanged exact figures", "exact", PASS, f"{len(found)}: {names}"
            )
        )
    return kept


def _case(suite: ElementTree.Element, verdict: Verdict, seconds: float) -> None:
    time = f"{seconds:.3f}" if verdict.kind == "status" else "0"
    name = clean(f"{verdict.case}: {verdict.metric}")
    case = ElementTree.SubElement(suite, "testcase", name=name, classname=clean(verdict.kernel), time=time)
    message = clean(verdict.message)
    if verdict.outcome == FAIL:
        ElementTree.SubElement(case, "failure", message=message, type=verdict.kind).text = message
    elif verdict.outcome == RETRY:
        ElementTree.SubElement(case, "error", message=message, type=verdict.kind).text = message
    elif verdict.outcome == OPEN:
        ElementTree.SubElement(case, "skipped", message=message)
    else:
        ElementTree.SubElement(case, "system-out").text = f"{verdict.outcome}: {message}"
