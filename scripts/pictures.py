"""Make the pictures of the README again: a real server, a scripted model, and what the terminal shows of both.

Usage: python scripts/pictures.py [FOLDER]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event

from rich.console import Console
from rich.text import Text

from recto.client import Client
from recto.testing.client import TOKEN
from recto.testing.model_server import Answer, Call, ModelServer, Request
from recto.testing.process import ServerProcess, free_port

WIDTH, READS = 110, 7
PICTURES = Path(__file__).parents[1] / "docs/pictures"
# Rich's own frame fetches its letters from elsewhere; this one takes those of the reader's machine.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; \
line-height: {line_height}px; }} {styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />\
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def main() -> None:
    """Make both."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    draw(folder / "manifest.svg", "recto explain", explained())
    draw(folder / "killed.svg", "a reader of a run", "\n".join(killed()))


def explained() -> str:
    """A coder has read a file more often than a page keeps: what its last call was sent, and why."""

    def answer(asked: Request) -> Answer:
        done = sum(message["role"] == "tool" for message in asked.page["messages"])
        if done == 0:
            content = "".join(f"def item_{number}(): return {number}\n" for number in range(40))
            return use("filesystem-create", {"filePath": "shop.py", "content": content}, done)
        if done <= READS:
            return use("filesystem-read", {"filePath": "shop.py"}, done)
        return Answer(text="The shop sells forty items.", usage=None)

    with tempfile.TemporaryDirectory() as data, ModelServer(answer) as model, serving(Path(data), model) as server:
        turn = Client(url=server.url, token=TOKEN, agent="coder").chat("What does the shop sell?")
        turn.answer()
        command = [sys.executable, "-m", "recto", "explain", turn.run, "--data", data]
        colours = {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
        done = subprocess.run(  # noqa: S603 - our own command
            command, env={**os.environ, **colours}, capture_output=True, text=True, check=True
        )
    head, _, rest = done.stdout.partition("\n\n")
    composition, parts = rest.split("\n\n")[1:3]
    return "\n\n".join((f"$ recto explain RUN\n{head}", composition, parts))


def killed() -> Iterator[str]:
    """The events of one run, as one reader gets them while the server is killed under it."""
    hold, port = Event(), free_port()
    words = "I was killed in the middle of this sentence, and went on."

    def answer(asked: Request) -> Answer:
        if asked.page["messages"][-1]["role"] != "tool":
            return use("calculator", {"expression": "12 * 7"})
        return Answer(text=words, hold=hold, hold_after=8)

    with tempfile.TemporaryDirectory() as data, ModelServer(answer) as model:
        with serving(Path(data), model, port) as server:
            turn = Client(url=server.url, token=TOKEN, agent="chat").chat("What is 12 * 7?")
            events = turn.events()
            for event in events:
                yield line_of(event)
                if event["type"] == "TEXT_MESSAGE_CONTENT":
                    break
            server.kill()
        yield "\n\x1b[31m$ kill -9 SERVER; recto serve\x1b[0m\n"
        hold.set()
        with serving(Path(data), model, port):
            yield from map(line_of, events)
        yield f"\n\x1b[32mThe answer, whole: {turn.text}\x1b[0m"


def use(name: str, arguments: Mapping[str, object], number: int = 0) -> Answer:
    # A model that counts no tokens: what is shown are our own figures.
    return Answer(calls=(Call(name=name, arguments=json.dumps(arguments), id=f"call_{number}"),), usage=None)


def serving(data: Path, model: ModelServer, port: int = 0) -> ServerProcess:
    settings = {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url, "RECTO_MODE": "full"}
    command = ["recto", "serve", "--port", str(port), "--data", str(data)]
    return ServerProcess(command, settings)


def line_of(event: Mapping[str, object]) -> str:
    shown = next((event[name] for name in ("delta", "toolCallName", "content", "name") if name in event), "")
    return f"{event['type']:<22} \x1b[36m{shown}\x1b[0m"


def draw(file: Path, title: str, text: str) -> None:
    """A text with the colours of a terminal, as a picture."""
    console = Console(width=WIDTH, record=True, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    console.print(Text.from_ansi(f"{text}\n"))
    file.write_text(console.export_svg(title=title, code_format=FRAME, unique_id=file.stem), encoding="utf-8")


if __name__ == "__main__":
    main()
