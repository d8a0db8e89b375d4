"""Baselines: what a case was when somebody was content with it, kept by machine, toolchain and case.

A folder holds ``WORKLOAD/MACHINE/TOOLCHAIN/CASE.json``.  ``MACHINE`` is ``any`` for what no machine decides (static and simulated
figures of GPU targets), else the device with its driver.  ``CASE`` names the question, not the answer: kernel name, arguments,
shape, sizes, tiles and target; not the kernel's source, for a baseline that a changed source does not find would judge nothing.
The content hash is kept inside.  Bundles of cases that were timed lie in ``WORKLOAD/bundles/``, so that ``run --against`` can time
them again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tileprof.errors import StoreError
from tileprof.store.codec import finite
from tileprof.store.records import CaseResult, Run

FORMAT = 1
ANY = "any"
"""The machine of figures that no machine decides."""

BUNDLES = "bundles"
"""Where the bundles of a workload's baselines lie."""

MOST_SAMPLES = 200
"""Time samples that a baseline keeps of a case."""

EXACT, COUNTED, TIMED = "exact", "counted", "timed"
"""Classes of figures by their noise: the same every time; counted by a profiler; times."""

_UNSTABLE = ("compile.seconds", "time.profiled_ns", "clock.hz", "occupancy.achieved", "listing.attributed", "l1.hit_rate",
             "l2.hit_rate")  # fmt: skip
"""Metrics that differ from run to run without a cause in the kernel, and so are no baseline."""


@dataclass(frozen=True)
class Baseline:
    """Figures of one case on one machine by one toolchain.

    ``figures`` maps metric to value, whole kernel; ``noise`` to its class.  ``bundle`` is a path beside the file.
    """

    case: str
    key: str
    hash: str
    machine: dict[str, Any]
    toolchain: dict[str, str]
    figures: dict[str, float]
    noise: dict[str, str]
    samples_ns: tuple[float, ...] = ()
    bundle: str | None = None
    taken: str = ""
    format: int = field(default=FORMAT)


def case_key(
    kernel: str,
    args: Mapping[str, Any],
    shape: Mapping[str, Any],
    tiles: Mapping[str, Any],
    target: str,
    sizes: Mapping[str, Any] | None = None,
) -> str:
    """Sixteen hexadecimal digits that name a case whatever its kernel's source is."""
    record: list[Any] = [kernel, *(sorted((str(k), str(v)) for k, v in part.items()) for part in (args, shape, tiles))]
    record.append(target)
    if sizes:
        record.append(sorted((str(k), str(v)) for k, v in sizes.items()))
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()[:16]


def key_of(case: CaseResult) -> str:
    """:func:`case_key` of a result."""
    return case_key(case.kernel, case.args, case.shape, case.tiles, case.target, case.sizes)


def device_of(case: CaseResult, machine: Mapping[str, Any]) -> dict[str, Any]:
    """What of a machine decides the times and counters of a case: the GPU and its driver, or the processor."""
    kind = case.target.partition(":")[0]
    if kind in ("cuda", "hip"):
        vendor = {"cuda": "nvidia", "hip": "amd"}[kind]
        gpus = [gpu for gpu in machine.get("gpus") or () if isinstance(gpu, Mapping) and gpu.get("vendor") == vendor]
        return {key: gpus[0].get(key) for key in ("name", "arch", "driver")} if gpus else {"name": f"no {vendor} GPU"}
    return {key: machine.get(key) for key in ("cpu", "cpu_level", "cores")}


def static_machine(case: CaseResult, machine: Mapping[str, Any]) -> dict[str, Any]:
    """What of a machine decides static figures: nothing for a GPU target, the instruction set for ``cpu``."""
    return {} if case.target != "cpu" else {"cpu_level": machine.get("cpu_level")}


def toolchain_of(case: CaseResult, run: Run) -> dict[str, str]:
    """What compiled the case, with versions."""
    found = {str(k): str(v) for k, v in ((case.metadata or {}).get("toolchain") or {}).items()}
    return {"tileprof": run.version, **found}


def slug(record: Mapping[str, Any]) -> str:
    """A folder's name of a record: its words, and a digest that tells equal words apart; ``any`` for none."""
    if not record:
        return ANY
    words = "-".join(str(value) for value in record.values() if value is not None)
    clean = re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-.")[:48] or "x"
    digest = hashlib.sha256(json.dumps(finite(dict(record)), sort_keys=True).encode()).hexdigest()[:8]
    return f"{clean}-{digest}"


def figures_of(case: CaseResult) -> dict[str, tuple[float, str]]:
    """Whole-kernel figures of a case as (value, class): simulated ones under ``simulated:NAME``, over launches the median."""
    found: dict[str, list[float]] = {}
    noise: dict[str, str] = {}
    parts: dict[str, float] = {}
    for metric in case.metrics:
        if metric.metric in _UNSTABLE or metric.metric.startswith("stall.") or metric.value != metric.value:
            continue
        kind = metric.provenance.kind
        name = f"simulated:{metric.metric}" if kind == "simulated" else metric.metric
        if kind == "measured":
            name = metric.metric if metric.metric.startswith("time.") else f"measured:{metric.metric}"
        if metric.operation is None and metric.buffer is None and metric.access is None:
            found.setdefault(name, []).append(metric.value)
        elif kind == "simulated" and metric.metric != "shared.ways":
            parts[name] = parts.get(name, 0.0) + metric.value
        noise[name] = TIMED if metric.metric.startswith("time.") else COUNTED if kind == "measured" else EXACT
    values = {name: median(samples) for name, samples in found.items()}
    for name, value in parts.items():
        values.setdefault(name, value)
    return {name: (value, noise[name]) for name, value in values.items()}


