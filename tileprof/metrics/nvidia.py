"""NVIDIA: formulas from Nsight Compute's counters to canonical metrics, by architecture (sm_75 to sm_120).

Sources: the metric lists of GV100 to GB202 (``nvperf_host``), reports of ncu 2022.4 to 2025.3, and ncu's own section files.
Counters are in base units (ns, bytes, Hz; ``%`` stays percent).  Names that a chip does not have stand for that chip nowhere: a
test holds the table against the chips' lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tileprof.metrics.catalogue import STALL_REASONS, make
from tileprof.metrics.formula import Formula, derive, needed
from tileprof.metrics.ncu_chips import OF_NCU
from tileprof.metrics.ncu_names import INSTRUCTION_COUNTERS, STALL_COUNTERS
from tileprof.store.records import Ceiling, Metric, Provenance

T, A, A6, L = ("sm_75",), ("sm_80",), ("sm_86", "sm_87"), ("sm_89",)
H, B, C = ("sm_90",), ("sm_100", "sm_103"), ("sm_120", "sm_121")
ARCHITECTURES = (*T, *A, *A6, *L, *H, *B, *C)

_CYCLES = "smsp__cycles_elapsed.avg.per_second * gpu__time_duration.sum / 1e9"


def _flop(suffix: str, half: bool, double_rate: bool = False) -> str:
    """FLOPs of vector units; half-precision instructions work on pairs, so do fadd2, fmul2 and ffma2 of Blackwell."""

    def of(name: str) -> str:
        return f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum{suffix}"

    terms = [of("fadd"), of("fmul"), f"2 * {of('ffma')}", of("dadd"), of("dmul"), f"2 * {of('dfma')}"]
    if half:
        terms += [f"2 * {of('hadd')}", f"2 * {of('hmul')}", f"4 * {of('hfma')}"]
    if double_rate:
        terms += [f"2 * {of('fadd2')}", f"2 * {of('fmul2')}", f"4 * {of('ffma2')}"]
    text = " + ".join(terms)
    return f"({text}) * {_CYCLES}" if suffix else text


def _ops(*types: str) -> str:
    return " + ".join(f"sm__ops_path_tensor_{name}.sum" for name in types)


_HMMA = (
    "op_hmma_src_bf16_dst_fp32",
    "op_hmma_src_fp16_dst_fp16",
    "op_hmma_src_fp16_dst_fp32",
    "op_hmma_src_tf32_dst_fp32",
)
_NOT_B = tuple(arch for arch in ARCHITECTURES if arch not in B)
_NO_HALF = "half precision not collected"

FORMULAS: tuple[Formula, ...] = (
    Formula("time.profiled_ns", "gpu__time_duration.sum"),
    Formula("clock.hz", "gpc__cycles_elapsed.avg.per_second"),
    Formula("clock.hz", "sm__cycles_elapsed.avg.per_second"),
    Formula("clock.hz", "smsp__cycles_elapsed.avg.per_second"),
    Formula("clock.memory_hz", "dram__cycles_elapsed.avg.per_second"),
    Formula("cycles.elapsed", "gpc__cycles_elapsed.max"),
    Formula("cycles.elapsed", "sm__cycles_elapsed.max"),
    Formula("dram.read_bytes", "dram__bytes_op_read.sum", C),
    Formula("dram.read_bytes", "dram__bytes_read.sum"),
    Formula("dram.write_bytes", "dram__bytes_op_write.sum", C),
    Formula("dram.write_bytes", "dram__bytes_write.sum"),
    Formula("l2.bytes", "lts__t_bytes.sum"),
    Formula("l2.bytes", "32 * lts__t_sectors.sum", note="a sector is 32 bytes"),
    Formula("l2.read_bytes", "l1tex__m_xbar2l1tex_read_bytes.sum"),
    Formula("l2.hit_rate", "lts__t_sector_hit_rate.pct / 100"),
    Formula("l1.bytes", "l1tex__t_bytes.sum"),
    Formula("l1.hit_rate", "l1tex__t_sector_hit_rate.pct / 100"),
    Formula("busy.compute", "sm__throughput.avg.pct_of_peak_sustained_elapsed / 100"),
    Formula("busy.memory", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed / 100"),
    Formula("busy.dram", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed / 100"),
    Formula("busy.dram", "dram__throughput.avg.pct_of_peak_sustained_elapsed / 100"),
    Formula("busy.l2", "lts__throughput.avg.pct_of_peak_sustained_elapsed / 100"),
    Formula("busy.l1", "l1tex__throughput.avg.pct_of_peak_sustained_active / 100"),
    Formula("busy.matrix", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active / 100"),
    Formula("busy.matrix", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed / 100"),
    Formula("executed.instructions", "smsp__inst_executed.sum"),
    Formula("executed.instructions", "sm__inst_executed.sum"),
    Formula("executed.instructions", INSTRUCTION_COUNTERS["executed.instructions"]),
    Formula("executed.per_cycle", "sm__inst_executed.avg.per_cycle_active"),
    Formula("executed.flop_vector", _flop("", half=True, double_rate=True), B),
    Formula("executed.flop_vector", _flop("", half=True), _NOT_B),
    Formula("executed.flop_vector", _flop("", half=False), _NOT_B, _NO_HALF, "lower bound"),
    Formula("executed.flop_vector", _flop(".per_cycle_elapsed", half=True), _NOT_B),
    Formula("executed.flop_vector", _flop(".per_cycle_elapsed", half=False), _NOT_B, _NO_HALF, "lower bound"),
    Formula("executed.flop_matrix", _ops("src_fp16_bf16_tf32_dst_fp32", "src_fp16_dst_fp16"), T),
    Formula(
        "executed.flop_matrix",
        _ops("src_fp16_dst_fp32", "src_bf16_dst_fp32", "src_fp16_dst_fp16", "src_tf32_dst_fp32", "src_fp64"),
        (*A, *A6),
    ),
    Formula(
        "executed.flop_matrix",
        _ops("src_fp16_dst_fp32", "src_bf16_dst_fp32", "src_fp16_dst_fp16", "src_tf32_dst_fp32", "src_fp64", "src_fp8"),
        L,
    ),
    Formula(
        "executed.flop_matrix",
        _ops(
            "op_hgmma_src_bf16_dst_fp32", "op_hgmma_src_fp16", "op_hgmma_src_tf32_dst_fp32", *_HMMA, "src_fp8", "src_fp64"
        ),
        H,
    ),
    Formula(
        "executed.flop_matrix",
        _ops(
            "op_utchmma_src_bf16_dst_fp32", "op_utchmma_src_fp16_dst_fp16", "op_utchmma_src_fp16_dst_fp32",
            "op_utchmma_src_tf32_dst_fp32", "op_utcqmma_src_fp4_fp6_fp8_dst_fp16", "op_utcqmma_src_fp4_fp6_fp8_dst_fp32",
            "op_utcomma_src_fp4_dst_fp32", *_HMMA, "src_fp64",
        ),
        B,
    ),
    Formula(
        "executed.flop_matrix",
        _ops(
            *_HMMA, "src_fp8_dst_fp16", "src_fp8_dst_fp32", "src_fp4_fp6_dst_fp16", "src_fp4_fp6_dst_fp32",
            "src_fp4_dst_fp32", "src_fp64",
        ),
        C,
    ),
    Formula("occupancy.achieved", "sm__warps_active.avg.pct_of_peak_sustained_active / 100"),
    Formula("occupancy.warps", "sm__warps_active.avg.per_cycle_active"),
    Formula("occupancy.theoretical", "sm__maximum_warps_per_active_cycle_pct / 100"),
    Formula("registers.per_thread", "launch__registers_per_thread"),
    Formula("shared.static_bytes", "launch__shared_mem_per_block_static"),
    Formula("shared.dynamic_bytes", "launch__shared_mem_per_block_dynamic"),
    Formula("launch.threads_per_block", "launch__block_size"),
    Formula("launch.blocks", "launch__grid_size"),
    Formula("shared.transactions", INSTRUCTION_COUNTERS["shared.transactions"]),
    Formula("shared.transactions_ideal", INSTRUCTION_COUNTERS["shared.transactions_ideal"]),
    Formula("shared.conflicts", "memory_l1_wavefronts_shared - memory_l1_wavefronts_shared_ideal"),
    Formula("shared.conflicts", "derived__memory_l1_wavefronts_shared_excessive"),
    Formula("shared.conflicts_hardware", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    Formula("shared.moved_bytes", "128 * l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", note="without asynchronous copies"),
    Formula("shared.bytes", "smsp__sass_data_bytes_mem_shared.sum"),
    Formula("global.sectors", INSTRUCTION_COUNTERS["global.sectors"]),
    Formula("global.sectors_ideal", INSTRUCTION_COUNTERS["global.sectors_ideal"]),
    Formula(
        "global.requests",
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum + l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    ),
    Formula("local.requests", "smsp__inst_executed_op_local_ld.sum + smsp__inst_executed_op_local_st.sum"),
    Formula("local.requests", "smsp__sass_inst_executed_op_local_ld.sum + smsp__sass_inst_executed_op_local_st.sum"),
    Formula("local.requests", "sass__inst_executed_local_loads + sass__inst_executed_local_stores"),
    Formula(
        "local.sectors",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum + l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    ),
    Formula("spill.executed", "sass__inst_executed_register_spilling"),
    Formula("stall.samples", INSTRUCTION_COUNTERS["stall.samples"]),
    *(Formula(f"stall.{reason}", STALL_COUNTERS[f"stall.{reason}"]) for reason in STALL_REASONS),
)  # fmt: skip
"""All formulas; of several for one metric on one architecture the first with all inputs counts."""

DETAILS: dict[tuple[str, str], str] = {
    ("GPU Speed Of Light Throughput", "Duration"): "gpu__time_duration.sum",
    ("GPU Speed Of Light Throughput", "SM Frequency"): "sm__cycles_elapsed.avg.per_second",
    ("GPU Speed Of Light Throughput", "DRAM Frequency"): "dram__cycles_elapsed.avg.per_second",
    ("GPU Speed Of Light Throughput", "Elapsed Cycles"): "gpc__cycles_elapsed.max",
    ("GPU Speed Of Light Throughput", "Memory Throughput"): "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    ("GPU Speed Of Light Throughput", "DRAM Throughput"): "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ("GPU Speed Of Light Throughput", "L1/TEX Cache Throughput"): "l1tex__throughput.avg.pct_of_peak_sustained_active",
    ("GPU Speed Of Light Throughput", "L2 Cache Throughput"): "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    ("GPU Speed Of Light Throughput", "Compute (SM) Throughput"): "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    ("Compute Workload Analysis", "Executed Ipc Active"): "sm__inst_executed.avg.per_cycle_active",
    ("Memory Workload Analysis", "L1/TEX Hit Rate"): "l1tex__t_sector_hit_rate.pct",
    ("Memory Workload Analysis", "L2 Hit Rate"): "lts__t_sector_hit_rate.pct",
    ("Instruction Statistics", "Executed Instructions"): "smsp__inst_executed.sum",
    ("Launch Statistics", "Block Size"): "launch__block_size",
    ("Launch Statistics", "Grid Size"): "launch__grid_size",
    ("Launch Statistics", "Registers Per Thread"): "launch__registers_per_thread",
    ("Launch Statistics", "Dynamic Shared Memory Per Block"): "launch__shared_mem_per_block_dynamic",
    ("Launch Statistics", "Static Shared Memory Per Block"): "launch__shared_mem_per_block_static",
    ("Occupancy", "Theoretical Occupancy"): "sm__maximum_warps_per_active_cycle_pct",
    ("Occupancy", "Achieved Occupancy"): "sm__warps_active.avg.pct_of_peak_sustained_active",
    ("Occupancy", "Achieved Active Warps Per SM"): "sm__warps_active.avg.per_cycle_active",
}  # fmt: skip
"""(section, label) on the details page -> counter.  Labels repeat in several sections with other units, so both are needed."""

_PREFIX = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TIMES = {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}


def base_value(value: float, unit: str) -> float:
    """A counter's value in base units: times in ns, and without the prefix that ncu puts before ``byte``, ``hz`` and the like."""
    word = unit.strip()
    if word in _TIMES:
        return value * _TIMES[word]
    if word.lower() in ("cycle/nsecond", "cycle/ns"):
        return value * 1e9
    if word.lower() in ("cycle/usecond", "cycle/us"):
        return value * 1e6
    found = re.match(r"([KMGT])(?:byte|hz|inst|sector|cycle|thread)", word, re.IGNORECASE)
    return value * _PREFIX[found[1].upper()] if found else value


