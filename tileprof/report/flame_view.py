"""The flame trees as compact columns for the page's script, and as rows for readers without it.

Columns, because a tree written as nested objects repeats every key: strings are interned once, nodes are parallel arrays in
depth-first order, a child names its parent by index, and what cases have in common is written once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tileprof.analyse.compare import BASE
from tileprof.analyse.flame import FlameTree, Mode, Node
from tileprof.report import numbers
from tileprof.report.cells import ABSENT, DOUBTFUL, Cell, ProvenanceTable
from tileprof.report.text import shorten
from tileprof.report.words import words


class Strings:
    """Interned strings: each text once, referred to by index."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Index of a text, given out on first use; longer ones than a tooltip can show are cut in the middle."""
        return self._numbers.setdefault(shorten(text, 240), len(self._numbers))

    def all(self) -> list[str]:
        """All texts in order of index."""
        return list(self._numbers)


@dataclass(frozen=True, slots=True)
class FlameRow:
    """A node as a table row: indented label, place in the source, a cell for each mode."""

    depth: int
    name: str
    kind: str
    place: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class FlameTable:
    """Nodes of a target, and how many are ``left_out``.

    ``headings`` are (label, provenance number shared by the whole column, if it is shared).
    """

    target_name: str
    modes: tuple[Mode, ...]
    headings: tuple[tuple[str, int | None], ...]
    rows: tuple[FlameRow, ...]
    left_out: int = 0


def mode_label(mode: Mode, target: str) -> str:
    """A mode's name in the vendor's words."""
    if mode.metric == "shared.transactions":
        vocabulary = words(target)
        return "LDS cycles" if vocabulary.vendor == "AMD" else mode.label
    return mode.label


def flame_data(
    tree: FlameTree, strings: Strings, provenances: ProvenanceTable, with_base: bool = False
) -> dict[str, Any]:
    """One tree as JSON.

    Cases of one kernel have one shape: names, kinds, places and parents in depth-first order, and for each mode the nodes that have
    a figure.  A shape is written once; a case is its label, the number of its shape and its figures alone, in the order of those
    nodes.  ``p`` holds provenance numbers the same way, one number where all nodes have the same.
    """
    shapes: dict[str, int] = {}
    cases = [
        _case_data(node, tree.modes, strings, provenances, shapes, with_base)
        for node in tree.root.children[:MOST_CASES]
    ]
    return {
        "target": tree.target_name,
        "arch": tree.target,
        "modes": [
            {"id": m.id, "label": mode_label(m, tree.target), "kind": m.kind, "unit": m.unit, "about": m.explanation}
            for m in tree.modes
        ],
        "root": [strings.number(tree.root.name), strings.number(tree.root.detail)],
        "w": [_finite(tree.root.weight(mode.id)) for mode in tree.modes],
        "p": [_number(tree.root, mode, provenances) for mode in tree.modes],
        "shapes": [json.loads(text) for text in shapes],
        "cases": cases,
        **({"base": [_finite(tree.root.weight(BASE + mode.id)) for mode in tree.modes]} if with_base else {}),
    }


def _case_data(
    case: Node,
    modes: Sequence[Mode],
    strings: Strings,
    provenances: ProvenanceTable,
    shapes: dict[str, int],
    with_base: bool,
) -> list[Any]:
    """[label, detail, shape, figures by mode, provenance by mode, flags] of a case; its shape is added where it is new."""
    nodes, parents = _depth_first(case)
    keys = ("", BASE) if with_base else ("",)
    having = [
        [i for i, node in enumerate(nodes) if any(_finite(node.weight(key + mode.id)) is not None for key in keys)]
        for mode in modes
    ]
    rest = nodes[1:]
    shape = {
        "n": [strings.number(node.name) for node in rest],
        "k": [strings.number(node.kind) for node in nodes],
        "d": [strings.number(node.detail) for node in rest],
        "f": [strings.number(node.file) for node in nodes],
        "l": [node.line for node in nodes],
        "q": parents[1:],
        "h": having,
    }
    number = shapes.setdefault(json.dumps(shape, separators=(",", ":")), len(shapes))
    figures = [[_finite(nodes[i].weight(mode.id)) for i in places] for mode, places in zip(modes, having)]
    sources = []
    for mode, places in zip(modes, having):
        column = [_number(nodes[i], mode, provenances) for i in places]
        sources.append(column[0] if len(set(column)) == 1 else column or 0)
    flags = [
        [m, i, nodes[i].figures[mode.id].flag]
        for m, (mode, places) in enumerate(zip(modes, having))
        for i in places
        if mode.id in nodes[i].figures and nodes[i].figures[mode.id].flag
    ]
    bases = [[_finite(nodes[i].weight(BASE + mode.id)) for i in places] for mode, places in zip(modes, having)]
    record = [strings.number(case.name), strings.number(case.detail), number, figures, sources, flags]
    return [*record, bases] if with_base else record


