"""``tileprof schema``: the JSON Schemas of the workload file and of result.json."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("which", type=click.Choice(["workload", "result"]), default="workload")
def schema(which: str) -> None:
    """Print the JSON Schema of the workload file (default) or of result.json.

    Editors complete workload files with it: put `# yaml-language-server: $schema=workload.schema.json` into their first line.
    """
    if which == "workload":
        from tileprof.workload.schema import workload_json_schema as make
    else:
        from tileprof.report.result import result_json_schema as make
    click.echo(json.dumps(make(), indent=2))


COMMAND = schema
