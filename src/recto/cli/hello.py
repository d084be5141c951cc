"""First runs of `recto serve --hello`, made over HTTP and printed in the language of the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from recto.conversation.json import Json
from recto.errors import RectoError, ServerUnreachable

if TYPE_CHECKING:
    from rich.console import Console

    from recto.client import ChatTurn

FILE = "prices.csv"
SHOWN = 100


@dataclass(frozen=True, kw_only=True)
class HelloWords:
    """Questions and texts in one language."""

    file: tuple[tuple[str, str], ...]
    about_chat: str
    to_chat: str
    about_vibe: str
    vibe: str
    to_vibe: str
    about_other: str
    to_other: str
    you: str
    calls: str
    failed: str
    next: str
    steps: tuple[tuple[str, str], ...]


WORDS: Mapping[Literal["en", "zh"], HelloWords] = {
    "en": HelloWords(
        file=(("fruit", "price"), ("apples", "7"), ("pears", "9")),
        about_chat="chat reads a file and uses a tool",
        to_chat=f"Read {FILE}. What do 12 apples cost: 12 * 7?",
        about_vibe="vibe takes up a skill, and goes on as its expert",
        vibe="vibe-en",
        to_vibe="I need career advice: I am a nurse, and I want to work with data.",
        about_other="{agent} answers",
        to_other="What is 12 * 7, and what time is it?",
        you="you",
        calls="calls",
        failed="The run failed: {message}",
        next="what next",
        steps=(
            ("open", "{address}"),
            ("look", "{recto} explain {run}{data}    what the model was sent, and why each part was there"),
            ("build", "{recto} agents new NAME    an agent of your own"),
            ("connect", "RECTO_MODEL=openai:NAME OPENAI_API_KEY=... {recto} serve    a real model"),
        ),
    ),
    "zh": HelloWords(
        file=(("水果", "价格"), ("苹果", "7"), ("梨", "9")),
        about_chat="chat 读文件、用工具",
        to_chat=f"读一下 {FILE}，12 个苹果多少钱：12 * 7？",
        about_vibe="vibe 激活一项技能，以专家的身份继续",
        vibe="vibe",
        to_vibe="我想聊聊职业规划：我是护士，想转行做数据。",
        about_other="{agent} 回答",
        to_other="12 * 7 是多少？现在几点？",
        you="你",
        calls="调用",
        failed="运行失败：{message}",
        next="接下来",
        steps=(
            ("打开", "{address}"),
            ("查看", "{recto} explain {run}{data}    模型收到了什么，每一部分为什么在那里"),
            ("动手", "{recto} agents new NAME    做一个自己的 agent"),
            ("连接", "RECTO_MODEL=openai:NAME OPENAI_API_KEY=... {recto} serve    换上真正的模型"),
        ),
    ),
}


def language_of_terminal(environment: Mapping[str, str]) -> Literal["en", "zh"]:
    """Return the language of the first locale variable that is set; English unless it is Chinese."""
    named = next(filter(None, map(environment.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh" if named.lower().startswith("zh") else "en"


@dataclass(frozen=True, kw_only=True)
class Greeting:
    """A running server and how to greet its user.

    `agent` is the server's default agent if one is set, `command` the shell command that started recto.
    """

    url: str
    token: str
    address: str
    language: Literal["en", "zh"]
    agent: str | None
    data: str
    command: str

    def say(self) -> None:
        """Run the example turns, print them as they stream, then the next steps."""
        from rich.console import Console  # here: only who is greeted waits for it

        # Print model output as it is: no markup, no line breaking.
        console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        words, run = WORDS[self.language], ""
        for heading, agent, question, turn in self._runs(words):
            console.print(f"\n── {heading} ──", style="bold")
            _print(console, words.you, question)
            try:
                _show(console, words, agent, turn.events())
            except ServerUnreachable:
                return
            except RectoError as error:
                console.print(words.failed.format(message=error), style="red")
            run = run or turn.run
        console.print(f"\n── {words.next} ──", style="bold")
        data = f" --data {self.data}" if self.data != "recto-data" else ""
        for name, text in words.steps:
            filled = text.format(address=self.address, recto=self.command, run=run or "RUN", data=data)
            _print(console, name, filled)
        sys.stdout.flush()

    def _runs(self, words: HelloWords) -> Iterator[tuple[str, str, str, ChatTurn]]:
        """Yield heading, agent, question and turn of each run."""
        if self.agent:
            yield words.about_other.format(agent=self.agent), self.agent, words.to_other, self._ask(words.to_other)
            return
        turn = self._ask(words.to_chat, (FILE, "".join(f"{','.join(row)}\n" for row in words.file).encode()))
        yield words.about_chat, "chat", f"{words.to_chat}  [{FILE}]", turn
        yield words.about_vibe, "vibe", words.to_vibe, self._ask(words.to_vibe, agent=words.vibe)

    def _ask(self, question: str, *files: tuple[str, bytes], agent: str | None = None) -> ChatTurn:
        from recto.client import Client, Patience

        # If the server stops, do not retry.
        client = Client(url=self.url, token=self.token, agent=agent, patience=Patience(tries=0))
        return client.chat(question, files=files)


def _show(console: Console, words: HelloWords, agent: str, events: Iterable[Mapping[str, Json]]) -> None:
    """Print a run as it streams."""
    arguments, names = dict[Json, str](), dict[Json, str]()
    for event in events:
        match event:
            case {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": str(name)}:
                names[id], arguments[id] = name, ""
            case {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": str(delta)}:
                arguments[id] = arguments.get(id, "") + delta
            case {"type": "TOOL_CALL_RESULT", "toolCallId": id, "content": content}:
                _print(
                    console, words.calls, f"{names.get(id)}({_short(arguments.get(id, ''))}) → {_short(str(content))}"
                )
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


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]} ..."
