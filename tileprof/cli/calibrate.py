"""``tileprof calibrate``: measure this machine's ceilings with our own kernels, and keep them."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from tileprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tileprof.plan.machine import Gpu
    from tileprof.store.records import Ceiling


@click.command()
@click.option(
    "--target", metavar="NAME", help="cpu, or the architecture of the GPU.  [default: the GPU that is here, else cpu]"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--dry-run", is_flag=True, help="Say what would be measured, and where it is kept.")
def calibrate(target: str | None, as_json: bool, dry_run: bool) -> int:
    """Measure this machine's ceilings with our own kernels: DRAM, L2, shared memory, multiply-adds, matrix units.

    They are kept for this machine, and rooflines use them in place of datasheet figures.
    """
    from tileprof.collect import calibrate as collect
    from tileprof.plan.machine import probe

    machine = probe()
    if target is None:
        target = default_target(machine.gpus)
    kind, _, arch = target.partition(":")
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    if kind == "cpu":
        key = collect.machine_key(machine.cpu, f"{machine.cores} cores")
        if dry_run:
            click.echo(f"memory and float32 multiply-adds of {key}, kept in {collect.data_file()}")
            return 0
        measured = collect.calibrate_cpu("cpu")
    else:
        gpu = machine.gpu_for(kind, arch)
        if gpu is None:
            here = ", ".join(f"{g.name} ({g.arch})" for g in machine.gpus) or "none"
            raise UsageError(
                f"{target} cannot be calibrated: GPUs here are {here}", remedy="leave --target out, or give cpu"
            )
        key = collect.machine_key(gpu.name, arch)
        units, l2_bytes = device_facts()
        if dry_run:
            names = [item.name for item in collect.probes(target, units, l2_bytes)]
            click.echo(f"{', '.join(names)} of {key}, kept in {collect.data_file()}")
            return 0
        measured = collect.calibrate_gpu(target, units, l2_bytes, say)
    path = collect.save(key, measured, date)
    if as_json:
        click.echo(json.dumps([asdict(ceiling) for ceiling in measured], indent=1))
    else:
        for ceiling in measured:
            click.echo(line_of(ceiling))
    click.echo(f"kept for {key} in {path}", err=True)
    return 0


def default_target(gpus: Sequence[Gpu]) -> str:
    """The target of the first GPU that there is one for, NVIDIA's first; else cpu."""
    import tilelang_min as tilelang

    for gpu in gpus:
        if gpu.vendor == "nvidia":
            return f"cuda:{gpu_target(gpu.arch)}"
        if f"hip:{gpu.arch}" in tilelang.targets.names():
            return f"hip:{gpu.arch}"
    return "cpu"


def gpu_target(capability: str) -> str:
    """``sm_90a`` of ``9.0``: the architecture with the device's own instructions where the compiler has one."""
    import tilelang_min as tilelang

    plain = f"sm_{capability.replace('.', '')}"
    for name in (f"{plain}a", plain):
        try:
            tilelang.targets.resolve(f"cuda:{name}")
        except tilelang.errors.TileLangError:
            continue
        return name
    raise UsageError(
        f"the compiler knows no target for compute capability {capability}", remedy="name one with --target"
    )


def device_facts() -> tuple[int, int]:
    """Multiprocessors or compute units, and bytes of L2 (on AMD of one die), of the first GPU."""
    import tilelang_min as tilelang

    info = tilelang.device_info()
    return info.units, info.l2_bytes


def say(name: str, ceiling: Ceiling | None, why: str) -> None:
    """Progress on standard error."""
    click.echo(f"{name}: {'done' if ceiling is not None else f'not measured: {why}'}", err=True)


def line_of(ceiling: Ceiling) -> str:
    """``vector.float32   66.9 TFLOP/s   independent multiply-adds ...``"""
    unit = "FLOP/s" if ceiling.quantity == "flops_per_s" else "B/s"
    name = ceiling.unit_class or ceiling.quantity.partition(".")[0]
    scale, prefix = next((s, p) for s, p in ((1e12, "T"), (1e9, "G"), (1.0, "")) if ceiling.value >= s or s == 1.0)
    return f"{name:<18}{ceiling.value / scale:8.1f} {prefix}{unit:<8}{ceiling.provenance.detail}"


COMMAND = calibrate
