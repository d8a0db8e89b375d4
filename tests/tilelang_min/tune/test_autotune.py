"""``tilelang.autotune`` from the author's side, on the CPU; without a device by prediction."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min import cache as cache_command
from tilelang_min.autotuner import AutoTuner, set_autotune_inputs
from tilelang_min.errors import LanguageError, TuningError
from tilelang_min.runtime import cache as disk_cache
from tilelang_min.tune import search, timing
from tilelang_min.tune.records import Tuned

QUICK: dict[str, Any] = {"warmup": 1, "rep": 4, "timeout": 60.0}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "cache"))


def scale(n: int, block: int = 64, factor: float = 2.0, work: int = 0, stop: str = "") -> Any:
    """``C = A * factor``; ``stop`` is what goes wrong, ``work`` makes it slow."""
    if stop == "error":
        raise ZeroDivisionError("no such block")
    if stop == "abort":
        os.abort()
    if stop == "hang":
        time.sleep(60)

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            tile = T.alloc_fragment((block,), "float32")
            T.copy(A[bx * block], tile)
            for _ in T.serial(work):
                for i in T.Parallel(block):
                    tile[i] = T.tanh(tile[i])
            for i in T.Parallel(block):
                C[bx * block + i] = tile[i] * factor

    return main


def tuned(configs: Any, target: str = "cpu", **options: Any) -> Any:
    return tilelang.autotune(configs=configs, **{**QUICK, **options})(tilelang.jit(target=target)(scale))


def outcomes(kernel: Any) -> dict[int, str]:
    return {each.number: each.outcome for each in kernel.tuned.results}


def test_the_quickest_is_chosen_and_nothing_is_lost() -> None:
    """Whatever goes wrong in a configuration is its result, though its factory ends the process that calls it."""
    configs = [
        {"block": 512, "work": 40},
        {"block": 1024},
        {"block": 512, "stop": "error"},
        {"block": 512, "stop": "abort"},
        {"block": 512, "stop": "hang"},
        {"block": 2**21},  # does not fit
        {"block": 1024, "factor": 2.0},  # the same kernel
        {"block": 256},
    ]
    kernel = tuned(configs, timeout=12.0, skip_check=True)(2**18)
    found = outcomes(kernel)
    assert kernel.config in ({"block": 1024}, {"block": 256})
    assert found[0] == "stopped"
    assert [found[number] for number in (2, 3, 4, 6)] == ["failed", "crashed", "timed out", "same"]
    assert "no such block" in kernel.tuned.results[2].reason
    assert kernel.tuned.results[4].reason == "it took longer than 12 s"
    assert found[5] in ("refused", "stopped", "measured", "failed")
    assert kernel.tuned.measured
    assert kernel.latency == kernel.tuned.best.measured_ms
    assert 0 < kernel.latency < kernel.tuned.results[0].measured_ms
    assert kernel.tuned.best.samples == 4
    text = str(kernel.tuned)
    for config in configs:
        assert all(f"{name}={value!r}" in text for name, value in config.items())
    a = np.arange(2**18, dtype=np.float32)
    c = np.zeros_like(a)
    kernel(a, c)
    assert (c == 2 * a).all()


def test_a_second_process_takes_the_best_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = {"block": [64, 256]}
    first = tuned(configs)(4096)
    assert not first.tuned.stored

    def no_search(*_: Any) -> Any:
        raise AssertionError("it searches")

    monkeypatch.setattr(search, "search", no_search)
    factory = tuned(configs)
    again = factory(4096)
    assert again.tuned.stored
    assert (again.config, again.latency) == (first.config, first.latency)
    assert [each.to_json() for each in again.tuned.results] == [each.to_json() for each in first.tuned.results]
    assert factory(4096) is again  # this process's own memory
    for other in (tuned({"block": [64, 128]}), tuned(configs, rep=5), tuned(configs, ref_prog=lambda a: a)):
        with pytest.raises(AssertionError, match="it searches"):
            other(4096)
    with pytest.raises(AssertionError, match="it searches"):
        tuned(configs)(8192)
    with pytest.raises(AssertionError, match="it searches"):
        tuned(configs, cache=False)(4096)
    (file,) = (disk_cache.cache_directory() / "tuned").iterdir()
    whole = file.read_text()
    best = f'"block": {first.config["block"]}'
    for damaged in (
        *(whole[: len(whole) // 2], "[]", "{}", whole.replace('"outcome": "best"', '"outcome": "wrong"')),
        *(whole.replace(best, '"block": 32'), json.dumps({**json.loads(whole), "latency": "fast"})),
    ):
        file.write_text(damaged)
        with pytest.raises(AssertionError, match="it searches"):
            tuned(configs)(4096)
    assert Tuned.from_json(json.loads(whole)).config == first.config
    assert cache_command.main(["clear"]) == 0
    assert not file.exists()


def test_wrong_results_are_found_without_a_reference_and_with_one() -> None:
    configs = [{"factor": 3.0}, {"factor": 2.0}, {"block": 128}, {"block": 32}]
    kernel = tuned(configs, cache=False)(4096)
    assert outcomes(kernel)[0] == "wrong"
    assert "configurations that agree" in kernel.tuned.results[0].reason
    kernel = tuned(configs[:2], cache=False, ref_prog=lambda a: 3.0 * a)(4096)
    assert kernel.config == {"factor": 3.0}
    assert kernel.ref_latency > 0
    assert kernel.tuned.results[1].error > 0.5
    with pytest.raises(TuningError, match=r"different results.*numbers 0 against 1"):
        tuned(configs[:2], cache=False)(4096)
    with pytest.raises(TuningError, match="ref_prog failed: ZeroDivisionError"):
        tuned(configs[:2], cache=False, ref_prog=lambda a: 1 / 0)(4096)
    with pytest.raises(TuningError, match="ref_prog returned 2 tensors, the kernel writes 1"):
        tuned(configs[:2], cache=False, ref_prog=lambda a: (a, a))(4096)
    with pytest.raises(TuningError, match=r"(?s)none of 1 configurations works.*wrong: 99"):
        tuned(configs[:1], cache=False, ref_prog=lambda a: a * 0)(4096)


def test_who_was_left_out_is_measured_where_nobody_else_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_alone(found: list[Any]) -> list[Any]:
        for each in found[1:]:
            each.outcome.outcome, each.outcome.reason = "ruled out", "the prediction is 9.9 times the best one"
        return found[:1]

    monkeypatch.setattr(search, "choose", first_alone)
    configs = [{"factor": 3.0}, {"factor": 2.0}]
    kernel = tuned(configs, cache=False, ref_prog=lambda a: 2.0 * a)(4096)
    assert outcomes(kernel) == {0: "wrong", 1: "best"}
    kernel = tuned(configs, cache=False, ref_prog=lambda a: 3.0 * a)(4096)
    assert outcomes(kernel) == {0: "best", 1: "ruled out"}
    assert "9.9 times" in kernel.tuned.results[1].reason


def test_where_nothing_compiles_each_reason_is_said() -> None:
    with pytest.raises(TuningError) as caught:
        tuned([{"stop": "error"}, {"stop": "error", "block": 32}, {"block": 0}], cache=False)(4096)
    text = str(caught.value)
    assert "none of 3 configurations compiles" in text
    assert text.count("no such block") == 1  # equal reasons together
    for number, config in enumerate(["{'stop': 'error'}", "{'stop': 'error', 'block': 32}", "{'block': 0}"]):
        assert f"{number}: {config}" in text
    assert "give configurations that fit" in text
    function = tilelang.autotune(configs={"block": [64, 128]}, cache=False, **QUICK)(scaled)
    with pytest.raises(TuningError, match=r"(?s)did you mean 'factor'.*all say the same"):
        function(np.zeros(64, np.float32), facto=3.0)


def test_both_orders_of_decorators_and_arguments_that_the_call_sets() -> None:
    below = tilelang.jit(target="cpu")(tilelang.autotune(configs={"block": [64, 128]}, **QUICK)(scale))
    assert below.__name__ == "scale"
    assert below(1024).config in ({"block": 64}, {"block": 128})
    set_by_call = below(1024, block=32)
    assert set_by_call.config is None
    assert set_by_call.tuned is None
    assert set_by_call.grid == (32, 1, 1)
    assert below.prim_func(1024, block=32).name == "scale"
    with pytest.raises(LanguageError, match="tuned but not compiled"):
        tilelang.autotune(configs={"block": [64]})(scale)(1024)
    with pytest.raises(LanguageError, match=r"above @tilelang\.jit"):
        tilelang.autotune(scale, configs={"block": [64]})
    with pytest.raises(LanguageError, match="decorates a factory"):
        tilelang.autotune(configs={"block": [64]})(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rep": 0}, "leave nothing to measure"),
        ({"timeout": 0}, "leaves no time"),
        ({"early_stop_factor": 0.5}, "would stop the best"),
        ({"workers": 0}, "compile nothing"),
        ({"supply_type": "Normals"}, "did you mean 'Normal'"),
        ({"manual_check_prog": print}, "give ref_prog too"),
        ({"do_not_specialize": ["m"]}, "which is no parameter"),
    ],
)
def test_settings_that_make_no_search(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TuningError, LanguageError), match=message):
        tuned({"block": [64]}, **options)


def test_inputs_are_the_authors_where_there_are_any() -> None:
    ones = np.ones(1024, np.float32)
    asked: list[list[str]] = []

    def supply(parameters: Any) -> list[Any]:
        asked.append([each.name for each in parameters])
        return [ones, np.zeros(1024, np.float32)]

    seen: list[Any] = []

    def reference(a: Any) -> Any:
        seen.append(a)
        return 2 * a

    factory = tuned({"block": [64]}, cache=False, supply_prog=supply, ref_prog=reference)
    factory(1024)
    assert asked == [["A", "C"]]
    assert all(each is ones for each in seen)
    threes = np.full(1024, 3.0, np.float32)
    with set_autotune_inputs(threes):
        factory(1024)
    assert seen[-1] is threes
    with pytest.raises(TuningError, match="3 tensors are supplied, and the kernel takes A, C"):
        with set_autotune_inputs([ones, ones, ones]):
            tuned({"block": [64]}, cache=False)(1024)
    zeros = tuned({"block": [64]}, cache=False, supply_type=tilelang.TensorSupplyType.Zero, ref_prog=lambda a: a)
    assert zeros(1024).tuned.best.error == 0.0


def test_arguments_that_start_no_new_search(monkeypatch: pytest.MonkeyPatch) -> None:
    factory = tuned({"block": [64, 128]}, cache=False, do_not_specialize=["n"])
    config = factory(1024).config
    monkeypatch.setattr(search, "search", None)
    other = factory(2048)
    assert other.config == config
    assert other.parameters[0].shape == (2048,)


def test_a_process_that_dies_while_measuring_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that was running is the one that crashed; the others are measured to the end."""
    original = timing.Device.time
    killed: list[str] = []

    def time_and_die(self: Any, bundle: str, warmup: int, rep: int, timeout: float) -> Any:
        if bundle.endswith("/0.tlk") and not killed:
            killed.append(bundle)
            os.kill(self.process.pid, signal.SIGKILL)
        return original(self, bundle, warmup, rep, timeout)

    monkeypatch.setattr(timing.Device, "time", time_and_die)
    kernel = tuned({"block": [64, 128, 256]}, cache=False, early_stop=False)(4096)
    assert outcomes(kernel)[0] == "crashed"
    assert kernel.tuned.results[0].reason == "the process that ran it died of SIGKILL"
    assert kernel.config in ({"block": 128}, {"block": 256})
    assert sorted(each.samples for each in kernel.tuned.results[1:]) == [4, 4]


