"""Every mistake in a workload file is reported at once, each at its place and with the nearest valid word."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tileprof.errors import WorkloadError
from tileprof.workload import Workload, expand_cases, load_workload

Load = Callable[[str], Workload]
Problems = Callable[[str], list[str]]


def test_all_mistakes_at_once_each_at_its_place(problems: Problems, good: str) -> None:
    text = (
        good.replace("version: 1", "version: 2")
        .replace("target: cpu}", "target: cqu}")
        .replace("profiler: ncu", "profiler: ncuu")
        .replace("block_M: [32", "block_m: [32")
        .replace("M: 128", "M: -1")
        .replace("reference: kernels", "refrence: kernels")
    )
    assert problems(text) == [
        "1:10: expected 1, found 2; this tileprof reads version 1 of the format",
        "4:20: unknown target 'cqu'; did you mean 'cpu'?",
        "5:40: unknown profiler 'ncuu'; did you mean 'ncu'?",
        "10:18: expected a whole number of 1 or more, found -1",
        "11:13: unknown parameter of matmul 'block_m'; did you mean 'block_M'?",
        "12:5: unknown key 'refrence'; did you mean 'reference'?",
    ]


FAULTY = """\
version: 1
nme: x
name: gemm
defaults: {timing: {warmups: 1, samples: "five"}, timeout: 120q}
targets:
  cpu: {target: cpux}
  g: {target: "cuda:sm_91", profilr: ncu}
  h: {profiler: ncu}
metrics: {own: [time.nss]}
kernels:
  - name: add
    source: kernels/gemm.py
    tiles: {block: 64}
    where: ["blok > 3", "block +"]
    targets: [cpuu]
    inputs: {A: normall}
    tolerance: {rtol: -1}
    metrics: [memry]
    checks: {shared.conflict: {max: 0}, time.ns: {max_regresion: 5%}}
  - not a kernel
  - name: two
    source: kernels/gemm.py:two
    bundle: x.tlk
    shapes: [{M: 1, Q: 2}, {M: -2}]
    inputs: {Z: ones, W: ones}
"""


def test_what_the_schema_refuses_hides_nothing_else(problems: Problems) -> None:
    assert [line.split(";")[0] for line in problems(FAULTY)] == [
        "2:1: unknown key 'nme'",
        "4:21: unknown key 'warmups'",
        "4:42: expected a whole number, found 'five'",
        "4:60: expected a duration such as 120s, 500ms or 2min, found '120q'",
        "6:17: unknown target 'cpux'",
        "7:15: unknown target 'cuda:sm_91'",
        "7:29: unknown key 'profilr'",
        "8:3: the key 'target' is missing",
        "9:17: unknown metric 'time.nss'",
        "12:13: expected FILE:FUNCTION or package.module:function, found 'kernels/gemm.py'",
        "14:14: unknown name 'blok'",
        "14:33: not an expression: invalid syntax",
        "15:15: unknown target 'cpuu'",
        "16:17: unknown way to fill an input 'normall'",
        "17:5: the key 'atol' is missing",
        "17:23: expected a number of 0 or more, found -1",
        "18:15: unknown metric or group 'memry'",
        "19:14: unknown metric 'shared.conflict'",
        "19:51: unknown key 'max_regresion'",
        "20:5: expected a mapping, found 'not a kernel'",
        "23:5: 'bundle' and 'source' exclude each other",
        "23:13: there is no bundle x.tlk",
        "24:21: unknown parameter of two 'Q'",
        "24:32: expected a whole number of 1 or more, found -2",
        "25:23: unknown tensor of the kernel 'W'",
    ]


@pytest.mark.parametrize("missing", ["targets", "kernels"])
def test_a_part_that_is_missing_hides_nothing_else(problems: Problems, missing: str) -> None:
    before, after = ("targets:", "kernels:"), FAULTY.index("kernels:")
    text = FAULTY[:after] if missing == "kernels" else FAULTY.replace(FAULTY[FAULTY.index(before[0]) : after], "")
    found = problems(text)
    assert f"1:1: the key '{missing}' is missing" in found
    expected = "12:13: expected FILE:" if missing == "targets" else "6:17: unknown target 'cpux'"
    expected = "7:13: expected FILE:" if missing == "targets" else expected
    assert any(line.startswith(expected) for line in found), found
    assert not any("unnamed" in line for line in found), found


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("sleep 0.01", '[sleep, "0.01"]'),
        ("python3 -c 'print(1)' {N}", '[python3, -c, "print(1)", "{N}"]'),
        ("./a.out --size=3 'a b' yes 'on: x'", '[./a.out, --size=3, a b, yes, "on: x"]'),
        ("it's", '["it\'s"]'),  # an open quote: as it stands
        ("ls", "[ls]"),
    ],
)
def test_a_command_that_is_a_line_is_shown_as_its_words(
    load: Load, problems: Problems, command: str, written: str
) -> None:
    text = (
        "version: 1\nname: x\ntargets: {cpu: {target: cpu}}\nkernels:\n  - {name: a, args: {N: 1}, command: COMMAND}\n"
    )
    found = problems(text.replace("COMMAND", '"' + command + '"'))
    assert found == [f"5:38: expected a list, found {command!r}; write {written}"]
    (kernel,) = load(text.replace("COMMAND", written)).kernels  # the advice is right
    assert kernel.command == (("it's",) if command == "it's" else tuple(shlex.split(command)))


@pytest.mark.parametrize(
    ("source", "name", "fits"),
    [("two", "Z", True), ("two", "M", False), ("wrapped", "Q", True), ("branches", "B", True), ("branches", "C", True)],
)
def test_inputs_name_tensors_of_the_kernel(load: Load, problems: Problems, source: str, name: str, fits: bool) -> None:
    """Known where a factory plainly returns its own kernels; of one that does more with them nothing is said here."""
    text = f"""\
