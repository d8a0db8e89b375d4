"""From the name of a target to its record, with errors that name what was probably meant."""

from __future__ import annotations

import difflib
from functools import cache

from tilelang_min.errors import TargetError
from tilelang_min.targets import amd, cpu, nvidia
from tilelang_min.targets.records import Target


def names() -> tuple[str, ...]:
    """Every name that :func:`resolve` takes, ``rocm:`` spellings excepted."""
    return (
        "cpu",
        *(f"cpu:{arch}" for arch in cpu.ARCHITECTURES),
        "cuda",
        *(f"cuda:{arch}" for arch in nvidia.ARCHITECTURES),
        "hip",
        *(f"hip:{arch}" for arch in amd.ARCHITECTURES),
    )


def resolve(name: str | Target) -> Target:
    """The target called ``name``; a :class:`Target` is returned as it is.

    ``cuda`` means ``cuda:sm_80``, ``hip`` and ``rocm`` mean ``hip:gfx942``, ``cpu`` the level of this machine's
    processor. ``auto`` is not known here: it depends on the devices present.  Raises :class:`TargetError`, which names
    the nearest word.
    """
    if isinstance(name, Target):
        return name
    return _resolve(name.strip())


@cache
def _resolve(name: str) -> Target:
    kind, colon, arch = name.partition(":")
    if colon and not arch:
        raise _unknown(name)
    if kind == "cuda" and (arch in nvidia.ARCHITECTURES or not colon):
        return nvidia.target(arch or nvidia.DEFAULT_ARCHITECTURE)
    if kind in ("hip", "rocm") and (arch in amd.ARCHITECTURES or not colon):
        return amd.target(arch or amd.DEFAULT_ARCHITECTURE)
    if kind == "cpu" and not colon:
        return cpu.target(cpu.detect(), name="cpu")
    if kind == "cpu" and arch in cpu.ARCHITECTURES:
        return cpu.target(arch)
    raise _unknown(name)


def _unknown(name: str) -> TargetError:
    known = names()
    wanted = name.lower().replace("rocm", "hip", 1) if name.lower().startswith("rocm") else name.lower()
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
    if not near:
        # Only the architecture was written, or written after an unknown kind: compare that word alone.
        by_arch = {full.partition(":")[2]: full for full in known if ":" in full}
        near = [
            by_arch[word] for word in difflib.get_close_matches(wanted.rpartition(":")[2], by_arch, n=1, cutoff=0.5)
        ]
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return TargetError(f'unknown target "{name}"', remedy=f"{hint}Known targets: {', '.join(known)}")
