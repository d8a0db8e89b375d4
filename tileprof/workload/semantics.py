"""Checks that need more than one value of the workload file: names that refer to others, files, expressions, targets.

Takes the validated model and the document it came from, reports every problem to the document, and builds the records that the
rest of tileprof uses.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tileprof.metrics import METRICS
from tileprof.workload import schema
from tileprof.workload.expression import ExpressionError, parse_expression
from tileprof.workload.functions import ReferenceProblem, Signature, check_reference, split_reference
from tileprof.workload.problems import printable, unknown
from tileprof.workload.records import (
    INPUT_KINDS,
    PLACEHOLDER,
    FunctionReference,
    KernelEntry,
    TargetEntry,
    TimingPolicy,
    Tolerance,
    Workload,
)
from tileprof.workload.sizes import check_bundle_sizes, check_dimensions
from tileprof.workload.targets import FACTS, TargetProblem, resolve_target
from tileprof.workload.yaml_source import Document
from tileprof.workload.yaml_source import Path as YamlPath

_PROFILER_KINDS = {
    "ncu": {"cuda"},
    "nsys": {"cuda"},
    "rocprofv3": {"hip"},
    "rocprof": {"hip"},
    "perf": {"cpu"},
}
"""Kinds of target that a profiler can measure; the others measure any."""

FILL_ARGUMENTS = ("name", "shape", "dtype", "seed", "rng")
"""What a function that fills an input may ask for, beside the case's values."""


def build_workload(model: schema.WorkloadModel, document: Document, path: Path) -> Workload:
    """The workload of ``model``; what is wrong is added to ``document.problems``.

    Invalid parts may have been taken out of ``model``: whether a name exists is therefore asked of the document.
    """
    directory = path.resolve().parent
    targets = _targets(model, document)
    groups = {name: tuple(metrics) for name, metrics in (model.metrics.__pydantic_extra__ or {}).items()}
    for name, metrics in groups.items():
        for index, metric in enumerate(metrics):
            if metric not in METRICS:
                document.report(("metrics", name, index), unknown("metric", metric, METRICS))
    for tool in model.metrics.raw:
        if tool not in _PROFILER_KINDS:
            document.report(("metrics", "raw", tool), unknown("profiler", tool, _PROFILER_KINDS), key=True)
    timing = model.defaults.timing
    kernels = [
        _KernelBuilder(kernel, index, model, document, directory, targets, groups).build()
        for index, kernel in enumerate(model.kernels)
        if document.is_mapping(("kernels", index))  # else it only stands for one that cannot be read
    ]
    return Workload(
        file=printable(path.name),
        directory=directory,
        name=model.name,
        description=model.description,
        timing=TimingPolicy(
            warmup=timing.warmup,
            samples=timing.samples,
            rounds=timing.rounds,
            flush_l2=timing.flush_l2,
            graph=timing.graph,
            budget_s=timing.budget,
        ),
        timeout_s=model.defaults.timeout,
        seed=model.defaults.seed,
        targets=targets,
        metric_groups=groups,
        raw_metrics={tool: tuple(names) for tool, names in model.metrics.raw.items()},
        kernels=tuple(kernels),
    )


def _targets(model: schema.WorkloadModel, document: Document) -> dict[str, TargetEntry]:
    entries: dict[str, TargetEntry] = {}
    for name, target in model.targets.items():
        try:
            entry = resolve_target(name, target.target, tuple(target.profiler))
        except TargetProblem as problem:
            document.report(("targets", name, "target"), str(problem))
            continue
        entries[name] = entry
        for profiler in target.profiler:
            kinds = _PROFILER_KINDS.get(profiler)
            if kinds is not None and entry.kind not in kinds:
                fitting = [p for p, k in _PROFILER_KINDS.items() if entry.kind in k]
                advice = f"; {' and '.join(fitting)} can, or 'auto' chooses" if fitting else "; 'auto' chooses"
                message = f"{profiler} cannot measure the target {entry.target}{advice}"
                document.report(("targets", name, "profiler"), message)
    return entries


