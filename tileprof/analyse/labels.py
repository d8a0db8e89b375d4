"""Short, unique labels for cases: the kernel and only those parameters in which its cases differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tileprof.store.records import CaseResult


def parameters(case: CaseResult) -> dict[str, str]:
    """Arguments, shape, sizes and tiles of a case in one dictionary, as text."""
    return {key: str(value) for key, value in case.parameters.items()}


def variant_labels(cases: Sequence[CaseResult]) -> dict[str, str]:
    """Label by case id, without the target: ``matmul[float16, num_stages=3]``.

    Values of parameters that are words (``dtype``) stand alone, numbers with their name.  Two cases on one target never
    share a label: where the differing parameters do not tell them apart, the full id is used.
    """
    values: dict[tuple[str, str], set[str]] = {}
    for case in cases:
        for key, value in parameters(case).items():
            values.setdefault((case.kernel, key), set()).add(value)
    labels: dict[str, str] = {}
    for case in cases:
        differing = [
            value if not value[:1].isdigit() and value not in ("True", "False", "None") else f"{key}={value}"
            for key, value in parameters(case).items()
            if len(values[(case.kernel, key)]) > 1
        ]
        labels[case.id] = f"{case.kernel}[{', '.join(differing)}]" if differing else case.kernel
    taken = Counter((case.target_name, labels[case.id]) for case in cases)
    return {case.id: labels[case.id] if taken[(case.target_name, labels[case.id])] == 1 else case.id for case in cases}


def targets(cases: Sequence[CaseResult]) -> dict[str, str]:
    """Name -> target of every target in the run, in order of appearance."""
    return {case.target_name: case.target for case in cases}
