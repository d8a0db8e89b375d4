"""Every real profile is read, whole and cut at random places; nothing of a cut file is made up."""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tileprof.collect import anything
from tileprof.collect.profile import ForeignProfile
from tileprof.errors import TileprofError
from tileprof.metrics import METRICS

DATA = Path(__file__).parents[2] / "data"
EXPECTED = json.loads((DATA / "profiles" / "expected.json").read_text())

# inputs of profilers, logs, descriptions of machines, results of experiments: no profiles by themselves
NOT_PROFILES = re.compile(
    r"log\.txt|sysinfo\.csv|roofline\.csv|pmc_dispatch_info\.csv|perfmon/|profiling_config|(bank|phase)_results\.txt|list-avail\.txt"
    r"|filenames\.json|snapshots\.json|goldentraces/(att_vadd|basic_metrics|hsa_async\w*|input|pmc|sample_att\w*)\.txt|kernel\.py"
)


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    for part in ("amd", "nvidia"):
        for path in sorted((folder / part).rglob("*")):
            if path.is_file():
                yield str(path.relative_to(folder)), path


def test_every_file_is_read_or_said_to_be_none(profiles: Path) -> None:
    found = {}
    for name, path in files(profiles):
        try:
            (profile,) = anything.read(path)
        except TileprofError:
            assert NOT_PROFILES.search(name), f"{name} is not read"
            continue
        calls = sum(call.calls for call in profile.calls)
        found[name] = {
            "format": profile.format, "launches": len(profile.launches), "ranges": len(profile.ranges), "calls": calls,
        }  # fmt: skip
        assert not NOT_PROFILES.search(name), f"{name} is a profile now"
        check(name, profile)
    assert found == EXPECTED
    assert len(found) == 123


def test_reports_of_ncu_hold_to_the_same(ncu_sample: Callable[[str], Path]) -> None:
    for name in ("a10g_roofline_set_templates_2023.1", "gtx1660ti_basic_2022.4", "h800_interrupted_nan_2023.3"):
        (profile,) = anything.read(ncu_sample(name))
        assert profile.format == "ncu report"
        check(name, profile)


def check(name: str, profile: ForeignProfile) -> None:
    """What holds for every profile."""
    assert profile.tool in ("ncu", "nsys", "rocprofv3", "rocprof", "rocprofv2", "rocprof-compute"), name
    assert [launch.index for launch in profile.launches] == sorted({launch.index for launch in profile.launches}), name
    for launch in profile.launches:
        assert re.fullmatch(r"[^\x1b]+(?<!\.kd)(?<!\.kd\])", launch.kernel), name
        assert launch.target.split(":")[0] in ("cuda", "hip"), name
        assert launch.duration_ns is None or launch.duration_ns > 0, name
        metrics = [metric.metric for metric in launch.metrics]
        assert len(set(metrics)) == len(metrics), f"{name}: a metric twice"
        for metric in launch.metrics:
            assert metric.metric in METRICS, name
            assert metric.value == metric.value, f"{name}: NaN"
            assert metric.provenance.tool == profile.tool, name
            assert metric.flag or metric.value >= 0, f"{name}: {metric}"
        assert all(value == value for value in launch.raw.values()), name


def known(profile: ForeignProfile) -> set[tuple[str, str, float]]:
    """(kernel, metric, value) of a profile: what a cut file may still say."""
    return {(launch.kernel, m.metric, m.value) for launch in profile.launches for m in launch.metrics}


SMALL = 200_000


def test_cut_files_are_errors_or_say_less(profiles: Path, tmp_path: Path) -> None:
    """Each file cut at three random places: an error with a remedy, or launches of the whole file only."""
    random.seed(6)
    tried = 0
    without: list[str] = []
    for name, path in files(profiles):
        if name not in EXPECTED or path.stat().st_size > SMALL:
            continue
        data = path.read_bytes()
        whole = known(anything.read(path)[0])
        for _ in range(3):
            cut = tmp_path / path.name
            end = random.randrange(1, len(data))
            cut.write_bytes(data[:end])
            tried += 1
            try:
                (profile,) = anything.read(cut)
            except TileprofError as error:
                without += [] if error.remedy else [f"{name} cut at {end}: {error}"]
                continue
            check(name, profile)
            made_up = known(profile) - whole
            # a number or a name cut at the very end of a file without quotes looks whole: at most the last row
            assert len({kernel for kernel, _, _ in made_up}) <= 1, f"{name} cut at {end}: {made_up}"
    assert tried > 250
    assert without == [], "errors without a remedy"


@pytest.mark.parametrize("value", ["nan", "n/a", "", "inf", "-", "no data"])
def test_values_that_are_none_are_missing(profiles: Path, tmp_path: Path, value: str) -> None:
    source = profiles / "amd/rocprofv3/rocm7_mi355x_hipkittens/ds_write_b64/lds_conflict_counter_collection.csv"
    text = re.sub(r'("SQ_\w+"),[^,]+,', rf"\1,{value},", source.read_text())
    path = tmp_path / source.name
    path.write_text(text)
    (profile,) = anything.read(path)
    assert len(profile.launches) == 3
    assert all(not launch.raw for launch in profile.launches)
    assert not any(m.metric.startswith("shared.conf") for launch in profile.launches for m in launch.metrics)


def test_a_chip_with_other_counter_names(profiles: Path, tmp_path: Path) -> None:
    """Names that nobody knows give no metric, and keep under their own name."""
    source = profiles / "amd/rocprofv3/rocm7_mi355x_hipkittens/ds_write_b64/lds_conflict_counter_collection.csv"
    path = tmp_path / source.name
    path.write_text(source.read_text().replace("SQ_LDS_BANK_CONFLICT", "SQ_NEW_CONFLICT"))
    (kernel,) = anything.read(path)[0].of_kernel("micro_tk")
    assert kernel.raw["SQ_NEW_CONFLICT"] == 60
    assert "shared.conflicts" not in kernel.values


def test_reports_packed_as_they_lie_in_the_repository_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.ncu-rep.xz"
    path.write_bytes(lzma.compress(b"NVR\x00"))
    with pytest.raises(TileprofError, match="xz archive") as caught:
        anything.read(path)
    assert "xz -d" in (caught.value.remedy or "")
