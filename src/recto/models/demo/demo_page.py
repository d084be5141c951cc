"""Page of a request as the demo model reads it, and the model's replies."""

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
    """Reply of the demo model: text, calls, or both."""

    text: str = ""
    calls: Sequence[DemoCall] = ()


@dataclass(frozen=True, kw_only=True)
class ToolAnswer:
    """Answered call of this turn. `data` is None if the answer is no JSON object, such as an error."""

    name: str
    arguments: Mapping[str, Json]
    text: str
    data: Mapping[str, Json] | None


@dataclass(frozen=True, kw_only=True)
class DemoPage:
    """Page of a request. Texts and documents (names by id) of users are newest first; answers are of this turn."""

    system: str
    user_texts: tuple[str, ...]
    documents: tuple[Mapping[str, str], ...]
    tools: Mapping[str, Mapping[str, Json]]
    answers: tuple[ToolAnswer, ...]

    @property
    def words(self) -> str:
        return self.user_texts[0] if self.user_texts else ""

    @property
    def language(self) -> Locale:
        """The language of the user's words and of the names of their files."""
        names = self.documents[0].values() if self.documents else ()
        return "zh" if any(map(CHINESE.search, (self.words, *names))) else "en"

    def statuses(self, tool: str) -> Sequence[str]:
        """Return the statuses in a tool's answers of this turn: `saved`, `need_info`."""
        return [text_of((one.data or {}).get("status")) for one in self.answers if one.name == tool]


def read_page(page: Mapping[str, Json]) -> DemoPage:
    """Read a page in OpenAI form."""
    messages = list(objects_in(page.get("messages")))
    last_user = max((place for place, one in enumerate(messages) if one.get("role") == "user"), default=-1)
    users = [text_of(one.get("content")) for one in reversed(messages) if one.get("role") == "user"]
    reminders = [match[0] if (match := REMINDERS.match(user)) else "" for user in users]
    tools = [an_object(tool.get("function")) for tool in objects_in(page.get("tools"))]
    return DemoPage(
        system="\n".join(text_of(one.get("content")) for one in messages if one.get("role") in ("system", "developer")),
        user_texts=tuple(REMINDERS.sub("", user).strip() for user in users),
        documents=tuple({unescape(id): unescape(name) for id, name in DOCUMENT.findall(one)} for one in reminders),
        tools={text_of(tool.get("name")): tool for tool in tools},
        answers=tuple(_answers(messages[last_user + 1 :])),
    )


def _answers(messages: Sequence[Mapping[str, Json]]) -> Iterator[ToolAnswer]:
    calls = {text_of(call.get("id")): call for message in messages for call in objects_in(message.get("tool_calls"))}
    for message in messages:
        if message.get("role") == "tool":
            call = an_object(calls.get(text_of(message.get("tool_call_id")), {}).get("function"))
            arguments = load_object(text_of(call.get("arguments"))) or {}
            text = text_of(message.get("content")).strip()
            name = text_of(call.get("name")) or "tool"
            yield ToolAnswer(name=name, arguments=arguments, text=text, data=leading_object(text))


def an_object(value: Json) -> Mapping[str, Json]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def text_of(content: Json) -> str:
    """Return a text given as a string or as blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in objects_in(content) if isinstance(text := block.get("text"), str))


def objects_in(value: Json) -> Iterator[Mapping[str, Json]]:
    """Yield the objects of a list; nothing for any other value."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (item for item in value if isinstance(item, Mapping))
