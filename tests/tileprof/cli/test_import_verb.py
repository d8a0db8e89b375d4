from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from unpacked import data_of

import tilelang_min
from tileprof.analyse.sass_access import opcode
from tileprof.cli.main import main
from tileprof.collect import anything, ncu_file
from tileprof.collect.profile import ForeignProfile
from tileprof.errors import MeasurementInvalid, UsageError
from tileprof.execute import importing
from tileprof.execute.importing import ImportOptions
from tileprof.store.directory import STORE
from tileprof.store.reader import read_run

Sample = Callable[[str], Path]


def outputs(directory: Path) -> str:
    """All texts of a run directory, the store's as bytes, and what is packed in its page."""
    files = [path.read_bytes().decode(errors="replace") for path in sorted(directory.rglob("*")) if path.is_file()]
    return "\n".join([*files, str(data_of((directory / "index.html").read_text(encoding="utf-8")))])


def test_import_makes_a_run_directory(ncu_sample: Sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "run"
    assert main(["import", str(ncu_sample("h200_bank_conflicts_2025.3")), "-o", str(directory)]) == 0
    out = capsys.readouterr().out
    assert "conf_kernel<(int)8>" in out
    assert "14,909,440" in out
    assert {path.name for path in directory.iterdir()} >= {
        "run.sqlite",
        "result.json",
        "index.html",
        "summary.md",
        "metrics.csv",
    }
    result = json.loads((directory / "result.json").read_text())
    schema = json.loads((resources.files("tileprof.report") / "result.schema.json").read_text())
    jsonschema.validate(result, schema)
    run = read_run(directory / STORE)
    assert (run.finished is not None, len(run.cases)) == (True, 5)
    assert run.machine["gpus"] == [{"vendor": "nvidia", "name": "NVIDIA H200", "arch": "sm_90"}]
    assert any(c.quantity == "dram.bytes_per_s" and c.provenance.tool == "ncu" for c in run.ceilings)
    page = (directory / "index.html").read_text()
    assert "kernel.py" in page


def test_several_paths_keep_apart(ncu_sample: Sample, profiles: Path, tmp_path: Path) -> None:
    nsys = profiles / "nvidia" / "h200-measured" / "bank_conflicts.nsys.sqlite"
    directory = tmp_path / "run"
    paths = [str(nsys), str(ncu_sample("gtx1660ti_basic_2022.4")), str(profiles / "proton" / "triton.hatchet")]
    assert main(["import", *paths, "-o", str(directory)]) == 0
    names = {case.target_name for case in read_run(directory / STORE).cases}
    assert names == {
        "NVIDIA H200 (bank_conflicts.nsys.sqlite)",
        "NVIDIA GeForce GTX 1660 Ti (gtx1660ti_basic_2022.4.ncu-rep)",
        "cuda:sm_86 (triton.hatchet)",
    }


def test_where_there_are_no_kernels_the_choice_is_not_to_blame() -> None:
    options = ImportOptions((Path("x.csv"),), kernels=("vec4",))
    empty = ForeignProfile("nsys CSV", "nsys", "", ())
    with pytest.raises(MeasurementInvalid, match="no kernel was recorded: x is nsys CSV"):
        importing._check([("x", empty)], options, [])
    with pytest.raises(UsageError, match="no kernel has 'vec4' in its name") as chosen:
        importing._check([("x", empty)], options, ["other", "other"])
    assert chosen.value.remedy == "there are: other"


def test_kernels_can_be_chosen(profiles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nsys = str(profiles / "nvidia" / "h200-measured" / "bank_conflicts.nsys.sqlite")
    assert main(["import", nsys, "--kernel", "vec4", "-o", str(tmp_path / "a")]) == 0
    assert [case.kernel for case in read_run(tmp_path / "a" / STORE).cases] == ["vec4"]
    capsys.readouterr()
    assert main(["import", nsys, "--kernel", "vec5", "-o", str(tmp_path / "b")]) == 2
    assert "vec4" in capsys.readouterr().err, "what there is"


def test_raw_counters_on_demand(profiles: Path, tmp_path: Path) -> None:
    path = str(profiles / "amd/rocprofv3/rocm7_mi355x_hipkittens/ds_write_b64/lds_conflict_counter_collection.csv")
    for name, more in (("a", []), ("b", ["--raw"])):
        assert main(["import", path, "-o", str(tmp_path / name), *more]) == 0
    plain, raw = ({m.metric for c in read_run(tmp_path / name / STORE).cases for m in c.metrics} for name in "ab")
    assert raw - plain == {"raw.SQ_LDS_BANK_CONFLICT", "raw.SQ_INSTS_LDS"}


def test_json_on_standard_output(profiles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(profiles / "proton" / "cuda.hatchet"), "-o", str(tmp_path / "r"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["run"]["cases"]) == 2


@pytest.mark.parametrize(
    ("name", "content", "status", "message"),
    [
        ("x.txt", b"hello\n", 2, "no profile that is known"),
        ("x.csv", b"", 2, "empty"),
        ("x.csv", b"==WARNING== No kernels were profiled.\n", 3, "profiled no kernel"),
        (
            "x.csv",
            b"Domain,Function,Start_Timestamp,End_Timestamp\nHIP_API,hipMalloc,1,2\n",
            3,
            "no kernel was recorded",
        ),
    ],
)
def test_what_cannot_be_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, status: int, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert main(["import", str(tmp_path / name), "-o", str(tmp_path / "r")]) == status
    error = capsys.readouterr().err
    assert message in error
    assert "help:" in error
    assert not (tmp_path / "r").exists()


def test_a_finished_run_is_not_overwritten(profiles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["import", str(profiles / "proton" / "cuda.hatchet"), "-o", str(tmp_path / "r")]
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*arguments, "--force"]) == 0


def with_canaries(source: Path, target: Path) -> Path:
    """An nsys export with an environment, a user, a host and identifiers that would be noticed."""
    shutil.copy(source, target)
    connection = sqlite3.connect(target)
    for name, value in (
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'API_TOKEN="canary-token"'),
        ("PROCESS_0:USER_NAME", "canary-user"),
        ("DEVICE_DISPLAY_NAME", "canary-host"),
        ("PROCESS_0:WORKING_DIR", "/home/canary-home/work"),
        ("PROCESS_0:ARGUMENT_0", "--password=canary-password"),
    ):
        connection.execute("INSERT INTO META_DATA_CAPTURE (name, value) VALUES (?, ?)", (name, value))
    connection.execute("UPDATE META_DATA_EXPORT SET value = 'canary-host' WHERE name = 'EXPORT_HOST'")
    connection.execute("UPDATE TARGET_INFO_GPU SET uuid = 'canary-uuid'")
    connection.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'x', 'DeviceEnvironment', 0, 'X=canary-env')")
    connection.execute(
        "INSERT INTO StringIds (id, value) VALUES (99999, ?)", ("PATH=/canary-path\x00HOME=/home/canary-home",)
    )
    connection.execute(
        "UPDATE StringIds SET value = replace(value, 'vec4(', '/home/canary-home/x/vec4(') WHERE value LIKE 'vec4(%'"
    )
    connection.execute("INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 1, 1, 2, 'lost events in /home/canary-home/x.py', 0)")
    connection.commit()
    connection.close()
    return target


