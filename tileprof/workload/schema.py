"""The workload file's schema as pydantic models: names, types and ranges of single values, nothing that needs two of them.

Strict, and unknown keys are forbidden.  Messages are written for the author of the file.  What needs more than one value (names
that refer to others, files, expressions) is checked in ``semantics.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from tileprof.workload.problems import unknown
from tileprof.workload.records import INPUT_KINDS, MOST_SIZE, PROFILERS
from tileprof.workload.units import DURATION_PATTERN, PERCENT_PATTERN, describe, parse_duration, parse_fraction


class _ItemError(ValueError):
    """A wrong item of a list; ``index`` says which."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


def _checked(convert: Callable[[Any], Any], schema: dict[str, Any]) -> Any:
    """Annotations for a field whose own ``convert`` raises ValueError with a finished message."""

    def validate(value: Any) -> Any:
        try:
            return convert(value)
        except ValueError as error:
            context = {"message": str(error), "index": getattr(error, "index", -1)}
            raise PydanticCustomError("workload", "{message}", context) from None

    return PlainValidator(validate), WithJsonSchema(schema)


def _scalar(value: Any) -> Any:
    if isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"expected a number, a word, true or false, found {describe(value)}")


def _axis(value: Any) -> list[Any] | Any:
    if not isinstance(value, list):
        return _scalar(value)
    if not value:
        raise ValueError("an axis needs at least one value")
    seen: list[Any] = []
    for index, item in enumerate(value):
        try:
            _scalar(item)
        except ValueError as error:
            raise _ItemError(str(error), index) from None
        if any(type(item) is type(other) and item == other for other in seen):
            raise _ItemError(f"the axis has the value {describe(item)} twice", index)
        seen.append(item)
    return value


def _extent(value: Any) -> Any:
    _axis(value)
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(item, int) or isinstance(item, bool) or item < 1:
            message = f"expected a whole number of 1 or more, found {describe(item)}"
            raise _ItemError(message, index if isinstance(value, list) else -1)
    return value


def _size(value: Any) -> Any:
    _extent(value)
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        if item > MOST_SIZE:
            message = f"a runtime dimension is an int32, {MOST_SIZE:,} at most; found {item:,}"
            raise _ItemError(message, index if isinstance(value, list) else -1)
    return value


def _profilers(value: Any) -> list[str]:
    words = value if isinstance(value, list) else [value]
    if not words:
        raise ValueError("expected at least one profiler; 'none' asks for none")
    for index, word in enumerate(words):
        place = index if isinstance(value, list) else -1
        if not isinstance(word, str):
            raise _ItemError(f"expected the name of a profiler, found {describe(word)}", place)
        if word not in PROFILERS:
            raise _ItemError(unknown("profiler", word, PROFILERS), place)
    return list(words)


def _graph(value: Any) -> str:
    if value is True or value is False:
        return "on" if value else "off"
    if value == "auto":
        return "auto"
    raise ValueError(f"expected auto, true or false, found {describe(value)}")


def _fill(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected {', '.join(INPUT_KINDS)} or FILE:FUNCTION, found {describe(value)}")
    if value not in INPUT_KINDS and ":" not in value:
        raise ValueError(unknown("way to fill an input", value, [*INPUT_KINDS, "FILE:FUNCTION"]))
    return value


def _non_negative(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return float(value)
    raise ValueError(f"expected a number of 0 or more, found {describe(value)}")


def _limit(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise ValueError(f"expected a number, found {describe(value)}")


_SCALAR_SCHEMA: dict[str, Any] = {"type": ["string", "number", "boolean"]}
_EXTENT_SCHEMA: dict[str, Any] = {"type": "integer", "minimum": 1}
_SIZE_SCHEMA: dict[str, Any] = {**_EXTENT_SCHEMA, "maximum": MOST_SIZE}


def _or_list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1, "uniqueItems": True}]}


Value = Annotated[Any, *_checked(_scalar, _SCALAR_SCHEMA)]
Axis = Annotated[Any, *_checked(_axis, _or_list(_SCALAR_SCHEMA))]
Extent = Annotated[Any, *_checked(_extent, _or_list(_EXTENT_SCHEMA))]
Size = Annotated[Any, *_checked(_size, _or_list(_SIZE_SCHEMA))]
Duration = Annotated[
    float,
    *_checked(
        parse_duration,
        {"anyOf": [{"type": "string", "pattern": DURATION_PATTERN}, {"type": "number", "exclusiveMinimum": 0}]},
    ),
]
Fraction = Annotated[
    float,
    *_checked(
        parse_fraction,
        {"anyOf": [{"type": "string", "pattern": PERCENT_PATTERN}, {"type": "number", "minimum": 0}]},
    ),
]
Profilers = Annotated[list[str], *_checked(_profilers, _or_list({"type": "string", "enum": list(PROFILERS)}))]
Graph = Annotated[str, *_checked(_graph, {"enum": ["auto", True, False]})]
Fill = Annotated[
    str, *_checked(_fill, {"anyOf": [{"enum": list(INPUT_KINDS)}, {"type": "string", "pattern": "^.+:.+$"}]})
]
NonNegative = Annotated[float, *_checked(_non_negative, {"type": "number", "minimum": 0})]
Limit = Annotated[float, *_checked(_limit, {"type": "number"})]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=100)]


