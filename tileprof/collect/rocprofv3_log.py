"""What AMD's profilers say on standard error, and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tileprof.collect.scrub import plain
from tileprof.errors import CaseFailed, MeasurementInvalid, ProfilerUnavailable, TileprofError

TOOL = "rocprofv3"

# names of single instances have brackets of their own: TCC_HIT[0]
_LIST = r"\[((?:[^\[\]]|\[\d+\])*)\]"
_LACKING = re.compile(
    rf"Unable to find all counters for agent .*? in {_LIST}\.\s*Found: {_LIST}(?:\.\s*Missing: {_LIST})?"
)


def missing_counters(text: str) -> tuple[str, ...]:
    """Counters that the profiler warned it could not find, each once; terminal colours in the text do not matter.

    Versions that do not list them name what was asked for and what was found: the rest is missing.
    """
    found: dict[str, None] = {}
    for asked, present, missing in _LACKING.findall(plain(text.replace("\n", " "))):
        lacking = _names(missing) if missing else [name for name in _names(asked) if name not in set(_names(present))]
        found.update(dict.fromkeys(lacking))
    return tuple(found)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A message that the profiler is known to print: pattern, error, what it means, what to do."""

    pattern: str
    error: type[TileprofError]
    meaning: str
    remedy: str


TROUBLES = (
    Trouble(
        r"error code 38|Request exceeds the capabilities of the hardware",
        MeasurementInvalid,
        "a pass asks for more counters of one block than the hardware has",
        "report this with the counters asked for: passes are planned to stay within the limits",
    ),
    Trouble(
        r"No tracing options were enabled",
        MeasurementInvalid,
        "it was asked to measure nothing",
        "report this with the command line: it is a fault of tileprof",
    ),
    Trouble(
        r"conflicting value for",
        MeasurementInvalid,
        "an option stands both on its command line and in its input file",
        "leave it out of one of them",
    ),
    Trouble(
        r"rocprof-trace-decoder library path not found|INVALID_SHADER_DATA|Agent not supported",
        ProfilerUnavailable,
        "thread tracing does not work here: the decoder is missing or too old",
        "install rocprof-trace-decoder of this ROCm release, or measure without thread traces",
    ),
    Trouble(
        r"[Pp][Cc] sampling .*(?:not supported|unsupported|invalid)|PC_SAMPLING.*(?:NOT_AVAILABLE|INCOMPATIBLE)",
        ProfilerUnavailable,
        "this GPU or driver does not sample program counters in the way asked for",
        "rocprofv3 -L lists the methods, units and intervals there are",
    ),
    Trouble(
        r"HSA_STATUS_ERROR_OUT_OF_RESOURCES|Permission denied.*/dev/kfd|Unable to open /dev/kfd",
        ProfilerUnavailable,
        "no access to the GPU",
        "add the user to the groups render and video; in a container pass --device=/dev/kfd --device=/dev/dri",
    ),
    Trouble(
        r"caught signal 15",
        MeasurementInvalid,
        "it was ended while it wrote its results",
        "give it a longer time limit, or let it write rocpd, which is quicker",
    ),
    Trouble(
        r"Segmentation fault|caught signal (?:6|11)|core dumped",
        CaseFailed,
        "the profiled program crashed",
        "run it without the profiler first; with torch, use the ROCm that torch brings",
    ),
)
"""In the order in which they are looked for."""


def trouble_in(text: str) -> TileprofError | None:
    """The error that a log tells of, or None; warnings about single counters are none."""
    clean = plain(text.replace("\n", " ⏎ "))
    for trouble in TROUBLES:
        found = re.search(trouble.pattern, clean)
        if found:
            line = next((part.strip() for part in clean.split("⏎") if found[0] in part), found[0])
            return trouble.error(f"{TOOL}: {trouble.meaning}: {line[:400]}", remedy=trouble.remedy)
    return None
