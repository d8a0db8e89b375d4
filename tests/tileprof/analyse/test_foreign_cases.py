from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tileprof.analyse.conflicts import conflict_rows
from tileprof.analyse.figures import CaseFigures
from tileprof.analyse.flame import case_node
from tileprof.analyse.foreign import LINE, cases_of, short_names
from tileprof.collect import anything
from tileprof.collect.profile import CallStatistic, ForeignLaunch, ForeignProfile
from tileprof.store.records import CaseResult

Sample = Callable[[str], Path]


@pytest.fixture(scope="module")
def h200(ncu_sample: Sample) -> list[CaseResult]:
    (profile,) = anything.read(ncu_sample("h200_bank_conflicts_2025.3"))
    return cases_of(profile)


def test_a_case_for_each_kernel_and_shape(h200: list[CaseResult]) -> None:
    assert len(h200) == 5
    case = h200[3]
    assert case.id == "conf_kernel<(int)8>[grid=4096x1x1, block=256x1x1]@NVIDIA H200"
    assert (case.kernel, case.target, case.status) == ("conf_kernel<(int)8>", "cuda:sm_90", "ok")
    assert case.args == {"name": "void conf_kernel<(int)8>(const float *, float *, int)"}
    assert case.timing is None, "times under a profiler are not times"
    assert "imported: ncu report, ncu 2025.3.1, 1 launch" in case.notes


def test_conflicts_stand_on_source_lines(h200: list[CaseResult]) -> None:
    case = h200[3]
    figures = CaseFigures(case)
    lines = {o["location"]["line"]: o for o in case.operations if o["kind"] == LINE}
    store, load = lines[5], lines[6]
    assert (store["location"]["file"], store["parent"]) == ("/tmp/demo/kernel.py", 0)
    assert figures.exact("shared.transactions", "measured", store["id"], None, "store").value == 262_144  # type: ignore[union-attr]
    assert figures.exact("shared.conflicts", "measured", store["id"], None, "store").value == 262_144 - 32_768  # type: ignore[union-attr]
    assert figures.exact("shared.transactions", "measured", load["id"], None, "load").value == 16_777_216  # type: ignore[union-attr]
    rows = {(row.line, row.access): row.measured.transactions for row in conflict_rows(case)}
    assert rows[5, "store"].value == 262_144  # type: ignore[union-attr]
    assert case.sources["/tmp/demo/kernel.py"].startswith("# line 1: pretend DSL file")
    assert store["location"]["text"] == case.sources["/tmp/demo/kernel.py"].splitlines()[4]


def test_the_flame_tree_of_foreign_lines_sums_up(h200: list[CaseResult]) -> None:
    case = h200[3]
    node = case_node(case, "conf8")
    assert node.weight("executed_measured") == 9_043_968
    below = [child for child in node.walk() if child.operation and child.weight("executed_measured")]
    assert sum(child.weight("executed_measured") or 0 for child in below) <= 9_043_968
    assert sum(child.weight("transactions_measured") or 0 for child in below) == 17_039_360


def test_launch_facts_stand_once_and_counters_by_launch(h200: list[CaseResult]) -> None:
    rows = [m for m in h200[3].metrics if m.metric == "registers.per_thread"]
    assert [(m.value, m.launch) for m in rows] == [(23, None)]
    rows = [m for m in h200[3].metrics if m.metric == "time.profiled_ns"]
    assert [(m.value, m.launch) for m in rows] == [(92192, 3)]


def test_an_interrupted_launch_is_no_valid_measurement(ncu_sample: Sample) -> None:
    (profile,) = anything.read(ncu_sample("h800_interrupted_nan_2023.3"))
    cases = cases_of(profile)
    (broken,) = [case for case in cases if case.status != "ok"]
    assert broken.status == "invalid_measurement"
    assert broken.kernel.startswith("flash_fwd_kernel")
    assert all(m.value == m.value for case in cases for m in case.metrics)


def test_launches_of_a_trace_become_samples(profiles: Path) -> None:
    (profile,) = anything.read(profiles / "nvidia" / "h200-measured" / "bank_conflicts.nsys.sqlite")
    cases = {case.kernel: case for case in cases_of(profile)}
    conf8 = cases["conf_kernel<(int)8>"]
    assert conf8.timing is not None
    assert sorted(conf8.timing.samples_ns) == [69024, 69056]
    assert conf8.timing.method == "kernel trace of nsys 2025.3.2.0"
    assert not any(m.metric == "time.ns" for m in conf8.metrics)
    assert any("CUDA_API: 30 calls" in note for note in cases_of(profile)[0].notes)