class Model(BaseModel):
    """Base of all models: strict, unknown keys forbidden."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Timing(Model):
    """How cases are timed."""

    warmup: int = Field(default=10, ge=0, le=1_000_000, description="Untimed launches before each round.")
    samples: int = Field(default=50, ge=1, le=1_000_000, description="Timed launches of each round.")
    rounds: int = Field(default=1, ge=1, le=1000, description="Rounds of warm-up and samples.")
    flush_l2: bool = Field(default=True, description="Flush the last-level cache before each timed launch.")
    graph: Graph = Field(default="auto", description="Launch through a CUDA graph.")
    budget: Duration = Field(
        default=10.0, description="Launching time after which a case takes no more samples, but at least three."
    )


class Defaults(Model):
    """Settings of every case."""

    timing: Timing = Field(default_factory=Timing)
    timeout: Duration = Field(default=120.0, description="Longest time of one step (compiling, launching) of a case.")
    seed: int = Field(default=0, ge=0, lt=2**63, description="Seed of random inputs.")


class Target(Model):
    """Where cases run and what measures them."""

    target: str = Field(description="auto, cpu, cuda, cuda:sm_80, hip, hip:gfx942, ...")
    profiler: Profilers = Field(default=["auto"], description="What measures here; several may be listed.")


class Metrics(BaseModel):
    """Named groups of canonical metrics, and raw counters by tool."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)
    __pydantic_extra__: dict[str, list[str]]

    raw: dict[str, list[str]] = Field(default_factory=dict, description="Raw counters by profiler.")


class ToleranceModel(Model):
    """|result - reference| <= atol + rtol * |reference|."""

    rtol: NonNegative
    atol: NonNegative


class Check(Model):
    """What a metric is held to."""

    min: Limit | None = None
    max: Limit | None = None
    max_regression: Fraction | None = None


class Kernel(Model):
    """A kernel and the axes along which it is run."""

    name: Name = Field(description="The name in reports and case ids.")
    source: str | None = Field(default=None, description="FILE:FUNCTION or package.module:function.")
    bundle: str | None = Field(default=None, description="A compiled bundle.")
    callable: str | None = Field(default=None, description="FILE:FUNCTION that launches GPU kernels.")
    python: str | None = Field(default=None, description="The interpreter that runs `callable`.")
    command: list[str] | None = Field(default=None, min_length=1, description="A command that launches GPU kernels.")
    args: dict[str, Axis] = Field(default_factory=dict, description="A list is an axis, a scalar a constant.")
    shapes: list[dict[str, Extent]] = Field(default=[{}], min_length=1)
    sizes: list[dict[str, Size]] = Field(
        default=[{}],
        min_length=1,
        description="Runtime dimensions (T.dynamic) at each launch; one compiled kernel serves all of them.",
    )
    tiles: dict[str, Axis] = Field(default_factory=dict, description="A list is an axis, a scalar a constant.")
    where: list[str] = Field(default_factory=list, description="Expressions that every case must satisfy.")
    exclude: list[dict[str, Value]] = Field(default_factory=list, description="Combinations left out.")
    targets: list[str] | None = Field(default=None, min_length=1, description="Names of targets; all by default.")
    inputs: dict[str, Fill] = Field(default_factory=dict, description="How inputs are filled; normal by default.")
    reference: str | None = Field(default=None, description="FILE:FUNCTION that computes the outputs in float64.")
    tolerance: ToleranceModel | None = None
    metrics: list[str] = Field(default_factory=list, description="Groups and canonical metrics.")
    checks: dict[str, Check] = Field(default_factory=dict, description="What metrics are held to.")


class WorkloadModel(Model):
    """A tileprof workload."""

    version: Literal[1]
    name: Name = Field(description="The run directory is runs/<name>.")
    description: str = ""
    defaults: Defaults = Field(default_factory=Defaults)
    targets: dict[Name, Target] = Field(min_length=1, description="A name of your choice -> where cases run.")
    metrics: Metrics = Metrics.model_validate({})
    kernels: list[Kernel] = Field(min_length=1)


def workload_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the workload file, for editors."""
    schema = WorkloadModel.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "tileprof workload",
    }
