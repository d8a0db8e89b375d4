"""``tileprof report``: render a run again, without running anything."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run_dir", type=click.Path(path_type=Path))
def report(run_dir: Path) -> None:
    """Render the files of RUN_DIR again from its store: index.html, result.json, summary.md, metrics.csv."""
    from tileprof.report.files import write_files
    from tileprof.store.directory import STORE
    from tileprof.store.reader import read_run

    run = read_run(run_dir / STORE)
    for path in write_files(run, run_dir):
        click.echo(path)
    if run.finished is None:
        click.echo("the run is not finished: the files hold the cases done so far", err=True)


COMMAND = report
