"""Workload -> cases: the product of the axes, less what ``where`` and ``exclude`` take out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from tileprof.errors import WorkloadError
from tileprof.workload.expression import Expression, ExpressionError, evaluate, parse_expression
from tileprof.workload.hashing import build_hash, case_hash, kernel_digest
from tileprof.workload.records import Case, KernelEntry, Scalar, TargetEntry, Workload

MOST_COMBINATIONS = 2_000_000
"""Combinations, before ``where``, that are looked at at all."""


def expand_cases(workload: Workload, targets: tuple[str, ...] | None = None) -> list[Case]:
    """All cases in the order of the file: kernel, args, shape, sizes, tiles, target; the last of these varies fastest.

    ``targets`` restricts them to the targets of these names.  Raises WorkloadError for an expression that cannot be
    computed, for more than MOST_COMBINATIONS combinations, for a kernel of which ``where`` and ``exclude`` leave nothing, and
    for two cases of one id, which kernels of the same name can have.
    """
    policy = {"timing": asdict(workload.timing), "seed": workload.seed}
    cases: list[Case] = []
    known: set[str] = set()
    for kernel in workload.kernels:
        count = combinations(kernel)
        if count > MOST_COMBINATIONS:
            raise WorkloadError(
                f"kernel '{kernel.name}' has {count:,} combinations, more than {MOST_COMBINATIONS:,} can be looked at",
                remedy="shorten its axes, or split it into several workloads",
            )
        digest = kernel_digest(kernel)
        found = 0
        chosen = [workload.targets[n] for n in kernel.targets]
        for case in _kernel_cases(kernel, chosen):
            found += 1
            if case.id in known:
                raise WorkloadError(
                    f"two cases are called {case.id}: kernels of the name '{kernel.name}' differ only in constants",
                    remedy="give one of the kernels another name, or write what differs as a list of one value",
                )
            known.add(case.id)
            if targets is None or case.target.name in targets:
                build = build_hash(case, digest, policy)
                cases.append(replace(case, hash=case_hash(case, digest, policy), build=build))
        if found == 0:
            raise WorkloadError(
                f"no case of kernel '{kernel.name}' is left: `where` and `exclude` take out all {count:,} combinations",
                remedy="loosen them, or remove the kernel",
            )
    return cases


def combinations(kernel: KernelEntry) -> int:
    """Size of the product of all axes and targets, before ``where`` and ``exclude``."""
    lengths = [len(values) for values in (*kernel.args.values(), *kernel.tiles.values())]
    return math.prod(lengths) * len(kernel.shapes) * len(kernel.sizes) * len(kernel.targets)


def _kernel_cases(kernel: KernelEntry, targets: list[TargetEntry]) -> Iterator[Case]:
    conditions = [parse_expression(text) for text in kernel.where]
    launches = list(zip(kernel.sizes, kernel.places, strict=True))
    for args, shape, (sizes, places) in itertools.product(_product(kernel.args), kernel.shapes, launches):
        for tiles in _product(kernel.tiles):
            values = {**args, **shape, **sizes, **tiles}
            for target in targets:
                if _excluded(kernel, values, target) or not _wanted(kernel, conditions, values, target):
                    continue
                case_id = _case_id(kernel, args, {**shape, **sizes}, tiles, target)
                yield Case(case_id, "", kernel, target, args, shape, tiles, sizes, places=places)


def _product(axes: dict[str, tuple[Scalar, ...]]) -> Iterator[dict[str, Scalar]]:
    for combination in itertools.product(*axes.values()):
        yield dict(zip(axes, combination))


def _excluded(kernel: KernelEntry, values: dict[str, Any], target: TargetEntry) -> bool:
    named = {**values, "target": target.name}
    return any(all(key in named and named[key] == value for key, value in e.items()) for e in kernel.exclude)


def _wanted(kernel: KernelEntry, conditions: list[Expression], values: dict[str, Any], target: TargetEntry) -> bool:
    names = {**target.facts, "target": target.name, **values}
    for condition in conditions:
        try:
            if not evaluate(condition, names):
                return False
        except ExpressionError as error:
            shown = ", ".join(f"{key}={value}" for key, value in values.items())
            raise WorkloadError(
                f"kernel '{kernel.name}': where \"{condition.text}\" cannot be computed for {shown} on "
                f"{target.name}: {error}"
            ) from None
    return True


def _case_id(
    kernel: KernelEntry,
    args: dict[str, Scalar],
    shape: dict[str, int],
    tiles: dict[str, Scalar],
    target: TargetEntry,
) -> str:
    """``matmul[float16,M=4096,num_stages=3]@h200``: words of args alone, everything else as name=value, sizes behind the shape.

    Constants are left out, since they are the same in every case of the kernel.
    """
    parts = [_show(key, value, bare=isinstance(value, str)) for key, value in args.items() if key in kernel.axes]
    parts += [_show(key, value) for key, value in shape.items()]
    parts += [_show(key, value) for key, value in tiles.items() if key in kernel.axes]
    inside = f"[{','.join(parts)}]" if parts else ""
    return f"{kernel.name}{inside}@{target.name}"


def _show(key: str, value: Scalar, *, bare: bool = False) -> str:
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return text if bare else f"{key}={text}"
