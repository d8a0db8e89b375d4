"""PC samples of AMD's profilers -> values per instruction and source line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tileprof.collect.profile import SourceValue
from tileprof.collect.scrub import path
from tileprof.metrics.amd import STALL_REASONS

_REASON = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"
_PLACE = re.compile(r"^(.+):(\d+)$")


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: the instruction, its comment (``file:line`` with debug information), why it stalled, and whether it issued.

    ``reason`` and ``issued`` are None for host-trap sampling, which does not know them; ``offset`` is the instruction's place in
    the code object, which only JSON has.
    """

    instruction: str
    comment: str
    reason: str | None = None
    issued: int | None = None
    offset: int | None = None


def place(comment: str, *, as_is: bool = False) -> tuple[str | None, int | None]:
    """File and line of a comment; None for both where it names none.  ``as_is``: with folders that name a user."""
    found = _PLACE.match(comment.strip())
    return (found[1] if as_is else path(found[1]), int(found[2])) if found else (None, None)


def stall_metric(reason: str) -> str:
    """``stall.waitcnt`` of ``ROCPROFILER_..._REASON_WAITCNT``; unknown reasons are ``stall.misc``."""
    return f"stall.{STALL_REASONS.get(reason.removeprefix(_REASON), 'misc')}"


def count(values: dict[str, float], sample: Sample) -> None:
    """Add a sample to the values of its instruction."""
    values["stall.samples"] = values.get("stall.samples", 0.0) + 1
    metric = "stall.selected" if sample.issued else stall_metric(sample.reason) if sample.reason else ""
    if metric:
        values[metric] = values.get(metric, 0.0) + 1


def source_values(samples: Iterable[Sample]) -> tuple[SourceValue, ...]:
    """Samples counted by instruction and line, with their reasons where the sampling knows them; most samples first."""
    counts: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for sample in samples:
        count(counts[sample.comment, sample.instruction], sample)
    rows = [SourceValue(*place(comment), text, dict(values)) for (comment, text), values in counts.items()]
    return tuple(sorted(rows, key=lambda row: -row.values["stall.samples"]))
