"""Proved suggestions: the smallest row padding, and the swizzle, that remove the bank conflicts of a shared tile.

A block of each class is simulated once with its shared accesses recorded; every candidate is then counted again with the tile
placed so, by the very rules that counted the conflicts.  Nothing is derived from a formula for paddings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilelang_min.access import bank_conflicts
from tilelang_min.driver.suggestion_records import AccessChange, RequestSample, Suggestion, Trial
from tilelang_min.errors import PlacementError
from tilelang_min.ir.shared_layout import TILE_ALIGNMENT
from tilelang_min.program import SharedBuffer, ThreadProgram
from tilelang_min.simulate import (
    SWIZZLES,
    AccessCount,
    Placement,
    Recording,
    Tile,
    merge_recordings,
)
from tilelang_min.targets import occupancy

if TYPE_CHECKING:
    from tilelang_min.driver.simulated import SimulatedKernel

BANK_PERIOD_BYTES = 256
"""Rows that are longer by this much (64 banks of 4 bytes, the most that any target has) conflict no less and no more."""


def suggest(kernel: SimulatedKernel, sizes: Mapping[str, int]) -> list[Suggestion]:
    """Suggestions for every shared tile of ``kernel`` with conflicts by known rules: what removes more comes first, of
    equals a padding before a swizzle; then those for global memory.  ``sizes`` are the launch's runtime dimensions.

    Empty for a kernel without such conflicts, on a CPU, and where neither a padding nor a swizzle of rows lessens them.
    Raises SimulationError where the kernel cannot be simulated.
    """
    # Whether LLVM joined accesses (which makes their rule open) does not matter here: single accesses are compared.
    if kernel.target.kind == "cpu":
        return []
    from tilelang_min.driver.coalescing import coalescing

    counts, registers = kernel.analyse(sizes=sizes).counts, kernel.metadata.registers_per_thread
    program = kernel.program_for(sizes)
    found = coalescing(program, counts, registers)
    if any(c.space == "shared" and c.conflicts for c in counts):
        found = [*suggest_for(program, registers, counts), *found]
    return found


def suggest_for(
    program: ThreadProgram, registers_per_thread: int | None = None, expected: Sequence[AccessCount] = ()
) -> list[Suggestion]:
    """:func:`suggest` for a thread program that was not compiled.

    Without ``registers_per_thread`` occupancy is that of shared memory and threads alone.  ``expected``: counts of the launch
    where they are known, to tell whether inputs matter.
    """
    recording = _record(program, expected)
    return [
        suggestion
        for tile in program.shared
        for suggestion in _Search(program, registers_per_thread, recording, tile).suggestions()
    ]


def _record(program: ThreadProgram, expected: Sequence[AccessCount]) -> Recording:
    """Shared accesses of a launch, from one block of each class."""
    from tilelang_min.driver.fills import random_arguments, zero_arguments

    # Addresses hardly ever depend on data, and untouched zeros cost nothing; where they do, random inputs are used as elsewhere.
    recording = _record_on(program, zero_arguments(program.parameters))
    known = _costs(count for count in expected if count.space == "shared")
    if known and known != _costs(recording.counts()):
        recording = _record_on(program, random_arguments(program.parameters))
    return recording


def _costs(counts: Iterable[AccessCount]) -> dict[Any, Any]:
    """What tells two countings apart; rules do not, which look at the machine code as well."""
    return {count.key: (count.requests, count.transactions, count.transactions_ideal) for count in counts}


def _record_on(program: ThreadProgram, arrays: tuple[Any, ...]) -> Recording:
    # Imports TVM, which reading stored suggestions does without.
    from tilelang_min.driver.analysis import results_of

    values = {parameter.name: array for parameter, array in zip(program.parameters, arrays, strict=True)}
    parts = []
    for result, times in results_of(program, values, record=True, check=False):
        assert result.recording is not None
        parts.append(result.recording.scaled(times))
    return merge_recordings(parts)


def zeros_by_name(program: ThreadProgram) -> dict[str, Any]:
    """Arguments of zeros by name: addresses hardly ever depend on data, and untouched zeros cost nothing."""
    from tilelang_min.driver.fills import zero_arguments

    arrays = zero_arguments(program.parameters)
    return {parameter.name: array for parameter, array in zip(program.parameters, arrays, strict=True)}


def _certain(count: AccessCount) -> bool:
    """Whether an access has conflicts beyond doubt."""
    return count.space == "shared" and count.rule == "known" and bool(count.conflicts)


class _Search:
    """The search for one tile."""

    def __init__(
        self, program: ThreadProgram, registers: int | None, recording: Recording, buffer: SharedBuffer
    ) -> None:
        self.program, self.registers, self.recording, self.buffer = program, registers, recording, buffer
        self.before = {count.key: count for count in recording.counts(only=buffer.name)}
        self.conflicts = sum(count.conflicts or 0 for count in self.before.values() if count.rule == "known")

    def suggestions(self) -> list[Suggestion]:
        """A padding and a swizzle, where they help."""
        if not any(_certain(count) for count in self.before.values()):
            return []
        try:
            self.tile = Tile.of(self.buffer)
        except PlacementError:  # stored in a way of the compiler's own
            return []
        if self.tile.rows < 2:
            return []
        most = min(self.tile.row_bytes, BANK_PERIOD_BYTES) // self.tile.itemsize
        paddings = [Placement(padding=padding) for padding in range(1, most + 1)]
        swizzles = [Placement(swizzle_bytes=mode) for mode in SWIZZLES]
        spare = self._spare_bytes()
        if spare:
            # The author has padded.  Where that is why copies conflict, more of it is no cure: rows without it, swizzled, are.
            swizzles = [Placement(swizzle_bytes=mode, strip_bytes=spare) for mode in SWIZZLES]
            if all(count.access.startswith("cp_async") for count in self.before.values() if _certain(count)):
                paddings = []
        found = [self._best(candidates) for candidates in (paddings, swizzles)]
        return sorted((one for one in found if one is not None), key=lambda one: one.conflicts_after)

    def _spare_bytes(self) -> int:
        """Bytes at the end of each row that nothing accesses."""
        row = self.tile.row_bytes
        used = [
            int(((one.offsets % row + one.key[3]) * one.active).max(initial=0))
            for one in self.recording.accesses
            if one.key[1] == self.buffer.name
        ]
        return max(0, row - max(used, default=row))

    def _best(self, candidates: list[Placement]) -> Suggestion | None:
        """The first candidate without conflicts, else the first with the fewest; None where none has fewer than now."""
        tried: list[Trial] = []
        best: tuple[int, Placement] | None = None
        for placement in candidates:
            left, reason = self._try(placement)
            tried.append(Trial(placement.padding, placement.swizzle_bytes, left, reason))
            if left is not None and left < (self.conflicts if best is None else best[0]):
                best = (left, placement)
            if left == 0 and placement.padding:  # of swizzles each mode is told
                break
        return None if best is None else self._suggestion(best[1], best[0], tuple(tried))

    def _try(self, placement: Placement) -> tuple[int | None, str]:
        """Conflicts that are left, or None and why the placement is refused."""
        limit = self.program.target.shared.block_limit
        try:
            total = self._block_bytes(placement)
            if total > limit:
                return None, f"it needs {total:,} bytes of shared memory, {self.program.target.name} has {limit:,}"
            changes = self._changes(placement)
        except PlacementError as error:
            return None, error.message
        # A rule that is open on one side alone says too little to call the conflicts removed.
        judged = [change for change in changes if self._judged(change, placement)]
        return sum(change.after or 0 for change in judged), ""

    def _judged(self, change: AccessChange, placement: Placement) -> bool:
        key = (change.operation, self.buffer.name, "shared", change.access, change.width_bits)
        return change.rule == "known" or self.before[key].rule == "known"

    def _changes(self, placement: Placement) -> tuple[AccessChange, ...]:
        from tilelang_min.simulate.result import RULES

        changes = []
        for after in self.recording.counts({self.buffer.name: placement}, only=self.buffer.name):
            before = self.before[after.key]
            rule = max(before.rule, after.rule, key=RULES.index)
            changes.append(
                AccessChange(after.operation, after.access, after.width_bits, before.conflicts, after.conflicts, rule)
            )
        return tuple(changes)

    def _block_bytes(self, placement: Placement) -> int:
        """Shared memory of a block, with the tile placed so."""
        tiles = self.program.shared
        sizes = [placement.size(self.tile) if tile is self.buffer else tile.bytes for tile in tiles]
        return sum(-(-size // TILE_ALIGNMENT) * TILE_ALIGNMENT for size in sizes)

    def _occupancy(self, placement: Placement) -> float | None:
        return occupancy(
            self.program.target,
            threads=self.program.threads,
            registers_per_thread=self.registers,
            shared_bytes=self._block_bytes(placement),
        ).occupancy

    def _suggestion(self, placement: Placement, left: int, tried: tuple[Trial, ...]) -> Suggestion:
        extra = placement.size(self.tile) - self.buffer.bytes
        before, after = self._occupancy(Placement()), self._occupancy(placement)
        changes = self._changes(placement)
        kind = "padding" if placement.padding else "swizzle"
        what = self._padding_text(placement) if placement.padding else self._swizzle_text(placement)
        effect = (
            f"removes all {self.conflicts:,} conflicts"
            if left == 0
            else f"leaves {left:,} of {self.conflicts:,} conflicts, and no {kind} leaves fewer"
        )
        cost = f"{abs(extra):,} bytes {'more' if extra > 0 else 'fewer'} a block" if extra else "no more memory"
        if before is not None and after is not None:
            change = "as before" if before == after else f"-> {100 * after:.3g}%"
            cost += f", occupancy {100 * before:.3g}% {change}"
        return Suggestion(
            buffer=self.buffer.name,
            kind=kind,
            padding=placement.padding,
            swizzle_bytes=placement.swizzle_bytes,
            extra_bytes=extra,
            conflicts_before=self.conflicts,
            conflicts_after=left,
            occupancy_before=before,
            occupancy_after=after,
            accesses=changes,
            tried=tried,
            text="; ".join([what, effect, cost, *self._warnings(changes)]),
            proof=_proof(placement, tried),
            sample=self._sample(placement),
        )

    def _sample(self, placement: Placement) -> RequestSample | None:
        """The request to the tile with most conflicts by a known rule."""
        worst: tuple[int, RequestSample] | None = None
        for access in self.recording.accesses:
            operation, name, kind, width, matrices = access.key
            if name != self.buffer.name or access.count(self.program, access.offsets).rule != "known":
                continue
            passes = bank_conflicts(
                access.offsets, kind, width * 8, self.program.target, access.active, access.source, matrices or None
            )
            extra = passes.per_request - passes.per_request_ideal
            request = int(extra.argmax())
            if extra[request] <= 0 or (worst is not None and extra[request] <= worst[0]):
                continue
            lanes = [int(lane) for lane in access.active[request].nonzero()[0]]
            after = access.placed(self.program, self.tile, placement)[request]
            sides = (tuple(int(side[lane]) for lane in lanes) for side in (access.offsets[request], after))
            worst = int(extra[request]), RequestSample(operation, kind, width * 8, matrices, tuple(lanes), *sides)
        return None if worst is None else worst[1]

    def _padding_text(self, placement: Placement) -> str:
        *rows, row = self.buffer.shape
        shape = ", ".join([*map(str, rows), f"{row} + {placement.padding}"])
        slices = ", ".join([":"] * len(rows) + [f"0:{row}"])
        plural = "" if placement.padding == 1 else "s"
        return (
            f"pad {self.buffer.name} by {placement.padding} element{plural}: "
            f'T.alloc_shared(({shape}), "{self.buffer.dtype}"), used as {self.buffer.name}[{slices}]'
        )

    def _swizzle_text(self, placement: Placement) -> str:
        """The mode, where it puts element (i, j), and how to write it."""
        chunk, chunks = 16 // self.tile.itemsize, placement.swizzle_bytes // 16
        row = "i % 8" if chunks == 8 else f"i % 8 // {8 // chunks}"
        row_bytes = self.tile.row_bytes - placement.strip_bytes
        natural = next(mode for mode in SWIZZLES if row_bytes % mode == 0)
        mode = "" if placement.swizzle_bytes == natural else f", swizzle_bytes={placement.swizzle_bytes}"
        shape = ", ".join([*map(str, self.buffer.shape[:-1]), str(row_bytes // self.tile.itemsize)])
        unpadded = f'leave the padding away, T.alloc_shared(({shape}), "{self.buffer.dtype}"), and '
        return (
            (unpadded if placement.strip_bytes else "")
            + f"swizzle {self.buffer.name} in {placement.swizzle_bytes}-byte mode, column j of row i to "
            f"(j // {chunk} ^ {row}) * {chunk} + j % {chunk}: "
            f"T.annotate_layout({{{self.buffer.name}: tilelang.layout.make_swizzled_layout({self.buffer.name}{mode})}})"
        )

    def _warnings(self, changes: tuple[AccessChange, ...]) -> Iterator[str]:
        """What gets worse, or may get worse under an open rule."""
        for change in changes:
            before, after = change.before or 0, change.after or 0
            if after <= before:
                continue
            found = next((o for o in self.program.operations if o.id == change.operation), None)
            where = "" if found is None else f" in line {found.location.line}"
            doubt = " (by a rule that is open)" if change.rule == "open" else ""
            access = change.access.replace("_bypass", "").replace("_", ".")
            yield f"the {access}{where} goes from {before:,} to {after:,} conflicts{doubt}"


def _proof(chosen: Placement, tried: tuple[Trial, ...]) -> str:
    """What was tried beside the chosen placement, that with one outcome together."""
    groups: dict[str, list[int]] = {}
    for trial in tried:
        size = trial.padding or trial.swizzle_bytes
        if size != (chosen.padding or chosen.swizzle_bytes):
            outcome = trial.reason if trial.conflicts is None else f"leaves {trial.conflicts:,} conflicts"
            groups.setdefault(outcome, []).append(size)
    if not groups:
        return "no smaller padding exists"
    word, step = ("padding", 1) if chosen.padding else ("mode", 0)
    return "; ".join(f"{word} {_spans(sizes, step)}: {outcome}" for outcome, sizes in groups.items())


def _spans(sizes: list[int], step: int, most: int = 4) -> str:
    """``1 to 7, 9 to 15, ...``: sizes ``step`` apart together."""
    runs: list[list[int]] = []
    for size in sizes:
        if runs and size == runs[-1][-1] + step:
            runs[-1].append(size)
        else:
            runs.append([size])
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:most]]
    return ", ".join(shown + ["..."] * (len(runs) > most))
