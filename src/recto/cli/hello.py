"""Example runs of `recto serve --hello`, made over HTTP and printed in the language of the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recto.cli.translation import _, terminal_language
from recto.conversation.json import Json
from recto.errors import RectoError, ServerUnreachable

if TYPE_CHECKING:
    from rich.console import Console

    from recto.client import ChatTurn

FILE = "prices.csv"
MAX_CHARACTERS = 100


@dataclass(frozen=True, kw_only=True)
class Greeting:
    """A running server with its default agent, if one is set, and the shell command that started recto."""

    url: str
    token: str
    address: str
    agent: str | None
    data: str
    command: str

    def say(self) -> None:
        """Run the example turns, print them as they stream, then the next steps."""
        from rich.console import Console  # slow to import, and needed for --hello only

        # Print model output as it is: no markup, no line breaking.
        console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        run = ""
        for heading, agent, question, turn in self._runs():
            console.print(f"\n── {heading} ──", style="bold")
            _print(console, _("you"), question)
            try:
                _show(console, agent, turn.events())
            except ServerUnreachable:
                return
            except RectoError as error:
                console.print(_("The run failed: {message}").format(message=error), style="red")
            run = run or turn.run
        console.print("\n── " + _("next steps") + " ──", style="bold")
        data = f" --data {self.data}" if self.data != "recto-data" else ""
        about = _("what the model received, and why each part is there")
        _print(console, _("open"), self.address)
        _print(console, _("inspect"), f"{self.command} explain {run or 'RUN'}{data}    {about}")
        _print(console, _("build"), f"{self.command} agents new NAME    " + _("your own agent"))
        model = f"RECTO_MODEL=openai:NAME OPENAI_API_KEY=... {self.command} serve"
        _print(console, _("connect"), f"{model}    " + _("a real model"))
        sys.stdout.flush()

    def _runs(self) -> Iterator[tuple[str, str, str, ChatTurn]]:
        """Yield heading, agent, question and turn of each run."""
        if self.agent:
            question = _("What is 12 * 7, and what time is it?")
            yield _("{agent} answers").format(agent=self.agent), self.agent, question, self._ask(question)
            return
        question = _("Read {file}. What do 12 apples cost: 12 * 7?").format(file=FILE)
        turn = self._ask(question, (FILE, _("fruit,price\napples,7\npears,9\n").encode()))
        yield _("chat reads a file and uses a tool"), "chat", f"{question}  [{FILE}]", turn
        question = _("I need career advice: I am a nurse, and I want to work with data.")
        agent = "vibe" if terminal_language() == "zh" else "vibe-en"
        yield (
            _("vibe activates a skill and continues as its expert"),
            "vibe",
            question,
            self._ask(question, agent=agent),
        )

    def _ask(self, question: str, *files: tuple[str, bytes], agent: str | None = None) -> ChatTurn:
        from recto.client import Client, Patience

        # If the server stops, do not retry.
        client = Client(url=self.url, token=self.token, agent=agent, patience=Patience(tries=0))
        return client.chat(question, files=files)


def _show(console: Console, agent: str, events: Iterable[Mapping[str, Json]]) -> None:
    """Print a run as it streams."""
    arguments, names = dict[Json, str](), dict[Json, str]()
    for event in events:
        match event:
            case {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": str(name)}:
                names[id], arguments[id] = name, ""
            case {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": str(delta)}:
                arguments[id] = arguments.get(id, "") + delta
            case {"type": "TOOL_CALL_RESULT", "toolCallId": id, "content": content}:
                call = f"{names.get(id)}({_shorten(arguments.get(id, ''))})"
                _print(console, _("calls"), f"{call} → {_shorten(str(content))}")
            case {"type": "TEXT_MESSAGE_START"}:
                console.print(f"{agent:<9}", style="cyan", end="")
            case {"type": "TEXT_MESSAGE_CONTENT", "delta": str(delta)}:
                console.print(delta.replace("\n", "\n" + " " * 9), end="")
            case {"type": "TEXT_MESSAGE_END"}:
                console.print()
            case _:
                pass


def _print(console: Console, name: str, text: str) -> None:
    from rich.cells import cell_len

    console.print(name + " " * (9 - cell_len(name)), style="cyan", end="")
    console.print(text)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[:MAX_CHARACTERS]} ..."