def baselines_of(case: CaseResult, run: Run) -> list[Baseline]:
    """The baselines that a case makes: of its exact figures, and of its measured ones where it was measured."""
    figures, toolchain, key = figures_of(case), toolchain_of(case, run), key_of(case)
    made = []
    for machine, classes in (
        (static_machine(case, run.machine), (EXACT,)),
        (device_of(case, run.machine), (COUNTED, TIMED)),
    ):
        chosen = {name: value for name, (value, noise) in figures.items() if noise in classes}
        if not chosen:
            continue
        timed = TIMED in classes and case.timing is not None
        made.append(
            Baseline(
                case=case.id,
                key=key,
                hash=case.hash,
                machine=machine,
                toolchain=toolchain,
                figures=chosen,
                noise={name: figures[name][1] for name in chosen},
                samples_ns=case.timing.samples_ns[:MOST_SAMPLES] if timed and case.timing else (),
                bundle=f"{BUNDLES}/{bundle_digest(case)}" if timed and case.bundle else None,
                taken=run.finished or run.started,
            )
        )
    return made


def bundle_digest(case: CaseResult) -> str:
    """What a case's bundle is kept under: its hash, or that of the build which it shares with other sizes."""
    return case.bundle.rpartition("-")[2] if case.sizes and case.bundle else case.hash


class BaselineStore:
    """A folder of baselines."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def workload(self, name: str) -> Path:
        """Folder of a workload, its name made safe."""
        return self.path / slug({"name": name})

    def save(self, run: Run, directory: Path) -> list[Path]:
        """Keep every case of a run that ended well; returns the files written.  Raises StoreError."""
        folder, written = self.workload(run.name), []
        try:
            for case in run.cases:
                if case.status not in ("ok", "not_run"):
                    continue
                for baseline in baselines_of(case, run):
                    place = folder / slug(baseline.machine) / slug(baseline.toolchain) / f"{baseline.key}.json"
                    place.parent.mkdir(parents=True, exist_ok=True)
                    text = json.dumps(finite(asdict(baseline)), indent=1, sort_keys=True) + "\n"
                    place.write_text(text, encoding="utf-8")
                    written.append(place)
                    if baseline.bundle is not None and case.bundle is not None:
                        _copy_bundle(directory / case.bundle, folder / baseline.bundle)
        except OSError as error:
            raise StoreError(
                f"cannot write the baseline {folder}: {error.strerror}", remedy="name another with --baseline"
            ) from error
        return written

    def load(self, workload: str) -> Iterator[Baseline]:
        """All baselines of a workload, in the order of their paths.  Raises StoreError for a file that is none."""
        for path in sorted(self.workload(workload).glob("*/*/*.json")):
            if path.parent.parent.name == BUNDLES:
                continue
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                if record["format"] > FORMAT:
                    raise StoreError(
                        f"{path} has version {record['format']} of the baseline, and this tileprof reads up to {FORMAT}",
                        remedy="use the tileprof that wrote it, or write it again with --update-baseline",
                    )
                samples = tuple(float(sample) for sample in record.pop("samples_ns"))
                yield Baseline(**record, samples_ns=samples)
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise StoreError(
                    f"{path} is no baseline: {error}", remedy="delete it, or restore it from version control"
                ) from error

    def bundles(self, workload: str) -> dict[str, dict[str, str]]:
        """Bundles of timed cases by case key: ``bundle`` (path), ``base`` (its name), ``base_hash``; the latest of several."""
        found: dict[str, tuple[str, dict[str, str]]] = {}
        for baseline in self.load(workload):
            if baseline.bundle is None or not (self.workload(workload) / baseline.bundle).exists():
                continue
            entry = {
                "bundle": str((self.workload(workload) / baseline.bundle).resolve()),
                "base": f"the baseline of {baseline.taken}",
                "base_hash": baseline.hash,
            }
            if baseline.key not in found or found[baseline.key][0] < baseline.taken:
                found[baseline.key] = (baseline.taken, entry)
        return {key: entry for key, (_, entry) in found.items()}


def run_bundles(run: Run, directory: Path) -> dict[str, dict[str, str]]:
    """The same of a run's own directory."""
    return {
        key_of(case): {
            "bundle": str((directory / case.bundle).resolve()),
            "base": f"the run of {run.started}",
            "base_hash": case.hash,
        }
        for case in run.cases
        if case.bundle is not None and (directory / case.bundle).exists()
    }


def _copy_bundle(source: Path, target: Path) -> None:
    if not source.exists() or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)