version: 1
name: x
targets: {{cpu: {{target: cpu}}}}
kernels:
  - {{name: a, source: "kernels/gemm.py:{source}", shapes: [{{M: 4}}], inputs: {{{name}: ones}}}}
"""
    if fits:
        load(text)
    else:
        assert problems(text)[0].endswith(f"unknown tensor of the kernel '{name}'; known: X, Y, Z")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("reference: kernels/gemm.py:doubled", []),
        (
            "reference: kernels/gemm.py:mistaken",
            [f"8:16: no value for {name}, which mistaken needs: it can have M, X, Y, Z" for name in "KW"],
        ),
        ("inputs: {X: kernels/gemm.py:fill}", []),
        (
            "inputs: {X: kernels/gemm.py:doubled}",
            ["8:17: no value for X, which doubled needs: it can have M, dtype, name, rng, seed, shape"],
        ),
    ],
)
def test_the_authors_functions_are_called_with_what_there_is(
    load: Load, problems: Problems, line: str, expected: list[str]
) -> None:
    text = f"""\
version: 1
name: x
targets: {{cpu: {{target: cpu}}}}
kernels:
  - name: a
    source: kernels/gemm.py:two
    shapes: [{{M: 4}}]
    {line}
"""
    if expected:
        assert problems(text) == expected
    else:
        load(text)


def test_the_message_shows_the_line_and_a_caret(load: Load, folder: Path, good: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        load(good.replace("cuda:sm_80", "cuda:sm80"))
    assert str(caught.value) == (
        f"{folder}/w.yaml:5:18: unknown target 'cuda:sm80'; did you mean 'cuda:sm_80'?\n"
        "  5 |   a100: {target: cuda:sm80, profiler: ncu}\n"
        "    |                  ^\n"
        f"1 problem in {folder}/w.yaml"
    )
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: gemm\n", "", "1:1: the key 'name' is missing"),
        ("name: gemm", "name: ge mm", "2:7: 'ge mm' cannot be a name: use letters"),
        ("name: gemm", "name: 7", "2:7: expected text, found 7; put it in quotes"),
        ("name: gemm", "name: gemm\nname: other", "3:1: duplicate key 'name'; it stands in line 2 already"),
        ("name: gemm", "name: !!python/object:os.system x", "2:7: the tag 'tag:yaml.org,2002:python/object:os.system'"),
        ("name: gemm", "name: [gemm", "not valid YAML"),
        ("shapes: [", "shapes: 3 #[", "10:13: expected a list, found 3; write [3]"),
        ("[float16, float32]", "[]", "9:19: an axis needs at least one value"),
        ("[float16, float32]", "[float16, float16]", "9:29: the axis has the value 'float16' twice"),
        ("[float16, float32]", "[float16, [1]]", "9:29: expected a number, a word, true or false, found a list"),
        ("K: 32", "K: 1.5", "10:33: expected a whole number of 1 or more, found 1.5"),
        ("K: 32", "Q: 32", "10:30: unknown parameter of matmul 'Q'"),
        ("K: 32}]", "K: 32}, {M: 1, N: 2}]", "10:38: no value for K, which matmul needs"),
        ("K: 32}]", "K: 32}, {M: 128, N: 64, K: 32}]", "this shape is in the list already"),
        ("num_stages: 2", "M: 2", "10:15: 'M' stands in tiles already"),
        ("gemm.py:matmul", "gemmm.py:matmul", "8:13: there is no file kernels/gemmm.py"),
        (
            "gemm.py:matmul",
            "gemm.py:matmull",
            "8:29: unknown function in kernels/gemm.py 'matmull'; did you mean 'matmul'?",
        ),
        ("gemm.py:matmul", "gemm.py", "8:13: expected FILE:FUNCTION"),
        ("source: kernels/gemm.py:matmul", "source: nowhere_at_all.x:matmul", "no module 'nowhere_at_all'"),
        ("    source:", "    command: [./a.out]\n    source:", "8:5: 'command' and 'source' exclude each other"),
        ("    source: kernels/gemm.py:matmul\n", "", "needs one of the keys source, bundle, callable and command"),
        ("    source:", "    python: python3\n    source:", "8:5: 'python' belongs to a kernel with 'callable'"),
        ("source: kernels/gemm.py:matmul", "bundle: nope.tlk", "8:13: there is no bundle nope.tlk"),
        ("target: cpu}", "target: cpu, profiler: ncu}", "ncu cannot measure the target cpu; perf can"),
        ("gemm.py:reference", "gemm.py:referense", "did you mean 'reference'?"),
    ],
)
def test_a_mistake_is_named(problems: Problems, good: str, old: str, new: str, expected: str) -> None:
    assert old in good
    found = problems(good.replace(old, new, 1))
    assert any(expected in line for line in found), found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    targets: [laptop, b100]", "13:23: unknown target 'b100'; did you mean 'a100'?"),
        ("    inputs: {A: gaussian}", "13:17: unknown way to fill an input 'gaussian'; known: FILE:FUNCTION, arange,"),
        (
            "    inputs: {A: kernels/gemm.py:fil}",
            "13:33: unknown function in kernels/gemm.py 'fil'; did you mean 'fill'?",
        ),
        ("    tolerance: {rtol: -1, atol: 0}", "13:23: expected a number of 0 or more, found -1"),
        ("    tolerance: {rtol: 1}", "13:5: the key 'atol' is missing"),
        (
            "    metrics: [shared.conflict]",
            "unknown metric or group 'shared.conflict'; did you mean 'shared.conflicts'?",
        ),
        (
            "    checks: {spil.store_bytes: {max: 0}}",
            "unknown metric 'spil.store_bytes'; did you mean 'spill.store_bytes'?",
        ),
        ("    checks: {time.ns: {max_regression: 5x}}", "expected a percentage such as 5%, found '5x'"),
        ("    checks: {time.ns: {}}", "needs at least one of min, max and max_regression"),
        ("    checks: {time.ns: {min: 2, max: 1}}", "min 2 is above max 1: nothing can pass"),
        ("    where: [block_M <]", "13:22: not an expression"),
        ('    where: ["block_M < blok_K"]', "13:24: unknown name 'blok_K'"),
        ("    where: [\"__import__('os')\"]", "13:14: unknown function '__import__'"),
        ('    where: ["M.real > 0"]', "13:14: only plain names can be used here"),
        ('    where: ["2 ** 9999 > M"]', "only + - * / // and % are known here"),
        ("    exclude: [{block_M: 48}]", "unknown value of block_M '48'; known: 32, 64"),
        ("    exclude: [{target: laptob}]", "unknown value of target 'laptob'; did you mean 'laptop'?"),
        ("    exclude: [{blok_M: 32}]", "unknown axis 'blok_M'; did you mean 'block_M'?"),
    ],
)
def test_a_mistake_in_an_added_line_is_named(problems: Problems, good: str, line: str, expected: str) -> None:
    found = problems(good + line + "\n")
    assert any(expected in problem for problem in found), found


def test_two_cases_of_one_id(load: Load, good: str) -> None:
    again = "  - name: matmul\n    source: kernels/gemm.py:matmul\n    args: {dtype: [float16]}\n"
    again += "    shapes: [{M: 128, N: 64, K: 32}]\n    tiles: {block_M: [BLOCK], num_stages: 1}\n"
    assert len(expand_cases(load(good + again.replace("BLOCK", "16")))) == 8 + 2
    with pytest.raises(
        WorkloadError, match=r"two cases are called matmul\[float16,M=128,N=64,K=32,block_M=64\]@laptop"
    ):
        expand_cases(load(good + again.replace("BLOCK", "64")))


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_file(problems: Problems, text: str) -> None:
    assert problems(text) == ["1:1: the file is empty"]


def test_a_list_instead_of_a_mapping(problems: Problems) -> None:
    assert problems("- 1\n") == ["1:1: expected a mapping, found a list"]


def test_an_alias_of_itself_and_an_alias_bomb(problems: Problems) -> None:
    assert any("an alias refers to itself" in line for line in problems("version: &a [*a]\n"))
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9))
    assert any("expands to more than 200,000 values" in line for line in problems(bomb))


def test_a_kernel_file_that_is_no_python(problems: Problems, folder: Path, good: str) -> None:
    (folder / "kernels" / "gemm.py").write_text("def matmul(:\n")
    assert problems(good)[0].startswith(
        "8:13: kernels/gemm.py is not valid Python: kernels/gemm.py:1:12: invalid syntax"
    )


def test_files_that_cannot_be_read(folder: Path) -> None:
    (folder / "gemm.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(WorkloadError, match=r"did you mean .*gemm\.yaml\?"):
        load_workload(folder / "gem.yaml")
    with pytest.raises(WorkloadError, match="is a directory"):
        load_workload(folder)
    with pytest.raises(WorkloadError, match="is not UTF-8 text"):
        load_workload(folder / "gemm.yaml")
    with pytest.raises(WorkloadError, match="does not exist either"):
        load_workload(folder / "none" / "w.yaml")
