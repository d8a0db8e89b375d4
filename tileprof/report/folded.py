"""flame.folded: the flame trees as collapsed stacks, ``a;b;c 42``, for flamegraph.pl, inferno and whatever reads their form.

A file holds one kind of figure, so the one is taken that most targets have; the target stands below the workload.  Counts are whole
numbers in this form: fractions are rounded, and what rounds to nothing is left out.
"""

from __future__ import annotations

from tileprof.analyse.flame import MODES, Mode, flame_trees, paths
from tileprof.store.records import Run

PREFERRED = ("samples", "executed_measured", "executed", "static", "time")
"""Kinds of figure in the order in which they are chosen among those that equally many targets have."""


def render(run: Run) -> str:
    """The file's text; empty where there are no figures."""
    trees = flame_trees(run)
    mode = best_mode([{mode.id for mode in tree.modes} for tree in trees])
    if mode is None:
        return ""
    lines = []
    for tree in trees:
        if mode in tree.modes:
            for path, own in paths(tree, mode):
                names = [clean(path[0].name), clean(tree.target_name), *(clean(node.name) for node in path[1:])]
                if round(own) > 0:
                    lines.append(f"{';'.join(names)} {round(own)}")
    return "".join(f"{line}\n" for line in lines)


def best_mode(having: list[set[str]]) -> Mode | None:
    """The kind of figure that most trees have."""
    known = {mode.id: mode for mode in MODES}
    count = {name: sum(name in modes for modes in having) for name in PREFERRED}
    name = max(PREFERRED, key=lambda name: (count[name], -PREFERRED.index(name)))
    return known[name] if count[name] else None


def clean(name: str) -> str:
    """A name without what separates frames and lines in this form."""
    return " ".join(name.replace(";", ",").split()) or "?"
