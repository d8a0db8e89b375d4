"""What a run is made of: the records that are stored, joined and reported.

These are plain frozen dataclasses.  ``execute/`` and ``collect/`` make them, ``store/`` keeps them, ``analyse/`` and ``report/``
read them; nobody else's format goes past ``collect/``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

STATUSES = (
    "ok",
    "compile_error",
    "unsupported",
    "incorrect",
    "crashed",
    "timeout",
    "invalid_measurement",
    "not_run",
    "lost",
)
"""Results of a case.  ``not_run`` is compiled and simulated only, which is no failure."""

FAILED_STATUSES = ("compile_error", "unsupported", "incorrect", "crashed", "timeout", "lost")
"""Results that make the exit status 4."""

PROVENANCES = ("measured", "simulated", "static", "derived", "datasheet")


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a number comes from.

    ``kind`` is one of PROVENANCES; ``tool`` and ``version`` name what produced it; ``detail`` is the formula and its inputs for a
    derived value, the datasheet for a nominal one, the pass or policy for a measured one.
    """

    kind: str
    tool: str = ""
    version: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of one case: canonical ``metric`` name, ``value`` in ``unit``, and optionally what it belongs to.

    ``operation`` is a tile operation id, ``buffer`` a buffer name, ``access`` the kind of access; None means the whole kernel.
    Figures are per launch.
    """

    metric: str
    value: float
    unit: str
    provenance: Provenance
    operation: int | None = None
    buffer: str | None = None
    access: str | None = None
    launch: int | None = None
    flag: str | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Unprofiled times of one case in nanoseconds, one per launch, and how they were taken."""

    samples_ns: tuple[float, ...]
    method: str
    warmup: int
    flush_l2: bool

    @property
    def median_ns(self) -> float:
        """Median of the samples."""
        ordered = sorted(self.samples_ns)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@dataclass(frozen=True, slots=True)
class Check:
    """Comparison with the reference: the largest absolute and relative error, and the tolerance they were held to.

    ``scope`` says what was compared: ``all`` elements of a run, or the simulated blocks.
    """

    ok: bool
    max_abs_error: float
    max_rel_error: float
    rtol: float
    atol: float
    scope: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change to one shared tile that removes bank conflicts, or to a nest whose global accesses waste sectors, as the compiler
    found it by counting again.

    ``kind`` is ``padding`` or ``swizzle`` of a tile, ``order`` or ``staging`` of a nest; ``text`` says what to write and what it
    costs, ``proof`` what else was tried.  Conflicts are a launch's, of accesses whose rule is known (of nests: sectors beyond the
    least); ``extra_bytes`` shared memory a block.  ``sample`` is the request of a warp that costs most: ``operation``, ``access``,
    ``width_bits``, ``lanes``, and their byte offsets ``before`` and ``after``.
    """

    buffer: str
    kind: str
    text: str
    proof: str
    conflicts_before: int
    conflicts_after: int
    extra_bytes: int
    sample: dict[str, Any] | None = None


LEAST_ROUNDS = 5
"""Rounds in turns below which nothing is decided: with five, all of them slower by chance alone is one in 32."""


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Rounds of a case and of its baseline's kernel in turns, on one machine in one process: what a verdict on time rests on.

    ``base`` names where the other kernel came from, ``base_hash`` is its case hash.  Samples are nanoseconds, one tuple a round;
    round i of both sides was measured back to back.
    """

    base: str
    base_hash: str
    head_ns: tuple[tuple[float, ...], ...]
    base_ns: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class CaseResult:
    """One case after it ran: what it was, how it ended, and every number known about it.

    ``operations`` and ``metadata`` are the JSON forms of tilelang_min's TileOperation and KernelMetadata; ``sources`` maps
    file name to text, ``generated`` and ``assembly`` are the code generator's text and the machine listing.  ``checks`` are the
    workload's limits by metric (``min``, ``max``, ``max_regression``); ``interleaved`` is there after ``run --against``.
    ``sizes`` are those of runtime dimensions, at which all figures are; ``metadata`` is that of a launch with them.
    """

    id: str
    hash: str
    kernel: str
    target_name: str
    target: str
    args: dict[str, Any]
    shape: dict[str, Any]
    tiles: dict[str, Any]
    status: str
    reason: str = ""
    metadata: dict[str, Any] | None = None
    operations: tuple[dict[str, Any], ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    generated: str = ""
    assembly: str = ""
    bundle: str | None = None
    metrics: tuple[Metric, ...] = ()
    timing: Timing | None = None
    check: Check | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    suggestions: tuple[Suggestion, ...] = ()
    checks: dict[str, dict[str, float]] = field(default_factory=dict)
    interleaved: Interleaved | None = None
    sizes: dict[str, Any] = field(default_factory=dict)

    @property
    def extents(self) -> dict[str, Any]:
        """How large the problem is: the shape, and the sizes of runtime dimensions."""
        return {**self.shape, **self.sizes}

    @property
    def parameters(self) -> dict[str, Any]:
        """Arguments, shape, sizes and tiles in one dictionary."""
        return {**self.args, **self.extents, **self.tiles}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A limit of a machine for the roofline.

    ``quantity`` is ``dram.bytes_per_s``, ``shared.bytes_per_s`` or ``flops_per_s``; ``unit_class`` says which unit for the last
    (``vector.float32``, ``matrix.float16``).  ``value`` in bytes/s or FLOP/s.
    """

    target: str
    quantity: str
    unit_class: str
    value: float
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Something that could not be measured: ``what``, for which ``target``, ``why``, and the ``remedy``."""

    what: str
    target: str
    why: str
    remedy: str = ""


@dataclass(frozen=True)
class Run:
    """A whole run as reports see it.

    ``machine`` describes the host without naming it (CPU model, cores, GPUs, Python, versions).  ``finished`` is None for a
    run that was interrupted.
    """

    name: str
    description: str
    workload_file: str
    version: str
    started: str
    finished: str | None
    machine: dict[str, Any]
    cases: tuple[CaseResult, ...]
    ceilings: tuple[Ceiling, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
