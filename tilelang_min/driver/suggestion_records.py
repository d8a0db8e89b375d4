"""Suggestions as data: what a search found (:mod:`tilelang_min.driver.suggestions`, ``coalescing``), kept in bundles as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AccessChange:
    """Conflicts a launch of one kind of access to the tile, as the kernel is (``before``) and with the suggestion.

    None where no rule is known.  ``rule`` is the worse of both sides: ``known``, ``open`` or ``unknown``.
    """

    operation: int
    access: str
    width_bits: int
    before: int | None
    after: int | None
    rule: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate: ``padding`` elements or a swizzle in segments of ``swizzle_bytes``.

    ``conflicts`` are those left in a launch, None where the candidate was refused, for ``reason``.
    """

    padding: int
    swizzle_bytes: int
    conflicts: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestSample:
    """One request of a warp to the tile, the one that costs most: byte offsets in the tile by lane, as it is and as suggested.

    ``access`` is the kind of access whose rule counts it; ``lanes`` are those that take part, in order.
    """

    operation: int
    access: str
    width_bits: int
    matrices: int
    lanes: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """How to remove the conflicts of ``buffer``.

    ``kind`` is ``padding`` (``padding`` elements behind each row) or ``swizzle`` (in segments of ``swizzle_bytes``) of a shared
    tile; or, of a tensor whose accesses waste sectors, ``order`` (of a nest's elements) or ``staging`` (through a shared tile of
    ``extra_bytes`` with that padding), where conflicts are sectors beyond the least (:mod:`tilelang_min.driver.coalescing`).
    ``conflicts_before`` and ``_after`` are a launch's, over accesses whose rule is known; where ``conflicts_after`` is not 0,
    nothing that was tried removes them all and this leaves the fewest.  ``accesses`` has every kind of access to the tile,
    those under an open rule too.  ``extra_bytes``: shared memory a block, all stages (below 0 where a swizzle takes the place of
    the author's padding); occupancies as fractions of a unit's
    warps.  ``tried``: every candidate in order, up to the one that is suggested (all, where conflicts are left; each mode of a
    swizzle).  ``text`` says what to write and what it costs, ``proof`` what else was tried; ``sample`` is a request to look at.
    """

    buffer: str
    kind: str
    padding: int
    swizzle_bytes: int
    extra_bytes: int
    conflicts_before: int
    conflicts_after: int
    occupancy_before: float | None
    occupancy_after: float | None
    accesses: tuple[AccessChange, ...]
    tried: tuple[Trial, ...]
    text: str
    proof: str
    sample: RequestSample | None = None

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary; :meth:`from_json` is its inverse."""
        record = asdict(self)
        record["accesses"], record["tried"] = list(record["accesses"]), list(record["tried"])
        return record

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Suggestion:
        """The suggestion that :meth:`to_json` wrote."""
        values = dict(record)
        values["accesses"] = tuple(AccessChange(**item) for item in record["accesses"])
        values["tried"] = tuple(Trial(**item) for item in record["tried"])
        if (sample := record.get("sample")) is not None:
            lists = {key: tuple(sample[key]) for key in ("lanes", "before", "after")}
            values["sample"] = RequestSample(**{**sample, **lists})
        return cls(**values)
