"""``tileprof compare``: two runs or two variants, side by side, with one verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tileprof.errors import UsageError

if TYPE_CHECKING:
    from tileprof.analyse.compare import Comparison, Pair
    from tileprof.store.records import CaseResult, Run

MOST_LINES = 30


@click.command()
@click.argument("base")
@click.argument("head")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write a page with a differential flame graph.")
@click.option("--force", is_flag=True, help="Overwrite the page.")
def compare(base: str, head: str, output: Path | None, force: bool) -> None:
    """Compare BASE with HEAD: two run directories, or RUN_DIR#CASE twice (a case's id, or enough of it).

    Prints a verdict and the differences of static, simulated and measured figures.  It judges nothing: that is what check does.
    """
    from tileprof import __version__
    from tileprof.analyse.compare import compare as compare_pairs
    from tileprof.analyse.compare import difference_trees
    from tileprof.report import compare_page
    from tileprof.report.writing import replace_file

    if output is not None and output.exists() and not force:
        raise UsageError(f"{output} exists", remedy="overwrite it with --force, or name another with -o")
    pairs = _pairs(base, head)
    comparison = compare_pairs(pairs, base, head)
    _print(comparison)
    if output is not None:
        trees = difference_trees(pairs, "both sides")
        replace_file(output, compare_page.render(comparison, trees, __version__), "choose another place with -o")
        click.echo(output)


def _pairs(base: str, head: str) -> list[Pair]:
    from tileprof.analyse.compare import Pair, pairs_of

    (base_run, base_case), (head_run, head_case) = _side(base), _side(head)
    if (base_case is None) != (head_case is None):
        raise UsageError(
            "one side names a case and the other none", remedy="name RUN_DIR#CASE on both sides, or on neither"
        )
    if base_case is not None and head_case is not None:
        names = dict.fromkeys((base_case.kernel, head_case.kernel))
        label = f"{' → '.join(names)} @ {head_case.target_name}"
        return [Pair(label, base_case, head_case)]
    pairs = pairs_of(base_run, head_run)
    if not any(pair.base and pair.head for pair in pairs):
        sides = ((base, base_run), (head, head_run))
        held = "; ".join(f"{name} has {_held(run)}" for name, run in sides)
        raise UsageError(f"no case is on both sides: {held}", remedy="name the cases to compare: RUN_DIR#CASE twice")
    return pairs


def _held(run: Run) -> str:
    """The cases of a run in few words."""
    ids = [case.id for case in run.cases]
    return ", ".join(ids[:2]) + (f" and {len(ids) - 2:,} more" if len(ids) > 2 else "") if ids else "no cases"


def _side(text: str) -> tuple[Run, CaseResult | None]:
    """A run, and the case where one is named."""
    from tileprof.analyse.compare import find_case
    from tileprof.store.directory import STORE
    from tileprof.store.reader import read_run

    place, _, case = text.partition("#")
    run = read_run(Path(place) / STORE)
    return run, find_case(run, case) if case else None


def _print(comparison: Comparison) -> None:
    from tileprof.report.compare_page import row

    colour = {"slower": "red", "faster": "green", "unclear": "yellow"}.get(comparison.outcome)
    click.echo(click.style(comparison.verdict, fg=colour, bold=True))
    lines: list[tuple[str, ...]] = []
    for result in sorted(comparison.results, key=lambda found: -abs((found.ratio or 1) - 1)):
        for difference in result.differences:
            if difference.sense in ("better", "worse") or (difference.metric == "time.ns" and result.ratio is not None):
                shown = row(difference)
                word = result.outcome if difference.metric == "time.ns" else difference.sense
                lines.append(
                    (result.pair.label, f"{shown.name} ({shown.kind})", shown.base, shown.head, shown.change, word)
                )
    widths = [max((len(line[column]) for line in lines[:MOST_LINES]), default=0) for column in range(6)]
    for line in lines[:MOST_LINES]:
        left, right = line[:2], line[2:5]
        cells = [text.ljust(width) for text, width in zip(left, widths)] + [
            t.rjust(w) for t, w in zip(right, widths[2:])
        ]
        click.echo("  ".join([*cells, line[5]]))
    if len(lines) > MOST_LINES:
        click.echo(f"and {len(lines) - MOST_LINES:,} more differences; -o writes a page with all of them")
    for pair in comparison.unpaired[:5]:
        click.echo(f"{pair.label}: only in the {'head' if pair.base is None else 'base'}")
    if len(comparison.unpaired) > 5:
        click.echo(f"and {len(comparison.unpaired) - 5:,} more cases on one side only")


COMMAND = compare
