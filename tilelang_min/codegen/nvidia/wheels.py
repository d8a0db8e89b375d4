"""Where NVIDIA's wheels put their files."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path


def wheel_files(pattern: str) -> Iterator[Path]:
    """Files of NVIDIA's wheels, which share the namespace package ``nvidia``, matching a glob pattern; newest CUDA first."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(Path(place).glob(pattern), reverse=True)
