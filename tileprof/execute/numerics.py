"""References and sample inputs of a case, made in the compile worker and kept in files that the launcher reads.

The author's functions run here and nowhere else: an input function is called with those of ``name``, ``shape``,
``dtype``, ``seed``, ``rng`` and the case's values that it names; a reference with the arrays and values that it names.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tileprof.execute.kernel_source import KernelSourceError, describe_error, load_function
from tileprof.launcher.inputs import Array, make_arguments, numpy_dtype
from tileprof.workload.records import FunctionReference


class ReferenceFailed(KernelSourceError):
    """The author's reference or input function raised, or returned something else than arrays of the right shape."""


def call_by_name(function: Callable[..., Any], values: Mapping[str, Any], what: str) -> Any:
    """Call ``function`` with those of ``values`` that it has parameters for.  Raises ReferenceFailed."""
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    missing = [p.name for p in parameters if p.default is p.empty and p.name in names and p.name not in values]
    if missing:
        known = ", ".join(values)
        raise ReferenceFailed(f"{what} has the parameter {missing[0]!r}; it can be given {known}")
    chosen = {name: value for name, value in values.items() if takes_all or name in names}
    try:
        return function(**chosen)
    except Exception as error:
        raise ReferenceFailed(f"{what} failed: {describe_error(error)}") from error


class Numerics:
    """Inputs and reference of one case.

    ``parameters`` are those of a launch (dictionaries, shapes in numbers), ``job`` the case as :meth:`Case.to_job` gives it.
    """

    def __init__(
        self, job: Mapping[str, Any], parameters: Sequence[Mapping[str, Any]], directory: str, seed: int
    ) -> None:
        self.job = job
        self.values = {**job["values"], **job.get("sizes", {})}
        self.parameters = parameters
        self.directory = directory
        self.seed = seed
        names = [parameter["name"] for parameter in parameters]
        wrong = [name for name in job["inputs"] if name not in names]
        if wrong:
            raise KernelSourceError(
                f"inputs names '{wrong[0]}', and the kernel's parameters are {', '.join(names)}",
                remedy="name one of them in the workload's inputs, or leave it out",
            )
        self.kinds = {name: kind for name, kind in job["inputs"].items() if isinstance(kind, str)}
        self.functions = {
            name: FunctionReference.from_json(kind) for name, kind in job["inputs"].items() if not isinstance(kind, str)
        }

    def key(self) -> str:
        """Digest of what inputs and reference depend on: equal for the targets and tile sizes that share them."""
        job = self.job
        used: dict[str, Any] = {}
        for reference in [*self.functions.values(), *([self._reference()] if job["reference"] else [])]:
            function = load_function(reference, self.directory) if reference else None
            if function is not None:
                parameters = inspect.signature(function).parameters.values()
                everything = any(p.kind is p.VAR_KEYWORD for p in parameters)
                named = {p.name for p in parameters}
                used.update({k: v for k, v in self.values.items() if everything or k in named})
        content = [
            job["inputs"], job["reference"], self.seed, used,
            [[p["name"], p["dtype"], list(p["shape"]), p["access"]] for p in self.parameters],
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:20]

    def _reference(self) -> FunctionReference | None:
        record = self.job["reference"]
        return FunctionReference.from_json(record) if record else None

    def given(self) -> dict[str, Array]:
        """Arrays that functions of the author make."""
        arrays: dict[str, Array] = {}
        for parameter in self.parameters:
            name = parameter["name"]
            if name not in self.functions:
                continue
            reference = self.functions[name]
            values = {
                **self.values,
                "name": name,
                "shape": tuple(parameter["shape"]),
                "dtype": parameter["dtype"],
                "seed": self.seed,
                "rng": np.random.default_rng(self.seed),
            }
            made = np.asarray(call_by_name(load_function(reference, self.directory), values, reference.text))
            if made.shape != tuple(parameter["shape"]):
                shape = tuple(parameter["shape"])
                raise ReferenceFailed(
                    f"{reference.text} made an array of shape {made.shape} for {name}, which has {shape}"
                )
            arrays[name] = made.astype(numpy_dtype(parameter["dtype"]))
        return arrays

    def expected(self, arguments: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by the author's reference, in float64; empty where there is none."""
        reference = self._reference()
        if reference is None:
            return {}
        inputs = {p["name"]: arguments[p["name"]].copy() for p in self.parameters if p["access"] != "out"}
        function = load_function(reference, self.directory)
        result = call_by_name(function, {**self.values, **inputs}, f"reference {reference.text}")
        outputs = [p for p in self.parameters if p["access"] != "in"]
        if isinstance(result, dict):
            named = result
        else:
            several = result if isinstance(result, tuple | list) else (result,)
            if len(several) != len(outputs):
                names = ", ".join(p["name"] for p in outputs)
                raise ReferenceFailed(f"{reference.text} returned {len(several)} arrays, and the outputs are {names}")
            named = {p["name"]: array for p, array in zip(outputs, several)}
        expected: dict[str, Array] = {}
        shapes = {p["name"]: tuple(p["shape"]) for p in outputs}
        for name, array in named.items():
            if name not in shapes:
                raise ReferenceFailed(f"{reference.text} returned '{name}', and the outputs are {', '.join(shapes)}")
            expected[name] = np.asarray(array).astype(np.float64)
            if expected[name].shape != shapes[name]:
                found = expected[name].shape
                raise ReferenceFailed(f"{reference.text} returned shape {found} for {name}, which has {shapes[name]}")
        return expected


def saved_reference(numerics: Numerics, folder: Path) -> tuple[Path, dict[str, Array], dict[str, Array]]:
    """(file, expected outputs, arrays of the author) of a case, computed once for all cases with the same key."""
    path = folder / f"reference-{numerics.key()}.npz"
    if path.is_file():
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        expected = {name[4:]: array for name, array in arrays.items() if name.startswith("out:")}
        return path, expected, {name[3:]: array for name, array in arrays.items() if name.startswith("in:")}
    given = numerics.given()
    arguments = make_arguments(numerics.parameters, numerics.kinds, numerics.seed, given)
    expected = numerics.expected(arguments)
    arrays = {**{f"out:{n}": a for n, a in expected.items()}, **{f"in:{n}": a for n, a in given.items()}}
    partial = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(partial, **arrays)
    partial.replace(path)
    return path, expected, given