def launch_metrics(
    values: Mapping[str, float], arch: str, provenance: Provenance, launch: int | None = None
) -> list[Metric]:
    """Canonical metrics of one launch.  ``values`` are counters in base units by full name, ``arch`` as ``sm_90`` ("": unknown)."""
    return derive(FORMULAS, values, arch, provenance, launch)


def requested_for(metrics: Iterable[str], arch: str) -> tuple[str, ...]:
    """Counters to ask ncu for, so that these metrics come out on an architecture; what its sections bring is not among them."""
    counters, _ = needed(FORMULAS, metrics, arch)
    return tuple(name for name in counters if not name.startswith(OF_NCU))


def max_clock_hz(values: Mapping[str, float]) -> float | None:
    """The device's highest clock, which the driver tells in kHz; None where the report does not say."""
    clock = values.get("device__attribute_clock_rate")
    return clock * 1e3 if clock else None


def arch_of(capability: tuple[int, int] | None) -> str:
    """``sm_90`` of compute capability (9, 0); "" where it is not known."""
    return "" if capability is None else f"sm_{capability[0]}{capability[1]}"


# matrix instructions: mnemonic -> operations of one warp-level instruction are 2 * M * N * K
_SHAPE = re.compile(r"^(HMMA|IMMA|DMMA|QMMA|OMMA)\.(?:SP\.)?(\d{3,6})(?:\.|$)")
_GROUP = re.compile(r"^(HGMMA|IGMMA|QGMMA)\.(?:SP\.)?(\d+)x(\d+)x(\d+)(?:\.|$)")
_SHAPES = {
    "8816": (8, 8, 16), "8832": (8, 8, 32), "884": (8, 8, 4), "1688": (16, 8, 8), "1684": (16, 8, 4), "16816": (16, 8, 16),
    "16832": (16, 8, 32), "16864": (16, 8, 64), "168128": (16, 8, 128),
}  # fmt: skip


