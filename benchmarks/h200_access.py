"""Measure what Nsight Compute counts for single warp-wide accesses on a GPU: the data behind ``tilelang_min.access``.

    python benchmarks/h200_access.py prepare DIR [--seed N] [--scale N]   # kernels and patterns; needs NVRTC, no GPU
                                            [--kinds RE]                  # atomics: "red.*", data of the same tests
    python benchmarks/h200_access.py measure DIR OUT                      # needs a GPU, cuda-bindings and ncu
    python benchmarks/h200_access.py collect DIR OUT                      # report -> counts.npz; needs ncu_report
    python benchmarks/h200_access.py select DIR OUT DATA [--every N]      # -> DATA/<kind>.json, the data of the tests

A kernel of one warp holds some hundred times the same instruction, each with a pattern of its own read from memory; ncu's
counters per instruction then are counts per pattern.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import sys
import time
import zlib
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from h200_access_patterns import (  # noqa: E402
    SHARED_BYTES,
    SOURCE_BYTES,
    Pattern,
    accesses,
    atomics,
    copies,
    zero_filled,
)

SITES = 512
METRICS = (
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
)
_VECTORS = {
    1: ("u8", "%0"),
    2: ("u16", "%0"),
    4: ("u32", "%0"),
    8: ("v2.u32", "{%0, %1}"),
    16: ("v4.u32", "{%0, %1, %2, %3}"),
}
ATOMIC_METRICS = ("inst_executed", "thread_inst_executed")
"""Counted as well for atomics, of which some are loops."""
_ATOMICS = {
    "add32": ("add.u32", 4, "mov.b32 d, %6;", "b32"),
    "max32": ("max.s32", 4, "mov.b32 d, %6;", "b32"),
    "add64": ("add.u64", 8, "cvt.u64.u32 d, %6;", "b64"),
    "addf32": ("add.f32", 4, "cvt.rn.f32.s32 d, %6;", "f32"),
    "addf64": ("add.f64", 8, "cvt.rn.f64.s32 d, %6;", "f64"),
    "addf16x2": ("add.noftz.f16x2", 4, "mov.b32 d, 0x3c003c00;", "b32"),
    "addbf16x2": ("add.noftz.bf16x2", 4, "mov.b32 d, 0x3f803f80;", "b32"),
}
_MATRICES = {1: "{%0}", 2: "{%0, %1}", 4: "{%0, %1, %2, %3}"}


@dataclass(frozen=True)
class Probe:
    """An instruction to measure.

    ``opcode`` in SASS, ``width`` bytes a lane, ``ptx`` with %0 to %3 data, %4 the shared and %5 the global address, ``n`` the
    bytes to read.  ``form``: how lanes are switched off: ``predicate``, ``branch``, or ``all`` where none is.  ``size``: none,
    ``any`` number of bytes to read, or ``all-or-none``, which compiles to a predicate.
    """

    kind: str
    opcode: str
    width: int
    ptx: str
    form: str = "predicate"
    size: str = ""
    before: str = ""

    def source(self) -> str:
        """The kernel, CUDA C++."""
        count = {
            "": "",
            "any": "mov.u32 n, %6;",
            "all-or-none": f"setp.ne.s32 r, %6, 0; selp.u32 n, {self.width}, 0, r;",
        }
        guard = "@q " if self.form == "predicate" else ""
        # ptxas drops an ldmatrix whose result nobody reads, volatile or not, and changes the order of those that are left.
        used = "sum += x + y + z + w; __syncwarp();" if self.opcode == "LDSM" else ""
        repeat = "#pragma unroll 1\n    for (int n = p.w; n > 0; --n)" if self.form == "branch" else ""
        # Atomics that are loops end when memory has changed: it must hold numbers.
        zero = f"for (int i = threadIdx.x; i < {SHARED_BYTES}; i += 32) ((volatile char *)tile)[i] = 0; __syncwarp();"
        clear = zero if self.before else ""
        return f"""