def test_a_kernel_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    original = timing.Device.open

    def impatient(self: Any, bundle: str, question: Any, timeout: float) -> Any:
        return original(self, bundle, question, 2.0 if bundle.endswith("/0.tlk") else timeout)

    monkeypatch.setattr(timing.Device, "open", impatient)
    monkeypatch.setenv("TILELANG_NUM_THREADS", "1")
    kernel = tuned([{"block": 1024, "work": 400_000}, {"block": 1024}], cache=False, skip_check=True)(2**16)
    assert outcomes(kernel) == {0: "timed out", 1: "best"}
    assert "running it took longer than 2 s" in kernel.tuned.results[0].reason


@tilelang.jit(target="cpu")
def scaled(A, block: int = 64, factor: float = 2.0):
    """A function that is a kernel itself."""
    n = T.const("n")
    A: T.Tensor((n,), "float32")
    C = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] * factor
    return C


def test_a_function_that_is_a_kernel_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def reference(a: Any) -> Any:
        seen.append(a)
        return 2 * a

    configs = {"block": [64, 128]}
    tuned_function = tilelang.autotune(configs=configs, ref_prog=reference, **QUICK)(scaled)
    a = np.arange(1000, dtype=np.float32)
    assert (tuned_function(a) == 2 * a).all()
    assert all(each is a for each in seen)
    kernel = tuned_function.compile(a)
    assert kernel.config in ({"block": 64}, {"block": 128})
    assert outcomes(kernel)[configs["block"].index(kernel.config["block"])] == "best"
    monkeypatch.setattr(search, "search", None)
    assert (tuned_function(a + 1) == 2 * a + 2).all()
    assert (tuned_function(a, block=32) == 2 * a).all()


