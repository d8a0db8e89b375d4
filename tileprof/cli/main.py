"""``tileprof``: the group of verbs, and how errors become messages and exit statuses.

A verb is a click command in a module of its own.  It returns nothing or an exit status; whatever it raises on purpose
is shown without a traceback.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from tileprof import __version__
from tileprof.errors import TileprofError, UsageError
from tileprof.workload.problems import nearest

INTERRUPTED = 130
INTERNAL_ERROR = 70  # EX_SOFTWARE: a fault of ours, none of the documented statuses

VERBS = ("run", "report", "check", "compare", "import", "conflicts", "doctor", "calibrate", "schema")
"""Verbs in the order in which help lists them; each is ``COMMAND`` in the module of its name."""

_MODULES = {"import": "import_profiles"}
"""Verbs whose module cannot have their name."""


class Verbs(click.Group):
    """Loads a verb's module when it is used, so that ``--help`` and errors are quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # not of our own streams, which raise nothing; click would end with the status of a failed check, without a word
            raise RuntimeError("a pipe to another process broke") from error

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"tileprof.cli.{_MODULES.get(cmd_name, cmd_name)}").COMMAND
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            guess = nearest(name, VERBS)
            hint = f"Did you mean '{guess}'?" if guess else f"Commands are {', '.join(VERBS)}."
            raise click.UsageError(f"No such command '{name}'. {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.version_option(__version__, prog_name="tileprof")
def cli() -> None:
    """Run tile kernels, join what the compiler knows with what hardware counts, report it.

    Exit status: 0 fine; 1 a check failed; 2 wrong usage or configuration; 3 the measurement is invalid for a passing
    reason; 4 a case failed; 130 interrupted, finished cases kept.
    """


def show_error(error: BaseException) -> None:
    """Print an error to standard error, in red on a terminal."""
    head = click.style("error:", fg="red", bold=True)
    click.echo(f"{head} {error}", err=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; ``arguments`` defaults to the process's own.

    A reader that goes away ends no work and changes no status; output that is lost otherwise is status 2.
    """
    from tilelang_min import streams

    with streams.steady_streams() as used:
        status = _status(arguments)
    if used.output_lost is not None:
        what = f"standard output cannot be written: {used.output_lost.strerror}"
        show_error(UsageError(what, remedy="free some space, or let it lead elsewhere"))
        return 2
    return status


def _status(arguments: Sequence[str] | None) -> int:
    """Run the command line; errors become messages and statuses."""
    from tilelang_min.errors import TileLangError

    try:
        result: Any = cli.main(
            args=None if arguments is None else list(arguments), prog_name="tileprof", standalone_mode=False
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else str(error), err=True)
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except TileprofError as error:
        show_error(error)
        return error.exit_status
    except TileLangError as error:
        show_error(error)
        return 2
    except Exception as error:
        import traceback

        traceback.print_exc()
        show_error(RuntimeError(f"this is a fault of tileprof, please report it: {type(error).__name__}: {error}"))
        return INTERNAL_ERROR
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
