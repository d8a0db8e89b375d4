"""flame.speedscope.json: the flame trees for speedscope.app, a profile for each target and kind of figure.

The form is speedscope's ``file-format-schema.json``.  A node that accounts for something itself is a sample: its path, and as
weight what its children do not account for.
"""

from __future__ import annotations

import json
from typing import Any

from tileprof.analyse.flame import FlameTree, Mode, Node, flame_trees, paths
from tileprof.store.records import Run

SCHEMA = "https://www.speedscope.app/file-format-schema.json"

_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}
"""Units that speedscope knows; anything else is a number without one."""


def render(run: Run) -> str:
    """The file's text.  A run without figures has one empty profile, which speedscope opens and shows as empty."""
    frames = _Frames()
    profiles = [_profile(tree, mode, frames) for tree in flame_trees(run) for mode in tree.modes]
    empty = {
        "type": "sampled",
        "name": "nothing was recorded",
        "unit": "none",
        "startValue": 0,
        "endValue": 0,
        "samples": [],
        "weights": [],
    }
    record = {
        "$schema": SCHEMA,
        "name": run.name,
        "exporter": f"tileprof@{run.version}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.records},
        "profiles": profiles or [empty],
    }
    return json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"


class _Frames:
    """Frames by what they show, each once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, int | None], int] = {}
        self.records: list[dict[str, Any]] = []

    def number(self, node: Node) -> int:
        key = (node.name, node.file, node.line)
        if key not in self._numbers:
            self._numbers[key] = len(self.records)
            record: dict[str, Any] = {"name": node.name}
            if node.file:
                record["file"] = node.file
            if node.line is not None:
                record["line"] = node.line
            self.records.append(record)
        return self._numbers[key]


def _profile(tree: FlameTree, mode: Mode, frames: _Frames) -> dict[str, Any]:
    samples, weights = [], []
    for path, own in paths(tree, mode):
        samples.append([frames.number(node) for node in path])
        weights.append(own)
    return {
        "type": "sampled",
        "name": f"{tree.target_name}: {mode.label.lower()} ({mode.kind})",
        "unit": _UNITS.get(mode.unit, "none"),
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