def test_environment_user_and_host_are_nowhere(profiles: Path, tmp_path: Path) -> None:
    source = profiles / "nvidia" / "h200-measured" / "bank_conflicts.nsys.sqlite"
    path = with_canaries(source, tmp_path / "x.sqlite")
    assert main(["import", str(path), "-o", str(tmp_path / "r"), "--raw"]) == 0
    text = outputs(tmp_path / "r")
    assert "vec4" in text
    assert "lost events in ~/x.py" in text
    assert "canary" not in text


def test_nothing_in_the_real_files_names_a_machine(profiles: Path, ncu_sample: Sample, tmp_path: Path) -> None:
    """Every real profile in one run: no process names, host names, home directories or machine ids."""
    reports = [ncu_sample(name) for name in ("a100_imma_gemm_full_source_2024.1", "h800_interrupted_nan_2023.3")]
    folders = [profiles / "amd" / "rocprofv3", profiles / "nvidia", profiles / "proton"]
    workloads = sorted((profiles / "amd" / "rocprof_compute").iterdir())
    olds = sorted((profiles / "amd" / "rocprof_v1").iterdir())
    assert main(["import", *map(str, [*reports, *folders, *workloads, *olds]), "-o", str(tmp_path / "r")]) == 0
    text = outputs(tmp_path / "r")
    for word in (
        "127.0.0.1",
        "host0",
        "/home/",
        "user00000",
        "python3.12",
        "EPYC",
        "Ryzen",
        "machine_id",
        "hostname",
        "pid_",
    ):
        assert word not in text, word
    run = read_run(tmp_path / "r" / STORE)
    assert len(run.cases) > 300
    assert len({case.id for case in run.cases}) == len(run.cases)