def matrix_operations(opcode: str) -> tuple[str, float] | None:
    """(metric, operations) of one execution of a matrix instruction by one warp; None for others and for unknown shapes.

    ``HMMA.16816.F32`` is 16 x 8 x 16, counting multiplications and additions.  A warpgroup's instruction (``HGMMA.64x256x16``) is
    issued by four warps for one product, so that a warp's share is a quarter.  HMMA.884 of Volta works on quad pairs and is left
    out.
    """
    if found := _GROUP.match(opcode):
        m, n, k = int(found[2]), int(found[3]), int(found[4])
        return _kind(found[1]), 2.0 * m * n * k / 4
    if found := _SHAPE.match(opcode):
        shape = _SHAPES.get(found[2])
        if shape is None or (found[1] == "HMMA" and found[2] == "884"):
            return None
        return _kind(found[1]), 2.0 * shape[0] * shape[1] * shape[2]
    return None


def _kind(mnemonic: str) -> str:
    return "executed.integer_matrix" if mnemonic.startswith("I") else "executed.flop_matrix"


def opcode_metrics(counts: Mapping[str, float], provenance: Provenance, launch: int | None = None) -> list[Metric]:
    """Operations of matrix units from how often warps executed each opcode; nothing for what no opcode is known of."""
    sums: dict[str, float] = {}
    unknown = [
        name for name in counts if re.match(r"^(?:[HIDQO]MMA|[HIQ]GMMA)\b", name) and matrix_operations(name) is None
    ]
    for name, count in counts.items():
        found = matrix_operations(name)
        if found is not None:
            sums[found[0]] = sums.get(found[0], 0.0) + count * found[1]
    flag = "lower bound" if unknown else None
    source = Provenance(
        "derived", provenance.tool, provenance.version, "executed opcodes times 2 M N K of their shapes"
    )
    rows = (make(name, value, source, launch=launch, flag=flag) for name, value in sums.items())
    return [row for row in rows if row is not None]