def _number(node: Node, mode: Mode, provenances: ProvenanceTable) -> int:
    figure = node.figures.get(mode.id)
    return 0 if figure is None else provenances.number(figure.provenance)


MOST_CASES = 3000
"""Cases of a target that the picture holds; what the others take is left open, as the root's own."""

MOST_ROWS = 250
"""Rows of the table of a target, before only its cases are listed, and of those the first."""


def flame_table(tree: FlameTree, provenances: ProvenanceTable) -> FlameTable:
    """The same numbers as rows, instruction classes and stall reasons left out; of a large tree its cases only."""
    listed = [node for node in tree.root.walk() if node.kind not in ("class", "stall")]
    deepest = 99 if len(listed) <= MOST_ROWS else 1
    columns = [_provenances(listed[:MOST_ROWS] if deepest == 1 else listed, mode, provenances) for mode in tree.modes]
    shared = [column if isinstance(column, int) else None for column in columns]
    rows: list[FlameRow] = []
    stack: list[tuple[Node, int]] = [(tree.root, 0)]
    while stack and len(rows) <= MOST_ROWS:
        node, depth = stack.pop()
        if node.kind in ("class", "stall"):
            continue
        cells = []
        for mode, common in zip(tree.modes, shared):
            figure = node.figures.get(mode.id)
            if figure is None:
                cells.append(ABSENT)
                continue
            text = numbers.duration(figure.value) if mode.unit == "ns" else numbers.count(figure.value)
            doubt = f"flagged: {figure.flag}" if figure.flag in DOUBTFUL else ""
            source = None if common else provenances.number(figure.provenance)
            cells.append(Cell(text, doubt, source, mark="flagged" if doubt else ""))
        place = f":{node.line}" if node.line is not None else ""
        rows.append(FlameRow(depth, node.name, node.kind, place, tuple(cells)))
        if depth < deepest:
            stack.extend((child, depth + 1) for child in reversed(node.children))
    headings = tuple((mode_label(mode, tree.target).lower(), common) for mode, common in zip(tree.modes, shared))
    return FlameTable(tree.target_name, tree.modes, headings, tuple(rows), len(listed) - len(rows))


def _depth_first(root: Node) -> tuple[list[Node], list[int]]:
    nodes: list[Node] = []
    parents: list[int] = []
    stack = [(root, -1)]
    while stack:
        node, parent = stack.pop()
        index = len(nodes)
        nodes.append(node)
        parents.append(parent)
        stack.extend((child, index) for child in reversed(node.children))
    return nodes, parents


def _provenances(nodes: list[Node], mode: Mode, provenances: ProvenanceTable) -> list[int] | int:
    """Numbers of the provenances by node; one number where all are the same."""
    column = [provenances.number(n.figures[mode.id].provenance) if mode.id in n.figures else 0 for n in nodes]
    distinct = {number for number in column if number}
    return distinct.pop() if len(distinct) == 1 else column


def _finite(value: float | None) -> float | None:
    """JSON has no NaN; a weight that is none has no width either.  Whole numbers lose their ``.0``."""
    if value is None or not math.isfinite(value) or value < 0:
        return None
    return int(value) if value == int(value) else value