def test_import_needs_no_gpu_no_compiler_and_no_torch(profiles: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from tileprof.cli.main import main; "
        f"status = main(['import', {str(profiles / 'proton' / 'cuda.hatchet')!r}, '-o', {str(tmp_path / 'r')!r}]); "
        "print(status, sorted(set(sys.modules) & {'tvm', 'torch', 'pandas', 'matplotlib'}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().endswith("0 []")


class Loaded:
    """A kernel as a bundle gives it: the one of the bank-conflict report, which was not ours."""

    def __init__(self, record: dict[str, Any]) -> None:
        self._record = record

    def bundle_record(self) -> dict[str, Any]:
        return self._record

    def source(self) -> str:
        return "// generated"

    def assembly(self) -> str:
        return ""


@pytest.fixture
def bundle(ncu_sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle of ``conf_kernel<8>``: line 5 of its source stores, line 6 loads, line 7 stores the result."""
    (profile,) = ncu_file.read(ncu_sample("h200_bank_conflicts_2025.3")).of_symbol("_Z11conf_kernelILi8EEvPKfPfi")
    of_line = {5: 1, 6: 2, 7: 3}
    operations = [
        {"id": number, "kind": kind, "label": f"{kind} {number}", "parent": 0 if number else None, "reads": reads,
         "writes": writes, "location": {"file": "demo/kernel.py", "line": line, "column": 0, "text": ""}}
        for number, kind, line, reads, writes in (
            (0, "kernel", 1, [], []), (1, "copy", 5, ["A"], ["S"]), (2, "parallel", 6, ["S"], []), (3, "copy", 7, [], ["B"]),
        )
    ]  # fmt: skip
    record = {
        "name": "conflicts", "hash": "0" * 64, "target": "cuda:sm_90a", "symbol": profile.symbol, "grid": [4096, 1, 1],
        "threads": 256, "shared": [{"name": "S"}], "parameters": [{"name": "A"}, {"name": "B"}], "operations": operations,
        "sources": {}, "metadata": {"registers_per_thread": 17},
    }  # fmt: skip
    rows = [
        [one.text, opcode(one.text), "other", of_line.get(one.line or 0), one.line, one.offset]
        for one in profile.instructions
    ]
    listing = {"syntax": "sass", "columns": ["text", "opcode", "class", "operation", "line", "offset"], "rows": rows}
    place = tmp_path / "bundle"
    place.mkdir()
    (place / "kernel.json").write_text(json.dumps(record))
    (place / "listing.json").write_text(json.dumps(listing))
    monkeypatch.setattr(tilelang_min, "load", lambda path: Loaded(json.loads((path / "kernel.json").read_text())))
    return place


def test_a_kernel_of_a_bundle_is_joined_with_its_operations(ncu_sample: Sample, bundle: Path, tmp_path: Path) -> None:
    report = tmp_path / "no-suffix"  # told by content
    shutil.copy(ncu_sample("h200_bank_conflicts_2025.3"), report)
    directory = tmp_path / "run"
    assert main(["import", str(report), "--bundle", str(bundle), "-o", str(directory)]) == 0
    ours, *others = read_run(directory / STORE).cases
    assert (ours.id, len(ours.operations), len(others)) == ("conflicts@cuda:sm_90a", 4, 4)
    values = {(m.metric, m.operation, m.provenance.kind): m.value for m in ours.metrics}
    assert values["shared.transactions", 1, "measured"] == 262_144
    assert values["shared.transactions", 2, "measured"] == 16_777_216
    assert values["shared.transactions_ideal", 2, "measured"] == 2_097_152
    assert values["registers.per_thread", None, "static"] == 17
    assert not any("conf_kernel<(int)8>" in case.id for case in others)
    assert ">Counters</a>" in (directory / "index.html").read_text()


def test_a_second_report_without_the_kernel_does_no_harm(ncu_sample: Sample, bundle: Path, tmp_path: Path) -> None:
    paths = [str(ncu_sample(name)) for name in ("gtx1660ti_basic_2022.4", "h200_bank_conflicts_2025.3")]
    directory = tmp_path / "run"
    assert main(["import", *paths, "--bundle", str(bundle), "--bundle", str(bundle), "-o", str(directory)]) == 0
    ids = [case.id for case in read_run(directory / STORE).cases]
    assert ids[:2] == ["conflicts@cuda:sm_90a", "conflicts@cuda:sm_90a#2"]
    assert len(set(ids)) == len(ids)


def test_a_bundle_that_no_report_profiles(
    ncu_sample: Sample, profiles: Path, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--bundle", str(bundle), "-o", str(tmp_path / "run")]
    assert main(["import", str(ncu_sample("gtx1660ti_basic_2022.4")), *arguments]) == 2
    error = capsys.readouterr().err
    assert "no complete launch of kernel _Z11conf_kernelILi8EEvPKfPfi" in error
    assert "profile the program that launches this bundle" in error
    hatchet = next(profiles.rglob("*.hatchet"))
    assert main(["import", str(hatchet), *arguments]) == 2
    error = capsys.readouterr().err
    assert "no report of Nsight Compute among the paths" in error
    assert "help:" in error
    assert not (tmp_path / "run").exists()


def test_a_file_of_a_folder_that_holds_no_kernel_costs_none_of_the_others(
    profiles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    good = profiles / "proton" / "cuda.hatchet"
    shutil.copy(good, folder)
    (folder / "empty.csv").write_text("")
    for number in range(6):
        (folder / f"notes{number}.txt").write_text("about these profiles")
    with sqlite3.connect(folder / "none.sqlite") as connection:  # an export of nsys that saw no kernel
        connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        connection.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
    connection.close()
    assert main(["import", str(folder), "-o", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 6
    assert all(line.startswith("passed over: ") for line in told)
    assert "empty.csv" in told[0]
    assert told[-1] == "passed over: 3 more files that hold no profile of a kernel"
    assert len(read_run(tmp_path / "run" / STORE).cases) == 2
    assert main(["import", str(good), "-o", str(tmp_path / "one")]) == 0
    assert capsys.readouterr().err == ""


def test_a_reader_that_finds_no_kernel_costs_its_file_alone(
    profiles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    shutil.copy(profiles / "proton" / "cuda.hatchet", folder)
    (folder / "a.txt").write_text("x")
    read = anything._file

    def without_kernels(path: Path) -> Any:
        if path.name == "a.txt":
            raise MeasurementInvalid(f"{path}: rocprofv2 recorded no kernel", remedy="launch one")
        return read(path)

    monkeypatch.setattr(anything, "_file", without_kernels)
    assert main(["import", str(folder), "-o", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().err == f"passed over: {folder}/a.txt: rocprofv2 recorded no kernel\n"
    (folder / "cuda.hatchet").unlink()
    assert main(["import", str(folder), "-o", str(tmp_path / "other")]) == 3
    assert "holds no profile of a kernel" in capsys.readouterr().err
