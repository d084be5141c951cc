"""The commands of `recto`. Loads only the requested one, to start fast."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, NamedTuple

import typer


class CommandEntry(NamedTuple):
    """A command or group: its name, module and help line."""

    name: str
    module: str
    help: str


COMMANDS = (
    CommandEntry("fold", "recto.cli.fold.fold_command", "Show how many tokens folding saves in a conversation."),
    CommandEntry(
        "replay", "recto.cli.replay.replay_command", "Show how much folding would have saved in recorded sessions."
    ),
    CommandEntry("serve", "recto.cli.serve", "Serve agents over HTTP."),
    CommandEntry("gateway", "recto.cli.serve", "Relay model requests of other agents, repaired and folded."),
    CommandEntry("chat", "recto.cli.chat.chat_command", "Chat with an agent in the terminal."),
    CommandEntry("read", "recto.cli.read", "Print the text of documents as a model would receive it."),
    CommandEntry(
        "explain", "recto.cli.calls.explain_run", "Show the request of a model call and the reason for each part."
    ),
    CommandEntry("backup", "recto.cli.data", "Copy database and files into a new folder."),
    CommandEntry("user", "recto.cli.data", "Export or delete the data of a user, or set their tier."),
    CommandEntry("agents", "recto.cli.agents", "Check, explain, try and create agents."),
    CommandEntry("keys", "recto.cli.data", "Manage the keys that sign file URLs."),
    CommandEntry("storage", "recto.cli.data", "Manage the file storage."),
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        typer.echo(f"recto {version('recto')}")
        raise typer.Exit


def recto(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Compose the prompt of a language model from an append-only log, and explain every part of it."""


def command_in(arguments: Sequence[str]) -> str:
    """Return the name of the command in the arguments."""
    return next((word for word in arguments if not word.startswith("-")), "")


def make_app(command: str) -> typer.Typer:
    """Build the app. Import only the module of `command`; list the other commands with their help."""
    app = typer.Typer(
        name="recto", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    app.callback()(recto)
    for one in COMMANDS:
        if one.name != command:
            app.command(one.name, help=one.help)(lambda: None)
            continue
        module = import_module(one.module)
        target = getattr(module, one.name)
        if isinstance(target, typer.Typer):
            app.add_typer(target)
        else:
            # A module may bring its own command class.
            app.command(cls=getattr(module, "CommandLine", None))(target)
    return app
