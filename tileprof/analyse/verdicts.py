"""Verdicts on a run: the workload's limits, and regressions against a baseline, each with its figures.

Three classes of figures, by their noise: exact ones (static, simulated) must not get worse at all; counted ones not by more than a
tolerance; times are judged by :mod:`tileprof.analyse.gate` from rounds in turns, and not at all without them.  Figures of another
machine or another toolchain are not compared unless that is asked for; then times still are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tileprof.analyse import gate
from tileprof.analyse.figures import case_figures
from tileprof.analyse.units import exact
from tileprof.metrics import METRICS
from tileprof.store.baselines import (
    COUNTED,
    EXACT,
    TIMED,
    Baseline,
    device_of,
    figures_of,
    key_of,
    static_machine,
    toolchain_of,
)
from tileprof.store.records import FAILED_STATUSES, LEAST_ROUNDS, CaseResult, Run

PASS, FAIL, RETRY, BETTER, CHANGED, OPEN = "pass", "fail", "retry", "better", "changed", "open"
"""Outcomes: fine; worse; too noisy to say; better; different, and neither is better; not judged, with the reason."""

TOLERANCE = 0.02
"""Share by which a counted figure may get worse: counters of one kernel differ so between launches."""

UNJUDGED = ("code.bytes",)
"""Metrics of which less is better, and more of which is no fault by itself: they are reported, and judged only by a limit."""

_NOISE_WORDS = {EXACT: "exact", COUNTED: "counted", TIMED: "time"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question about one case, and its answer.

    ``metric`` is a canonical name (``status`` for how the case ended); ``kind`` is ``status``, ``limit``, ``exact``, ``counted``
    or ``time``.
    """

    case: str
    kernel: str
    target: str
    metric: str
    kind: str
    outcome: str
    message: str
    head: float | None = None
    base: float | None = None
    limit: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be compared, and how strictly.  ``tolerance`` and ``floor`` are shares."""

    tolerance: float = TOLERANCE
    floor: float = gate.FLOOR
    across_toolchains: bool = False
    other_machines: bool = False


@dataclass
class Baselines:
    """Baselines by case key; what the verdicts look figures up in."""

    by_key: dict[str, list[Baseline]] = field(default_factory=dict)

    @classmethod
    def of(cls, baselines: Iterable[Baseline]) -> Baselines:
        """An index of baselines."""
        made = cls()
        for baseline in baselines:
            made.by_key.setdefault(baseline.key, []).append(baseline)
        return made

    def __bool__(self) -> bool:
        return bool(self.by_key)


def verdicts(run: Run, baselines: Baselines | None = None, policy: Policy = Policy()) -> list[Verdict]:
    """All verdicts on a run, by case: how it ended, its limits, its regressions."""
    found: list[Verdict] = []
    for case in run.cases:
        found.append(_status(case))
        if case.status in FAILED_STATUSES:
            continue
        found += _limits(case)
        found += _time(case, policy)
        if baselines is not None and case.status != "unsupported":
            found += _regressions(case, run, baselines, policy)
    return found


def exit_status(found: Sequence[Verdict], strict: bool = False) -> int:
    """4 where a case failed, else 1 where a check did, else 3 where noise hides the answer, else 0.

    ``strict``: a regression that was asked about and not judged is 3 too.
    """
    if any(v.outcome == FAIL and v.kind == "status" for v in found):
        return 4
    if any(v.outcome == FAIL for v in found):
        return 1
    unsettled = (RETRY, OPEN) if strict else (RETRY,)
    return 3 if any(v.outcome in unsettled for v in found) else 0


def _verdict(case: CaseResult, metric: str, kind: str, outcome: str, message: str, **figures: float | None) -> Verdict:
    info = METRICS.get(metric.rpartition(":")[2])
    return Verdict(
        case.id,
        case.kernel,
        case.target_name,
        metric,
        kind,
        outcome,
        message,
        **figures,
        unit=info.unit if info else "",
    )


def _status(case: CaseResult) -> Verdict:
    first = case.reason.strip().splitlines()[0] if case.reason.strip() else ""
    if case.status in FAILED_STATUSES:
        return _verdict(case, "status", "status", FAIL, f"{case.status}: {first or 'no reason was recorded'}")
    if case.status == "invalid_measurement":
        return _verdict(case, "status", "status", RETRY, f"{case.status}: {first}")
    return _verdict(case, "status", "status", PASS, case.status)


def _limits(case: CaseResult) -> list[Verdict]:
    """The workload's ``min`` and ``max``, held against the measured figure, else the static, else the simulated one."""
    figures, found = case_figures(case), []
    for metric, limits in case.checks.items():
        wanted = {word: limits[word] for word in ("min", "max") if limits.get(word) is not None}
        if not wanted:
            continue
        best = figures.best_of_case(metric)
        if best is None:
            text = f"no figure on this target: {'not run here' if case.status == 'not_run' else 'not measured'}"
            found.append(_verdict(case, metric, "limit", OPEN, text))
            continue
        figure, kind = best
        for word, limit in wanted.items():
            bad = figure.value > limit if word == "max" else figure.value < limit
            text = f"{exact(figure.value)} {figure.unit} ({kind}), {word} {exact(limit)}"
            found.append(_verdict(case, metric, "limit", FAIL if bad else PASS, text, head=figure.value, limit=limit))
    return found


