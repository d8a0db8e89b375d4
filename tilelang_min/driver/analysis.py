"""Simulating a kernel by classes of blocks and scaling the counts to the launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilelang_min.analysis.blocks import BlockClass, block_classes, classify
from tilelang_min.analysis.iterations import Iterations
from tilelang_min.analysis.samples import Samples
from tilelang_min.driver.emitted import check_emitted
from tilelang_min.driver.fills import random_arguments, zero_arguments
from tilelang_min.driver.simulated import Analysis
from tilelang_min.errors import SimulationError
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import SimulationResult, runs_in_strands, simulate

if TYPE_CHECKING:
    from tilelang_min.driver.simulated import SimulatedKernel


def analyse(kernel: SimulatedKernel, args: tuple[Any, ...], sizes: Mapping[str, int]) -> Analysis:
    """One block of each class, counted and scaled; ``args`` (or random inputs) are what they compute on."""
    hidden = kernel.hidden_arguments() if args else ()
    analysis = analyse_program(kernel.program_for(sizes), (*args, *hidden))
    if kernel.instrument is not None:  # what the caller does not see is not counted
        names = {parameter.name for parameter in kernel.instrument.hidden}
        outputs = {name: value for name, value in analysis.outputs.items() if name not in names}
        counts = tuple(count for count in analysis.counts if count.buffer not in names)
        analysis = replace(analysis, counts=counts, outputs=outputs)
    if kernel.target.kind != "hip":
        return analysis
    counts, notes = check_emitted(analysis.counts, kernel.listing.instructions, kernel.operations)
    return replace(analysis, counts=counts, notes=(*analysis.notes, *notes))


def analyse_program(program: ThreadProgram, args: tuple[Any, ...] = ()) -> Analysis:
    """:func:`analyse` for a thread program that was not compiled: counting needs no binary.

    Without ``args`` outputs are of no interest: of loop iterations that behave alike a few are simulated for all.
    """
    blocks = classify(program)
    classes = blocks.classes
    # Where nothing depends on data, zeros do as well as random numbers, and take no time to make.
    arrays = args or (random_arguments if blocks.sampled else zero_arguments)(program.parameters)
    values = {parameter.name: array for parameter, array in zip(program.parameters, arrays, strict=True)}
    merged: dict[tuple[Any, ...], Any] = {}
    executed: dict[int, Counter[str]] = {}
    notes: list[str] = []
    counted: dict[tuple[int, int, int], int] = {}
    for result, times in results_of(program, values, classes, whole=bool(args)):
        if args:
            values.update(result.outputs)
        scaled = result.scaled(times)
        (block,) = result.blocks
        counted[block] = counted.get(block, 0) + times
        for count in scaled.counts:
            key = (count.operation, count.buffer, count.space, count.access, count.width_bits)
            merged[key] = count if key not in merged else merged[key].plus(count)
        for operation, by_class in scaled.executed.items():
            executed.setdefault(operation, Counter()).update(by_class)
        notes += [note for note in result.notes if note not in notes]
    sampled = [operation for operation in program.operations if operation.id in blocks.sampled]
    if len(classes) < program.grid[0] * program.grid[1] * program.grid[2]:
        notes += [
            f"{operation.label} (line {operation.location.line}): what it accesses depends on data or differs between blocks in "
            "too many ways: sampled, from one block of each class"
            for operation in sampled
        ]
    return Analysis(
        counts=tuple(merged.values()),
        executed={operation: dict(by_class) for operation, by_class in executed.items()},
        classes=tuple(counted.items()),
        outputs={
            parameter.name: values[parameter.name]
            for parameter in program.parameters
            if parameter.access != "in" and args
        },
        notes=tuple(notes),
        sampled=tuple(operation.id for operation in sampled),
    )


def results_of(
    program: ThreadProgram,
    values: dict[str, Any],
    classes: tuple[BlockClass, ...] | None = None,
    *,
    whole: bool = False,
    record: bool = False,
    check: bool = True,
) -> Iterator[tuple[SimulationResult, int]]:
    """Simulated blocks, and how often each counts; not ``whole``: of iterations that behave alike a few, for all of them."""
    classes = block_classes(program) if classes is None else classes
    if not whole and runs_in_strands(program):
        found = _sampled(program, values, classes, record=record, check=check)
        if found is not None:
            yield from found
            return
    iterations = None if whole or record else Iterations(program)
    for item in classes:
        schedule = None if iterations is None else iterations.repeats(item.representative)
        block = [item.representative]
        yield simulate(program, values, blocks=block, schedule=schedule, record=record, check=check), item.count


def _sampled(
    program: ThreadProgram, values: dict[str, Any], classes: tuple[BlockClass, ...], *, record: bool, check: bool
) -> list[tuple[SimulationResult, int]] | None:
    """What :class:`Samples` chooses; None where those do not run through: the whole program then says what is wrong."""
    try:
        return [
            (
                simulate(program, values, blocks=[each.block], schedule=each.schedule, record=record, check=check),
                each.count,
            )
            for each in Samples(program).all(classes)
        ]
    except SimulationError:
        return None


def simulate_tiles(
    program: ThreadProgram, arguments: Mapping[str, Any], blocks: Any, tiles: int, *, count: bool
) -> SimulationResult:
    """``simulate`` for the first ``tiles`` of each persistent block; of other blocks for all they do."""
    schedule = Samples(program).first_tiles(tiles) if runs_in_strands(program) else {}
    return simulate(program, arguments, blocks=blocks, count=count, schedule=schedule)
