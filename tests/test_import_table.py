"""The table in docs/architecture.md, enforced: which room may import which, and what a plain import must not cost."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# tilelang_min: room -> rooms it may import.  `program` (records) and `errors` are open to every room.
COMPILER: dict[str, set[str]] = {
    "program": set(),
    "targets": set(),
    "access": {"targets"},
    "language": set(),
    "ir": {"language"},
    "frontend": {"language", "ir"},
    "analysis": {"ir", "targets"},
    "transform": {"ir", "analysis", "targets", "access"},
    "lower": {"ir", "analysis", "targets"},
    "codegen": {"targets"},
    "simulate": {"targets", "access"},
    "runtime": {"targets"},
}
COMPILER["driver"] = set(COMPILER)
COMPILER["tune"] = {"driver", "runtime", "targets"}
COMPILER["interop"] = {"driver"}
COMPILER_COMMON = {"program", "errors"}
# Only for annotations: a thread program names its target, an error its location.
COMPILER_TYPES_ONLY = {("program", "targets"), ("errors", "program")}
# Rooms that may import TVM: when something is compiled or simulated, never on `import tilelang_min`.
TVM_ROOMS = {"ir", "frontend", "analysis", "transform", "lower", "codegen", "simulate"}
HEAVY = {"tvm", "tvm_ffi", "torch", "pandas", "matplotlib", "tileprof"}

# tileprof: left to right; a room may import rooms to its left, and the common ones.
PROFILER_ORDER = ("workload", "plan", "collect", "launcher", "store", "analyse", "report", "execute", "session", "cli")
VERSION = {"tileprof", "tileprof.__version__"}  # the package itself holds nothing but its version
PROFILER_COMMON = {"errors", "metrics", "store.records"}
LAUNCHER_FORBIDDEN = {"tvm", "tvm_ffi", "torch", "pandas", "matplotlib", "pydantic", "jinja2", "rich", "click"}


@dataclass(frozen=True)
class Import:
    """One imported module as seen from one file."""

    importer: str  # dotted module that imports
    imported: str  # dotted module, or module.name for `from module import name`
    line: int
    types_only: bool
    lazy: bool


def imports_of(source: str, module: str, is_package: bool) -> Iterator[Import]:
    """Every import of a module's source, relative ones resolved, with where it stands."""

    def visit(node: ast.AST, types_only: bool, lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for child in node.body:
                yield from visit(child, True, lazy)
            for child in node.orelse:
                yield from visit(child, types_only, lazy)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno, types_only, lazy)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                keep = len(parts) - node.level + (1 if is_package else 0)
                base = ".".join([*parts[:keep], *([base] if base else [])])
            for alias in node.names:
                yield Import(module, f"{base}.{alias.name}", node.lineno, types_only, lazy)
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, types_only, inside)

    yield from visit(ast.parse(source), False, False)


def imports_in(package: str) -> list[Import]:
    """Every import in every module of a package."""
    found: list[Import] = []
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        found.extend(imports_of(path.read_text(encoding="utf-8"), module, is_package))
    return found


def room_of(module: str) -> str:
    """First part below the package; "" for the package itself, which is the public face."""
    return module.split(".")[1] if "." in module else ""


def is_face(module: str) -> bool:
    """Whether a module is the public face: the package itself, or a module beside the rooms other than ``errors``."""
    package, _, inner = module.partition(".")
    return inner == "" or (inner != "errors" and (ROOT / package / f"{inner}.py").is_file())


def compiler_violation(item: Import) -> str | None:
    """Why an import in tilelang_min breaks the table, or None."""
    here, top = "" if is_face(item.importer) else room_of(item.importer), item.imported.split(".")[0]
    if top == "tileprof":
        return None if here == "" and item.lazy else "tileprof is known at one door, lazily: tilelang_min/__init__.py"
    if top in HEAVY and not item.types_only:
        if top in {"tvm", "tvm_ffi"} and here in TVM_ROOMS:
            return None
        if top == "torch" and here == "interop":
            return None
        if top == "pandas":
            return "the compiler needs no pandas"
        return f"{here or 'the face'} may not import {top}"
    if top != "tilelang_min" or here == "":
        return None
    there = room_of(item.imported)
    if there == here or there in COMPILER_COMMON:
        return None if here != "errors" or item.types_only else "errors import nothing"
    if item.types_only and (here, there) in COMPILER_TYPES_ONLY:
        return None
    if here not in COMPILER:
        return f"room {here!r} is not in the table"
    return None if there in COMPILER[here] else f"{here} may not import {there or 'the public face'}"


