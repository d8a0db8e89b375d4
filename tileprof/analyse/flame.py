"""The flame tree: workload > case > loop > tile operation, one tree a target, with a weight for each kind of figure.

One tree a target, because instructions of a CPU and of a GPU have no meaningful sum.  A node's weight is its whole subtree;
what its children do not account for is its own.  A mode exists only where the run has its figures; a node without a figure has
weight None, which is not the same as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tileprof.analyse.figures import (
    CaseFigures,
    Figure,
    case_figures,
    listing_provenance,
    static_instructions,
    timing_provenance,
    total,
)
from tileprof.analyse.labels import targets, variant_labels
from tileprof.metrics.catalogue import INSTRUCTION_CLASSES, STALL_REASONS
from tileprof.store.records import CaseResult, Provenance, Run


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to weigh the tree: ``metric`` with the kind of provenance it is taken from."""

    id: str
    label: str
    metric: str
    kind: str
    unit: str
    explanation: str


MODES = (
    Mode("time", "Time", "time.ns", "measured", "ns", "median of unprofiled launches"),
    Mode("cycles", "Cycles", "cycles.sum", "measured", "cycles", "cycles of all warps, by clock reads in a build of its own"),
    Mode("executed_measured", "Executed instructions", "executed.instructions", "measured", "instructions",
         "machine instructions issued by warps"),
    Mode("executed", "Executed instructions", "executed.instructions", "simulated", "instructions",
         "warp-level thread-program instructions"),
    Mode("transactions_measured", "Shared transactions", "shared.transactions", "measured", "transactions",
         "passes that shared-memory accesses took"),
    Mode("transactions", "Shared transactions", "shared.transactions", "simulated", "transactions",
         "passes that shared-memory accesses take by the bank rules"),
    Mode("conflicts_measured", "Bank conflicts", "shared.conflicts", "measured", "transactions",
         "passes above the ideal that shared-memory accesses took"),
    Mode("conflicts", "Bank conflicts", "shared.conflicts", "simulated", "transactions",
         "passes above the ideal that shared-memory accesses take by the bank rules"),
    Mode("bytes", "Global bytes", "global.bytes", "simulated", "bytes", "bytes that global accesses ask for"),
    Mode("sectors", "Global sectors", "global.sectors", "simulated", "sectors", "32-byte sectors that global accesses touch"),
    Mode("samples", "Warp samples", "stall.samples", "measured", "samples", "samples of warps, whatever they waited for"),
    Mode("static", "Static instructions", "instructions", "static", "instructions", "instructions in the binary"),
)  # fmt: skip
"""All modes, in the order in which they are offered."""


