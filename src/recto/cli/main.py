"""The commands of `recto`."""

from __future__ import annotations

import typer

from recto.cli import options
from recto.cli.agents import agents
from recto.cli.data import backup, user
from recto.cli.fold.fold_command import fold_command
from recto.cli.keys import keys
from recto.cli.read import read
from recto.cli.serve import serve
from recto.cli.storage import storage

app = typer.Typer(
    name="recto",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def recto(_version: options.Version = False) -> None:
    """Sets the page a language model is shown from a log that is never edited, and says why each part is there."""


app.command()(fold_command())
app.command()(serve)
app.command()(read)
app.command()(backup)
app.add_typer(user)
app.add_typer(agents)
app.add_typer(keys)
app.add_typer(storage)
