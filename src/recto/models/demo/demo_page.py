"""The page as the demo model reads it: what was said, which tools there are, what they answered; and its replies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import TypeAlias

from recto.conversation.json import Json, leading_object, load_object
from recto.page.prompt.reminder import Locale

DemoCall: TypeAlias = tuple[str, Mapping[str, Json]]

REMINDERS = re.compile(r"\A(?:\s*<system-reminder>.*?</system-reminder>\s*)+", re.DOTALL)
DOCUMENT = re.compile(r"^<file>\n<id>(.*)</id>\n<name>(.*)</name>\n<type>document</type>$", re.MULTILINE)
CHINESE = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, kw_only=True)
class DemoReply:
    """What the demo model says: words, or calls, or both."""

    text: str = ""
    calls: Sequence[DemoCall] = ()


@dataclass(frozen=True, kw_only=True)
class ToolAnswer:
    """A call of this turn that was answered. `data` is None where the answer is none, as of a tool that failed."""

    name: str
    arguments: Mapping[str, Json]
    text: str
    data: Mapping[str, Json] | None


@dataclass(frozen=True, kw_only=True)
class DemoPage:
    """A page. What users said, and their documents (names by id), are newest first; answers are those of this turn."""

    system: str
    said: tuple[str, ...]
    documents: tuple[Mapping[str, str], ...]
    tools: Mapping[str, Mapping[str, Json]]
    answers: tuple[ToolAnswer, ...]

    @property
    def words(self) -> str:
        return self.said[0] if self.said else ""

    @property
    def language(self) -> Locale:
        """That of the user's words, and of the names of files that came with them."""
        return (
            "zh" if any(map(CHINESE.search, (self.words, *(self.documents[0].values() if self.said else ())))) else "en"
        )

    def statuses(self, tool: str) -> Sequence[str]:
        """What a tool has answered in this turn: `saved`, `need_info`."""
        return [text_of((one.data or {}).get("status")) for one in self.answers if one.name == tool]


def read_page(page: Mapping[str, Json]) -> DemoPage:
    """A page in OpenAI form."""
    messages = list(_objects(page.get("messages")))
    asked = max((place for place, one in enumerate(messages) if one.get("role") == "user"), default=-1)
    users = [text_of(one.get("content")) for one in reversed(messages) if one.get("role") == "user"]
    reminders = [found[0] if (found := REMINDERS.match(user)) else "" for user in users]
    tools = [an_object(tool.get("function")) for tool in _objects(page.get("tools"))]
    return DemoPage(
        system="\n".join(text_of(one.get("content")) for one in messages if one.get("role") in ("system", "developer")),
        said=tuple(REMINDERS.sub("", user).strip() for user in users),
        documents=tuple({unescape(id): unescape(name) for id, name in DOCUMENT.findall(one)} for one in reminders),
        tools={text_of(tool.get("name")): tool for tool in tools},
        answers=tuple(_answers(messages[asked + 1 :])),
    )


def _answers(messages: Sequence[Mapping[str, Json]]) -> Iterator[ToolAnswer]:
    calls = {text_of(call.get("id")): call for message in messages for call in _objects(message.get("tool_calls"))}
    for message in messages:
        if message.get("role") == "tool":
            call = an_object(calls.get(text_of(message.get("tool_call_id")), {}).get("function"))
            arguments = load_object(text_of(call.get("arguments"))) or {}
            text = text_of(message.get("content")).strip()
            name = text_of(call.get("name")) or "tool"
            yield ToolAnswer(name=name, arguments=arguments, text=text, data=leading_object(text))


def an_object(value: Json) -> Mapping[str, Json]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def text_of(content: Json) -> str:
    """A text as a string or as blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in _objects(content) if isinstance(text := block.get("text"), str))


def _objects(value: Json) -> Iterator[Mapping[str, Json]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (item for item in value if isinstance(item, Mapping))
