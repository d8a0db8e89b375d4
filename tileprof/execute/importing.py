"""From profiles to a finished run directory: read, join with bundles, group into cases, store."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilelang_min import targets
from tileprof import __version__
from tileprof.analyse.foreign import cases_of
from tileprof.analyse.join import join_bundle
from tileprof.collect import anything, ncu_file
from tileprof.collect.ceilings import datasheet
from tileprof.collect.profile import ForeignProfile
from tileprof.errors import MeasurementInvalid, ProfileFormatError, UsageError
from tileprof.metrics import metadata_metrics
from tileprof.store.codec import now
from tileprof.store.directory import RunDirectory
from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Ceiling, Metric, Provenance, Run
from tileprof.store.writer import RunStore

RAW = "raw."
"""Before the name of a counter that is kept as the profiler called it."""


@dataclass(frozen=True)
class ImportOptions:
    """What the command line asks for; ``kernels`` are texts of which a kernel's name must contain one."""

    paths: tuple[Path, ...]
    output: Path | None = None
    bundles: tuple[Path, ...] = ()
    kernels: tuple[str, ...] = ()
    raw: bool = False
    force: bool = False

    @property
    def name(self) -> str:
        """Name of the run: the first file's or folder's."""
        path = self.paths[0].resolve()
        stem = (
            path.name if path.is_dir() else re.sub(r"\.(ncu-rep|nsys|csv|json|sqlite|db|hatchet|txt)+$", "", path.name)
        )
        return re.sub(r"[^\w.+-]+", "_", stem) or "import"

    @property
    def directory(self) -> Path:
        """Where the run goes."""
        return self.output or Path("runs") / self.name


MOST_PASSED_OVER = 5
"""Files of a folder that are no profiles of which each is named."""


def import_paths(options: ImportOptions, say: Callable[[str], None] = lambda _: None) -> tuple[Run, Path]:
    """Import everything and return the run and its directory; ``say`` hears what was passed over in folders.

    Raises ProfileFormatError and MeasurementInvalid for files that hold nothing usable, UsageError for filters that leave
    nothing, StoreError for the directory.
    """
    whole: list[tuple[str, ForeignProfile]] = []
    passed_over: list[str] = []
    for path in options.paths:
        whole += [(path.name or str(path), profile) for profile in anything.read(path, passed_over)]
    for text in passed_over[:MOST_PASSED_OVER]:
        say(f"passed over: {text}")
    if len(passed_over) > MOST_PASSED_OVER:
        say(f"passed over: {len(passed_over) - MOST_PASSED_OVER:,} more files that hold no profile of a kernel")
    profiles = [(name, _chosen(profile, options)) for name, profile in whole]
    _check(profiles, options, [launch.kernel for _, profile in whole for launch in profile.launches])
    cases = _cases(profiles, options)
    with RunDirectory(options.directory, force=options.force) as directory:
        started = now()
        with RunStore.create(directory.store) as store:
            store.write_header(_header(options, profiles, started))
            store.add_ceilings(_ceilings(profiles))
            for position, case in enumerate(cases):
                store.add_case(case, position)
            store.finish(now())
        run = read_run(directory.store)
    return run, options.directory


def _chosen(profile: ForeignProfile, options: ImportOptions) -> ForeignProfile:
    """The profile with the launches that are asked for, and counters under their own names where that is asked."""
    launches = profile.launches
    if options.kernels:
        launches = tuple(one for one in launches if any(text in one.kernel for text in options.kernels))
    if options.raw:
        launches = tuple(replace(one, metrics=(*one.metrics, *_raw(one.raw, profile, one.index))) for one in launches)
    return replace(profile, launches=launches)


def _raw(counters: Any, profile: ForeignProfile, index: int) -> list[Metric]:
    source = Provenance("measured", profile.tool, profile.version, "counter as the profiler calls it")
    return [Metric(f"{RAW}{name}", value, "", source, launch=index) for name, value in sorted(counters.items())]


def _check(profiles: Sequence[tuple[str, ForeignProfile]], options: ImportOptions, kernels: Sequence[str]) -> None:
    """Raise where no launch is left; ``kernels`` are those that there were."""
    if any(profile.launches for _, profile in profiles):
        return
    if options.kernels and kernels:
        seen = sorted({kernel[:80] for kernel in kernels})
        raise UsageError(
            f"no kernel has {' or '.join(map(repr, options.kernels))} in its name",
            remedy=f"there are: {'; '.join(seen[:8])}",
        )
    shown = "; ".join(
        f"{name} is {profile.format} with {len(profile.calls)} kinds of calls and {len(profile.ranges)} ranges"
        + (f" ({profile.notes[0]})" if profile.notes else "")
        for name, profile in profiles[:4]
    )
    raise MeasurementInvalid(f"no kernel was recorded: {shown}", remedy="import a kernel trace or counters beside it")


