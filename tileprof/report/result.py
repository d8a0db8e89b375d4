"""result.json: the run for programs, valid against the published ``result.schema.json``.

The schema is derived from the records themselves, so that it cannot say something else than what is written; the
committed file is held current by a test.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import TypeAdapter

from tileprof.store import records
from tileprof.store.codec import run_to_json
from tileprof.store.records import PROVENANCES, STATUSES, Run

FORMAT = 1
"""Of result.json; raised when a reader of the older form would be misled."""

_NULLABLE_NUMBERS = {"Metric": ("value",), "Check": ("max_abs_error", "max_rel_error"), "Ceiling": ("value",)}


def render(run: Run) -> str:
    """The run as JSON text.  A number that JSON does not have (NaN, infinity) is null."""
    record = {"format": FORMAT, "run": run_to_json(run)}
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def result_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of result.json."""
    adapter = TypeAdapter(Run)
    schema = adapter.json_schema(mode="serialization")
    definitions: dict[str, Any] = schema.pop("$defs")
    definitions["Run"] = schema
    for name, definition in definitions.items():
        record = getattr(records, name)
        if not is_dataclass(record):
            continue
        definition["additionalProperties"] = False
        definition["required"] = [item.name for item in fields(record)]
        for item in definition["properties"].values():
            item.pop("default", None)
            item.pop("title", None)
        for number in _NULLABLE_NUMBERS.get(name, ()):
            definition["properties"][number] = {"type": ["number", "null"]}
    definitions["Timing"]["properties"]["samples_ns"]["items"] = {"type": ["number", "null"]}
    definitions["CaseResult"]["properties"]["status"] = {"enum": list(STATUSES)}
    definitions["Provenance"]["properties"]["kind"] = {"enum": list(PROVENANCES)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tileprof result",
        "description": "A run of tileprof: its cases and every number known about them, each with its provenance.",
        "type": "object",
        "additionalProperties": False,
        "required": ["format", "run"],
        "properties": {"format": {"const": FORMAT}, "run": {"$ref": "#/$defs/Run"}},
        "$defs": dict(sorted(definitions.items())),
    }
