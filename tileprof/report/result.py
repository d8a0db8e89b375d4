"""result.json: the run for programs, valid against the published ``result.schema.json``.

Everything of the store but the texts: sources are named, generated code and listings stand in the bundles.  A provenance is written
once, in ``provenances``, and metrics and ceilings name its place there; what a metric does not have is left out of it.

The schema is derived from the records themselves, so that it cannot say something else than what is written; the committed file is
held current by a test.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from pydantic import TypeAdapter

from tileprof.store import records
from tileprof.store.codec import finite
from tileprof.store.records import PROVENANCES, STATUSES, CaseResult, Ceiling, Metric, Provenance, Run

FORMAT = 2
"""Of result.json; raised when a reader of the older form would be misled.  1 repeated provenances and held all texts."""

TEXTS = ("generated", "assembly")
"""Fields of a case that are left out: the bundle has them."""

_LATER = ("sizes",)
"""Fields of a case that the first results of this format do not have."""

_OPTIONAL = tuple(item.name for item in fields(Metric) if item.default is None)
_NULLABLE_NUMBERS = {"Metric": ("value",), "Check": ("max_abs_error", "max_rel_error"), "Ceiling": ("value",)}


def render(run: Run) -> str:
    """The run as JSON text, a metric a line.  A number that JSON does not have (NaN, infinity) is null."""
    table = _Provenances()
    header = {
        item.name: finite(_plain(getattr(run, item.name)))
        for item in fields(run)
        if item.name not in ("cases", "ceilings")
    }
    cases = [_case(case, table) for case in run.cases]
    ceilings = [_ceiling(ceiling, table) for ceiling in run.ceilings]
    parts = [f' "{key}": {_dump(value)}' for key, value in header.items()]
    parts.append(f' "ceilings": {_list(ceilings, "  ")}')
    parts.append(f' "cases": [{",".join(cases)}\n ]' if cases else ' "cases": []')
    body = ",\n".join(parts)
    return f'{{"format": {FORMAT},\n"provenances": {_list(table.rows(), " ")},\n"run": {{\n{body}\n}}}}\n'


class _Provenances:
    """Distinct provenances by their place in the list."""

    def __init__(self) -> None:
        self._places: dict[Provenance, int] = {}

    def place(self, provenance: Provenance) -> int:
        return self._places.setdefault(provenance, len(self._places))

    def rows(self) -> list[str]:
        return [_dump(asdict(provenance)) for provenance in self._places]


def _case(case: CaseResult, table: _Provenances) -> str:
    record: dict[str, Any] = {}
    for item in fields(case):
        if item.name not in (*TEXTS, "metrics", "sources", "operations"):
            record[item.name] = finite(_plain(getattr(case, item.name)))
    record["sources"] = sorted(case.sources)
    lines = [f'  "{key}": {_dump(value)}' for key, value in record.items()]
    lines.append(f'  "operations": {_list([_dump(finite(o)) for o in case.operations], "   ")}')
    lines.append(f'  "metrics": {_list([_metric(metric, table) for metric in case.metrics], "   ")}')
    return "\n  {\n" + ",\n".join(lines) + "\n  }"


def _metric(metric: Metric, table: _Provenances) -> str:
    record = {
        "metric": metric.metric,
        "value": finite(float(metric.value)),
        "unit": metric.unit,
        "provenance": table.place(metric.provenance),
    }
    record |= {name: value for name in _OPTIONAL if (value := getattr(metric, name)) is not None}
    return _dump(record)


def _ceiling(ceiling: Ceiling, table: _Provenances) -> str:
    return _dump({**finite(asdict(ceiling)), "provenance": table.place(ceiling.provenance)})


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _list(items: list[str], indent: str) -> str:
    return "[" + ",".join(f"\n{indent}{item}" for item in items) + "]"


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
    _leave_out(definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tileprof result",
        "description": "A run of tileprof: its cases and every number known about them, each with its provenance.",
        "type": "object",
        "additionalProperties": False,
        "required": ["format", "provenances", "run"],
        "properties": {
            "format": {"const": FORMAT},
            "provenances": {"type": "array", "items": {"$ref": "#/$defs/Provenance"}},
            "run": {"$ref": "#/$defs/Run"},
        },
        "$defs": dict(sorted(definitions.items())),
    }


def _leave_out(definitions: dict[str, Any]) -> None:
    """What :func:`render` writes shorter than the records are."""
    place = {"type": "integer", "minimum": 0, "description": "Place in the list of provenances."}
    for name in ("Metric", "Ceiling"):
        definitions[name]["properties"]["provenance"] = place
    definitions["Metric"]["required"] = [n for n in definitions["Metric"]["required"] if n not in _OPTIONAL]
    case = definitions["CaseResult"]
    for name in TEXTS:
        del case["properties"][name]
    case["required"] = [name for name in case["required"] if name not in (*TEXTS, *_LATER)]
    case["properties"]["sources"] = {
        "type": "array",
        "items": {"type": "string"},
        "description": "Names of source files.",
    }
