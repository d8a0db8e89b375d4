"""Runtime dimensions in a workload file: cases, ids and hashes; and what is wrong with sizes, each at its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tileprof.execute.sweep import bundle_name
from tileprof.workload import Workload, expand_cases

Load = Callable[[str], Workload]
Problems = Callable[[str], list[str]]

FACTORIES = """
import tilelang_min.language as T
from elsewhere import HIDDEN

SHARED = T.symbolic("rows")

def rows(N, block=64, dtype="float32"):
    M = T.dynamic("m")
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor[(M, N), dtype]):
        pass
    return main

def product(M, N, K, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        pass
    return main

def shared(N):
    cols, deep = T.dynamic("c, d")
    @T.prim_func
    def main(A: T.Tensor((SHARED, 2 * N), "float32"), B: T.Tensor((cols, deep), "float32")):
        pass
    return main

def maybe(N, M=None):
    if M is None:
        M = T.dynamic("m")
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32")):
        pass
    return main

def hidden(N):
    M = T.dynamic("m")
    @T.prim_func
    def main(A: T.Tensor((M, HIDDEN), "float32")):
        pass
    return main

def eager(A, block=64):
    N = T.const("N")
    M = T.dynamic("m")
    A: T.Tensor[[M, N], "float32"]
    with T.Kernel(M, threads=64) as bx:
        pass

def computed(N):
    M = T.dynamic("m" + str(N))
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32")):
        pass
    return main
"""

HEAD = """\
version: 1
name: sizes
targets: {cpu: {target: cpu}, a100: {target: cuda:sm_80}}
kernels:
  - name: kernel
"""


@pytest.fixture(autouse=True)
def factories(folder: Path) -> None:
    (folder / "rows.py").write_text(FACTORIES)


def kernel(source: str, *lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in (f"source: rows.py:{source}", *lines))


def test_cases_have_sizes_in_their_ids_and_share_what_is_compiled(load: Load) -> None:
    text = kernel("rows", "shapes: [{N: 96}]", "sizes: [{m: 1}, {m: [7, 4096]}]", "tiles: {block: [32, 64]}")
    cases = expand_cases(load(text))
    assert [case.id for case in cases[:5]] == [
        "kernel[N=96,m=1,block=32]@cpu",
        "kernel[N=96,m=1,block=32]@a100",
        "kernel[N=96,m=1,block=64]@cpu",
        "kernel[N=96,m=1,block=64]@a100",
        "kernel[N=96,m=7,block=32]@cpu",
    ]
    assert len(cases) == 12
    assert len({case.hash for case in cases}) == 12
    assert len({case.build for case in cases}) == len({bundle_name(case) for case in cases}) == 4
    for case in cases:
        assert case.values == {"N": 96, "block": case.tiles["block"]}  # what the factory is called with
        assert {c.sizes["m"] for c in cases if c.build == case.build} == {1, 7, 4096}
    job = cases[4].to_job()
    assert job["sizes"] == {"m": 7}
    assert job["places"][""].endswith("w.yaml:8:21")
    assert job["places"]["m"].endswith("w.yaml:8:26")  # the size in its list


def test_what_else_is_written_decides_the_hash_of_a_size(load: Load) -> None:
    def hashes(sizes: str) -> dict[str, tuple[str, str]]:
        cases = expand_cases(load(kernel("rows", "shapes: [{N: 96}]", f"sizes: {sizes}")), ("cpu",))
        return {case.id: (case.hash, case.build) for case in cases}

    few, more = hashes("[{m: 1}]"), hashes("[{m: 128}, {m: 1}]")
    assert few.items() <= more.items()  # another size changes nothing of this one
    plain = expand_cases(load(kernel("product", "shapes: [{M: 1, N: 8, K: 8}]")))[0]
    sized = expand_cases(load(kernel("product", "shapes: [{N: 8, K: 8}]", "sizes: [{M: 1}]")))[0]
    assert plain.hash not in (sized.hash, sized.build)
    assert plain.build == plain.hash


def test_where_and_exclude_see_sizes(load: Load) -> None:
    lines = ("shapes: [{N: [8, 16]}]", "sizes: [{m: [1, 64, 4096]}]", 'where: ["m * N <= 32768"]', "exclude: [{m: 64}]")
    cases = expand_cases(load(kernel("rows", *lines)), ("cpu",))
    assert [(case.shape["N"], case.sizes["m"]) for case in cases] == [(8, 1), (8, 4096), (16, 1)]


@pytest.mark.parametrize(
    "text",
    [
        kernel("product", "shapes: [{N: 8, K: 8}]", "sizes: [{M: 5}]"),  # the factory is called with T.dynamic
        kernel("product", "shapes: [{}]", "sizes: [{M: 5, N: 6, K: 7}]"),
        kernel("shared", "shapes: [{N: 8}]", "sizes: [{rows: 5, c: 6, d: 7}]"),
        kernel("maybe", "shapes: [{N: 8}]", "sizes: [{m: 5}]"),
        kernel("maybe", "shapes: [{N: 8, M: 3}]"),
        kernel("hidden", "shapes: [{N: 8}]", "sizes: [{m: 5, what: 6}]"),  # the compiler will know
        kernel("computed", "shapes: [{N: 8}]", "sizes: [{m8: 5}]"),
        kernel("eager", "shapes: [{N: 8}]", "sizes: [{m: [5, 6]}]"),
        kernel("computed", "shapes: [{N: 8}]"),
    ],
)
def test_nothing_is_wrong_with(load: Load, text: str) -> None:
    assert load(text).kernels


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            kernel("rows", "shapes: [{N: 8}]", "sizes: [{M: 5}, {m: 1, n: 2}]"),
            [
                "8:13: no size for m, known at launch alone in rows",
                "8:14: unknown runtime dimension of rows 'M'; did you mean 'm'?",
                "8:28: unknown runtime dimension of rows 'n'; known: m",
            ],
        ),
        (
            kernel("rows", "shapes: [{N: 8}]"),
            ["6:13: m of rows is known at launch alone: say how large, sizes: [{m: [1, 128]}]"],
        ),
        (
            kernel("shared", "shapes: [{N: 8}]", "sizes: [{rows: 1, c: 2, d: 3}, {c: 2}]"),
            ["8:36: no size for rows, d, known at launch alone in shared"],
        ),
        (
            kernel("product", "shapes: [{K: 8}]", "sizes: [{M: 1}]"),
            ["7:14: no value for N, which product needs: give it in args, shapes or tiles"],
        ),
        (
            kernel("product", "shapes: [{M: 8, N: 8, K: 8}]", "sizes: [{M: 1}]"),
            ["8:14: 'M' stands in shapes already"],
        ),
        (
            kernel("rows", "shapes: [{N: 8}]", "sizes: [{m: 0}, {m: [3, -1]}, {m: 1.5}, {m: x}, {m: 3e9}, {m: []}]"),
            [
                "8:17: expected a whole number of 1 or more, found 0",
                "8:29: expected a whole number of 1 or more, found -1",
                "8:39: expected a whole number of 1 or more, found 1.5",
                "8:49: expected a whole number of 1 or more, found 'x'",
                "8:57: a runtime dimension is an int32, 2,147,483,647 at most; found 3,000,000,000",
                "8:67: an axis needs at least one value",
            ],
        ),
        (
            kernel("rows", "shapes: [{N: 8}]", "sizes: [{m: [1, 2]}, {m: 2}]"),
            ["8:26: these sizes are in the list already"],
        ),
        (
            kernel("eager", "sizes: [{N: 3, q: 1}]"),
            [
                "7:14: 'N' of eager is known when it is compiled: give it in args, shapes or tiles",
                "7:20: unknown runtime dimension of eager 'q'; known: m, rows",
            ],
        ),
        (
            kernel("rows", "shapes: [{N: 8}]", "sizes: {m: 3}"),
            ["8:12: expected a list, found a mapping; write [{m: 3}]"],
        ),
        (
            kernel("rows", "shapes: [{N: 8}]", "sizes: [{m: 3}]", 'where: ["q > 2"]', "exclude: [{m: 4}]"),
            ["9:14: unknown name 'q'; known: N, m, max_threads_per_block", "10:19: unknown value of m '4'; known: 3"],
        ),
        (
            HEAD + "    command: [echo, '{m}']\n    sizes: [{m: 3}]\n",
            ["7:5: 'sizes' is for kernels of tilelang_min: write in 'shapes' what this one is called with"],
        ),
    ],
)
def test_mistakes(problems: Problems, text: str, expected: list[str]) -> None:
    found = problems(text)
    assert len(found) == len(expected)
    for line, wanted in zip(found, expected, strict=True):
        assert line.startswith(wanted)


def test_a_bundle_knows_its_dimensions(load: Load, problems: Problems, folder: Path) -> None:
    m = T.dynamic("m")

    @T.prim_func
    def copied(A: T.Tensor((m, 64), "float32"), B: T.Tensor((m, 64), "float32")):
        with T.Kernel(T.ceildiv(m, 4), threads=64) as bx:
            for i, j in T.Parallel(4, 64):
                B[bx * 4 + i, j] = A[bx * 4 + i, j]

    tilelang.compile(copied, "cpu").save(folder / "copied.tlk")
    head = HEAD + "    bundle: copied.tlk\n    targets: [cpu]\n"
    assert [case.id for case in expand_cases(load(head + "    sizes: [{m: [1, 9]}]\n"))] == [
        "kernel[m=1]@cpu",
        "kernel[m=9]@cpu",
    ]
    assert problems(head) == ["6:13: m of copied is known at launch alone: say how large, sizes: [{m: [1, 128]}]"]
    assert problems(head + "    sizes: [{n: 1}]\n") == [
        "8:13: no size for m, known at launch alone in copied",
        "8:14: unknown runtime dimension of copied 'n'; known: m",
    ]
    assert problems(head + "    sizes: [{m: 4}, {m: [5, 1e8]}]\n") == [
        "8:21: parameter A of shape (100000000, 64) has 6,400,000,000 elements; indices are 32-bit"
    ]
