"""Every construct of the language on the GPU: the tests that simulate kernels for targets launch them here.

A test function of ``tests/tilelang_min`` that takes a target and runs kernels by ``kernel_runs.run`` is called with the target of
the GPU at hand, for all its other parameters; those of matrix products a second time without Hopper's instructions.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tilelang_min.language.constructs import CONSTRUCTS
from tilelang_min.runtime import cuda

TESTS = Path(__file__).parents[1] / "tilelang_min"
MODULES = {
    "lower": (
        "test_atomics",
        "test_branches",
        "test_element_types",
        "test_forms",
        "test_fragment_operands",
        "test_gemm_types",
        "test_kernel_zoo",
        "test_mixed_operands",
        "test_narrow_tensors",
        "test_random_programs",
        "test_reductions",
        "test_shared_layouts",
        "test_tilelang_attention",
        "test_variables",
        "test_workload_products",
    ),
    "frontend": ("test_macros",),
}
PRODUCTS = (
    "test_fragment_operands",
    "test_gemm_types",
    "test_mixed_operands",
    "test_random_programs",
    "test_shared_layouts",
    "test_tilelang_attention",
    "test_workload_products",
)
ELSEWHERE = {"test_no_sums_in_float16", "test_they_compile", "test_names_of_calls_are_read_back"}
"""About errors of other targets, or about compiling alone."""
WITH_ANY_TARGET = {"test_attention", "test_flash_attention"}
"""Their targets stand beside other parameters, but are not bound to them."""


def parameters(function: Any) -> Iterator[dict[str, Any]]:
    """The values of a test's parameters other than the target, in all combinations; none where it takes no target alone."""
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    sets = []
    targeted = False
    for mark in marks:
        names, values = mark.args[:2]
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        rows = [dict(zip(names, [value] if len(names) == 1 else value, strict=True)) for value in values]
        if "target" in names:
            if len(names) > 1 and function.__name__ not in WITH_ANY_TARGET:
                return
            targeted = True
            others = [{name: value for name, value in row.items() if name != "target"} for row in rows]
            rows = [row for place, row in enumerate(others) if row not in others[:place]]
        sets.append(rows)
    if targeted:
        for combination in itertools.product(*sets):
            yield {name: value for part in combination for name, value in part.items()}


def cases() -> Iterator[Any]:
    """(function, its parameters, options of the compiler)."""
    for room, modules in MODULES.items():
        for name in modules:
            module = importlib.import_module(name)
            for each, function in vars(module).items():
                if not each.startswith("test_") or getattr(function, "__module__", name) != name or each in ELSEWHERE:
                    continue
                for values in parameters(function):
                    words = "-".join(re.sub(r"[^\w.]+", "_", str(value)) for value in values.values())
                    label = f"{room}.{name}.{each}[{words}]"
                    yield pytest.param(function, values, {}, id=label)
                    if name in PRODUCTS:
                        yield pytest.param(function, values, {"hopper": False}, id=f"{label}-mma")


def here() -> str | None:
    """The target of the GPU at hand; None without GPU or compiler."""
    if not any(Path("/dev").glob("nvidia[0-9]*")) or importlib.util.find_spec("tvm") is None:
        return None
    major, minor = cuda.device_info().compute_capability
    return f"cuda:sm_{major}{minor}{'a' if major >= 9 else ''}"


for _folder in (TESTS / room for room in MODULES):
    sys.path.insert(0, str(_folder))
CASES = list(cases()) if here() else []


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:kernel .* NumPy arrays are copied")
@pytest.mark.parametrize(("function", "values", "options"), CASES)
def test_language(
    function: Callable[..., None], values: dict[str, Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import kernel_runs

    target = here()
    assert target is not None
    monkeypatch.setitem(kernel_runs.LAUNCHED, target, options)
    fixtures = {"monkeypatch": monkeypatch} if "monkeypatch" in inspect.signature(function).parameters else {}
    function(**values, **fixtures, target=target)


def test_no_construct_is_left_out() -> None:
    """Each is written in a kernel that the functions above run."""
    from kernel_reductions import KINDS

    files = [path for room in MODULES for path in (TESTS / room).glob("kernel_*.py")]
    files += [TESTS / room / f"{name}.py" for room, names in MODULES.items() for name in names]
    text = "".join(path.read_text() for path in [*files, TESTS / "lower" / "random_programs.py"])
    written = set(re.findall(r"\bT\.(\w+)", text)) | {f"reduce_{kind}" for kind in KINDS}
    assert set(CONSTRUCTS) <= written
    assert {values["kind"] for function, values, _ in (case.values for case in cases()) if "kind" in values} == set(
        KINDS
    )
    assert len(list(cases())) > 200
