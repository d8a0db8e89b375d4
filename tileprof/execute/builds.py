"""Kernels that several cases of a sweep share, because they differ in the sizes of runtime dimensions alone: compiled once.

The first case that a compile lane takes makes the bundle.  Others that are taken meanwhile wait, and go back to the lanes when it
is there; where it cannot be made they fail as the first one did.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from tileprof.execute.results import CaseBuilder


class Builds:
    """Bundles by their place: being made, made, or failed.  ``again`` takes a case that waited."""

    def __init__(self, again: Callable[[CaseBuilder], None]) -> None:
        self._again = again
        self._lock = threading.Lock()
        self._waiting: dict[str, list[CaseBuilder]] = {}  # behind each bundle that is being made
        self._made: set[str] = set()
        self._failed: dict[str, tuple[str, str]] = {}

    def claim(self, builder: CaseBuilder) -> bool | None:
        """Whether the bundle of a case is there; None where another lane is making it, and the case will come again.

        A case whose bundle cannot be made is told why.
        """
        if not builder.case.sizes:
            return False
        place = builder.bundle
        with self._lock:
            if place in self._waiting:
                self._waiting[place].append(builder)
                return None
            if place in self._failed:
                builder.fail(*self._failed[place])
            elif place not in self._made:
                self._waiting[place] = []
            return place in self._made

    def hear(self, builder: CaseBuilder, message: Mapping[str, Any]) -> None:
        """What the compile worker says of the case that makes the bundle."""
        if message["type"] == "built" and builder.case.sizes:
            self._settle(builder.bundle)

    def ended(self, builder: CaseBuilder) -> None:
        """The worker is done with a case: a bundle that is not there now will not come."""
        if builder.case.sizes:
            self._settle(builder.bundle, (builder.status or "crashed", builder.reason))

    def _settle(self, place: str, failure: tuple[str, str] | None = None) -> None:
        with self._lock:
            waiting = self._waiting.pop(place, None)
            if waiting is None:  # settled before
                return
            if failure is None:
                self._made.add(place)
            else:
                self._failed[place] = failure
        for builder in waiting:
            self._again(builder)
