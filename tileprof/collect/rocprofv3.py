"""Running AMD's rocprofv3: is it here and allowed, its command lines, and what came of them.

Written from the tool's sources and documentation (rocprofiler-sdk 0.5 to 1.3) and tested with stand-ins: no AMD GPU was at hand.
Reading its files is in ``rocprofv3_csv.py``, ``rocprofv3_json.py`` and ``rocpd_file.py``; its messages in ``rocprofv3_log.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilelang_min import targets
from tileprof.collect import rocprofv3_csv
from tileprof.collect.profile import ForeignProfile
from tileprof.collect.rocprofv3_log import missing_counters, trouble_in
from tileprof.collect.scrub import plain
from tileprof.collect.tool import Availability, find_tool, identified
from tileprof.errors import MeasurementInvalid, ProfileFormatError, UsageError
from tileprof.plan.passes import PassPlan, over_limit

TOOL = "rocprofv3"
INSTALL = (
    "install rocprofiler-sdk (part of ROCm 6.2 and later) and put rocprofv3 on PATH, or name it in TILEPROF_ROCPROFV3"
)
OLDEST = (0, 5)
"""rocprofiler-sdk of ROCm 6.3: the first that takes counters on the command line."""

NAME = "tileprof_%pid%"
"""Beginning of its files: with a fixed name all processes of a program write the same file."""


def find(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> str | None:
    """Path of rocprofv3: TILEPROF_ROCPROFV3, then PATH, then the newest ROCm below ``root``."""
    places = (f"opt/rocm*/bin/{TOOL}", f"opt/rocm/core-*/bin/{TOOL}")
    return find_tool(TOOL, "TILEPROF_ROCPROFV3", places, environment, root)


def parse_version(text: str) -> str:
    """``1.0.0`` from what ``rocprofv3 --version`` prints; "" if it says none."""
    found = re.search(r"^\s*version:\s*(\d+\.\d+(?:\.\d+)?)", text, re.MULTILINE)
    return found[1] if found else ""


def available(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> Availability:
    """Whether rocprofv3 can read counters here, found out without running a kernel."""
    found = identified(TOOL, find(environment, root), parse_version, INSTALL)
    if not found.usable:
        return found
    if tuple(int(part) for part in found.version.split(".")[:2]) < OLDEST:
        return found.denied(
            f"version {found.version} takes no counters on its command line", "install ROCm 6.3 or later"
        )
    return with_amd_device(found, root)


def with_amd_device(found: Availability, root: Path = Path("/")) -> Availability:
    """``found``, or why it is of no use: the driver's device files are not here, or not open to this process."""
    trouble = targets.kfd.trouble(root)
    return found if trouble is None else found.denied(*trouble)


@dataclass(frozen=True, slots=True)
class Sampling:
    """One way in which a GPU samples program counters: ``interval`` between ``least`` and ``most`` in ``unit``."""

    method: str
    unit: str
    least: int
    most: int
    powers_of_two: bool = False

    def interval(self, wanted: int) -> int:
        """The interval nearest to what is wanted that this way allows."""
        value = min(max(wanted, self.least), self.most)
        if not self.powers_of_two:
            return value
        power = 1 << max(value.bit_length() - 1, 0)
        return power if power >= self.least else power << 1


@dataclass(frozen=True)
class Listed:
    """What ``rocprofv3 -L`` says of one GPU: architecture, counters with their block ("" for derived ones), ways of sampling."""

    gpu: int
    arch: str
    counters: Mapping[str, str]
    sampling: tuple[Sampling, ...]


