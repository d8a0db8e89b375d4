"""Measuring tools on this machine: finding one, asking its version, and the answer that every tool's module gives."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Availability:
    """``usable`` says whether the tool can measure here; if not, ``why`` and ``remedy`` say what is missing.

    ``path`` and ``version`` are known as soon as the tool is found, even where it is denied.
    """

    tool: str
    usable: bool
    path: str = ""
    version: str = ""
    why: str = ""
    remedy: str = ""

    def denied(self, why: str, remedy: str) -> Availability:
        """The same tool, which is here and cannot be used."""
        return replace(self, usable=False, why=why, remedy=remedy)


_VERSION_SECONDS = 60.0


def find_tool(
    name: str,
    variable: str,
    places: tuple[str, ...],
    environment: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> str | None:
    """Path of a tool: the environment's ``variable``, then PATH, then the newest of the ``places``, patterns below ``root``."""
    environment = os.environ if environment is None else environment
    if named := environment.get(variable):
        return shutil.which(named)
    if path := shutil.which(name, path=environment.get("PATH", "")):
        return path
    runnable = [place for pattern in places for place in root.glob(pattern) if os.access(place, os.X_OK)]
    return str(max(runnable, key=lambda place: [int(n) for n in re.findall(r"\d+", str(place))])) if runnable else None


def identified(tool: str, path: str | None, parse_version: Callable[[str], str], install: str) -> Availability:
    """Whether a tool is here and says which version it is; ``install`` is the remedy where not.

    ``path`` is what :func:`find_tool` found; ``parse_version`` gives the version in what ``--version`` prints, "" for none.
    """
    if path is None:
        return Availability(tool, False, why="not found", remedy=install)
    found = Availability(tool, True, path)
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return found.denied(f"{path} --version does not run: {error}", install)
    # what a tool that fails says may name versions of other things
    version = parse_version(answer.stdout) or ("" if answer.returncode else parse_version(answer.stderr))
    if not version:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        return found.denied(f"{path} --version says no version" + (f": {said[-1]}" if said else ""), install)
    return replace(found, version=version)


def no_older_than(found: Availability, oldest: tuple[int, int], lacks: str, remedy: str) -> Availability:
    """``found``, or why it is of no use: its release is older than ``oldest``, and ``lacks`` says what those cannot do."""
    parts = tuple(int(part) for part in re.findall(r"\d+", found.version)[:2])
    if not found.usable or parts >= oldest:
        return found
    return found.denied(f"version {found.version} is too old: {lacks}", remedy)


_OPTION = r"(?:unrecogni[sz]ed|unknown|invalid) (?:option|argument|command.line option)"


def refused_option(messages: Sequence[str]) -> str | None:
    """The message with which a tool refuses an option that its release does not have; None where there is none."""
    return next((message for message in messages if re.search(_OPTION, message, re.IGNORECASE)), None)


def with_nvidia_driver(found: Availability, root: Path = Path("/")) -> Availability:
    """``found``, or why it is of no use: there is no NVIDIA driver below ``root``."""
    if (root / "proc/driver/nvidia/version").exists() or any(root.glob("dev/nvidia[0-9]*")):
        return found
    return found.denied("no NVIDIA driver or GPU here", "use a machine that has both")


def run_in_group(
    line: Sequence[str], output: Path, limit_s: float, environment: Mapping[str, str] | None = None
) -> int | None:
    """The status of a command that prints to ``output``, or None at the time limit; nothing of its process group stays behind."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            list(line), stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, env=environment
        )
        try:
            return process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
