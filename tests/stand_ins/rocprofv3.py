"""Stand-in of rocprofv3: runs the program for real, with the stand-in of the HIP runtime, and writes what it launched.

Options, file names, columns and messages are those of rocprofiler-sdk 1.0.  What the counters count comes from the environment:

STAND_IN_COUNTERS    JSON file: counter -> value of one launch; a counter that is not in it is one that the GPU does not have.
                     SQ_WAVES is what was launched
STAND_IN_FAULT       what goes wrong: see FAULTS
STAND_IN_COMMANDS    file to which each command line is appended, as JSON
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

LIMITS = {"SQ": 8, "SQC": 8, "TA": 2, "TD": 2, "TCP": 4, "TCC": 4, "CPC": 2, "CPF": 2, "SPI": 6, "GRBM": 2, "GDS": 4}
FAULTS = (
    "denied", "old", "hang", "killed", "half", "empty", "truncated", "nan", "nothing", "crash", "orphan", "colours", "many",
    "no-list", "zero-based", "second-pass", "zero",
)  # fmt: skip
AGENT = {
    "Node_Id": 4, "Agent_Type": "GPU", "Simd_Count": 1216, "Max_Waves_Per_Simd": 8, "Lds_Size_In_Kb": 64, "Wave_Front_Size": 64,
    "Num_Xcc": 8, "Cu_Count": 304, "Simd_Per_Cu": 4, "Gfx_Target_Version": 90402, "Max_Engine_Clk_Fcompute": 2100,
    "Max_Waves_Per_Cu": 32, "Name": "gfx942", "Vendor_Name": "AMD", "Product_Name": "Stand-in of an MI300X",
}  # fmt: skip
KERNEL_COLUMNS = (
    "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,"
    "LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,"
    "Grid_Size_X,Grid_Size_Y,Grid_Size_Z"
).split(",")
COUNTER_COLUMNS = (
    "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,"
    "LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp"
).split(",")
MARKER_COLUMNS = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp".split(",")
REASON = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"


def main() -> int:
    fault = os.environ.get("STAND_IN_FAULT", "")
    if fault and fault not in FAULTS:
        raise SystemExit(f"unknown fault {fault}")
    if "--version" in sys.argv:
        print(f"    version: {'0.4.0' if fault == 'old' else '1.0.0'}\n    git_revision: stand-in")
        return 0
    if sys.argv[1:] == ["-L"]:
        return 1 if fault == "no-list" else list_avail()
    options, program = parse()
    if path := os.environ.get("STAND_IN_COMMANDS"):
        with open(path, "a") as file:
            file.write(json.dumps(sys.argv[1:]) + "\n")
    return Run(options, program, fault).run()


def list_avail() -> int:
    """The form of rocprofv3 -L."""
    for method, unit, least, most, flags in (
        ("host_trap", "time", 1, 2**64 - 1, "none"),
        ("stochastic", "cycles", 256, 2**31, "interval pow2"),
    ):
        print(
            f"GPU     :\t0\nName    :\tgfx942\nconfigs :\n   Method              :\t{method}\n   Unit                :\t{unit}"
        )
        print(
            f"   Min_Interval        :\t{least}\n   Max_Interval        :\t{most}\n   Flags               :\t{flags}\n"
        )
    print("GPU:0\nName:gfx942")
    for name in counters():
        print(
            f"Counter_Name        :\t{name}\nDescription         :\ta counter\nBlock               :\t{name.split('_')[0]}\n"
        )
    return 0


def counters() -> dict[str, float]:
    path = os.environ.get("STAND_IN_COUNTERS")
    found: dict[str, float] = json.loads(Path(path).read_text()) if path else {}
    return found


def parse() -> tuple[argparse.Namespace, list[str]]:
    if "--" not in sys.argv:
        raise SystemExit("rocprofv3: error: the application must follow --")
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser(prog="rocprofv3", allow_abbrev=False)
    parser.add_argument("--pmc", nargs="+", default=[])
    for flag in ("--kernel-trace", "--marker-trace", "--hip-runtime-trace", "--pc-sampling-beta-enabled"):
        parser.add_argument(flag, action="store_true")
    for option in ("--kernel-include-regex", "--kernel-iteration-range", "--extra-counters", "--pc-sampling-unit"):
        parser.add_argument(option)
    parser.add_argument("--pc-sampling-method", choices=("host_trap", "stochastic"))
    parser.add_argument("--pc-sampling-interval", type=int)
    parser.add_argument("--output-format", nargs="+", choices=("csv", "json", "rocpd"), default=["rocpd"])
    parser.add_argument("-d", "--output-directory")
    parser.add_argument("-o", "--output-file")
    return parser.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]


class Run:
    """One run of the program."""

    def __init__(self, options: argparse.Namespace, program: list[str], fault: str) -> None:
        self.options, self.program, self.fault = options, program, fault
        self.folder = Path(options.output_directory)
        self.trace, self.ranges = Path(), Path()

    def run(self) -> int:
        if not (self.options.pmc or self.options.kernel_trace or self.options.marker_trace):
            print("No tracing options were enabled", file=sys.stderr)
            return 1
        if self.fault == "denied":
            print("rocprofiler: Permission denied: cannot open /dev/kfd", file=sys.stderr)
            return 1
        if self.fault in ("hang", "orphan"):
            if self.fault == "orphan":
                subprocess.Popen(["sleep", "600"], start_new_session=True)
            time.sleep(600)
        if self.fault == "crash":
            print("[rocprofv3] caught signal 11...", file=sys.stderr)
            return 128 + signal.SIGSEGV
        with tempfile.TemporaryDirectory() as place:
            self.trace, self.ranges = Path(place) / "launches", Path(place) / "ranges"
            environment = {**os.environ, "FAKE_HIP_TRACE": str(self.trace), "FAKE_ROCTX_TRACE": str(self.ranges)}
            if self.options.marker_trace:
                environment["LD_PRELOAD"] = os.environ["STAND_IN_ROCTX"]
            child = subprocess.Popen(self.program, env=environment)
            status = child.wait()
            return self.report(child.pid) or status

    def report(self, pid: int) -> int:
        """Write the files; the exit status of the tool where it fails itself."""
        launches = [] if self.fault == "nothing" else self.read_launches()
        if self.fault == "second-pass" and self.folder.name == "pass_2":
            print("it broke", file=sys.stderr)
            return 1
        if launches and (over := self.over_limit()):
            print(
                f"E0101 rocprofv3: Could not construct profile cfg failed with error code 38: Request exceeds the capabilities "
                f"of the hardware to collect: {over}",
                file=sys.stderr,
            )
            return 128 + signal.SIGABRT
        if self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        self.folder.mkdir(parents=True, exist_ok=True)
        name = self.options.output_file.replace("%pid%", str(pid))
        self.warn_missing()
        if "json" in self.options.output_format:
            (self.folder / f"{name}_results.json").write_text(json.dumps(self.as_json(launches, pid)))
            return 0
        self.write(name, "agent_info", list(AGENT), [AGENT])
        if not launches:
            return 0
        if self.options.kernel_trace:
            self.write(name, "kernel_trace", KERNEL_COLUMNS, [self.kernel_row(one) for one in launches])
        if self.options.marker_trace and self.ranges.exists():
            self.write(name, "marker_api_trace", MARKER_COLUMNS, self.marker_rows())
        if self.options.pmc:
            rows = [row for one in self.selected(launches) for row in self.counter_rows(one)]
            if rows:
                self.write(name, "counter_collection", COUNTER_COLUMNS, rows)
        if self.fault == "half":
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    # -- what was launched -------------------------------------------------------------------------------------------

    def read_launches(self) -> list[dict[str, Any]]:
        if not self.trace.exists():
            return []
        names = ("pid", "tid", "id", "name", "gx", "gy", "gz", "bx", "by", "bz", "lds", "start", "end")
        found = []
        for line in self.trace.read_text().splitlines():
            values: dict[str, Any] = dict(zip(names, line.split(), strict=True))
            found.append({key: value if key == "name" else int(value) for key, value in values.items()})
        # what the runtime itself launches lies between the program's kernels
        fill = {**found[0], "name": "__amd_rocclr_fillBufferAligned", "id": 10_000}
        found = [fill, *found]
        if self.fault == "many":  # thousands where one was meant
            found = [{**one, "id": number} for number, one in enumerate(found * 200, 1)]
        return found

    def selected(self, launches: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """By name and by the how-manieth call of that name, from 1."""
        chosen = [one for one in launches if re.search(self.options.kernel_include_regex or "", one["name"])]
        if not self.options.kernel_iteration_range:
            return chosen
        first, _, last = self.options.kernel_iteration_range.strip("[]").partition("-")
        shift = 0 if self.fault == "zero-based" else 1
        calls: dict[str, int] = defaultdict(int)
        kept = []
        for one in chosen:
            number = calls[one["name"]] + shift
            calls[one["name"]] += 1
            if int(first) <= number <= int(last or first) or self.fault == "many":
                kept.append(one)
        return kept

    def over_limit(self) -> str:
        used: dict[str, int] = defaultdict(int)
        for name in self.options.pmc:
            block = name.split("_")[0]
            used["SQ" if block == "SQC" else block] += 1
        return ", ".join(block for block, count in used.items() if count > LIMITS.get(block, 99))

    def warn_missing(self) -> None:
        known = counters()
        missing = [name for name in self.options.pmc if name not in known]
        if missing:
            asked, found = ", ".join(self.options.pmc), ", ".join(n for n in self.options.pmc if n in known)
            text = f"Unable to find all counters for agent 4 (gpu-0, gfx942) in [{asked}]. Found: [{found}]. "
            text += f"Missing: [{', '.join(missing)}]"
            print(f"\x1b[0;33mW0101 {text}\x1b[0m" if self.fault == "colours" else f"W0101 {text}", file=sys.stderr)

    # -- rows --------------------------------------------------------------------------------------------------------

    def shared(self, one: dict[str, Any]) -> dict[str, Any]:
        return {
            "Agent_Id": "Agent 4", "Queue_Id": 1, "Stream_Id": 0, "Thread_Id": one["tid"], "Process_Id": one["pid"],
            "Dispatch_Id": one["id"], "Correlation_Id": one["id"], "Kernel_Id": 7, "Kernel_Name": one["name"],
            "Start_Timestamp": one["start"], "End_Timestamp": one["end"], "LDS_Block_Size": 4096, "Scratch_Size": 0,
            "VGPR_Count": 12, "Accum_VGPR_Count": 4, "SGPR_Count": 32,
        }  # fmt: skip

    def kernel_row(self, one: dict[str, Any]) -> dict[str, Any]:
        shape = {f"Workgroup_Size_{axis.upper()}": one[f"b{axis}"] for axis in "xyz"}
        shape |= {f"Grid_Size_{axis.upper()}": one[f"g{axis}"] for axis in "xyz"}
        return {"Kind": "KERNEL_DISPATCH", **self.shared(one), **shape}

    def counter_rows(self, one: dict[str, Any]) -> list[dict[str, Any]]:
        known = counters()
        items, group = one["gx"] * one["gy"] * one["gz"], one["bx"] * one["by"] * one["bz"]
        rows = []
        for name in reversed(self.options.pmc):  # rows come in no order
            if name in known:
                count = items // 64 if name == "SQ_WAVES" else known[name]
                value = "nan" if self.fault == "nan" else f"{0 if self.fault == 'zero' else count:.6f}"
                rows.append({**self.shared(one), "Grid_Size": items, "Workgroup_Size": group, "Counter_Name": name,
                             "Counter_Value": value})  # fmt: skip
        return rows

    def marker_rows(self) -> list[dict[str, Any]]:
        rows = []
        for number, line in enumerate(self.ranges.read_text().splitlines(), 1):
            pid, tid, start, end, name = line.split(" ", 4)
            rows.append({"Domain": "MARKER_CORE_API", "Function": name, "Process_Id": int(pid), "Thread_Id": int(tid),
                         "Correlation_Id": number, "Start_Timestamp": int(start), "End_Timestamp": int(end)})  # fmt: skip
        return rows

    def write(self, name: str, kind: str, columns: list[str], rows: list[dict[str, Any]]) -> None:
        """Strings quoted, numbers bare; quotes in names are not escaped."""
        text = io.StringIO()
        text.write(",".join(f'"{column}"' for column in columns) + "\n")
        for row in rows:
            bare = ("Counter_Value",)
            cells = [row[c] if c in bare or not isinstance(row[c], str) else f'"{row[c]}"' for c in columns]
            text.write(",".join(map(str, cells)) + "\n")
        content = text.getvalue()
        if self.fault == "empty":
            content = ""
        if self.fault == "truncated" and kind == "counter_collection":
            content = content[:-25]
        (self.folder / f"{name}_{kind}.csv").write_text(content)

    # -- PC samples --------------------------------------------------------------------------------------------------

    def as_json(self, launches: list[dict[str, Any]], pid: int) -> dict[str, Any]:
        """What the JSON of a run with PC sampling holds, as far as it is read."""
        texts, offsets = self.disassembled()
        samples = []
        for one in launches:
            if one["name"].startswith("__amd"):
                continue
            for index, text in enumerate(texts):
                waits = text.startswith("s_waitcnt")
                body = {"dispatch_id": one["id"], "pc": {"code_object_id": 2, "code_object_offset": offsets[index]},
                        "wave_issued": 0 if waits else 1,
                        "snapshot": {"stall_reason": REASON + ("WAITCNT" if waits else "NONE")}}  # fmt: skip
                samples += [{"inst_index": index, "record": body}] * (5 if waits else 1)
        symbols = {one["name"]: 2 + number for number, one in enumerate(launches)}
        dispatches = [
            {"thread_id": one["tid"], "start_timestamp": one["start"], "end_timestamp": one["end"],
             "dispatch_info": {"agent_id": {"handle": 99}, "kernel_id": symbols[one["name"]], "dispatch_id": one["id"],
                               "private_segment_size": 0, "group_segment_size": 4096,
                               "workgroup_size": {axis: one[f"b{axis}"] for axis in "xyz"},
                               "grid_size": {axis: one[f"g{axis}"] for axis in "xyz"}}}
            for one in launches
        ]  # fmt: skip
        agent = {"id": {"handle": 99}, "type": 2, "node_id": 4, **{key.lower(): value for key, value in AGENT.items()}}
        process = {
            "metadata": {"pid": pid, "node": {"hostname": "secret-host"}},
            "agents": [agent],
            "counters": [],
            "kernel_symbols": [
                {"kernel_id": 0},
                *({"kernel_id": number, "kernel_name": f"{name}.kd", "formatted_kernel_name": name}
                  for name, number in symbols.items()),
            ],
            "strings": {"pc_sample_instructions": texts, "pc_sample_comments": [""] * len(texts), "buffer_records": []},
            "buffer_records": {"kernel_dispatch": dispatches, "pc_sample_stochastic": samples},
        }  # fmt: skip
        return {"rocprofiler-sdk-tool": [process]}

    def disassembled(self) -> tuple[list[str], list[int]]:
        """Instructions and their addresses in the code object: the launcher's job says which bundle is loaded."""
        from elftools.elf.elffile import ELFFile

        bundle = Path(json.loads(Path(self.program[-1]).read_text())["bundle"])
        kernel, listing = (json.loads((bundle / name).read_text()) for name in ("kernel.json", "listing.json"))
        with (bundle / kernel["binary"]["file"]).open("rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            begin = table.get_symbol_by_name(kernel["symbol"])[0]["st_value"]
        text, offset = (listing["columns"].index(name) for name in ("text", "offset"))
        rows = [row for row in listing["rows"] if row[offset] is not None]
        return [row[text] for row in rows], [begin + row[offset] for row in rows]


if __name__ == "__main__":
    sys.exit(main())