def parse_listing(text: str) -> tuple[Listed, ...]:
    """GPUs in the output of ``rocprofv3 -L``, in its order.  Lines that are not known are passed over."""
    archs: dict[int, str] = {}
    counters: dict[int, dict[str, str]] = {}
    sampling: dict[int, list[Sampling]] = {}
    gpu, counter = -1, ""
    fields: dict[str, str] = {}
    for line in [*plain(text).splitlines(), "GPU:-1"]:
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        key = key.replace("Minimum_", "Min_").replace("Maximum_", "Max_")  # ROCm 6.4
        if key in ("GPU", "Method") and fields:
            sampling.setdefault(gpu, []).append(_sampling(fields))
            fields = {}
        if key == "GPU":
            gpu, counter = int(value) if re.fullmatch(r"\d+", value) else -1, ""
        elif key == "Name" and gpu >= 0:
            archs[gpu] = value
        elif key == "Counter_Name" and gpu >= 0:
            counter = value
            counters.setdefault(gpu, {})[counter] = ""
        elif key == "Block" and counter:
            counters[gpu][counter] = value
        elif key in ("Method", "Unit", "Min_Interval", "Max_Interval", "Flags"):
            fields[key] = value
    every = sampling.get(-1, ())  # ROCm 6.4 lists ways of sampling by a number of the node, not of the GPU
    return tuple(
        Listed(number, arch, counters.get(number, {}), tuple(sampling.get(number, every)))
        for number, arch in sorted(archs.items())
    )


def _sampling(fields: Mapping[str, str]) -> Sampling:
    least, most = (int(re.sub(r"\D", "", fields.get(name, "")) or 0) for name in ("Min_Interval", "Max_Interval"))
    # stochastic sampling counts cycles in powers of two, whether its flags say so or not
    method = _plain(fields.get("Method", ""))
    powers = "2" in fields.get("Flags", "") or method == "stochastic"
    return Sampling(method, _plain(fields.get("Unit", "")), least, most, powers)


def _plain(word: str) -> str:
    """``host_trap`` of ``ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP``, as options take it."""
    return re.sub(r"^ROCPROFILER_PC_SAMPLING_(METHOD|UNIT)_", "", word).lower()


@dataclass(frozen=True, slots=True)
class Selection:
    """Which launches are profiled: kernels whose name matches ``kernel``, and of each the calls ``first`` to ``last`` (from 1)."""

    kernel: str | None = None
    first: int | None = None
    last: int | None = None

    def arguments(self) -> list[str]:
        """As options."""
        options: list[str] = []
        if self.kernel is not None:
            options += ["--kernel-include-regex", self.kernel]
        if self.first is not None:
            last = self.first if self.last is None else self.last
            options += [
                "--kernel-iteration-range",
                f"[{self.first}-{last}]" if last != self.first else f"[{self.first}]",
            ]
        return options


def counter_commands(
    tool: str,
    child: Sequence[str],
    plan: PassPlan,
    output: Path,
    *,
    selection: Selection | None = None,
    extra: Path | None = None,
    traced: bool = False,
) -> list[list[str]]:
    """Command lines that collect a plan's counters, one a pass: the program runs once for each.

    Pass i writes to ``output/pass_<i>``.  ``extra`` is the file of :func:`extra_counters`, where the plan has accumulations;
    ``traced``: kernels and ROCTX ranges are traced too, whose times some versions do not write beside counters.
    Raises UsageError for a pass above a block's limit, which the driver would refuse only at the first dispatch.
    """
    commands = []
    for number, counters in enumerate(plan.passes, 1):
        if above := over_limit(counters):
            blocks = ", ".join(f"{count} of block {block}" for block, count in above.items())
            raise UsageError(f"one pass cannot count {blocks}", remedy="let plan_passes split the counters")
        options = ["--pmc", *counters]
        if extra is not None and any(name.endswith("_ACCUM") for name in counters):
            options = ["--extra-counters", str(extra), *options]
        if traced:
            options += ["--kernel-trace", "--marker-trace"]
        commands.append(_command(tool, child, output / f"pass_{number}", options, selection))
    return commands


def trace_command(
    tool: str, child: Sequence[str], output: Path, *, selection: Selection | None = None, calls: bool = True
) -> list[str]:
    """The command line of a trace without counters: kernels and ROCTX ranges, with ``calls`` also the HIP calls that launch."""
    options = ["--kernel-trace", "--marker-trace", *(["--hip-runtime-trace"] if calls else [])]
    return _command(tool, child, output, options, selection)


