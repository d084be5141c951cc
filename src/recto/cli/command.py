"""What all commands have in common: exit codes, errors as one line, groups of commands."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import typer

from recto.errors import RectoError, SettingsError

FAILED, WRONG_USE = 1, 2


@contextmanager
def exit_codes(command: str, *misused: type[RectoError]) -> Generator[None]:
    """Errors of ours end the command with a line on standard error: WRONG_USE for settings and `misused`, or FAILED."""
    try:
        yield
    except (SettingsError, *misused) as error:
        raise stop(command, error, WRONG_USE) from error
    except BrokenPipeError:
        # Whoever reads what we print has enough: no failure of ours.
        raise
    except (RectoError, OSError) as error:
        raise stop(command, error, FAILED) from error


def stop(command: str, problem: object, code: int) -> typer.Exit:
    """The end of a command, once its problem is printed."""
    typer.echo(f"recto {command}: {problem}", err=True)
    return typer.Exit(code)


def group(name: str, help: str) -> typer.Typer:
    """Commands under one name."""
    return typer.Typer(
        name=name,
        help=help,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