def _cases(profiles: Sequence[tuple[str, ForeignProfile]], options: ImportOptions) -> list[CaseResult]:
    """Cases of all profiles with ids of their own, those of bundles first."""
    cases: list[CaseResult] = []
    symbols: set[str] = set()
    taken: set[str] = set()

    def add(case: CaseResult) -> None:
        number, id = 2, case.id
        while id in taken:
            number, id = number + 1, f"{case.id}#{number}"
        taken.add(id)
        cases.append(replace(case, id=id) if id != case.id else case)

    for bundle in options.bundles:
        joined, symbol = _bundle_case(bundle, options.paths)
        add(joined)
        symbols.add(symbol)
    several = len(profiles) > 1
    for name, profile in profiles:
        own = replace(
            profile, launches=tuple(one for one in profile.launches if not one.symbol or one.symbol not in symbols)
        )
        for case in cases_of(own, name if several else ""):
            add(case)
    return cases


def _bundle_case(bundle: Path, paths: Sequence[Path]) -> tuple[CaseResult, str]:
    """Launches of a bundle's kernel in the reports, joined with its tile operations, and the kernel's symbol."""
    import tilelang_min as tilelang
    from tilelang_min.errors import TileLangError

    try:
        kernel = tilelang.load(bundle)
    except (TileLangError, OSError) as error:
        raise ProfileFormatError(f"{bundle} is no bundle that can be loaded: {error}") from None
    record = kernel.bundle_record()
    metrics: list[Metric] = list(metadata_metrics(record["metadata"], tilelang.__version__))
    notes: list[str] = []
    refusals: list[ProfileFormatError] = []
    reports = anything.ncu_reports(paths)
    for path in reports:
        try:
            launches = join_bundle(ncu_file.read(path), bundle)
        except ProfileFormatError as error:  # another report may have the kernel
            refusals.append(error)
            continue
        for joined in launches:
            metrics += joined.metrics
            notes += [note for note in joined.notes if note not in notes]
    if len(refusals) == len(reports):
        raise (
            refusals[0]
            if len(refusals) == 1
            else ProfileFormatError(
                f"no report of Nsight Compute among the paths profiles the kernel of {bundle}",
                remedy="profile the program that launches this bundle: only reports of ncu have values by instruction",
            )
        )
    name = record["name"]
    case = CaseResult(
        id=f"{name}@{record['target']}",
        hash=record["hash"],
        kernel=name,
        target_name=record["target"],
        target=record["target"],
        args={},
        shape={},
        tiles={},
        status="ok",
        metadata=record["metadata"],
        operations=tuple(record["operations"]),
        sources=record["sources"],
        generated=kernel.source(),
        assembly=kernel.assembly(),
        metrics=tuple(metrics),
        notes=tuple(notes),
    )
    return case, str(record["symbol"])


def _ceilings(profiles: Sequence[tuple[str, ForeignProfile]]) -> list[Ceiling]:
    """What the profiles themselves say of their devices; datasheets for what they do not."""
    found: dict[tuple[str, str, str], Ceiling] = {}
    for _, profile in profiles:
        for ceiling in profile.ceilings:
            found.setdefault((ceiling.target, ceiling.quantity, ceiling.unit_class), ceiling)
        devices = {(one.target, one.device) for one in profile.launches if ":" in one.target}
        for target, device in sorted(devices):
            try:
                nominal = datasheet(target, targets.resolve(target), device)
            except Exception:  # an architecture that the compiler does not have
                continue
            for ceiling in nominal:
                found.setdefault((ceiling.target, ceiling.quantity, ceiling.unit_class), ceiling)
    return list(found.values())


def _header(options: ImportOptions, profiles: Sequence[tuple[str, ForeignProfile]], started: str) -> Run:
    """The run: what the profiled machine's GPUs were, nothing of this machine."""
    gpus = {json.dumps(dict(gpu), sort_keys=True): dict(gpu) for _, profile in profiles for gpu in profile.gpus}
    tools = sorted({f"{profile.tool} {profile.version}".strip() for _, profile in profiles})
    return Run(
        name=options.name,
        description=f"imported from {', '.join(name for name, _ in profiles[:4])}",
        workload_file="",
        version=__version__,
        started=started,
        finished=None,
        machine={"imported": True, "profilers": tools, "gpus": list(gpus.values())},
        cases=(),
    )
