"""Builds the result of one case from the messages of the processes that worked on it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tileprof.analyse.foreign_work import ForeignWork
from tileprof.collect.cycles import cycles_metrics, overhead_note, timeline_metrics
from tileprof.collect.noise import NOISY, noise_note, waiting_note
from tileprof.collect.perf import metrics_of as counted_metrics
from tileprof.collect.simulator import simulated_metrics, suggestion_of
from tileprof.collect.timer import telemetry_metrics, throttled, timing_metrics, timing_of
from tileprof.metrics import metadata_metrics
from tileprof.store.codec import interleaved_from_json
from tileprof.store.records import CaseResult, Check, Interleaved, Metric, Suggestion, Timing
from tileprof.workload.problems import printable
from tileprof.workload.records import Case

_MOST_REASON = 4000


class Paths:
    """Makes paths in texts relative to the workload, so that results name no user and compare between machines."""

    def __init__(self, *folders: Path) -> None:
        names = {printable(str(folder)) for folder in folders if len(folder.parts) > 1}
        places = sorted(names, key=len, reverse=True)
        # a folder with what follows it, but no folder whose name only begins so
        self._folders = re.compile("|".join(rf"{re.escape(place)}(?:/|(?![\w.-]))" for place in places) or r"(?!)")

    def clean(self, text: str) -> str:
        """``text`` without the folders, which are where its paths then start, and with ~ for the home directory."""
        text = self._folders.sub(lambda found: "" if found[0].endswith("/") else ".", printable(text))
        home = str(Path.home())
        return text.replace(f"{home}/", "~/") if len(home) > 1 else text


@dataclass
class CaseBuilder:
    """Collects what is known about a case; ``build`` gives the record.

    The first failure decides ``status``; later messages still add what they know.
    """

    case: Case
    position: int
    paths: Paths
    bundle: str
    status: str | None = None
    reason: str = ""
    compiled: dict[str, Any] | None = None
    reference: dict[str, Any] | None = None
    check: Check | None = None
    timing: Timing | None = None
    interleaved: Interleaved | None = None
    metrics: list[Metric] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    suggestions: tuple[Suggestion, ...] = ()
    foreign: ForeignWork | None = None
    instrumented: dict[str, str] | None = None  # where the builds with clock reads are, by their kind
    stage: str = "waiting"
    seconds: float = 0.0
    _started: float | None = None

    def begin(self) -> None:
        """A process starts to work on the case."""
        self._started = time.monotonic()

    def end(self) -> None:
        """It stopped."""
        if self._started is not None:
            self.seconds += time.monotonic() - self._started
            self._started = None

    def spent(self, seconds: float) -> None:
        """Its share of the time of a process that worked on several cases."""
        self.seconds += seconds

    @property
    def failed(self) -> bool:
        """Whether a failure has been noted."""
        return self.status is not None

    def fail(self, status: str, reason: str) -> None:
        """Note a failure; the first one counts, a later one becomes a note."""
        text = self.paths.clean(reason)[:_MOST_REASON]
        if self.status is None:
            self.status, self.reason = status, text
        else:
            self.note(f"{status}: {text}")

    def forgive_simulation(self) -> None:
        """Turn the end of a worker that was simulating into a note: for a case whose launch will tell more."""
        if self.stage == "simulating" and self.status in ("timeout", "crashed"):
            reason, self.status, self.reason = self.reason, None, ""
            self.note(f"not simulated: {reason}")

    def note(self, text: str) -> None:
        """Add a remark for the report, each once."""
        cleaned = self.paths.clean(text)
        if cleaned not in self.notes:
            self.notes.append(cleaned)

    def take(self, message: Mapping[str, Any]) -> None:
        """Take one message of a worker or a launcher."""
        kind = message["type"]
        handler = getattr(self, f"_take_{kind}", None)
        if handler is not None:
            handler(message)

    def _take_stage(self, message: Mapping[str, Any]) -> None:
        self.stage = message["stage"]

    def _take_compiled(self, message: Mapping[str, Any]) -> None:
        self.compiled = dict(message)
        self.metrics += metadata_metrics(message["metadata"], message["version"])
        for note in message["notes"]:
            self.note(note)

    def _take_reference(self, message: Mapping[str, Any]) -> None:
        self.reference = dict(message)
        if not message["outputs"]:
            self.note("no reference: results were not checked")

    def _take_analysed(self, message: Mapping[str, Any]) -> None:
        version = self.compiled["version"] if self.compiled else ""
        self.metrics += simulated_metrics(message["analysis"], version, message["blocks"], message["of"])
        for note in message["analysis"].get("notes", []):
            self.note(note)

    def _take_suggested(self, message: Mapping[str, Any]) -> None:
        self.suggestions = tuple(suggestion_of(record) for record in message["suggestions"])

    def _take_checked(self, message: Mapping[str, Any]) -> None:
        """Comparison of simulated blocks; one of a whole launch replaces it."""
        self._set_check(message, message["scope"], message["rtol"], message["atol"])

    def _take_check(self, message: Mapping[str, Any]) -> None:
        """Comparison of a launch on the device."""
        reference = self.reference or {}
        self._set_check(message, "all", reference.get("rtol", 0.0), reference.get("atol", 0.0))

    def _set_check(self, message: Mapping[str, Any], scope: str, rtol: float, atol: float) -> None:
        self.check = Check(message["ok"], message["max_abs_error"], message["max_rel_error"], rtol, atol, scope)
        if not message["ok"]:
            what = "the launch" if scope == "all" else "the simulation"
            self.fail(
                "incorrect",
                f"{what} differs from the reference by up to {message['max_abs_error']:.3g} "
                f"(allowed {atol:g} + {rtol:g} |reference|): {message['worst']}",
            )

    def _take_program_error(self, message: Mapping[str, Any]) -> None:
        self.fail("incorrect", message["reason"])

    def _take_note(self, message: Mapping[str, Any]) -> None:
        self.note(message["text"])

    def _take_failed(self, message: Mapping[str, Any]) -> None:
        self.fail(message.get("status", "crashed"), message["reason"])

    def _take_timed(self, message: Mapping[str, Any]) -> None:
        self.timing = timing_of(message)
        self.metrics += timing_metrics(self.timing)
        noise = noise_note(self.timing.samples_ns)
        if noise is not None:
            self.note(noise)

    def _take_waited(self, message: Mapping[str, Any]) -> None:
        held_up = waiting_note(message["ran_ns"], message["waited_ns"])
        if held_up is not None:
            self.note(held_up)
            self.metrics = [replace(m, flag=m.flag or NOISY) if m.metric == "time.ns" else m for m in self.metrics]

    def _take_interleaved(self, message: Mapping[str, Any]) -> None:
        self.interleaved = interleaved_from_json(dict(message))

    def _take_telemetry(self, message: Mapping[str, Any]) -> None:
        self.metrics += telemetry_metrics(message)
        found = throttled(message)
        if found is None:
            return
        text, grave = found
        if not grave:
            self.note(text)
            return
        self.fail("invalid_measurement", text)
        self.metrics = [replace(m, flag=m.flag or "throttled") if m.metric == "time.ns" else m for m in self.metrics]

    def take_foreign(self, work: ForeignWork) -> None:
        """Take what a profile says of work that is not ours."""
        self.foreign = work
        self.metrics += work.metrics
        for note in work.notes:
            self.note(note)

    def _take_counted(self, message: Mapping[str, Any]) -> None:
        self.metrics += counted_metrics(message["readings"], message["launches"])

    def _take_instrumented(self, message: Mapping[str, Any]) -> None:
        self.instrumented = dict(message["paths"])

    def _take_clocked(self, message: Mapping[str, Any]) -> None:
        self.metrics += cycles_metrics(message) + timeline_metrics(message)
        self.note(overhead_note(message))

    def forget(self) -> None:
        """Let go of what is large, once the result is stored."""
        self.compiled, self.foreign, self.metrics = None, None, []

    def _sources(self, compiled: Mapping[str, Any]) -> Mapping[str, str]:
        """Texts of source files by name."""
        found: Mapping[str, str] = compiled.get("sources", {}) if self.foreign is None else self.foreign.sources
        return found

    def build(self) -> CaseResult:
        """The finished record; without a failure its status is ``ok``."""
        case, compiled = self.case, self.compiled or {}
        known = {metric.metric for metric in self.metrics}
        missing = [name for name in case.kernel.metrics if name not in known]
        if missing and self.status in (None, "ok", "not_run"):
            self.note(f"asked for and not measured here: {', '.join(missing)}")
        clean = self.paths.clean
        operations = []
        for operation in compiled.get("operations", []) if self.foreign is None else self.foreign.operations:
            location = dict(operation["location"])
            location["file"] = clean(location["file"])
            operations.append({**operation, "location": location})
        return CaseResult(
            id=case.id,
            hash=case.hash,
            kernel=case.kernel.name,
            target_name=case.target.name,
            target=case.target.target,
            args=case.args,
            shape=dict(case.shape),
            tiles=case.tiles,
            status=self.status or "ok",
            reason=self.reason,
            metadata=compiled.get("metadata"),
            operations=tuple(operations),
            sources={clean(name): text for name, text in self._sources(compiled).items()},
            generated=clean(compiled.get("generated", "")),
            assembly=clean(compiled.get("assembly", "")),
            bundle=self.bundle if compiled else None,
            metrics=tuple(self.metrics),
            timing=self.timing,
            check=self.check,
            notes=tuple(self.notes),
            seconds=self.seconds,
            suggestions=self.suggestions,
            checks={name: dict(limits) for name, limits in case.kernel.checks.items()},
            interleaved=self.interleaved,
            sizes=dict(case.sizes),
        )
