"""Resuming: what an unfinished run holds, whether it is this workload's, and what of it stays.

Kept is every finished case that the workload still has, also of targets that are not asked for this time.  What cannot be kept
is said, and its bundle goes with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tileprof.errors import StoreError
from tileprof.plan.machine import Machine
from tileprof.store.directory import RunDirectory
from tileprof.store.reader import StoredCase, read_header, read_outline, read_unavailable
from tileprof.store.records import Unavailable
from tileprof.store.writer import RunStore
from tileprof.workload import Case, Workload

RUN_AGAIN = frozenset({"lost", "invalid_measurement"})
"""Results that a resumed run does not keep: their cause was passing."""

Key = tuple[str, str]
"""Id and hash of a case."""


@dataclass(frozen=True)
class Earlier:
    """An unfinished run as it stands in the store: when it began, for which targets, and its cases."""

    started: str | None = None
    targets: tuple[str, ...] = ()
    cases: tuple[StoredCase, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()

    @classmethod
    def read(cls, store: Path, workload: Workload, everything: Sequence[Case], machine: Machine) -> Earlier:
        """The run in the file ``store``.  Raises StoreError unless it is one of ``workload``; nothing is written.

        ``everything`` are the cases of the workload, of all targets.  A run has one ``machine``, so times of another are refused.
        """
        header, cases = read_header(store), read_outline(store)
        folder, name = store.parent, header.get("name")
        remedy = f"resume it with its own workload, overwrite it with --force, or put {workload.name} elsewhere with -o"
        if name is not None and name != workload.name:
            file = header.get("workload_file")
            message = f"{folder} holds an unfinished run of the workload {name} ({file}), and {workload.file} is {workload.name}"
            raise StoreError(message, remedy=remedy)
        if cases and not {case.id for case in cases} & {case.id for case in everything}:
            message = f"none of the {len(cases)} finished cases in {folder} is one of {workload.file}: {cases[0].id}"
            raise StoreError(message, remedy=remedy)
        before, here = _devices(header.get("machine") or {}), _devices(machine.to_json())
        if before and before != here and any(case.timed for case in cases):
            message = f"{folder} holds times of another machine: {', '.join(before)}; this one is {', '.join(here)}"
            raise StoreError(message, remedy="resume it there, or start a run of this machine elsewhere with -o")
        # stores of before version 5 do not say for which targets they are
        targets = header.get("targets") or dict.fromkeys(case.target_name for case in cases)
        known = tuple(name for name in targets if name in workload.targets)
        return cls(header.get("started"), known, cases, read_unavailable(store))


def _devices(machine: Mapping[str, Any]) -> list[str]:
    """What is timed on a machine: its processor and GPUs by their names."""
    gpus = [str(gpu.get("name", "")) for gpu in machine.get("gpus") or ()]
    return [name for name in (str(machine.get("cpu") or ""), *gpus) if name]


def keep(
    earlier: Earlier,
    everything: Sequence[Case],
    chosen: Sequence[Case],
    store: RunStore,
    directory: RunDirectory,
    say: Callable[[str], None],
) -> set[Key]:
    """Drop from the store what is not in ``everything``, the workload's cases, and what is to be run again; the cases that stay.

    ``chosen`` are the cases asked for this time: the others stay whatever their result was.
    """
    places = {(case.id, case.hash): place for place, case in enumerate(everything)}
    kept = store.keep_only(places, again=RUN_AGAIN, among={(case.id, case.hash) for case in chosen})
    gone = [case for case in earlier.cases if (case.id, case.hash) not in places]
    ids = {case_id for case_id, _ in places}
    changed = [case.id for case in gone if case.id in ids]
    absent = [case.id for case in gone if case.id not in ids]
    if changed:
        say(
            f"{_cases(changed)} not kept: the kernel, its inputs, the timing or the toolchain changed: {_shown(changed)}"
        )
    if absent:
        say(f"{_cases(absent)} not kept: no longer in the workload: {_shown(absent)}")
    shared = {case.bundle for case in earlier.cases if (case.id, case.hash) in kept}
    for case in gone:
        _remove_files(case, directory, bundle=case.bundle not in shared)
    return kept


def _cases(ids: Sequence[str]) -> str:
    return f"{len(ids)} finished case{' is' if len(ids) == 1 else 's are'}"


def _shown(ids: Sequence[str]) -> str:
    return ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")


def _remove_files(case: StoredCase, directory: RunDirectory, *, bundle: bool) -> None:
    """What a dropped case left: its bundles, with clock reads too, unless another case has them, and profilers' files."""
    if case.bundle is not None and bundle:
        for found in directory.kernels.glob(f"{Path(case.bundle).name}*"):
            shutil.rmtree(found, ignore_errors=True)
    for found in directory.raw.glob(f"{case.hash}*"):
        if found.is_dir():
            shutil.rmtree(found, ignore_errors=True)  # passes of rocprofv3
        else:
            found.unlink(missing_ok=True)


def still_unavailable(
    earlier: Sequence[Unavailable], chosen: Sequence[Case], new: Sequence[Unavailable]
) -> list[Unavailable]:
    """What could not be measured: as found now for the targets of ``chosen``, as found before for the others."""
    names = {name for case in chosen for name in (case.target.name, case.target.target)}
    return [entry for entry in earlier if not names & set(entry.target.split(", "))] + list(new)


def missing(everything: Sequence[Case], targets: Sequence[str], stored: set[Key]) -> list[Case]:
    """Cases of ``targets`` that are not in ``stored``."""
    return [case for case in everything if case.target.name in targets and (case.id, case.hash) not in stored]
