"""The flame trees as compact columns for the page's script, and as rows for readers without it.

Columns, because a tree written as nested objects repeats every key: strings are interned once, nodes are parallel arrays in
depth-first order, a child names its parent by index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

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
    """All nodes of a target.  ``headings`` are (label, provenance number shared by the whole column, if it is shared)."""

    target_name: str
    modes: tuple[Mode, ...]
    headings: tuple[tuple[str, int | None], ...]
    rows: tuple[FlameRow, ...]


def mode_label(mode: Mode, target: str) -> str:
    """A mode's name in the vendor's words."""
    if mode.metric == "shared.transactions":
        vocabulary = words(target)
        return "LDS cycles" if vocabulary.vendor == "AMD" else mode.label
    return mode.label


def flame_columns(tree: FlameTree, strings: Strings, provenances: ProvenanceTable) -> dict[str, Any]:
    """One tree as JSON: ``modes`` and, for each node in depth-first order, its columns.

    ``w`` holds a list of weights for each mode (null: not known), ``p`` the number of their provenance.
    """
    nodes, parents = _depth_first(tree.root)
    return {
        "target": tree.target_name,
        "arch": tree.target,
        "modes": [
            {"id": m.id, "label": mode_label(m, tree.target), "kind": m.kind, "unit": m.unit, "about": m.explanation}
            for m in tree.modes
        ],
        "name": [strings.number(node.name) for node in nodes],
        "kind": [strings.number(node.kind) for node in nodes],
        "detail": [strings.number(node.detail) for node in nodes],
        "file": [strings.number(node.file) for node in nodes],
        "line": [node.line for node in nodes],
        "parent": parents,
        "w": [[_finite(node.weight(mode.id)) for node in nodes] for mode in tree.modes],
        "p": [_provenances(nodes, mode, provenances) for mode in tree.modes],
        "flag": [
            {
                index: node.figures[m.id].flag
                for index, node in enumerate(nodes)
                if m.id in node.figures and node.figures[m.id].flag
            }
            for m in tree.modes
        ],
    }


def flame_table(tree: FlameTree, provenances: ProvenanceTable) -> FlameTable:
    """The same numbers as rows."""
    columns = [_provenances(list(tree.root.walk()), mode, provenances) for mode in tree.modes]
    shared = [column if isinstance(column, int) else None for column in columns]
    rows = []
    stack: list[tuple[Node, int]] = [(tree.root, 0)]
    while stack:
        node, depth = stack.pop()
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
        stack.extend((child, depth + 1) for child in reversed(node.children))
    headings = tuple((mode_label(mode, tree.target).lower(), common) for mode, common in zip(tree.modes, shared))
    return FlameTable(tree.target_name, tree.modes, headings, tuple(rows))


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