def test_numbers_of_numpy_are_numbers() -> None:
    factory = tuned({"block": [64, 128]}, cache=False)
    assert factory(np.int64(1024)).parameters[0].shape == (1024,)
    assert factory(np.int64(2048)).parameters[0].shape == (2048,)


ADDED = 1.0


def test_another_value_around_the_factory_is_another_search(monkeypatch: pytest.MonkeyPatch) -> None:
    @tilelang.autotune(configs={"block": [64, 128]}, cache=False, **QUICK)
    @tilelang.jit(target="cpu")
    def add(n: int, block: int = 64) -> Any:
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                for i in T.Parallel(block):
                    C[bx * block + i] = A[bx * block + i] + ADDED

        return main

    a, c = np.zeros(256, np.float32), np.zeros(256, np.float32)
    add(256)(a, c)
    assert (c == 1.0).all()
    monkeypatch.setitem(globals(), "ADDED", 2.0)
    add(256)(a, c)
    assert (c == 2.0).all()


def test_what_one_call_found_stays_when_another_sets_everything() -> None:
    """The first kernel comes from disk, where the second is the same one of the function's memory."""
    configs = {"block": [128, 256]}
    a = np.arange(1000, dtype=np.float32)
    tilelang.autotune(configs=configs, **QUICK)(scaled).compile(a)
    function = tilelang.autotune(configs=configs, **QUICK)(scaled)
    kernel = function.compile(a)
    assert kernel.tuned.stored
    config = dict(kernel.config)
    assert function.compile(a, block=config["block"]).config is None
    assert function.compile(a).config == config
    assert scaled.compile(a, **config).config is None


