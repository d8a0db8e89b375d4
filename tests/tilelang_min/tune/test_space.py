"""Configurations: what authors may write, and what is refused with the word that was probably meant."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tilelang_min.errors import LanguageError
from tilelang_min.tune.space import expand, named, without


def factory(M: int, N: int, block_M: int = 64, block_N: int = 64, threads: int = 128) -> None: ...


SIGNATURE = inspect.signature(factory)


def configs(given: Any, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
    return expand(given, SIGNATURE, args, kwargs)


def test_a_dictionary_of_lists_is_every_combination() -> None:
    assert configs({"block_M": [64, 128], "threads": [128, 256]}) == [
        {"block_M": 64, "threads": 128},
        {"block_M": 64, "threads": 256},
        {"block_M": 128, "threads": 128},
        {"block_M": 128, "threads": 256},
    ]
    assert configs({"block_M": range(1, 3), "threads": 128}) == [
        {"block_M": 1, "threads": 128},
        {"block_M": 2, "threads": 128},
    ]


def test_a_list_keeps_its_order_and_each_configuration_once() -> None:
    assert configs([{"block_M": 128}, {"block_M": 64}, {"block_M": 128}]) == [{"block_M": 128}, {"block_M": 64}]


def test_options_of_tilelangs_passes_are_no_parameters() -> None:
    given = [{"block_M": 64, "pass_configs": {"tl.disable_warp_specialized": True}}, {"block_M": 64}]
    assert configs(given) == [{"block_M": 64}]


def test_a_function_gets_the_arguments_of_the_call_or_those_it_names() -> None:
    def all_of_them(M: int, N: int) -> list[dict[str, int]]:
        return [{"block_M": M // 2, "block_N": N // 2}]

    def by_name(N: int, threads: int) -> dict[str, list[int]]:
        return {"block_N": [N, threads]}

    def nothing() -> Any:
        yield {"block_M": 16}

    assert configs(all_of_them, 512, N=256) == [{"block_M": 256, "block_N": 128}]
    assert configs(by_name, 512, 256) == [{"block_N": 256}, {"block_N": 128}]  # threads is the factory's own default
    assert configs(nothing, 512, 256) == [{"block_M": 16}]

    def asks_for_more(K: int) -> Any: ...

    with pytest.raises(LanguageError, match="asks for K, which the call does not say"):
        configs(asks_for_more, 512, 256)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{"blok_M": 64}], "did you mean 'block_M'"),
        ({"num_stages": [1]}, "no parameter of the factory"),
        ([], "no configurations"),
        ({}, "no configurations"),
        ({"block_M": []}, "no configurations"),
        (lambda M, N: [], "must not filter all of them out"),
        ("block_M", "holds no configurations"),
        ([64, 128], "configuration 0 is int"),
        (7, "holds no configurations"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        configs(given, 512, 512)


def test_what_a_call_sets_is_not_searched() -> None:
    all_of_them = configs({"block_M": [64, 128], "threads": [128, 256]})
    fixed = named(SIGNATURE, (512, 512, 32), {})
    assert without(all_of_them, fixed) == [{"threads": 128}, {"threads": 256}]
    assert without(all_of_them, named(SIGNATURE, (512, 512, 32), {"threads": 64})) == []
    with pytest.raises(LanguageError, match="cannot be called so"):
        named(SIGNATURE, (512,), {"M": 3})
