"""``tileprof check``: the workload's limits and regressions against a baseline, as an exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tileprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tileprof.analyse.verdicts import Baselines, Verdict
    from tileprof.store.records import Run

DEFAULT_BASELINE = Path("baselines")


def percentage(context: click.Context, parameter: click.Parameter, value: str) -> float:
    """``3%``, ``3 %`` or ``0.03`` as a share."""
    text = value.strip()
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no percentage such as 3%", context, parameter) from None
    if not 0 <= share < 10:
        raise click.BadParameter(f"{value} is out of range", context, parameter)
    return share


@click.command()
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option(
    "--baseline", type=click.Path(path_type=Path), metavar="DIR",
    help="Folder of baselines, or another run's directory.  [default: baselines, where it exists]",
)  # fmt: skip
@click.option("--update-baseline", is_flag=True, help="Keep this run's figures and bundles as the baseline.")
@click.option(
    "--tolerance", callback=percentage, default="2%", show_default=True, help="Share by which counters may get worse."
)
@click.option(
    "--floor", callback=percentage, default="3%", show_default=True, help="Least change of a time that counts."
)
@click.option("--across-toolchains", is_flag=True, help="Compare exact and counted figures of another toolchain too.")
@click.option("--other-machine", is_flag=True, help="Compare counted figures of another machine too; times never.")
@click.option("--strict", is_flag=True, help="What was asked about and not judged is status 3.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
def check(
    run_dir: Path,
    baseline: Path | None,
    update_baseline: bool,
    tolerance: float,
    floor: float,
    across_toolchains: bool,
    other_machine: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Judge RUN_DIR: limits of its workload, and regressions against a baseline.

    Exact figures (static, simulated) must not get worse, counted ones not by more than the tolerance; times are judged from the
    rounds that `tileprof run --against` measured in turns.  Writes junit.xml, check.md and check.json.
    Exit status: 0 passed, 1 a check failed, 3 too noisy to say, 4 a case failed.
    """
    from tileprof.analyse.verdicts import Policy, exit_status, verdicts
    from tileprof.report import check_text, junit
    from tileprof.report.writing import replace_file
    from tileprof.store.directory import STORE
    from tileprof.store.reader import read_run

    run = read_run(run_dir / STORE)
    if run.finished is None:
        raise UsageError(f"the run in {run_dir} is not finished", remedy="continue it with `tileprof run ... --resume`")
    place = baseline if baseline is not None else DEFAULT_BASELINE
    known = _baselines(run, place, baseline is not None and not update_baseline)
    found = verdicts(run, known, Policy(tolerance, floor, across_toolchains, other_machine))
    status = exit_status(found, strict)
    replace_file(run_dir / "junit.xml", junit.render(run, found))
    replace_file(run_dir / "check.md", check_text.render(run, found))
    replace_file(run_dir / "check.json", check_text.to_json(run, found, status))
    if as_json:
        click.echo(check_text.to_json(run, found, status), nl=False)
    else:
        _print(found)
    if update_baseline:
        _update(run, run_dir, place)
        status = 4 if status == 4 else 0
    return status


def _baselines(run: Run, place: Path, named: bool) -> Baselines | None:
    """The baselines at ``place``; None where there are none and nobody said there were."""
    from tileprof.analyse.verdicts import Baselines
    from tileprof.store.baselines import BaselineStore, baselines_of
    from tileprof.store.directory import STORE
    from tileprof.store.reader import read_run

    if (place / STORE).is_file():
        other = read_run(place / STORE)
        return Baselines.of(b for case in other.cases if case.metadata for b in baselines_of(case, other))
    if named and not place.is_dir():
        raise UsageError(f"there is no baseline {place}", remedy="make one with --update-baseline")
    return Baselines.of(BaselineStore(place).load(run.name)) if place.is_dir() else None


def _update(run: Run, run_dir: Path, place: Path) -> None:
    from tileprof.store.baselines import BaselineStore
    from tileprof.store.directory import STORE

    if (place / STORE).is_file():
        raise UsageError(f"{place} is a run, not a folder of baselines", remedy="name another folder with --baseline")
    written = BaselineStore(place).save(run, run_dir)
    click.echo(f"{len(written)} baselines are kept in {place}", err=True)


def _print(found: Sequence[Verdict]) -> None:
    """What is worth a line, worst first, and the count of the rest."""
    from tileprof.analyse.verdicts import BETTER, CHANGED, FAIL, OPEN, RETRY
    from tileprof.report.check_text import headline

    colours = {FAIL: "red", RETRY: "yellow", BETTER: "green", CHANGED: None, OPEN: "bright_black"}
    reasons: dict[str, int] = {}
    for outcome, colour in colours.items():
        for verdict in found:
            if verdict.outcome != outcome:
                continue
            if outcome == OPEN:
                reasons[verdict.message] = reasons.get(verdict.message, 0) + 1
                continue
            word = click.style(f"{outcome:8}", fg=colour, bold=outcome == FAIL)
            click.echo(f"{word} {verdict.case}  {verdict.metric}: {verdict.message}")
    for reason, count in reasons.items():
        click.echo(f"{click.style('open    ', fg='bright_black')} {count} x {reason}")
    click.echo(headline(found))


COMMAND = check