def test_configurations_of_an_iterator_serve_every_call() -> None:
    factory = tuned(({"block": block} for block in (64, 128)), cache=False)
    assert [len(factory(n).tuned.results) for n in (1024, 2048)] == [2, 2]
    factory = tuned({"block": iter((64, 128))}, cache=False)
    assert [len(factory(n).tuned.results) for n in (1024, 2048)] == [2, 2]


def test_a_call_that_lacks_an_argument() -> None:
    with pytest.raises(LanguageError, match="needs n, which is in neither the call nor configuration"):
        tuned({"block": [64]})()


def test_autotuner_in_steps() -> None:
    def over(block: int = 64) -> Any:
        return scale(1024, block=block)

    tuner = AutoTuner.from_kernel(over, [{"block": 64}, {"block": 128}])
    tuner.set_compile_args(out_idx=[-1], target="cpu", execution_backend="auto", pass_configs=None)
    tuner.set_profile_args(ref_prog=lambda a: 2 * a, rep=3, backend="event")
    found = tuner.run(warmup=1, use_pipeline=True)
    assert found.kernel.tuned.best.samples == 3
    assert found.config in ({"block": 64}, {"block": 128})
    assert found.latency > 0
    assert found.ref_latency > 0
    a = np.arange(1024, dtype=np.float32)
    assert (found.kernel(a) == 2 * a).all()
    assert found.libcode == found.kernel.source()


