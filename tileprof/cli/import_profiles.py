"""``tileprof import``: profiles that others made, as a run with a report.  Needs no GPU and no profiler."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE_OR_DIR...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Run directory.  [default: runs/NAME of the first path]"
)
@click.option(
    "--bundle", "bundles", multiple=True, type=click.Path(path_type=Path), metavar="BUNDLE",
    help="A bundle whose kernel an .ncu-rep profiles: its figures are joined with the tile operations; repeatable.",
)  # fmt: skip
@click.option(
    "--kernel", "kernels", multiple=True, metavar="TEXT", help="Only kernels whose name contains TEXT; repeatable."
)
@click.option("--raw", is_flag=True, help="Also keep every counter under the profiler's own name.")
@click.option("--force", is_flag=True, help="Overwrite a run.")
@click.option("--json", "as_json", is_flag=True, help="Print result.json instead of a table.")
def import_profiles(
    paths: tuple[Path, ...],
    output: Path | None,
    bundles: tuple[Path, ...],
    kernels: tuple[str, ...],
    raw: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Import profiles of Nsight Compute, Nsight Systems, rocprofv3, rocprof-compute, rocprof and Proton.

    The format is told by content.  Host and user names, environment variables and command lines are not kept.
    """
    from tileprof.execute.importing import ImportOptions, import_paths
    from tileprof.report import result
    from tileprof.report.files import write_files

    options = ImportOptions(tuple(paths), output, tuple(bundles), tuple(kernels), raw, force)
    run, directory = import_paths(options, lambda text: click.echo(text, err=True))
    write_files(run, directory)
    if as_json:
        click.echo(result.render(run), nl=False)
    else:
        from tileprof.cli.summary import print_summary

        print_summary(run, directory)


COMMAND = import_profiles