@dataclass(slots=True)
class Node:
    """A box of the flame graph.  ``figures`` maps mode id to the figure of the whole subtree; missing means not known."""

    name: str
    kind: str
    detail: str = ""
    file: str = ""
    line: int | None = None
    case: str | None = None
    operation: int | None = None
    figures: dict[str, Figure] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    def weight(self, mode: str) -> float | None:
        """Weight of the subtree, or None where it is not known."""
        figure = self.figures.get(mode)
        return None if figure is None else figure.value

    def own(self, mode: str) -> float | None:
        """What the children do not account for."""
        weight = self.weight(mode)
        return None if weight is None else weight - sum(child.weight(mode) or 0 for child in self.children)

    def walk(self) -> Iterator[Node]:
        """This node and all below, parents first, without recursion (trees may be deep)."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


@dataclass(frozen=True, slots=True)
class FlameTree:
    """The tree of one target and the modes for which it has figures."""

    target_name: str
    target: str
    root: Node
    modes: tuple[Mode, ...]


def flame_trees(run: Run) -> list[FlameTree]:
    """One tree a target, in order of appearance.  Cases without operations are leaves."""
    labels = variant_labels(run.cases)
    trees = []
    for name, target in targets(run.cases).items():
        root = Node(run.name, "workload", f"all cases on {name}")
        root.children = [case_node(case, labels[case.id]) for case in run.cases if case.target_name == name]
        modes = tuple(mode for mode in MODES if any(mode.id in child.figures for child in root.children))
        for mode in modes:
            figure = total(child.figures.get(mode.id) for child in root.children)
            if figure is not None:
                root.figures[mode.id] = figure
        trees.append(FlameTree(name, target, root, modes))
    return trees


def case_node(case: CaseResult, label: str) -> Node:
    """The subtree of one case: loops and tile operations in source order, the unattributed rest last."""
    root = Node(label, "kernel", case.id, case=case.id)
    nodes: dict[int, Node] = {}
    parents: dict[int, int | None] = {}
    for operation in case.operations:
        location = operation["location"]
        if operation["kind"] == "kernel":
            node, root.operation, root.file, root.line = root, operation["id"], location["file"], location["line"]
        else:
            text = str(location.get("text", "")).strip()
            node = Node(
                operation["label"],
                operation["kind"],
                text,
                location["file"],
                location["line"],
                case.id,
                operation["id"],
            )
        nodes[operation["id"]] = node
        parents[operation["id"]] = operation["parent"]
    for number in sorted(nodes):
        node, above = nodes[number], parents[number]
        if node is not root:
            parent = root if above is None else nodes.get(above, root)
            (root if parent is node else parent).children.append(node)
    figures, static = case_figures(case), static_instructions(case)
    for mode in MODES:
        _weigh(root, _own_figures(case, figures, static, mode), _whole_figure(case, figures, mode), mode)
    _add_classes(nodes, static, listing_provenance(case))
    _add_stalls(nodes, figures)
    return root


def _add_classes(nodes: dict[int, Node], static: dict[int | None, dict[str, int]], provenance: Provenance) -> None:
    """Below an operation its instruction classes, by static count."""
    for operation, classes in static.items():
        node = nodes.get(operation) if operation is not None else None
        if node is None or node.children or len(classes) < 2:
            continue  # a loop or kernel shows what it encloses
        for name, count in sorted(classes.items(), key=lambda item: -item[1]):
            leaf = Node(name.replace("_", " "), "class", INSTRUCTION_CLASSES.get(name, ""), case=node.case)
            leaf.figures["static"] = Figure(count, "instructions", provenance)
            node.children.append(leaf)


def _add_stalls(nodes: dict[int, Node], figures: CaseFigures) -> None:
    """Below an operation the reasons for which its warps waited, by samples."""
    leaves = {operation for operation, node in nodes.items() if all(child.kind == "class" for child in node.children)}
    for reason, meaning in STALL_REASONS.items():
        metric = f"stall.{reason}"
        for operation in figures.operations_with(metric, "measured"):
            node, figure = nodes.get(operation), figures.of_operation(metric, "measured", operation)
            if node is None or operation not in leaves or figure is None or figure.value <= 0:
                continue
            leaf = Node(reason.replace("_", " "), "stall", meaning, case=node.case)
            leaf.figures["samples"] = figure
            node.children.append(leaf)


def paths(tree: FlameTree, mode: Mode) -> Iterator[tuple[list[Node], float]]:
    """Every node that accounts for something itself, as its path from the root and that weight.

    Nodes whose children account for more than they have count as nothing themselves.
    """
    stack: list[list[Node]] = [[tree.root]]
    while stack:
        path = stack.pop()
        own = path[-1].own(mode.id)
        if own is not None and math.isfinite(own) and own > 0:
            yield path, own
        stack.extend([*path, child] for child in reversed(path[-1].children) if child.weight(mode.id))


def _own_figures(
    case: CaseResult, figures: CaseFigures, static: dict[int | None, dict[str, int]], mode: Mode
) -> Callable[[int | None], Figure | None]:
    """Figure that belongs to an operation itself, without what it encloses; None stands for the unattributed."""
    if mode.id == "static":
        provenance = listing_provenance(case)

        def of_listing(operation: int | None) -> Figure | None:
            classes = static.get(operation)
            return None if classes is None else Figure(sum(classes.values()), "instructions", provenance)

        return of_listing

    def of_metric(operation: int | None) -> Figure | None:
        if operation is None:
            return figures.unattributed(mode.metric, mode.kind)
        return figures.of_operation(mode.metric, mode.kind, operation)

    return of_metric


def _whole_figure(case: CaseResult, figures: CaseFigures, mode: Mode) -> Figure | None:
    """Figure of the whole kernel where there is one besides those of its operations."""
    if mode.id == "time":
        # Time comes from unprofiled runs only; a profiler's own duration is another quantity.
        if case.timing is None or not case.timing.samples_ns:
            return None
        return Figure(case.timing.median_ns, "ns", timing_provenance(case.timing))
    if mode.id == "static":
        return None
    return figures.of_operation(mode.metric, mode.kind, None)


def _weigh(root: Node, own: Callable[[int | None], Figure | None], whole: Figure | None, mode: Mode) -> None:
    """Sums the figures of one mode from the leaves up; adds an ``unattributed`` leaf for what belongs to no operation.

    Where the whole kernel is known and larger than its parts, the rest stays the kernel's own.  Where it is smaller, the parts
    are kept and the kernel's figure is flagged ``parts exceed whole``: nothing is clamped.
    """
    for node in reversed(list(root.walk())):
        parts = [own(node.operation)] if node.operation is not None else []
        figure = total([*parts, *(child.figures.get(mode.id) for child in node.children)])
        if figure is not None:
            node.figures[mode.id] = figure
    unattributed = own(None)
    if unattributed is not None:
        leaf = next((child for child in root.children if child.kind == "unattributed"), None)
        if leaf is None:
            leaf = Node("unattributed", "unattributed", "instructions that belong to no tile operation", case=root.case)
            root.children.append(leaf)
        leaf.figures[mode.id] = unattributed
        root.figures[mode.id] = total([root.figures.get(mode.id), unattributed]) or unattributed
    if whole is not None:
        parts_sum = root.weight(mode.id)
        if parts_sum is None or whole.value >= parts_sum:
            root.figures[mode.id] = whole
        else:
            root.figures[mode.id] = Figure(parts_sum, whole.unit, whole.provenance, "parts exceed whole")
