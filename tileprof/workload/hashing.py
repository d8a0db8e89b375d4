"""The content hash of a case: one digest of everything that decides its result."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from tileprof import __version__
from tileprof.workload.records import Case, FunctionReference, KernelEntry

_TOOLCHAIN = ("apache-tvm", "nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm", "ziglang", "numpy")


@cache
def toolchain_versions() -> dict[str, str]:
    """Versions of the installed packages that decide what is compiled; absent ones are left out."""
    versions = {"tileprof": __version__}
    for package in _TOOLCHAIN:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


@cache
def _file_digest(file: str, _modified: int) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _content(reference: FunctionReference | str | None) -> str | None:
    """Digest of the file behind a reference or of a bundle; the text itself where no file can be read."""
    if reference is None:
        return None
    file = reference if isinstance(reference, str) else reference.file
    if file is None:
        return str(reference)
    path = Path(file)
    try:
        if path.is_dir():
            parts = [_file_digest(str(p), p.stat().st_mtime_ns) for p in sorted(path.iterdir()) if p.is_file()]
            return hashlib.sha256("".join(parts).encode()).hexdigest()
        digest = _file_digest(file, path.stat().st_mtime_ns)
    except OSError:
        return str(file)
    return digest if isinstance(reference, str) else f"{digest}:{reference.function}"


def kernel_digest(kernel: KernelEntry) -> dict[str, Any]:
    """What of a kernel entry decides results: contents of its files, inputs, reference and tolerance; no paths."""
    return {
        "source": _content(kernel.source),
        "bundle": _content(kernel.bundle),
        "callable": _content(kernel.callable),
        "python": kernel.python,
        "command": kernel.command,
        "inputs": {n: k if isinstance(k, str) else _content(k) for n, k in sorted(kernel.inputs.items())},
        "reference": _content(kernel.reference),
        "tolerance": asdict(kernel.tolerance) if kernel.tolerance else None,
    }


def case_hash(case: Case, digest: dict[str, Any], policy: dict[str, Any]) -> str:
    """Hexadecimal digest (16 digits) of the case; ``digest`` is its kernel's, ``policy`` timing and seed."""
    return _digest(case, digest, policy, {"sizes": case.sizes} if case.sizes else {})


def build_hash(case: Case, digest: dict[str, Any], policy: dict[str, Any]) -> str:
    """The same of what is compiled: one digest for all sizes of runtime dimensions."""
    return _digest(case, digest, policy, {"runtime": sorted(case.sizes)} if case.sizes else {})


def _digest(case: Case, digest: dict[str, Any], policy: dict[str, Any], sizes: dict[str, Any]) -> str:
    record = {
        "kernel": digest,
        "args": case.args,
        "shape": case.shape,
        "tiles": case.tiles,
        "target": case.target.target,
        "policy": policy,
        "toolchain": toolchain_versions(),
        **sizes,
    }
    text = json.dumps(record, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