def _time(case: CaseResult, policy: Policy) -> list[Verdict]:
    """The verdict on time, from rounds in turns; the workload's ``max_regression`` replaces the floor where it is larger."""
    asked = case.checks.get("time.ns", {}).get("max_regression")
    if case.interleaved is None:
        if asked is None:
            return []
        text = "not judged: no rounds in turns; measure with `tileprof run --against BASE`"
        return [_verdict(case, "time.ns", "time", OPEN, text, limit=asked)]
    floor = max(policy.floor, asked or 0.0)
    rounds = case.interleaved
    change = gate.judge(rounds.head_ns, rounds.base_ns, floor)
    if change is None:
        return [_verdict(case, "time.ns", "time", OPEN, f"not judged: fewer than {LEAST_ROUNDS} complete rounds")]
    outcome = {gate.SLOWER: FAIL, gate.FASTER: BETTER, gate.SAME: PASS, gate.UNCLEAR: RETRY}[change.outcome]
    text = f"{change.text()} against {rounds.base}, floor {floor * 100:g} %"
    if outcome == RETRY:
        text += ": beyond the floor, and the rounds do not agree; measure again"
    return [_verdict(case, "time.ns", "time", outcome, text, head=change.ratio, base=1.0, limit=1 + floor)]


def _regressions(case: CaseResult, run: Run, baselines: Baselines, policy: Policy) -> list[Verdict]:
    figures = figures_of(case)
    known = baselines.by_key.get(key_of(case), [])
    if not known:
        return [_verdict(case, "baseline", "exact", OPEN, "no baseline of this case; --update-baseline makes one")]
    toolchain = toolchain_of(case, run)
    found: list[Verdict] = []
    for classes, machine in (
        ((EXACT,), static_machine(case, run.machine)),
        ((COUNTED, TIMED), device_of(case, run.machine)),
    ):
        ours = {name: value for name, (value, noise) in figures.items() if noise in classes}
        candidates = [b for b in known if set(b.noise.values()) & set(classes)]
        if not ours or not candidates:
            continue
        chosen, why = _choose(candidates, machine, toolchain, policy)
        if chosen is None:
            found.append(_verdict(case, "baseline", _NOISE_WORDS[classes[0]], OPEN, why))
            continue
        for name, theirs in chosen.figures.items():
            if chosen.noise.get(name) != TIMED:
                found.append(_compare(case, name, chosen.noise.get(name, EXACT), ours.get(name), theirs, policy, why))
    return found


def _choose(
    candidates: Sequence[Baseline], machine: dict[str, object], toolchain: dict[str, str], policy: Policy
) -> tuple[Baseline | None, str]:
    """The baseline to compare with and a remark, or None and the reason."""
    here = [b for b in candidates if b.machine == machine]
    if not here and not policy.other_machines:
        others = ", ".join(sorted({_describe(b.machine) for b in candidates}))
        return (
            None,
            f"refused: the baseline is of {others}, this run of {_describe(machine)}; --other-machine compares them",
        )
    pool = here or list(candidates)
    same = [b for b in pool if b.toolchain == toolchain]
    if not same and not policy.across_toolchains:
        theirs = pool[-1].toolchain
        different = ", ".join(
            f"{tool} {theirs.get(tool, 'none')} -> {toolchain.get(tool, 'none')}"
            for tool in sorted({*theirs, *toolchain})
            if theirs.get(tool) != toolchain.get(tool)
        )
        return None, f"refused: the baseline is of another toolchain ({different}); --across-toolchains compares them"
    latest = max(same or pool, key=lambda b: b.taken)
    remarks = [f"of {_describe(latest.machine)}"] if not here else []
    return latest, ", ".join([*remarks, *(["another toolchain"] if not same else [])])


def _describe(machine: dict[str, object]) -> str:
    return ", ".join(str(value) for value in machine.values() if value is not None) or "any machine"


def _compare(
    case: CaseResult, name: str, noise: str, head: float | None, base: float, policy: Policy, remark: str
) -> Verdict:
    """One exact or counted figure against its baseline."""
    metric = name.rpartition(":")[2]
    info, kind = METRICS.get(metric), _NOISE_WORDS[noise]
    limits = case.checks.get(metric, {}).get("max_regression")
    allowed = limits if limits is not None else (0.0 if noise == EXACT else policy.tolerance)
    suffix = f" (baseline {remark})" if remark else ""
    if head is None:
        return _verdict(case, name, kind, OPEN, f"was {exact(base)}, has no figure now{suffix}", base=base)
    if head == base:
        return _verdict(case, name, kind, PASS, f"{exact(head)} as before{suffix}", head=head, base=base)
    change = f"{(head / base - 1) * 100:+.1f} %" if base else f"from 0 to {exact(head)}"
    text = f"{exact(base)} -> {exact(head)} ({change}){suffix}"
    better = info.better if info and metric not in UNJUDGED else ""
    worse = {"lower": head - base, "higher": base - head}.get(better, 0.0)
    outcome = CHANGED
    if better:
        outcome = BETTER if worse < 0 else FAIL if worse > allowed * abs(base) else PASS
        if outcome == BETTER and -worse <= (0.0 if noise == EXACT else policy.tolerance) * abs(base):
            outcome = PASS
    elif noise == COUNTED and abs(head - base) <= policy.tolerance * abs(base):
        outcome = PASS
    return _verdict(case, name, kind, outcome, text, head=head, base=base, limit=allowed)