def test_ranges_are_named(profiles: Path) -> None:
    (profile,) = anything.read(profiles / "nvidia" / "nsys" / "t4_2025.3.1_schema3.20.2.sqlite")
    cases = cases_of(profile)
    assert sum(len(case.timing.samples_ns) for case in cases if case.timing) == 3689
    assert len({case.id for case in cases}) == len(cases)
    notes = [note for case in cases for note in case.notes]
    assert any(note.startswith("in range Loop / Step") for note in notes)
    assert any(note.startswith("in ") and "other ranges" in note for note in notes)


def test_clocks_that_cannot_be_are_flagged_by_the_devices_own_maximum(profiles: Path) -> None:
    (profile,) = anything.read(profiles / "amd" / "rocprof_compute" / "omniperf2.0_vcopy_MI200")
    (case,) = cases_of(profile)
    flags = {(m.metric, m.launch): m.flag for m in case.metrics if m.metric == "clock.hz"}
    assert flags == {("clock.hz", 0): None, ("clock.hz", 1): "implausible clock", ("clock.hz", 2): "implausible clock"}


def test_samples_without_lines_are_unattributed(profiles: Path) -> None:
    (profile,) = anything.read(profiles / "amd" / "rocprofv3" / "sdk1.0_rocm7.0_docs" / "pc_sampling_host_trap.csv")
    (case,) = cases_of(profile)
    (row,) = [m for m in case.metrics if m.metric == "stall.samples"]
    assert (row.value, row.operation, row.access) == (79, None, "unattributed")


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("void conf_kernel<(int)8>(const float *, float *, int)", "conf_kernel<(int)8>"),
        ("k", "k"),
        ("__amd_rocclr_copyBuffer", "__amd_rocclr_copyBuffer"),
        ("std::enable_if<!T7, void>::type internal::gemvx::kernel<int>(T13)", "internal::gemvx::kernel<int>"),
        ("void f(int (*)(int), char)", "f"),
        ("(no name)", "(no name)"),
        ("_Z1kv", "_Z1kv"),
    ],
)
def test_short_names(full: str, short: str) -> None:
    assert short_names([full]) == {full: short}


def test_short_names_are_readable_and_all_different() -> None:
    names = [f"void at::native::k<{'x' * 90}{i}>(int)" for i in range(3)] + ["void k(int)", "void k(char)", "k(long)"]
    short = short_names(names)
    assert len(set(short.values())) == len(names)
    assert all(len(name) <= 80 for name in short.values())


def test_one_kernel_with_other_registers_is_another_case() -> None:
    from tileprof.metrics import make
    from tileprof.store.records import Provenance

    def launch(index: int, registers: float) -> ForeignLaunch:
        row = make("registers.per_thread", registers, Provenance("measured", "nsys", ""), launch=index)
        assert row is not None
        return ForeignLaunch(
            index, "k()", "cuda:sm_90", grid=(1, 1, 1), block=(32, 1, 1), duration_ns=5.0, metrics=(row,)
        )

    profile = ForeignProfile("nsys SQLite", "nsys", "", (launch(0, 32), launch(1, 40), launch(2, 32)))
    assert [(case.id, len(case.timing.samples_ns)) for case in cases_of(profile) if case.timing] == [
        ("k[grid=1x1x1, block=32x1x1]@cuda:sm_90", 2),
        ("k[grid=1x1x1, block=32x1x1]@cuda:sm_90#2", 1),
    ]


def test_notes_of_the_profile_are_of_all_cases_and_calls_of_the_first() -> None:
    launches = tuple(ForeignLaunch(i, f"k{i}", "hip") for i in range(2))
    profile = ForeignProfile(
        "x", "rocprofv3", "", launches, calls=(CallStatistic("HIP_API", "f", 3, 2e6),), notes=("odd",)
    )
    first, second = cases_of(profile)
    assert "odd" in first.notes
    assert "odd" in second.notes
    assert "beside the kernels, HIP_API: 3 calls, 2.000 ms together" in first.notes
    assert not any("HIP_API" in note for note in second.notes)
