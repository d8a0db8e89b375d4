"""Records to and from plain JSON values: one encoding, used by the store and by result.json.

Numbers that JSON does not have (NaN, infinities) become None on the way out, and NaN on the way back where a number must be.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from tileprof.store.records import Ceiling, Check, Interleaved, Provenance, Timing


def now() -> str:
    """This moment as runs keep it: ISO 8601 in UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def finite(value: Any) -> Any:
    """``value`` with every NaN and infinity in it replaced by None, tuples turned into lists and keys into text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def number(value: float | None) -> float:
    """The number that :func:`finite` may have turned into None."""
    return math.nan if value is None else float(value)


def timing_from_json(record: dict[str, Any]) -> Timing:
    """The timing whose ``asdict`` is ``record``."""
    return Timing(**{**record, "samples_ns": tuple(number(sample) for sample in record["samples_ns"])})


def check_from_json(record: dict[str, Any]) -> Check:
    """The check whose ``asdict`` is ``record``."""
    errors = {key: number(record[key]) for key in ("max_abs_error", "max_rel_error")}
    return Check(**{**record, **errors})


def interleaved_from_json(record: dict[str, Any]) -> Interleaved:
    """The rounds whose ``asdict`` is ``record``."""
    rounds = {
        key: tuple(tuple(number(s) for s in samples) for samples in record[key]) for key in ("head_ns", "base_ns")
    }
    return Interleaved(record["base"], record["base_hash"], **rounds)


def ceiling_from_json(record: dict[str, Any]) -> Ceiling:
    """The ceiling whose ``asdict`` is ``record``."""
    return Ceiling(**{**record, "provenance": Provenance(**record["provenance"]), "value": number(record["value"])})
