"""Exit codes, one-line errors and groups for all commands."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import typer

from recto.errors import RectoError, SettingsError

FAILED, WRONG_USE = 1, 2


@contextmanager
def exit_codes(command: str, *misused: type[RectoError]) -> Generator[None]:
    """Turn errors into one line on stderr and an exit code: WRONG_USE for settings and `misused`, else FAILED."""
    try:
        yield
    except (SettingsError, *misused) as error:
        raise stop(command, error, WRONG_USE) from error
    except BrokenPipeError:
        # The reader of our output closed the pipe; not an error.
        raise
    except (RectoError, OSError) as error:
        raise stop(command, error, FAILED) from error


def stop(command: str, problem: object, code: int) -> typer.Exit:
    """Print a problem; return the exception that exits the command."""
    typer.echo(f"recto {command}: {problem}", err=True)
    return typer.Exit(code)


def group(name: str, help: str) -> typer.Typer:
    """Return a command group."""
    commands = typer.Typer(
        name=name,
        help=help,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    # Without a callback, typer drops the name of a group with a single command.
    commands.callback()(lambda: None)
    return commands
