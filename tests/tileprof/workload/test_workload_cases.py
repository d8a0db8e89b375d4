"""Valid workload files: values, cases, ids and hashes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import tileprof.workload.hashing as hashing
from tileprof.errors import WorkloadError
from tileprof.workload import Workload, expand_cases, workload_json_schema
from tileprof.workload.expression import ExpressionError, evaluate, parse_expression
from tileprof.workload.units import parse_duration, parse_fraction
from tileprof.workload.yaml_source import parse_yaml

Load = Callable[[str], Workload]

EVERYTHING = """\
version: 1
name: everything
description: each feature of the format
defaults:
  timing: {warmup: 2, samples: 1e2, rounds: 3, flush_l2: false, graph: auto, budget: 500ms}
  timeout: 2min
  seed: 7
targets:
  laptop: {target: cpu}
  h200: {target: cuda:sm_90a, profiler: ncu}
  mi300x: {target: rocm:gfx942, profiler: [rocprofv3, timer]}
  old: {target: cuda:sm_70}
metrics:
  memory: [dram.read_bytes, shared.conflicts]
  raw: {rocprofv3: [SQ_LDS_BANK_CONFLICT]}
kernels:
  - name: matmul
    source: kernels/gemm.py:matmul
    args: {dtype: [float16, float32]}
    shapes: [{M: [128, 1e3], N: 64, K: 32}, {M: 16, N: 64, K: 32}]
    tiles: {block_M: [64, 128], block_N: [128], num_stages: 2}
    where: ["(block_M + block_N) * 64 * 2 * num_stages <= shared_bytes"]
    exclude: [{block_M: 64, target: mi300x}]
    targets: [h200, mi300x, laptop]
    inputs: {A: normal, B: kernels/gemm.py:fill, C: zeros}
    reference: kernels/gemm.py:reference
    tolerance: {rtol: 1e-2, atol: 0}
    metrics: [memory, occupancy.achieved]
    checks:
      spill.store_bytes: {max: 0}
      time.ns: {max_regression: 5%}
  - name: triton
    callable: kernels/gemm.py:reference
    python: /opt/other/bin/python
    targets: [h200]
  - name: program
    command: ["./a.out", "4096"]
    targets: [h200]
