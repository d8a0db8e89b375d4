"""Which variants are best: the fastest of those that solve the same problem, and those that nothing beats in every respect.

The same problem: equal shape and arguments on the same target, whatever the kernel and its tiles.  A variant is Pareto-best when no
other one is at least as good in time, registers and shared memory, and better in one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tileprof.store.records import CaseResult

FASTEST, PARETO, NEITHER = 2, 1, 0

Objectives = tuple[float, float, float]


def problem(case: CaseResult) -> str:
    """What two cases must have in common to be alternatives, whether an extent is known when compiling or at launch."""
    return repr((case.target_name, sorted(case.extents.items()), sorted(case.args.items(), key=str)))


def marks(cases: Sequence[CaseResult], times: dict[str, float]) -> dict[str, int]:
    """FASTEST, PARETO or NEITHER of every case with a time in ``times`` (ns by case id) that has an alternative."""
    groups: dict[str, list[CaseResult]] = {}
    for case in cases:
        if case.id in times:
            groups.setdefault(problem(case), []).append(case)
    found: dict[str, int] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        points = {case.id: _objectives(case, times[case.id]) for case in group}
        fastest = min(times[case.id] for case in group)
        front = _front(points)
        for case in group:
            found[case.id] = FASTEST if times[case.id] == fastest else PARETO if case.id in front else NEITHER
    return found


def _objectives(case: CaseResult, time_ns: float) -> Objectives:
    metadata = case.metadata or {}
    shared = (metadata.get("shared_bytes_static") or 0) + (metadata.get("shared_bytes_dynamic") or 0)
    return time_ns, float(metadata.get("registers_per_thread") or 0), float(shared)


def _front(points: dict[str, Objectives]) -> set[str]:
    """Names of the points that no other dominates: in order of time, each is held against those found so far."""
    front: list[tuple[str, Objectives]] = []
    for name, point in sorted(points.items(), key=lambda item: item[1]):
        if not any(all(a <= b for a, b in zip(other, point)) and other != point for _, other in front):
            front.append((name, point))
    return {name for name, _ in front}
