"""Static, simulated and measured values of one thing side by side, their difference, and whether they agree.

The compiler says what a kernel has, the simulator what it must do, the profiler what the hardware did.  Where two of them speak
of the same quantity they are held against each other with a tolerance that says how exact each is; a difference beyond it is a
finding: the simulator's rules are wrong there, or another binary ran, or the profiler misreads.  What is only a hypothesis on one
side (an open rule, a counter known to be misread) is shown and not judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tileprof.analyse.bounds import Facts
from tileprof.analyse.figures import CaseFigures, Figure, case_figures, total
from tileprof.analyse.findings import LIKELY, Finding, finding
from tileprof.analyse.join import MISREAD
from tileprof.analyse.units import exact
from tileprof.store.records import CaseResult

AGREE, DISAGREE, UNJUDGED = "agree", "disagree", "not judged"

RULE = "disagreement"

Tolerance = Callable[[float, float], bool]
"""Whether a measured value is near enough to an expected one: ``near(expected, measured)``."""


def within(share: float, least: float = 0.0) -> Tolerance:
    """Near by a share of the expected value, and always by ``least``."""
    return lambda expected, measured: abs(measured - expected) <= max(share * abs(expected), least)


def rounded_up(granule: float) -> Tolerance:
    """Near where the measured value is the expected one rounded up to the granule in which it is allocated."""
    return lambda expected, measured: measured in (expected, math.ceil(expected / granule) * granule)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A metric that several sources have.  ``operations``: judged by operation; ``why`` tells what the tolerance rests on.

    ``kinds`` are the kinds of target for which the comparison makes sense.
    """

    metric: str
    expected: str
    near: Tolerance
    why: str
    operations: bool = False
    kinds: tuple[str, ...] = ("cuda", "hip")


QUANTITIES = (
    # counts of the simulator against values of single instructions: exact by construction, but for what blocks were sampled
    Quantity(
        "shared.transactions", "simulated", within(0.005), "counted by rules that hardware confirmed", True, ("cuda",)
    ),
    Quantity("shared.transactions_ideal", "simulated", within(0.005), "follows from addresses alone", True, ("cuda",)),
    Quantity("global.sectors", "simulated", within(0.005), "follows from addresses alone", True, ("cuda",)),
    Quantity("global.sectors_ideal", "simulated", within(0.005), "follows from addresses alone", True, ("cuda",)),
    # AMD counts whole kernels, and its counters include what the compiler of the device added
    Quantity("shared.requests", "simulated", within(0.02), "one LDS instruction of a wavefront each", kinds=("hip",)),
    Quantity(
        "shared.conflicts", "simulated", within(0.02, 64), "extra cycles of LDS by the rule of phases", kinds=("hip",)
    ),
    # the binary that ran against the one that was compiled
    Quantity("registers.per_thread", "static", within(0.0), "the compiler's log", kinds=("cuda",)),
    Quantity("registers.vgpr", "static", rounded_up(8), "allocated in steps of 8", kinds=("hip",)),
    Quantity("shared.static_bytes", "static", within(0.0), "the compiler's log", kinds=("cuda",)),
    Quantity("shared.static_bytes", "static", rounded_up(512), "shown in steps of 512 bytes", kinds=("hip",)),
    Quantity("shared.dynamic_bytes", "static", within(0.0), "asked for at launch", kinds=("cuda",)),
    Quantity("scratch.bytes", "static", within(0.0), "the code object", kinds=("hip",)),
    Quantity("launch.threads_per_block", "static", within(0.0), "the launch"),
    Quantity("launch.blocks", "static", within(0.0), "the launch"),
    Quantity("occupancy.theoretical", "derived", within(0.0, 0.005), "the occupancy model", kinds=("cuda",)),
)
"""What is compared, with what, and how near it has to be."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One quantity of a case or of one of its operations (``operation`` None: the kernel).

    ``expected`` is what ``source`` (static, simulated, derived) says; ``difference`` is measured minus expected, ``relative`` the
    same as a share of what was expected (None where that is 0).  ``reason`` says why it is not judged, or what the tolerance
    rests on.
    """

    metric: str
    unit: str
    operation: int | None
    label: str
    source: str
    expected: Figure
    measured: Figure
    difference: float
    relative: float | None
    verdict: str
    reason: str


