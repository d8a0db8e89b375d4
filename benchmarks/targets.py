"""One matrix product, the same source, compiled for every target: rewrites the tables of docs/targets.md.

    python benchmarks/targets.py [--check] [--times] [--target NAME]...

Nothing is launched.  Registers, shared bytes and spills are what the vendors' compilers report, occupancy follows from them,
conflicts are simulated for the whole launch, and the compile time is that of this machine (launchable, and with its listing; best
of three, imports done).  ``--check`` compares the figures that do not depend on the machine with the document and writes nothing.
``--times`` measures and rewrites the compile times alone.
``--target`` prints the rows of single targets; ``cuda:sm_70`` is one that needs the extra ``volta``.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tilelang_min as tilelang  # noqa: E402
import tilelang_min.language as T  # noqa: E402

DOCUMENT = ROOT / "docs" / "targets.md"
SIZE = 1024
TARGETS = (
    "cpu:x86-64-v3",
    *(f"cuda:{arch}" for arch in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")),
    *(f"hip:{arch}" for arch in ("gfx90a", "gfx942", "gfx950")),
)
COLUMNS = (
    "target",
    "matrix product by",
    "registers a thread",
    "shared bytes",
    "spills",
    "occupancy",
    "limited by",
    "conflicts",
    "instructions",
)
STABLE = ("target", "matrix product by", "shared bytes", "spills")
"""What does not change whenever the compiler emits an instruction more or less; a test compares these."""

TIME = "compile time, ms: wall / processor / whole"
REPEATS = 3


@T.prim_func
def matmul(
    A: T.Tensor((SIZE, SIZE), "float16"), B: T.Tensor((SIZE, SIZE), "float16"), C: T.Tensor((SIZE, SIZE), "float32")
):
    with T.Kernel(SIZE // 64, SIZE // 64, threads=128) as (bx, by):
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(SIZE // 32, num_stages=2):
            T.copy(A[by * 64, ko * 32], A_shared)
            T.copy(B[ko * 32, bx * 64], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 64, bx * 64])


def kernel_for(target: str) -> Any:
    """The product for one target, compiled now."""
    return tilelang.compile(matmul, target, cache=False)


def static_row(kernel: Any) -> dict[str, str]:
    """What the compilers say of a kernel, as texts by column."""
    metadata = kernel.metadata
    product = kernel.bundle_record()["decisions"]["products"][0]
    registers = "" if metadata.registers_per_thread is None else str(metadata.registers_per_thread)
    if metadata.agprs:
        registers += f" ({metadata.agprs} accumulation)"
    spilled = [metadata.spill_store_bytes, metadata.spill_load_bytes, metadata.spilled_vgprs, metadata.spilled_sgprs]
    known = [count for count in spilled if count is not None]
    shared = (metadata.shared_bytes_static or 0) + (metadata.shared_bytes_dynamic or 0)
    return {
        "target": f"`{kernel.bundle_record()['target']}`",
        "matrix product by": _instruction(product),
        "registers a thread": registers,
        "shared bytes": f"{shared:,}" if kernel.target.kind != "cpu" else "",
        "spills": ("none" if not any(known) else ", ".join(map(str, known))) if known else "",
        "occupancy": "" if metadata.occupancy is None else f"{metadata.occupancy:.0%}",
        "limited by": ", ".join(metadata.occupancy_limiters),
        "instructions": f"{sum(metadata.instructions['total'].values()):,}",
    }


def _instruction(product: dict[str, Any]) -> str:
    name = product["instruction"]
    if name is None:
        return "vector FMA"
    return f"`{name.removeprefix('llvm.amdgcn.').replace('.sync.aligned', '').replace('.row.col', '')}`"


def conflicts(kernel: Any) -> str:
    """Extra transactions of shared memory in a whole launch, of all that can be counted; other kinds are named."""
    if kernel.target.kind == "cpu":
        return ""
    counts = [count for count in kernel.analyse().counts if count.space == "shared"]
    counted = [count for count in counts if count.transactions is not None]
    extra = sum(count.transactions - count.transactions_ideal for count in counted)
    open_ends = sorted({count.access for count in counts if count.transactions is None})
    said = f"{extra:,} of {sum(count.transactions for count in counted):,}"
    return said + (f"; not counted: {', '.join(open_ends)}" if open_ends else "")


def seconds(target: str) -> str:
    """Compile time in milliseconds: until the kernel can be launched, by the clock and of processors (which suffers less from other
    work), and until all is known about it.  The best of each."""
    wall = processor = whole = float("inf")
    for _ in range(REPEATS):
        start, before = time.perf_counter(), sum(os.times()[:4])
        kernel = kernel_for(target)
        wall = min(wall, time.perf_counter() - start)
        processor = min(processor, sum(os.times()[:4]) - before)
        assert kernel.metadata is not None  # waits for the listing
        whole = min(whole, time.perf_counter() - start)
    return f"{wall * 1e3:.0f} / {processor * 1e3:.0f} / {whole * 1e3:.0f}"


def capacity_row(name: str) -> dict[str, str]:
    """What a target has, from its record."""
    from tilelang_min.targets import resolve

    target = resolve(name)
    file, limits = target.registers, target.limits
    if limits is None:
        return {}
    return {
        "target": f"`{name}`",
        "shared bytes a block": f"{target.shared.block_limit:,}",
        "shared bytes a unit": f"{target.shared.unit_bytes:,}",
        "registers a thread": str(file.per_thread),
        "threads a block": f"{target.max_threads_per_block:,}",
        "warp": str(target.warp_size),
        "warps a unit": str(limits.max_warps),
        "blocks a unit": str(limits.max_blocks),
        "instructions it has": ", ".join(sorted(target.features)),
    }


def table(rows: list[dict[str, str]]) -> str:
    """A Markdown table."""
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([row.get(column, "") for column in columns] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def between(text: str, mark: str) -> tuple[int, int]:
    """Where the part of a document lies that this script writes."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    return text.index(begin) + len(begin), text.index(end)


