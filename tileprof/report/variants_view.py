"""Static metadata of the variants side by side: a table a target, a column a case, a row a fact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tileprof.analyse.figures import listing_provenance
from tileprof.analyse.labels import targets
from tileprof.report import numbers
from tileprof.report.cells import ABSENT, Cell, ProvenanceTable
from tileprof.report.words import Words, limiter_words, words
from tileprof.store.records import CaseResult, Provenance, Run

Metadata = dict[str, Any]

MOST_COLUMNS = 16
"""Variants of a target that stand side by side, the fastest; the sortable table has them all."""

CLASS_GROUPS = {
    "matrix": ("matrix",),
    "arithmetic": ("fma", "float", "special"),
    "convert": ("convert",),
    "integer": ("integer", "move", "constant_load"),
    "global": ("global_load", "global_store", "async_copy"),
    "shared": ("shared_load", "shared_store", "ldmatrix"),
    "spill": ("local_load", "local_store"),
    "control": ("barrier", "wait", "branch", "other"),
}
"""Instruction classes as the mix bar groups them; classes not named here go to ``control``."""


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A fact of all variants.

    ``same`` when every known value is equal, which the page dims; ``section`` starts a group.  ``p`` is the provenance's number
    where all cells share it; then the cells carry none.
    """

    name: str
    unit: str
    cells: tuple[Cell, ...]
    same: bool
    section: str = ""
    p: int | None = None

    @property
    def absent(self) -> bool:
        """Whether no variant knows this."""
        return all(cell.absent for cell in self.cells)


@dataclass(frozen=True, slots=True)
class MixSlice:
    """Part of an instruction-mix bar, in per mille."""

    group: str
    offset: int
    width: int
    title: str


@dataclass(frozen=True, slots=True)
class VariantTable:
    """One target.  ``hidden`` counts the cases that are too many, ``without`` are labels of those of which nothing is known."""

    name: str
    target: str
    words: Words
    columns: tuple[tuple[str, str], ...]
    mixes: tuple[tuple[MixSlice, ...], ...]
    rows: tuple[VariantRow, ...]
    hidden: int = 0
    without: tuple[str, ...] = ()


def variant_tables(run: Run, labels: dict[str, str], provenances: ProvenanceTable) -> list[VariantTable]:
    """A table for each target that has at least one case with metadata."""
    tables = []
    for name, target in targets(run.cases).items():
        cases = [case for case in run.cases if case.target_name == name]
        if any(case.metadata for case in cases):
            tables.append(_table(name, target, cases, labels, provenances))
    return tables


def _table(
    name: str, target: str, cases: list[CaseResult], labels: dict[str, str], provenances: ProvenanceTable
) -> VariantTable:
    vocabulary = words(target)
    without = tuple(labels[case.id] for case in cases if not case.metadata)
    cases = [case for case in cases if case.metadata]
    hidden = max(0, len(cases) - MOST_COLUMNS)
    if hidden:
        kept = {case.id for case in sorted(cases, key=_slowness)[:MOST_COLUMNS]}
        cases = [case for case in cases if case.id in kept]
    rows = [_row(fact, cases, provenances) for fact in _facts(vocabulary, cases)]
    columns = tuple((labels[case.id], case.id) for case in cases)
    return VariantTable(
        name,
        target,
        vocabulary,
        columns,
        tuple(tuple(instruction_mix(case)) for case in cases),
        tuple(r for r in rows if r),
        hidden,
        without,
    )


def _slowness(case: CaseResult) -> float:
    """For taking the fastest: the median time, infinite where there is none."""
    return case.timing.median_ns if case.timing is not None and case.timing.samples_ns else float("inf")


@dataclass(frozen=True, slots=True)
class _Fact:
    """How to take one row out of the metadata: the value, its text, and its provenance."""

    name: str
    unit: str
    value: Callable[[Metadata], Any]
    text: Callable[[Any], str]
    provenance: Callable[[CaseResult], Provenance]
    section: str = ""
    keep_if_absent: bool = True


def _static(case: CaseResult) -> Provenance:
    toolchain = (case.metadata or {}).get("toolchain") or {}
    return Provenance("static", "binary and compiler log", "", ", ".join(f"{k} {v}" for k, v in toolchain.items()))


def _model(_: CaseResult) -> Provenance:
    return Provenance(
        "derived", "occupancy model", "", "registers, shared memory and threads against the unit's limits"
    )


def _timed(_: CaseResult) -> Provenance:
    return Provenance("measured", "compiler", "", "wall time of each step when the binary was made")


def _program(_: CaseResult) -> Provenance:
    return Provenance("derived", "tile program", "", "counted from the tile program, a launch")


def _field(name: str) -> Callable[[Metadata], Any]:
    return lambda metadata: metadata.get(name)