_SM_HZ, _DRAM_HZ = "sm__cycles_elapsed.avg.per_second", "dram__cycles_elapsed.avg.per_second"
_ROOFS = (
    ("dram.bytes_per_s", "", "dram__bytes.sum.peak_sustained", 1.0, _DRAM_HZ),
    ("flops_per_s", "vector.float32", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", 2.0, _SM_HZ),
    ("flops_per_s", "vector.float64", "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", 2.0, _SM_HZ),
    (
        "flops_per_s", "matrix.float16",
        "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.peak_sustained", 1.0, _SM_HZ,
    ),
    (
        "flops_per_s", "matrix.bfloat16",
        "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained", 1.0, _SM_HZ,
    ),
    (
        "flops_per_s", "matrix.tfloat32",
        "sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off.sum.peak_sustained", 1.0, _SM_HZ,
    ),
    ("flops_per_s", "matrix.float8_e4m3", "sm__ops_path_tensor_src_fp8_sparsity_off.sum.peak_sustained", 1.0, _SM_HZ),
    ("flops_per_s", "matrix.float64", "sm__ops_path_tensor_src_fp64.sum.peak_sustained", 1.0, _SM_HZ),
)  # fmt: skip
"""Quantity, unit class, peak per cycle, factor, clock.  Only dense peaks: names without ``_sparsity_off`` hold the sparse one."""

ROOF_ITEMS = {
    "Theoretical DRAM Bytes Accessible": "dram__bytes.sum.peak_sustained",
    "DRAM Frequency": _DRAM_HZ,
    "SM Frequency": _SM_HZ,
    "Theoretical Predicated-On FFMA Operations": "ffma_operations",
    "Theoretical Predicated-On DFMA Operations": "dfma_operations",
}
"""Label of an item of the roofline section -> counter; operations count a fused multiply-add as 2 already."""
_ROOF_OPERATIONS = (
    ("flops_per_s", "vector.float32", "ffma_operations", 1.0, _SM_HZ),
    ("flops_per_s", "vector.float64", "dfma_operations", 1.0, _SM_HZ),
)


def ceilings(values: Mapping[str, float], target: str, tool: str, version: str = "") -> tuple[Ceiling, ...]:
    """Limits of the device as a report has them: its own peak per cycle times the clock of that launch."""
    found: dict[tuple[str, str], Ceiling] = {}
    for quantity, unit_class, peak, factor, clock in (*_ROOFS, *_ROOF_OPERATIONS):
        if values.get(peak) and values.get(clock):
            detail = f"{peak} at the {values[clock] / 1e9:.3g} GHz of a profiled launch"
            source = Provenance("derived", tool, version, detail)
            value = factor * values[peak] * values[clock]
            found.setdefault((quantity, unit_class), Ceiling(target, quantity, unit_class, value, source))
    return tuple(found.values())


INPUTS = tuple(
    dict.fromkeys([
        *(name for formula in FORMULAS for name in formula.counters),
        *(name for roof in _ROOFS for name in (roof[2], roof[4])),
        "device__attribute_clock_rate",
    ])
)  # fmt: skip
"""Every counter that a formula or a ceiling takes, and the device's maximum clock in kHz."""
