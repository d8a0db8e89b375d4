"""``simulate``: checks arguments, chooses blocks, runs them in chunks, sums up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang_min.errors import SimulationError
from tilelang_min.program import Parameter, ThreadProgram
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.simulate import narrow
from tilelang_min.simulate.cluster import UNPLACED, Cluster
from tilelang_min.simulate.counting import Counting, executed
from tilelang_min.simulate.machine import Machine, SplitBlocksError
from tilelang_min.simulate.placement import Placement
from tilelang_min.simulate.recording import Recording, merge_recordings
from tilelang_min.simulate.recording import record as record_accesses
from tilelang_min.simulate.repeating import Schedule
from tilelang_min.simulate.result import AccessCount, SimulationResult, merge_counts, merge_executed
from tilelang_min.simulate.sites import TracedAccess
from tilelang_min.simulate.statements import Translation, translate

CHUNK_BYTES = 256 << 20
"""Most memory for the registers, shared memory and lane constants of blocks that run together."""
CHUNK_LANES = 1 << 13
"""Most lanes that run together: measured best between 1 << 10 and 1 << 13, where arrays still fit a core's cache."""
LANE_CONSTANT_BYTES = 4096
"""Estimate of memory for index arrays, a lane."""

Block = tuple[int, int, int]

_translations: dict[int, tuple[ThreadProgram, Translation]] = {}


def simulate(
    program: ThreadProgram,
    arguments: Mapping[str, Any],
    *,
    blocks: Sequence[Block] | None = None,
    count: bool = True,
    check: bool = True,
    placements: Mapping[str, Placement] | None = None,
    record: bool = False,
    schedule: Schedule | None = None,
    trace: Iterable[int] = (),
) -> SimulationResult:
    """Executes a thread program on NumPy, all threads of the chosen blocks at once.

    ``arguments`` maps parameter names to arrays of the parameter's dtype and shape (``out`` parameters may be left out:
    they start as NaN, or 0x7f bytes).  ``blocks`` are block indices ``(x, y, z)``; None means all.  ``count`` records
    accesses and instructions; ``check`` looks for races on shared memory.  ``placements`` count accesses to the shared
    tiles they name as if these lay otherwise (see :class:`Placement`); ``record`` keeps the accesses in ``result.recording``,
    so that further placements need no further simulation.  Both leave outputs as they are.  ``schedule`` says, by handle of a loop
    variable, which iterations stand for others (``analysis/iterations.py``, ``samples.py``) in the blocks that are given: counts
    are then those of the whole loop, and outputs mean nothing where iterations repeat.  ``trace`` names operations whose
    accesses, one by one, are kept in ``result.trace`` (of programs of one strand).

    Float arithmetic is that of NumPy in the type of the expression, an operation at a time; a multiply-add rounds twice
    where hardware fuses it.  Matrix instructions round once, from float64.

    Raises :class:`SimulationError` for accesses out of range or misaligned, barriers in divergent control flow, races, and
    constructs the simulator has no rule for; :class:`PlacementError` where a placement does not suit an access.
    """
    if (placements or record) and (not count or program.target.kind == "cpu"):
        raise SimulationError(
            "placements are for counting on a GPU", remedy="leave them out, or simulate for a cuda or hip target"
        )
    translation = _translation(program)
    chosen = _blocks(program, blocks)
    if any(key in translation.whole and not isinstance(entry, tuple) for key, entry in (schedule or {}).items()):
        raise SimulationError("the schedule chooses iterations of a loop whose iterations all run")
    notes = []
    if program.target.kind == "cpu":
        notes.append("a CPU has no shared memory banks or sectors: bytes alone are counted")
    per_chunk = _chunk_size(program, translation)
    computes = not any(isinstance(entry, tuple) or entry.inner for entry in (schedule or {}).values())
    traced, found = frozenset(trace), list[TracedAccess]()
    while True:
        found.clear()
        arrays = {parameter.name: _array(parameter, arguments, copied=computes) for parameter in program.parameters}
        unknown = sorted(set(arguments) - set(arrays))
        if unknown:
            raise SimulationError(
                f"{program.name} has no parameter {unknown[0]!r}", remedy=f"it has: {', '.join(arrays)}"
            )
        try:
            counts, work, recording = _run(
                program,
                translation,
                chosen,
                arrays,
                per_chunk,
                count=count,
                check=check,
                exact=bool(placements) or record,
                schedule=schedule or {},
                traced=(traced, found),
            )
            break
        except SplitBlocksError:
            per_chunk = 1
    outputs = {p.name: arrays[p.name].reshape(p.shape) for p in program.parameters if p.access != "in"}
    if placements and recording is not None:
        fixed = recording.fixed  # of these only the places they have are possible, and those accesses were not recorded
        others = [
            c
            for c in counts
            if c.space != "shared" or c.buffer not in placements or (c.buffer in fixed and c.access in UNPLACED)
        ]
        counts = merge_counts([*others, *(c for c in recording.counts(placements) if c.buffer in placements)])
    return SimulationResult(
        outputs, counts, work, tuple(chosen), tuple(notes), recording if record else None, tuple(found)
    )