extern "C" __global__ void __launch_bounds__(32) probe_{self.kind}(const int4 *patterns, char *memory) {{
  __shared__ __align__(1024) char tile[{SHARED_BYTES}];
  unsigned base = (unsigned)__cvta_generic_to_shared(tile), sum = 0;
  {clear}
#pragma unroll
  for (int i = 0; i < {SITES}; ++i) {{
    unsigned x = 0, y = 0, z = 0, w = 0;
    int4 p = __ldg(patterns + 32 * i + threadIdx.x);
    {repeat}
    asm volatile("{{ .reg .pred q, r; .reg .u32 n; setp.ne.s32 q, %7, 0; {count[self.size]} {self.before} {guard}{self.ptx} }}"
      : "+r"(x), "+r"(y), "+r"(z), "+r"(w) : "r"(base + p.x), "l"(memory + p.y), "r"(p.z), "r"(p.w) : "memory");
    {used}
  }}
  if (sum == 0x12345678) *memory = 1;
  asm volatile("cp.async.wait_all;" ::: "memory");
}}
"""


def probes() -> dict[str, Probe]:
    """Every instruction by its kind: operation, bytes a lane (matrices), then z or s with a size to read, u or b the form."""
    made = []
    for cache, width in (("cg", 16), ("ca", 4), ("ca", 8), ("ca", 16)):
        copy = f"cp.async.{cache}.shared.global [%4], [%5], {width}"
        name = f"{cache}{width}"
        made.append(Probe(name, "LDGSTS", width, f"{copy};"))
        made.append(Probe(f"{name}z", "LDGSTS", width, f"{copy}, n;", size="any"))
        made.append(Probe(f"{name}s", "LDGSTS", width, f"{copy}, n;", size="all-or-none"))
        made.append(Probe(f"{name}su", "LDGSTS", width, f"{copy}, n;", "all", "all-or-none"))
        if cache == "cg":
            made.append(Probe(f"{name}u", "LDGSTS", width, f"{copy};", "all"))
            made.append(Probe(f"{name}zu", "LDGSTS", width, f"{copy}, n;", "all", "any"))
            made.append(Probe(f"{name}b", "LDGSTS", width, f"{copy};", "branch"))
    for width, (vector, data) in _VECTORS.items():
        made.append(Probe(f"lds{width}", "LDS", width, f"ld.volatile.shared.{vector} {data}, [%4];"))
        made.append(Probe(f"sts{width}", "STS", width, f"st.volatile.shared.{vector} [%4], {data};"))
        made.append(Probe(f"ldg{width}", "LDG", width, f"ld.volatile.global.{vector} {data}, [%5];"))
        made.append(Probe(f"stg{width}", "STG", width, f"st.volatile.global.{vector} [%5], {data};"))
    made.append(Probe("lds16b", "LDS", 16, "ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];", "branch"))
    for matrices, data in _MATRICES.items():
        shape = f"sync.aligned.m8n8.x{matrices}.shared.b16"
        made.append(Probe(f"ldsm{matrices}", "LDSM", 16, f"ldmatrix.{shape} {data}, [%4];", "all"))
        made.append(Probe(f"stsm{matrices}", "STSM", 16, f"stmatrix.{shape} [%4], {data};", "all"))
    for name, (operation, width, before, register) in _ATOMICS.items():
        ready = f".reg .{register} d; {before}"
        shared, tensor = f"red.shared.{operation} [%4], d;", f"red.relaxed.gpu.global.{operation} [%5], d;"
        made.append(Probe(f"reds_{name}", "ATOMS", width, shared, before=ready))
        made.append(Probe(f"redg_{name}", "REDG", width, tensor, before=ready))
        if name not in ("add32", "max32"):  # loops of a load and a compare-and-swap
            made.append(Probe(f"redl_{name}", "LDS", width, shared, before=ready))
    # Ones have an instruction of their own.
    made.append(Probe("redp_add32", "ATOMS", 4, "red.shared.add.u32 [%4], 1;", before=".reg .b32 d;"))
    return {probe.kind: probe for probe in made}


def patterns(probe: Probe, seed: int, scale: int) -> list[Pattern]:
    """The patterns of one instruction."""
    if probe.opcode == "LDGSTS":
        if probe.size:
            made = zero_filled(probe.width, seed, 4 * scale, whole=probe.size != "any")
        else:
            made = copies(probe.width, seed, 3 * scale if probe.kind == "cg16" else scale)
    elif probe.before:
        made = atomics(probe.width, seed, scale)
    else:
        made = accesses(probe.width, seed, 3 * scale if probe.kind in ("lds8", "lds16") else scale)
    return [pattern.all_active() for pattern in made] if probe.form == "all" else made


def prepare(folder: Path, seed: int, scale: int, kinds: str) -> int:
    """Compile the kernels and write the patterns."""
    from tilelang_min.codegen.nvidia.nvrtc import compile_cubin, version

    folder.mkdir(parents=True, exist_ok=True)
    chosen = {kind: probe for kind, probe in probes().items() if re.fullmatch(kinds, kind)}
    code = "".join(probe.source() for probe in chosen.values())
    (folder / "probes.cubin").write_bytes(compile_cubin(code, arch="sm_90a", name="probes").cubin)
    arrays: dict[str, npt.NDArray[Any]] = {}
    families: dict[str, list[str]] = {}
    for kind, probe in chosen.items():
        made = patterns(probe, seed, scale)
        arrays[kind] = np.array([[p.target, p.source, p.size, p.active] for p in made], np.int32).transpose(0, 2, 1)
        families[kind] = [p.family for p in made]
        print(f"{kind:6} {len(made):6} patterns")
    np.savez_compressed(folder / "patterns.npz", **arrays)  # type: ignore[arg-type]
    facts = {"seed": seed, "scale": scale, "nvrtc": version(), "families": families}
    (folder / "families.json").write_text(json.dumps(facts))
    return 0


def launch(folder: Path) -> int:
    """The child under the profiler: every kind, ``SITES`` patterns a launch."""
    from tilelang_min.runtime.cuda import call, ensure_context

    ensure_context()
    module = call("cuModuleLoadData", (folder / "probes.cubin").read_bytes())
    memory = int(call("cuMemAlloc", SOURCE_BYTES + 4096))
    call("cuMemsetD8", memory, 0, SOURCE_BYTES + 4096)
    buffer = int(call("cuMemAlloc", SITES * 512))
    values = (ctypes.c_uint64 * 2)(buffer, memory)
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(values), ctypes.addressof(values) + 8)
    with np.load(folder / "patterns.npz") as arrays:
        for kind in arrays.files:
            function = call("cuModuleGetFunction", module, f"probe_{kind}".encode())
            rows = arrays[kind]
            for first in range(0, len(rows), SITES):
                part = np.zeros((SITES, 32, 4), np.int32)  # a last part's other sites have no active lane
                part[: len(rows[first : first + SITES])] = rows[first : first + SITES]
                call("cuMemcpyHtoD", buffer, np.ascontiguousarray(part).ctypes.data, part.nbytes)
                call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, 0, ctypes.addressof(pointers), 0)
                call("cuCtxSynchronize")
    return 0


def measure(folder: Path, out: Path) -> int:
    """Profile the child, a report for all launches."""
    from tileprof.collect import ncu

    path = ncu.find()
    if path is None:
        print("ncu not found")
        return 1
    out.mkdir(parents=True, exist_ok=True)
    command = [path, "--clock-control", "none", "--cache-control", "none", "--metrics", ",".join(METRICS), "-f"]
    command[command.index("--metrics") + 1] += "," + ",".join(ATOMIC_METRICS)
    command += ["-o", str(out / "probes"), sys.executable, __file__, "launch", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    print(done.stdout[-800:], done.stderr[-1500:], "rc", done.returncode)
    return done.returncode


def collect(folder: Path, out: Path) -> int:
    """The report -> ``counts.npz``: for each kind, (patterns, metrics) in the order of ``METRICS``, -1 where there is no value.

    ``guards.json`` gets the predicate registers of each instruction, on which ncu's counts were found to depend.
    """
    import ncu_report

    with np.load(folder / "patterns.npz") as arrays:
        lengths = {kind: len(arrays[kind]) for kind in arrays.files}
    known = probes()
    found: dict[str, list[list[int]]] = {kind: [] for kind in lengths}
    guards: dict[str, list[str]] = {}
    context = ncu_report.load_report(str(out / "probes.ncu-rep"))
    ranges = [context.range_by_idx(r) for r in range(context.num_ranges())]
    for action in (each.action_by_idx(a) for each in ranges for a in range(each.num_actions())):
        kind = action.name().removeprefix("probe_")
        values = []
        for name in METRICS:
            metric = action[name]
            places = metric.correlation_ids()
            values.append({places.value(i): int(metric.value(i)) for i in range(metric.num_instances())})
        texts = {place: action.sass_by_pc(place) for place in sorted(set().union(*values))}
        chosen = [place for place, text in texts.items() if _is_probe(text, known[kind].opcode)]
        if len(chosen) != SITES:
            print(f"{kind}: {len(chosen)} instructions instead of {SITES}: {sorted(set(texts.values()))[:20]}")
            return 1
        guards[kind] = [_predicates(texts[place]) for place in chosen]
        found[kind] += [[value.get(place, -1) for value in values] for place in chosen]
    made = {kind: np.array(rows[: lengths[kind]], np.int32) for kind, rows in found.items()}
    np.savez_compressed(out / "counts.npz", **made)  # type: ignore[arg-type]
    version = re.search(rb"(\d{4}\.\d+\.\d+)\.\d+ \(build \d+\)", (out / "probes.ncu-rep").read_bytes())
    facts = {"ncu": version[1].decode() if version else None, "date": time.strftime("%Y-%m-%d"), "guards": guards}
    (out / "guards.json").write_text(json.dumps(facts))
    print({kind: len(rows) for kind, rows in made.items()})
    return 0


def _is_probe(text: str, opcode: str) -> bool:
    """Whether an instruction is one of those measured; the patterns themselves are read by LDG.E.128.CONSTANT."""
    return re.match(rf"(@!?U?P\d\s+)?{opcode}(\.(?!.*CONSTANT)| )", text.strip()) is not None


def _predicates(text: str) -> str:
    """``P1 !P3``: the predicate that guards an instruction, then the one that says whether it reads (- for none)."""
    guard = re.match(r"\s*@(!?U?P\d)", text)
    reads = re.search(r"\], (!?U?P\d)\b", text)
    return f"{guard[1] if guard else '-'} {reads[1] if reads else '-'}"


def packed(values: npt.NDArray[Any]) -> str:
    """Integers as text: little-endian int32, compressed by zlib, in base64."""
    return b64encode(zlib.compress(np.ascontiguousarray(values, "<i4").tobytes(), 9)).decode()


def select(folder: Path, out: Path, data: Path, every: int) -> int:
    """Some of the measured patterns of each kind -> ``DATA/<kind>.json``.

    Leaves out copies past the cache that have the predicate register P0: ncu 2025.3 takes it for false there (or, with a
    size of any number of bytes, for true), whatever its lanes say.
    """
    facts = json.loads((folder / "families.json").read_text())
    measured = json.loads((out / "guards.json").read_text())
    data.mkdir(parents=True, exist_ok=True)
    with np.load(folder / "patterns.npz") as arrays, np.load(out / "counts.npz") as counts:
        for kind in arrays.files:
            every_nth = range(facts["seed"] % every, len(arrays[kind]), every)
            guards = measured["guards"][kind]
            chosen = [i for i in every_nth if not (kind.startswith("cg") and "P0" in guards[i % SITES])]
            rows = arrays[kind][chosen]
            names = sorted({facts["families"][kind][i] for i in chosen})
            content = {
                "kind": kind,
                "ptx": probes()[kind].ptx,
                "device": "NVIDIA H200",
                "ncu": measured["ncu"],
                "date": measured["date"],
                "metrics": METRICS,
                "patterns": len(rows),
                "families": names,
                "family": packed(np.array([names.index(facts["families"][kind][i]) for i in chosen])),
                "target": packed(rows[:, :, 0]),
                "source": packed(rows[:, :, 1]),
                "size": packed(rows[:, :, 2]),
                "active": packed(rows[:, :, 3]),
                "counts": packed(counts[kind][chosen][:, :4]),
            }
            (data / f"{kind}.json").write_text(json.dumps(content, indent=1) + "\n")
    return 0


def main() -> int:
    """One of the verbs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("prepare", "measure", "collect", "select", "launch"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--kinds", default=".*", help="regular expression")
    parser.add_argument("--every", type=int, default=7)
    given = parser.parse_args()
    if given.verb == "prepare":
        return prepare(given.folder, given.seed, given.scale, given.kinds)
    if given.verb == "launch":
        return launch(given.folder)
    if given.out is None or (given.verb == "select" and given.data is None):
        parser.error("which folder for the results?")
    if given.verb == "select":
        return select(given.folder, given.out, given.data, given.every)
    return (measure if given.verb == "measure" else collect)(given.folder, given.out)


if __name__ == "__main__":
    sys.exit(main())
