"""Accesses that cannot be carried out: where, by which thread, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilelang_min.simulate.messages import Messages
from tilelang_min.simulate.sites import Site


class LaneMessages(Messages):
    """What speaks of single threads: ``threads`` lanes for each of ``blocks``, one block after the other."""

    threads: int
    blocks: Sequence[tuple[int, int, int]]

    def thread(self, lane: int) -> str:
        """A lane as shown in messages."""
        return f"thread {lane % self.threads} of block {self.blocks[lane // self.threads]}"

    def out_of_range(self, site: Site, index: Any, lanes: Any = None) -> None:
        """Raises the error for the first lane whose elements do not all lie in the buffer."""
        buffer, width = site.place.buffer, max(1, site.width_bytes // site.place.itemsize)
        bad = np.flatnonzero((index < 0) | (index > buffer.elements - width))
        if not len(bad):
            bad = np.zeros(1, np.int64)
        lane = int(bad[0] if lanes is None else lanes[bad[0]])
        first = int(index[bad[0]])
        what = f"element {first}" if width == 1 else f"elements {first} to {first + width - 1}"
        raise self.error(
            f"{site.place.space} {site.kind} out of range: {self.label(site.operation)} accesses {what} of "
            f"{buffer.name}, which has {buffer.elements}, in {self.thread(lane)}",
            site.operation,
            "the access needs a bounds check, or its index is wrong",
        )

    def misaligned(self, site: Site, at: Any, lanes: Any = None, unit: int | None = None) -> None:
        """Raises an error if a vector access does not start at a multiple of its width."""
        width = site.lanes if unit is None else unit
        bad = np.flatnonzero(np.asarray(at) % width)
        if len(bad):
            lane = int(bad[0] if lanes is None else lanes[bad[0]])
            raise self.error(
                f"misaligned {site.place.space} {site.kind}: {self.label(site.operation)} moves {width} elements of "
                f"{site.place.buffer.name} at once from an address that is no multiple of them, in {self.thread(lane)}",
                site.operation,
            )
