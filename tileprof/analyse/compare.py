"""Two runs, or two variants: what differs, and one verdict.

Cases are paired by what they are (kernel, arguments, shape, tiles, target), or named.  Times of separate runs are compared with
the caution that is due: a difference is only called one where the floor is passed, and the verdict says what it rests on.  Rounds
in turns (``run --against``) decide where the head has them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tileprof.analyse import gate
from tileprof.analyse.flame import MODES, FlameTree, Node, case_node
from tileprof.analyse.gate import FASTER, SAME, SLOWER, UNCLEAR
from tileprof.analyse.labels import variant_labels
from tileprof.analyse.verdicts import TOLERANCE, UNJUDGED
from tileprof.errors import UsageError
from tileprof.metrics import METRICS
from tileprof.store.baselines import COUNTED, EXACT, TIMED, figures_of, key_of
from tileprof.store.records import CaseResult, Run
from tileprof.workload.problems import unknown

UNTIMED = "untimed"
"""Outcome beside those of :mod:`tileprof.analyse.gate`."""

BASE = "base:"
"""Prefix of the modes under which a node of a differential tree holds the base's figures."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A case and what it is compared with; one side is None where it has no partner."""

    label: str
    base: CaseResult | None
    head: CaseResult | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure on both sides.  ``kind`` is ``time``, ``exact`` or ``counted``; ``sense`` better, worse, different or equal."""

    metric: str
    kind: str
    unit: str
    base: float | None
    head: float | None
    sense: str

    @property
    def change(self) -> float | None:
        """Relative change, None where the base is nothing or not known."""
        if self.base is None or self.head is None or self.base == 0:
            return None
        return self.head / self.base - 1


@dataclass(frozen=True, slots=True)
class PairResult:
    """Differences of a pair and its verdict on time, ``ratio`` being head over base."""

    pair: Pair
    differences: tuple[Difference, ...]
    outcome: str
    ratio: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything about two sides; ``verdict`` is one sentence, ``outcome`` one word."""

    base_name: str
    head_name: str
    results: tuple[PairResult, ...]
    unpaired: tuple[Pair, ...]
    outcome: str
    verdict: str


def find_case(run: Run, text: str) -> CaseResult:
    """The case of an id, or the only one that contains ``text``.  Raises UsageError that names the nearest, or what fits."""
    exact = [case for case in run.cases if case.id == text]
    found = exact or [case for case in run.cases if text in case.id]
    if len(found) == 1:
        return found[0]
    if not found:
        ids = [case.id for case in run.cases]
        raise UsageError(unknown(f"case of {run.name}", text, ids, most=6), remedy="write an id, or enough of one")
    names = ", ".join(case.id for case in found[:4])
    raise UsageError(
        f"{text!r} fits {len(found)} cases: {names}{', ...' if len(found) > 4 else ''}", remedy="write more of the id"
    )


def pairs_of(base: Run, head: Run) -> list[Pair]:
    """Cases of two runs by what they are; those with no partner last."""
    labels = {**variant_labels(base.cases), **variant_labels(head.cases)}
    known = {key_of(case): case for case in base.cases}
    found = [
        Pair(f"{labels[case.id]} @ {case.target_name}", known.pop(key_of(case), None), case) for case in head.cases
    ]
    rest = [Pair(f"{labels[case.id]} @ {case.target_name}", case, None) for case in known.values()]
    return sorted([*found, *rest], key=lambda pair: pair.base is None or pair.head is None)


def compare(pairs: Sequence[Pair], base_name: str, head_name: str, floor: float = gate.FLOOR) -> Comparison:
    """All differences and the verdict."""
    results = tuple(_pair(pair, floor) for pair in pairs if pair.base is not None and pair.head is not None)
    unpaired = tuple(pair for pair in pairs if pair.base is None or pair.head is None)
    outcome, verdict = _verdict(results, floor)
    return Comparison(base_name, head_name, results, unpaired, outcome, verdict)


def _pair(pair: Pair, floor: float) -> PairResult:
    if pair.base is None or pair.head is None:
        raise ValueError("a pair has two sides")
    outcome, ratio, basis = _time(pair.base, pair.head, floor)
    ours, theirs = figures_of(pair.head), figures_of(pair.base)
    differences = [_difference(name, ours.get(name), theirs.get(name)) for name in dict.fromkeys([*theirs, *ours])]
    return PairResult(pair, tuple(differences), outcome, ratio, basis)


def _time(base: CaseResult, head: CaseResult, floor: float) -> tuple[str, float | None, str]:
    if head.interleaved is not None and head.interleaved.base_hash == base.hash:
        change = gate.judge(head.interleaved.head_ns, head.interleaved.base_ns, floor)
        if change is not None:
            return change.outcome, change.ratio, f"rounds in turns: {change.text()}"
    if base.timing is None or head.timing is None or not base.timing.samples_ns or not head.timing.samples_ns:
        return UNTIMED, None, "not timed on both sides"
    before, after = base.timing.median_ns, head.timing.median_ns
    if not (math.isfinite(before) and math.isfinite(after) and before > 0 and after > 0):
        return UNTIMED, None, "a time that cannot be"
    ratio = after / before
    outcome = SLOWER if ratio > 1 + floor else FASTER if ratio < 1 / (1 + floor) else SAME
    if outcome != SAME and _overlap(base.timing.samples_ns, head.timing.samples_ns):
        outcome = UNCLEAR
    return outcome, ratio, "medians of separate measurements"