def replaced(text: str, mark: str, content: str) -> str:
    """``text`` with another part between its marks."""
    start, end = between(text, mark)
    return text[:start] + content + text[end:]


def documented(mark: str = "products") -> dict[str, dict[str, str]]:
    """Rows of a table in the document, by target."""
    text = DOCUMENT.read_text(encoding="utf-8")
    start, end = between(text, mark)
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text[start:end].splitlines()
        if line[:1] == "|"
    ]
    return {line[0].strip("`"): dict(zip(lines[0], line, strict=True)) for line in lines[2:]}


def compilers() -> str:
    """The versions that the static figures depend on."""
    from tilelang_min.driver.versions import tool_versions

    versions = tool_versions()
    return ", ".join(f"{name} {versions[name]}" for name in ("apache-tvm", "nvidia-cuda-nvrtc", "ziglang"))


def differences(targets: tuple[str, ...], columns: tuple[str, ...] = COLUMNS) -> list[str]:
    """Where the document says something else in some columns than comes out now."""
    rows = documented()
    found = []
    for target in targets:
        kernel = kernel_for(target)
        now = static_row(kernel)
        if "conflicts" in columns:
            now["conflicts"] = conflicts(kernel)
        for column in columns:
            value = now[column]
            written = rows.get(target, {}).get(column, "(no such row)")
            if value != written:
                found.append(f"{target}, {column}: {value!r} now, {written!r} in {DOCUMENT.name}")
    return found


def main() -> int:
    """Rewrite the document, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--target", action="append")
    arguments = parser.parse_args()
    if arguments.check:
        found = differences(TARGETS)
        print("\n".join(found) or "the document is right")
        return 1 if found else 0
    rows = []
    for target in arguments.target or TARGETS:
        print(target, file=sys.stderr, flush=True)
        kernel = kernel_for(target)  # also pays what only the first kernel for a target costs
        if arguments.times:
            row = {**documented()[target], TIME: seconds(target)}
        else:
            row = {**static_row(kernel), "conflicts": conflicts(kernel), TIME: seconds(target)}
        rows.append({column: row[column] for column in (*COLUMNS, TIME)})
    if arguments.target:
        print(table(rows))
        return 0
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    text = DOCUMENT.read_text(encoding="utf-8")
    text = replaced(text, "capacities", table([row for row in map(capacity_row, TARGETS) if row]))
    text = replaced(text, "products", table(rows))
    text = replaced(text, "compilers", f"{compilers()}; compile times: {machine}\n")
    DOCUMENT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
