"""``tileprof conflicts``: bank conflicts of an address expression, with a picture of the banks."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from tileprof.errors import UsageError
from tileprof.workload.expression import Expression, ExpressionError, evaluate_integer, parse_expression

_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")
_MOST_ADDRESS = 2**62


@click.command()
@click.argument("expression")
@click.option(
    "--lanes", metavar="NAMES", default="",
    help="Names that EXPRESSION uses, made from the lane's number: \"i=lane//8, j=lane%8\".",
)  # fmt: skip
@click.option("--target", default="cuda:sm_90a", show_default=True, metavar="NAME", help="cuda:..., hip:...")
@click.option(
    "--access", default="load", show_default=True, metavar="KIND",
    help="load, store, ldmatrix, stmatrix, cp_async or cp_async_bypass.",
)  # fmt: skip
@click.option("--width", default=128, show_default=True, metavar="BITS", help="Bits that a lane accesses.")
@click.option("--unit", default=1, show_default=True, metavar="BYTES", help="Bytes of one step of EXPRESSION.")
@click.option("--active", metavar="CONDITION", help='Lanes that take part: "lane < 16".  [default: all]')
@click.option("--matrices", type=int, metavar="N", help="1, 2 or 4 for ldmatrix and stmatrix.  [default: 4]")
@click.option("--source", metavar="EXPRESSION", help="Global byte address of a cp_async or cp_async_bypass.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a picture.")
def conflicts(
    expression: str,
    lanes: str,
    target: str,
    access: str,
    width: int,
    unit: int,
    active: str | None,
    matrices: int | None,
    source: str | None,
    as_json: bool,
) -> None:
    """Count the passes of one warp's access to shared memory, where EXPRESSION is the byte offset of each lane.

    EXPRESSION is whole-number arithmetic (+ - * // % ^ & | << >>, comparisons, `x if c else y`, min, max, abs, ceildiv)
    on `lane` and the names of --lanes.

    \b
    tileprof conflicts "lane*128"                  # a column of 16-byte chunks
    tileprof conflicts "i*36 + j*4" --lanes "i=lane//8, j=lane%8" --width 32 --target hip:gfx942
    tileprof conflicts "r*128 + (c ^ r)*16" --lanes "r=lane%8, c=lane//8" --access ldmatrix
    """
    import tilelang_min as tilelang
    from tileprof.analyse.banks import bank_phases

    machine: Any = tilelang.targets.resolve(target)
    if unit < 1:
        raise UsageError(f"--unit {unit} is no size", remedy="give the bytes of one step of EXPRESSION, as --unit 4")
    names = _definitions(lanes)
    address = _parse(expression, "EXPRESSION", names)
    condition = None if active is None else _parse(active, "--active", names)
    origin = None if source is None else _parse(source, "--source", names)

    values = [_values(lane, names) for lane in range(machine.warp_size)]
    mask = [condition is None or bool(_value(condition, "--active", item)) for item in values]
    addresses = [_address(address, "EXPRESSION", item, unit) if on else 0 for item, on in zip(values, mask)]
    sources = None
    if origin is not None:
        sources = [_address(origin, "--source", item) if on else 0 for item, on in zip(values, mask)]
    result: Any = tilelang.access.bank_conflicts(addresses, access, width, target, mask, sources, matrices)
    if access in ("ldmatrix", "stmatrix"):
        width = 128
        mask = [on and lane < 8 * (matrices or 4) for lane, on in enumerate(mask)]
    phases = bank_phases(target, access, width, addresses, mask)
    if as_json:
        record = {
            "target": machine.name,
            "access": access,
            "width_bits": width,
            **{name: getattr(result, name) for name in _FIGURES},
            "addresses": [a if on else None for a, on in zip(addresses, mask)],
            "phases": [{**asdict(phase), "passes": phase.passes} for phase in phases],
        }
        click.echo(json.dumps(record, indent=1))
        return
    _show(machine.name, access, width, result, phases)


_FIGURES = ("transactions", "transactions_ideal", "conflicts", "ways", "requests", "rule", "source")


def _show(target: str, access: str, width: int, result: Any, phases: Any) -> None:
    from rich.console import Console
    from rich.text import Text

    from tileprof.cli.bank_picture import print_picture
    from tileprof.report.words import ACCESSES, words

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    vocabulary = words(target)
    size = "" if access in ("ldmatrix", "stmatrix") else f" of {width} bits a lane"
    what = f"{ACCESSES.get(access, access)}{size} by one {vocabulary.warp} on {target}"
    console.print(Text(what, style="bold"))
    rule = result.rule if result.rule == "known" else f"{result.rule}: a best guess, the hardware's rule is not settled"
    figures = [
        (vocabulary.transactions, str(result.transactions), ""),
        ("ideal", str(result.transactions_ideal), ""),
        ("conflicts", str(result.conflicts), "bold red" if result.conflicts else "green"),
        ("ways", str(result.ways), ""),
        ("rule", rule, "" if result.rule == "known" else "yellow"),
        ("source", result.source, "dim"),
    ]
    label = max(len(name) for name, _, _ in figures)
    for name, value, style in figures:
        console.print(Text(name.ljust(label) + "  ").append(value, style=style))
    if not phases:
        return
    console.print()
    print_picture(console, phases)
    drawn = sum(phase.passes for phase in phases)
    if drawn != result.transactions:
        note = (
            f"The lanes are drawn in their usual phases ({drawn} passes); here the rule counts {result.transactions}."
        )
        console.print(Text(note, style="yellow"))


# ---- expressions --------------------------------------------------------------------------------------------------------


def _problem(error: ExpressionError, what: str, text: str, start: int = 0) -> UsageError:
    """An error with the text and a caret under its place; ``start`` is where in the text the expression begins."""
    shown = text.splitlines()[0] if text.strip() else text
    return UsageError(f"{what}: {error}\n  {shown}\n  {' ' * (start + error.offset)}^")


def _attempt(function: Callable[[], Any], what: str, text: str, start: int = 0) -> Any:
    try:
        return function()
    except ExpressionError as error:
        raise _problem(error, what, text, start) from None


def _parse(text: str, what: str, names: dict[str, Expression]) -> Expression:
    def parse() -> Expression:
        parsed = parse_expression(text, integers=True)
        parsed.check_names({"lane", *names})
        return parsed

    result: Expression = _attempt(parse, what, text)
    return result


def _definitions(text: str) -> dict[str, Expression]:
    """The names of ``--lanes``; each may use those before it."""
    names: dict[str, Expression] = {}
    for start, part in _split(text):
        found = _NAME.match(part)
        name = found[1] if found else ""
        if found is None or keyword.iskeyword(name):
            raise _problem(
                ExpressionError("expected NAME=EXPRESSION", len(part) - len(part.lstrip())), "--lanes", text, start
            )
        if name == "lane" or name in names:
            raise _problem(ExpressionError(f"'{name}' has a meaning already", found.start(1)), "--lanes", text, start)

        def parse(body: str = part[found.end() :]) -> Expression:
            parsed = parse_expression(body, integers=True)
            parsed.check_names({"lane", *names})
            return parsed

        names[name] = _attempt(parse, "--lanes", text, start + found.end())
    return names


def _split(text: str) -> list[tuple[int, str]]:
    """Parts between the commas that stand outside brackets, each with its place in the text."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append((start, text[start:place]))
            start = place + 1
    return [*parts, (start, text[start:])] if text.strip() else []


def _values(lane: int, names: dict[str, Expression]) -> dict[str, int]:
    """What each name is for a lane."""
    values = {"lane": lane}
    for name, expression in names.items():
        values[name] = _value(expression, f"--lanes, {name}", values)
    return values


def _value(expression: Expression, what: str, values: dict[str, int]) -> int:
    text = expression.text
    found: int = _attempt(
        lambda: evaluate_integer(expression, values), f"{what} for lane {values['lane']}", text, expression.shift
    )
    return found


def _address(expression: Expression, what: str, values: dict[str, int], unit: int = 1) -> int:
    address = _value(expression, what, values) * unit
    if not 0 <= address < _MOST_ADDRESS:
        raise UsageError(
            f"{what}: lane {values['lane']} is at byte {address}",
            remedy="offsets count from the start of shared memory; leave lanes out with --active",
        )
    return address


COMMAND = conflicts