def _overlap(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether the middle halves of two samples touch: then their medians may have crossed by chance."""

    def quartiles(samples: Sequence[float]) -> tuple[float, float]:
        ordered = sorted(samples)
        return ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4 if len(ordered) > 3 else -1]

    (a, b), (c, d) = quartiles(first), quartiles(second)
    return a <= d and c <= b


def _difference(name: str, head: tuple[float, str] | None, base: tuple[float, str] | None) -> Difference:
    noise = (head or base or (0.0, EXACT))[1]
    kind = "time" if noise == TIMED else noise
    info = METRICS.get(name.rpartition(":")[2])
    after, before = head[0] if head else None, base[0] if base else None
    sense = "equal"
    if after is None or before is None:
        sense = "different"
    elif after != before and not (noise == COUNTED and abs(after - before) <= TOLERANCE * abs(before)):
        better = info.better if info and info.name not in UNJUDGED else ""
        sense = "different" if not better else "better" if (after < before) == (better == "lower") else "worse"
    return Difference(name, kind, info.unit if info else "", before, after, sense)


def _verdict(results: Sequence[PairResult], floor: float) -> tuple[str, str]:
    """One word and one sentence for all pairs."""
    if not results:
        return UNTIMED, "Nothing to compare: no case is on both sides."
    ratios = [result.ratio for result in results if result.ratio is not None]
    worse = sum(d.sense == "worse" and d.kind != "time" for r in results for d in r.differences)
    better = sum(d.sense == "better" and d.kind != "time" for r in results for d in r.differences)
    other = (
        f"{worse:,} other figures are worse and {better:,} better"
        if worse or better
        else "all other figures are as they were"
    )
    if not ratios:
        return _by_figures(worse, better), f"Not timed on both sides; of {len(results):,} cases, {other}."
    counts = Counter(result.outcome for result in results if result.ratio is not None)
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    if counts[SLOWER] and counts[FASTER]:
        outcome = UNCLEAR
    elif counts[SLOWER] or counts[FASTER]:
        outcome = SLOWER if counts[SLOWER] else FASTER
    else:
        outcome = UNCLEAR if counts[UNCLEAR] else SAME
    words = ", ".join(f"{counts[word]:,} {word}" for word in (SLOWER, FASTER, SAME, UNCLEAR) if counts[word])
    how = (
        "in turns"
        if all("turns" in r.basis for r in results if r.ratio is not None)
        else "in separate measurements, not in turns"
    )
    head = {SLOWER: "Slower", FASTER: "Faster", SAME: "No difference", UNCLEAR: "Mixed or unclear"}[outcome]
    if len(ratios) == 1:
        return outcome, f"{head}: {(ratios[0] - 1) * 100:+.1f} % of the time (floor {floor * 100:g} %, {how}); {other}."
    middle = f"{(median(ratios) - 1) * 100:+.1f} % in the median, {(mean - 1) * 100:+.1f} % in the geometric mean"
    return (
        outcome,
        f"{head}: {words} of {len(ratios):,} timed cases ({middle}; floor {floor * 100:g} %, {how}); {other}.",
    )


def _by_figures(worse: int, better: int) -> str:
    """The outcome where only the figures besides time can tell."""
    if worse and better:
        return UNCLEAR
    return SLOWER if worse else FASTER if better else SAME


def difference_trees(pairs: Sequence[Pair], name: str) -> list[FlameTree]:
    """A flame tree a target with both sides: head's figures under their modes, base's under ``base:MODE``."""
    by_target: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        case = pair.head or pair.base
        if case is not None:
            by_target.setdefault((case.target_name, case.target), []).append(pair)
    trees = []
    for (target_name, target), own in by_target.items():
        root = Node(name, "workload", f"all cases on {target_name}")
        for pair in own:
            label = pair.label.rpartition(" @ ")[0] or pair.label
            sides = [case_node(case, label) if case is not None else None for case in (pair.base, pair.head)]
            merged = _merged(*sides)
            if merged is not None:
                root.children.append(merged)
        modes = tuple(m for m in MODES if any(key in c.figures for c in root.children for key in (m.id, BASE + m.id)))
        for mode in modes:
            for key in (mode.id, BASE + mode.id):
                figures = [child.figures[key] for child in root.children if key in child.figures]
                if figures:
                    first = figures[0]
                    root.figures[key] = type(first)(
                        sum(f.value for f in figures), first.unit, first.provenance, first.flag
                    )
        trees.append(FlameTree(target_name, target, root, modes))
    return trees


def _merged(base: Node | None, head: Node | None) -> Node | None:
    """Both trees as one: nodes of equal kind and name at one place are one, in head's order, what vanished last."""
    shown = head or base
    if shown is None:
        return None
    node = Node(shown.name, shown.kind, shown.detail, shown.file, shown.line, shown.case, shown.operation)
    if head is not None:
        node.figures.update(head.figures)
    if base is not None:
        node.figures.update({BASE + key: figure for key, figure in base.figures.items()})
    theirs, ours = base.children if base is not None else [], head.children if head is not None else []
    alike = [child.kind for child in theirs] == [child.kind for child in ours]
    waiting = _keyed(theirs, alike)
    for key, child in _keyed(ours, alike).items():
        found = _merged(waiting.pop(key, None), child)
        if found is not None:
            node.children.append(found)
    node.children += [found for child in waiting.values() if (found := _merged(child, None)) is not None]
    return node


def _keyed(nodes: Sequence[Node], alike: bool) -> dict[tuple[str, str, int], Node]:
    """Nodes by what pairs them: operations by their place where both sides have the same kinds in the same order, else by name.

    Two variants write one operation differently (``A_shared``, ``A_shared[:, 0:64]``), and it is the same operation all the same.
    """
    seen: Counter[tuple[str, str]] = Counter()
    keyed = {}
    for node in nodes:
        place = (node.kind, "" if alike and node.kind not in ("class", "stall") else node.name)
        keyed[(*place, seen[place])] = node
        seen[place] += 1
    return keyed