def profiler_violation(item: Import) -> str | None:
    """Why an import in tileprof breaks the table, or None."""
    here, top = "" if is_face(item.importer) else room_of(item.importer), item.imported.split(".")[0]
    if top == "tilelang_min":
        # `import tilelang_min` and `from tilelang_min import name`: the face, to which errors belong.  The rest are rooms.
        face = item.imported.count(".") <= 1 or item.imported.startswith("tilelang_min.errors.")
        return None if face else "tileprof enters tilelang_min by its public face only"
    if here == "launcher" and top in LAUNCHER_FORBIDDEN:
        return f"the launcher may not import {top}"
    if top != "tileprof" or here == "":
        return None
    there = room_of(item.imported)
    inner = ".".join(item.imported.split(".")[1:3])
    if there == here or there in PROFILER_COMMON or inner in PROFILER_COMMON or item.imported in VERSION:
        return None if here != "errors" else "errors import nothing"
    if here == "metrics":
        return "metrics import records and errors only"
    if here not in PROFILER_ORDER:
        return f"room {here!r} is not in the table"
    if there not in PROFILER_ORDER:
        return None if here == "cli" else f"{there or 'the public face'} is not a room"
    left = PROFILER_ORDER.index(there) < PROFILER_ORDER.index(here)
    return None if left else f"{here} may not import {there}, which is to its right"


def report(violations: list[tuple[Import, str]]) -> str:
    """One line a violation."""
    return "\n".join(f"{i.importer}:{i.line} imports {i.imported}: {why}" for i, why in violations)


@pytest.mark.parametrize("package", ["tilelang_min", "tileprof"])
def test_every_import_is_in_the_table(package: str) -> None:
    rule = compiler_violation if package == "tilelang_min" else profiler_violation
    items = imports_in(package)
    assert len(items) >= 5, "no modules found: the test looks in the wrong place"
    violations = [(item, why) for item in items if (why := rule(item))]
    assert not violations, "\n" + report(violations)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tilelang_min.codegen.nvidia.printer", "from tilelang_min.simulate import simulate"),
        ("tilelang_min.codegen.nvidia.printer", "def f():\n    from ...lower import gemm"),
        ("tilelang_min.targets.nvidia", "from tilelang_min.access import bank_conflicts"),
        ("tilelang_min.runtime.cpu", "import tvm"),
        ("tilelang_min.driver.kernel", "import pandas as pd"),
        ("tilelang_min.driver.kernel", "def f():\n    import tileprof"),
        ("tilelang_min.program.metadata", "from tilelang_min.targets import Target"),
        ("tilelang_min.access.shared", "import tilelang_min"),
        ("tilelang_min", "import tileprof"),
    ],
)
def test_the_compiler_rule_sees(module: str, source: str) -> None:
    assert [why for item in imports_of(source, module, False) if (why := compiler_violation(item))]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tileprof.collect.ncu", "from tileprof.analyse.join import join"),
        ("tileprof.collect.ncu", "from tileprof.store.sqlite import Store"),
        ("tileprof.analyse.join", "from tilelang_min.program import Listing"),
        ("tileprof.launcher.main", "import pandas"),
        ("tileprof.metrics.catalogue", "from tileprof.workload import schema"),
        ("tileprof.errors", "from tileprof.metrics import lookup"),
    ],
)
def test_the_profiler_rule_sees(module: str, source: str) -> None:
    assert [why for item in imports_of(source, module, False) if (why := profiler_violation(item))]


def test_allowed_imports_pass() -> None:
    ours = "import tilelang_min as tilelang\nfrom tileprof.store.records import Metric\n"
    assert not [i for i in imports_of(ours, "tileprof.collect.ncu", False) if profiler_violation(i)]
    theirs = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tilelang_min.targets import Target\n"
    assert not [i for i in imports_of(theirs, "tilelang_min.program.thread_program", False) if compiler_violation(i)]


IMPORT_PROBE = """
import sys, time
begin = time.process_time()
import tilelang_min
seconds = time.process_time() - begin
heavy = sorted(name for name in {heavy!r} if name in sys.modules)
print(seconds, ",".join(heavy))
"""


def test_import_tilelang_min_is_light() -> None:
    """Under 0.3 s of a core and without TVM, torch, pandas, matplotlib or tileprof: the best of several fresh processes."""
    best = float("inf")
    for _ in range(5):
        probe = subprocess.run(
            [sys.executable, "-c", IMPORT_PROBE.format(heavy=sorted(HEAVY))], capture_output=True, text=True, check=True
        )
        seconds, _, heavy = probe.stdout.strip().partition(" ")
        assert heavy == "", f"import tilelang_min also imports {heavy}"
        best = min(best, float(seconds))
        if best < 0.15:
            break
    assert best < 0.3
