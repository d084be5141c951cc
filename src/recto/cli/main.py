"""The commands of `recto`. Loads only the requested one, to start fast."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, NamedTuple

import typer


class Listed(NamedTuple):
    """A command or group: its name, module and help line."""

    name: str
    module: str
    help: str


COMMANDS = (
    Listed(
        "fold",
        "recto.cli.fold.fold_command",
        "Show what folding saves in a conversation: OpenAI-style JSON, or of pi, Claude Code, Codex or opencode.",
    ),
    Listed(
        "replay",
        "recto.cli.replay.replay_command",
        "Show what folding would have saved in sessions: of pi, Claude Code, Codex, opencode, or plain JSON.",
    ),
    Listed("serve", "recto.cli.serve", "Serve agents over HTTP."),
    Listed(
        "gateway",
        "recto.cli.gateway",
        "Relay requests of other agents to their model, repaired and folded, for OpenAI's and Anthropic's SDKs.",
    ),
    Listed(
        "chat",
        "recto.cli.chat.chat_command",
        "Talk to an agent in the terminal; with a question, or with input that is piped in, have one answer printed.",
    ),
    Listed(
        "read",
        "recto.cli.read",
        "Print the text of documents as a model would get it: PDF, Word, Excel, PowerPoint, HTML, mail, books, text.",
    ),
    Listed(
        "explain",
        "recto.cli.calls.explain_run",
        "Show what a model call was sent and why: each part, its tokens and rule, and what changed since the last one.",
    ),
    Listed("backup", "recto.cli.data", "Copy database and files into a new folder, while the server runs or not."),
    Listed("user", "recto.cli.data", "Give out or delete everything that is kept of a user; give them a tier."),
    Listed("agents", "recto.cli.agents", "Check the folder of your agents, explain or try one, or begin a new one."),
    Listed("keys", "recto.cli.keys", "Change the keys that sign urls of files."),
    Listed("storage", "recto.cli.data", "Say whose files a storage holds."),
)


def _print_version(asked: bool) -> None:
    if asked:
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
    """Return the command on the command line."""
    return next((word for word in arguments if not word.startswith("-")), "")


def make_app(asked: str) -> typer.Typer:
    """Build the app with all commands; only `asked` is loaded."""
    app = typer.Typer(
        name="recto",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(recto)
    for one in COMMANDS:
        if one.name != asked:
            app.command(one.name, help=one.help)(_not_loaded)
            continue
        module = import_module(one.module)
        found = getattr(module, one.name)
        if isinstance(found, typer.Typer):
            app.add_typer(found)
        else:
            # A module may bring its own command class.
            app.command(cls=getattr(module, "CommandLine", None))(found)
    return app


def _not_loaded() -> None:
    """Stand in for a command that is only listed."""
