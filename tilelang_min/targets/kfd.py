"""AMD GPUs of this machine as the kernel's compute driver (KFD) lists them in ``/sys``: no runtime is loaded, no GPU opened.

Form of the files: Linux, ``drivers/gpu/drm/amd/amdkfd/kfd_topology.c``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"

_CONTAINER = "in a container: --device=/dev/kfd --device=/dev/dri --group-add video --security-opt seccomp=unconfined"
REMEDY_GROUPS = f"sudo usermod -a -G render,video $USER, and log in again; {_CONTAINER}"
REMEDY_DRIVER = (
    f"use a machine with an AMD GPU and the amdgpu driver (sudo amdgpu-install --usecase=rocm); {_CONTAINER}"
)


@dataclass(frozen=True, slots=True)
class KfdGpu:
    """One GPU: ``arch`` (``gfx942``), product name ("" where the driver knows none), place on the PCI bus, compute units, dies.

    ``pci`` is ``0000:c1:00``, without the function, which partitions of one GPU differ in.  ``unique_id`` is the number of the
    chip in hexadecimal ("" where it has none), ``node`` the driver's own number.
    """

    node: int
    arch: str
    name: str
    pci: str
    unique_id: str
    units: int
    dies: int


def gfx_name(code: int) -> str:
    """``gfx942`` of 90402, ``gfx90a`` of 90010 (major, minor and stepping, in hexadecimal); "" of 0."""
    return f"gfx{code // 10000}{code // 100 % 100:x}{code % 100:x}" if code else ""


def amd_gpus(root: Path = Path("/")) -> tuple[KfdGpu, ...]:
    """The GPUs below ``root``, in the driver's order; nodes that are processors or cannot be read are passed over."""
    found = []
    for place in sorted((root / TOPOLOGY).glob("*/properties"), key=lambda path: int(path.parent.name)):
        try:
            text = place.read_text(errors="replace")
            name = (place.parent / "name").read_text(errors="replace").strip()
        except OSError:  # a container may not be shown all of them
            continue
        values = {key: int(value) for key, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}
        arch = gfx_name(values.get("gfx_target_version", 0))
        if not arch:
            continue
        location, unique = values.get("location_id", 0), values.get("unique_id", 0)
        found.append(
            KfdGpu(
                node=int(place.parent.name),
                arch=arch,
                name=_product(values.get("drm_render_minor", 0), root) or name,
                pci=f"{values.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}",
                unique_id=f"{unique:016x}" if unique else "",
                units=values.get("simd_count", 0) // (values.get("simd_per_cu", 0) or 4),
                dies=values.get("num_xcc", 0) or 1,
            )
        )
    return tuple(found)


def _product(minor: int, root: Path) -> str:
    """The product name that the board carries, as ``AMD Instinct MI300X``; "" where it carries none."""
    try:
        return (root / f"sys/class/drm/renderD{minor}/device/product_name").read_text(errors="replace").strip()
    except OSError:
        return ""


def visible(gpus: Sequence[KfdGpu], environment: Mapping[str, str] | None = None) -> tuple[KfdGpu, ...]:
    """The GPUs that a HIP program sees, in its order.

    ``ROCR_VISIBLE_DEVICES`` (numbers, or ``GPU-`` and the unique number) chooses first; ``HIP_VISIBLE_DEVICES``, or where that is
    not set ``CUDA_VISIBLE_DEVICES``, counts among what it left (ROCm documentation, GPU isolation techniques).  A list ends at
    the first entry that names no GPU.
    """
    environment = os.environ if environment is None else environment
    chosen = _chosen(gpus, environment.get("ROCR_VISIBLE_DEVICES"))
    return _chosen(chosen, environment.get("HIP_VISIBLE_DEVICES", environment.get("CUDA_VISIBLE_DEVICES")))


def _chosen(gpus: Sequence[KfdGpu], text: str | None) -> tuple[KfdGpu, ...]:
    if text is None:
        return tuple(gpus)
    found: list[KfdGpu] = []
    for word in (part.strip() for part in text.split(",")):
        named = [gpu for gpu in gpus if gpu.unique_id and word.lower() == f"gpu-{gpu.unique_id}"]
        if word.isdigit() and int(word) < len(gpus):
            named = [gpus[int(word)]]
        if not named:
            break
        found += named
    return tuple(found)


def trouble(root: Path = Path("/")) -> tuple[str, str] | None:
    """Why this process cannot use an AMD GPU as far as files tell, and the remedy; None where nothing speaks against it."""
    device = root / "dev/kfd"
    if not device.exists():
        return "no AMD GPU with its driver here: there is no /dev/kfd", REMEDY_DRIVER
    if not os.access(device, os.R_OK | os.W_OK):
        return "no access to /dev/kfd", REMEDY_GROUPS
    nodes = list((root / "dev/dri").glob("renderD*"))
    if nodes and not any(os.access(node, os.R_OK | os.W_OK) for node in nodes):
        return "no access to /dev/dri/renderD*", REMEDY_GROUPS
    return None
