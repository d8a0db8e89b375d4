"""What this machine is: processor, GPUs, drivers, versions of what is installed.  Never its name or its users.

Everything is asked of the file system and of vendor tools in child processes: this process never opens a GPU.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from tilelang_min import targets as tilelang_targets

PACKAGES = (
    "apache-tvm",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-nvdisasm",
    "ziglang",
    "numpy",
    "cuda-core",
    "cuda-bindings",
    "amdsmi",
    "ncu-report",
    "torch",
)
"""Packages whose versions are kept with a run."""

_ASK_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: product name, ``arch`` (``9.0`` on NVIDIA, ``gfx942`` on AMD), driver version."""

    vendor: str
    name: str
    arch: str
    driver: str

    @property
    def binary_arch(self) -> str:
        """The architecture as binaries are named: ``sm_90``, ``gfx942``."""
        return f"sm_{self.arch.replace('.', '')}" if self.vendor == "nvidia" else self.arch


@dataclass(frozen=True)
class Machine:
    """The machine a run was made on."""

    cpu: str
    cpu_level: str
    cores: int
    memory_bytes: int | None
    system: str
    python: str
    gpus: tuple[Gpu, ...] = ()
    packages: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return asdict(self)

    def gpu_for(self, kind: str, arch: str) -> Gpu | None:
        """The first GPU that runs binaries of a target, or None."""
        vendor = {"cuda": "nvidia", "hip": "amd"}.get(kind)
        return next((gpu for gpu in self.gpus if gpu.vendor == vendor and runs_on(arch, gpu)), None)


def runs_on(arch: str, gpu: Gpu) -> bool:
    """Whether a binary for ``arch`` runs on a GPU; the rule is :func:`tilelang_min.targets.runs_on`."""
    device = gpu.arch if gpu.vendor == "amd" else f"sm_{gpu.arch.replace('.', '')}"
    return tilelang_targets.runs_on(arch, device)


def probe() -> Machine:
    """The machine this process runs on."""
    return Machine(
        cpu=tilelang_targets.processor_name(),
        cpu_level=tilelang_targets.resolve("cpu").arch,
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=_memory_bytes(),
        system=f"{platform.system()} {_release(platform.release())}",
        python=platform.python_version(),
        gpus=(*nvidia_gpus(), *amd_gpus()),
        packages=installed(PACKAGES),
    )


def installed(packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of those packages that are installed."""
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _release(text: str) -> str:
    """The numbers of a kernel release; what a site appends to them may name it."""
    found = re.match(r"\d+(\.\d+)*", text)
    return found[0] if found else ""


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _ask(command: list[str]) -> str | None:
    """What a tool prints, or None where it is missing, fails or hangs."""
    path = shutil.which(command[0])
    if path is None:
        return None
    try:
        answer = subprocess.run([path, *command[1:]], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


def nvidia_gpus() -> tuple[Gpu, ...]:
    """NVIDIA GPUs as nvidia-smi lists them."""
    text = _ask(["nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"])
    return parse_nvidia_smi(text) if text else ()


def parse_nvidia_smi(text: str) -> tuple[Gpu, ...]:
    """GPUs in ``name, compute capability, driver`` lines; other lines are passed over."""
    gpus = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 3 and re.fullmatch(r"\d+\.\d+", parts[1]):
            gpus.append(Gpu("nvidia", parts[0], parts[1], parts[2]))
    return tuple(gpus)


def amd_gpus(root: Path = Path("/")) -> tuple[Gpu, ...]:
    """AMD GPUs as the kernel's KFD topology lists them."""
    version = root / "sys/module/amdgpu/version"
    driver = version.read_text(errors="replace").strip() if version.is_file() else ""
    return tuple(Gpu("amd", _amd_product(gpu), gpu.arch, driver) for gpu in tilelang_targets.amd_gpus(root))


def _amd_product(gpu: tilelang_targets.KfdGpu) -> str:
    """The product's name: the board's own, or that of the only known device with as many compute units.

    Boards without one go by names as ``ip discovery`` or ``aqua_vanjaram``.
    """
    known = f"hip:{gpu.arch}" in tilelang_targets.names()
    devices = tilelang_targets.resolve(f"hip:{gpu.arch}").devices if known else ()
    if any(device.name.split()[0] in gpu.name for device in devices):
        return gpu.name
    alike = [device.name for device in devices if device.units == gpu.units]
    return alike[0] if len(alike) == 1 else gpu.name or "AMD GPU"