def _facts(vocabulary: Words, cases: list[CaseResult]) -> list[_Fact]:
    shared, unit, text = vocabulary.shared, vocabulary.unit, numbers.count
    resources = f"a {vocabulary.warp if vocabulary.vendor == 'CPU' else 'thread'}"
    facts = [
        _Fact("registers", "a thread", _field("registers_per_thread"), text, _static, "Resources"),
        _Fact("VGPRs", "a thread", _field("vgprs"), text, _static, keep_if_absent=False),
        _Fact("AGPRs", "a thread", _field("agprs"), text, _static, keep_if_absent=False),
        _Fact("SGPRs", f"a {vocabulary.warp}", _field("sgprs"), text, _static, keep_if_absent=False),
        _Fact(f"{shared}, static", f"a {vocabulary.block}", _field("shared_bytes_static"), numbers.byte_count, _static),
        _Fact(
            f"{shared}, dynamic", f"a {vocabulary.block}", _field("shared_bytes_dynamic"), numbers.byte_count, _static
        ),
        _Fact("spill stores", resources, _field("spill_store_bytes"), numbers.byte_count, _static),
        _Fact("spill loads", resources, _field("spill_load_bytes"), numbers.byte_count, _static),
        _Fact("spilled VGPRs", "", _field("spilled_vgprs"), text, _static, keep_if_absent=False),
        _Fact("spilled SGPRs", "", _field("spilled_sgprs"), text, _static, keep_if_absent=False),
        _Fact("stack", resources, _field("stack_bytes"), numbers.byte_count, _static),
        _Fact("threads", f"a {vocabulary.block}", _field("threads_per_block"), text, _static, "Launch and occupancy"),
        _Fact("grid", f"{vocabulary.block}s", _field("grid"), _grid, _static),
        _Fact(f"{vocabulary.block}s", f"a {unit}", _field("max_blocks_per_unit"), text, _model),
        _Fact("occupancy", "", _field("occupancy"), numbers.percent, _model),
        _Fact(
            "limited by", "", lambda metadata: limiter_words(metadata, metadata.get("target", "")), _limiters, _model
        ),
        _Fact("FLOPs", "a launch", _flops, lambda v: numbers.si(v, "FLOP"), _program, "Work"),
        _Fact("least bytes", "a launch", _field("bytes_min"), lambda v: numbers.si(v, "B"), _program),
        _Fact("instructions", "static", _instructions, text, listing_provenance, "Instructions by class"),
    ]
    for klass in _classes(cases):
        name = klass.replace("_", " ")
        name = name.replace("shared", "LDS") if vocabulary.vendor == "AMD" else name
        facts.append(_Fact(name, "", _class_count(klass), text, listing_provenance))
    facts += [
        _Fact("on an operation", "share", _attributed, numbers.percent, listing_provenance),
        _Fact("code", "", _field("code_bytes"), numbers.byte_count, _static),
        _Fact("compile time", "all steps", _compile_seconds, numbers.seconds, _timed, "Compilation"),
    ]
    steps = dict.fromkeys(step for case in cases for step in ((case.metadata or {}).get("compile_seconds") or {}))
    facts += [_Fact(step, "", _step(step), numbers.seconds, _timed) for step in steps]
    return facts


def _row(fact: _Fact, cases: list[CaseResult], provenances: ProvenanceTable) -> VariantRow | None:
    cells: list[Cell] = []
    for case in cases:
        value = fact.value(case.metadata) if case.metadata else None
        if value is None:
            cells.append(ABSENT)
        else:
            mark = "z" if value == 0 else ""
            cells.append(provenances.cell(fact.text(value), fact.provenance(case), _exact(value), mark))
    known = [cell.text for cell in cells if not cell.absent]
    if not known and not fact.keep_if_absent:
        return None
    same = len(set(known)) <= 1 and len(known) > 1
    shared = {cell.p for cell in cells if cell.p is not None}
    common = shared.pop() if len(shared) == 1 else None
    if common is not None:
        cells = [replace(cell, p=None) for cell in cells]
    return VariantRow(fact.name, fact.unit, tuple(cells), same, fact.section, common)


def instruction_mix(case: CaseResult) -> list[MixSlice]:
    """The static instruction mix of a case as slices of a bar 1000 wide; empty without a listing."""
    total: dict[str, int] = ((case.metadata or {}).get("instructions") or {}).get("total") or {}
    whole = sum(total.values())
    if not whole:
        return []
    group_of = {klass: group for group, classes in CLASS_GROUPS.items() for klass in classes}
    counts = dict.fromkeys(CLASS_GROUPS, 0)
    for klass, number in total.items():
        counts[group_of.get(klass, "control")] += number
    slices, before = [], 0
    for group, number in counts.items():
        if number:
            start, end = round(1000 * before / whole), round(1000 * (before + number) / whole)
            title = f"{group}: {numbers.count(number)} ({numbers.percent(number / whole)})"
            slices.append(MixSlice(group, start, end - start, title))
            before += number
    return slices


def _exact(value: Any) -> str:
    # Only where the text is rounded does the exact value say more.
    return numbers.count(value) if isinstance(value, int) and value >= 1_000_000 else ""


def _grid(value: Any) -> str:
    return " × ".join(numbers.count(extent) if isinstance(extent, int) else str(extent) for extent in value)


def _limiters(value: Any) -> str:
    return ", ".join(value) if value else numbers.ABSENT


def _flops(metadata: Metadata) -> int | None:
    flops = metadata.get("flops")
    return sum(flops.values()) if flops is not None else None


def _totals(metadata: Metadata) -> dict[str, int] | None:
    return (metadata.get("instructions") or {}).get("total")


def _instructions(metadata: Metadata) -> int | None:
    total = _totals(metadata)
    return None if total is None else sum(total.values())


def _class_count(klass: str) -> Callable[[Metadata], Any]:
    # The listing was counted, so a class that does not occur is a true 0.
    def of(metadata: Metadata) -> int | None:
        total = _totals(metadata)
        return None if total is None else total.get(klass, 0)

    return of


def _classes(cases: list[CaseResult]) -> list[str]:
    found = {klass: None for case in cases for klass in (_totals(case.metadata or {}) or {})}
    order = [klass for classes in CLASS_GROUPS.values() for klass in classes]
    return sorted(found, key=lambda klass: (order.index(klass) if klass in order else len(order), klass))


def _attributed(metadata: Metadata) -> float | None:
    return (metadata.get("instructions") or {}).get("attributed")


def _compile_seconds(metadata: Metadata) -> float | None:
    steps = metadata.get("compile_seconds")
    return sum(steps.values()) if steps else None


def _step(step: str) -> Callable[[Metadata], Any]:
    return lambda metadata: (metadata.get("compile_seconds") or {}).get(step)
