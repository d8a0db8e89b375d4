"""What a validated workload is made of: frozen records without pydantic, for every room behind this one."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Scalar = str | int | float | bool
"""A value of an argument or a tile parameter."""

PROFILERS = ("auto", "none", "timer", "cycles", "ncu", "nsys", "rocprofv3", "rocprof", "perf")
"""Words that ``profiler:`` and ``--profiler`` take."""

INPUT_KINDS = ("normal", "uniform", "zeros", "ones", "arange")
"""Built-in ways to fill an input array."""


@dataclass(frozen=True, slots=True)
class FunctionReference:
    """``FILE:FUNCTION`` or ``package.module:function``: exactly one of ``file`` (absolute) and ``module`` is set.

    ``text`` is the reference as the workload file has it.
    """

    text: str
    function: str
    file: str | None = None
    module: str | None = None

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> FunctionReference:
        """The reference whose ``asdict`` is ``record``."""
        return cls(**record)


@dataclass(frozen=True, slots=True)
class TimingPolicy:
    """How a case is timed.

    Each of ``rounds`` rounds makes ``warmup`` untimed launches and ``samples`` timed ones, with the last-level cache flushed before
    each where ``flush_l2``.  ``graph`` asks for CUDA graphs.  When ``budget_s`` seconds of launching are spent the rest of the
    samples is left out, but never below three; the result says how many were taken.
    """

    warmup: int = 10
    samples: int = 50
    rounds: int = 1
    flush_l2: bool = True
    graph: str = "auto"
    budget_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``|result - reference| <= atol + rtol * |reference|`` for every element."""

    rtol: float
    atol: float


MOST_SIZE = 2**31 - 1
"""Largest size of a runtime dimension, which is an int32."""

PLACEHOLDER = re.compile(r"\{(\w+)\}")
"""A case's value in a command."""


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """A named target of the workload.

    ``target`` is the canonical name (``cuda:sm_80``); ``unsupported`` says why this version cannot compile for it (None where it
    can).  ``facts`` are the names that ``where`` expressions may use (shared_bytes, warp_size, ...).
    """

    name: str
    target: str
    kind: str
    profilers: tuple[str, ...]
    unsupported: str | None = None
    facts: dict[str, Scalar] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class KernelEntry:
    """One kernel of the workload with its axes.

    Exactly one of ``source``, ``bundle``, ``callable`` and ``command`` is set.  ``args`` and ``tiles`` map a name to its values,
    one for a constant; ``axes`` names those written as lists.  ``shapes`` are the shapes, every list inside them expanded.
    ``sizes`` are likewise those of runtime dimensions, and ``places`` says where in the file each of them stands: by the
    dimension's name, and under the empty name the whole entry.
    """

    name: str
    source: FunctionReference | None = None
    bundle: str | None = None
    callable: FunctionReference | None = None
    python: str | None = None
    command: tuple[str, ...] | None = None
    args: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    shapes: tuple[dict[str, int], ...] = ({},)
    sizes: tuple[dict[str, int], ...] = ({},)
    places: tuple[dict[str, str], ...] = field(default=({},), compare=False)
    tiles: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    axes: frozenset[str] = frozenset()
    where: tuple[str, ...] = ()
    exclude: tuple[dict[str, Scalar], ...] = ()
    targets: tuple[str, ...] = ()
    inputs: dict[str, str | FunctionReference] = field(default_factory=dict)
    reference: FunctionReference | None = None
    tolerance: Tolerance | None = None
    metrics: tuple[str, ...] = ()
    checks: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """What the kernel is made from, as the file has it."""
        if self.source is not None:
            return self.source.text
        if self.callable is not None:
            return self.callable.text
        return self.bundle if self.bundle is not None else " ".join(self.command or ())


@dataclass(frozen=True)
class Workload:
    """A validated workload file.  ``directory`` is where relative paths start; ``file`` the file's name without its directory."""

    file: str
    directory: Path
    name: str
    description: str
    timing: TimingPolicy
    timeout_s: float
    seed: int
    targets: dict[str, TargetEntry]
    metric_groups: dict[str, tuple[str, ...]]
    raw_metrics: dict[str, tuple[str, ...]]
    kernels: tuple[KernelEntry, ...]


@dataclass(frozen=True)
class Case:
    """One kernel x args x shape x sizes x tile configuration x target.

    ``id`` is readable and unique in its workload; ``hash`` covers everything that decides the result (kernel source, arguments,
    inputs, reference, target, toolchain versions) and keys resume and baselines.  ``sizes`` are those of runtime dimensions
    (``T.dynamic``): cases that differ in nothing else have one ``build``, the hash of what is compiled once for all of them.
    ``places`` are those of :class:`KernelEntry`.
    """

    id: str
    hash: str
    kernel: KernelEntry
    target: TargetEntry
    args: dict[str, Scalar]
    shape: dict[str, int]
    tiles: dict[str, Scalar]
    sizes: dict[str, int] = field(default_factory=dict)
    build: str = ""
    places: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def values(self) -> dict[str, Scalar]:
        """Every constant that the kernel's factory is called with, by name: all but the sizes of runtime dimensions."""
        return {**self.args, **self.shape, **self.tiles}

    @property
    def command(self) -> tuple[str, ...]:
        """The kernel's command with every ``{name}`` replaced by the case's value of that name; empty where it has none."""
        values = {name: str(value) for name, value in self.values.items()}
        words = self.kernel.command or ()
        return tuple(PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word) for word in words)

    def to_job(self) -> dict[str, Any]:
        """What a worker process needs to compile and check the case, as JSON."""
        kernel = self.kernel
        return {
            "id": self.id,
            "hash": self.hash,
            "target": self.target.target,
            "values": self.values,
            "sizes": self.sizes,
            "places": self.places,
            "source": asdict(kernel.source) if kernel.source else None,
            "bundle": kernel.bundle,
            "inputs": {
                name: asdict(kind) if isinstance(kind, FunctionReference) else kind
                for name, kind in kernel.inputs.items()
            },
            "reference": asdict(kernel.reference) if kernel.reference else None,
            "tolerance": asdict(kernel.tolerance) if kernel.tolerance else None,
        }
