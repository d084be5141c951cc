"""`recto chat`: an agent in the terminal, on a remote or local server."""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from recto.cli.chat.chat_settings import CHOOSE, load_chat_settings
from recto.cli.chat.local_server import FolderOptions, FolderServer, ServerLocation
from recto.cli.command import FAILED, WRONG_USE, exit_codes, stop
from recto.cli.translation import _
from recto.client.server_address import DATA, URL, find_server

QuestionArgument = Annotated[str | None, typer.Argument(metavar="[QUESTION]", help="Question to answer once.")]
AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Agent.  [default: the thread's, else the server's]")
]
ServerUrl = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="URL of a server.  [default: RECTO_URL, else that of --data]"),
]
Resume = Annotated[
    str | None,
    typer.Option("--resume", metavar="[THREAD]", help="Thread to continue. Without a value, choose from a list."),
]
ChatData = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Data folder.  [default: recto-data]")]
AgentsFolder = Annotated[
    Path | None, typer.Option("--agents", metavar="DIR", help="Folder of agents, if this command starts a server.")
]
WorkspaceFolder = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="DIR", help="Folder agents work in, likewise.  [default: the current one]"),
]
ModeOption = Annotated[
    str | None,
    typer.Option(
        "--mode", metavar="MODE", help="Calls that agents make without approval, likewise: ask, edits or full."
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file.  [default: recto.toml]")
]
EventsAsJson = Annotated[bool, typer.Option("--json", help="With a question: print the events as JSON lines.")]


class CommandLine(TyperCommand):
    """Command that accepts `--resume` without a value, which typer does not support."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride] - typer has its own context class
        """Insert the placeholder value after a bare `--resume`."""
        words: list[str] = []
        for word, next_word in pairwise([*args, "-"]):
            words += [word, CHOOSE] if word == "--resume" and next_word.startswith("-") else [word]
        return super().parse_args(ctx, words)


def chat(
    context: typer.Context,
    question: QuestionArgument = None,
    *,
    agent: AgentOption = None,
    resume: Resume = None,
    server: ServerUrl = None,
    data: ChatData = None,
    agents: AgentsFolder = None,
    workspace: WorkspaceFolder = None,
    mode: ModeOption = None,
    config: ConfigFile = None,
    as_json: EventsAsJson = False,
) -> None:
    """Chat with an agent in the terminal. A QUESTION or piped input prints one answer and exits.

    Without --server, recto chat connects to the server of the data folder, or starts one in this process. Exit codes: 0
    success, 1 failure, 2 usage error.
    """
    options = FolderOptions(data=data, agents=agents, workspace=workspace, mode=mode, config=config)
    folder = FolderServer(options, context.obj, os.environ)
    # --data takes precedence over the server URL in the environment.
    url = server or (None if data else os.environ.get(URL))

    def find() -> ServerLocation:
        if not url:
            return folder.find()
        address = find_server(url, None, {**os.environ, DATA: str(folder.data)})
        return ServerLocation(address=address, how="named")

    with exit_codes("chat"):
        try:
            settings = load_chat_settings(config)
            if question is not None or as_json or not sys.stdin.isatty():
                from recto.cli.chat.one_answer import answer_once, build_question  # slow to import
                from recto.cli.chat.thread_api import ThreadApi

                question_input = build_question(question, agent, resume, settings, as_json=as_json)
                raise typer.Exit(asyncio.run(answer_once(ThreadApi(find), question_input)))
            if not sys.stdout.isatty():
                text = _('This is not a terminal. Pass a question (recto chat "question") or pipe one in.')
                raise stop("chat", text, WRONG_USE)
            from recto.cli.chat.chat_terminal import ChatTerminal

            asyncio.run(ChatTerminal(find, settings, os.environ).run(agent, resume))
        except KeyboardInterrupt:
            # Ctrl-C at a moment when neither a run nor the chat screen handles it.
            raise typer.Exit(FAILED) from None
        finally:
            folder.stop()
