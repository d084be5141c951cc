"""Make the pictures of the documents again: a real server, a scripted model, and what the terminal shows of both.

Usage: python -m scripts.pictures [FOLDER]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from threading import Event

from pyte.screens import Char
from rich.color import ANSI_COLOR_NAMES
from rich.console import Console
from rich.style import Style
from rich.text import Text

from recto.client import Client
from recto.testing.model_server import Answer, Call, ModelServer, Request
from recto.testing.process import ServerProcess, free_port
from tests.support.client import TOKEN

ROOT = Path(__file__).parents[1]

from tests.terminal.terminal import RECTO, Terminal  # noqa: E402 - the tests' terminal is beside this folder

WIDTH, READS, CHAT_SIZE = 110, 7, (80, 52)
KEEPER = """\
---
tools: [filesystem-create, filesystem-read]
---

You keep a shop in one folder. Look into its files before you say what it has.
"""
PICTURES = ROOT / "docs/pictures"
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
    """Make all of them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    draw(folder / "manifest.svg", "recto explain", Text.from_ansi(explained()))
    draw(folder / "killed.svg", "a reader of a run", Text.from_ansi("\n".join(killed())))
    draw(folder / "chat.svg", "recto chat", chatted(), CHAT_SIZE[0])


def explained() -> str:
    """An agent has read a file more often than a page keeps: what its last call was sent, and why."""

    def answer(request: Request) -> Answer:
        done = sum(message["role"] == "tool" for message in request.page["messages"])
        if done == 0:
            content = "".join(f"def item_{number}(): return {number}\n" for number in range(40))
            return use("filesystem-create", {"filePath": "shop.py", "content": content}, done)
        if done <= READS:
            return use("filesystem-read", {"filePath": "shop.py"}, done)
        return Answer(text="The shop sells forty items.", usage=None)

    with tempfile.TemporaryDirectory() as data, ModelServer(answer) as model, serving(Path(data), model) as server:
        turn = Client(url=server.url, token=TOKEN, agent="keeper").chat("What does the shop sell?")
        turn.answer()
        command = [sys.executable, "-m", "recto", "explain", turn.run, "--data", data]
        colours = {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
        done = subprocess.run(command, env={**os.environ, **colours}, capture_output=True, text=True, check=True)
    head, _, rest = done.stdout.partition("\n\n")
    composition, room, parts = rest.split("\n\n")[1:4]
    return "\n\n".join((f"$ recto explain RUN\n{head}", composition, room, parts))


def killed() -> Iterator[str]:
    """The events of one run, as one reader gets them while the server is killed under it."""
    hold, port = Event(), free_port()
    words = "I was killed in the middle of this sentence, and went on."

    def answer(request: Request) -> Answer:
        if request.page["messages"][-1]["role"] != "tool":
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
    agents = data / "agents"
    (agents / "keeper").mkdir(parents=True, exist_ok=True)
    (agents / "keeper" / "AGENT.md").write_text(KEEPER, encoding="utf-8")
    command = ["recto", "serve", "--port", str(port), "--data", str(data), "--agents", str(agents)]
    return ServerProcess(command, settings)


def line_of(event: Mapping[str, object]) -> str:
    text = next((event[name] for name in ("delta", "toolCallName", "content", "name") if name in event), "")
    return f"{event['type']:<22} \x1b[36m{text}\x1b[0m"


def chatted() -> Text:
    """A session with the coder, as a person sees it: a question, a call to agree to, the answer, and the next page."""
    edit = {"filePath": "prices.py", "searchContent": '"apples": 2', "replaceContent": '"apples": 3'}
    answers = [
        replace(use("filesystem-read", {"filePath": "prices.py"}), text="I look at the prices first."),
        use("filesystem-edit", edit, 1),
        Answer(text="Done: apples cost **3** now. The price of `pears` is as it was.", usage=None),
    ]
    with tempfile.TemporaryDirectory() as data_folder, ModelServer(lambda _: answers.pop(0)) as model:
        folder = Path(data_folder)
        (folder / "prices.py").write_text('PRICES = {\n    "apples": 2,\n    "pears": 4,\n}\n', "utf-8")
        settings = {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url, "HOME": data_folder}
        command = [*RECTO, "chat", "--agent", "coder"]
        with Terminal(command, folder=folder, settings=settings, size=CHAT_SIZE) as terminal:
            terminal.wait_for("/help")
            terminal.say("Apples cost 3. Correct @prices.py, please.")
            terminal.wait_for("y once")
            terminal.send("y")
            terminal.wait_for("as it was")
            terminal.wait_gone("Ctrl-C")
            terminal.say("/context")
            terminal.wait_for("Nothing is folded")
            return Text("\n").join(line_text(terminal.cells(y)) for y in range(len(terminal.screen().splitlines())))


def line_text(cells: Sequence[Char]) -> Text:
    """A line of a screen with its colours."""
    line = Text()
    for style, some in groupby(cells, key=style_of):
        line.append("".join(cell.data for cell in some), style=style)
    line.rstrip()
    return line


def style_of(cell: Char) -> Style:
    """The colours of a character."""
    return Style(color=colour_of(cell.fg), bgcolor=colour_of(cell.bg), bold=cell.bold, italic=cell.italics)


def colour_of(name: str) -> str | None:
    """A colour as Rich calls it, by what the screen calls it."""
    if name == "default":
        return None
    color = name.replace("bright", "bright_").replace("brown", "yellow")
    return color if color in ANSI_COLOR_NAMES else f"#{name}"


def draw(file: Path, title: str, text: Text, width: int = WIDTH) -> None:
    """A text with the colours of a terminal, as a picture."""
    console = Console(width=width, record=True, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    console.print(text, "")
    file.write_text(console.export_svg(title=title, code_format=FRAME, unique_id=file.stem), encoding="utf-8")


if __name__ == "__main__":
    main()
