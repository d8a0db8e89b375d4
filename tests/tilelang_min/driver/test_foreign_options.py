"""Options that kernels for TileLang carry: taken where they mean nothing for results, refused otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import LanguageError, LaunchError
from tilelang_min.profiler import do_bench


def doubled(n: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = A[i] * 2

    return main


def test_options_of_passes_and_calls_are_taken() -> None:
    factory = tilelang.jit(
        target="cpu",
        out_idx=[-1],
        execution_backend="cython",
        verbose=True,
        pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True, "tl.disable_tma_lower": True},
        compile_flags=["-O3", "--use_fast_math", "--ptxas-options=-v,--register-usage-level=10"],
    )(doubled)
    a = np.arange(32, dtype="float32")
    assert np.array_equal(factory(32)(a), a * 2)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"pass_configs": {"tl.disable_tma": True}}, "pass_configs has no key 'tl.disable_tma' here"),
        ({"compile_flags": ["-DTILE=3"]}, "compile_flags has '-DTILE=3', which this compiler cannot follow"),
        ({"execution_backend": "cyton"}, "there is no execution_backend 'cyton'"),
        ({"target_host": "stackvm"}, "target_host='stackvm' is not supported"),
        ({"verbos": True}, "has no option 'verbos'"),
    ],
)
def test_what_cannot_be_followed_is_refused(option: dict[str, Any], message: str) -> None:
    with pytest.raises(LanguageError, match=message) as caught:
        tilelang.jit(**option)(doubled)
    assert caught.value.remedy
    with pytest.raises(LanguageError, match=message):
        tilelang.compile(doubled(32), "cpu", **option)


def test_outputs_as_the_second_argument() -> None:
    kernel = tilelang.compile(doubled(32), [1], execution_backend="ctypes")
    assert kernel.out_idx == (1,)


def test_integers_of_launches() -> None:
    assert [tilelang.cdiv(n, 4) for n in (1, 4, 5)] == [1, 1, 2]
    assert [tilelang.next_power_of_2(n) for n in (0, 1, 3, 64, 65)] == [1, 1, 4, 64, 128]


def test_timing_by_the_words_of_tilelang() -> None:
    kernel = tilelang.compile(doubled(32), "cpu", out_idx=[1])
    profiler = kernel.get_profiler()
    assert profiler.do_bench(backend="cupti", rep=2, input_tensors=[np.ones(32, "float32")]) > 0
    calls: list[int] = []
    assert do_bench(lambda: calls.append(1), warmup=1, rep=1, method="wall", backend="event") >= 0
    assert calls
    for timed in (profiler.do_bench, lambda **words: do_bench(lambda: None, **words)):
        with pytest.raises(LaunchError, match="there is no backend 'cuptj'") as caught:
            timed(backend="cuptj")
        assert "did you mean 'cupti'" in (caught.value.remedy or "")
