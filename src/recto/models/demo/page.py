"""The page as the demo model reads it: what was said, which tools there are, what they answered. It knows no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from recto.conversation.json import Json, load_object
from recto.models.demo.files import Language, documents_in, wants_files

REMINDERS = re.compile(r"\A(?:\s*<system-reminder>.*?</system-reminder>\s*)+", re.DOTALL)
CHINESE = re.compile("[\u4e00-\u9fff]")
LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, kw_only=True)
class DemoCall:
    """A tool the demo model wants to call."""

    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class DemoReply:
    """What the demo model says: words, or calls."""

    text: str = ""
    calls: tuple[DemoCall, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Made:
    """A call that was answered."""

    name: str
    arguments: Mapping[str, Json]
    result: str

    @property
    def answer(self) -> Mapping[str, Json] | None:
        """The answer as data; None where it is none, as of a tool that failed."""
        return load_object(self.result)


@dataclass(frozen=True, kw_only=True)
class DemoPage:
    """A page: the system's words, the user's now and before (newest first), tools by name, and the calls since.

    `before` are the calls of earlier turns, as far as the page still has them.
    """

    rules: str = ""
    words: str = ""
    earlier: tuple[str, ...] = ()
    offered: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    made: tuple[Made, ...] = ()
    before: tuple[Made, ...] = ()
    documents: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def language(self) -> Language:
        """That of the user's words; where they are only figures, of the files with them, or of what was said before."""
        said = (self.words, " ".join(self.documents.values()), *self.earlier)
        first = next((text for text in said if LETTER.search(text)), "")
        return "zh" if CHINESE.search(first) else "en"

    def answers(self, name: str) -> Iterator[Mapping[str, Json]]:
        """What a tool answered in this turn, as data."""
        yield from (answer for made in self.made if made.name == name and (answer := made.answer) is not None)


def read_page(page: Mapping[str, Json]) -> DemoPage:
    """A page in OpenAI form."""
    messages = list(objects(page.get("messages")))
    asked = max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    users = [text_of(one.get("content")) for one in reversed(messages[: asked + 1]) if one.get("role") == "user"]
    said = [REMINDERS.sub("", user).strip() for user in users]
    tools = [an_object(tool.get("function")) for tool in objects(page.get("tools"))]
    return DemoPage(
        rules="\n".join(text_of(message.get("content")) for message in messages if is_system(message)),
        words=said[0] if said else "",
        earlier=tuple(said[1:]),
        offered={text_of(tool.get("name")): tool for tool in tools},
        made=tuple(_made(messages[asked + 1 :])),
        before=tuple(_made(messages[: max(asked, 0)])),
        documents=_documents(users, said[0]) if said else {},
    )


def _documents(users: Sequence[str], words: str) -> Mapping[str, str]:
    """The documents of the current turn; where it has none and asks for some, those of the turn that last had any."""
    for user in users if wants_files(words) else users[:1]:
        if found := REMINDERS.match(user):
            documents = documents_in(found[0])
            if documents:
                return documents
    return {}


def _made(messages: Sequence[Mapping[str, Json]]) -> Iterator[Made]:
    calls = {text_of(call.get("id")): call for message in messages for call in objects(message.get("tool_calls"))}
    for message in messages:
        if message.get("role") == "tool":
            call = an_object(calls.get(text_of(message.get("tool_call_id")), {}).get("function"))
            yield Made(
                name=text_of(call.get("name")) or "tool",
                arguments=load_object(text_of(call.get("arguments"))) or {},
                result=text_of(message.get("content")).strip(),
            )


def is_system(message: Mapping[str, Json]) -> bool:
    """Whether a message is ours, and not part of the conversation."""
    return message.get("role") in ("system", "developer")


def an_object(value: Json) -> Mapping[str, Json]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def objects(value: Json) -> Iterator[Mapping[str, Json]]:
    """The objects of an array; of anything else none."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (item for item in value if isinstance(item, Mapping))


def text_of(content: Json) -> str:
    """Words as a string or as blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in objects(content) if isinstance(text := block.get("text"), str))
