"""rocpd databases, Proton's trees, and files that are no profiles at all."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from tileprof.collect import anything, hatchet_file, scrub
from tileprof.collect.sqlite_file import MAGIC, Database
from tileprof.errors import MeasurementInvalid, ProfileFormatError, TileprofError

GUID = "_00003fdc_92cb_4e6f_a1b2_000000000000"


def rocpd(path: Path, *, version: str = "3.0.3", region: bool = True, environment: str = "{}") -> Path:
    """A database as rocprofv3 of ROCm 7 writes it: tables with a suffix, views by plain names."""
    connection = sqlite3.connect(path)
    tables = {
        "rocpd_metadata": "id INTEGER PRIMARY KEY, tag TEXT, value TEXT",
        "rocpd_string": "id INTEGER PRIMARY KEY, guid TEXT, string TEXT",
        "rocpd_info_node": "id INTEGER PRIMARY KEY, guid TEXT, machine_id TEXT, hostname TEXT",
        "rocpd_info_process": "id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, command TEXT, environment TEXT",
        "rocpd_info_agent": "id INTEGER PRIMARY KEY, guid TEXT, type TEXT, absolute_index INT, name TEXT, "
        "product_name TEXT, extdata TEXT",
        "rocpd_info_pmc": "id INTEGER PRIMARY KEY, guid TEXT, agent_id INT, name TEXT, symbol TEXT",
        "rocpd_info_kernel_symbol": "id INTEGER PRIMARY KEY, guid TEXT, kernel_name TEXT, display_name TEXT, sgpr_count INT, "
        "arch_vgpr_count INT, accum_vgpr_count INT",
        "rocpd_event": "id INTEGER PRIMARY KEY, guid TEXT, category_id INT, extdata TEXT",
        "rocpd_pmc_event": "id INTEGER PRIMARY KEY, guid TEXT, event_id INT, sample_id INT, pmc_id INT, value REAL",
        "rocpd_region": "id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, tid INT, start INT, end INT, "
        "name_id INT, event_id INT",
        "rocpd_kernel_dispatch": "id INTEGER PRIMARY KEY, guid TEXT, nid INT, pid INT, tid INT, agent_id INT, kernel_id INT, "
        "dispatch_id INT, start INT, end INT, private_segment_size INT, group_segment_size INT, workgroup_size_x INT, "
        "workgroup_size_y INT, workgroup_size_z INT, grid_size_x INT, grid_size_y INT, grid_size_z INT, region_name_id INT, "
        "event_id INT",
    }
    for name, columns in tables.items():
        connection.execute(f"CREATE TABLE `{name}{GUID}` ({columns})")
        connection.execute(f"CREATE VIEW `{name}` AS SELECT * FROM `{name}{GUID}`")

    def insert(table: str, *rows: tuple[object, ...]) -> None:
        for row in rows:
            connection.execute(f"INSERT INTO `{table}{GUID}` VALUES ({', '.join('?' * len(row))})", row)

    insert("rocpd_metadata", (1, "schema_version", version))
    insert("rocpd_string", (1, "g", "MARKER_CORE_RANGE_API"), (2, "g", "case a"), (3, "g", "KERNEL_DISPATCH"))
    insert("rocpd_info_node", (1, "g", "machine-canary", "host-canary"))
    insert("rocpd_info_process", (1, "g", 1, 77, "command-canary", environment))
    facts = json.dumps({"num_xcc": 8, "cu_count": 304, "max_engine_clk_fcompute": 2100, "max_waves_per_cu": 32})
    insert(
        "rocpd_info_agent",
        (1, "g", "CPU", 0, "EPYC", "", "{}"),
        (2, "g", "GPU", 4, "gfx942", "AMD Instinct MI300X", facts),
    )
    insert(
        "rocpd_info_pmc",
        (1, "g", 2, "SQ_LDS_BANK_CONFLICT", "SQ_LDS_BANK_CONFLICT"),
        (2, "g", 2, "SQ_WAVES", "SQ_WAVES"),
    )
    insert("rocpd_info_kernel_symbol", (5, "g", "_Z1kv.kd", "k()", 32, 64, 8))
    insert("rocpd_event", (1, "g", 1, "{}"), (2, "g", 3, "{}"), (3, "g", 3, "{}"))
    # instances of a counter are rows of their own; a sample of streaming counters is none of them
    insert(
        "rocpd_pmc_event",
        (1, "g", 2, None, 1, 3.0),
        (2, "g", 2, None, 1, 4.0),
        (3, "g", 2, None, 2, 9.0),
        (4, "g", 2, 1, 1, 100.0),
    )
    insert("rocpd_region", (1, "g", 1, 1, 1, 50, 250, 2, 1))
    insert(
        "rocpd_kernel_dispatch",
        (1, "g", 1, 1, 1, 2, 5, 1, 100, 200, 0, 9216, 256, 1, 1, 1024, 2, 1, 2 if region else None, 2),
        (2, "g", 1, 1, 1, 2, 5, 2, 300, 450, 0, 9216, 256, 1, 1, 1024, 2, 1, None, 3),
    )
    connection.commit()
    connection.close()
    return path


def test_a_rocpd_database(tmp_path: Path) -> None:
    (profile,) = anything.read(rocpd(tmp_path / "1_results.db"))
    counted, traced = profile.launches
    assert (counted.kernel, counted.symbol, counted.target) == ("k()", "_Z1kv", "hip:gfx942")
    assert counted.values["shared.conflicts"] == 7, "instances add up"
    assert counted.values["launch.warps"] == 9
    assert counted.values["shared.allocated_bytes"] == 9216, "dynamic LDS is in it"
    assert counted.values["registers.vgpr"] == 72
    assert (counted.grid, counted.values["launch.blocks"]) == ((4, 2, 1), 8)
    assert counted.values["time.profiled_ns"] == 100
    assert counted.ranges == ("case a",)
    assert (traced.duration_ns, traced.ranges) == (150, ()), "a dispatch without a region is there, too"
    assert counted.max_clock_hz == 2.1e9


def test_environment_host_and_command_of_a_rocpd_database_are_not_read(tmp_path: Path) -> None:
    (profile,) = anything.read(rocpd(tmp_path / "x.db", environment='{"TOKEN": "token-canary"}'))
    assert "canary" not in repr(profile)


def test_a_later_schema_is_read_and_said(tmp_path: Path) -> None:
    (known,) = anything.read(rocpd(tmp_path / "a.db", version="4.1.0"))
    assert known.notes == ()
    (later,) = anything.read(rocpd(tmp_path / "b.db", version="9.0.0"))
    assert len(later.launches) == 2
    assert "schema 9.0.0" in later.notes[0]


def test_a_rocpd_database_of_another_form(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE rocpd_metadata (tag, value)")
    connection.close()
    with pytest.raises(ProfileFormatError, match="no rocpd_kernel_dispatch"):
        anything.read(path)


# --- Proton ----------------------------------------------------------------------------------------------------------


def test_a_tree_of_proton(profiles: Path) -> None:
    (profile,) = anything.read(profiles / "proton" / "cuda.hatchet")
    first, second = profile.launches
    assert (first.kernel, first.target, first.count) == ("foo0", "cuda:sm_90", 10)
    assert first.values["time.profiled_ns"] == 20480
    assert first.values["flop.float8_e4m3"] == 1e10, "a launch's share of what the program states"
    assert first.values["bytes.min"] == 1e7
    assert (second.target, second.values["time.profiled_ns"]) == ("cuda:sm_89", 204800)
    assert first.max_clock_hz == 1.98e9
    (hip,) = anything.read(profiles / "proton" / "hip.hatchet")
    assert [launch.target for launch in hip.launches] == ["hip:gfx942", "hip:gfx90a"]


def test_scopes_are_ranges_and_bookkeeping_is_left_out(profiles: Path) -> None:
    (profile,) = anything.read(profiles / "proton" / "triton.hatchet")
    (launch,) = profile.launches
    assert (launch.kernel, launch.ranges) == ("triton_kernel", ("scope",))
    assert "1 kernels that Proton launched for itself" in profile.notes[0]


def test_frames_with_files_have_lines_and_no_home(profiles: Path) -> None:
    (profile,) = anything.read(profiles / "proton" / "frame.hatchet")
    first = profile.launches[0]
    assert (first.kernel, first.ranges) == ("foo", ("test0",))
    assert (first.lines[0].file, first.lines[0].line) == ("~/projects/example.py/test.py", 1)


def test_trees_that_are_empty_cut_or_strange(tmp_path: Path, profiles: Path) -> None:
    text = (profiles / "proton" / "cuda.hatchet").read_text()
    path = tmp_path / "x.hatchet"
    path.write_text(text[:200])
    with pytest.raises(ProfileFormatError, match="no whole JSON"):
        anything.read(path)
    root = {"frame": {"name": "ROOT"}, "metrics": {}, "children": []}
    path.write_text(json.dumps([root, {}]))
    with pytest.raises(MeasurementInvalid, match="no kernel"):
        anything.read(path)
    with pytest.raises(ProfileFormatError, match="form that is not known"):
        hatchet_file.parse([{"frame": {}, "metrics": {}, "children": []}], path)


# --- what is no profile ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "looks", "todo"),
    [
        ("x.nsys-rep", b"anything", "report of Nsight Systems", "nsys export"),
        ("x.pftrace", b"\x0a\x01perfetto", "Perfetto", "csv rocpd"),
        ("x.att", b"raw trace", "thread trace", "ui_output"),
        ("x.csv.gz", gzip.compress(b"a,b", mtime=0), "gzip", "gunzip"),
        ("x.zip", b"PK\x03\x04....", "zip", "unpack"),
        ("x.cubin", b"\x7fELF...", "code object", "profile it"),
        ("trace.json", b'{"traceEvents": []}', "Chrome trace", "nsys or rocprofv3"),
        ("x.json", b'{"a": 1, "b": 2}', "object with a, b", ".ncu-rep"),
        ("x.json", b'{"a": ', "no whole JSON", "again"),
        ("x.csv", b"name,age\njim,3\n", "columns name, age", ".ncu-rep"),
        ("x.txt", b"hello\n", "text that begins with 'hello'", ".ncu-rep"),
        ("x.bin", b"\x01\x02\x00\x04", "binary", ".ncu-rep"),
        ("x.yaml", b"version: 1\n", "YAML", "tileprof run"),
        ("x.ncu-rep", b"NVR\x00garbage", "no whole kernel", "log says"),
        ("x.db", b"SQLite format 3\x00cut", "no whole SQLite", "again"),
        ("empty.csv", b"", "empty", "wrote nothing"),
        ("blank.json", b" \n", "empty", "wrote nothing"),
    ],
)
def test_what_cannot_be_read_says_what_it_looks_like_and_what_to_do(
    tmp_path: Path, name: str, content: bytes, looks: str, todo: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TileprofError) as caught:
        anything.read(path)
    assert looks in caught.value.message
    assert todo in str(caught.value)


def test_databases_of_others(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE people (name)")
    connection.close()
    with pytest.raises(ProfileFormatError, match="with people, and no profile"):
        anything.read(path)


def test_missing_and_empty_places(tmp_path: Path) -> None:
    with pytest.raises(ProfileFormatError, match="there is no"):
        anything.read(tmp_path / "nowhere")
    with pytest.raises(ProfileFormatError, match="it is empty"):
        anything.read(tmp_path)


def test_a_folder_with_profiles_of_several_tools(tmp_path: Path, profiles: Path) -> None:
    for file in (
        profiles / "proton" / "cuda.hatchet",
        profiles / "nvidia" / "nsys" / "rtx5090_cuda_gpu_kern_sum_small.csv",
    ):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "notes.txt").write_text("nothing of ours\n")
    assert sorted(profile.tool for profile in anything.read(tmp_path)) == ["nsys", "proton"]


# --- privacy ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/jane/k.py", "~/k.py"),
        ("at /home/jane.doe/a/b.cu:7", "at ~/a/b.cu:7"),
        ("/Users/jane/k.py", "~/k.py"),
        (r"C:\Users\jane\k.cu", r"~\k.cu"),
        ("/root/k.py", "~/k.py"),
        ("/opt/rocm/include/hip.h", "/opt/rocm/include/hip.h"),
        ("/usr/home2/k", "/usr/home2/k"),
        ("/chroot/k", "/chroot/k"),
        ("/opt/torch/.venv/lib/python3.12/site-packages/triton/a.py", "site-packages/triton/a.py"),
        ("at /home/jane/env/lib/python3/dist-packages/torch/x.py:7", "at dist-packages/torch/x.py:7"),
    ],
)
def test_home_directories_are_nobodys(text: str, clean: str) -> None:
    assert scrub.path(text) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("k(int) [clone .kd]", "k(int)"),
        ("k(int) (.kd)", "k(int)"),
        ('"__amd_rocclr_copyBuffer.kd"', "__amd_rocclr_copyBuffer"),
        ("\x1b[0;33mk\x1b[m", "k"),
        ("", "(no name)"),
    ],
)
def test_names_without_decoration(text: str, clean: str) -> None:
    assert scrub.kernel_name(text) == clean


def test_what_is_no_database_is_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **named: opened.append(connect(*args, **named)) or opened[-1])
    (tmp_path / "cut.sqlite").write_bytes(MAGIC + bytes(500))
    with pytest.raises(ProfileFormatError, match="is no whole SQLite file"):
        Database(tmp_path / "cut.sqlite")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
