"""Banks of shared memory in a terminal: a row a pass, a column a bank, in each cell the lane that is served.

Says the same without colour: ``!`` marks a lane whose bank has several words to serve in its phase, ``+`` a word that more than
one lane gets at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tileprof.analyse.banks import BankPhase

MOST_PASSES = 8
"""Passes of a phase that are drawn; more say no more."""

_CELL = 4


def print_picture(console: Console, phases: Sequence[BankPhase]) -> None:
    """Draw all phases, in as many columns of banks as the console is wide."""
    label = max(len(_label(phase)) for phase in phases)
    banks = len(phases[0].banks)
    columns = banks
    while columns > 8 and label + 2 + columns * _CELL > console.width:
        columns //= 2
    for first in range(0, banks, columns):
        head = Text("bank".rjust(label) + "  ", style="bold")
        head.append("".join(f"{bank:>{_CELL - 1}} " for bank in range(first, first + columns)))
        head.rstrip()
        console.print(head, no_wrap=True, crop=False, overflow="ignore")
        for number, phase in enumerate(phases):
            _print_phase(console, phase, range(first, first + columns), label, number)
        if first + columns < banks:
            console.print()
    console.print(Text(_key(phases), style="dim"))


def _print_phase(console: Console, phase: BankPhase, banks: range, label: int, number: int) -> None:
    for row in range(min(phase.passes, MOST_PASSES)):
        line = Text((_label(phase) if row == 0 else f"pass {row + 1}").rjust(label) + "  ")
        for bank in banks:
            line.append_text(_cell(phase, bank, row, number))
        line.rstrip()
        console.print(line, no_wrap=True, crop=False, overflow="ignore")
    if phase.passes > MOST_PASSES:
        more = f"and {phase.passes - MOST_PASSES} more passes".rjust(label)
        console.print(Text(more, style="dim"), no_wrap=True, crop=False, overflow="ignore")


def _cell(phase: BankPhase, bank: int, row: int, number: int) -> Text:
    words = phase.banks[bank]
    if row >= len(words):
        return Text("·".rjust(_CELL - 1) + " ", style="dim")
    lanes = words[row].lanes
    collides = len(words) > 1
    mark = "!" if collides else "+" if len(lanes) > 1 else " "
    style = "bold red" if collides else ("green", "cyan")[number % 2]
    return Text(f"{lanes[0]:>{_CELL - 1}}{mark}", style=style)


def _label(phase: BankPhase) -> str:
    """``lanes 0-3 20-23``."""
    runs: list[list[int]] = []
    for lane in phase.lanes:
        if runs and lane == runs[-1][-1] + 1:
            runs[-1].append(lane)
        else:
            runs.append([lane])
    return "lanes " + " ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _key(phases: Sequence[BankPhase]) -> str:
    words = [word for phase in phases for bank in phase.banks for word in bank]
    parts = ["a row is a pass; a number is the lane that a bank serves in it"]
    if any(len(bank) > 1 for phase in phases for bank in phase.banks):
        parts.append("! its bank has several words to serve, one a pass")
    if any(len(word.lanes) > 1 for word in words):
        parts.append("+ several lanes get this word at once (the lowest is shown)")
    return "; ".join(parts)
