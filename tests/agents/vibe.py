"""What the tests of vibe share: a profile kept in memory, and a call of one of its tools as a model makes it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import cast

import recto.agents
from recto.conversation.json import Json, dump, load
from recto.conversation.messages import Text
from recto.conversation.ui.compile_ui import compile_ui
from recto.errors import ToolError
from recto.page.prompt.reminder import Locale
from recto.tools.load_tools import load_folder_tools
from recto.tools.ports import Tool, ToolContext, ToolResult

VIBE = Path(recto.agents.__file__).parent / "shipped" / "vibe"
NOW = datetime(2026, 5, 14, 4, tzinfo=UTC)
BIRTH: dict[str, Json] = {"date": "1990-05-15", "time": "14:30", "place": "北京", "gender": "male"}

LOCALES: tuple[Locale, ...] = ("zh", "en")


@dataclass(frozen=True, kw_only=True)
class KeptInMemory:
    """What is kept of one user. `writes` has the name of every field and skill in the order they were written."""

    profile: dict[str, Json] = field(default_factory=dict[str, Json])
    data: dict[str, Json] = field(default_factory=dict[str, Json])
    writes: list[str] = field(default_factory=list[str])
    rejection: str = ""

    async def fields(self, *names: str) -> Mapping[str, Json]:
        return {name: self.profile[name] for name in names if name in self.profile}

    async def change(self, field: str, value: Json) -> None:
        if self.rejection:
            raise ToolError(self.rejection)
        self.writes.append(field)
        self.profile[field] = load(dump(value))

    async def skill_data(self, skill: str) -> Json:
        return self.data.get(skill)

    async def keep(self, skill: str, data: Json) -> None:
        self.writes.append(skill)
        self.data[skill] = load(dump(data))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a tool answered: an object, or the words of a refusal, with its kind."""

    content: dict[str, Json]
    words: str
    error: str | None

    def at(self, *path: str | int) -> Json:
        value: Json = self.content
        for step in path:
            value = cast("dict[str | int, Json]", value)[step]
        return value


@cache
def tools() -> Mapping[str, Tool]:
    return {tool.name: tool for tool in load_folder_tools(VIBE)}


def at_work(user: KeptInMemory | None, locale: str = "zh", call: str = "c1", now: datetime = NOW) -> ToolContext:
    return ToolContext(owner="ann", thread="t1", run="r1", call=call, now=now, profile=user, locale=locale)


def call(name: str, user: KeptInMemory, arguments: Json = None, context: ToolContext | None = None) -> Answer:
    """A call as a model makes it, with what it is answered."""
    arguments_text = dump({} if arguments is None else arguments).decode()

    async def act() -> ToolResult:
        return await tools()[name].act(arguments_text, context or at_work(user))

    result = asyncio.run(act())
    words = "".join(part.text for part in result.parts if isinstance(part, Text))
    content = cast("dict[str, Json]", load(words)) if result.error is None else {}
    return Answer(content=content, words=words, error=result.error)


def born(**more: Json) -> KeptInMemory:
    return KeptInMemory(profile={"birth_info": {**BIRTH, **more}})


def title_of(answer: Answer) -> str:
    """The title of the card its hints become. Hints that were refused would have become a text without one."""
    compiled = compile_ui(answer.content["ui_hints"])
    assert compiled is not None
    root = cast("dict[str, list[dict[str, str]]]", compiled["root"])
    assert root["children"][0]["role"] == "title"
    return root["children"][0]["content"]
