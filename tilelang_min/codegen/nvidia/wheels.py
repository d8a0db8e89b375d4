"""Where NVIDIA's wheels put their files."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path


def wheel_files(pattern: str) -> Iterator[Path]:
    """Files of NVIDIA's wheels, which share the namespace package ``nvidia``, matching a glob pattern; newest CUDA first.

    Wheels of several CUDA versions lie side by side where another package (torch) wants an older one: ``cu13/`` holds CUDA 13,
    ``cuda_nvrtc/``, ``cuda_runtime/`` and their like CUDA 12 and older.
    """
    spec = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    found = [(_age(file.relative_to(place)), file) for place in places for file in place.glob(pattern)]
    yield from (file for _, file in sorted(found))


def _age(file: Path) -> tuple[int, str]:
    """Sorts the newest CUDA first."""
    version = re.fullmatch(r"cu(\d+)", file.parts[0])
    return -int(version[1]) if version else 0, str(file)