def rows(block: int = 16) -> Any:
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 64), "float32"), C: T.Tensor((m, 64), "float32")):
        with T.Kernel(T.ceildiv(m, block), threads=32) as bx:
            for i, j in T.Parallel(block, 64):
                if bx * block + i < m:
                    C[bx * block + i, j] = A[bx * block + i, j] + 1.0

    return main


def test_runtime_dimensions_come_from_the_authors_tensors() -> None:
    factory = tilelang.autotune(configs={"block": [4, 16]}, cache=False, **QUICK)(tilelang.jit(target="cpu")(rows))
    with pytest.raises(TuningError, match=r"(?s)how large the runtime dimension m of .* is.*set_autotune_inputs"):
        factory()
    a = np.ones((40, 64), np.float32)
    with set_autotune_inputs(a):
        kernel = factory()
    assert kernel.tuned.measured
    c = np.zeros((7, 64), np.float32)
    kernel(a[:7].copy(), c)
    assert (c == 2).all()
    compiled = tilelang.jit(target="cuda:sm_80")(rows)
    with set_autotune_inputs(a):
        predicted = tilelang.autotune(configs=[{"block": 16}], cache=False, **QUICK)(compiled)()
    assert predicted.latency > 0


def product(M: int, N: int, K: int, block: int = 64, num_stages: int = 2) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, 32), "float16")
            B_shared = T.alloc_shared((32, block), "float16")
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=num_stages):
                T.copy(A[by * block, ko * 32], A_shared)
                T.copy(B[ko * 32, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])

    return main


def test_without_the_device_the_prediction_chooses_and_says_so() -> None:
    """Tiles of 32 go through shared memory twice as often; stages that do not fit are lowered."""
    configs = [{"block": 32}, {"block": 64, "num_stages": 14}]
    factory = tilelang.autotune(configs=configs, **QUICK)(tilelang.jit(target="cuda:sm_75")(product))
    kernel = factory.for_target("cuda:sm_86")(2048, 2048, 2048)
    assert kernel.target.name == "cuda:sm_86"
    assert not kernel.tuned.measured
    assert kernel.tuned.device is None
    assert kernel.latency == kernel.tuned.best.predicted_ms
    best = kernel.tuned.best
    assert best.number == 1
    assert best.asked == configs[1]
    assert best.config == {"block": 64, "num_stages": 12}
    assert best.shared_bytes <= kernel.target.shared.block_limit
    assert best.registers > 0
    assert best.occupancy > 0
    assert 0 < best.bound_ms <= best.predicted_ms < kernel.tuned.results[0].predicted_ms
    assert "predicted: there is no such device here" in str(kernel.tuned)
    assert [each.measured_ms for each in kernel.tuned.results] == [None, None]
