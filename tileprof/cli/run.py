"""``tileprof run``: run a workload and report it."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import click

from tileprof.cli.main import INTERRUPTED


@click.command()
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Run directory.  [default: runs/NAME]")
@click.option(
    "--target", "targets", multiple=True, metavar="NAME", help="Only this target of the workload; repeatable."
)
@click.option(
    "--profiler", "profilers", multiple=True, metavar="NAME",
    help="auto, none, timer, cycles, ncu, nsys or perf, instead of what the workload says; repeatable.",
)  # fmt: skip
@click.option(
    "--executor", default="local:1", metavar="KIND", show_default=True,
    help="inline: compile and launch in turns; local:N: N compile workers beside the launcher.",
)  # fmt: skip
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="RUN_DIR",
    help="A run or a folder of baselines: time its kernels in turns with these.",
)
@click.option("--dry-run", is_flag=True, help="List the cases and what measures them, and run nothing.")
@click.option("--yes", is_flag=True, help="Run more than 10,000 cases without asking.")
@click.option("--resume", is_flag=True, help="Continue an unfinished run.")
@click.option("--force", is_flag=True, help="Overwrite a run.")
@click.option("--json", "as_json", is_flag=True, help="Print result.json instead of a table.")
def run(
    workload: Path,
    output: Path | None,
    targets: tuple[str, ...],
    profilers: tuple[str, ...],
    executor: str,
    against: Path | None,
    dry_run: bool,
    yes: bool,
    resume: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Compile, simulate, launch, check and time the cases of WORKLOAD (a YAML file), and write a report.

    A target whose device is not on this machine is compiled and simulated.  Results are stored as they come.
    """
    from tileprof.execute.runner import RunOptions, prepare

    options = RunOptions(
        workload=workload, output=output, targets=targets, profilers=profilers, executor=executor,
        yes=yes, resume=resume, force=force, against=against,
    )  # fmt: skip
    prepared = prepare(options, preflight=not dry_run, say=lambda text: click.echo(text, err=True))
    if dry_run:
        _list_cases(prepared)
        return 0
    return _run(prepared, as_json)


def _list_cases(prepared: Any) -> None:
    from tileprof.execute.foreign import is_foreign

    for case in prepared.cases:
        plan = prepared.plan.targets[case.target.name]
        made = "" if is_foreign(case) else "compile, simulate"
        if plan.unsupported is not None:
            what = f"unsupported: {plan.unsupported}"
        elif plan.launches:
            measured = ["timer"] if plan.timed else []
            what = ", ".join([*([made] if made else []), "launch", *measured, *plan.counters])
        else:
            what = f"{made or 'nothing'} ({plan.reason})"
        if plan.passes is not None:
            takes = "takes" if "rocprofv3" in plan.counters else "would take"
            what += f"; rocprofv3 {takes} {plan.passes.describe()}"
        click.echo(f"{case.id}  {what}")
    click.echo(_count_line(prepared), err=True)


def _count_line(prepared: Any) -> str:
    """``24 cases: 8 on cpu, 8 on a100, ...``"""
    by_target = Counter(case.target.name for case in prepared.cases)
    count = len(prepared.cases)
    shown = ", ".join(f"{number:,} on {name}" for name, number in by_target.items())
    return f"{count:,} case{'s' if count != 1 else ''}: {shown}"


def _run(prepared: Any, as_json: bool) -> int:
    from tileprof.cli.progress import make_progress
    from tileprof.execute.runner import exit_status, run_prepared
    from tileprof.report import result
    from tileprof.report.files import write_files
    from tileprof.store.directory import STORE
    from tileprof.store.reader import read_run

    signal.signal(signal.SIGTERM, _interrupt)  # ends like Ctrl-C: children killed, finished cases kept
    directory = prepared.directory
    click.echo(_count_line(prepared), err=True)
    try:
        run_prepared(prepared, make_progress())
    except KeyboardInterrupt:
        click.echo(_kept(directory, prepared), err=True)
        return INTERRUPTED
    finished = read_run(directory / STORE)
    write_files(finished, directory)
    if as_json:
        click.echo(result.render(finished), nl=False)
    else:
        from tileprof.cli.summary import print_summary

        print_summary(finished, directory)
    return exit_status(finished.cases)


def _kept(directory: Path, prepared: Any) -> str:
    from tileprof.store.directory import STORE
    from tileprof.store.reader import read_outline

    wanted = {case.id for case in prepared.cases}
    try:
        kept = sum(case.id in wanted for case in read_outline(directory / STORE))
    except Exception:  # interrupted before there was anything
        return "interrupted before the first case"
    return f"interrupted: {kept} of {len(prepared.cases)} cases are kept in {directory}; continue with --resume"


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


COMMAND = run