def comparisons(case: CaseResult) -> list[Comparison]:
    """Everything of a case that two sources speak of, kernel first, then operations in source order."""
    return list(_compare(case, case_figures(case)))


def _compare(case: CaseResult, figures: CaseFigures) -> Iterator[Comparison]:
    kind = case.target.partition(":")[0]
    labels = {operation["id"]: operation["label"] for operation in case.operations}
    for quantity in QUANTITIES:
        if kind not in quantity.kinds:
            continue
        if not quantity.operations:
            expected = figures.of_case(quantity.metric, quantity.expected)
            measured = figures.of_case(quantity.metric, "measured")
            if expected is not None and measured is not None:
                yield _judged(quantity, None, case.kernel, expected, measured)
            continue
        both = set(figures.operations_with(quantity.metric, quantity.expected))
        for operation in sorted(both & set(figures.operations_with(quantity.metric, "measured"))):
            expected = _sum(figures, quantity.metric, quantity.expected, operation)
            measured = _sum(figures, quantity.metric, "measured", operation)
            if expected is not None and measured is not None:
                merged = quantity.expected == "simulated" and _merged(figures, quantity.metric, operation)
                yield _judged(
                    quantity, operation, labels.get(operation, f"operation {operation}"), expected, measured, merged
                )


def _sum(figures: CaseFigures, metric: str, kind: str, operation: int) -> Figure | None:
    """Over all buffers and accesses of the operation, flagged where any part is."""
    return total(figures.accesses(metric, kind, operation).values())


def _merged(figures: CaseFigures, metric: str, operation: int) -> bool:
    """Whether the machine executed fewer accesses than the program has: its compiler made one of several, or left one out.

    Fewer requests say so; more do not, since those whose lanes are all switched off are executed, and counted, too.
    """
    requests = f"{metric.partition('.')[0]}.requests"
    expected, measured = (_sum(figures, requests, kind, operation) for kind in ("simulated", "measured"))
    return expected is not None and measured is not None and measured.value < expected.value


def _judged(
    quantity: Quantity, operation: int | None, label: str, expected: Figure, measured: Figure, merged: bool = False
) -> Comparison:
    difference = measured.value - expected.value
    doubt = _doubt(expected, measured) or ("the machine's compiler merged accesses of this operation" if merged else "")
    near = quantity.near(expected.value, measured.value)
    verdict = AGREE if near else UNJUDGED if doubt else DISAGREE
    return Comparison(
        metric=quantity.metric,
        unit=measured.unit,
        operation=operation,
        label=label,
        source=quantity.expected,
        expected=expected,
        measured=measured,
        difference=difference,
        relative=difference / expected.value if expected.value else None,
        verdict=verdict,
        reason=doubt if verdict == UNJUDGED else quantity.why,
    )


def _doubt(expected: Figure, measured: Figure) -> str:
    """Why a difference says nothing; "" where it does."""
    if expected.flag == "open":
        return "the counting rule of this access is open"
    if expected.flag == "unknown":
        return "there is no counting rule for this access"
    if measured.flag == MISREAD:
        return "the profiler is known to misread this instruction"
    if measured.flag:
        return f"the measured value is flagged: {measured.flag}"
    return ""


def disagreements(facts: Facts) -> Iterator[Finding]:
    """Findings where measured and expected values of a case differ by more than they may."""
    groups: dict[tuple[int | None, str], list[Comparison]] = {}
    for one in comparisons(facts.case):
        if one.verdict == DISAGREE:
            groups.setdefault((one.operation, one.source), []).append(one)
    for (operation, source), found in groups.items():
        evidence = [f"{one.metric}: {exact(one.expected.value)} {source}, {exact(one.measured.value)} measured"
                    f"{'' if one.relative is None else f' ({one.relative:+.1%})'}" for one in found]  # fmt: skip
        if source == "simulated":
            title = f"Simulated and measured counts of {found[0].label} differ"
            advice = (
                "trust what was measured here, and report the kernel: a counting rule does not hold for this access"
            )
        else:
            title = "What was profiled is not what was compiled"
            advice = "profile the bundle of this very case, or compile again: another binary or launch was measured"
        yield finding(facts, RULE, title, evidence, advice, LIKELY, None, "", operation)