def sampling_command(
    tool: str, child: Sequence[str], output: Path, way: Sampling, interval: int, *, selection: Selection | None = None
) -> list[str]:
    """The command line of PC sampling; ``interval`` in the way's unit is moved to the nearest that it allows.

    The format is JSON, which alone says where in the code object an instruction stands.
    """
    options = [
        "--pc-sampling-beta-enabled", "--pc-sampling-method", way.method, "--pc-sampling-unit", way.unit,
        "--pc-sampling-interval", str(way.interval(interval)), "--kernel-trace",
    ]  # fmt: skip
    return _command(tool, child, output, options, selection, "json")


def _command(
    tool: str,
    child: Sequence[str],
    output: Path,
    options: Sequence[str],
    selection: Selection | None,
    form: str = "csv",
) -> list[str]:
    """The format is always named: its default changed between versions."""
    chosen = selection.arguments() if selection is not None else []
    return [tool, *options, *chosen, "--output-format", form, "-d", str(output), "-o", NAME, "--", *child]


def extra_counters(counters: Iterable[str], version: str, architectures: Sequence[str]) -> str:
    """Definitions (YAML) of the accumulations among the counters: ``X_ACCUM`` is X added up each cycle.

    Plain SQ_ACCUM_PREV_HIRES reads zero in rocprofv3.  The form changed with rocprofiler-sdk 1.0.
    """
    wanted = sorted({name for name in counters if name.endswith("_ACCUM")})
    major = int(version.partition(".")[0] or 1)
    lines: list[str] = []
    for name in wanted:
        base = name.removesuffix("_ACCUM")
        expression = f"accumulate({base}, HIGH_RES)"
        if major >= 1:
            lines += [f"    - name: {name}", f"      description: {base} accumulated", "      properties: []", "      definitions:",
                      "        - architectures:", *(f"            - {arch}" for arch in architectures),
                      f"          expression: {expression}"]  # fmt: skip
        else:
            lines += [f"{name}:", "  architectures:", f"    {'/'.join(architectures)}:", f"      expression: {expression}",
                      f"  description: {base} accumulated"]  # fmt: skip
    if major >= 1:
        lines = ["rocprofiler-sdk:", "  counters-schema-version: 1", "  counters:", *lines]
    return "\n".join(lines) + "\n"


def collected(output: Path, log: str, status: int) -> ForeignProfile:
    """The profile of finished commands, or the error that they mean.

    ``output`` is the folder given to the commands, ``log`` what they printed, ``status`` the worst exit status.  Raises
    :class:`MeasurementInvalid` where no kernel was recorded, and what the log tells.
    """
    error = trouble_in(log)
    if error is not None:
        raise error
    tables = sorted(output.rglob("*.csv"))
    if not tables:
        raise MeasurementInvalid(
            f"{TOOL}: it wrote no file and ended with status {status}: {_last(log)}",
            remedy="run the same command by hand",
        )
    try:
        profile = rocprofv3_csv.read(tables)
    except ProfileFormatError as wrong:
        raise MeasurementInvalid(f"{TOOL}: {wrong.message}", remedy=wrong.remedy) from None
    ended = f"; it ended with status {status}: {_last(log)}" if status else ""
    if not profile.launches:
        raise MeasurementInvalid(
            f"{TOOL}: no kernel was recorded: {'; '.join(profile.notes) or 'its tables are empty'}{ended}",
            remedy="check that the program launches the kernel in its own process, and with the ROCm that rocprofv3 belongs to",
        )
    notes = list(profile.notes)
    if absent := missing_counters(log):
        notes.append(f"counters that this GPU does not have: {', '.join(absent)}")
    if status:
        notes.append(f"it ended with status {status}: {_last(log)}")
    return replace(profile, notes=tuple(notes))


def _last(log: str) -> str:
    """The last line of a log that says something."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return plain(lines[-1])[:200] if lines else "no message"