class _KernelBuilder:
    """Checks one kernel entry and builds its record."""

    def __init__(
        self,
        kernel: schema.Kernel,
        index: int,
        model: schema.WorkloadModel,
        document: Document,
        directory: Path,
        targets: dict[str, TargetEntry],
        groups: dict[str, tuple[str, ...]],
    ) -> None:
        self.kernel = kernel
        self.model = model
        self.document = document
        self.directory = directory
        self.targets = targets
        self.groups = groups
        self.path: YamlPath = ("kernels", index)

    def report(self, where: Sequence[str | int], message: str, *, key: bool = False, offset: int | None = None) -> None:
        self.document.report((*self.path, *where), message, key=key, offset=offset)

    def written(self, *where: str | int) -> list[str]:
        """Keys of the mapping at a place below the kernel, as the file has them, valid or not."""
        return self.document.keys((*self.path, *where))

    def axis_names(self) -> set[str]:
        """Names of all axes and constants that the file gives this kernel."""
        return {*self.written("args"), *self.written("tiles"), *self.written_in("shapes"), *self.written_in("sizes")}

    def written_in(self, key: str) -> set[str]:
        """Keys of all mappings in one of the kernel's lists."""
        return set().union(*(self.written(key, index) for index in range(len(getattr(self.kernel, key)))))

    def build(self) -> KernelEntry:
        kernel = self.kernel
        self.check_origin()
        signature: Signature | None = None
        source = callable_ = reference = None
        if kernel.source is not None:
            source, signature = self.function("source", kernel.source)
        if kernel.callable is not None:
            callable_, signature = self.function("callable", kernel.callable)
        if kernel.reference is not None:
            reference, wanted = self.function("reference", kernel.reference)
            if signature is not None and signature.tensors is not None:
                self.check_needs(("reference",), kernel.reference, wanted, {*signature.tensors, *self.axis_names()})
        bundle = None
        if kernel.bundle is not None:
            file = (self.directory / Path(kernel.bundle).expanduser()).resolve()
            if not file.exists():
                self.report(("bundle",), f"there is no bundle {kernel.bundle}")
            bundle = str(file)
        values = {name: self.axis_values(value) for name, value in {**kernel.args, **kernel.tiles}.items()}
        shapes = [shape for _, shape in self.expanded("shapes")]
        sizes = self.expanded("sizes")
        self.check_axis_names(signature)
        self.check_sizes(signature, bundle)
        self.check_where()
        self.check_exclude(values, [*shapes, *(entry for _, entry in sizes)])
        self.check_metrics()
        return KernelEntry(
            name=kernel.name,
            source=source,
            bundle=bundle,
            callable=callable_,
            python=kernel.python,
            command=tuple(kernel.command) if kernel.command is not None else None,
            args={name: values[name] for name in kernel.args},
            shapes=tuple(shapes),
            sizes=tuple(entry for _, entry in sizes),
            places=tuple(self.places(place, entry) for place, entry in sizes),
            tiles={name: values[name] for name in kernel.tiles},
            axes=frozenset(n for n, v in {**kernel.args, **kernel.tiles}.items() if isinstance(v, list)),
            where=tuple(kernel.where),
            exclude=tuple(dict(entry) for entry in kernel.exclude),
            targets=self.target_names(),
            inputs=self.inputs(signature),
            reference=reference,
            tolerance=Tolerance(kernel.tolerance.rtol, kernel.tolerance.atol) if kernel.tolerance else None,
            metrics=self.metric_list(),
            checks={name: self.check_limits(name, check) for name, check in kernel.checks.items()},
        )

    def check_origin(self) -> None:
        kernel = self.kernel
        keys = self.written()
        given = [word for word in ("source", "bundle", "callable", "command") if word in keys]
        if not given:
            message = f"kernel '{kernel.name}' needs one of the keys source, bundle, callable and command"
            self.report((), message)
        for word in given[1:]:
            self.report((word,), f"'{word}' and '{given[0]}' exclude each other", key=True)
        if "python" in keys and "callable" not in keys:
            self.report(("python",), "'python' belongs to a kernel with 'callable'", key=True)
        for name in ("inputs", "reference", "tolerance"):
            if name in keys and given and given[0] in ("callable", "command"):
                message = f"'{name}' is for kernels whose arguments tileprof makes: not with '{given[0]}'"
                self.report((name,), message, key=True)
        self.check_placeholders()

    def check_placeholders(self) -> None:
        """Every ``{name}`` in a command is one of the case's values."""
        for index, word in enumerate(self.kernel.command or ()):
            for found in PLACEHOLDER.finditer(word):
                if found[1] not in self.axis_names():
                    message = unknown("value", found[1], self.axis_names())
                    self.report(("command", index), message, offset=found.start(1))

    def function(self, key: str, text: str) -> tuple[FunctionReference | None, Signature | None]:
        try:
            if key == "callable" and self.kernel.python is not None:
                return split_reference(text, self.directory), None  # another interpreter finds the module
            return check_reference(text, self.directory)
        except ReferenceProblem as problem:
            self.report((key,), str(problem), offset=problem.offset)
            return None, None

    def check_needs(self, where: Sequence[str | int], text: str, wanted: Signature | None, given: set[str]) -> None:
        """A function of the author's needs nothing that it is not called with."""
        for name in wanted.required if wanted is not None else ():
            if name not in given:
                what = f"no value for {name}, which {text.rpartition(':')[2]} needs: it can have {', '.join(sorted(given))}"
                self.report(where, what)

    @staticmethod
    def axis_values(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, list) else (value,)

    def expanded(self, key: str) -> list[tuple[int, dict[str, int]]]:
        """The shapes, or sizes, in order with the number of their entry, lists in them expanded, the first name varying slowest."""
        found: list[tuple[int, dict[str, int]]] = []
        for index, entry in enumerate(getattr(self.kernel, key)):
            if set(entry) != set(self.written(key, index)):
                continue  # a part of it is wrong, which is said
            for combination in itertools.product(*(self.axis_values(value) for value in entry.values())):
                one = dict(zip(entry, combination))
                if any(one == other for _, other in found):
                    what = "this shape is" if key == "shapes" else "these sizes are"
                    self.report((key, index), f"{what} in the list already")
                    continue
                found.append((index, one))
        return found

    def places(self, index: int, entry: dict[str, int]) -> dict[str, str]:
        """Where in the file sizes stand: the entry under the empty name, and each dimension."""
        places: dict[str, str] = {}
        for name in ["", *entry]:
            path: YamlPath = (*self.path, "sizes", index, *([name] if name else []))
            written = self.kernel.sizes[index].get(name) if name else None
            if isinstance(written, list):
                path = (*path, written.index(entry[name]))
            mark = self.document.mark(path)
            places[name] = f"{printable(self.document.file)}:{mark.line + 1}:{mark.column + 1}"
        return places

    def check_axis_names(self, signature: Signature | None) -> None:
        places: dict[str, tuple[str, YamlPath]] = {}
        groups = [("args", self.kernel.args), ("tiles", self.kernel.tiles)]
        named: list[tuple[str, YamlPath]] = [(key, (group, key)) for group, mapping in groups for key in mapping]
        named += [(key, ("shapes", i, key)) for i, shape in enumerate(self.kernel.shapes) for key in shape]
        sizes: list[tuple[str, YamlPath]] = [
            (key, ("sizes", i, key)) for i, entry in enumerate(self.kernel.sizes) for key in entry
        ]
        for key, place in [*named, *sizes]:
            group = str(place[0])
            if key in places and places[key][0] != group:
                self.report(place, f"'{key}' stands in {places[key][0]} already", key=True)
            places.setdefault(key, (group, place))
        if signature is None:
            return
        key_of_function = "source" if self.kernel.source is not None else "callable"
        function = (self.kernel.source or self.kernel.callable or "").rpartition(":")[2]
        for key, place in named:
            if key not in signature.names and not signature.open:
                self.report(place, unknown(f"parameter of {function}", key, signature.names), key=True)
        given = {*self.written("args"), *self.written("tiles"), *self.written_in("sizes"), *self.written("sizes")}
        for index in range(len(self.kernel.shapes)):
            present = given.union(self.written("shapes", index))
            missing = [name for name in signature.required if name not in present]
            if missing:
                where: YamlPath = ("shapes", index) if self.kernel.shapes != [{}] else (key_of_function,)
                words = ", ".join(missing)
                self.report(where, f"no value for {words}, which {function} needs: give it in args, shapes or tiles")

    def check_sizes(self, signature: Signature | None, bundle: str | None) -> None:
        """Names of runtime dimensions, as far as the source or the bundle shows them."""
        if "sizes" in self.written() and (self.kernel.callable is not None or self.kernel.command is not None):
            message = "'sizes' is for kernels of tilelang_min: write in 'shapes' what this one is called with"
            self.report(("sizes",), message, key=True)
        elif "sizes" in self.written() and not self.document.is_mapping((*self.path, "sizes", 0)):
            return  # it is no list of sizes, which is said
        elif signature is not None and signature.dimensions is not None and self.kernel.source is not None:
            function = self.kernel.source.rpartition(":")[2]
            entries = [self.written("sizes", index) for index in range(len(self.kernel.sizes))]
            given = {*self.written("args"), *self.written("tiles"), *self.written_in("shapes")}
            for where, message, key in check_dimensions(function, signature, entries, given):
                self.report(where or ("source",), message, key=key)
        elif bundle is not None:
            for where, message, key in check_bundle_sizes(bundle, self.kernel.sizes):
                self.report(where or ("bundle",), message, key=key)

    def check_where(self) -> None:
        names = self.axis_names() | set(FACTS) | {"target"}
        for index, text in enumerate(self.kernel.where):
            try:
                parse_expression(text).check_names(names)
            except ExpressionError as error:
                self.report(("where", index), str(error), offset=error.offset)

    def check_exclude(self, values: dict[str, tuple[Any, ...]], shapes: list[dict[str, int]]) -> None:
        known: dict[str, set[Any]] = {name: set(options) for name, options in values.items()}
        for shape in shapes:
            for key, value in shape.items():
                known.setdefault(key, set()).add(value)
        known["target"] = set(self.document.keys(("targets",)))
        names = self.axis_names() | {"target"}
        for index, entry in enumerate(self.kernel.exclude):
            if not entry:
                self.report(("exclude", index), "an empty entry excludes everything")
            for key, value in entry.items():
                if key not in names:
                    self.report(("exclude", index, key), unknown("axis", key, names), key=True)
                elif key in known and value not in known[key]:
                    options = [str(option) for option in known[key]]
                    self.report(("exclude", index, key), unknown(f"value of {key}", str(value), options))

    def target_names(self) -> tuple[str, ...]:
        if self.kernel.targets is None:
            return tuple(self.targets)
        for index, name in enumerate(self.kernel.targets):
            known = self.document.keys(("targets",))
            if name not in known:
                self.report(("targets", index), unknown("target", name, known))
            elif name in self.kernel.targets[:index]:
                self.report(("targets", index), f"the target '{name}' is in the list already")
        return tuple(name for name in self.kernel.targets if name in self.targets)

    def inputs(self, signature: Signature | None) -> dict[str, str | FunctionReference]:
        filled: dict[str, str | FunctionReference] = {}
        tensors = signature.tensors if signature is not None and self.kernel.source is not None else None
        if tensors is not None:
            for name in self.written("inputs"):
                if name not in tensors:
                    self.report(("inputs", name), unknown("tensor of the kernel", name, tensors), key=True)
        for name, kind in self.kernel.inputs.items():
            if kind in INPUT_KINDS:
                filled[name] = kind
                continue
            try:
                filled[name], wanted = check_reference(kind, self.directory)
                self.check_needs(("inputs", name), kind, wanted, {*FILL_ARGUMENTS, *self.axis_names()})
            except ReferenceProblem as problem:
                self.report(("inputs", name), str(problem), offset=problem.offset)
        return filled

    def check_metrics(self) -> None:
        for index, name in enumerate(self.kernel.metrics):
            groups = self.document.keys(("metrics",))
            if name not in groups and name not in METRICS:
                options = [*groups, *METRICS]
                self.report(("metrics", index), unknown("metric or group", name, options))
        for name in self.kernel.checks:
            if name not in METRICS:
                self.report(("checks", name), unknown("metric", name, METRICS), key=True)

    def metric_list(self) -> tuple[str, ...]:
        """The metrics with groups expanded, each once."""
        names = [metric for name in self.kernel.metrics for metric in self.groups.get(name, (name,))]
        return tuple(dict.fromkeys(names))

    def check_limits(self, name: str, check: schema.Check) -> dict[str, float]:
        limits = check.model_dump(exclude_none=True)
        if not limits and not self.written("checks", name):
            self.report(("checks", name), "needs at least one of min, max and max_regression")
        if check.min is not None and check.max is not None and check.min > check.max:
            self.report(("checks", name), f"min {check.min:g} is above max {check.max:g}: nothing can pass")
        return limits
