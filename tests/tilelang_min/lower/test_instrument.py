"""Instrumented builds: same results to the bit, every operation counted as often as it runs, clocks read where they stand."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import instrument_kernels as kernels
import numpy as np
import pytest
from kernel_dynamic import matmul_of_all

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver.cycles import InstrumentedLauncher
from tilelang_min.errors import LanguageError, LaunchError
from tilelang_min.simulate import simulate

SIZES = {
    "cpu": {"M": 128, "N": 64, "K": 128},
    "cuda:sm_80": {"M": 64, "N": 128, "K": 128},
    "hip:gfx942": {"M": 64, "N": 64, "K": 128},
    "cuda:sm_90a": {"M": 128, "N": 128, "K": 256, "bm": 128, "bn": 128, "bk": 64, "threads": 256, "stages": 3},
}
COPY_A, COPY_B, GEMM = "T.copy(A[by * bm, k * bk], a)", "T.copy(B[k * bk, bx * bn], b)", "T.gemm(a, b, c)"


@pytest.fixture(scope="module", params=SIZES)
def builds(request: Any) -> tuple[str, Any, Any, list[Any]]:
    """Target, plain and instrumented kernel, arguments."""
    target = request.param
    factory = kernels.product.for_target(target)
    plain, clocked = factory(**SIZES[target]), factory.instrumented()(**SIZES[target])
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal(p.shape).astype(np.float16) for p in plain.parameters]
    arguments[2][:] = 0
    return target, plain, clocked, arguments


def label_of(kernel: Any, operation: int) -> str:
    return str(kernel.operations[operation].label)


def test_results_are_the_same_to_the_bit(builds: Any) -> None:
    target, plain, clocked, arguments = builds
    assert plain.parameters == clocked.parameters  # the caller sees no difference
    if target == "cpu":
        found = [np.zeros_like(arguments[2]) for _ in range(2)]
        plain(*arguments[:2], found[0])
        clocked(*arguments[:2], found[1])
    else:
        found = [kernel.simulate(*arguments, count=False).outputs["C"] for kernel in (plain, clocked)]
        assert set(clocked.simulate(*arguments, count=False).outputs) == {"C"}
    np.testing.assert_array_equal(found[0], found[1])
    exact = arguments[0].astype(np.float64) @ arguments[1].astype(np.float64)
    np.testing.assert_allclose(found[1], exact, rtol=2e-3, atol=2e-2)


def test_every_operation_is_counted_as_often_as_it_runs(builds: Any) -> None:
    target, _, clocked, arguments = builds
    instrument = clocked.instrument
    rows = np.zeros(instrument.parameter.shape, np.int64)
    if target == "cpu":
        clocked(*arguments)
        (rows,) = clocked._launcher.values()
    else:
        named = dict(zip(("A", "B", "C", instrument.parameter.name), [*arguments, rows], strict=True))
        rows = simulate(clocked.thread_program(), named, count=False).outputs[instrument.parameter.name]
        assert not rows[:, :, 0].any()  # the simulator has no clock
    counts = {
        (label_of(clocked, slot.operation), slot.phase): rows[0, :, 2 + 2 * number].tolist()
        for number, slot in enumerate(instrument.slots)
    }
    steps = SIZES[target]["K"] // SIZES[target].get("bk", 32)
    if target == "cpu":
        assert counts[GEMM, "run"] == [steps]
    elif target == "cuda:sm_90a":  # two consumer groups of 4 warps and the producer, one lane of whose first warp works
        producer, consumers = [0] * 8 + [1, 0, 0, 0], [1] * 8 + [0] * 4
        assert counts[COPY_A, "wait"] == [steps * each for each in producer]
        assert counts[COPY_B, "issue"] == [steps * each for each in producer]
        assert counts[GEMM, "issue"] == [steps * each for each in consumers]
    else:
        warps = 4 if target == "cuda:sm_80" else 2
        assert counts[GEMM, "run"] == [steps] * warps
        if target == "cuda:sm_80":  # once ahead, then in each iteration, the last of which has nothing left to ask for
            assert counts[COPY_A, "issue"] == [steps + 1] * warps
            assert counts[COPY_A, "wait"] == [steps] * warps
        else:
            assert counts[COPY_A, "run"][0] >= steps


def test_asynchronous_copies_report_issue_and_wait_apart(builds: Any) -> None:
    target, _, clocked, _ = builds
    phases: dict[str, set[str]] = {}
    for slot in clocked.instrument.slots:
        phases.setdefault(label_of(clocked, slot.operation), set()).add(slot.phase)
    if target == "cuda:sm_80":
        assert phases[COPY_A] == {"issue", "wait"}
        assert phases[COPY_B] == {"issue"}
        assert phases[GEMM] == {"run"}
    elif target == "cuda:sm_90a":
        assert phases[COPY_A] == {"issue", "wait"}
        assert phases[GEMM] == {"issue"}
        assert any("wait" in found for label, found in phases.items() if label.startswith("for k"))
    elif target == "cpu":
        assert set.union(*phases.values()) == {"run"}


def test_clock_reads_stand_where_they_were_written(builds: Any) -> None:
    target, plain, clocked, _ = builds
    text = clocked.assembly()
    if target.startswith("cuda"):
        reads = re.findall(r"(\S+) \S+, SR_CLOCKLO", text)
        assert set(reads) == {"CS2R"}  # S2UR would be waited for
        order = re.findall(r"HMMA|HGMMA|LDGSTS|UTMALDG|CLOCKLO", text)
        product = "HGMMA" if target.endswith("90a") else "HMMA"
        stretches = re.findall(rf"CLOCKLO ((?:{product} ?)+)CLOCKLO", " ".join(order))
        assert stretches  # products between two reads, nothing else among them
        assert sum(len(each.split()) for each in stretches) == order.count(product)
    elif target == "hip:gfx942":
        order = re.findall("s_memtime|v_mfma|s_barrier|global_store", text)
        words = " ".join(order)
        stretches = re.findall("s_memtime ((?:v_mfma ?)+)s_memtime", words)
        assert sum(len(each.split()) for each in stretches) == order.count("v_mfma") > 0
        assert len(re.findall("s_memtime s_barrier s_memtime", words)) == order.count("s_barrier") > 0
    else:
        assert len(re.findall("rdtsc", text)) > 4
    assert not re.search(r"SR_CLOCKLO|s_memtime|rdtsc", plain.assembly())


def test_counts_are_those_of_the_plain_build(builds: Any) -> None:
    _, plain, clocked, arguments = builds
    found = [kernel.analyse(*arguments) for kernel in (plain, clocked)]
    places = [{(c.operation, c.buffer, c.access): (c.requests, c.bytes) for c in one.counts} for one in found]
    assert places[0] == places[1]
    assert set(found[1].outputs) == {"C"}


class Memory:
    """Stands in for memory of a GPU."""

    def __init__(self, array: Any) -> None:
        self.array, self.pointer = array, 4096 * (1 + array.ndim)

    from_numpy = classmethod(lambda cls, array: cls(array))

    def to_numpy(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self.array.reshape(shape).astype(dtype)


def test_launches_on_a_gpu_pass_the_figures_behind_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class Launcher:
        def __call__(self, pointers: Any, **launch: Any) -> None:
            calls.append((pointers, launch))

        def launch(self, context: int, pointers: Any, *rest: Any) -> None:
            calls.append((context, pointers, rest))

    monkeypatch.setattr("tilelang_min.runtime.cuda.DeviceBuffer", Memory)
    monkeypatch.setattr("tilelang_min.runtime.cuda.ensure_context", lambda: 7)
    kernel = kernels.product.for_target("cuda:sm_80").instrumented("timeline")(**SIZES["cuda:sm_80"])
    launcher = InstrumentedLauncher(Launcher(), kernel.instrument, "cuda")
    launcher([1, 2, 3], grid=(2, 1, 1), threads=128)
    launcher.launch(7, [1, 2, 3], (2, 1, 1), 128, 0)
    behind = [4096 * 4, 4096 * 5]  # three dimensions of figures, four of events
    assert calls == [
        ([1, 2, 3, *behind], {"grid": (2, 1, 1), "threads": 128}),
        (7, [1, 2, 3, *behind], ((2, 1, 1), 128, 0)),
    ]
    assert [array.shape for array in launcher.values()] == [item.shape for item in kernel.instrument.hidden]


def test_a_launch_says_what_each_operation_took() -> None:
    kernel = kernels.product.for_target("cpu").instrumented()(**SIZES["cpu"])
    with pytest.raises(LaunchError, match="has not been launched"):
        kernel.cycles()
    arguments = [np.ones(p.shape, np.float16) for p in kernel.parameters]
    kernel(*arguments)
    cycles = kernel.cycles()
    by_label = {item.label: item for item in cycles.operations}
    assert by_label[GEMM].count == 2 * 4
    assert by_label[GEMM].run == by_label[GEMM].sum > 0
    assert by_label[GEMM].wait is None
    assert 0 < sum(item.sum for item in cycles.operations) <= cycles.elapsed
    assert cycles.worker == "block"
    assert cycles.workers == 2
    assert cycles.text().splitlines()[1].startswith(GEMM)


def test_what_has_no_figures_has_not_run_or_is_part_of_another() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1):
            most = T.alloc_var("float32")
            a = T.alloc_shared((64, 64), "float32")
            b = T.alloc_shared((64, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
            most = A[0, 0]
            if most > 100:
                T.fill(c, 7)
            T.copy(c, C)

    kernel = tilelang.compile(main, "cpu", cache=False, instrument="operations")
    a, b = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
    kernel(a, b, np.zeros_like(a))
    cycles = kernel.cycles()
    timed = [item.label for item in cycles.operations]
    assert "T.gemm(a, b, c)" in timed
    assert "T.fill(c, 7)" in [item.label for item in kernel.operations]
    assert "T.fill(c, 7)" not in timed
    assert cycles.merged == ("T.copy(A, a)", "T.copy(B, b)"), "and not what stands in a branch that was not taken"


def test_of_a_large_grid_a_sample_is_written_and_scaled_up() -> None:
    kernel = kernels.scale.for_target("cpu").instrumented()(10_000)
    instrument = kernel.instrument
    assert instrument.parameter.name != "tl_cycles"  # that is the author's
    assert (instrument.stride, instrument.parameter.shape[0]) == (3, 3334)
    given = np.arange(10_000, dtype=np.float32)
    out = np.zeros_like(given)
    kernel(given, out)
    np.testing.assert_array_equal(out, 2 * given)
    (operation,) = kernel.cycles().operations
    assert operation.count == 10_000


def test_each_launch_of_a_kernel_with_runtime_dimensions_has_its_own_blocks() -> None:
    m: Any = T.dynamic("m")

    @T.prim_func
    def doubled(A: T.Tensor((m, 3), "float32"), B: T.Tensor((m, 3), "float32")):
        with T.Kernel(3, m, threads=32) as (bx, by):
            for i in T.Parallel(1):
                B[by, bx + i] = A[by, bx + i] * 2.0

    kernel = tilelang.compile(doubled, "cpu", cache=False, instrument="timeline")
    assert kernel.instrument is not None
    for size, stride in (
        (2, 1),
        (3000, 3),
        (1, 1),
        (4097, 4),
    ):  # fewer blocks after more: what is left of those is not read
        given = np.arange(3 * size, dtype=np.float32).reshape(size, 3)
        out = np.zeros_like(given)
        kernel(given, out)
        np.testing.assert_array_equal(out, 2 * given)
        cycles = kernel.cycles()
        assert (cycles.blocks, cycles.recorded, cycles.stride) == (3 * size, -(-3 * size // stride), stride)
        (operation,) = cycles.operations
        assert operation.count == 3 * size
        assert cycles.elapsed >= operation.run > 0
        assert [event.operation for event in cycles.events] == [operation.operation]


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_clock_reads_do_not_change_what_is_computed_at_any_size(target: str) -> None:
    kernel = tilelang.compile(matmul_of_all(), target, cache=False, instrument="operations")
    for m, n, k in ((1, 1, 1), (40, 70, 33)):
        a, b = np.ones((m, k), np.float16), np.ones((k, n), np.float16)
        result = kernel.simulate(a, b, np.zeros((m, n), np.float32))
        np.testing.assert_array_equal(result.outputs["C"], np.full((m, n), k))
        assert set(result.outputs) == {"C"}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_a_timeline_has_the_first_executions_of_one_block(target: str) -> None:
    kernel = kernels.product.for_target(target).instrumented("timeline")(**SIZES[target])
    arguments = [np.ones(p.shape, np.float16) for p in kernel.parameters]
    if target == "cpu":
        kernel(*arguments)
        cycles = kernel.cycles()
        assert cycles.events[0].begin == 0
        products = [event for event in cycles.events if label_of(kernel, event.operation) == GEMM]
        assert len(products) == 4
        assert all(event.begin < event.end for event in cycles.events)
        assert all(a.end <= b.begin for a, b in pairwise(products))
        (total,) = [item.sum for item in cycles.operations if item.label == GEMM]
        assert sum(event.end - event.begin for event in products) < total  # that of both blocks
    else:
        found = kernel.simulate(*arguments, count=False).outputs
        assert set(found) == {"C"}
        np.testing.assert_array_equal(found["C"], np.full((128, 128), 256, np.float16))


def test_a_saved_bundle_stays_instrumented(tmp_path: Any) -> None:
    kernel = tilelang.load(kernels.product.for_target("cpu").instrumented()(**SIZES["cpu"]).save(tmp_path / "k.tlk"))
    kernel(*[np.ones(p.shape, np.float16) for p in kernel.parameters])
    assert kernel.cycles().elapsed > 0


def test_errors_say_what_to_write() -> None:
    with pytest.raises(LanguageError, match="no instrument 'operation'") as raised:
        tilelang.compile(kernels.scale.prim_func(4), "cpu", instrument="operation")
    assert "operations" in str(raised.value)
    with pytest.raises(LaunchError, match="reads no clock") as refused:
        kernels.scale.for_target("cpu")(4).cycles()
    assert 'instrument="operations"' in str(refused.value)