"""


def test_every_feature_of_the_format(load: Load, folder: Path) -> None:
    workload = load(EVERYTHING)
    assert (workload.timing.samples, workload.timing.budget_s, workload.timing.flush_l2) == (100, 0.5, False)
    assert (workload.timeout_s, workload.seed, workload.file, workload.directory) == (120.0, 7, "w.yaml", folder)
    assert workload.targets["mi300x"].target == "hip:gfx942"
    assert workload.targets["mi300x"].profilers == ("rocprofv3", "timer")
    assert "CUDA 12" in (workload.targets["old"].unsupported or "CUDA 12 is here")
    matmul, triton, program = workload.kernels
    assert [shape["M"] for shape in matmul.shapes] == [128, 1000, 16]
    assert matmul.metrics == ("dram.read_bytes", "shared.conflicts", "occupancy.achieved")
    assert matmul.checks == {"spill.store_bytes": {"max": 0.0}, "time.ns": {"max_regression": 0.05}}
    assert matmul.source is not None
    assert matmul.source.file == str(folder / "kernels" / "gemm.py")
    assert triton.python == "/opt/other/bin/python"
    assert program.command == ("./a.out", "4096")


def test_cases_are_the_product_less_where_and_exclude(load: Load) -> None:
    cases = expand_cases(load(EVERYTHING))
    by_target = {name: [c for c in cases if c.target.name == name] for name in ("h200", "mi300x", "laptop")}
    # 2 dtypes x 3 shapes x 2 tiles, and the two kernels without axes
    assert len(by_target["h200"]) == 12 + 2
    # (128 + 128) * 256 bytes is exactly the 64 KiB of LDS that gfx942 has; block_M = 64 is excluded
    assert {c.tiles["block_M"] for c in by_target["mi300x"]} == {128}
    assert cases[0].id == "matmul[float16,M=128,N=64,K=32,block_M=64,block_N=128]@h200"
    assert cases[0].values == {
        "dtype": "float16", "M": 128, "N": 64, "K": 32, "block_M": 64, "block_N": 128, "num_stages": 2,
    }  # fmt: skip
    assert cases[-1].id == "program@h200"
    assert len({c.id for c in cases}) == len({c.hash for c in cases}) == len(cases)
    assert {c.target.name for c in expand_cases(load(EVERYTHING), targets=("laptop",))} == {"laptop"}


def test_where_reads_the_facts_of_the_target(load: Load, good: str) -> None:
    text = good + '    where: ["warp_size == 32 or block_M > 32"]\n'
    kept = {(c.target.name, c.tiles["block_M"]) for c in expand_cases(load(text))}
    assert kept == {("laptop", 64), ("a100", 32), ("a100", 64)}


def test_a_kernel_without_cases_is_an_error(load: Load, good: str) -> None:
    with pytest.raises(WorkloadError, match=r"no case of kernel 'matmul' is left.*all 8 combinations"):
        expand_cases(load(good + '    where: ["block_M > 64"]\n'))


def test_where_that_cannot_be_computed_names_the_values(load: Load, good: str) -> None:
    with pytest.raises(WorkloadError, match=r"cannot be computed for dtype=float16, .* on laptop: division by zero"):
        expand_cases(load(good + '    where: ["M // (num_stages - 2) > 0"]\n'))


def test_too_many_combinations_are_not_enumerated(load: Load, good: str) -> None:
    axis = ", ".join(str(i) for i in range(1, 400))
    text = good.replace("block_M: [32, 64]", f"block_M: [{axis}], block_N: [{axis}], block_K: [{axis}]")
    with pytest.raises(WorkloadError, match=r"254,084,796 combinations"):
        expand_cases(load(text))


def test_the_hash_follows_what_decides_the_result(
    load: Load, folder: Path, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hashes(text: str) -> list[str]:
        return [case.hash for case in expand_cases(load(text))]

    before = hashes(good)
    assert hashes("# a comment\n" + good) == before
    assert hashes(good.replace("name: gemm", "name: other").replace("laptop", "desktop")) == before
    assert not set(hashes(good.replace("num_stages: 2", "num_stages: 3"))) & set(before)
    assert not set(hashes(good + "    inputs: {A: ones}\n")) & set(before)
    monkeypatch.setattr(hashing, "toolchain_versions", lambda: {"apache-tvm": "0.0"})
    assert not set(hashes(good)) & set(before)
    monkeypatch.undo()
    file = folder / "kernels" / "gemm.py"
    file.write_text(file.read_text() + "\n# changed\n")
    assert not set(hashes(good)) & set(before)


def test_scalars_follow_yaml_1_2() -> None:
    text = "[1e3, 1.0, 1.5e3, 0x10, 0o17, no, on, true, ~, '7', 1:30, 1_000, -.5, 010, 2024-01-01]"
    expected = [1000, 1.0, 1500.0, 16, 15, "no", "on", True, None, "7", "1:30", "1_000", -0.5, 10, "2024-01-01"]
    value = parse_yaml(text, "x").value
    assert value == expected
    assert [type(v) for v in value] == [type(v) for v in expected]
    assert [p.message for p in parse_yaml("a: 1e999", "x").problems] == ["the number '1e999' is out of range"]


def test_quantities() -> None:
    assert [parse_duration(v) for v in ("120s", "500ms", "2min", "1.5 h", 3)] == [120.0, 0.5, 120.0, 5400.0, 3.0]
    for wrong in ("120", "s", -1, 0, True, None, "1e20s"):
        with pytest.raises(ValueError, match="duration"):
            parse_duration(wrong)
    assert parse_fraction("5%") == 0.05
    assert parse_fraction(0.1) == 0.1


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2 * x + 1 <= 7", True),
        ("1 < x < 3", False),
        ("x in [1, 3] and not y == 'b'", True),
        ("ceildiv(10, x) == 4 if y == 'a' else false", True),
        ("min(x, 2) == 2 or 1 // 0 > 0", True),
        ("-x % 2 == 1", True),
    ],
)
def test_expressions(text: str, result: bool) -> None:
    assert evaluate(parse_expression(text), {"x": 3, "y": "a"}) is result


@pytest.mark.parametrize(
    "text", ["x", "x + 'a' > 1", "y < 1", "[1] * 9 == 1", "x[0] > 1", "(lambda: 1)() > 0", "f(x=1)"]
)
def test_expressions_outside_the_grammar(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(parse_expression(text), {"x": 3, "y": "a"})


def test_an_expression_cannot_grow_numbers_without_end() -> None:
    with pytest.raises(ExpressionError, match="too large"):
        evaluate(parse_expression("*".join(["x"] * 60) + " > 0"), {"x": 10**30})


def test_the_published_schema_is_current_and_agrees(good: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    file = Path(hashing.__file__).with_name("workload.schema.json")
    assert json.loads(file.read_text()) == workload_json_schema(), f"run: tileprof schema workload > {file}"
    validator = jsonschema.Draft202012Validator(workload_json_schema())
    validator.check_schema(workload_json_schema())
    for text in (good, EVERYTHING.replace("1e2", "100").replace("1e3", "1000").replace("1e-2", "0.01")):
        assert list(validator.iter_errors(yaml.safe_load(text))) == []
    wrong = yaml.safe_load(re.sub("source:", "sorce:", good))
    assert [list(e.path) for e in validator.iter_errors(wrong)] == [["kernels", 0]]


def test_the_example_of_the_documentation_is_valid(load: Load, folder: Path) -> None:
    root = Path(__file__).parents[3]
    shutil.copy(root / "workloads" / "kernels" / "gemm.py", folder / "kernels")
    text = (root / "docs" / "workload.md").read_text()
    example = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert example is not None
    cases = expand_cases(load(example[1]))
    assert "matmul[float16,M=1024,N=1024,K=1024,block_M=64,num_stages=1]@laptop" in [case.id for case in cases]
    # block_M = 64 is excluded on the a100: 2 types x 2 tiles x 2 stages, less 4
    assert len(cases) == 8 + 4
