"""``T.*``: what the names are outside of kernels."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_min.language as T
from tilelang_min.errors import LanguageError
from tilelang_min.language.constructs import CONSTRUCTS, PLANNED


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_constructs_mean_something_in_kernels_only(name: str) -> None:
    construct = getattr(T, name)
    assert construct is CONSTRUCTS[name]
    assert f"T.{name}(" in construct.signature
    with pytest.raises(LanguageError, match=rf"T\.{name} was called outside a kernel") as caught:
        construct()
    assert "@T.prim_func" in (caught.value.remedy or "")


def test_every_construct_is_exported_and_nothing_is_both_there_and_planned() -> None:
    assert set(CONSTRUCTS) <= set(T.__all__)
    assert not set(CONSTRUCTS) & set(PLANNED)
    for name in T.__all__:
        assert hasattr(T, name)


@pytest.mark.parametrize("name", PLANNED)
def test_planned_names_say_so(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"T\.{name} is part of the language but not supported by this version"):
        getattr(T, name)


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("copi", "T.copy"), ("allocshared", "T.alloc_shared"), ("Paralell", "T.Parallel"), ("zzz", None)],
)
def test_misspelt_names(wrong: str, near: str | None) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(T, wrong)
    said = f"; did you mean {near}?" if near else "; its functions of numbers are Cast, "
    assert str(caught.value).startswith(f"the tile language has no T.{wrong}{said}")
    assert not hasattr(T, "__wrapped__")  # tools that probe modules are not told about the language


def test_ceildiv_and_types() -> None:
    assert [T.ceildiv(n, 4) for n in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]
    assert [T.dtype_bytes(name) for name in (T.float32, T.float16, T.int32, T.bool_)] == [4, 2, 4, 1]


def test_prim_func_keeps_the_function_and_its_surroundings() -> None:
    local = 3

    @T.prim_func
    def main(A: T.Tensor((local,), "float32")):
        pass

    assert main.name == "main"
    assert main.scope["local"] == 3
    assert main.function.__name__ == "main"


@pytest.mark.parametrize(
    ("written", "shape", "dtype"),
    [
        (T.Tensor((4, 8)), (4, 8), "float32"),
        (T.Tensor[4, 8], (4, 8), "float32"),
        (T.Tensor[[4, 8]], [4, 8], "float32"),
        (T.Tensor[4], 4, "float32"),
        (T.Tensor[4, "float16"], 4, "float16"),
        (T.Tensor[[4, 8], T.float16], [4, 8], "float16"),
        (T.Tensor[(4, 8), "float16"], (4, 8), "float16"),
        (T.Tensor[4, np.float16], 4, np.float16),
    ],
)
def test_spellings_of_tensors(written: T.Tensor, shape: object, dtype: object) -> None:
    assert (written.shape, written.dtype) == (shape, dtype)


def test_runtime_dimensions_compute_and_decide_nothing() -> None:
    m, n = T.dynamic("m, n")
    assert str(T.ceildiv(m, 64)) == "(((m + 64) - 1) // 64)"
    assert str(3 - 2 * n % m) == "(3 - ((2 * n) % m))"
    for decides in (bool, range, lambda size: size > 3, lambda size: size <= 3, lambda size: [0, 1][size]):
        for size in (m, m + 1):
            with pytest.raises(LanguageError, match="is known at launch alone and cannot decide anything before"):
                decides(size)
    with pytest.raises(TypeError):
        m + 0.5