def _run(
    program: ThreadProgram,
    translation: Translation,
    blocks: Sequence[Block],
    arrays: Mapping[str, Any],
    per_chunk: int,
    *,
    count: bool,
    check: bool,
    exact: bool,
    schedule: Schedule,
    traced: tuple[frozenset[int], list[TracedAccess]],
) -> tuple[list[AccessCount], dict[int, dict[str, int]], Recording | None]:
    if translation.strands:
        return _run_clusters(
            program, translation, blocks, arrays, count=count, check=check, exact=exact, schedule=schedule
        )
    counting = Counting()
    counts: list[AccessCount] = []
    work: dict[int, dict[str, int]] = {}
    recordings = []
    for start in range(0, len(blocks), per_chunk):
        chunk = blocks[start : start + per_chunk]
        machine = Machine(program, translation, chunk, arrays, count=count, check=check, exact=exact)
        machine.schedule, machine.traced = schedule, traced[0]
        regions = machine.run()
        traced[1].extend(machine.trace)
        if count:
            found = counting.counts(machine)
            counts = merge_counts([*counts, *(one for _, one in found)])
            work = merge_executed([work, *executed(machine, regions, found)])
        if exact:
            recordings.append(record_accesses(machine))
    return counts, work, merge_recordings(recordings) if recordings else None


def _run_clusters(
    program: ThreadProgram,
    translation: Translation,
    blocks: Sequence[Block],
    arrays: Mapping[str, Any],
    *,
    count: bool,
    check: bool,
    exact: bool,
    schedule: Schedule,
) -> tuple[list[AccessCount], dict[int, dict[str, int]], Recording | None]:
    """As :func:`_run`, cluster by cluster; of a cluster's blocks those that were not chosen run along and count nothing."""
    counting = Counting()
    parts: list[AccessCount] = []
    work: dict[int, dict[str, int]] = {}
    recordings = []
    chosen = set(blocks)
    for members in _clusters(program, blocks):
        cluster = Cluster(program, translation, members, arrays, count=count, check=check, exact=exact)
        for strand in cluster.strands:
            strand.schedule = schedule
        for strand, regions in zip(cluster.strands, cluster.run(), strict=True):
            if strand.blocks[0] not in chosen:
                continue
            if count:
                found = counting.counts(strand)
                more = [*(one for _, one in found), *strand.async_counts()]
                parts = merge_counts([*parts, *more])
                work = merge_executed([work, *executed(strand, regions, found)])
            if exact:
                recordings.append(record_accesses(strand))
    return parts, work, merge_recordings(recordings) if recordings else None


def _clusters(program: ThreadProgram, blocks: Sequence[Block]) -> list[list[Block]]:
    """The clusters that hold these blocks, each with all its blocks by rank, in order of the first chosen."""
    sizes = program.cluster
    if any(extent % size for extent, size in zip(program.grid, sizes, strict=True)):
        raise SimulationError(f"the grid {program.grid} of {program.name} is not whole clusters of {sizes}")
    corners = dict.fromkeys(tuple(i // n * n for i, n in zip(block, sizes, strict=True)) for block in blocks)
    return [
        [(x + i, y + j, z + k) for k in range(sizes[2]) for j in range(sizes[1]) for i in range(sizes[0])]
        for x, y, z in corners
    ]


def runs_in_strands(program: ThreadProgram) -> bool:
    """Whether threads of a block wait for one another's roles, so that they run as strands (``roles.py``)."""
    return bool(_translation(program).strands)


def _translation(program: ThreadProgram) -> Translation:
    known = _translations.get(id(program))
    if known is not None and known[0] is program:
        return known[1]
    translation = translate(program)
    if len(_translations) >= 16:
        _translations.pop(next(iter(_translations)))
    _translations[id(program)] = (program, translation)
    return translation


def _blocks(program: ThreadProgram, blocks: Sequence[Block] | None) -> list[Block]:
    gx, gy, gz = program.grid
    if blocks is None:
        return [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]
    try:
        chosen = [(int(x), int(y), int(z)) for x, y, z in blocks]
    except (TypeError, ValueError) as error:
        raise SimulationError(
            f"blocks={blocks!r} are no blocks of a grid", remedy="give (x, y, z) of each: blocks=[(0, 0, 0)]"
        ) from error
    if not chosen:
        raise SimulationError("blocks is empty: there is nothing to simulate", remedy="leave it out for all blocks")
    for block in chosen:
        if not all(0 <= i < extent for i, extent in zip(block, program.grid, strict=True)):
            raise SimulationError(f"block {block} is outside the grid {program.grid} of {program.name}")
    return chosen


def _chunk_size(program: ThreadProgram, translation: Translation) -> int:
    threads = 1 if program.target.kind == "cpu" else program.threads
    layout = translation.layout
    registers = sum(b.elements * layout.itemsize(b.dtype) for b in layout.locals.values())
    block_bytes = layout.block_bytes + threads * (registers + LANE_CONSTANT_BYTES)
    return max(1, min(CHUNK_BYTES // block_bytes, CHUNK_LANES // threads))


def _array(parameter: Parameter, arguments: Mapping[str, Any], *, copied: bool) -> Any:
    """The flat array the kernel works on: the argument itself where it is only read or need not be ``copied``, else a copy."""
    dtype = numpy_dtype(parameter.dtype)
    given = arguments.get(parameter.name)
    if given is None:
        if parameter.access != "out":
            raise SimulationError(f"no argument for parameter {parameter.name}")
        fresh = np.full(parameter.elements * dtype.itemsize, 0x7F, np.uint8).view(dtype)
        if dtype.kind == "f" or narrow.is_narrow(parameter.dtype):
            fresh.fill(np.nan)
        return fresh
    array = np.asarray(given)
    if array.dtype != dtype or array.shape != tuple(parameter.shape):
        raise SimulationError(
            f"parameter {parameter.name} is {parameter.dtype}{list(parameter.shape)}, "
            f"the argument is {array.dtype}{list(array.shape)}"
        )
    flat = np.ascontiguousarray(array).reshape(-1)
    keep = parameter.access == "in" or (not copied and flat.flags.writeable)
    return flat if keep else flat.copy()
